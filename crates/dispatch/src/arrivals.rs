//! What chat platforms bring, from the moment it is on disk until it is decided what becomes of it (`docs/durability.md`). It is
//! kept in the [`crate::journal`]; a platform is told that an event was taken only when it is there.
//!
//! [`desks`] takes events. Who is not heard is turned away at the [`door`]; every other goes to the [`desk`] of its conversation. That asks
//! the [`gate`] what it is and what may come of it, gathers what belongs together, and hands it over as one message ([`handover`]) where
//! the [`whole`] of it speaks to the agent.

mod ask;
mod backlog;
mod desk;
mod desks;
mod door;
mod gate;
mod handover;
mod moved;
pub(crate) mod offline;
mod press;
mod record;
mod silent_groups;
#[cfg(test)]
mod tests;
mod trace;
mod whole;

use std::sync::Arc;

use openclaw_channels::InboundSink;

pub use moved::{FollowGroup, MovedGroup};
pub(crate) use record::{ArrivalInsert, Arrivals, NewArrival, StoredArrival};
pub use record::{ArrivalRecord, Fate, Routed};
pub use silent_groups::SilentGroup;
pub(crate) use silent_groups::SilentGroups;

use crate::handle::Dispatch;
use crate::journal::Update;
use crate::outbox::OutboxError;
use crate::shared::Shared;
use desks::{Desks, Sink};

impl Dispatch {
    /// Where the accounts of chat platforms hand in what they bring. Takes up what was brought before the last stop; asked for once,
    /// before any account is started.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn inbound(&self) -> Result<Arc<dyn InboundSink>, OutboxError> {
        let desks = Desks::new(self.clone());
        desks.take_up().await?;
        Ok(Arc::new(Sink(desks)))
    }
}

/// Notes what becomes of events. Should the disk refuse, the journal tries it again.
async fn decide(shared: &Shared, numbers: &[i64], fate: Fate) {
    tracing::debug!(?numbers, ?fate, "decided");
    let decided = Update::Decided { numbers: numbers.to_vec(), fate, now: shared.clock.now_ms() };
    if let Err(error) = shared.journal.update(decided).await {
        tracing::warn!(?numbers, %error, "what becomes of events of a platform could not be noted");
    }
}
