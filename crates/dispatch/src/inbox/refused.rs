//! Finished runs that the disk has refused so far: the writer tries them again, and who asks is told of them meanwhile.

use std::sync::Arc;

use openclaw_protocol::RunId;
use parking_lot::Mutex;

use crate::api::RunRecord;

/// Oldest first. As many as runs ended since the disk began to refuse; accepting fails meanwhile, so that their number is
/// bounded by what was queued. Leaf data: clones are the same list.
#[derive(Debug, Clone, Default)]
pub(super) struct Refused(Arc<Mutex<Vec<RunRecord>>>);

impl Refused {
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(super) fn add(&self, records: impl IntoIterator<Item = RunRecord>) {
        self.0.lock().extend(records);
    }

    pub(super) fn find(&self, run_id: &RunId) -> Option<RunRecord> {
        self.0.lock().iter().find(|record| record.run_id == *run_id).cloned()
    }

    pub(super) fn all(&self) -> Vec<RunRecord> {
        self.0.lock().clone()
    }

    /// For the writer alone, which is the one that adds.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}
