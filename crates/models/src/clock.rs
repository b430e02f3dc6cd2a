//! The time by which cooldowns end and credentials expire: the system's, or a test's.

use std::fmt;
use std::sync::Arc;

use openclaw_config::clock::now_ms;

/// Source of the current time. Clones are the same clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// A clock of one's own; gives Unix milliseconds.
    pub fn new(now: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Unix milliseconds.
    pub fn now_ms(&self) -> i64 {
        (self.0)()
    }
}

impl Default for Clock {
    /// The system's.
    fn default() -> Self {
        Self::new(now_ms)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now_ms()).finish()
    }
}
