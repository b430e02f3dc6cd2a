//! The gateway as actions on chat platforms see it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_channels::{Address, Platforms};
use openclaw_config::Config;
use openclaw_delivery::outbox::{Enqueued, Outbox};
use openclaw_journal::delivery::Delivery;
use openclaw_runtime::messages::{DeliverError, MessageHost};
use openclaw_runtime::setup::LiveSettings;
use openclaw_sessions::SessionKey;

use crate::deliver::{Deliveries, Routes};

/// Parts for actions on chat platforms.
pub struct ActionHost {
    settings: LiveSettings,
    state_dir: PathBuf,
    platforms: Arc<Platforms>,
    outbox: Outbox,
    routes: Arc<Routes>,
    deliveries: Arc<Deliveries>,
}

impl ActionHost {
    pub(crate) fn new(
        settings: LiveSettings,
        state_dir: PathBuf,
        platforms: Arc<Platforms>,
        outbox: Outbox,
        routes: Arc<Routes>,
        deliveries: Arc<Deliveries>,
    ) -> Self {
        Self { settings, state_dir, platforms, outbox, routes, deliveries }
    }
}

impl MessageHost for ActionHost {
    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.settings.now().config)
    }

    fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    fn platforms(&self) -> &Platforms {
        &self.platforms
    }

    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn route_of<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Option<Address>> {
        self.routes.route_of(key).boxed()
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<Enqueued, DeliverError>> {
        self.deliveries.deliver(delivery).boxed()
    }
}
