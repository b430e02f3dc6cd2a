//! The task that brings deliveries on their way: a thin driver of [`Lanes`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{Account, Address, SendError};
use openclaw_journal::delivery::LaneKey;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::attempt::{self, AttemptEnd};
use super::lanes::{Lanes, SettledAttempt};
use super::outage::{Outage, Platform, ProbeRank};
use super::{OutboxInner, states};

/// Deliveries on their way at the same time.
const MAX_CONCURRENT: usize = 32;
/// Pause when the database can't be read.
const DISK_PAUSE: Duration = Duration::from_secs(5);

/// The accounts that are connected. Leaf data: nothing is awaited under its lock.
pub(super) struct Accounts {
    state: Mutex<Registered>,
    changed: Notify,
}

struct Registered {
    /// Accounts, by channel and account.
    by_name: HashMap<(String, String), Arc<dyn Account>>,
    /// True if the supervisor is there.
    running: bool,
    /// True if an old delivery is open again.
    rescan: bool,
    /// Accounts whose platform can be reached again.
    back: Vec<(String, String)>,
    /// Conversations that a person wants tried now.
    hastened: Vec<LaneKey>,
    /// Outages of the connected accounts, by channel and account.
    outages: HashMap<(String, String), Outage>,
}

impl Default for Accounts {
    fn default() -> Self {
        let state = Registered {
            by_name: HashMap::new(),
            running: false,
            rescan: false,
            back: Vec::new(),
            hastened: Vec::new(),
            outages: HashMap::new(),
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }
}

impl Accounts {
    /// Adds an account. `true`: the caller has to start the supervisor.
    pub(super) fn put(&self, channel: &str, account: &str, at_work: Arc<dyn Account>) -> bool {
        let mut state = self.state.lock();
        let name = (channel.to_owned(), account.to_owned());
        state.outages.insert(name.clone(), Outage::default());
        state.by_name.insert(name, at_work);
        let start = !std::mem::replace(&mut state.running, true);
        drop(state);
        self.wake();
        start
    }

    pub(super) fn remove(&self, channel: &str, account: &str) {
        let name = (channel.to_owned(), account.to_owned());
        let mut state = self.state.lock();
        state.by_name.remove(&name);
        state.outages.remove(&name);
        drop(state);
        self.wake();
    }

    /// Wakes the supervisor, as there is something to look at.
    fn wake(&self) {
        self.changed.notify_one();
    }

    /// Notes that an old delivery is open again.
    pub(super) fn rescan(&self) {
        self.state.lock().rescan = true;
        self.wake();
    }

    /// Lets a conversation be tried now: a person wants it, or has thrown away the delivery that it
    /// waited for.
    pub(super) fn hasten(&self, lane: LaneKey) {
        self.state.lock().hastened.push(lane);
        self.wake();
    }

    /// Lets this conversation probe the platform next, because a person wants to know whether it
    /// works again.
    pub(super) fn ask_again(&self, at: &Address) {
        self.with_outage(&at.channel, &at.account, |outage| outage.hasten(&at.target));
    }

    /// Notes that the platform of an account can be reached again.
    pub(super) fn is_back(&self, channel: &str, account: &str) {
        let name = (channel.to_owned(), account.to_owned());
        let mut state = self.state.lock();
        if let Some(outage) = state.outages.get_mut(&name) {
            outage.back();
        }
        state.back.push(name);
        drop(state);
        self.wake();
    }

    /// Notes that an account hears nothing from its platform.
    pub(super) fn is_lost(&self, channel: &str, account: &str) {
        self.with_outage(channel, account, Outage::lost);
    }

    /// Time for which the platform of an account has been down.
    pub(super) fn down_for(&self, channel: &str, account: &str) -> Option<Duration> {
        let since = self.with_outage(channel, account, |outage| outage.since()).flatten();
        since.map(|since| since.elapsed())
    }

