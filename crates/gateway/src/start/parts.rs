//! Putting the gateway's parts together.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
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
use openclaw_runtime::memory::Memories;
use openclaw_sessions::store::{FileStore, FileStoreOptions};
use openclaw_sessions::transcript::{self, Transcripts};
use openclaw_sessions::usage::UsageIndex;
use openclaw_sessions::{Layout, SessionStore};
use openclaw_tools::approvals::Approvals;
use openclaw_tools::sandbox::Sandboxes;
use openclaw_tools::{CommandLock, CommandSessions};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::run::StartError;
use crate::approval_forward::{Forwarder, ForwarderParts};
use crate::channels::snapshot::AccountBoard;
use crate::channels::{AccountParts, ChannelManager, StatusChanges};
use crate::connection::frame_budget::FrameBudget;
use crate::control::GatewayControl;
use crate::current_settings::CurrentSettings;
use crate::entrance::Entrance;
use crate::fan_out::EventHub;
use crate::handshake::client_address::proxy_range;
use crate::handshake::machine::Door;
use crate::handshake::{AddressBook, SharedSecret};
use crate::health::{HealthMonitor, HealthSources};
use crate::heartbeat::{HeartbeatReason, HeartbeatRequest, Heartbeats};
use crate::host::{Host, VERSION};
use crate::logging::{LogFile, Redactor};
use crate::methods::{MethodServices, Methods};
use crate::pairing::DeviceStore;
use crate::platforms::platforms;
use crate::presence::Presence;
use crate::reload::Reload;
use crate::secret_digest::SecretDigest;
use crate::server::Served;
use crate::server::front::Front;
use crate::socket::work_budget::WorkBudget;
use crate::socket::{About, SocketParts};
use crate::surroundings::OwnSurroundings;

/// Tells commands of tools where this gateway is, so that an `openclaw` they call finds it.
const PORT_VARIABLE: &str = "OPENCLAW_GATEWAY_PORT";

/// Input for the parts of a gateway besides the config.
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

/// The parts of a gateway, for the order of events from its start to its end. None of them sees
/// the others but those it was handed.
pub(super) struct GatewayParts {
    /// The reading of the config file that the gateway started with.
    pub(super) loaded: Arc<Loaded>,
    pub(super) settings: CurrentSettings,
    pub(super) reload: Reload,
    /// Services of the gateway that chat commands use.
    pub(super) around: Arc<OwnSurroundings>,
    /// The rows of all sessions.
    pub(super) sessions: Arc<dyn SessionStore>,
    pub(super) layout: Layout,
    pub(super) models: Models,
    pub(super) dispatch: Dispatch,
    /// The chat platforms there are.
    pub(super) platforms: Arc<Platforms>,
    /// Accounts of the platforms, kept at work.
    pub(super) manager: Arc<ChannelManager>,
    /// The skills of all agents.
    pub(super) skills: Arc<SkillBook>,
    /// Memory of all agents.
    pub(super) memories: Memories,
    /// Lines that wait to be told to an agent.
    pub(super) system_events: Arc<SystemEvents>,
    /// Turns that agents make by themselves.
    pub(super) heartbeats: Arc<Heartbeats>,
    /// Commands that wait for a person's word.
    pub(super) approvals: Arc<Approvals>,
    /// Tells people in chats of those commands.
    pub(super) forwarder: Arc<Forwarder>,
    /// Sandboxes in which commands run.
    pub(super) sandboxes: Arc<Sandboxes>,
    pub(super) health: Arc<HealthMonitor>,
    pub(super) presence: Arc<Presence>,
    pub(super) events: Arc<EventHub>,
    /// Parts that clients reach.
    pub(super) served: Arc<Served>,
    pub(super) log_file: Option<LogFile>,
    pub(super) started: Instant,
    pub(super) port: u16,
    /// Owns tasks that outlive a request; awaited at shutdown.
    pub(super) tasks: TaskTracker,
    /// Cancelled when the gateway begins to stop.
    pub(super) stopping: CancellationToken,
}

