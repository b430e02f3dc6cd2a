//! Fetches files of messages.

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_channels::{FetchError, Fetched, MediaRef};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::bot::Bot;
use crate::failure::{ApiRefusal, BotApiError};
use crate::wire::Wire as _;

/// Time for which a download may bring no data.
const SILENCE: Duration = Duration::from_secs(30);
/// Slowest file that is waited for, in bytes a second.
const SPEED: u64 = 100_000;
/// Bytes that tell what a file is.
const HEAD: usize = 4096;
const UNKNOWN: &str = "application/octet-stream";

/// Fetches a file into a directory, under a new name with the ending of its type.
pub(super) async fn fetch(bot: &Bot, media: &MediaRef, to: &Path, limit: u64) -> Result<Fetched, FetchError> {
    let limit = limit.min(bot.settings.fetch_limit());
    let too_large = |size| Err(FetchError::TooLarge { size, limit });
    if let Some(size) = media.size.filter(|size| *size > limit) {
        return too_large(size);
    }
    let file = bot.call("getFile", &json!({"file_id": media.handle})).await;
    let file = file.map_err(|error| failed(&error, media, limit))?;
    let size = file.int("file_size").and_then(|size| u64::try_from(size).ok());
    if let Some(size) = size.filter(|size| *size > limit) {
        return too_large(size);
    }
    let Some(path) = file.text("file_path") else { return Err(FetchError::Gone) };
    let response = bot.client.download(path).await.map_err(|error| failed(&error, media, limit))?;
    if let Some(size) = response.content_length().filter(|size| *size > limit) {
        return too_large(size);
    }
    let unfinished = Unfinished::new(to);
    let saving = save(response, &unfinished.path, limit);
    let patience = SILENCE + Duration::from_secs(limit / SPEED);
    let saved = timeout(patience, saving).await;
    let (head, size) =
        saved.unwrap_or_else(|_| Err(FetchError::Failed("the file comes too slowly".to_owned())))?;
    let (mime, ending) = kind(&head, media);
    let path = unfinished.keep(&ending).await.map_err(|error| FetchError::Failed(error.to_string()))?;
    Ok(Fetched { path, mime, size })
}

/// Writes a body to a file; the beginning of it, and its length.
async fn save(
    mut response: reqwest::Response,
    path: &Path,
    limit: u64,
) -> Result<(Vec<u8>, u64), FetchError> {
    let disk = |error: std::io::Error| FetchError::Failed(format!("the file can't be written: {error}"));
    let mut options = tokio::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).await.map_err(disk)?;
    let (mut head, mut size) = (Vec::new(), 0_u64);
    loop {
        let chunk = timeout(SILENCE, response.chunk()).await;
        let chunk = chunk.map_err(|_| FetchError::Failed("the file stopped coming".to_owned()))?;
        // Without the address, which holds the token.
        let chunk = chunk.map_err(|error| FetchError::Failed(error.without_url().to_string()))?;
        let Some(chunk) = chunk else { break };
        size += chunk.len() as u64;
        if size > limit {
            return Err(FetchError::TooLarge { size, limit });
        }
        let room = HEAD.saturating_sub(head.len());
        head.extend(chunk.iter().take(room));
        file.write_all(&chunk).await.map_err(disk)?;
    }
    file.flush().await.map_err(disk)?;
    // The message that names it is synced.
    file.sync_all().await.map_err(disk)?;
    Ok((head, size))
}

/// Returns the kind and type of a file; its content takes precedence over what the sender states.
fn kind(head: &[u8], media: &MediaRef) -> (String, String) {
    if let Some(kind) = infer::get(head) {
        return (kind.mime_type().to_owned(), kind.extension().to_owned());
    }
    let named = media.name.as_deref().and_then(|name| Path::new(name).extension()?.to_str());
    let is_plain = |ending: &&str| ending.len() <= 10 && ending.chars().all(|c| c.is_ascii_alphanumeric());
    let ending = named.filter(is_plain).unwrap_or("bin").to_ascii_lowercase();
    (media.mime.clone().unwrap_or_else(|| UNKNOWN.to_owned()), ending)
}

fn failed(error: &BotApiError, media: &MediaRef, limit: u64) -> FetchError {
    match error.refusal() {
        Some(ApiRefusal::FileSize) => FetchError::TooLarge { size: media.size.unwrap_or(limit + 1), limit },
        Some(ApiRefusal::NoFile) => FetchError::Gone,
        Some(_) | None => FetchError::Failed(error.to_string()),
    }
}

/// A file that is gone again unless it is kept.
struct Unfinished {
    path: PathBuf,
    name: PathBuf,
}

impl Unfinished {
    fn new(dir: &Path) -> Self {
        let name = dir.join(uuid::Uuid::new_v4().to_string());
        Self { path: name.with_extension("part"), name }
    }

    async fn keep(self, ending: &str) -> std::io::Result<PathBuf> {
        let path = self.name.with_extension(ending);
        tokio::fs::rename(&self.path, &path).await?;
        if let Some(dir) = path.parent() {
            tokio::fs::File::open(dir).await?.sync_all().await?;
        }
        Ok(path)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Kept, it is not there under this name any more.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw_channels::MediaKind;

    #[test]
    fn the_content_says_what_a_file_is() {
        let media = |name: &str, mime: Option<&str>| MediaRef {
            kind: MediaKind::Document,
            handle: "h".to_owned(),
            mime: mime.map(str::to_owned),
            name: Some(name.to_owned()),
            size: None,
            description: None,
        };
        let png = [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0];
        let rows: [(&[u8], _, (&str, &str)); 4] = [
            (&png, media("a.exe", Some("application/zip")), ("image/png", "png")),
            (b"hello", media("notes.TXT", Some("text/plain")), ("text/plain", "txt")),
            (b"hello", media("../../etc/x.s h", None), (UNKNOWN, "bin")),
            (b"", media("none", None), (UNKNOWN, "bin")),
        ];
        for (head, media, (mime, ending)) in rows {
            assert_eq!(kind(head, &media), (mime.to_owned(), ending.to_owned()), "{media:?}");
        }
    }
}
