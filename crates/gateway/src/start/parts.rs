//! Putting the gateway's parts together.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ipnet::IpNet;
use openclaw_agent::prompt::HostFacts;
use openclaw_agent::skills::SkillBook;
use openclaw_channels::Platforms;
use openclaw_config::gateway_options::ResolvedAuth;
use openclaw_config::settings::AuthKind;
use openclaw_config::{Config, Loaded};
use openclaw_dispatch::{CommandNotices, Deps, Dispatch, Settings, SystemEvents};
use openclaw_models::{Http, Models, Variables};
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_sessions::maintenance::Maintenance;
use openclaw_sessions::store::{FileStore, FileStoreOptions};
use openclaw_sessions::transcript::{FileTranscripts, Transcripts};
use openclaw_sessions::usage::UsageIndex;
use openclaw_sessions::{Layout, SessionStore};
use openclaw_tools::approvals::Approvals;
use openclaw_tools::sandbox::Sandboxes;
use openclaw_tools::{CommandLock, CommandSessions};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{Notify, watch};

use super::run::StartError;
use crate::channels::ChannelManager;
use crate::connection::frame_budget::FrameBudget;
use crate::control::GatewayControl;
use crate::entrance::Entrance;
use crate::fan_out::EventHub;
use crate::handshake::client_address::proxy_range;
use crate::handshake::machine::Door;
use crate::handshake::{AddressBook, SharedSecret};
use crate::health::HealthMonitor;
use crate::heartbeat::{Heartbeats, Reason, Wish};
use crate::host::{Host, VERSION};
use crate::logging::LogFile;
use crate::pairing::DeviceStore;
use crate::presence::Presence;
use crate::reload::Reload;
use crate::secret_digest::SecretDigest;
use crate::server::front::Front;
use crate::socket::work_budget::WorkBudget;
use crate::state::GatewayState;
use crate::surroundings::OwnSurroundings;

/// Tells commands of tools where this gateway is, so that an `openclaw` they call finds it.
const PORT_VARIABLE: &str = "OPENCLAW_GATEWAY_PORT";

/// Parts that a state is made of besides the config.
pub(super) struct Ingredients {
    pub(super) loaded: Arc<Loaded>,
    pub(super) auth: ResolvedAuth,
    pub(super) port: u16,
    pub(super) log_file: Option<LogFile>,
    pub(super) started: Instant,
    pub(super) host: Host,
    pub(super) front: Arc<Front>,
    pub(super) reload: Reload,
    /// True if the gateway goes on after one run.
    pub(super) is_daemon: bool,
}

/// Opens the stores, starts dispatch, and puts everything together.
pub(super) async fn assemble(config: &Arc<Config>, given: Ingredients) -> Result<GatewayState, StartError> {
    let paths = &given.loaded.paths;
    let environment = config.environment();
    let settings = Arc::new(Settings::from(Arc::clone(config)).with_hooks().await);
    let layout = Layout::new(paths.state_dir(), paths.home(), config.session.store.as_deref());
    let sessions = open_sessions(&layout, &settings)?;
    let transcripts = open_transcripts(&layout, config.agent_ids()).await;
    let models = Models::new(Variables::from(environment), Http::default());
    let (sender, receiver) = watch::channel(Arc::clone(&settings));
    let system_events = Arc::<SystemEvents>::default();
    let heartbeats = Arc::<Heartbeats>::default();
    let approvals = Arc::<Approvals>::default();
    let skills = Arc::<SkillBook>::default();
    let platforms = Arc::<Platforms>::default();
    let lock = command_lock(paths.state_dir()).await;
    let sandboxes = Arc::new(Sandboxes::of_this_process(paths.state_dir()).of_gateway(lock.clone()));
    let control = GatewayControl::new(given.reload, Arc::clone(&sessions), paths.state_dir().to_path_buf());
    let usage = UsageIndex::new(layout.clone());
    let around = Arc::new(OwnSurroundings::new(control, usage, given.is_daemon));
    let dispatch = Dispatch::start(Deps {
        state_dir: paths.state_dir().to_path_buf(),
        settings: receiver,
        store: Arc::clone(&sessions),
        transcripts: Arc::clone(&transcripts),
        models: models.clone(),
        skills: Arc::clone(&skills),
        platforms: Arc::clone(&platforms),
        host: HostFacts::detect(environment.get_nonblank("SHELL"), VERSION),
        system_events: Arc::clone(&system_events),
        command_variables: vec![(PORT_VARIABLE.to_owned(), given.port.to_string())],
        command_lock: Some(lock),
        approvals: Arc::clone(&approvals),
        command_sessions: command_sessions(&system_events, &heartbeats, settings.sessions.default_agent()),
        sandboxes: Arc::clone(&sandboxes),
        secrets: [&given.auth.token, &given.auth.password].into_iter().flatten().cloned().collect(),
        surroundings: Some(Arc::<OwnSurroundings>::clone(&around)),
    })
    .await?;
    wake_owed(&system_events, &heartbeats, &settings.sessions.default_agent());
    Ok(GatewayState {
        settings: sender,
        around,
        sessions,
        transcripts,
        maintenance: Maintenance::new(layout),
        models,
        dispatch,
        platforms,
        channels: ChannelManager::default(),
        skills,
        events: EventHub::new(),
        presence: Presence::new(given.host.presence()),
        system_events,
        heartbeats,
        approvals,
        sandboxes,
        health: HealthMonitor::default(),
        devices: DeviceStore::new(paths.devices_dir()),
        host: given.host,
        log_file: given.log_file,
        started: given.started,
        stopping: given.front.stopping.clone(),
        tasks: given.front.tasks.clone(),
        presence_news: Notify::new(),
        port: given.port,
        entrance: Arc::new(Entrance::new(door(config, &given.auth, &given.front))),
        frame_budget: FrameBudget::default(),
        work_budget: WorkBudget::default(),
        loaded: given.loaded,
    })
}