    /// Notes the result of a try.
    pub(super) fn on_tried<T>(&self, at: &Address, came: &Result<T, SendError>) -> Platform {
        let now = Instant::now();
        let judged = self.with_outage(&at.channel, &at.account, |outage| {
            let (was_down, next) = (outage.is_down(), outage.next());
            let platform = outage.on_tried(&at.target, came, now);
            let waits = outage.next().filter(|_| platform == Platform::Down && outage.next() != next);
            (platform, was_down && !outage.is_down(), waits)
        });
        let (platform, is_back, waits) = judged.unwrap_or((Platform::Works, false, None));
        if let Some(until) = waits {
            let (channel, account, again_in) = (&at.channel, &at.account, until - now);
            tracing::info!(channel, account, ?again_in, "the platform is down: what is to be sent waits");
        }
        if is_back {
            self.state.lock().back.push((at.channel.clone(), at.account.clone()));
            self.wake();
        }
        platform
    }

    /// Marks the delivery as being tried, if it may be tried now; false if not.
    fn begin(&self, lane: &LaneKey, number: i64) -> bool {
        let now = Instant::now();
        let may_try = |outage: &mut Outage| outage.may_try(&lane.target, number, now);
        self.with_outage(&lane.channel, &lane.account, may_try).unwrap_or_default()
    }

    /// Returns the rank of a conversation among those of its account; `None` if the account is not
    /// connected.
    fn rank(&self, lane: &LaneKey) -> Option<ProbeRank> {
        self.with_outage(&lane.channel, &lane.account, |outage| outage.rank(&lane.target))
    }

    fn ended(&self, lane: &LaneKey, number: i64) {
        self.with_outage(&lane.channel, &lane.account, |outage| outage.ended(number));
    }

    /// Number of times the platform of a conversation could be reached again so far.
    fn returns(&self, lane: &LaneKey) -> u64 {
        self.with_outage(&lane.channel, &lane.account, |outage| outage.returns()).unwrap_or_default()
    }

    /// Time at which something may be tried in a conversation. `None`: when something else has
    /// happened.
    fn not_before(&self, lane: &LaneKey) -> Option<Instant> {
        let now = Instant::now();
        self.with_outage(&lane.channel, &lane.account, |outage| outage.not_before(&lane.target, now))
            .flatten()
    }

    /// `None` if the account is not connected.
    fn with_outage<T>(&self, channel: &str, account: &str, act: impl FnOnce(&mut Outage) -> T) -> Option<T> {
        let name = (channel.to_owned(), account.to_owned());
        self.state.lock().outages.get_mut(&name).map(act)
    }

    fn take_back(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.state.lock().back)
    }

    fn take_hastened(&self) -> Vec<LaneKey> {
        std::mem::take(&mut self.state.lock().hastened)
    }

    fn of(&self, lane: &LaneKey) -> Option<Arc<dyn Account>> {
        self.state.lock().by_name.get(&(lane.channel.clone(), lane.account.clone())).cloned()
    }

    fn take_rescan(&self) -> bool {
        std::mem::take(&mut self.state.lock().rescan)
    }

    /// True if the supervisor may end because no account is connected; then marks it as not
    /// running.
    fn may_end(&self) -> bool {
        let mut state = self.state.lock();
        state.running = !state.by_name.is_empty();
        !state.running
    }
}

pub(super) struct Supervisor {
    inner: Arc<OutboxInner>,
    lanes: Lanes,
    tasks: JoinSet<AttemptEnd>,
    /// Delivery that each task tries.
    tried: HashMap<Id, Tried>,
    /// The last number that was read.
    seen: i64,
    /// Time of the next read after the disk refused.
    reread: Option<Instant>,
    /// Notified when deliveries were stored, by any caller.
    stored: watch::Receiver<()>,
}

/// A delivery that is being tried.
struct Tried {
    lane: LaneKey,
    number: i64,
    /// Number of times its platform could be reached again by then.
    returns: u64,
}

enum OutboxStep {
    Look,
    Ended(Result<(Id, AttemptEnd), JoinError>),
    Due,
    Stop,
}

impl Supervisor {
    pub(super) fn new(inner: Arc<OutboxInner>) -> Self {
        let (tasks, tried) = (JoinSet::new(), HashMap::new());
        let stored = inner.journal.deliveries_stored();
        Self { inner, lanes: Lanes::default(), tasks, tried, seen: 0, reread: None, stored }
    }

    /// Works until no account is connected any more, or the gateway stops.
    pub(super) async fn run(mut self) {
        self.read().await;
        loop {
            self.start();
            match self.next().await {
                OutboxStep::Look => self.read().await,
                OutboxStep::Ended(ended) => self.on_ended(ended).await,
                OutboxStep::Due if self.reread.is_some_and(|at| at <= Instant::now()) => self.read().await,
                OutboxStep::Due => {}
                OutboxStep::Stop => break,
            }
            if self.tasks.is_empty() && self.inner.accounts.may_end() {
                return;
            }
        }
        self.drain().await;
    }

