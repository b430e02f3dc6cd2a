//! Images for a model: recognised by their first bytes, made small enough to send (spec `tools.md` §1, `agent-runtime.md` §9.2).
//!
//! The size claimed by a header is checked before anything is decoded, and only one picture is
//! decoded at a time, because a small file can claim a gigantic picture.

mod format;
#[cfg(test)]
pub(crate) mod samples;

use std::io::{BufReader, Read, Seek, SeekFrom};

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use format::{Format, HEAD};

/// Bytes before base64 (spec `tools.md` §1).
pub const MAX_BYTES: usize = 5 * 1024 * 1024;
/// A file above this is not decoded.
pub(crate) const MAX_FILE: u64 = 64 * 1024 * 1024;
/// Pixels a side (spec `tools.md` §1).
const MAX_SIDE: u32 = 2000;
/// Sides that are tried, largest first; [`MAX_SIDE`] or the image's own side goes before them.
const SIDES: [u32; 6] = [1800, 1600, 1400, 1200, 1000, 800];
/// JPEG qualities tried for each side.
const QUALITIES: [u8; 6] = [85, 75, 65, 55, 45, 35];
/// A picture above this is not decoded. Progressive JPEG takes nine bytes a pixel.
const MAX_PIXELS: u64 = 30_000_000;
/// Nor one that takes more bytes decoded.
const MAX_DECODED: u64 = 128 * 1024 * 1024;
/// Pixels a side of what is scaled with care.
const SCALED_SIDE: u32 = 3000;
/// Pictures decoded at the same time, over all sessions.
static TURNS: Semaphore = Semaphore::const_new(1);

/// Reason why a picture can't be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// The run was stopped: nobody waits for the picture.
    #[error("stopped")]
    Stopped,
    /// Too large to decode, and so to be made smaller; somebody else has to do that.
    #[error("Image is too large to decode ({width}x{height}; at most {} megapixels)", MAX_PIXELS / 1_000_000)]
    TooManyPixels {
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
    },
    /// The picture has this many bytes and could not be made smaller.
    #[error("Image could not be reduced below 5MB (got {:.2}MB)", megabytes(*.0))]
    TooManyBytes(u64),
    /// Another format than those that models take.
    #[error("models take PNG, JPEG, GIF and WebP, not {0}")]
    NotTaken(String),
    /// The image is broken, or of a format that is not read here; with the reader's words.
    #[error("{0}")]
    Unreadable(String),
}

