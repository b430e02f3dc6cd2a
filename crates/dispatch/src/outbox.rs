//! The outbox: what is to be sent to chat platforms, until each platform has it (`docs/durability.md`). It is kept in the
//! [`crate::journal`].
//!
//! [`Outbox`] takes deliveries; accounts of channels that are at work are given to [`Outbox::register`].
//! [`states`] decides what follows from a try, [`lanes`] whose turn it is, the [`supervisor`] does it. It is there only
//! while a channel is registered.

mod attempt;
mod delivery;
pub(crate) mod files;
mod lanes;
mod outage;
mod posted;
mod states;
mod supervisor;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use openclaw_channels::{Account, Address, Part};
use openclaw_protocol::{RunId, SessionKey};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use delivery::{Delivery, DeliveryStatus, ListedDelivery};
pub(crate) use lanes::{LaneKey, OpenDelivery};
pub use posted::Posted;
#[cfg(test)]
pub(crate) use states::Retry;
pub use states::{DeliveryFailure, DeliveryState};
pub(crate) use states::{Hold, Verdict};

use crate::clock::Clock;
use crate::journal::{AccountCounts, Journal, JournalError, NewDelivery, Update};
use supervisor::{Accounts, Supervisor};

/// What came of [`Outbox::accept`].
#[derive(Debug, Clone, PartialEq)]
pub enum Enqueued {
    /// It is on disk, synced, and will be sent.
    New,
    /// Its id was accepted before; nothing was changed.
    Known(Box<DeliveryStatus>),
    /// A hook keeps it back: nothing of it was kept.
    Withheld,
}

/// What came of storing a delivery.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DeliveryInsert {
    /// It is stored.
    New,
    /// Its id was there already.
    Known(Box<DeliveryStatus>),
    /// Too many wait.
    Full,
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

/// Handle to the outbox. Clones are the same one.
#[derive(Clone)]
pub struct Outbox {
    inner: Arc<Inner>,
}

/// What the handle and the supervisor share.
struct Inner {
    journal: Arc<dyn Journal>,
    clock: Clock,
    accounts: Accounts,
    tasks: TaskTracker,
    /// Nothing is begun any more.
    stopping: CancellationToken,
    /// What is on its way is dropped.
    kill: CancellationToken,
    tell: OnceLock<TellSent>,
    /// Where the copies of files are that are sent.
    folder: OnceLock<PathBuf>,
    /// Rises when a try has ended.
    tries: watch::Sender<u64>,
}

