//! Finished runs that the disk has refused so far. The journal tries to store them again; meanwhile they are known as finished.

use std::sync::Arc;

use openclaw_protocol::RunId;
use parking_lot::Mutex;

use crate::api::RunRecord;

/// Finished runs that the disk refused, as many as ended since the disk began to refuse; accepting
/// fails meanwhile, so that their number is bounded by what was queued. Leaf data: clones are the
/// same list.
#[derive(Debug, Clone, Default)]
pub(super) struct RefusedRuns(Arc<Mutex<Vec<RunRecord>>>);

impl RefusedRuns {
    pub(super) fn add(&self, record: RunRecord) {
        self.0.lock().push(record);
    }

    pub(super) fn find(&self, run_id: &RunId) -> Option<RunRecord> {
        self.0.lock().iter().find(|record| record.run_id == *run_id).cloned()
    }

    pub(super) fn remove(&self, run_id: &RunId) {
        self.0.lock().retain(|record| record.run_id != *run_id);
    }
}
