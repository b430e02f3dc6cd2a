//! Services of this gateway that chat commands use.

use std::pin::Pin;
use std::sync::Arc;

use openclaw_config::{Environment, Overrides};
use openclaw_dispatch::{Control, Surroundings};
use openclaw_models::quota::QuotaCache;
use openclaw_sessions::usage::UsageIndex;

use crate::control::GatewayControl;
use crate::control::bell::BEFORE_RESTART;
use crate::reload::Reload;

/// Surroundings of one gateway.
pub(crate) struct OwnSurroundings {
    /// Reads the config file anew.
    reload: Reload,
    /// Token usage of transcripts, as far as it was counted.
    pub(crate) usage: UsageIndex,
    /// Cache of the quotas that providers reported a moment ago.
    pub(crate) quotas: Arc<QuotaCache>,
    /// Control of the gateway, by tool and by method.
    control: GatewayControl,
    /// True if the gateway goes on after its one run.
    is_daemon: bool,
}

impl OwnSurroundings {
    pub(crate) fn new(control: GatewayControl, usage: UsageIndex, is_daemon: bool) -> Self {
        Self { reload: control.reload.clone(), usage, quotas: Arc::default(), control, is_daemon }
    }

    /// Completes when somebody wants the gateway to start again.
    pub(crate) async fn restart_asked(&self) {
        self.control.bell.rung().await;
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
        self.control.bell.ring_in(BEFORE_RESTART);
    }

    fn control(&self) -> Option<&dyn Control> {
        self.is_daemon.then_some(&self.control as &dyn Control)
    }

    fn usage(&self) -> &UsageIndex {
        &self.usage
    }

    fn quotas(&self) -> &QuotaCache {
        &self.quotas
    }
}