/// Command sessions of the agents. An agent is told of the end of a command in the background, and
/// asked to go on.
fn command_sessions(
    events: &Arc<SystemEvents>,
    heartbeats: &Arc<Heartbeats>,
    default_agent: AgentId,
) -> Arc<CommandSessions> {
    let heartbeats = Arc::clone(heartbeats);
    let wake = move |key: &SessionKey| {
        heartbeats.wish(Wish { reason: Reason::ExecEvent, agent: Some(key.agent_or(&default_agent)) });
    };
    let notices = CommandNotices::new(Arc::clone(events), Box::new(wake));
    Arc::new(CommandSessions::keeping(Arc::new(notices)))
}

/// Wakes agents that were not told before the last stop how their commands ended.
fn wake_owed(events: &SystemEvents, heartbeats: &Heartbeats, default_agent: &AgentId) {
    let agents: BTreeSet<AgentId> =
        events.sessions_with_notices().iter().map(|key| key.agent_or(default_agent)).collect();
    for agent in agents {
        heartbeats.wish(Wish { reason: Reason::ExecEvent, agent: Some(agent) });
    }
}

/// Waits for the commands of a gateway that died here: each ends with it, and none may work beside its resumed run.
async fn command_lock(state_dir: &Path) -> CommandLock {
    match CommandLock::acquire(state_dir).await {
        Ok(lock) => return lock,
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            tracing::warn!(
                "commands of the gateway that ran here before still run; end them if they do harm"
            );
        }
        Err(error) => {
            tracing::warn!(%error, "cannot lock commands.lock in the state directory; the next start will not wait for commands");
        }
    }
    CommandLock::unheld()
}

fn open_sessions(layout: &Layout, settings: &Settings) -> Result<Arc<dyn SessionStore>, StartError> {
    let agents = settings.config.agent_ids();
    let options = FileStoreOptions::new(layout.clone(), settings.sessions.key_rules(), agents);
    Ok(Arc::new(FileStore::open(options)?))
}

/// Takes away first what processes that died have left beside them.
async fn open_transcripts(layout: &Layout, agents: Vec<AgentId>) -> Arc<dyn Transcripts> {
    let transcripts = FileTranscripts::new(layout.clone());
    let swept = transcripts.clone();
    // A panic is in the log; a lock that stays is taken over when its conversation goes on.
    let _ = tokio::task::spawn_blocking(move || swept.sweep_locks(&agents)).await;
    Arc::new(transcripts)
}

/// Requirements for clients that connect.
fn door(config: &Config, auth: &ResolvedAuth, front: &Front) -> Door {
    let digest = |secret: &Option<SecretString>| {
        secret.as_ref().map(|secret| SecretDigest::of(secret.expose_secret()))
    };
    Door {
        secret: SharedSecret {
            kind: auth.mode,
            digest: match auth.mode {
                AuthKind::Token => digest(&auth.token),
                AuthKind::Password => digest(&auth.password),
            },
        },
        addresses: AddressBook {
            trusted_proxies: trusted_proxies(config),
            own: Vec::new(),
            names: front.pages.names_of_host().to_vec(),
        },
        control_ui: config.gateway.control_ui.clone(),
        pages: front.pages.clone(),
    }
}

/// Addresses and ranges of `gateway.trustedProxies`. A proxy that can't be read is one that is not trusted.
fn trusted_proxies(config: &Config) -> Vec<IpNet> {
    let read = |text: &String| {
        let range = proxy_range(text);
        if range.is_none() {
            tracing::warn!(entry = %text, "gateway.trustedProxies: neither an IP address nor a range such as 10.0.0.0/8, ignored; write one of them");
        }
        range
    };
    config.gateway.trusted_proxies.iter().filter_map(read).collect()
}
