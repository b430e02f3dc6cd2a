//! Outbox: deliveries to chat platforms, until each platform has them (`docs/durability.md`). They
//! are kept in the [`openclaw_journal::journal`].
//!
//! [`Outbox`] takes deliveries; accounts of channels that are at work are given to
//! [`Outbox::register`]. [`states`] decides on the consequence of a try, [`lanes`] on the order,
//! and the [`supervisor`] acts. The supervisor exists only while a channel is registered.

mod attempt;
pub mod files;
mod lanes;
mod outage;
mod own;
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
use openclaw_journal::clock::Clock;
use openclaw_journal::delivery::{
    Delivery, DeliveryInsert, DeliveryStatus, LaneKey, ListedDelivery, OpenDelivery,
};
use openclaw_journal::journal::{AccountCounts, Journal, JournalError, NewDelivery, Update};
use openclaw_protocol::{RunId, SessionKey};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use posted::Posted;

use supervisor::{Accounts, Supervisor};

/// Result of [`Outbox::accept`].
#[derive(Debug, Clone, PartialEq)]
pub enum Enqueued {
    /// Stored on disk, synced, and will be sent.
    New,
    /// The id was accepted before; nothing was changed.
    Known(Box<DeliveryStatus>),
    /// A hook keeps it back: nothing of it was kept.
    Withheld,
}

/// Reasons for which a delivery was not taken. No part of it was kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboxError {
    /// The delivery has no id, channel or target.
    #[error("a delivery needs an id, a channel and a target")]
    Unaddressed,
    /// Too many wait; the caller may try again later.
    #[error("too many deliveries wait; connect the channel they are for, or try again later")]
    Full,
    /// The delivery could not be stored.
    #[error("the delivery could not be stored: {0}")]
    Journal(#[from] JournalError),
}

/// Handle to the outbox. Clones are the same one.
#[derive(Clone)]
pub struct Outbox {
    inner: Arc<OutboxInner>,
}

/// State that the handle and the supervisor share.
struct OutboxInner {
    journal: Arc<dyn Journal>,
    clock: Clock,
    accounts: Accounts,
    tasks: TaskTracker,
    /// Cancelled when nothing is begun any more.
    stopping: CancellationToken,
    /// Cancelled when requests under way are dropped.
    kill: CancellationToken,
    tell: OnceLock<TellSent>,
    /// Folder with the copies of files that are sent.
    folder: OnceLock<PathBuf>,
    /// Rises when a try has ended.
    tries: watch::Sender<u64>,
}

