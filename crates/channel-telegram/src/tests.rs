//! A bot against the fake Bot API.

mod normalising;
mod receiving;
mod sending;
mod webhooks;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use openclaw_channels::{
    Account, AccountIo, AccountStatus, Address, ChannelFuture, Exit, GuessThrottle, Inbound, InboundSink,
    Knock, NotTaken, SecretGiven, StatusReport,
};
use openclaw_config::{Config, Environment};
use openclaw_testkit::telegram::TelegramServer;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::bot::Bot;

/// Ten wrong secrets are enough, from anywhere.
#[derive(Default)]
struct TenGuesses(AtomicUsize);

impl GuessThrottle for TenGuesses {
    fn count(&self, _knock: Knock<'_>, given: SecretGiven) -> Result<(), Duration> {
        if self.0.load(Ordering::Relaxed) >= 10 {
            return Err(Duration::from_millis(1_500));
        }
        self.0.fetch_add(usize::from(given == SecretGiven::Wrong), Ordering::Relaxed);
        Ok(())
    }
}

/// A bot of its own, and its directory.
struct Scene {
    server: TelegramServer,
    dir: tempfile::TempDir,
    bot: Arc<Bot>,
}

impl Scene {
    async fn new() -> Self {
        Self::with("").await
    }

    /// Sets up a scene with more settings of the channel, such as `linkPreview: false,`.
    async fn with(settings: &str) -> Self {
        let server = TelegramServer::start().await;
        let dir = tempfile::tempdir().unwrap();
        let bot = bot(&server, dir.path(), settings);
        Self { server, dir, bot }
    }

    fn address(&self, target: &str, thread: Option<&str>) -> Address {
        Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: target.to_owned(),
            thread: thread.map(str::to_owned),
        }
    }

    fn io(&self, inbox: &Arc<Inbox>) -> AccountIo {
        AccountIo {
            inbox: Arc::clone(inbox) as Arc<dyn InboundSink>,
            status: StatusReport::default(),
            state_dir: Arc::from(self.dir.path()),
            stop: CancellationToken::new(),
            guesses: Arc::new(TenGuesses::default()),
        }
    }

    /// Receives until the end of the test, or until it is stopped.
    fn start(&self, inbox: &Arc<Inbox>) -> Running {
        let io = self.io(inbox);
        let (bot, task_io) = (Arc::clone(&self.bot), io.clone());
        Running { io, task: tokio::spawn(async move { bot.run(task_io).await }) }
    }

    fn offset(&self) -> Option<i64> {
        let text =
            std::fs::read_to_string(self.dir.path().join("telegram/update-offset-default.json")).ok()?;
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["lastUpdateId"].as_i64()
    }
}

fn bot(server: &TelegramServer, dir: &Path, settings: &str) -> Arc<Bot> {
    let env = Environment::new([("HOME", dir.display().to_string())], dir);
    let text = format!(
        "{{channels: {{telegram: {{botToken: '{}', apiRoot: '{}', {settings}}}}}}}",
        server.token(),
        server.root()
    );
    Arc::new(Bot::of(&Config::from_json5(&text, &env).unwrap(), "default").unwrap())
}

struct Running {
    io: AccountIo,
    task: tokio::task::JoinHandle<Exit>,
}

impl Running {
    async fn stop(self) -> Exit {
        self.io.stop.cancel();
        self.task.await.unwrap()
    }

    /// Waits until the account stands so.
    async fn until(&self, is_so: impl FnMut(&AccountStatus) -> bool) -> AccountStatus {
        self.io.status.watch().wait_for(is_so).await.unwrap().clone()
    }
}

/// An inbox that keeps what it is given, as the journal does: once by native id.
struct Inbox {
    taken: Mutex<Vec<Inbound>>,
    refusals: Mutex<usize>,
    refused: watch::Sender<usize>,
    count: watch::Sender<usize>,
}

impl Inbox {
    fn new() -> Arc<Self> {
        Self::refusing(0)
    }

    /// Takes nothing so many times.
    fn refusing(times: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: Mutex::default(),
            refusals: Mutex::new(times),
            refused: watch::Sender::new(0),
            count: watch::Sender::new(0),
        })
    }

    async fn holds(&self, count: usize) -> Vec<Inbound> {
        self.count.subscribe().wait_for(|now| *now >= count).await.unwrap();
        self.taken.lock().clone()
    }

    async fn texts(&self, count: usize) -> Vec<String> {
        let text = |inbound: &Inbound| match &inbound.event {
            openclaw_channels::InboundEvent::Message(message) => message.text.clone(),
            other => format!("{other:?}"),
        };
        self.holds(count).await.iter().map(text).collect()
    }
}

impl InboundSink for Inbox {
    fn take(&self, events: Vec<Inbound>) -> ChannelFuture<'_, Result<(), NotTaken>> {
        Box::pin(async move {
            let mut refusals = self.refusals.lock();
            if *refusals > 0 {
                *refusals -= 1;
                self.refused.send_modify(|count| *count += 1);
                return Err(NotTaken("the disk is full".to_owned()));
            }
            let mut taken = self.taken.lock();
            for event in events {
                if !taken.iter().any(|each| each.native_id == event.native_id) {
                    taken.push(event);
                }
            }
            self.count.send_replace(taken.len());
            Ok(())
        })
    }
}
