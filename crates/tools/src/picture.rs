//! An image as a model is shown it.

use std::fs::File;
use std::io::{Read, Seek};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openclaw_agent::ToolError;
use openclaw_agent::picture::{self, Format, MAX_BYTES, PictureError};
use openclaw_protocol::message::{Block, ImageBlock};
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;

/// The file as an image block, or a text that says why it is left out.
///
/// # Errors
/// [`ToolError::Aborted`] as soon as the run is cancelled.
pub(crate) async fn load(
    file: File,
    format: Format,
    label: String,
    cancel: CancellationToken,
) -> Result<Block, ToolError> {
    let loaded = tokio::select! { biased;
        () = cancel.cancelled() => return Err(ToolError::Aborted),
        loaded = encoded(file, format, MAX_BYTES, &cancel) => loaded?,
    };
    let why = match loaded {
        Ok(picture) => return Ok(Block::Image(picture.into_block())),
        Err(PictureError::Stopped) => return Err(ToolError::Aborted),
        Err(error @ PictureError::TooManyPixels { .. }) => {
            format!("{error}. Make a smaller copy and read that.")
        }
        Err(error) => error.to_string(),
    };
    Ok(Block::text(format!("[{label}] omitted image payload: {why}")))
}

/// A picture as it is sent.
#[derive(Debug)]
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    format: Format,
}

impl Encoded {
    /// Bytes before base64.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Converts the picture to the block of a message.
    pub(crate) fn into_block(self) -> ImageBlock {
        ImageBlock {
            data: STANDARD.encode(self.bytes),
            mime_type: self.format.mime().to_owned(),
            ..ImageBlock::default()
        }
    }
}

/// The picture as it is where it fits, or else made smaller.
pub(crate) async fn encoded(
    mut source: impl Read + Seek + Send + 'static,
    format: Format,
    max_bytes: usize,
    cancel: &CancellationToken,
) -> Result<Result<Encoded, PictureError>, ToolError> {
    let (fits, source) = blocking(move || Ok((picture::fits_below(&mut source, max_bytes), source))).await?;
    Ok(match fits {
        Ok(true) => blocking(move || Ok(whole(source))).await?.map(|bytes| Encoded { bytes, format }),
        Ok(false) => picture::in_turn(cancel, move |stop| picture::shrink_below(source, max_bytes, stop))
            .await
            .map(|bytes| Encoded { bytes, format: Format::Jpeg }),
        Err(why) => Err(why),
    })
}

fn whole(source: impl Read) -> Result<Vec<u8>, PictureError> {
    let mut bytes = Vec::new();
    source.take(MAX_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use image::{ImageFormat, RgbImage};
    use openclaw_agent::picture::HEAD;

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

    fn png(width: u32, height: u32) -> Vec<u8> {
        encoded(width, height, ImageFormat::Png)
    }

    async fn loaded(bytes: &[u8]) -> Block {
        let format = Format::of(&bytes[..HEAD]).unwrap();
        load(file(bytes), format, "read:x".into(), CancellationToken::new()).await.unwrap()
    }

    async fn left_out(bytes: &[u8]) -> String {
        match loaded(bytes).await {
            Block::Text(block) => block.text,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_small_image_is_sent_as_it_is_and_a_large_one_as_a_smaller_jpeg() {
        for (bytes, mime, width) in [(png(40, 20), "image/png", 40), (png(4000, 10), "image/jpeg", 2000)] {
            let Block::Image(block) = loaded(&bytes).await else { panic!("no image") };
            let sent = STANDARD.decode(block.data).unwrap();
            assert_eq!(block.mime_type, mime);
            assert_eq!(sent == bytes, mime == "image/png");
            assert_eq!(image::load_from_memory(&sent).unwrap().width(), width);
        }
    }

    #[tokio::test]
    async fn what_is_broken_or_gigantic_is_left_out_with_a_reason() {
        let why = left_out(b"\x89PNG\r\n\x1a\n and then nothing of the kind").await;
        assert!(why.starts_with("[read:x] omitted image payload: "), "{why}");
        // A GIF's header is not checked against a sum.
        let mut gigantic = encoded(1, 1, ImageFormat::Gif);
        gigantic[6..10].copy_from_slice(&[0x60, 0xea, 0x60, 0xea]);
        assert_eq!(
            left_out(&gigantic).await,
            "[read:x] omitted image payload: Image is too large to decode (60000x60000; at most 30 megapixels). Make a \
             smaller copy and read that."
        );
    }

    #[tokio::test]
    async fn a_cancelled_run_does_not_wait_for_its_picture() {
        let cancel = CancellationToken::new();
        // Another picture is being decoded and does not end before it is told to.
        let (done, finish) = std::sync::mpsc::channel::<()>();
        let (begun, beginning) = tokio::sync::oneshot::channel();
        let other = CancellationToken::new();
        let decoding = picture::in_turn(&other, move |_| {
            begun.send(()).unwrap();
            finish.recv().map_err(|error| PictureError::Unreadable(error.to_string()))
        });
        let waiting = load(file(&png(2001, 10)), Format::Png, "x".into(), cancel.clone());
        let stopped = async {
            beginning.await.unwrap();
            let (stopped, ()) = tokio::join!(waiting, async { cancel.cancel() });
            assert!(matches!(stopped, Err(ToolError::Aborted)), "{stopped:?}");
            done.send(()).unwrap();
        };
        let (decoded, ()) = tokio::join!(decoding, stopped);
        assert_eq!(decoded, Ok(()));
    }
}
