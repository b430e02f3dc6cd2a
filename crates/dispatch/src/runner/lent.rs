//! The transcripts that runs have open now, for those who want to write into one meanwhile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_sessions::transcript::Injector;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// One entry a run. Leaf data: nothing is awaited under its lock.
#[derive(Default)]
pub(super) struct LentTranscripts {
    injectors: Mutex<HashMap<PathBuf, Injector>>,
    changed: Notify,
}

/// Takes the entry out when the run is over.
pub(super) struct Lent {
    all: Arc<LentTranscripts>,
    path: PathBuf,
}

impl LentTranscripts {
    pub(super) fn enter(self: &Arc<Self>, path: &Path, injector: Injector) -> Lent {
        self.injectors.lock().insert(path.to_path_buf(), injector);
        self.changed.notify_waiters();
        Lent { all: Arc::clone(self), path: path.to_path_buf() }
    }

    pub(super) fn get(&self, path: &Path) -> Option<Injector> {
        self.injectors.lock().get(path).cloned()
    }

    /// Completes when the next run has its transcript open. Create it before looking.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.all.injectors.lock().remove(&self.path);
    }
}
