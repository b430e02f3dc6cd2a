//! The pairing files: read before every decision, so that edits by a person or the CLI count at once, and replaced
//! whole after it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::private_file::{self, Durability};
use openclaw_config::shared_place;
use openclaw_sessions::time::{iso, now_ms};
use parking_lot::Mutex;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserializer as _, Serialize};
use serde_json::Value;

use super::book::PairingBook;
use super::record::{Paired, Pending};

/// Reason why the pairing files could not be used.
#[derive(Debug, thiserror::Error)]
pub enum PairingStoreError {
    /// A file can't be read; the owner has to look.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Error from the file system.
        source: std::io::Error,
    },
    /// A file can't be written; the owner has to look.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Error from the file system.
        source: std::io::Error,
    },
    /// The work was cut off by shutdown.
    #[error("the gateway is shutting down")]
    Stopped,
}

/// Result of an attempted change of the book.
#[derive(Debug)]
pub struct Attempted<T> {
    /// Value returned by the change.
    pub value: T,
    /// Reason why the change could not be written to disk, if it could not.
    pub unwritten: Option<PairingStoreError>,
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
    /// When a file can't be read or written; then nothing of the change is kept. A damaged one is repaired first.
    pub async fn update<T, F>(&self, change: F) -> Result<T, PairingStoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut PairingBook) -> T + Send + 'static,
    {
        let Attempted { value, unwritten } = self.attempt(change).await?;
        unwritten.map_or(Ok(value), Err)
    }

    /// Same as [`Self::update`], for callers that can use the decision of `change` although it
    /// can't be kept.
    ///
    /// # Errors
    /// When a file can't be read.
    pub async fn attempt<T, F>(&self, change: F) -> Result<Attempted<T>, PairingStoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut PairingBook) -> T + Send + 'static,
    {
        let store = self.clone();
        let work = move || {
            let _turn = store.turn.lock();
            let before = store.read()?;
            let mut book = before.clone();
            let value = change(&mut book);
            Ok(Attempted { value, unwritten: store.write(&before, &book).err() })
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| PairingStoreError::Stopped)?
    }

    /// Reads the book. Damaged files are repaired.
    fn read(&self) -> Result<PairingBook, PairingStoreError> {
        let (pending, paired) = (read_map(&self.pending())?, read_map(&self.paired())?);
        if pending.flaw.is_some() || paired.flaw.is_some() {
            self.repair()?;
        }
        Ok(PairingBook { pending: pending.records, paired: paired.records })
    }

    /// The damaged files, and what is wrong with each. Blocking; changes nothing.
    ///
    /// # Errors
    /// When a file can't be read.
    pub fn damage(&self) -> Result<Vec<Damage>, PairingStoreError> {
        let of = |path: PathBuf, flaw: Option<String>| flaw.map(|flaw| Damage { path, flaw });
        let pending = of(self.pending(), read_map::<Pending>(&self.pending())?.flaw);
        let paired = of(self.paired(), read_map::<Paired>(&self.paired())?.flaw);
        Ok(pending.into_iter().chain(paired).collect())
    }

    /// Replaces damaged files by what can be read of them; a copy of each is kept beside it. Gives the copies. Blocking.
    ///
    /// # Errors
    /// When a file can't be read or written.
    pub fn repair(&self) -> Result<Vec<PathBuf>, PairingStoreError> {
        let pending = repair::<Pending>(&self.pending())?;
        let paired = repair::<Paired>(&self.paired())?;
        Ok(pending.into_iter().chain(paired).collect())
    }

    /// The pairing comes last: when the first write fails, a device is not paired without a trace of its request.
    fn write(&self, before: &PairingBook, book: &PairingBook) -> Result<(), PairingStoreError> {
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

/// True if only times of last use differ: worth a write, not worth waiting for the disk on every
/// connect.
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

/// A file that is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Description of the damage, for people.
    pub flaw: String,
}

/// Readable records of a file.
struct Records<T> {
    records: BTreeMap<String, T>,
    /// Description of the damage in the rest.
    flaw: Option<String>,
}