/// Opens the stores, starts dispatch, and puts everything together.
pub(super) async fn assemble(config: &Arc<Config>, given: Ingredients) -> Result<GatewayParts, StartError> {
    let paths = &given.loaded.paths;
    let state_dir: Arc<Path> = Arc::from(paths.state_dir());
    let environment = config.environment();
    let settings = Arc::new(Settings::from(Arc::clone(config)).with_hooks().await);
    let layout = Layout::new(paths.state_dir(), paths.home(), config.session.store.as_deref());
    let sessions = open_sessions(&layout, &settings)?;
    let transcripts = open_transcripts(&layout, config.agent_ids()).await;
    let models = Models::new(Variables::from(environment), Http::default());
    let default_agent = settings.sessions.default_agent();
    let settings = CurrentSettings::new(settings);
    let system_events = Arc::<SystemEvents>::default();
    let heartbeats = Arc::<Heartbeats>::default();
    let approvals = Arc::<Approvals>::default();
    let skills = Arc::<SkillBook>::default();
    let platforms = Arc::new(platforms());
    let lock = command_lock(paths.state_dir()).await;
    let sandboxes = Arc::new(Sandboxes::of_this_process(paths.state_dir()).of_gateway(lock.clone()));
    let memories = memories(&settings, &models, &transcripts, config);
    let reload = given.reload;
    let control = GatewayControl::new(reload.clone(), Arc::clone(&sessions), paths.state_dir().to_path_buf());
    let usage = UsageIndex::new(layout.clone());
    let around = Arc::new(OwnSurroundings::new(control.clone(), usage.clone(), given.is_daemon));
    let dispatch = Dispatch::start(Deps {
        state_dir: paths.state_dir().to_path_buf(),
        settings: settings.follow(),
        store: Arc::clone(&sessions),
        transcripts: transcripts.clone(),
        models: models.clone(),
        skills: Arc::clone(&skills),
        memories: memories.clone(),
        platforms: Arc::clone(&platforms),
        host: HostFacts::detect(environment.get_nonblank("SHELL"), VERSION),
        system_events: Arc::clone(&system_events),
        command_variables: vec![(PORT_VARIABLE.to_owned(), given.port.to_string())],
        command_lock: Some(lock),
        approvals: Arc::clone(&approvals),
        command_sessions: command_sessions(&system_events, &heartbeats, default_agent.clone()),
        sandboxes: Arc::clone(&sandboxes),
        secrets: [&given.auth.token, &given.auth.password].into_iter().flatten().cloned().collect(),
        surroundings: Some(Arc::<OwnSurroundings>::clone(&around)),
    })
    .await?;
    wake_owed(&system_events, &heartbeats, &default_agent);
    let (tasks, stopping) = (given.front.tasks.clone(), given.front.stopping.clone());
    let entrance = Arc::new(Entrance::new(door(config, &given.auth, &given.front)));
    let events = Arc::new(EventHub::new());
    let presence = Arc::new(Presence::new(given.host.presence()));
    let changes = StatusChanges::default();
    let manager = Arc::new(ChannelManager::new(AccountParts {
        state_dir: Arc::clone(&state_dir),
        settings: settings.clone(),
        platforms: Arc::clone(&platforms),
        dispatch: dispatch.clone(),
        entrance: Arc::clone(&entrance),
        changes: changes.clone(),
    }));
    let accounts = Arc::new(AccountBoard::new(settings.clone(), Arc::clone(&platforms), dispatch.clone()));
    let health = Arc::new(HealthMonitor::new(HealthSources {
        settings: settings.clone(),
        sessions: Arc::clone(&sessions),
        dispatch: dispatch.clone(),
        accounts: Arc::clone(&accounts),
        changes,
        events: Arc::clone(&events),
        tasks: tasks.clone(),
    }));
    let forwarder = Arc::new(Forwarder::new(ForwarderParts {
        settings: settings.clone(),
        sessions: Arc::clone(&sessions),
        platforms: Arc::clone(&platforms),
        dispatch: dispatch.clone(),
        tasks: tasks.clone(),
    }));
    let methods = Methods::new(&MethodServices {
        environment: given.loaded.environment.clone(),
        state_dir,
        log_file: given.log_file.clone(),
        settings: settings.clone(),
        reload: reload.clone(),
        control,
        sessions: Arc::clone(&sessions),
        transcripts,
        usage,
        models: models.clone(),
        quotas: Arc::clone(&around.quotas),
        dispatch: dispatch.clone(),
        platforms: Arc::clone(&platforms),
        manager: Arc::clone(&manager),
        accounts,
        skills: Arc::clone(&skills),
        memories: memories.clone(),
        approvals: Arc::clone(&approvals),
        heartbeats: Arc::clone(&heartbeats),
        system_events: Arc::clone(&system_events),
        health: Arc::clone(&health),
        presence: Arc::clone(&presence),
        events: Arc::clone(&events),
        tasks: tasks.clone(),
        stopping: stopping.clone(),
    });
    let sockets = Arc::new(SocketParts {
        entrance: Arc::clone(&entrance),
        devices: DeviceStore::new(paths.devices_dir()),
        about: About {
            host: given.host.name,
            config_path: paths.config_path().to_path_buf(),
            state_dir: paths.state_dir().to_path_buf(),
            started: given.started,
        },
        settings: settings.clone(),
        health: Arc::clone(&health),
        presence: Arc::clone(&presence),
        events: Arc::clone(&events),
        methods: Arc::new(methods),
        frame_budget: FrameBudget::default(),
        work_budget: WorkBudget::default(),
        tasks: tasks.clone(),
        stopping: stopping.clone(),
    });
    let served = Arc::new(Served {
        sockets,
        entrance,
        settings: settings.clone(),
        memories: memories.clone(),
        dispatch: dispatch.clone(),
        tasks: tasks.clone(),
        stopping: stopping.clone(),
    });
    Ok(GatewayParts {
        settings,
        reload,
        around,
        sessions,
        layout,
        models,
        dispatch,
        platforms,
        manager,
        skills,
        memories,
        system_events,
        heartbeats,
        approvals,
        forwarder,
        sandboxes,
        health,
        presence,
        events,
        served,
        log_file: given.log_file,
        started: given.started,
        port: given.port,
        tasks,
        stopping,
        loaded: given.loaded,
    })
}

