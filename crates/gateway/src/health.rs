//! The health snapshot: what an operator asks first (spec `gateway-protocol.md` §8.2).

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use openclaw_config::settings::Heartbeat;
use openclaw_config::{Config, Unmet};
use openclaw_dispatch::{Dispatch, Settings};
use openclaw_protocol::params::health::{
    AbsentFeature, AgentHealth, AgentHeartbeat, HealthSnapshot, RecentSession, SessionsHealth,
    UnmetProtection,
};
use openclaw_protocol::{AgentId, Payload};
use openclaw_sessions::SessionStore;
use openclaw_sessions::store::{Query, Rows, Selection};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::channels::StatusChanges;
use crate::channels::snapshot::{self, AccountBoard, ChannelsHealth};
use crate::clock::now_ms;
use crate::current_settings::CurrentSettings;
use crate::events::GatewayEvent;
use crate::fan_out::EventHub;

/// Maximum age of a snapshot that answers `health`; also the interval at which it is renewed.
pub const MAX_AGE: Duration = Duration::from_secs(60);
/// Minimum interval between refreshes that nobody asked for (a client connected) (spec
/// `operations.md` §5).
const MIN_GAP: Duration = Duration::from_secs(15);
/// Time that platforms have to answer a probe.
const CHANNEL_PROBE: Duration = Duration::from_secs(5);
/// Sessions named per store.
const RECENT: usize = 5;
const DEFAULT_TARGET: &str = "last";

/// Parts of the gateway that a snapshot tells of, and those by which it is told.
pub(crate) struct HealthSources {
    pub(crate) settings: CurrentSettings,
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) dispatch: Dispatch,
    pub(crate) accounts: Arc<AccountBoard>,
    /// Changes that make the last snapshot out of date.
    pub(crate) changes: StatusChanges,
    pub(crate) events: Arc<EventHub>,
    /// Owns snapshots that are made later.
    pub(crate) tasks: TaskTracker,
}

/// Keeps the last snapshot and makes new ones, one at a time.
pub struct HealthMonitor {
    sources: HealthSources,
    last: Mutex<Option<CachedHealth>>,
    told: LastBroadcast,
    turn: tokio::sync::Mutex<()>,
    /// Features that the state directory uses and this version does not have; set once, at the start.
    absent: OnceLock<Vec<AbsentFeature>>,
}

/// Snapshot that was broadcast last, and its time.
#[derive(Debug, Default)]
struct LastBroadcast(Mutex<Option<(Arc<HealthSnapshot>, Instant)>>);

impl LastBroadcast {
    /// True if everyone is to be told: something other than timestamps changed, or the last
    /// broadcast is long ago (KB-35).
    fn is_news(&self, snapshot: &Arc<HealthSnapshot>) -> bool {
        let mut told = self.0.lock();
        let is_old = told.as_ref().is_none_or(|(before, at)| {
            at.elapsed() >= MAX_AGE.saturating_sub(Duration::from_secs(1))
                || timeless(before) != timeless(snapshot)
        });
        if is_old {
            *told = Some((Arc::clone(snapshot), Instant::now()));
        }
        is_old
    }
}

#[derive(Debug, Clone)]
struct CachedHealth {
    snapshot: Arc<HealthSnapshot>,
    at: Instant,
    /// Number of [`HealthSources::changes`] when the snapshot was begun.
    changes: u64,
}

impl HealthMonitor {
    pub(crate) fn new(sources: HealthSources) -> Self {
        Self {
            sources,
            last: Mutex::default(),
            told: LastBroadcast::default(),
            turn: tokio::sync::Mutex::default(),
            absent: OnceLock::new(),
        }
    }

    /// The last snapshot, whatever its age.
    pub fn last(&self) -> Option<Arc<HealthSnapshot>> {
        self.last.lock().as_ref().map(|made| Arc::clone(&made.snapshot))
    }

    fn younger_than(&self, age: Duration) -> Option<Arc<HealthSnapshot>> {
        let last = self.last.lock();
        let changes = self.sources.changes.count();
        let fresh = |made: &&CachedHealth| made.at.elapsed() < age && made.changes == changes;
        last.as_ref().filter(fresh).map(|made| Arc::clone(&made.snapshot))
    }

    /// The snapshot that answers `health`: the last one while it is fresh (a new one follows in the background), else a
    /// new one.
    pub async fn snapshot(self: &Arc<Self>) -> Arc<HealthSnapshot> {
        match self.younger_than(MAX_AGE) {
            Some(snapshot) => {
                self.refresh_later();
                snapshot
            }
            None => self.look().await,
        }
    }

    /// A new snapshot, whatever the age of the last, for which platforms are asked.
    pub async fn probe(&self) -> Arc<HealthSnapshot> {
        self.make(Some(CHANNEL_PROBE)).await
    }

    /// Makes a new snapshot from what is known here, without asking platforms.
    pub async fn look(&self) -> Arc<HealthSnapshot> {
        self.make(None).await
    }

    async fn make(&self, probe: Option<Duration>) -> Arc<HealthSnapshot> {
        let _turn = self.turn.lock().await;
        let HealthSources { settings, sessions, dispatch, accounts, changes, events, .. } = &self.sources;
        let changes = changes.count();
        let channels = snapshot::health(accounts, probe).await;
        let draining = dispatch.holds_runs();
        let made = self::snapshot(&settings.get(), sessions.as_ref(), channels).await;
        let absent_features = self.absent.get().cloned().unwrap_or_default();
        let snapshot = Arc::new(HealthSnapshot { draining, absent_features, ..made });
        *self.last.lock() =
            Some(CachedHealth { snapshot: Arc::clone(&snapshot), at: Instant::now(), changes });
        events.health_refreshed();
        if self.told.is_news(&snapshot)
            && let Ok(payload) = Payload::of(&*snapshot)
        {
            events.publish_health(GatewayEvent::named("health", payload));
        }
        snapshot
    }

