//! Gets the picture that was named, wherever it is.

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use openclaw_agent::picture::{Format, HEAD, PictureError};
use openclaw_agent::place::PlaceError;
use openclaw_agent::place::off_limits::Purpose;
use openclaw_agent::{ToolContext, ToolError};
use openclaw_models::net::public::{self, FetchOptions};
use tokio_util::sync::CancellationToken;

use super::FACTS;
use super::reference::{Reference, decode};
use crate::blocking::blocking;
use crate::path::Confinement;
use crate::path::{Resolver, refused};
use crate::picture::{Encoded, encoded};
use crate::setup::Setup;
use crate::web;

/// Bytes of a file of the web that are read.
const MAX_DOWNLOAD: u64 = 20 * 1024 * 1024;
/// Directory of a sandbox for files that came with messages.
const INBOUND: &str = "media/inbound";
const NO_WEB: &str = "Sandboxed image tool does not allow remote URLs.";

/// Gets pictures for one call.
pub(super) struct Loader<'a> {
    pub(super) setup: &'a Setup,
    pub(super) context: &'a ToolContext,
    /// Limit in bytes; a larger picture is made smaller.
    pub(super) max_bytes: usize,
}

/// A picture, small enough to be sent.
#[derive(Debug)]
pub(super) struct LoadedImage {
    pub(super) picture: Encoded,
    /// Name of the picture for the answer.
    pub(super) name: String,
    /// The path that was named, where another one was taken.
    pub(super) rewritten_from: Option<String>,
}

impl Loader<'_> {
    pub(super) async fn load(&self, reference: &Reference) -> Result<LoadedImage, ToolError> {
        let is_held = self.setup.confinement != Confinement::Host;
        let as_named = |picture| LoadedImage { picture, name: reference.shown(), rewritten_from: None };
        match reference {
            Reference::Web(_) if is_held => Err(ToolError::Failed(NO_WEB.to_owned())),
            Reference::Web(address) => {
                self.shown(Cursor::new(self.download(address).await?)).await.map(as_named)
            }
            Reference::Data(url) => self.shown(Cursor::new(decode(url)?)).await.map(as_named),
            Reference::Path(path) => {
                let (resolver, path, inbound) =
                    (self.setup.resolver(self.context), path.clone(), is_held.then(|| inbound(reference)));
                let (file, name, rewritten_from) = blocking(move || {
                    let (file, rewritten_from) = open(&resolver, &path, inbound.clone())?;
                    let name = inbound.filter(|_| rewritten_from.is_some());
                    let name = name.unwrap_or_else(|| resolver.name_of_existing(&path));
                    Ok((file, name, rewritten_from))
                })
                .await?;
                Ok(LoadedImage { picture: self.shown(file).await?, name, rewritten_from })
            }
        }
    }

    /// Downloads from the public web only, as `web_fetch` takes pages.
    async fn download(&self, address: &str) -> Result<Vec<u8>, ToolError> {
        let settings = &self.setup.web.config.fetch;
        let timeout = web::timeout(settings.timeout_seconds);
        let options = FetchOptions {
            user_agent: settings.user_agent.clone(),
            idle: timeout,
            ..FetchOptions::file(MAX_DOWNLOAD, &self.setup.web.allowed_hosts)
        };
        let downloaded =
            tokio::time::timeout(timeout, async { public::fetch(address, &options).await?.whole().await });
        let failed = |why: String| ToolError::Failed(format!("The image could not be fetched: {why}"));
        match downloaded.await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) if error.is_refusal() => Err(ToolError::Failed(error.to_string())),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed(format!("not all of it came within {} s", timeout.as_secs()))),
        }
    }

    async fn shown(&self, source: impl Read + Seek + Send + 'static) -> Result<Encoded, ToolError> {
        shown(source, self.max_bytes, &self.context.cancel).await
    }
}