/// Memory of the agents, with secrets masked in what was said as the log masks them.
fn memories(
    settings: &CurrentSettings,
    models: &Models,
    transcripts: &Transcripts,
    config: &Config,
) -> Memories {
    // Made with the first transcript that is read.
    let (redactor, patterns) = (OnceLock::new(), config.logging.redact_patterns.clone());
    let mask =
        Arc::new(move |text: &str| redactor.get_or_init(|| Redactor::in_any_case(&patterns)).mask(text));
    Memories::new(settings.follow(), models.clone(), transcripts.clone(), mask)
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
        heartbeats.wish(HeartbeatRequest {
            reason: HeartbeatReason::ExecEvent,
            agent: Some(key.agent_or(&default_agent)),
        });
    };
    let notices = CommandNotices::new(Arc::clone(events), Box::new(wake));
    Arc::new(CommandSessions::keeping(Arc::new(notices)))
}

/// Wakes agents that were not told before the last stop how their commands ended.
fn wake_owed(events: &SystemEvents, heartbeats: &Heartbeats, default_agent: &AgentId) {
    let agents: BTreeSet<AgentId> =
        events.sessions_with_notices().iter().map(|key| key.agent_or(default_agent)).collect();
    for agent in agents {
        heartbeats.wish(HeartbeatRequest { reason: HeartbeatReason::ExecEvent, agent: Some(agent) });
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
async fn open_transcripts(layout: &Layout, agents: Vec<AgentId>) -> Transcripts {
    let swept = layout.clone();
    // A panic is in the log; a lock that stays is taken over when its conversation goes on.
    let _ = tokio::task::spawn_blocking(move || transcript::sweep_locks(&swept, &agents)).await;
    Transcripts::in_files(layout.clone())
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