    /// Keeps what the state directory asks for in vain, for all later snapshots.
    pub(crate) fn note_absent(&self, features: Vec<AbsentFeature>) {
        // Set only once: features are looked for at start.
        if self.absent.set(features).is_ok() {
            self.outdate();
        }
    }

    /// Marks the last snapshot as out of date: the state of the gateway itself has changed.
    pub(crate) fn outdate(&self) {
        self.sources.changes.note();
    }

    /// Makes a new snapshot soon, unless there was one just now.
    pub(crate) fn refresh_later(self: &Arc<Self>) {
        if self.younger_than(MIN_GAP).is_some() || self.sources.tasks.is_closed() {
            return;
        }
        let monitor = Arc::clone(self);
        self.sources.tasks.spawn(async move {
            if monitor.younger_than(MIN_GAP).is_none() {
                monitor.look().await;
            }
        });
    }
}

/// A snapshot without what changes with time alone.
fn timeless(snapshot: &HealthSnapshot) -> HealthSnapshot {
    let mut plain = snapshot.clone();
    plain.ts = 0;
    plain.duration_ms = 0;
    plain.channels.values_mut().for_each(without_times);
    let agents = plain.agents.iter_mut().map(|agent| &mut agent.sessions);
    for row in agents.chain([&mut plain.sessions]).flat_map(|sessions| &mut sessions.recent) {
        row.age = None;
    }
    plain
}

/// A platform without when it was asked, and how long that took.
fn without_times(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    fields.retain(|key, _| !matches!(key.as_str(), "lastProbeAt" | "elapsedMs"));
    fields.values_mut().for_each(without_times);
}

/// Protections that the config asks for and this version refuses.
pub(crate) fn unmet(settings: &Settings) -> Vec<UnmetProtection> {
    let shown = |unmet: &Unmet| UnmetProtection {
        key: unmet.key.clone(),
        value: unmet.value.clone(),
        message: unmet.to_string(),
    };
    settings.unmet.iter().map(shown).collect()
}

async fn snapshot(settings: &Settings, store: &dyn SessionStore, channels: ChannelsHealth) -> HealthSnapshot {
    let (started, config) = (Instant::now(), &settings.config);
    let now = now_ms();
    let mut agents = Vec::new();
    for id in config.agent_ids() {
        let entry = config.agent(&id);
        agents.push(AgentHealth {
            agent_id: id.to_string(),
            name: entry.name,
            is_default: entry.is_default,
            heartbeat: heartbeat(config, &id),
            sessions: sessions(store, &id, now).await,
        });
    }
    let default = agents.iter().find(|agent| agent.is_default).or(agents.first());
    let own = default.map(|agent| agent.sessions.clone());
    HealthSnapshot {
        ok: true,
        ts: now,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        channels: channels.channels,
        channel_order: channels.order,
        channel_labels: channels.labels,
        heartbeat_seconds: default
            .and_then(|agent| agent.heartbeat.every_ms)
            .map_or(0, |ms| ms.div_ceil(1_000)),
        default_agent_id: config.default_agent().to_string(),
        sessions: own.unwrap_or_else(|| SessionsHealth { path: String::new(), count: 0, recent: Vec::new() }),
        agents,
        unmet_protections: unmet(settings),
        absent_features: Vec::new(),
        draining: false,
    }
}

async fn sessions(store: &dyn SessionStore, agent: &AgentId, now: i64) -> SessionsHealth {
    let path = store.location_of(agent);
    let found = match store.select(Rows::Of(agent), &Query::newest(RECENT)).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%agent, %error, "sessions are left out of the health snapshot");
            Selection::default()
        }
    };
    let recent = found.rows.iter().map(|row| RecentSession {
        key: row.key.to_string(),
        updated_at: row.entry.updated_at,
        age: row.entry.updated_at.map(|at| now.saturating_sub(at)),
    });
    SessionsHealth { path, count: found.total, recent: recent.collect() }
}

/// The heartbeat of an agent as configured.
fn heartbeat(config: &Config, id: &AgentId) -> AgentHeartbeat {
    let beat = config.heartbeat(id);
    let settings = config.heartbeat_of(id);
    AgentHeartbeat {
        enabled: beat.enabled,
        every: beat.every,
        every_ms: beat.every_ms,
        prompt: settings.prompt_text().to_owned(),
        target: settings.target.unwrap_or_else(|| DEFAULT_TARGET.to_owned()),
        model: settings.model,
        ack_max_chars: settings.ack_max_chars.unwrap_or(Heartbeat::ACK_MAX_CHARS),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn only_what_differs_beyond_time_is_news() {
        let make = |ts, count| {
            let sessions = SessionsHealth { path: "p".to_owned(), count, recent: Vec::new() };
            Arc::new(HealthSnapshot {
                ok: true,
                ts,
                duration_ms: 0,
                channels: Map::new(),
                channel_order: Vec::new(),
                channel_labels: Map::new(),
                heartbeat_seconds: 0,
                default_agent_id: "main".to_owned(),
                agents: Vec::new(),
                sessions,
                unmet_protections: Vec::new(),
                absent_features: Vec::new(),
                draining: false,
            })
        };
        let told = LastBroadcast::default();
        let rows = [((1, 0), true), ((2, 0), false), ((3, 1), true), ((4, 1), false)];
        for ((ts, count), expect) in rows {
            assert_eq!(told.is_news(&make(ts, count)), expect, "{ts}");
        }
    }
}
