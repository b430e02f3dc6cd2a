//! What chat commands ask of this gateway, or have it do.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{Environment, Overrides};
use openclaw_dispatch::Surroundings;
use openclaw_models::quota::QuotaCache;
use openclaw_sessions::usage::UsageIndex;
use tokio::sync::Notify;

use crate::reload::Reload;

/// Between the wish for a restart and its beginning: what is being said still goes out (spec `operations.md` §2.1).
const BEFORE_RESTART: Duration = Duration::from_secs(2);

/// One gateway's.
pub(crate) struct OwnSurroundings {
    /// Reads the config file anew.
    pub(crate) reload: Reload,
    /// What transcripts used, as far as it was counted.
    pub(crate) usage: UsageIndex,
    /// What providers said of their quotas a moment ago.
    pub(crate) quotas: QuotaCache,
    restart: Arc<Notify>,
}

impl OwnSurroundings {
    pub(crate) fn new(reload: Reload, usage: UsageIndex) -> Self {
        Self { reload, usage, quotas: QuotaCache::default(), restart: Arc::default() }
    }

    /// Completes when somebody wants the gateway to start again.
    pub(crate) async fn restart_asked(&self) {
        self.restart.notified().await;
    }
}

impl Surroundings for OwnSurroundings {
    fn environment(&self) -> &Environment {
        self.reload.environment()
    }

    fn overrides(&self) -> &Overrides {
        self.reload.overrides()
    }

    fn reread(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.reload.now())
    }

    fn restart(&self) {
        let restart = Arc::clone(&self.restart);
        tokio::spawn(async move {
            tokio::time::sleep(BEFORE_RESTART).await;
            restart.notify_one();
        });
    }

    fn usage(&self) -> &UsageIndex {
        &self.usage
    }

    fn quotas(&self) -> &QuotaCache {
        &self.quotas
    }
}
