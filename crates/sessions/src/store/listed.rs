//! Cached list view of a row: made once, and kept beside the row. An edit makes another row, which
//! has none yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::entry::ModelName;

/// Bytes that all rows of the process keep at most; 10,000 rows take 6.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Bytes that they keep now.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// A row as JSON, as long as its agent's default model is the same.
#[derive(Debug, Default)]
pub(crate) struct ListRowCache(Mutex<Option<Box<CachedListRow>>>);

#[derive(Debug)]
struct CachedListRow {
    default_model: Arc<ModelName>,
    json: Arc<RawValue>,
}

impl ListRowCache {
    /// Returns the kept view, or makes one now.
    pub(crate) fn get(
        &self,
        default_model: &Arc<ModelName>,
        make: impl FnOnce() -> Arc<RawValue>,
    ) -> Arc<RawValue> {
        if let Some(kept) = &*self.0.lock()
            && (Arc::ptr_eq(&kept.default_model, default_model) || kept.default_model == *default_model)
        {
            return Arc::clone(&kept.json);
        }
        let json = make();
        let kept = CachedListRow::new(default_model, &json).map(Box::new);
        *self.0.lock() = kept;
        json
    }
}

/// The cached view is no part of a row's value.
impl PartialEq for ListRowCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl CachedListRow {
    /// Cached view; `None` where there is no room left.
    fn new(default_model: &Arc<ModelName>, json: &Arc<RawValue>) -> Option<Self> {
        let bytes = json.get().len();
        let room = |kept: usize| Some(kept + bytes).filter(|all| *all <= MOST_BYTES);
        BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        Some(Self { default_model: Arc::clone(default_model), json: Arc::clone(json) })
    }
}

impl Drop for CachedListRow {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.json.get().len(), Ordering::Relaxed);
    }
}