/// Who hears what became of a delivery: where it went, its session, what was to be sent, and what came of that.
pub(crate) type TellSent = Arc<dyn Fn(&Address, Option<&SessionKey>, &Part, Became<'_>) + Send + Sync>;

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Became<'a> {
    /// The platform has it.
    Sent,
    /// Its words are sent without its file; this is why, for people.
    WithoutFile(&'a str),
    /// It was given up; this is why, for people.
    Failed(&'a str),
}

/// Whose answers are meant of those that pause ([`Outbox::withdraw`]).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paced<'a> {
    /// All of a session's.
    InSession(&'a SessionKey),
    /// That of a run.
    OfRun(&'a RunId),
}

impl Outbox {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        clock: Clock,
        stopping: CancellationToken,
        kill: CancellationToken,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                journal,
                clock,
                accounts: Accounts::default(),
                tasks: TaskTracker::new(),
                stopping,
                kill,
                tell: OnceLock::new(),
                folder: OnceLock::new(),
                tries: watch::Sender::new(0),
            }),
        }
    }

    /// From now on `tell` hears what becomes of deliveries. Once.
    pub(crate) fn tell(&self, tell: TellSent) {
        // Only what starts a dispatcher comes here.
        let _ = self.inner.tell.set(tell);
    }

    /// Waits until nothing is on its way any more; nothing may be registered afterwards.
    pub(crate) async fn ended(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// Takes a delivery. When this returns [`Enqueued::New`] it is on disk and will be sent: in the order of acceptance
    /// within its conversation, as soon as its channel is registered.
    ///
    /// # Errors
    /// See [`OutboxError`]; nothing was kept.
    pub async fn accept(&self, delivery: Delivery) -> Result<Enqueued, OutboxError> {
        let address = &delivery.address;
        if [&delivery.id, &address.channel, &address.target].iter().any(|text| text.trim().is_empty()) {
            return Err(OutboxError::Unaddressed);
        }
        let now = self.inner.clock.now_ms();
        self.accept_new(NewDelivery { delivery, accepted_at: now, not_before: now }).await
    }

    /// The same of one that has its times, and an address.
    pub(crate) async fn accept_new(&self, new: NewDelivery) -> Result<Enqueued, OutboxError> {
        match self.inner.journal.deliver(new).await? {
            DeliveryInsert::New => {
                self.inner.accounts.wake();
                Ok(Enqueued::New)
            }
            DeliveryInsert::Known(status) => Ok(Enqueued::Known(status)),
            DeliveryInsert::Full => Err(OutboxError::Full),
        }
    }

    /// Deliveries were stored otherwise than by [`Outbox::accept`].
    pub(crate) fn wake(&self) {
        self.inner.accounts.wake();
    }

    /// From now on deliveries for an account of a channel are sent by it, those that wait first. It takes the place of one
    /// that was there.
    pub fn register(&self, channel: &str, account: &str, at_work: Arc<dyn Account>) {
        if self.inner.accounts.put(channel, account, at_work) {
            let supervisor = Supervisor::new(Arc::clone(&self.inner));
            self.inner.tasks.spawn(supervisor.run());
        }
    }

    /// The platform of an account can be reached again: what pauses since it could not is tried now.
    pub fn hurry(&self, channel: &str, account: &str) {
        self.inner.accounts.is_back(channel, account);
    }

    /// An account hears nothing from its platform: until [`Outbox::hurry`] says otherwise, tries that the platform fails do not count.
    pub fn lost(&self, channel: &str, account: &str) {
        self.inner.accounts.is_lost(channel, account);
    }

    /// Deliveries for an account wait until it is registered again. One that is on its way goes on.
    pub fn unregister(&self, channel: &str, account: &str) {
        self.inner.accounts.remove(channel, account);
    }

    /// How a delivery stands once it is over, or when `patience` is.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn outcome(&self, id: &str, patience: Duration) -> Result<Option<DeliveryStatus>, OutboxError> {
        let mut tries = self.inner.tries.subscribe();
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let status = self.find(id).await?;
            let is_open = status.as_ref().is_some_and(|status| status.state.is_open());
            if !is_open || !matches!(tokio::time::timeout_at(deadline, tries.changed()).await, Ok(Ok(()))) {
                return Ok(status);
            }
        }
    }

    /// How a delivery stands; `None` for an unknown one, and one that was forgotten.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn find(&self, id: &str) -> Result<Option<DeliveryStatus>, OutboxError> {
        Ok(self.inner.journal.delivery(id).await?)
    }

    /// What waits for an account of a channel, and what was given up.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn counts(&self, channel: &str, account: &str) -> Result<AccountCounts, OutboxError> {
        Ok(self.inner.journal.account_counts(channel, account).await?)
    }

    /// How long the platform of an account has taken nothing; `None` where it does, as far as is known.
    pub fn down_for(&self, channel: &str, account: &str) -> Option<Duration> {
        self.inner.accounts.down_for(channel, account)
    }

    /// The accounts for which something waits, or is being sent, by channel and account, and how much it is.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn waiting_accounts(&self) -> Result<BTreeMap<(String, String), u64>, OutboxError> {
        let mut accounts = BTreeMap::new();
        for OpenDelivery { lane, .. } in self.inner.journal.open_deliveries(0).await? {
            *accounts.entry((lane.channel, lane.account)).or_default() += 1;
        }
        Ok(accounts)
    }

    /// Deliveries that were given up, the newest first, at most `most`.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn failed(&self, most: u32) -> Result<Vec<ListedDelivery>, OutboxError> {
        Ok(self.inner.journal.failed_deliveries(most).await?)
    }

    /// Deliveries that wait, or are being sent, in the order of acceptance.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn waiting(&self) -> Result<Vec<ListedDelivery>, OutboxError> {
        Ok(self.inner.journal.waiting_deliveries().await?)
    }

    /// Tries a delivery now that waits, and before it what it waits behind. `false`: none of this id waits.
    ///
    /// # Errors
    /// When it could not be stored.
    pub async fn hasten(&self, id: &str) -> Result<bool, OutboxError> {
        let Some(status) = self.find(id).await? else { return Ok(false) };
        let hasten = Update::Hasten { id: id.to_owned(), now: self.inner.clock.now_ms() };
        let waits = self.inner.journal.update(hasten).await?;
        if waits {
            tracing::info!(delivery = id, "what waits is tried now, by hand");
            self.inner.accounts.ask_again(&status.address);
            self.inner.accounts.hasten(LaneKey::from(&status.address));
        }
        Ok(waits)
    }

    /// Tries deliveries again that were given up, each in its place in the order of its conversation, and with it the other parts of the
    /// same message that were given up. Gives the ids of those that are tried again; not of one that is
    /// not given up, or not any more.
    ///
    /// # Errors
    /// When they could not be stored. Some may be tried again nevertheless.
    pub async fn revive(&self, ids: &[String]) -> Result<Vec<String>, OutboxError> {
        let failed: Vec<DeliveryStatus> =
            self.failed(u32::MAX).await?.into_iter().rev().map(|failed| failed.status).collect();
        let asked: Vec<&DeliveryStatus> = failed.iter().filter(|one| ids.contains(&one.id)).collect();
        let is_meant = |one: &&DeliveryStatus| asked.iter().any(|asked| asked.goes_with(one));
        let mut revived = Vec::new();
        // The oldest first: it is on its way before what stands behind it.
        for DeliveryStatus { id, .. } in failed.iter().filter(is_meant) {
            let revive = Update::Revive { id: id.clone(), now: self.inner.clock.now_ms() };
            if self.inner.journal.update(revive).await? {
                revived.push(id.clone());
            }
        }
        if !revived.is_empty() {
            tracing::info!(deliveries = ?revived, "what was given up is tried again");
            self.inner.accounts.rescan();
        }
        Ok(revived)
    }

    /// Throws a delivery away that was given up, or waits: it is remembered, and not sent any more. One that is being sent is waited for, for as
    /// long as `patience`; what is left of it then is thrown away. `false`: there is none of this id, or it is being sent still.
    ///
    /// # Errors
    /// When it could not be stored.
    pub async fn discard(&self, id: &str, patience: Duration) -> Result<bool, OutboxError> {
        let deadline = tokio::time::Instant::now() + patience;
        let mut tries = self.inner.tries.subscribe();
        loop {
            let is_open = self.find(id).await?.is_some_and(|status| status.state.is_open());
            let listed = if is_open { self.waiting().await? } else { self.failed(u32::MAX).await? };
            let listed = listed.into_iter().find(|one| one.status.id == id);
            let discard = Update::Discard { id: id.to_owned(), now: self.inner.clock.now_ms() };
            if self.inner.journal.update(discard).await? {
                if let Some(one) = listed {
                    tracing::info!(delivery = id, "it is thrown away, by hand");
                    self.on_discarded(&one, is_open.then_some("it was thrown away by hand")).await;
                }
                return Ok(true);
            }
            if !is_open || !matches!(tokio::time::timeout_at(deadline, tries.changed()).await, Ok(Ok(()))) {
                return Ok(false);
            }
        }
    }

    /// Takes back what is left of answers before which a pause is being made, because somebody has stopped them: all that is not sent, and is not
    /// being sent. What waits for any other reason is said all the same. Gives how many that were.
    ///
    /// # Errors
    /// When it could not be stored. Some may be taken back nevertheless.
    pub(crate) async fn withdraw(&self, of: Paced<'_>) -> Result<usize, OutboxError> {
        // Almost always there is none.
        if !self.inner.journal.open_deliveries(0).await?.iter().any(|open| open.is_paced) {
            return Ok(0);
        }
        let (now, waiting) = (self.inner.clock.now_ms(), self.waiting().await?);
        let is_meant = |status: &DeliveryStatus| match of {
            Paced::InSession(key) => status.session_key.as_ref() == Some(key),
            Paced::OfRun(run_id) => Delivery::message_of(&status.id) == run_id.as_str(),
        };
        let pauses = |status: &DeliveryStatus| status.is_paced() && status.next_at.is_some_and(|at| at > now);
        let paced: HashSet<&str> = waiting
            .iter()
            .filter(|one| is_meant(&one.status) && pauses(&one.status))
            .map(|one| Delivery::message_of(&one.status.id))
            .collect();
        let mut withdrawn = 0;
        for one in waiting.iter().filter(|one| one.status.is_of_answer()) {
            let id = &one.status.id;
            if !paced.contains(Delivery::message_of(id)) {
                continue;
            }
            let discard = Update::Discard { id: id.clone(), now };
            if self.inner.journal.update(discard).await? {
                tracing::info!(delivery = id, "what a stopped answer had left is not sent");
                self.on_discarded(one, Some("it was stopped before it was sent")).await;
                withdrawn += 1;
            }
        }
        Ok(withdrawn)
    }

    /// Its file goes. Where it `waited`, for this to become of it, what stands behind it goes on, and who waits for it hears that it is over.
    async fn on_discarded(&self, one: &ListedDelivery, waited: Option<&str>) {
        if let Some(file) = one.part.as_ref().and_then(files::file_of) {
            self.inner.remove_file(file).await;
        }
        let Some(why) = waited else { return };
        let DeliveryStatus { address, session_key, .. } = &one.status;
        if let (Some(tell), Some(part)) = (self.inner.tell.get(), &one.part) {
            tell(address, session_key.as_ref(), part, Became::Failed(why));
        }
        self.inner.accounts.hasten(LaneKey::from(address));
        self.inner.tries.send_modify(|count| *count += 1);
    }
}
