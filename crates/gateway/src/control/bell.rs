//! Bell that asks for a restart, and its usual delay.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

/// Delay between the request for a restart and its beginning: the current answer still goes out
/// (spec `operations.md` §2.1).
pub(crate) const BEFORE_RESTART: Duration = Duration::from_secs(2);

/// Bell that asks for a restart of the gateway. Clones ring the same bell.
#[derive(Debug, Clone, Default)]
pub(crate) struct RestartBell(Arc<Notify>);

impl RestartBell {
    /// Restarts the gateway after a delay.
    pub(crate) fn ring_in(&self, delay: Duration) {
        let bell = Arc::clone(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            bell.notify_one();
        });
    }

    /// Completes when it is rung.
    pub(crate) async fn rung(&self) {
        self.0.notified().await;
    }
}
