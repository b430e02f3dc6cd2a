//! The one reader of the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix milliseconds now. A clock before 1970 reads as 0.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
