//! The outbox: what is to be sent to chat platforms, until each platform has it (`docs/durability.md`). A queue of the
//! [`crate::journal`].
//!
//! [`Outbox`] takes deliveries of one kind; a channel gives its accounts' sending sides to [`Outbox::register`].
//! [`states`] decides what follows from a try, [`lanes`] whose turn it is, the [`supervisor`] does it. It is there only
//! while a channel is registered.

mod attempt;
mod changes;
mod delivery;
mod lanes;
mod registry;
mod rows;
mod states;
mod supervisor;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use changes::{doubt, prune};
pub use delivery::{
    Address, Attempt, Deliver, DeliverFuture, Delivery, Found, Parcel, Receipt, Repeats, SendError,
};
pub use registry::KindInUse;
pub(crate) use registry::Outboxes;
pub use rows::Standing;
pub use states::DeliveryState;

use crate::clock::Clock;
use crate::journal::{Journal, JournalError};
use changes::{Accept, Accepted, Discard, Revive};
use supervisor::{Couriers, Supervisor};

/// What came of [`Outbox::accept`].
#[derive(Debug, Clone, PartialEq)]
pub enum Handed {
    /// It is on disk, synced, and will be sent.
    New,
    /// Its id was handed over before; nothing was changed.
    Known(Standing),
}

/// Why a delivery was not taken. Nothing of it was kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboxError {
    /// It has no id, channel or target.
    #[error("a delivery needs an id, a channel and a target")]
    Unaddressed,
    /// Too many wait; the caller may try again later.
    #[error("too many deliveries wait; connect the channel they are for, or try again later")]
    Full,
    /// It could not be stored.
    #[error("the delivery could not be stored: {0}")]
    Journal(#[from] JournalError),
}

/// Handle to the deliveries of one kind. Clones are the same outbox.
pub struct Outbox<P> {
    inner: Arc<Inner<P>>,
}

impl<P> Clone for Outbox<P> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

/// What the handle and the supervisor share.
struct Inner<P> {
    journal: Journal,
    clock: Clock,
    couriers: Couriers<P>,
    tasks: TaskTracker,
    /// Nothing is begun any more.
    stopping: CancellationToken,
    /// What is on its way is let go.
    kill: CancellationToken,
}

impl<P: Parcel> Outbox<P> {
    pub(crate) fn new(
        journal: Journal,
        clock: Clock,
        tasks: TaskTracker,
        stopping: CancellationToken,
        kill: CancellationToken,
    ) -> Self {
        Self {
            inner: Arc::new(Inner { journal, clock, couriers: Couriers::default(), tasks, stopping, kill }),
        }
    }

    /// Takes a delivery. When this returns [`Handed::New`] it is on disk and will be sent: in the order of acceptance
    /// within its conversation, as soon as its channel is registered.
    ///
    /// # Errors
    /// See [`OutboxError`]; nothing was kept.
    pub async fn accept(&self, delivery: Delivery<P>) -> Result<Handed, OutboxError> {
        let address = &delivery.address;
        if [&delivery.id, &address.channel, &address.target].iter().any(|text| text.trim().is_empty()) {
            return Err(OutboxError::Unaddressed);
        }
        let accept = Accept { delivery, now: self.inner.clock.now_ms() };
        match self.inner.journal.change(accept).await? {
            Accepted::New => {
                self.inner.couriers.wake();
                Ok(Handed::New)
            }
            Accepted::Known(standing) => Ok(Handed::Known(standing)),
            Accepted::Full => Err(OutboxError::Full),
        }
    }

    /// From now on deliveries for an account of a channel are sent through `courier`, those that wait first. It takes the
    /// place of one that was there.
    pub fn register(&self, channel: &str, account: &str, courier: Arc<dyn Deliver<P>>) {
        if self.inner.couriers.put(channel, account, courier) {
            let supervisor = Supervisor::new(Arc::clone(&self.inner));
            self.inner.tasks.spawn(supervisor.run());
        }
    }

    /// Deliveries for an account wait until it is registered again. One that is on its way goes on.
    pub fn unregister(&self, channel: &str, account: &str) {
        self.inner.couriers.remove(channel, account);
    }

    /// How a delivery stands; `None` for one nobody knows (any more).
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn find(&self, id: &str) -> Result<Option<Standing>, OutboxError> {
        let id = id.to_owned();
        Ok(self.inner.journal.read(move |db| rows::standing(db, &id)).await?)
    }

    /// Deliveries that were given up, the newest first, at most `most`.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn failed(&self, most: u32) -> Result<Vec<Standing>, OutboxError> {
        Ok(self.inner.journal.read(move |db| rows::failed(db, P::KIND, most)).await?)
    }

    /// Tries a delivery again that was given up. `false`: there is none of this id.
    ///
    /// # Errors
    /// When it could not be stored.
    pub async fn revive(&self, id: &str) -> Result<bool, OutboxError> {
        let revive = Revive { id: id.to_owned(), now: self.inner.clock.now_ms() };
        let revived = self.inner.journal.change(revive).await?;
        if revived {
            self.inner.couriers.rescan();
        }
        Ok(revived)
    }

    /// Forgets a delivery that was given up. `false`: there is none of this id.
    ///
    /// # Errors
    /// When it could not be stored.
    pub async fn discard(&self, id: &str) -> Result<bool, OutboxError> {
        Ok(self.inner.journal.change(Discard { id: id.to_owned() }).await?)
    }
}
