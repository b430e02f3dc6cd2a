//! Finds images that are too large, decoding no more than necessary, and builds their replacements.

use std::borrow::Cow;
use std::io::Cursor;

use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use openclaw_protocol::message::ImageBlock;
use openclaw_protocol::printable::one_line;
use tokio_util::sync::CancellationToken;

use crate::picture::{self, Format, MAX_BYTES, MAX_FILE, PictureError};

/// Characters of base64 that are decoded to look at a header; whole groups of four. Nearly every header is shorter, and this takes
/// some ten microseconds.
const HEADER_CHARS: usize = 32 * 1024;

/// Programs differ in whether they pad.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Returns true if the header of an image shows that it can be sent unchanged. Otherwise [`shrunk`]
/// has to tell.
pub(super) fn plainly_fits(image: &ImageBlock) -> bool {
    let data = image.data.trim_ascii();
    // Images without bytes are reported when the conversation is adapted to a model.
    if data.is_empty() {
        return true;
    }
    if bytes_of(data) > MAX_BYTES {
        return false;
    }
    let head = data.as_bytes().get(..HEADER_CHARS).unwrap_or(data.as_bytes());
    let Ok(head) = LENIENT.decode(head) else { return false };
    match Format::of(&head) {
        Some(_) => picture::fits(&mut Cursor::new(head)).unwrap_or(false),
        // What models do not take breaks every request.
        None => false,
    }
}

/// The image as it is sent; `None` where it can be sent as it is. Takes long.
pub(super) fn shrunk(
    image: &ImageBlock,
    cancel: &CancellationToken,
) -> Result<Option<ImageBlock>, PictureError> {
    let data = image.data.trim_ascii();
    let bytes = bytes_of(data);
    if bytes as u64 > MAX_FILE {
        return Err(PictureError::TooManyBytes(bytes as u64));
    }
    let bytes = LENIENT
        .decode(&*without_breaks(data))
        .map_err(|error| PictureError::Unreadable(format!("invalid base64: {error}")))?;
    if Format::of(&bytes).is_none() && Format::named(&image.mime_type).is_none() {
        return Err(PictureError::NotTaken(one_line(&image.mime_type).into_owned()));
    }
    let mut source = Cursor::new(bytes);
    if picture::fits(&mut source)? {
        return Ok(None);
    }
    let smaller = picture::shrink(source, cancel)?;
    Ok(Some(ImageBlock {
        data: STANDARD.encode(smaller),
        mime_type: Format::Jpeg.mime().to_owned(),
        extra: image.extra.clone(),
    }))
}

/// Returns the number of bytes that a base64 text decodes to.
fn bytes_of(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

/// Some programs write base64 in lines.
fn without_breaks(data: &str) -> Cow<'_, str> {
    if data.bytes().any(|byte| byte.is_ascii_whitespace()) {
        Cow::Owned(data.split_ascii_whitespace().collect())
    } else {
        Cow::Borrowed(data)
    }
}
