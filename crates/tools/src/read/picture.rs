//! Images for a model: recognised by their first bytes, made small enough to send (spec `tools.md` §1, §2).

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use openclaw_agent::ToolError;
use openclaw_protocol::message::{Block, ImageBlock};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::row::blocking;

/// How many bytes tell the format.
pub(super) const HEAD: usize = 12;
/// Pixels a side (spec `tools.md` §1).
const MAX_SIDE: u32 = 2000;
/// Bytes before base64 (spec `tools.md` §1).
const MAX_BYTES: usize = 5 * 1024 * 1024;
/// Sides that are tried, largest first; [`MAX_SIDE`] or the image's own side goes before them.
const SIDES: [u32; 6] = [1800, 1600, 1400, 1200, 1000, 800];
/// JPEG qualities tried for each side.
const QUALITIES: [u8; 6] = [85, 75, 65, 55, 45, 35];
/// A file above this is not decoded.
const MAX_FILE: u64 = 64 * 1024 * 1024;
/// A picture above this is not decoded: a small file can claim a gigantic one. Progressive JPEG takes nine bytes a pixel.
const MAX_PIXELS: u64 = 30_000_000;
/// Nor one that takes more bytes decoded.
const MAX_DECODED: u64 = 128 * 1024 * 1024;
/// Pixels a side of what is scaled with care.
const SCALED_SIDE: u32 = 3000;
/// Pictures decoded at the same time, over all sessions.
static TURNS: Semaphore = Semaphore::const_new(1);

/// The image formats models take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl Format {
    /// The format that these first bytes announce.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    pub(super) fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// The file as an image block, or a text that says why it is left out.
///
/// # Errors
/// [`ToolError::Aborted`] as soon as the run is cancelled.
pub(super) async fn load(
    file: File,
    format: Format,
    label: String,
    cancel: CancellationToken,
) -> Result<Block, ToolError> {
    let stop = cancel.clone();
    let loaded = async {
        let (fits, file) = blocking(move || Ok((fits(&file), file))).await?;
        match fits {
            Ok(true) => blocking(move || Ok(whole(file, format))).await,
            Ok(false) => {
                let turn = TURNS.acquire().await;
                blocking(move || {
                    // Kept until the thread is done, also when nobody waits for it any more.
                    let _turn = turn;
                    Ok(smaller(file, &stop))
                })
                .await
            }
            Err(why) => Ok(Err(why)),
        }
    };
    let loaded = tokio::select! { biased;
        () = cancel.cancelled() => return Err(ToolError::Aborted),
        loaded = loaded => loaded?,
    };
    Ok(match loaded {
        Ok((bytes, format)) => Block::Image(ImageBlock {
            data: STANDARD.encode(bytes),
            mime_type: format.mime().to_owned(),
            ..ImageBlock::default()
        }),
        Err(why) => Block::text(format!("[{label}] The image is left out: {why}")),
    })
}

/// A picture as it is sent.
type Encoded = (Vec<u8>, Format);

/// Whether the picture can be sent as it is. Reads no more than its header; one that is too large is refused by it.
fn fits(mut file: &File) -> Result<bool, String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    if length > MAX_FILE {
        return Err(too_big(length));
    }
    let (width, height) = reader(file)?.into_dimensions().map_err(|error| error.to_string())?;
    file.rewind().map_err(|error| error.to_string())?;
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(format!(
            "Image is too large to decode ({width}x{height}; at most {} megapixels). Make a smaller copy and read that.",
            MAX_PIXELS / 1_000_000
        ));
    }
    Ok(width.max(height) <= MAX_SIDE && length <= MAX_BYTES as u64)
}

fn whole(file: File, format: Format) -> Result<Encoded, String> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok((bytes, format))
}

/// The picture as a JPEG that is small enough.
fn smaller(file: File, cancel: &CancellationToken) -> Result<Encoded, String> {
    let going_on = || if cancel.is_cancelled() { Err("stopped".to_owned()) } else { Ok(()) };
    going_on()?;
    let picture = decode(file)?;
    let own = picture.width().max(picture.height()).min(MAX_SIDE);
    let mut smallest = u64::MAX;
    for side in std::iter::once(own).chain(SIDES.into_iter().filter(|side| *side < own)) {
        going_on()?;
        let scaled = (picture.width().max(picture.height()) > side)
            .then(|| picture.resize(side, side, FilterType::CatmullRom));
        let scaled = scaled.as_ref().unwrap_or(&picture);
        for quality in QUALITIES {
            going_on()?;
            let mut out = Vec::new();
            JpegEncoder::new_with_quality(&mut out, quality)
                .encode_image(scaled)
                .map_err(|error| error.to_string())?;
            if out.len() <= MAX_BYTES {
                return Ok((out, Format::Jpeg));
            }
            smallest = smallest.min(out.len() as u64);
        }
    }
    Err(too_big(smallest))
}

fn too_big(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
    let megabytes = bytes as f64 / 1_048_576.0;
    format!("Image could not be reduced below 5MB (got {megabytes:.2}MB)")
}

fn reader<R: Read + Seek>(source: R) -> Result<ImageReader<BufReader<R>>, String> {
    let mut reader =
        ImageReader::new(BufReader::new(source)).with_guessed_format().map_err(|error| error.to_string())?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    Ok(reader)
}