impl From<std::io::Error> for PictureError {
    fn from(error: std::io::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl From<image::ImageError> for PictureError {
    fn from(error: image::ImageError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// Returns true if a picture can be sent unchanged. Reads no more than its header, and goes back to
/// the beginning.
///
/// # Errors
/// Returns an error if the picture is broken or if the size in its header is refused.
pub fn fits(source: &mut (impl Read + Seek)) -> Result<bool, PictureError> {
    fits_below(source, MAX_BYTES)
}

/// Does the same as [`fits`] with a limit in bytes, which is [`MAX_BYTES`] at most.
///
/// # Errors
/// As [`fits`].
pub fn fits_below(source: &mut (impl Read + Seek), max_bytes: usize) -> Result<bool, PictureError> {
    let length = source.seek(SeekFrom::End(0))?;
    source.rewind()?;
    if length > MAX_FILE {
        return Err(PictureError::TooManyBytes(length));
    }
    let (width, height) = reader(&mut *source)?.into_dimensions()?;
    source.rewind()?;
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(PictureError::TooManyPixels { width, height });
    }
    Ok(width.max(height) <= MAX_SIDE && length <= max_bytes.min(MAX_BYTES) as u64)
}

/// The picture as a JPEG that is small enough; the same for the same picture. Takes up to seconds: to be called
/// [`in_turn`], for what may be decoded as [`fits`] says.
///
/// # Errors
/// Returns an error if the picture is broken, if it does not get small enough, or if the run is
/// stopped.
pub fn shrink(source: impl Read + Seek, cancel: &CancellationToken) -> Result<Vec<u8>, PictureError> {
    shrink_below(source, MAX_BYTES, cancel)
}

/// Does the same as [`shrink`] with a limit in bytes, which is [`MAX_BYTES`] at most.
///
/// # Errors
/// As [`shrink`].
pub fn shrink_below(
    source: impl Read + Seek,
    max_bytes: usize,
    cancel: &CancellationToken,
) -> Result<Vec<u8>, PictureError> {
    going_on(cancel)?;
    encode(&decode(source)?, max_bytes.min(MAX_BYTES), cancel)
}

/// Does work on a picture on the blocking pool, one picture at a time over all sessions.
///
/// # Errors
/// [`PictureError::Stopped`] as soon as the run is cancelled; what the work fails with.
pub async fn in_turn<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<T, PictureError> + Send + 'static,
) -> Result<T, PictureError> {
    let stop = cancel.clone();
    let worked = async {
        let turn = TURNS.acquire().await;
        let work = move || {
            // Kept until the thread is done, also when nobody waits for it any more.
            let _turn = turn;
            going_on(&stop)?;
            work(&stop)
        };
        tokio::task::spawn_blocking(work).await
    };
    tokio::select! { biased;
        () = cancel.cancelled() => Err(PictureError::Stopped),
        worked = worked => worked.unwrap_or_else(|error| {
            Err(PictureError::Unreadable(format!("the image's decoder stopped: {error}")))
        }),
    }
}

fn going_on(cancel: &CancellationToken) -> Result<(), PictureError> {
    if cancel.is_cancelled() { Err(PictureError::Stopped) } else { Ok(()) }
}

/// The sides that are tried for a picture whose longer side is `own`.
fn sides(own: u32) -> impl Iterator<Item = u32> {
    let first = own.min(MAX_SIDE);
    std::iter::once(first).chain(SIDES.into_iter().filter(move |side| *side < first))
}

/// The first of the sides and qualities that takes no more than `max_bytes`.
fn encode(
    picture: &DynamicImage,
    max_bytes: usize,
    cancel: &CancellationToken,
) -> Result<Vec<u8>, PictureError> {
    let own = picture.width().max(picture.height());
    let mut smallest = u64::MAX;
    for side in sides(own) {
        going_on(cancel)?;
        let scaled = (own > side).then(|| picture.resize(side, side, FilterType::CatmullRom));
        let scaled = scaled.as_ref().unwrap_or(picture);
        for quality in QUALITIES {
            going_on(cancel)?;
            let mut out = Vec::new();
            JpegEncoder::new_with_quality(&mut out, quality).encode_image(scaled)?;
            if out.len() <= max_bytes {
                return Ok(out);
            }
            smallest = smallest.min(out.len() as u64);
        }
    }
    Err(PictureError::TooManyBytes(smallest))
}

#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn reader<R: Read + Seek>(source: R) -> Result<ImageReader<BufReader<R>>, PictureError> {
    let mut reader = ImageReader::new(BufReader::new(source)).with_guessed_format()?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    Ok(reader)
}

/// Decodes, turned the way the camera was held: the JPEG we write carries no such note. Of a large picture only a smaller
/// one is kept: scaling well takes several times the memory of what is scaled.
fn decode(source: impl Read + Seek) -> Result<DynamicImage, PictureError> {
    let mut decoder = reader(source)?.into_decoder()?;
    if decoder.total_bytes() > MAX_DECODED {
        let bytes = decoder.total_bytes();
        return Err(PictureError::Unreadable(format!("Image is too large to decode ({bytes} bytes)")));
    }
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
    if picture.width().max(picture.height()) > SCALED_SIDE {
        picture = picture.thumbnail(SCALED_SIDE, SCALED_SIDE);
    }
    let mut picture = DynamicImage::ImageRgb8(picture.into_rgb8());
    picture.apply_orientation(orientation);
    Ok(picture)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::ImageFormat;

    use super::samples::{claimed, encoded, noise};
    use super::*;

    fn go() -> CancellationToken {
        CancellationToken::new()
    }

    fn dimensions(bytes: &[u8]) -> (u32, u32) {
        reader(Cursor::new(bytes)).unwrap().into_dimensions().unwrap()
    }

    #[test]
    fn smaller_sides_are_tried_in_turn_from_the_pictures_own() {
        let rows: [(u32, &[u32]); 6] = [
            (60_000, &[2000, 1800, 1600, 1400, 1200, 1000, 800]),
            (2000, &[2000, 1800, 1600, 1400, 1200, 1000, 800]),
            (1900, &[1900, 1800, 1600, 1400, 1200, 1000, 800]),
            (1800, &[1800, 1600, 1400, 1200, 1000, 800]),
            (900, &[900, 800]),
            (10, &[10]),
        ];
        for (own, expect) in rows {
            assert_eq!(sides(own).collect::<Vec<_>>(), expect, "{own}");
        }
    }

    /// Every side with every quality, and the limit that just lets it through.
    #[test]
    fn the_first_side_and_quality_under_the_limit_is_taken() {
        let picture = DynamicImage::ImageRgb8(noise(1100, 40));
        let mut tried: Vec<Vec<u8>> = Vec::new();
        for side in [1100, 1000, 800] {
            let scaled = if side == 1100 {
                picture.clone()
            } else {
                picture.resize(side, side, FilterType::CatmullRom)
            };
            for quality in [85, 75, 65, 55, 45, 35] {
                let mut out = Vec::new();
                JpegEncoder::new_with_quality(&mut out, quality).encode_image(&scaled).unwrap();
                tried.push(out);
            }
        }
        for max in tried.iter().map(Vec::len) {
            let expect = tried.iter().find(|out| out.len() <= max).unwrap();
            assert!(encode(&picture, max, &go()).as_ref() == Ok(expect), "{max}");
        }
        let smallest = tried.iter().map(Vec::len).min().unwrap();
        let error = encode(&picture, smallest - 1, &go()).unwrap_err();
        assert_eq!(error, PictureError::TooManyBytes(smallest as u64));
        assert_eq!(
            PictureError::TooManyBytes(5_500_000).to_string(),
            "Image could not be reduced below 5MB (got 5.25MB)"
        );
    }

    #[test]
    fn the_header_tells_whether_a_picture_fits() {
        let rows = [
            (encoded(2000, 10, ImageFormat::Png), Ok(true)),
            (encoded(10, 2001, ImageFormat::Png), Ok(false)),
            (encoded(2001, 10, ImageFormat::Jpeg), Ok(false)),
            (encoded(2001, 10, ImageFormat::Gif), Ok(false)),
            (encoded(2001, 10, ImageFormat::WebP), Ok(false)),
            (claimed(5000, 6000), Ok(false)),
            (claimed(6001, 5000), Err(PictureError::TooManyPixels { width: 6001, height: 5000 })),
            (claimed(60_000, 60_000), Err(PictureError::TooManyPixels { width: 60_000, height: 60_000 })),
        ];
        for (bytes, expect) in rows {
            let mut source = Cursor::new(bytes);
            assert_eq!(fits(&mut source), expect);
        }
        let mut long = encoded(10, 10, ImageFormat::Png);
        long.resize(MAX_BYTES, 0);
        assert_eq!(fits(&mut Cursor::new(long.clone())), Ok(true));
        long.push(0);
        assert_eq!(fits(&mut Cursor::new(long)), Ok(false));
    }

    #[test]
    fn what_is_too_large_becomes_a_jpeg_and_always_the_same() {
        for (bytes, expect) in [
            (encoded(4000, 10, ImageFormat::Png), (2000, 5)),
            (encoded(10, 3000, ImageFormat::WebP), (7, 2000)),
            (encoded(2500, 25, ImageFormat::Gif), (2000, 20)),
        ] {
            let small = shrink(Cursor::new(&bytes), &go()).unwrap();
            assert_eq!((Format::of(&small), dimensions(&small)), (Some(Format::Jpeg), expect));
            assert!(shrink(Cursor::new(&bytes), &go()) == Ok(small));
        }
    }

    #[test]
    fn what_is_broken_is_an_error() {
        for bytes in
            [&b""[..], b"words", b"\x89PNG\r\n\x1a\n and then nothing of the kind", &claimed(6000, 5000)]
        {
            let error = shrink(Cursor::new(bytes), &go()).unwrap_err();
            assert!(matches!(error, PictureError::Unreadable(_)), "{error:?}");
        }
    }

    #[tokio::test]
    async fn a_stopped_run_waits_neither_for_its_turn_nor_for_its_picture() {
        let (cancel, (begun, beginning)) = (go(), std::sync::mpsc::channel());
        let (done, finish) = std::sync::mpsc::channel::<()>();
        let decoding = in_turn(&cancel, move |stop| {
            begun.send(()).unwrap();
            finish.recv().unwrap();
            going_on(stop)
        });
        let waiting = in_turn(&cancel, |_| -> Result<(), PictureError> { panic!("it is not its turn") });
        let stop = async {
            tokio::task::spawn_blocking(move || beginning.recv().unwrap()).await.unwrap();
            cancel.cancel();
        };
        let (first, second, ()) = tokio::join!(decoding, waiting, stop);
        assert_eq!((first, second), (Err(PictureError::Stopped), Err(PictureError::Stopped)));
        assert_eq!(TURNS.available_permits(), 0, "the thread is still at work");
        done.send(()).unwrap();
        // The turn passes on.
        assert_eq!(in_turn(&go(), |_| Ok(5)).await, Ok(5));
    }

    #[tokio::test]
    async fn a_decoder_that_panics_is_an_error() {
        let error = in_turn(&go(), |_| -> Result<(), PictureError> { panic!("index out of bounds") }).await;
        assert!(matches!(error, Err(PictureError::Unreadable(_))), "{error:?}");
    }
}
