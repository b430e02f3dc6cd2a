//! The accounts of chat platforms, kept at work (spec `channels.md` §15): one supervised task each. [`supervise`] is the life of one account,
//! [`snapshot`] how they stand.

mod guesses;
pub(crate) mod moved;
pub(crate) mod snapshot;
pub(crate) mod standing;
mod supervise;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openclaw_channels::access::named_elsewhere;
use openclaw_channels::{Channel, InboundSink, Platforms, Unusable};
use openclaw_config::{Config, account_section};
use openclaw_dispatch::Dispatch;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::current_settings::CurrentSettings;
use crate::entrance::Entrance;

/// Time that an account has to end by itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// Counts changes in the status of accounts. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatusChanges(Arc<AtomicU64>);

impl StatusChanges {
    /// Notes one more change.
    pub(crate) fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of changes so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Parts of the gateway that accounts work with.
pub(crate) struct AccountParts {
    pub(crate) state_dir: Arc<Path>,
    pub(crate) settings: CurrentSettings,
    pub(crate) platforms: Arc<Platforms>,
    pub(crate) dispatch: Dispatch,
    pub(crate) entrance: Arc<Entrance>,
    pub(crate) changes: StatusChanges,
}

/// The accounts that are started, and those that somebody has stopped by hand.
pub(crate) struct ChannelManager {
    parts: Arc<AccountParts>,
    sink: Mutex<Option<Arc<dyn InboundSink>>>,
    slots: tokio::sync::Mutex<BTreeMap<AccountKey, StartedAccount>>,
    held: Mutex<Vec<AccountKey>>,
}

/// Channel and account.
type AccountKey = (String, String);

/// An account that is started.
struct StartedAccount {
    /// Part of the configuration that it was started with.
    settings: Value,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl ChannelManager {
    pub(crate) fn new(parts: AccountParts) -> Self {
        Self {
            parts: Arc::new(parts),
            sink: Mutex::default(),
            slots: tokio::sync::Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// Starts the configured accounts, and follows the configuration until the gateway stops.
    pub(crate) async fn run(self: Arc<Self>, sink: Arc<dyn InboundSink>, stopping: CancellationToken) {
        *self.sink.lock() = Some(sink);
        let mut settings = self.parts.settings.follow();
        loop {
            let config = Arc::clone(&settings.borrow_and_update().config);
            self.reconcile(&config).await;
            tokio::select! { biased;
                () = stopping.cancelled() => break,
                changed = settings.changed() => if changed.is_err() { break },
            }
        }
        self.stop_all().await;
    }

    /// Starts new accounts, restarts those whose configuration changed, and stops those that are
    /// gone.
    async fn reconcile(&self, config: &Arc<Config>) {
        let Some(sink) = self.sink.lock().clone() else { return };
        let mut slots = self.slots.lock().await;
        let mut wanted = BTreeMap::new();
        for channel in self.parts.platforms.channels() {
            for account in channel.account_ids(config) {
                let key = (channel.info().id.to_owned(), account);
                if self.held.lock().contains(&key) {
                    continue;
                }
                match channel.account(config, &key.1) {
                    Ok(_) => drop(wanted.insert(key, Arc::clone(channel))),
                    Err(Unusable::Disabled | Unusable::Unknown(_)) => {}
                    Err(Unusable::NotConfigured { why, .. }) => {
                        if has_section(config, &key) {
                            tracing::warn!(channel = %key.0, account = %key.1, "channel.state not configured: {why}");
                        }
                    }
                }
            }
        }
        let gone: Vec<AccountKey> = slots
            .iter()
            .filter(|(key, slot)| {
                wanted
                    .get(*key)
                    .is_none_or(|channel| slot.settings != settings_of(config, key, channel.as_ref()))
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            if let Some(slot) = slots.remove(&key) {
                slot.end(&key).await;
            }
        }
        for (key, channel) in wanted {
            let begin = |key: &AccountKey| {
                StartedAccount::begin(&self.parts, config, channel, key, Arc::clone(&sink))
            };
            if let Entry::Vacant(place) = slots.entry(key) {
                let slot = begin(place.key());
                place.insert(slot);
            }
        }
    }

    /// Stops an account until it is started by hand, or the gateway starts anew. `false`: it did not work.
    pub(crate) async fn stop(&self, channel: &str, account: &str) -> bool {
        let key = (channel.to_owned(), account.to_owned());
        let mut slots = self.slots.lock().await;
        {
            let mut held = self.held.lock();
            if !held.contains(&key) {
                held.push(key.clone());
            }
        }
        match slots.remove(&key) {
            Some(slot) => {
                slot.end(&key).await;
                true
            }
            None => false,
        }
    }

    /// Starts an account that was stopped by hand, or starts one anew.
    pub(crate) async fn start(&self, channel: &str, account: &str) {
        let key = (channel.to_owned(), account.to_owned());
        self.held.lock().retain(|held| *held != key);
        if let Some(slot) = self.slots.lock().await.remove(&key) {
            slot.end(&key).await;
        }
        self.reconcile(&self.parts.settings.config()).await;
    }

    /// True if an account is started.
    pub(crate) async fn is_started(&self, channel: &str, account: &str) -> bool {
        let key = (channel.to_owned(), account.to_owned());
        self.slots.lock().await.contains_key(&key)
    }

    async fn stop_all(&self) {
        let slots = std::mem::take(&mut *self.slots.lock().await);
        slots.values().for_each(|slot| slot.stop.cancel());
        for (key, slot) in slots {
            slot.end(&key).await;
        }
    }
}

impl StartedAccount {
    fn begin(
        parts: &Arc<AccountParts>,
        config: &Arc<Config>,
        channel: Arc<dyn Channel>,
        key: &AccountKey,
        sink: Arc<dyn InboundSink>,
    ) -> Self {
        let stop = CancellationToken::new();
        let settings = settings_of(config, key, channel.as_ref());
        let life = supervise::AccountContext {
            parts: Arc::clone(parts),
            config: Arc::clone(config),
            channel,
            id: key.1.clone(),
            sink,
            stop: stop.clone(),
        };
        // Ended by its manager, which waits for it.
        let task = tokio::spawn(life.run());
        Self { settings, stop, task }
    }

    /// Ends it; the next one of its name is started only then.
    async fn end(mut self, key: &AccountKey) {
        self.stop.cancel();
        if tokio::time::timeout(PATIENCE, &mut self.task).await.is_err() {
            tracing::warn!(channel = %key.0, account = %key.1, "channel.state did not stop in time and is cut off");
            self.task.abort();
            // Cut off, it ends at its next step.
            let _ = (&mut self.task).await;
        }
    }
}

/// Settings that an account was made from: its keys, and the names elsewhere that it looks up.
fn settings_of(config: &Config, (channel, account): &AccountKey, platform: &dyn Channel) -> Value {
    let elsewhere = named_elsewhere(config, channel).into_iter();
    let names: Vec<String> = elsewhere.filter(|entry| platform.allow_entry(entry).is_none()).collect();
    let section = config.document().get("channels").and_then(|channels| channels.get(channel));
    let Some(Value::Object(keys)) = section else { return json!({"names": names}) };
    let shared: serde_json::Map<String, Value> = keys
        .iter()
        .filter(|(key, _)| *key != "accounts")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let own = account_section(config.document(), channel, account);
    json!({"shared": shared, "own": own.map(|(_, keys)| keys), "names": names})
}

fn has_section(config: &Config, (channel, _): &AccountKey) -> bool {
    config.document().get("channels").is_some_and(|channels| channels.get(channel).is_some())
}