/// The picture as it is sent.
pub(crate) async fn shown(
    mut source: impl Read + Seek + Send + 'static,
    max_bytes: usize,
    cancel: &CancellationToken,
) -> Result<Encoded, ToolError> {
    let (head, source) = blocking(move || {
        let mut head = Vec::with_capacity(HEAD);
        let unreadable = |error: std::io::Error| ToolError::Failed(format!("image: {error}"));
        source.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(unreadable)?;
        source.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        Ok((head, source))
    })
    .await?;
    let format = Format::of(&head).ok_or_else(|| ToolError::Failed(no_image(&head)))?;
    encoded(source, format, max_bytes, cancel).await?.map_err(|error| match error {
        PictureError::Stopped => ToolError::Aborted,
        error => ToolError::Failed(error.to_string()),
    })
}

/// The path below [`INBOUND`] of a file of the same name.
fn inbound(reference: &Reference) -> String {
    in_inbound(&reference.shown())
}

/// Returns the path below [`INBOUND`] of a file with this path.
pub(crate) fn in_inbound(path: &str) -> String {
    let path = path.trim_start_matches('@').trim_start();
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    format!("{INBOUND}/{name}")
}

/// The file, or in a sandbox the one of that name that came with a message.
pub(crate) fn open(
    resolver: &Resolver,
    path: &str,
    inbound: Option<String>,
) -> Result<(std::fs::File, Option<String>), ToolError> {
    let opened = |path: &str| resolver.existing(path, Purpose::Read).and_then(|place| place.open());
    let error = match opened(path) {
        Ok(file) => return Ok((file, None)),
        Err(error) => error,
    };
    let is_elsewhere = error.is_not_found() || matches!(error, PlaceError::Escapes { .. });
    match inbound.filter(|_| is_elsewhere).and_then(|inbound| opened(&inbound).ok()) {
        Some(file) => Ok((file, Some(path.to_owned()))),
        None => Err(refused(FACTS.name, path, &error)),
    }
}

/// Kinds of files that are no pictures, or none that models take, by their first bytes.
const KINDS: &[(&[u8], &str)] = &[
    (b"%PDF", "document (PDF)"),
    (b"PK\x03\x04", "archive or office document"),
    (b"ID3", "audio"),
    (b"OggS", "audio"),
    (b"RIFF", "audio or video"),
    (b"BM", "image (BMP)"),
    (b"II*\0", "image (TIFF)"),
    (b"MM\0*", "image (TIFF)"),
    (b"<svg", "image (SVG)"),
];
/// Position at which a file of the MPEG-4 family names its brand.
const BRAND: std::ops::Range<usize> = 4..12;

/// Returns the message to the model about a file that is not a picture.
fn no_image(head: &[u8]) -> String {
    let brand = head.get(BRAND).unwrap_or_default();
    let kind = match brand.strip_prefix(b"ftyp") {
        Some(b"heic" | b"heix" | b"mif1" | b"msf1") => "image (HEIC)",
        Some(b"avif") => "image (AVIF)",
        Some(_) => "video",
        None if head.is_empty() => "empty file",
        None => KINDS.iter().find(|(magic, _)| head.starts_with(magic)).map_or("unknown", |(_, kind)| *kind),
    };
    format!("Unsupported media type: {kind}. PNG, JPEG, GIF and WebP images can be looked at.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_image_is_called_by_its_kind() {
        let rows: [(&[u8], &str); 7] = [
            (b"%PDF-1.7", "document (PDF)"),
            (b"PK\x03\x04....", "archive or office document"),
            (b"\0\0\0\x18ftypheic", "image (HEIC)"),
            (b"\0\0\0\x18ftypisom", "video"),
            (b"RIFF....WAVE", "audio or video"),
            (b"", "empty file"),
            (b"hello", "unknown"),
        ];
        for (head, kind) in rows {
            let expect =
                format!("Unsupported media type: {kind}. PNG, JPEG, GIF and WebP images can be looked at.");
            assert_eq!(no_image(head), expect);
        }
    }
}
