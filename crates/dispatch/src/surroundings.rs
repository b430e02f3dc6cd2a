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

/// What chat commands need of the gateway around them.
pub trait Surroundings: Send + Sync {
    /// The environment of the process, before any config: what the config file is read with.
    fn environment(&self) -> &Environment;

    /// Settings that lie over the config file until the process ends.
    fn overrides(&self) -> &Overrides;

    /// Has the config file and what lies over it read and taken; returns when that is done.
    fn reread(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Has the gateway start again in a moment, so that what is being said still goes out.
    fn restart(&self);

    /// What the tool `gateway` reaches; `None` where the process ends with its one run.
    fn control(&self) -> Option<&dyn Control>;

    /// What transcripts used, as far as it was counted.
    fn usage(&self) -> &UsageIndex;

    /// What providers said of their quotas a moment ago.
    fn quotas(&self) -> &QuotaCache;
}

/// Reads and changes the configuration, and has the gateway start again.
pub trait Control: Send + Sync {
    /// Does what is asked. `session` is told of a restart.
    fn control(&self, call: ControlCall, session: SessionKey) -> HostFuture<'_, Value>;
}

/// What models cost.
pub fn prices(models: &ModelSettings) -> Prices {
    let catalog = Catalog::new(models);
    Arc::new(move |provider, model| {
        let price = catalog.price(&ModelRef::new(provider, model))?;
        let openclaw_config::settings::ModelCost { input, output, cache_read, cache_write } = price;
        Some(Price { input, output, cache_read, cache_write })
    })
}