/// Decodes, turned the way the camera was held: the JPEG we write carries no such note. Of a large picture only a smaller
/// one is kept: scaling well takes several times the memory of what is scaled.
fn decode(file: File) -> Result<DynamicImage, String> {
    let mut decoder = reader(file)?.into_decoder().map_err(|error| error.to_string())?;
    if decoder.total_bytes() > MAX_DECODED {
        return Err(format!("Image is too large to decode ({} bytes)", decoder.total_bytes()));
    }
    let orientation = decoder.orientation().map_err(|error| error.to_string())?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| error.to_string())?;
    if picture.width().max(picture.height()) > SCALED_SIDE {
        picture = picture.thumbnail(SCALED_SIDE, SCALED_SIDE);
    }
    let mut picture = DynamicImage::ImageRgb8(picture.into_rgb8());
    picture.apply_orientation(orientation);
    Ok(picture)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use image::{ImageFormat, RgbImage};

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        file
    }

    fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        RgbImage::new(width, height).write_to(&mut out, format).unwrap();
        out.into_inner()
    }

    async fn block(bytes: &[u8]) -> Block {
        let format = Format::of(&bytes[..HEAD]).unwrap();
        load(file(bytes), format, "read:x".into(), CancellationToken::new()).await.unwrap()
    }

    async fn loaded(bytes: &[u8]) -> Result<(String, u32, u32), String> {
        match block(bytes).await {
            Block::Image(block) => {
                let bytes = Cursor::new(STANDARD.decode(block.data).unwrap());
                let (width, height) = reader(bytes).unwrap().into_dimensions().unwrap();
                Ok((block.mime_type, width, height))
            }
            Block::Text(block) => Err(block.text),
            other => panic!("{other:?}"),
        }
    }

    /// A PNG that says it is so large and holds nothing.
    fn claimed(width: u32, height: u32) -> Vec<u8> {
        let mut png = encoded(1, 1, ImageFormat::Png);
        png[16..20].copy_from_slice(&width.to_be_bytes());
        png[20..24].copy_from_slice(&height.to_be_bytes());
        let checksum = crc(&png[12..29]);
        png[29..33].copy_from_slice(&checksum.to_be_bytes());
        png
    }

    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0_u32, |crc, byte| {
            (0..8)
                .fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
        })
    }

    #[test]
    fn formats_are_told_by_their_first_bytes() {
        for (head, format) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some(Format::Png)),
            (b"\xff\xd8\xff\xe0", Some(Format::Jpeg)),
            (b"GIF89a", Some(Format::Gif)),
            (b"RIFF\0\0\0\0WEBP", Some(Format::Webp)),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"GIF is a word", None),
            (b"", None),
        ] {
            assert_eq!(Format::of(head), format, "{head:?}");
        }
    }

    #[tokio::test]
    async fn a_small_image_is_sent_as_it_is() {
        let png = encoded(40, 20, ImageFormat::Png);
        let Block::Image(block) = block(&png).await else { panic!("no image") };
        assert_eq!((STANDARD.decode(block.data).unwrap(), block.mime_type.as_str()), (png, "image/png"));
    }

    #[tokio::test]
    async fn a_large_image_becomes_a_jpeg_within_the_limits() {
        assert_eq!(loaded(&encoded(4000, 10, ImageFormat::Png)).await, Ok(("image/jpeg".into(), 2000, 5)));
        let mut noise = 1_u32;
        let picture = RgbImage::from_fn(1500, 1500, |_, _| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            image::Rgb(noise.to_be_bytes()[..3].try_into().unwrap())
        });
        let mut png = Cursor::new(Vec::new());
        picture.write_to(&mut png, ImageFormat::Png).unwrap();
        let (mime, width, _) = loaded(&png.into_inner()).await.unwrap();
        assert_eq!((mime.as_str(), width), ("image/jpeg", 1500));
    }

    #[tokio::test]
    async fn a_broken_image_is_left_out_with_a_reason() {
        let why = loaded(b"\x89PNG\r\n\x1a\n and then nothing of the kind").await.unwrap_err();
        assert!(why.starts_with("[read:x] The image is left out: "), "{why}");
    }

    #[tokio::test]
    async fn a_gigantic_image_is_refused_by_its_header() {
        for (width, height) in
            [(24_000, 24_000), (30_000_001, 1), (1, 30_000_001), (u32::MAX >> 1, u32::MAX >> 1)]
        {
            let why = loaded(&claimed(width, height)).await.unwrap_err();
            assert!(why.starts_with("[read:x] The image is left out: "), "{why}");
            assert!(why.contains("too large to decode") || why.contains("limit"), "{why}");
        }
        // As large as may be: now the decoder finds that nothing is in it.
        let why = loaded(&claimed(6000, 5000)).await.unwrap_err();
        assert!(!why.contains("too large"), "{why}");
    }

    #[tokio::test]
    async fn a_cancelled_run_does_not_wait_for_its_picture() {
        let (cancel, png) = (CancellationToken::new(), encoded(2001, 10, ImageFormat::Png));
        // Another picture is being decoded and does not end.
        let turn = TURNS.acquire().await.unwrap();
        let waiting = load(file(&png), Format::Png, "x".into(), cancel.clone());
        let stop = async { cancel.cancel() };
        let (stopped, ()) = tokio::join!(waiting, stop);
        assert!(matches!(stopped, Err(ToolError::Aborted)), "{stopped:?}");
        drop(turn);
    }
}
