//! A while in which the platform is down: from somewhere in one life of the gateway until after the next one has started.

use std::time::Duration;

use rand::Rng as _;
use rand::rngs::StdRng;

use super::steps::KillStep;
use super::world::Counts;
use crate::telegram::{Moment, Outage, TelegramServer};

/// Time to wait for updates, so that their effects meet the outage.
const UPDATES: Duration = Duration::from_millis(500);
/// Time that the gateway gets to come back to the platform.
const RETURN: Duration = Duration::from_secs(20);

pub(super) struct Downtime {
    kind: Outage,
    /// Time between the updates and the outage.
    lead: Duration,
    /// Time that the outage lasts from the start of the next life on.
    rest: Duration,
}

impl Downtime {
    /// Outage for one in six lives, of those that do not end with something that the platform does.
    pub(super) fn by_chance(step: KillStep, chance: &mut StdRng) -> Option<Self> {
        if step.is_of_platform() || !chance.random_bool(1.0 / 6.0) {
            return None;
        }
        Some(Self {
            kind: if chance.random_bool(0.5) { Outage::Refuses } else { Outage::BadGateway },
            lead: Duration::from_millis(chance.random_range(0..60)),
            rest: Duration::from_millis(chance.random_range(0..1_500)),
        })
    }

    pub(super) async fn begin(&self, server: &TelegramServer, before: &Counts) {
        let brought = server.counted(Moment::Brought, before.brought + 1);
        // There may be none.
        let _ = tokio::time::timeout(UPDATES, brought).await;
        tokio::time::sleep(self.lead).await;
        server.goes_down(self.kind).await;
    }

    pub(super) async fn end(&self, server: &TelegramServer) {
        tokio::time::sleep(self.rest).await;
        let polls = server.count(Moment::Called("getUpdates"));
        server.comes_back();
        // A gateway that does not come back is found at the end.
        let _ = tokio::time::timeout(RETURN, server.counted(Moment::Called("getUpdates"), polls + 1)).await;
    }
}
