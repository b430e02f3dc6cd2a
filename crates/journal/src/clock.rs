//! The clock of the dispatcher: wall time and the host's zone, both of which a test may set.

use std::fmt;
use std::sync::Arc;

use jiff::tz::TimeZone;

/// Source of the time. Clones are the same clock.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> i64 + Send + Sync>,
    zone: Option<TimeZone>,
}

impl Clock {
    /// The system's.
    pub fn system() -> Self {
        Self { now: Arc::new(openclaw_sessions::time::now_ms), zone: None }
    }

    /// A test's.
    #[cfg(any(test, feature = "testing"))]
    pub fn set(now: impl Fn() -> i64 + Send + Sync + 'static, zone: TimeZone) -> Self {
        Self { now: Arc::new(now), zone: Some(zone) }
    }

    /// Unix milliseconds. May jump, also backwards: things that must stay in order have numbers of
    /// their own.
    pub fn now_ms(&self) -> i64 {
        (self.now)()
    }

    /// The zone of the host's days.
    pub fn zone(&self) -> TimeZone {
        self.zone.clone().unwrap_or_else(TimeZone::system)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("now", &self.now_ms()).finish_non_exhaustive()
    }
}