    async fn next(&mut self) -> OutboxStep {
        let inner = Arc::clone(&self.inner);
        let full = self.tasks.len() >= MAX_CONCURRENT;
        let not_before = |lane: &LaneKey| inner.accounts.not_before(lane).filter(|_| !full);
        let due = self.lanes.next_due(not_before).into_iter().chain(self.reread).min();
        tokio::select! { biased;
            () = inner.stopping.cancelled() => OutboxStep::Stop,
            Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => OutboxStep::Ended(ended),
            () = inner.accounts.changed.notified() => OutboxStep::Look,
            Ok(()) = self.stored.changed() => OutboxStep::Look,
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => OutboxStep::Due,
        }
    }

    /// Reads the deliveries that were accepted since the last read. One writer numbers the rows, so
    /// that a higher number came later.
    async fn read(&mut self) {
        if self.inner.accounts.take_rescan() {
            self.seen = 0;
        }
        for (channel, account) in self.inner.accounts.take_back() {
            self.lanes.hurry(Instant::now(), |lane| lane.channel == channel && lane.account == account);
        }
        for lane in self.inner.accounts.take_hastened() {
            self.lanes.hasten(Instant::now(), &lane);
        }
        let seen = self.seen;
        match self.inner.journal.open_deliveries(seen).await {
            Ok(found) => {
                self.reread = None;
                let (now, wall) = (Instant::now(), self.inner.clock.now_ms());
                for delivery in found {
                    let pause = u64::try_from(delivery.next_at.saturating_sub(wall)).unwrap_or(0);
                    let pause = Duration::from_millis(pause).min(states::MAX_PAUSE);
                    self.seen = self.seen.max(delivery.number);
                    self.lanes.add(delivery, now + pause);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the outbox could not be read");
                self.reread = Some(Instant::now() + DISK_PAUSE);
            }
        }
    }

    fn start(&mut self) {
        let inner = Arc::clone(&self.inner);
        let room = MAX_CONCURRENT.saturating_sub(self.tasks.len());
        let accounts = &inner.accounts;
        let rank = |lane: &LaneKey| accounts.rank(lane);
        let begun = self.lanes.start(Instant::now(), room, rank, |lane, number| accounts.begin(lane, number));
        for (lane, number) in begun {
            let Some(account) = inner.accounts.of(&lane) else {
                self.lanes.settle(&lane, SettledAttempt::Retry(Instant::now()));
                continue;
            };
            let shared = Arc::clone(&inner);
            let task =
                self.tasks.spawn(Box::pin(async move { attempt::attempt(&shared, number, account).await }));
            let returns = inner.accounts.returns(&lane);
            self.tried.insert(task.id(), Tried { lane, number, returns });
        }
    }

    async fn on_ended(&mut self, ended: Result<(Id, AttemptEnd), JoinError>) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some(Tried { lane, number, returns }) = self.tried.remove(&id) else { return };
        let ended = match ended {
            Ok((_, ended)) => ended,
            Err(error) => {
                tracing::error!(channel = lane.channel, %error, "a channel panicked while it sent");
                attempt::panicked(&self.inner, number).await
            }
        };
        let settled = match ended {
            AttemptEnd::Over => SettledAttempt::Over,
            AttemptEnd::Retry(pause) => SettledAttempt::Retry(Instant::now() + pause),
            // The try met an outage that has ended while the result was being stored.
            AttemptEnd::Pause(_) if self.inner.accounts.returns(&lane) != returns => {
                SettledAttempt::Pause(Instant::now())
            }
            AttemptEnd::Pause(pause) => SettledAttempt::Pause(Instant::now() + pause),
        };
        self.lanes.settle(&lane, settled);
        self.inner.accounts.ended(&lane, number);
    }

    /// Waits for deliveries on their way until the deadline of the shutdown; then leaves them as a
    /// crash would.
    async fn drain(mut self) {
        let kill = self.inner.kill.clone();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        tokio::select! { biased;
            () = all => {}
            () = kill.cancelled() => {}
        }
    }
}
