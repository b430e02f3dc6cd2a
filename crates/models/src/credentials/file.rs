//! `auth-profiles.json` on disk: read without a lock, changed under one and always from what is on disk then.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use openclaw_config::private_file::{self, Durability};
use openclaw_config::shared_place;

use super::legacy::{self, Surroundings};
use super::lock::{PATIENCE, StoreLock, StoreLockError};
use super::store::AuthStore;

/// Name of the file in an agent's directory.
pub const FILE: &str = "auth-profiles.json";
/// Number of times a change is repeated when a writer without the lock, such as a person's editor,
/// wrote in between.
const REDONE: usize = 5;

/// Error of reading or writing the credentials. The texts are for people and hold no secrets.
#[derive(Debug, thiserror::Error)]
pub enum AuthStoreError {
    /// The file exists but can't be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Underlying I/O error.
        source: std::io::Error,
    },
    /// The file is no JSON object. It is left as it is.
    #[error("{path} is damaged ({}); fix or move it away, then add the credentials again", place(*line))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line of the first error; 0 if the text is valid JSON of the wrong shape.
        line: usize,
    },
    /// The file could not be written; the old one is still there.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Underlying I/O error.
        source: std::io::Error,
    },
}

fn place(line: usize) -> String {
    match line {
        0 => "not the JSON that belongs there".to_owned(),
        line => format!("line {line}"),
    }
}

/// Treatment of a damaged file that is to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDamage {
    /// Refuses: the change fails.
    Refuse,
    /// Keep it beside under another name and begin anew: a person adds credentials.
    SetAside,
}

/// A change that was made.
#[derive(Debug)]
pub struct Updated<T> {
    /// Value that the change returned.
    pub value: T,
    /// Path to which a damaged file was moved.
    pub set_aside: Option<PathBuf>,
}

impl AuthStore {
    /// Reads the store of an agent's directory; without a file it is empty. Blocks.
    ///
    /// # Errors
    /// See [`AuthStoreError`].
    pub fn load(agent_dir: &Path) -> Result<Self, AuthStoreError> {
        Ok(read(&agent_dir.join(FILE))?.0.unwrap_or_default())
    }

    /// Loads the store together with the credentials that older versions and other programs keep
    /// elsewhere. Changes no file. Blocks.
    ///
    /// # Errors
    /// See [`AuthStoreError`].
    pub fn load_with(agent_dir: &Path, around: &Surroundings, now: i64) -> Result<Self, AuthStoreError> {
        let (store, _) = read(&agent_dir.join(FILE))?;
        let mut store = store.unwrap_or_else(|| legacy::import(agent_dir, around).store);
        around.show_logins_of_others(&mut store, now);
        Ok(store)
    }

    /// Changes the store: takes the lock, reads what is there now, applies the change, and writes
    /// it if anything is different. Changes by other writers are not lost. `change` may be called
    /// more than once. Blocks, maybe for seconds.
    ///
    /// # Errors
    /// See [`AuthStoreError`]; a lock that can't be had is [`AuthStoreError::Write`]. The file is as it was then.
    pub fn update<T>(
        agent_dir: &Path,
        around: &Surroundings,
        on_damage: OnDamage,
        change: impl FnMut(&mut Self) -> T,
    ) -> Result<Updated<T>, AuthStoreError> {
        let path = target(agent_dir);
        let failed = |source| AuthStoreError::Write { path: path.clone(), source };
        private_file::make_dir(agent_dir).map_err(failed)?;
        let lock = StoreLock::acquire(&path, PATIENCE).map_err(|error| failed(lock_failed(error)))?;
        update_locked(&lock, agent_dir, around, on_damage, change)
    }
}

/// Updates the file for a caller that holds the lock already.
pub(super) fn update_locked<T>(
    lock: &StoreLock,
    agent_dir: &Path,
    around: &Surroundings,
    on_damage: OnDamage,
    mut change: impl FnMut(&mut AuthStore) -> T,
) -> Result<Updated<T>, AuthStoreError> {
    let path = target(agent_dir);
    let failed = |source| AuthStoreError::Write { path: path.clone(), source };
    let mut set_aside = None;
    for _ in 0..REDONE {
        let (found, seen) = match read(&path) {
            Err(AuthStoreError::Damaged { .. }) if on_damage == OnDamage::SetAside => {
                set_aside = Some(move_aside(&path).map_err(failed)?);
                (None, None)
            }
            other => other?,
        };
        let imported =
            if found.is_none() { legacy::import(agent_dir, around) } else { legacy::Import::default() };
        let mut store = found.unwrap_or(imported.store);
        let before = store.document().clone();
        let value = change(&mut store);
        if seen.is_some() && *store.document() == before {
            return Ok(Updated { value, set_aside });
        }
        if seen.is_none() && store.profiles().next().is_none() && *store.document() == before {
            return Ok(Updated { value, set_aside });
        }
        if stamp(&path) != seen {
            continue;
        }
        if !lock.is_ours() {
            return Err(failed(lock_failed(StoreLockError::Held)));
        }
        private_file::replace(&path, store.text().as_bytes(), Durability::Synced).map_err(failed)?;
        imported.sources.iter().for_each(|source| legacy::retire(source));
        return Ok(Updated { value, set_aside });
    }
    Err(failed(lock_failed(StoreLockError::Held)))
}

/// The lock of an agent's store. Blocks.
pub(super) fn lock(agent_dir: &Path, patience: Duration) -> Result<StoreLock, AuthStoreError> {
    let path = target(agent_dir);
    private_file::make_dir(agent_dir)
        .map_err(StoreLockError::from)
        .and_then(|()| StoreLock::acquire(&path, patience))
        .map_err(|error| AuthStoreError::Write { path, source: lock_failed(error) })
}

fn lock_failed(error: StoreLockError) -> std::io::Error {
    match error {
        StoreLockError::Io(error) => error,
        StoreLockError::Held => std::io::Error::new(std::io::ErrorKind::WouldBlock, error.to_string()),
    }
}

/// The file itself where its name is a link of ours, so that it stays one. Another user's is refused when it is read.
fn target(agent_dir: &Path) -> PathBuf {
    let path = agent_dir.join(FILE);
    let real = shared_place::check_way(&path).and_then(|()| std::fs::canonicalize(&path));
    real.unwrap_or(path)
}

/// Values that identify a state of the file.
type StoreStamp = (SystemTime, u64, u64);

fn stamp(path: &Path) -> Option<StoreStamp> {
    stamp_of(&std::fs::metadata(path).ok()?)
}

fn stamp_of(metadata: &Metadata) -> Option<StoreStamp> {
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Some((metadata.modified().ok()?, metadata.len(), inode))
}

fn read(path: &Path) -> Result<(Option<AuthStore>, Option<StoreStamp>), AuthStoreError> {
    let missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let seen = match std::fs::metadata(path) {
        Ok(found) => stamp_of(&found),
        Err(error) if missing(&error) => return Ok((None, None)),
        Err(_) => None,
    };
    match shared_place::read(path) {
        Ok(bytes) => {
            let store = AuthStore::parse(&bytes)
                .map_err(|line| AuthStoreError::Damaged { path: path.to_path_buf(), line })?;
            Ok((Some(store), seen))
        }
        Err(error) if missing(&error) => Ok((None, None)),
        Err(source) => Err(AuthStoreError::Read { path: path.to_path_buf(), source }),
    }
}

fn move_aside(path: &Path) -> std::io::Result<PathBuf> {
    let name = format!("{}.damaged-{}", path.display(), jiff::Timestamp::now().as_millisecond());
    let aside = PathBuf::from(name);
    std::fs::rename(path, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod tests;
