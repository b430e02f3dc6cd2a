//! Images for a model: recognised by their first bytes, made small enough to send (spec `tools.md` §1, §2).

use std::fs::File;
use std::io::{Cursor, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use openclaw_protocol::message::{Block, ImageBlock};

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
/// Memory the decoder may take: a small file can claim a gigantic picture.
const MAX_DECODED: u64 = 512 * 1024 * 1024;

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
pub(super) fn load(file: File, format: Format, label: &str) -> Block {
    match shrink(file, format) {
        Ok((bytes, format)) => Block::Image(ImageBlock {
            data: STANDARD.encode(bytes),
            mime_type: format.mime().to_owned(),
            ..ImageBlock::default()
        }),
        Err(why) => Block::text(format!("[{label}] omitted image payload: Error: {why}")),
    }
}

fn shrink(file: File, format: Format) -> Result<(Vec<u8>, Format), String> {
    let too_big = |bytes: u64| {
        #[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
        let megabytes = bytes as f64 / 1_048_576.0;
        format!("Image could not be reduced below 5MB (got {megabytes:.2}MB)")
    };
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    if length > MAX_FILE {
        return Err(too_big(length));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let (width, height) = dimensions(&bytes)?;
    if width.max(height) <= MAX_SIDE && bytes.len() <= MAX_BYTES {
        return Ok((bytes, format));
    }
    let picture = decode(&bytes)?;
    drop(bytes);
    let own = picture.width().max(picture.height()).min(MAX_SIDE);
    let mut smallest = u64::MAX;
    for side in std::iter::once(own).chain(SIDES.into_iter().filter(|side| *side < own)) {
        let scaled = if picture.width().max(picture.height()) > side {
            picture.resize(side, side, FilterType::CatmullRom)
        } else {
            picture.clone()
        };
        let scaled = scaled.into_rgb8();
        for quality in QUALITIES {
            let mut out = Vec::new();
            JpegEncoder::new_with_quality(&mut out, quality)
                .encode_image(&scaled)
                .map_err(|error| error.to_string())?;
            if out.len() <= MAX_BYTES {
                return Ok((out, Format::Jpeg));
            }
            smallest = smallest.min(out.len() as u64);
        }
    }
    Err(too_big(smallest))
}

fn reader(bytes: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>, String> {
    let mut reader =
        ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|error| error.to_string())?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    Ok(reader)
}

fn dimensions(bytes: &[u8]) -> Result<(u32, u32), String> {
    reader(bytes)?.into_dimensions().map_err(|error| error.to_string())
}

/// Decodes, turned the way the camera was held: the JPEG we write carries no such note.
fn decode(bytes: &[u8]) -> Result<DynamicImage, String> {
    let mut decoder = reader(bytes)?.into_decoder().map_err(|error| error.to_string())?;
    let orientation = decoder.orientation().map_err(|error| error.to_string())?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| error.to_string())?;
    picture.apply_orientation(orientation);
    Ok(picture)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

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

    fn loaded(bytes: &[u8]) -> Result<(String, u32, u32), String> {
        let format = Format::of(&bytes[..HEAD]).unwrap();
        match load(file(bytes), format, "read:x") {
            Block::Image(block) => {
                let (width, height) = dimensions(&STANDARD.decode(block.data).unwrap()).unwrap();
                Ok((block.mime_type, width, height))
            }
            Block::Text(block) => Err(block.text),
            other => panic!("{other:?}"),
        }
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

    #[test]
    fn a_small_image_is_sent_as_it_is() {
        let png = encoded(40, 20, ImageFormat::Png);
        let Block::Image(block) = load(file(&png), Format::Png, "x") else { panic!("no image") };
        assert_eq!((STANDARD.decode(block.data).unwrap(), block.mime_type.as_str()), (png, "image/png"));
    }

    #[test]
    fn a_large_image_becomes_a_jpeg_within_the_limits() {
        assert_eq!(loaded(&encoded(4000, 10, ImageFormat::Png)), Ok(("image/jpeg".into(), 2000, 5)));
        let mut noise = 1_u32;
        let picture = RgbImage::from_fn(1500, 1500, |_, _| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            image::Rgb(noise.to_be_bytes()[..3].try_into().unwrap())
        });
        let mut png = Cursor::new(Vec::new());
        picture.write_to(&mut png, ImageFormat::Png).unwrap();
        let (mime, width, _) = loaded(&png.into_inner()).unwrap();
        assert_eq!((mime.as_str(), width), ("image/jpeg", 1500));
    }

    #[test]
    fn a_broken_image_is_left_out_with_a_reason() {
        let why = loaded(b"\x89PNG\r\n\x1a\n and then nothing of the kind").unwrap_err();
        assert!(why.starts_with("[read:x] omitted image payload: Error: "), "{why}");
    }
}
