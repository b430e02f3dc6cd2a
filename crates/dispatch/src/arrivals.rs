//! Events of chat platforms, from the moment they are on disk until their fate is decided
//! (`docs/durability.md`). Events are kept in the [`openclaw_journal::journal`]; a platform is told that an
//! event was taken only once it is there.
//!
//! [`desks`] takes events. An event whose sender is not heard is turned away at the [`door`]; every
//! other event goes to the [`desk`] of its conversation. The desk asks the [`gate`] for a verdict
//! on the event, gathers what belongs together, and hands it over as one message ([`handover`]) if
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
mod silent_groups;
#[cfg(test)]
mod tests;
mod trace;
mod whole;

use std::sync::Arc;

use crate::parts::ArrivalParts;
use openclaw_channels::InboundSink;
use openclaw_delivery::outbox::OutboxError;
use openclaw_journal::arrival::{
    ArrivalInsert, ArrivalRecord, Arrivals, Fate, NewArrival, Routed, StoredArrival,
};
use openclaw_journal::journal::Update;

use crate::handle::Dispatch;
use desks::{Desks, Sink};

impl Dispatch {
    /// Returns the sink to which the accounts of chat platforms hand in their events. Takes up the
    /// events that were left undecided at the last stop; called once, before any account is
    /// started.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn inbound(&self) -> Result<Arc<dyn InboundSink>, OutboxError> {
        let desks = Desks::new(self.clone());
        desks.take_up().await?;
        Ok(Arc::new(Sink(desks)))
    }
}

/// Notes the fate of events. Should the disk refuse, the journal tries it again.
async fn decide(parts: &ArrivalParts, numbers: &[i64], fate: Fate) {
    tracing::debug!(?numbers, ?fate, "decided");
    let decided = Update::Decided { numbers: numbers.to_vec(), fate, now: parts.clock.now_ms() };
    if let Err(error) = parts.journal.update(decided).await {
        tracing::warn!(?numbers, %error, "what becomes of events of a platform could not be noted");
    }
}
