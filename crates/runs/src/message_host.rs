//! The gateway as actions on chat platforms see it.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_channels::Address;
use openclaw_delivery::outbox::Enqueued;
use openclaw_journal::delivery::Delivery;
use openclaw_runtime::messages::{DeliverError, MessageHost};
use openclaw_runtime::setup::Deps;
use openclaw_runtime::shared::SharedState;
use openclaw_sessions::SessionKey;

use crate::runner::Runner;

impl MessageHost for Runner {
    fn deps(&self) -> &Deps {
        &self.deps
    }

    fn shared(&self) -> &SharedState {
        &self.shared
    }

    fn route_of<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Option<Address>> {
        Self::route_of(self, key).boxed()
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<Enqueued, DeliverError>> {
        Self::deliver(self, delivery).boxed()
    }
}