fn read_map<T: DeserializeOwned>(path: &Path) -> Result<Records<T>, PairingStoreError> {
    let bytes = match shared_place::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(PairingStoreError::Read { path: path.to_owned(), source }),
    };
    Ok(readable(&bytes))
}

/// Reads all records up to the first place that is no JSON; those of another form are left out.
fn readable<T: DeserializeOwned>(bytes: &[u8]) -> Records<T> {
    let mut found = Records { records: BTreeMap::new(), flaw: None };
    if bytes.trim_ascii().is_empty() {
        return found;
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = reader.deserialize_map(&mut found).and_then(|()| reader.end());
    if let Err(error) = read {
        found.flaw = Some(error.to_string());
    }
    found
}

impl<'de, T: DeserializeOwned> Visitor<'de> for &mut Records<T> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object of records")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((id, record)) = map.next_entry::<String, Value>()? {
            match serde_json::from_value(record) {
                Ok(record) => {
                    self.records.insert(id, record);
                }
                Err(error) => self.flaw = Some(format!("record {id}: {error}")),
            }
        }
        Ok(())
    }
}

/// Replaces a damaged file by what can be read of it. Gives the copy that was kept.
fn repair<T: DeserializeOwned + Serialize>(path: &Path) -> Result<Option<PathBuf>, PairingStoreError> {
    let Records { records, flaw } = read_map::<T>(path)?;
    let Some(flaw) = flaw else { return Ok(None) };
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".damaged-{}", iso(now_ms()).replace([':', '.'], "-")));
    let copy = PathBuf::from(name);
    let bytes = shared_place::read(path)
        .map_err(|source| PairingStoreError::Read { path: path.to_owned(), source })?;
    private_file::replace(&copy, &bytes, Durability::Synced)
        .map_err(|source| PairingStoreError::Write { path: copy.clone(), source })?;
    write_map(path, &records, Durability::Synced)?;
    tracing::error!(
        file = %path.display(), copy = %copy.display(), kept = records.len(), flaw,
        "a pairing file was damaged: a copy is kept, and what could be read of it stays in force; devices that are missing have to be paired again"
    );
    Ok(Some(copy))
}

/// Two-space JSON without a final line break, as OpenClaw 2026.2.9 writes it.
fn write_map<T: Serialize>(
    path: &Path,
    map: &BTreeMap<String, T>,
    durability: Durability,
) -> Result<(), PairingStoreError> {
    let unwritable =
        |error: serde_json::Error| PairingStoreError::Write { path: path.to_owned(), source: error.into() };
    let text = serde_json::to_vec_pretty(map).map_err(unwritable)?;
    private_file::replace(path, &text, durability)
        .map_err(|source| PairingStoreError::Write { path: path.to_owned(), source })
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
    async fn of_a_damaged_file_stays_in_force_what_can_be_read() {
        let whole =
            serde_json::to_string(&BTreeMap::from([("r1", request("r1")), ("r2", request("r2"))])).unwrap();
        let second = whole.find("\"r2\"").unwrap();
        for (text, left) in [
            (whole[..whole.len() - 1].to_owned(), vec!["r1", "r2"]),
            (whole[..second + 20].to_owned(), vec!["r1"]),
            (whole.replace("\"ts\":1", "\"ts\":\"x\""), vec![]),
            (format!("{whole}}}"), vec!["r1", "r2"]),
            ("[]".to_owned(), vec![]),
            ("\0".repeat(300), vec![]),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let (path, store) = (dir.path().join("pending.json"), DeviceStore::new(dir.path()));
            std::fs::write(&path, &text).unwrap();
            assert_eq!(store.damage().unwrap().len(), 1, "{text}");
            let found = store.update(|book| book.pending.keys().cloned().collect::<Vec<_>>()).await.unwrap();
            assert_eq!(found, left, "{text}");
            assert_eq!(store.damage().unwrap(), [], "it is whole again");
            let is_copy = |name: &str| name.starts_with("pending.json.damaged-");
            let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let copy = names.filter_map(|name| name.into_string().ok()).find(|name| is_copy(name)).unwrap();
            assert_eq!(std::fs::read_to_string(dir.path().join(copy)).unwrap(), text);
        }
    }
}
