//! The files of deliveries: the gateway's own copies, which are kept as long as a row names them (`docs/durability.md`).
//!
//! A file is synced before its row is stored and removed behind the end of the row, so that a crash in between leaves a file without a
//! row, never a row without its file. What a crash leaves is removed by [`Outbox::sweep_files`].

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use openclaw_channels::{Content, Part};

use super::{Outbox, OutboxError};

/// Folder of the copies, below the state directory.
pub const FOLDER: &str = "media/outbound";

/// The file of a part.
pub(super) fn file_of(part: &Part) -> Option<&Path> {
    match &part.content {
        Content::Media { path, .. } => Some(path),
        Content::Text(_) | Content::Poll { .. } | Content::Sticker { .. } => None,
    }
}

impl Outbox {
    /// Sets the directory of copies, which are removed when their rows are over. Called once.
    pub fn keep_files_in(&self, folder: PathBuf) {
        // Only what starts a dispatcher comes here.
        let _ = self.inner.folder.set(folder);
    }

    /// Removes the copies that no delivery names and that have been there for as long as `grace`:
    /// one that was taken just now may have no row yet. Returns their number.
    ///
    /// # Errors
    /// When the database can't be read; then none is removed.
    pub async fn sweep_files(&self, grace: Duration) -> Result<usize, OutboxError> {
        let Some(folder) = self.inner.folder.get().cloned() else { return Ok(0) };
        let look = tokio::task::spawn_blocking(move || copies_in(&folder, grace));
        let found = look.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let copies = match found {
            Ok(copies) => copies,
            Err(error) => {
                tracing::warn!(%error, "files that were sent can't be looked for");
                return Ok(0);
            }
        };
        if copies.is_empty() {
            return Ok(0);
        }
        // Behind the look: a row that is stored meanwhile names a newer file.
        let rows = self.waiting().await?.into_iter().chain(self.failed(u32::MAX).await?);
        let parts = rows.filter_map(|row| row.part);
        let named: HashSet<OsString> =
            parts.filter_map(|part| file_of(&part)?.file_name().map(OsString::from)).collect();
        let unnamed = move |copy: &PathBuf| copy.file_name().is_some_and(|name| !named.contains(name));
        let removing =
            move || copies.iter().filter(|copy| unnamed(copy) && fs::remove_file(copy).is_ok()).count();
        let removed = tokio::task::spawn_blocking(removing).await.unwrap_or_default();
        if removed > 0 {
            tracing::info!(removed, "files that no delivery names any more are removed");
        }
        Ok(removed)
    }
}

impl super::OutboxInner {
    /// Removes a copy whose row is over.
    pub(super) async fn remove_file(&self, copy: &Path) {
        if self.folder.get().map(PathBuf::as_path) != copy.parent() || !is_copy(copy) {
            return;
        }
        match tokio::fs::remove_file(copy).await {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(%error, file = %copy.display(), "a file that was sent is not removed")
            }
        }
    }
}

/// Copies that have been there for so long.
fn copies_in(folder: &Path, grace: Duration) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let now = SystemTime::now();
    let is_old = |entry: &fs::DirEntry| {
        let written =
            entry.metadata().ok().filter(fs::Metadata::is_file).and_then(|file| file.modified().ok());
        written.is_some_and(|at| grace.is_zero() || now.duration_since(at).is_ok_and(|age| age >= grace))
    };
    let old = entries.filter_map(Result::ok).filter(is_old).map(|entry| entry.path());
    Ok(old.filter(|path| is_copy(path)).collect())
}

/// True if a file has a name as copies have. Other files there are not the gateway's.
fn is_copy(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let parts: Vec<&str> = stem.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