/// Callback that hears the outcome of a delivery: its address, its session, its part, and its
/// outcome.
pub type TellSent = Arc<dyn Fn(&Address, Option<&SessionKey>, &Part, Became<'_>) + Send + Sync>;

/// Outcome of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became<'a> {
    /// The platform has it.
    Sent,
    /// The words are sent without the file, for this reason, for people.
    WithoutFile(&'a str),
    /// The delivery was given up for this reason, for people.
    Failed(&'a str),
}

/// Answers that are meant, of those that pause ([`Outbox::withdraw`]).
#[derive(Debug, Clone, Copy)]
pub enum Paced<'a> {
    /// All answers of a session.
    InSession(&'a SessionKey),
    /// The answer of a run.
    OfRun(&'a RunId),
}

impl Outbox {
    /// Outbox without platforms; deliveries wait for [`Self::register`]. No request begins after
    /// `stopping`; those that are under way end at `kill`.
    pub fn new(
        journal: Arc<dyn Journal>,
        clock: Clock,
        stopping: CancellationToken,
        kill: CancellationToken,
    ) -> Self {
        Self {
            inner: Arc::new(OutboxInner {
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

    /// Sets the callback that hears the outcome of deliveries. Called once.
    pub fn tell(&self, tell: TellSent) {
        // Only what starts a dispatcher comes here.
        let _ = self.inner.tell.set(tell);
    }

    /// Waits until nothing is on its way any more; nothing may be registered afterwards.
    pub async fn ended(&self) {
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

    /// Accepts a delivery that has its times, and an address.
    pub async fn accept_new(&self, new: NewDelivery) -> Result<Enqueued, OutboxError> {
        match self.inner.journal.deliver(new).await? {
            DeliveryInsert::New => Ok(Enqueued::New),
            DeliveryInsert::Known(status) => Ok(Enqueued::Known(status)),
            DeliveryInsert::Full => Err(OutboxError::Full),
        }
    }

    /// Registers an account of a channel: from now on it sends the deliveries for it, those that
    /// wait first. Replaces an account that was there.
    pub fn register(&self, channel: &str, account: &str, at_work: Arc<dyn Account>) {
        if self.inner.accounts.put(channel, account, at_work) {
            let supervisor = Supervisor::new(Arc::clone(&self.inner));
            self.inner.tasks.spawn(supervisor.run());
        }
    }

    /// Tries paused deliveries now, because the platform of an account can be reached again.
    pub fn hurry(&self, channel: &str, account: &str) {
        self.inner.accounts.is_back(channel, account);
    }

    /// Notes that an account hears nothing from its platform: until [`Outbox::hurry`] says
    /// otherwise, tries that the platform fails do not count.
    pub fn lost(&self, channel: &str, account: &str) {
        self.inner.accounts.is_lost(channel, account);
    }

    /// Makes deliveries for an account wait until it is registered again. One that is on its way
    /// goes on.
    pub fn unregister(&self, channel: &str, account: &str) {
        self.inner.accounts.remove(channel, account);
    }

    /// Returns the status of a delivery once it is over, or when `patience` is.
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

    /// Returns the status of a delivery; `None` for an unknown one, and one that was forgotten.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn find(&self, id: &str) -> Result<Option<DeliveryStatus>, OutboxError> {
        Ok(self.inner.journal.delivery(id).await?)
    }

    /// Counts the waiting and failed deliveries of an account of a channel.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn counts(&self, channel: &str, account: &str) -> Result<AccountCounts, OutboxError> {
        Ok(self.inner.journal.account_counts(channel, account).await?)
    }

    /// Time for which the platform of an account has taken nothing; `None` if it is up, as far as
    /// is known.
    pub fn down_for(&self, channel: &str, account: &str) -> Option<Duration> {
        self.inner.accounts.down_for(channel, account)
    }

    /// Returns the accounts for which deliveries wait, or are being sent, by channel and account,
    /// with their number.
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

    /// Returns the deliveries that were given up, the newest first, at most `most`.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn failed(&self, most: u32) -> Result<Vec<ListedDelivery>, OutboxError> {
        Ok(self.inner.journal.failed_deliveries(most).await?)
    }

    /// Returns the deliveries that wait, or are being sent, in the order of acceptance.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn waiting(&self) -> Result<Vec<ListedDelivery>, OutboxError> {
        Ok(self.inner.journal.waiting_deliveries().await?)
    }

    /// Tries a waiting delivery now, after those that it waits behind. `false`: none of this id
    /// waits.
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

    /// Tries deliveries again that were given up, each in its place in the order of its
    /// conversation, together with the other parts of the same message that were given up. Returns
    /// the ids of those that are tried again, without those that are not given up, or not any more.
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

    /// Throws away a delivery that was given up, or waits: it is remembered, and not sent any more.
    /// Waits up to `patience` for one that is being sent; if that fails, the delivery is thrown
    /// away then. `false`: there is none of this id, or it is being sent still.
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

    /// Takes back the rest of paced answers that somebody has stopped: everything that is neither
    /// sent nor being sent. Deliveries that wait for any other reason are sent all the same.
    /// Returns the number of deliveries taken back.
    ///
    /// # Errors
    /// When it could not be stored. Some may be taken back nevertheless.
    pub async fn withdraw(&self, of: Paced<'_>) -> Result<usize, OutboxError> {
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

    /// Cleans up after a delivery that was thrown away: removes its file. If it `waited` (the text
    /// is its error), the deliveries behind it go on, and callers that wait for it hear that it is
    /// over.
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
