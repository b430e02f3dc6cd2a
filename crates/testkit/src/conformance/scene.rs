//! Accounts at work on a fake platform, and an inbox that keeps what it is given.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openclaw_channels::{
    Account, AccountIo, AccountStatus, Address, ChannelFuture, Exit, GuessThrottle, Inbound, InboundEvent,
    InboundSink, Knock, NotTaken, SecretGiven, StatusReport,
};
use openclaw_config::Config;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{ACCOUNTS, Fixture};

/// Time limit of a wait.
pub(super) const DEADLINE: Duration = Duration::from_secs(100);

/// A platform, its accounts and a directory.
pub struct ConformanceScene<F> {
    /// The fake.
    pub fixture: F,
    /// The state directory.
    pub dir: tempfile::TempDir,
    /// Config that both accounts are made from.
    pub config: Arc<Config>,
}

impl<F: Fixture> ConformanceScene<F> {
    /// Starts the fake.
    pub async fn new() -> Self {
        let fixture = F::start().await;
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("a directory: {error}"));
        let config = fixture.config(dir.path());
        Self { fixture, dir, config }
    }

    /// An account, ready to be started.
    pub fn account(&self, id: &str) -> Arc<dyn Account> {
        self.fixture
            .channel()
            .account(&self.config, id)
            .unwrap_or_else(|why| panic!("account {id} can't be made: {why}"))
    }

    /// Starts an account.
    pub fn start(&self, id: &str, inbox: &Arc<Inbox>) -> AccountLife {
        AccountLife::begin(self.account(id), self.dir.path(), inbox)
    }

    /// The first account.
    pub fn first(&self) -> Arc<dyn Account> {
        self.account(ACCOUNTS[0])
    }
}

/// Guesses as often as one likes.
struct Unthrottled;

impl GuessThrottle for Unthrottled {
    fn count(&self, _knock: Knock<'_>, _given: SecretGiven) -> Result<(), Duration> {
        Ok(())
    }
}

/// An account at work. Dropped, it ends as a killed process does.
pub struct AccountLife {
    /// Status that the account reports.
    pub status: StatusReport,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Exit>,
}

impl AccountLife {
    fn begin(account: Arc<dyn Account>, dir: &Path, inbox: &Arc<Inbox>) -> Self {
        let (status, stop) = (StatusReport::default(), CancellationToken::new());
        let io = AccountIo {
            inbox: Arc::clone(inbox) as Arc<dyn InboundSink>,
            status: status.clone(),
            state_dir: Arc::from(dir),
            stop: stop.clone(),
            guesses: Arc::new(Unthrottled),
        };
        let task = tokio::spawn(async move { account.run(io).await });
        Self { status, stop, task }
    }

    /// Tells it to stop and waits for that.
    pub async fn stop(mut self) -> Exit {
        self.stop.cancel();
        self.ended().await
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) -> Exit {
        let ended = tokio::time::timeout(DEADLINE, &mut self.task).await;
        let ended = ended.unwrap_or_else(|_| panic!("it does not end: {:?}", self.status.now()));
        ended.unwrap_or_else(|error| panic!("it panicked: {error}"))
    }

    /// Ends it where it is.
    pub async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// Waits until it stands so.
    pub async fn until(&self, what: &str, is_so: impl FnMut(&AccountStatus) -> bool) -> AccountStatus {
        let mut watched = self.status.watch();
        let found = tokio::time::timeout(DEADLINE, watched.wait_for(is_so)).await;
        match found {
            Ok(Ok(status)) => status.clone(),
            _ => panic!("it is never {what}: {:?}", self.status.now()),
        }
    }
}

impl Drop for AccountLife {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Keeps events once by their id, as the journal does.
pub struct Inbox {
    kept: Mutex<Vec<Inbound>>,
    /// Number of refusals still to come.
    refusals: Mutex<usize>,
    /// True if it never confirms a message that it has taken.
    hangs: bool,
    /// Events that were handed in, those that were known included.
    handed: watch::Sender<usize>,
}

impl Inbox {
    /// Creates an inbox that takes everything.
    pub fn new() -> Arc<Self> {
        Self::with(0, false)
    }

    /// Creates an inbox that refuses so many times first.
    pub fn refusing(times: usize) -> Arc<Self> {
        Self::with(times, false)
    }

    /// Creates an inbox that takes a message and does not return: the process dies there.
    pub fn hanging() -> Arc<Self> {
        Self::with(0, true)
    }

    fn with(refusals: usize, hangs: bool) -> Arc<Self> {
        Arc::new(Self {
            kept: Mutex::default(),
            refusals: Mutex::new(refusals),
            hangs,
            handed: watch::Sender::new(0),
        })
    }

    /// Another inbox that holds the same: what is on disk when a process dies.
    pub fn reopened(&self) -> Arc<Self> {
        let other = Self::new();
        *lock(&other.kept) = lock(&self.kept).clone();
        other
    }

    /// Messages that it holds.
    pub fn kept(&self) -> Vec<Inbound> {
        lock(&self.kept).clone()
    }

    /// Waits until so many events were handed in.
    pub async fn handed(&self, count: usize) {
        let mut handed = self.handed.subscribe();
        let came = tokio::time::timeout(DEADLINE, handed.wait_for(|now| *now >= count)).await;
        assert!(matches!(came, Ok(Ok(_))), "{count} events never come; it has {:?}", self.words());
    }

    /// Address and text of each message.
    pub fn words(&self) -> Vec<(Address, String)> {
        let words = |event: Inbound| match event.event {
            InboundEvent::Message(message) => (event.address, message.text),
            other => (event.address, format!("{other:?}")),
        };
        self.kept().into_iter().map(words).collect()
    }
}

impl InboundSink for Inbox {
    fn take(&self, events: Vec<Inbound>) -> ChannelFuture<'_, Result<(), NotTaken>> {
        Box::pin(async move {
            {
                let mut refusals = lock(&self.refusals);
                if *refusals > 0 {
                    *refusals -= 1;
                    return Err(NotTaken("the disk is full".to_owned()));
                }
            }
            let count = events.len();
            {
                let mut kept = lock(&self.kept);
                for event in events {
                    let dedupe_key = event.dedupe_key();
                    if !kept.iter().any(|other: &Inbound| other.dedupe_key() == dedupe_key) {
                        kept.push(event);
                    }
                }
            }
            self.handed.send_modify(|handed| *handed += count);
            if self.hangs {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
