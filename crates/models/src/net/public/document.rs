//! A document on its way: how much of it is read, and how it is unpacked.

use std::io::{self, Write};
use std::time::Duration;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use url::Url;

use super::{Compression, FetchOptions, Overflow, WebError, failed};

/// A document on its way.
#[derive(Debug)]
pub struct Document {
    /// Final address, after redirects.
    pub url: Url,
    /// Status of the answer.
    pub status: u16,
    /// Content type, as the server states it.
    pub content_type: Option<String>,
    /// File name, as the server states it.
    pub name: Option<String>,
    response: reqwest::Response,
    unpacker: Unpacker,
    left: u64,
    limit: u64,
    overflow: Overflow,
    idle: Duration,
    is_cut: bool,
    is_over: bool,
}

impl Document {
    pub(super) fn open(
        url: Url,
        response: reqwest::Response,
        options: &FetchOptions,
    ) -> Result<Self, WebError> {
        let header = |name: HeaderName| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let announced = header(CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        if options.overflow == Overflow::Refuse && announced.is_some_and(|length| length > options.max_bytes)
        {
            return Err(WebError::TooLarge(options.max_bytes));
        }
        let encoding = header(CONTENT_ENCODING).unwrap_or_default().trim().to_ascii_lowercase();
        let unpacker = match (options.compression, encoding.as_str()) {
            (Compression::None, _) | (Compression::Gzip, "" | "identity") => Unpacker::Plain,
            (Compression::Gzip, "gzip" | "x-gzip") => {
                Unpacker::Gzip(Box::new(MultiGzDecoder::new(Bounded::default())))
            }
            (Compression::Gzip, _) => return Err(WebError::Encoding(encoding)),
        };
        Ok(Self {
            status: response.status().as_u16(),
            content_type: header(CONTENT_TYPE),
            name: header(CONTENT_DISPOSITION).as_deref().and_then(file_name),
            url,
            response,
            unpacker,
            left: options.max_bytes,
            limit: options.max_bytes,
            overflow: options.overflow,
            idle: options.idle,
            is_cut: false,
            is_over: false,
        })
    }

    /// The next piece of it; `None` at its end.
    ///
    /// # Errors
    /// [`WebError`]: the network, or it is too large after all.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, WebError> {
        while !self.is_over {
            let next = tokio::time::timeout(self.idle, self.response.chunk()).await;
            let next = next.map_err(|_| WebError::silent(self.idle))?.map_err(|error| failed(&error))?;
            let (bytes, is_all) = match next {
                Some(packed) => self.unpacker.unpack(&packed, self.left)?,
                None => {
                    self.is_over = true;
                    self.unpacker.rest(self.left)?
                }
            };
            if !is_all {
                if self.overflow == Overflow::Refuse {
                    return Err(WebError::TooLarge(self.limit));
                }
                self.is_over = true;
                self.is_cut = true;
            }
            self.left = self.left.saturating_sub(bytes.len() as u64);
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// All of it, or what [`Overflow`] leaves.
    ///
    /// # Errors
    /// As [`Document::chunk`].
    pub async fn whole(&mut self) -> Result<Vec<u8>, WebError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }

    /// Returns true if the document was longer than what was read ([`Overflow::Cut`]).
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// The name in `attachment; filename="a.png"`.
fn file_name(disposition: &str) -> Option<String> {
    let (_, value) = disposition.split_once("filename=")?;
    let value = value.split(';').next()?.trim().trim_matches('"').trim();
    Some(value.to_owned()).filter(|name| !name.is_empty())
}

/// Decompressor that never makes more bytes than there is room for: a small answer may unpack to
/// gigabytes.
#[derive(Debug)]
enum Unpacker {
    Plain,
    Gzip(Box<MultiGzDecoder<Bounded>>),
}

impl Unpacker {
    /// Unpacks at most `room` bytes; returns them, and true if that was all.
    fn unpack(&mut self, packed: &Bytes, room: u64) -> Result<(Bytes, bool), WebError> {
        match self {
            Self::Plain => {
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                Ok((packed.slice(..packed.len().min(room)), packed.len() <= room))
            }
            Self::Gzip(decoder) => {
                decoder.get_mut().room = room;
                let written = decoder.write_all(packed).and_then(|()| decoder.flush());
                decoder.get_mut().taken(&written)
            }
        }
    }

    /// Returns the rest of the data after the last byte was received.
    fn rest(&mut self, room: u64) -> Result<(Bytes, bool), WebError> {
        match self {
            Self::Plain => Ok((Bytes::new(), true)),
            Self::Gzip(decoder) => {
                decoder.get_mut().room = room;
                let finished = decoder.try_finish();
                decoder.get_mut().taken(&finished)
            }
        }
    }
}

/// Takes as many bytes as there is room for and refuses the next.
#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
    room: u64,
    is_full: bool,
}

impl Bounded {
    fn taken(&mut self, result: &io::Result<()>) -> Result<(Bytes, bool), WebError> {
        match result {
            Err(_) if !self.is_full => Err(WebError::Damaged),
            Ok(()) | Err(_) => Ok((std::mem::take(&mut self.bytes).into(), !self.is_full)),
        }
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = usize::try_from(self.room).unwrap_or(usize::MAX).min(bytes.len());
        if fits == 0 && !bytes.is_empty() {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend(bytes.iter().take(fits));
        self.room = self.room.saturating_sub(fits as u64);
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
