//! A while in which the platform is down: from somewhere in one life of the gateway until after the next one has started.

use std::time::Duration;

use rand::Rng as _;
use rand::rngs::StdRng;

use super::steps::Step;
use super::world::Counts;
use crate::telegram::{Moment, Outage, TelegramServer};

/// How long updates are waited for: what they lead to is to meet the outage.
const UPDATES: Duration = Duration::from_millis(500);
/// How long the gateway gets to come back to the platform.
const RETURN: Duration = Duration::from_secs(20);

pub(super) struct Downtime {
    kind: Outage,
    /// Between the updates and the outage.
    lead: Duration,
    /// From the start of the next life on.
    rest: Duration,
}

impl Downtime {
    /// One in six lives has one, of those that do not end with something that the platform does.
    pub(super) fn by_chance(step: Step, chance: &mut StdRng) -> Option<Self> {
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
        // What it does not come back for is found at the end.
        let _ = tokio::time::timeout(RETURN, server.counted(Moment::Called("getUpdates"), polls + 1)).await;
    }
}
