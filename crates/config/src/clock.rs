//! The one reader of the wall clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of the machine is in force.
const RUNS: i64 = i64::MIN;
/// Time at which a test holds the clock, in Unix milliseconds.
static HELD: AtomicI64 = AtomicI64::new(RUNS);

/// Unix milliseconds now. A clock before 1970 reads as 0.
pub fn now_ms() -> i64 {
    match HELD.load(Ordering::Relaxed) {
        RUNS => system_ms(),
        held => held,
    }
}

/// Holds the clock of the whole process at a time until it is held at another: for a test that has the process for
/// itself and wants the same timestamps each time. Timers go on.
pub fn hold(unix_ms: i64) {
    HELD.store(unix_ms, Ordering::Relaxed);
}

fn system_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
