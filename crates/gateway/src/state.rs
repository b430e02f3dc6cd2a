//! The gateway's parts, shared by all connections and handlers.

use std::sync::Arc;
use std::time::Instant;

use openclaw_agent::skills::SkillBook;
use openclaw_channels::Platforms;
use openclaw_config::{Config, Loaded, Paths};
use openclaw_dispatch::{Dispatch, Settings, SystemEvents};
use openclaw_models::Models;
use openclaw_protocol::Payload;
use openclaw_protocol::event::PresenceEvent;
use openclaw_protocol::params::connect::SessionDefaults;
use openclaw_protocol::params::system::SystemEventParams;
use openclaw_sessions::maintenance::Maintenance;
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::{SessionKey, SessionStore};
use openclaw_tools::approvals::Approvals;
use openclaw_tools::sandbox::Sandboxes;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::channels::ChannelManager;
use crate::clock::now_ms;
use crate::connection::frame_budget::FrameBudget;
use crate::entrance::Entrance;
use crate::events::Event;
use crate::fan_out::EventHub;
use crate::health::HealthMonitor;
use crate::heartbeat::Heartbeats;
use crate::host::Host;
use crate::logging::LogFile;
use crate::pairing::DeviceStore;
use crate::presence::{Presence, note_of};
use crate::socket::work_budget::WorkBudget;
use crate::surroundings::OwnSurroundings;

/// State of the gateway: everything a handler can reach. One per process, held by `Arc`.
pub struct GatewayState {
    /// The reading of the config file that the gateway started with.
    pub loaded: Arc<Loaded>,
    /// The settings in force; replaced as a whole.
    pub(crate) settings: watch::Sender<Arc<Settings>>,
    /// Services of the gateway that chat commands use.
    pub(crate) around: Arc<OwnSurroundings>,
    /// The rows of all sessions.
    pub sessions: Arc<dyn SessionStore>,
    /// Transcripts of the sessions.
    pub transcripts: Arc<dyn Transcripts>,
    /// Keeps the files of both in order.
    pub(crate) maintenance: Maintenance,
    /// Model catalogue and selection.
    pub models: Models,
    /// Messages in, runs, replies.
    pub dispatch: Dispatch,
    /// The chat platforms there are.
    pub(crate) platforms: Arc<Platforms>,
    /// Accounts of the platforms, kept at work.
    pub(crate) channels: ChannelManager,
    /// The skills of all agents.
    pub(crate) skills: Arc<SkillBook>,
    /// Connected clients and their events.
    pub events: EventHub,
    /// Presence list.
    pub presence: Presence,
    /// Lines that wait to be told to an agent.
    pub system_events: Arc<SystemEvents>,
    /// Turns that agents make by themselves.
    pub(crate) heartbeats: Arc<Heartbeats>,
    /// Commands that wait for a person's word.
    pub(crate) approvals: Arc<Approvals>,
    /// Sandboxes in which commands run.
    pub(crate) sandboxes: Arc<Sandboxes>,
    /// The health snapshot.
    pub health: HealthMonitor,
    /// Paired devices.
    pub devices: DeviceStore,
    /// The machine.
    pub host: Host,
    /// The log file, for `logs.tail`; `None` when the file log is off.
    pub log_file: Option<LogFile>,
    /// Time of the gateway's start.
    pub started: Instant,
    /// Cancelled when the gateway begins to stop.
    pub stopping: CancellationToken,
    /// Owns tasks that outlive a request; awaited at shutdown.
    pub tasks: TaskTracker,
    /// Notifies of a change in the presence list; see [`crate::ticker`].
    pub(crate) presence_news: Notify,
    /// TCP port.
    pub(crate) port: u16,
    pub(crate) entrance: Arc<Entrance>,
    pub(crate) frame_budget: FrameBudget,
    pub(crate) work_budget: WorkBudget,
}

impl GatewayState {
    /// The settings in force.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Follows the settings in force.
    pub fn follow_settings(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.subscribe()
    }

    /// The config in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.settings.borrow().config)
    }

    /// Paths of this instance's files.
    pub fn paths(&self) -> &Paths {
        &self.loaded.paths
    }

    /// Milliseconds since the gateway started.
    pub fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Canonical key of the default agent's main session; `global` when everybody shares one.
    pub fn main_session_key(&self) -> SessionKey {
        let rules = self.settings().sessions.key_rules();
        rules.main(&rules.default_agent)
    }

    /// `snapshot.sessionDefaults` of `hello-ok`.
    pub fn session_defaults(&self) -> SessionDefaults {
        let settings = self.settings();
        SessionDefaults {
            default_agent_id: settings.sessions.default_agent().to_string(),
            main_key: settings.sessions.key_rules().main_key,
            main_session_key: self.main_session_key().as_str().to_owned(),
            scope: settings.sessions.section.scope.as_str().to_owned(),
        }
    }

    /// A `system-event` with this trimmed, non-empty text: updates presence, queues what the agent should know for the
    /// main session, and broadcasts `presence`.
    pub fn system_event(&self, params: &SystemEventParams, text: &str) {
        let report = self.presence.report(params, text);
        tracing::info!(presence = %report.key, reason = report.after.reason.as_deref(), "presence reported");
        let session = self.main_session_key();
        let context = format!("node:{}", report.key);
        let is_same = self.system_events.is_last_about(&session, &context);
        if let Some(line) = note_of(text, &report, is_same) {
            let about = text.starts_with("Node:").then_some(context.as_str());
            self.system_events.enqueue(&session, &line, about, now_ms());
        }
        self.events.presence_changed();
        self.broadcast_presence();
    }

    /// Tells everyone who is here.
    pub(crate) fn broadcast_presence(&self) {
        if let Ok(payload) = Payload::of(&PresenceEvent { presence: self.presence.list() }) {
            self.events.publish_presence(Event::named("presence", payload));
        }
    }
}
