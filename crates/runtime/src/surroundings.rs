//! The process that a dispatcher runs in, as far as chat commands and tools ask or act on it.

use std::pin::Pin;
use std::sync::Arc;

use openclaw_agent::host::{ControlCall, HostFuture};
use openclaw_config::{Environment, Overrides};
use openclaw_models::ModelRef;
use openclaw_models::catalog::Catalog;
use openclaw_models::quota::QuotaCache;
use openclaw_models::settings::ModelSettings;
use openclaw_protocol::SessionKey;
use openclaw_sessions::usage::{Price, Prices, UsageIndex};
use serde_json::Value;

/// Services of the gateway that chat commands need.
pub trait Surroundings: Send + Sync {
    /// Environment of the process, without any config: the config file is read with it.
    fn environment(&self) -> &Environment;

    /// Settings that lie over the config file until the process ends.
    fn overrides(&self) -> &Overrides;

    /// Reads and applies the config file and its overrides; returns when that is done.
    fn reread(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Starts the gateway again in a moment, so that pending answers still go out.
    fn restart(&self);

    /// Control interface for the tool `gateway`; `None` if the process ends with its one run.
    fn control(&self) -> Option<&dyn Control>;

    /// Index of the tokens that transcripts used, as far as it was counted.
    fn usage(&self) -> &UsageIndex;

    /// Cache of the quotas that providers reported a moment ago.
    fn quotas(&self) -> &QuotaCache;
}

/// Reads and changes the configuration, and has the gateway start again.
pub trait Control: Send + Sync {
    /// Carries out a call. `session` is told of a restart.
    fn control(&self, call: ControlCall, session: SessionKey) -> HostFuture<'_, Value>;
}

/// Prices of models.
pub fn prices(models: &ModelSettings) -> Prices {
    let catalog = Catalog::new(models);
    Arc::new(move |provider, model| {
        let price = catalog.price(&ModelRef::new(provider, model))?;
        let openclaw_config::settings::ModelCost { input, output, cache_read, cache_write } = price;
        Some(Price { input, output, cache_read, cache_write })
    })
}
