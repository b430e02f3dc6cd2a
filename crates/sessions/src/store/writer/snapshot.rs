//! Writing `sessions.json` from a snapshot, on a thread of its own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::disk::{Stamp, Temporary};
use crate::lockfile::LockFile;
use crate::store::document::{self, Stored};

/// What a snapshot needs.
pub(super) struct Job {
    pub(super) path: PathBuf,
    pub(super) rows: Vec<(Arc<str>, Stored)>,
    /// The version of the file that the rows stand on.
    pub(super) expected: Option<Stamp>,
    /// Held until the file is written.
    pub(super) lock: LockFile,
}

/// How a snapshot ended.
pub(super) enum Outcome {
    /// The file is written.
    Written { stamp: Stamp, took: Duration },
    /// Someone changed the file meanwhile: nothing was written.
    Overtaken,
    /// The disk refused: nothing was written.
    Failed(io::Error),
}

/// A snapshot that ended.
pub(super) struct Finished {
    pub(super) path: PathBuf,
    pub(super) outcome: Outcome,
}

impl Job {
    /// Begins to write; the outcome is sent when it is done.
    pub(super) fn start(self, done: mpsc::Sender<Finished>) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("session-snapshot".to_owned()).spawn(move || {
            let path = self.path.clone();
            let outcome = self.write();
            // A closed channel means that the store is gone and nobody waits.
            let _ = done.blocking_send(Finished { path, outcome });
        })
    }

    fn write(self) -> Outcome {
        let begun = Instant::now();
        let outcome = write(&self.path, &self.rows, self.expected);
        drop(self.lock);
        match outcome {
            Ok(Some(stamp)) => Outcome::Written { stamp, took: begun.elapsed() },
            Ok(None) => Outcome::Overtaken,
            Err(error) => Outcome::Failed(error),
        }
    }
}

fn write(path: &Path, rows: &[(Arc<str>, Stored)], expected: Option<Stamp>) -> io::Result<Option<Stamp>> {
    let temporary = Temporary::write(path, |file| document::write(rows, file))?;
    if Stamp::of(path)? != expected {
        return Ok(None);
    }
    let stamp = temporary.stamp();
    temporary.persist(path)?;
    Ok(Some(stamp))
}
