//! The pairing files: read before every decision, so that edits by a person or the CLI count at once, and replaced
//! whole after it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::private_file::{self, Durability};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::book::PairingBook;

/// Why the pairing files could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file can't be read; the owner has to look.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the file system says.
        source: std::io::Error,
    },
    /// A file is not what it should be; it is left untouched for the owner to repair.
    #[error("{path} is not valid: {source}; repair or remove it")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A file can't be written; the owner has to look.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the file system says.
        source: std::io::Error,
    },
    /// The work was cut off by shutdown.
    #[error("the gateway is shutting down")]
    Stopped,
}

/// `<state>/devices`. One operation at a time.
#[derive(Debug, Clone)]
pub struct DeviceStore {
    dir: Arc<Path>,
    turn: Arc<Mutex<()>>,
}

impl DeviceStore {
    /// The store of this directory, which need not exist.
    pub fn new(dir: impl AsRef<Path>) -> Self {
        Self { dir: Arc::from(dir.as_ref()), turn: Arc::default() }
    }

    /// Reads the book, lets `change` work on it, and writes what differs. Files are touched on a blocking thread.
    ///
    /// # Errors
    /// When a file can't be read, understood or written; then nothing of the change is kept.
    pub async fn update<T, F>(&self, change: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut PairingBook) -> T + Send + 'static,
    {
        let store = self.clone();
        let work = move || {
            let _turn = store.turn.lock();
            let before = store.read()?;
            let mut book = before.clone();
            let result = change(&mut book);
            store.write(&before, &book)?;
            Ok(result)
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Stopped)?
    }

    fn read(&self) -> Result<PairingBook, StoreError> {
        Ok(PairingBook { pending: read_map(&self.pending())?, paired: read_map(&self.paired())? })
    }

    /// The pairing comes last: when the first write fails, a device is not paired without a trace of its request.
    fn write(&self, before: &PairingBook, book: &PairingBook) -> Result<(), StoreError> {
        if before.paired != book.paired {
            let durability = if is_only_use(before, book) { Durability::Whole } else { Durability::Synced };
            write_map(&self.paired(), &book.paired, durability)?;
        }
        if before.pending != book.pending {
            write_map(&self.pending(), &book.pending, Durability::Synced)?;
        }
        Ok(())
    }

    fn pending(&self) -> PathBuf {
        self.dir.join("pending.json")
    }

    fn paired(&self) -> PathBuf {
        self.dir.join("paired.json")
    }
}

/// Whether only times of last use differ: worth a write, not worth waiting for the disk on every connect.
fn is_only_use(before: &PairingBook, after: &PairingBook) -> bool {
    let blank = |book: &PairingBook| {
        let mut paired = book.paired.clone();
        for token in paired.values_mut().flat_map(|record| record.tokens.values_mut()) {
            token.last_used_at_ms = None;
        }
        paired
    };
    blank(before) == blank(after)
}

fn read_map<T: DeserializeOwned>(path: &Path) -> Result<BTreeMap<String, T>, StoreError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(source) => return Err(StoreError::Read { path: path.to_owned(), source }),
    };
    if bytes.trim_ascii().is_empty() {
        return Ok(BTreeMap::new());
    }
    serde_json::from_slice(&bytes).map_err(|source| StoreError::Format { path: path.to_owned(), source })
}

/// Two-space JSON without a final line break, as OpenClaw 2026.2.9 writes it.
fn write_map<T: Serialize>(
    path: &Path,
    map: &BTreeMap<String, T>,
    durability: Durability,
) -> Result<(), StoreError> {
    let text = serde_json::to_vec_pretty(map)
        .map_err(|source| StoreError::Format { path: path.to_owned(), source })?;
    private_file::replace(path, &text, durability)
        .map_err(|source| StoreError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::Pending;
    use serde_json::json;

    fn request(id: &str) -> Pending {
        let value = json!({"requestId": id, "deviceId": "d", "publicKey": "k", "scopes": [], "silent": false, "isRepair": false, "ts": 1});
        serde_json::from_value(value).unwrap()
    }

    #[tokio::test]
    async fn changes_are_written_and_edits_from_outside_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let store = DeviceStore::new(dir.path().join("devices"));
        store.update(|book| book.pending.insert("r1".to_owned(), request("r1"))).await.unwrap();
        let path = dir.path().join("devices/pending.json");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("{\n  \"r1\": {\n    \"requestId\": \"r1\"") && !text.ends_with('\n'),
            "{text}"
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
        std::fs::write(&path, "{}").unwrap();
        assert_eq!(store.update(|book| book.pending.len()).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_broken_file_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("paired.json");
        std::fs::write(&path, "{\"d\":").unwrap();
        let error = DeviceStore::new(dir.path()).update(|book| book.paired.clear()).await.unwrap_err();
        assert!(matches!(&error, StoreError::Format { path: named, .. } if *named == path), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"d\":");
    }
}
