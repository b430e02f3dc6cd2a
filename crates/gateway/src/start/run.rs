//! The order of events from the command line to the exit.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_agent::skills::{self, SkillBook};
use openclaw_config::gateway_options::{GatewayFlags, GatewayOptions, StartRefusal, gateway_options};
use openclaw_config::protections::Refuses;
use openclaw_config::{
    Config, Environment, ExposedState, InvalidConfig, Loaded, Unmet, exposed_state, left_workspaces,
    private_file, shared_place, unheeded_approvals, unmet_protections,
};
use openclaw_delivery::outbox::OutboxError;
use openclaw_dispatch::{Dispatch, Settings, StartError as DispatchStartError};
use openclaw_models::{Ask, Models};
use openclaw_protocol::params::config::RestartSentinel;
use openclaw_runtime::tool_access::unknown_names;
use openclaw_sessions::StoreError;
use openclaw_sessions::maintenance::Maintenance;
use openclaw_tools::exec_approvals::store::ApprovalsStore;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::file_limit;
use super::force::{ForceError, free_port, holder_that_is_no_gateway};
use super::hold::lock_files;
use super::instance_lock::{InstanceLock, InstanceLockError};
use super::old_state;
use super::parts::{GatewayParts, Ingredients, assemble};
use super::places::{self, not_ours, state_dir_error};
use super::signals::Signals;
use super::stop::{self, ShutdownReason};
use crate::absent_features::{Absent, absent_features};
use crate::channels::moved;
use crate::current_settings::CurrentSettings;
use crate::handshake::origin::PageRules;
use crate::health::HealthMonitor;
use crate::heartbeat::{self, BeatParts};
use crate::host::{Host, own_addresses};
use crate::logging::{ConsoleFacts, LogFile, LogGuard, LogPlan};
use crate::reload::{self, Reload, ReloadRequests, ReloadTargets};
use crate::sentinel::{self, SentinelParts};
use crate::server::accept;
use crate::server::front::Front;
use crate::server::listen::{ListenError, listen};
use crate::server::own_page;
use crate::state::GatewayState;
use crate::umask::keep_files_private;
use crate::upkeep::{self, UpkeepParts};
use crate::{approval_events, free_memory, sandbox_upkeep, ticker, web_chat};

/// Delay from the moment in which clients can connect to the call of start-up hooks (spec
/// `agent-runtime.md` §8.2).
const STARTUP_HOOKS: Duration = Duration::from_millis(250);

/// Options for running a gateway.
pub struct RunOptions {
    /// Variables, home and working directory; the config is read with them when it changes.
    pub environment: Environment,
    /// The config as it was read with them.
    pub loaded: Arc<Loaded>,
    /// `--port`, `--bind`, `--token` and so on.
    pub flags: GatewayFlags,
    /// `--force`: end the gateway that holds the port.
    pub force: bool,
    /// Target of the log.
    pub log: LogTarget,
    /// Sender that is used once, when clients can connect.
    pub ready: Option<oneshot::Sender<Ready>>,
    /// Stops the gateway, like SIGTERM.
    pub stop: CancellationToken,
    /// Hears signals since before the start; without it they are heard from the start on.
    pub signals: Option<Signals>,
}

impl RunOptions {
    /// A gateway as the environment and its config want it, logging for the whole process.
    pub fn new(environment: Environment, loaded: Arc<Loaded>) -> Self {
        Self {
            environment,
            loaded,
            flags: GatewayFlags::default(),
            force: false,
            log: LogTarget::Process { verbose: false, no_colour: false },
            ready: None,
            stop: CancellationToken::new(),
            signals: None,
        }
    }
}

/// Target of a gateway's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogTarget {
    /// Logs to the log file and the console, for the whole process.
    Process {
        /// `--verbose`
        verbose: bool,
        /// `--no-color` or `NO_COLOR`
        no_colour: bool,
    },
    /// Wherever the process logs already. For gateways inside of tests.
    Existing,
}

/// A gateway that clients can connect to.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Addresses it listens on, the main address first.
    pub addresses: Vec<SocketAddr>,
    /// Shared state of the gateway.
    pub state: Arc<GatewayState>,
}

/// Way in which a gateway ended. All are exit code 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Stopped: all work was finished, closed and flushed.
    Stopped,
    /// The time for stopping was over; what was accepted is safe and goes on after the next start.
    OutOfTime,
    /// A restart was asked for: the caller starts the gateway again, in this process.
    Restart,
}

/// Reason why a gateway does not start. The text is for the operator.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no config.
    #[error("Missing config. Run `openclaw setup` or set gateway.mode=local (or pass --allow-unconfigured).")]
    MissingConfig,
    /// The config has mistakes.
    #[error("{0}\nCorrect the file, then start again.")]
    InvalidConfig(#[from] InvalidConfig),
    /// The settings don't allow it.
    #[error(transparent)]
    Refused(#[from] StartRefusal),
    /// The config asks for a protection without which a gateway must not be reachable.
    #[error("{0}")]
    Unprotected(Box<Unmet>),
    /// The state directory can't be used.
    #[error(
        "the state directory {path} cannot be used: {source}; {}, or set OPENCLAW_STATE_DIR",
        if private_file::is_full(source) { "free space on that disk" } else { "make it writable" }
    )]
    StateDir {
        /// The directory.
        path: PathBuf,
        /// Error from the system.
        source: std::io::Error,
    },
    /// Something in a place that others may write to is not ours.
    #[error("the {what} {path} cannot be used: {source} ({setting})")]
    NotOurs {
        /// Use of the directory, for people.
        what: &'static str,
        /// The directory.
        path: PathBuf,
        /// Error that says which directory is not ours, and what to do.
        source: std::io::Error,
        /// Setting that names another directory.
        setting: &'static str,
    },
    /// Another gateway runs.
    #[error("Gateway failed to start: {}{}", .0, advice(.0))]
    Lock(#[from] InstanceLockError),
    /// The port was not freed.
    #[error(transparent)]
    Force(#[from] ForceError),
    /// The address can't be had.
    #[error(
        "Gateway failed to start: {0}\nStop what listens there (--force does), or choose another port with --port"
    )]
    Listen(#[from] ListenError),
    /// Another program has the port.
    #[error(
        "Gateway failed to start: port {port} is held by pid {pid} ({command}), which is not a gateway; stop it, or choose \
         another port with --port"
    )]
    PortTaken {
        /// The port.
        port: u16,
        /// The process.
        pid: u32,
        /// Command line of the process.
        command: String,
    },
    /// The session store can't be opened.
    #[error("Gateway failed to start: {0}")]
    Sessions(#[from] StoreError),
    /// Dispatch can't start.
    #[error("Gateway failed to start: {0}")]
    Dispatch(#[from] DispatchStartError),
    /// Messages that platforms brought before the last stop can't be read.
    #[error("Gateway failed to start: {0}")]
    Arrivals(#[from] OutboxError),
    /// The system gives no signals.
    #[error("Gateway failed to start: cannot listen for signals: {0}")]
    Signals(std::io::Error),
}

/// Runs a gateway until it is told to stop.
///
/// # Errors
/// When it does not start.
pub async fn run(mut options: RunOptions) -> Result<ExitStatus, StartError> {
    let started = Instant::now();
    if options.log != LogTarget::Existing {
        keep_files_private();
        file_limit::raise();
    }
    let loaded = Arc::clone(&options.loaded);
    let config = usable_config(&loaded, &options.flags)?;
    let gateway = gateway_options(&config, &loaded.environment, &options.flags)?;
    if let Some(unmet) = unmet_protections(&config).into_iter().find(|unmet| unmet.refuses == Refuses::Start)
    {
        return Err(StartError::Unprotected(Box::new(unmet)));
    }
    let closed = places::claim(&config)?;
    let (log_file, _log) = start_log(&options, &loaded, &config);
    closed.iter().for_each(|line| tracing::warn!("{line}"));
    let signals = options.signals.take().map_or_else(Signals::listen, Ok);
    let mut signals = signals.map_err(StartError::Signals)?;
    let force = if options.force { free_port(gateway.port).await? } else { Vec::new() };
    let mut lock = lock(&loaded).await?;
    let listeners = listen(&gateway, &own_addresses()).map_err(|error| not_listening(error, gateway.port))?;
    let addresses: Vec<SocketAddr> =
        listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    let port = addresses.first().map_or(gateway.port, SocketAddr::port);
    // A gateway for a single run inside a command is not announced.
    if options.log != LogTarget::Existing
        && let Err(error) = lock.announce(port)
    {
        tracing::warn!(%error, "could not note the port in the lock file");
    }
    let host = Host::detect();
    let pages = PageRules::new(&host.name, &config.gateway.control_ui.allowed_origins);
    let front = Arc::new(Front::new(pages, file_limit::places()));
    // The guard ends every wait for a gateway that does not come, whatever goes wrong from here on.
    let _closing = front.stopping.clone().drop_guard();
    for listener in listeners {
        front.tasks.spawn(accept::run(listener, Arc::clone(&front)));
    }
    let auth = gateway.auth.clone();
    let (reload, asked) = Reload::new(options.environment.clone());
    let is_daemon = options.log != LogTarget::Existing;
    let front_door = Arc::clone(&front);
    let given =
        Ingredients { loaded, auth, port, log_file, started, host, front: front_door, reload, is_daemon };
    lock.begin_runs();
    old_state::migrate(&config).await;
    let parts = assemble(&config, given).await?;
    serve(&parts);
    follow_config(&parts, asked);
    let left = if is_daemon { sentinel::left(parts.loaded.paths.state_dir()).await } else { None };
    front.open(Arc::clone(&parts.served));
    if let Some(ready) = options.ready {
        let state = Arc::new(GatewayState {
            settings: parts.settings.clone(),
            sessions: Arc::clone(&parts.sessions),
            dispatch: parts.dispatch.clone(),
            events: Arc::clone(&parts.events),
            served: Arc::clone(&parts.served),
        });
        // The receiver may have given up.
        let _ = ready.send(Ready { addresses: addresses.clone(), state });
    }
    if is_daemon {
        parts.dispatch.follow_groups(moved::follow(parts.reload.clone()));
        let sink = parts.dispatch.inbound().await?;
        parts.tasks.spawn(Arc::clone(&parts.manager).run(sink, parts.stopping.clone()));
        if let Some(left) = left {
            tell_of_restart(&parts, left);
        }
    }
    if is_daemon {
        let memories = parts.memories.clone();
        parts.tasks.spawn(async move { memories.begin().await });
    }
    if is_daemon && parts.dispatch.has_hooks() {
        let (dispatch, stopping) = (parts.dispatch.clone(), parts.stopping.clone());
        parts.tasks.spawn(tell_hooks(dispatch, parts.port, stopping));
    }
    force.iter().for_each(|line| tracing::info!("{line}"));
    report(&parts, &gateway, &addresses);
    if is_daemon {
        web_chat::tell(&config, &gateway.auth, &addresses);
    }
    let why = tokio::select! {
        () = options.stop.cancelled() => ShutdownReason::Stop,
        why = signals.stop_asked(|| parts.settings.config().commands.restart) => why,
        () = parts.around.restart_asked() => ShutdownReason::Restart,
    };
    let deadline = stop::restart_deadline();
    let why = match why {
        ShutdownReason::Stop => ShutdownReason::Stop,
        ShutdownReason::Restart => tokio::select! { biased;
            () = stop::drain(&parts, deadline) => ShutdownReason::Restart,
            () = signals.terminated() => ShutdownReason::Stop,
            () = options.stop.cancelled() => ShutdownReason::Stop,
        },
    };
    if is_daemon {
        parts.dispatch.tell_stopping(why.reason());
    }
    let status = end(&parts, why, deadline, &mut signals).await;
    match status {
        ExitStatus::Stopped | ExitStatus::Restart => lock.ended_cleanly(),
        ExitStatus::OutOfTime => drop(lock),
    }
    Ok(status)
}

/// Ends the gateway. A stop during a restart does not wait for runs, and the gateway does not start
/// again.
async fn end(
    parts: &GatewayParts,
    why: ShutdownReason,
    deadline: tokio::time::Instant,
    signals: &mut Signals,
) -> ExitStatus {
    let hurry = CancellationToken::new();
    let mut ending = std::pin::pin!(stop::stop(parts, why, deadline, &hurry));
    if why == ShutdownReason::Restart {
        tokio::select! { biased;
            () = &mut ending => return ExitStatus::Restart,
            () = signals.terminated() => hurry.cancel(),
        }
    }
    tokio::select! {
        ended = timeout(stop::LIMIT, ending) => ended.map_or(ExitStatus::OutOfTime, |()| ExitStatus::Stopped),
        () = signals.ignored() => ExitStatus::OutOfTime,
    }
}

/// Tells hooks of the start, once a waiting client had a moment to connect.
async fn tell_hooks(dispatch: Dispatch, port: u16, stopping: CancellationToken) {
    tokio::select! { biased;
        () = stopping.cancelled() => {}
        () = async {
            tokio::time::sleep(STARTUP_HOOKS).await;
            dispatch.tell_started(port).await;
        } => {}
    }
}

/// Error that says which program has the port, where it is not a gateway.
fn not_listening(error: ListenError, port: u16) -> StartError {
    let in_use = matches!(error, ListenError::InUse { .. });
    match in_use.then(|| holder_that_is_no_gateway(port)).flatten() {
        Some((pid, command)) => StartError::PortTaken { port, pid, command },
        None => error.into(),
    }
}

fn advice(error: &InstanceLockError) -> &'static str {
    match error {
        InstanceLockError::Held { .. } => {
            "\nStop that gateway, or use another state directory (--profile <name>)"
        }
        InstanceLockError::Io { .. } => "",
    }
}

fn usable_config(loaded: &Loaded, flags: &GatewayFlags) -> Result<Arc<Config>, StartError> {
    if !loaded.snapshot.exists && !flags.allow_unconfigured {
        return Err(StartError::MissingConfig);
    }
    Ok(Arc::clone(loaded.config()?))
}

fn start_log(options: &RunOptions, loaded: &Loaded, config: &Config) -> (Option<LogFile>, Option<LogGuard>) {
    let LogTarget::Process { verbose, no_colour } = options.log else { return (None, None) };
    let console = ConsoleFacts {
        is_terminal: std::io::stdout().is_terminal(),
        no_colour: no_colour || loaded.environment.get_nonblank("NO_COLOR").is_some(),
        verbose,
        is_journald: loaded.environment.get_nonblank("JOURNAL_STREAM").is_some(),
    };
    let plan = LogPlan::new(&config.logging, loaded.paths.log_dir(), console);
    (plan.file.clone(), Some(plan.install()))
}

async fn lock(loaded: &Loaded) -> Result<InstanceLock, StartError> {
    let paths = &loaded.paths;
    let files = lock_files(loaded);
    InstanceLock::acquire(&files, paths.config_path()).await.map_err(|error| match error {
        InstanceLockError::Io { path, source } if path.parent() == Some(paths.state_dir()) => {
            state_dir_error(paths.state_dir(), source)
        }
        InstanceLockError::Io { source, .. } if shared_place::is_not_ours(&source) => {
            not_ours("lock directory", paths.lock_dir(), source, "TMPDIR")
        }
        other => other.into(),
    })
}

/// Starts the tasks that a gateway consists of.
fn serve(parts: &GatewayParts) {
    let stopping = || parts.stopping.clone();
    let mut said = parts.dispatch.subscribe();
    let (events, presence) = (|| Arc::clone(&parts.events), || Arc::clone(&parts.presence));
    let hub = events();
    parts.tasks.spawn(async move {
        while let Some(broadcast) = said.recv().await {
            hub.forward(broadcast);
        }
    });
    approval_events::listen(&parts.approvals, events(), &parts.forwarder);
    parts.tasks.spawn(ticker::run(presence(), events(), Arc::clone(&parts.health), stopping()));
    parts.tasks.spawn(ticker::tell_presence(presence(), events(), stopping()));
    let upkept = UpkeepParts {
        settings: parts.settings.clone(),
        sessions: Arc::clone(&parts.sessions),
        maintenance: Maintenance::new(parts.layout.clone()),
        dispatch: parts.dispatch.clone(),
    };
    parts.tasks.spawn(upkeep::run(upkept, stopping()));
    let sandboxes = Arc::clone(&parts.sandboxes);
    parts.tasks.spawn(sandbox_upkeep::run(sandboxes, parts.settings.clone(), stopping()));
    parts.tasks.spawn(free_memory::run(stopping()));
    let beats = BeatParts {
        heartbeats: Arc::clone(&parts.heartbeats),
        settings: parts.settings.clone(),
        sessions: Arc::clone(&parts.sessions),
        system_events: Arc::clone(&parts.system_events),
        platforms: Arc::clone(&parts.platforms),
        dispatch: parts.dispatch.clone(),
        events: events(),
    };
    parts.tasks.spawn(heartbeat::run(beats, stopping()));
    parts.tasks.spawn(follow_skills(Arc::clone(&parts.skills), parts.settings.clone(), stopping()));
}

/// Reads skills again after edits, until the gateway stops.
async fn follow_skills(book: Arc<SkillBook>, settings: CurrentSettings, stopping: CancellationToken) {
    let config = |settings: &Arc<Settings>| Arc::clone(&settings.config);
    tokio::select! { biased;
        () = stopping.cancelled() => {}
        () = skills::follow(book, settings.follow(), config) => {}
    }
}

/// Takes edits of the config file from now on.
fn follow_config(parts: &GatewayParts, asked: ReloadRequests) {
    let targets = ReloadTargets {
        loaded: Arc::clone(&parts.loaded),
        reload: parts.reload.clone(),
        settings: parts.settings.clone(),
        sessions: Arc::clone(&parts.sessions),
    };
    parts.tasks.spawn(reload::follow(targets, asked, parts.stopping.clone()));
}

/// Tells a session of the restart that the last process left to be reported.
fn tell_of_restart(parts: &GatewayParts, left: RestartSentinel) {
    let told = SentinelParts {
        state_dir: Arc::from(parts.loaded.paths.state_dir()),
        settings: parts.settings.clone(),
        sessions: Arc::clone(&parts.sessions),
        system_events: Arc::clone(&parts.system_events),
        platforms: Arc::clone(&parts.platforms),
        dispatch: parts.dispatch.clone(),
    };
    parts.tasks.spawn(sentinel::tell(told, left, parts.stopping.clone()));
}

/// Logs what an operator looks for after a start.
fn report(parts: &GatewayParts, gateway: &GatewayOptions, addresses: &[SocketAddr]) {
    let paths = &parts.loaded.paths;
    for address in addresses {
        tracing::info!("listening on ws://{address} (PID {})", std::process::id());
    }
    if let Some(file) = &parts.log_file {
        tracing::info!("log file: {}", file.current().display());
    }
    tracing::info!(
        state = %paths.state_dir().display(),
        config = %paths.config_path().display(),
        started_in_ms = u64::try_from(parts.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "gateway started",
    );
    for unmet in parts.settings.get().unmet.iter() {
        tracing::warn!("{unmet}");
    }
    let findings = parts.loaded.snapshot.warnings.iter().map(openclaw_config::Issue::line);
    for line in
        gateway.warnings.iter().cloned().chain(parts.loaded.snapshot.migrated.iter().cloned()).chain(findings)
    {
        tracing::warn!("{line}");
    }
    let (models, settings) = (parts.models.clone(), parts.settings.get());
    parts.tasks.spawn(async move { report_model(&models, &settings).await });
    let sessions = Arc::clone(&parts.sessions);
    parts.tasks.spawn_blocking(move || sessions.prepare());
    let (loaded, settings) = (Arc::clone(&parts.loaded), parts.settings.clone());
    let health = Arc::clone(&parts.health);
    parts.tasks.spawn_blocking(move || {
        let config = settings.config();
        report_approvals(loaded.paths.state_dir(), &config);
        report_places(&config);
        report_tools(&config);
        report_absent(&loaded, &health);
    });
}

/// Names what tools reach or are called that their owner did not mean.
fn report_tools(config: &Config) {
    for exposed in exposed_state(config) {
        tracing::warn!("{exposed} {}", ExposedState::REMEDY);
    }
    for unknown in unknown_names(config) {
        tracing::warn!("{unknown}");
    }
}

/// Names what the state directory asks for and this version does not have.
fn report_absent(loaded: &Loaded, health: &HealthMonitor) {
    let Absent { features, keys } = absent_features(loaded);
    for feature in &features {
        tracing::warn!("{}", feature.message);
    }
    for path in keys {
        tracing::warn!("not supported yet: {path}");
    }
    health.note_absent(features);
}

/// Names an approvals file that does not do what it is there for.
fn report_approvals(state_dir: &Path, config: &Config) {
    let store = ApprovalsStore::new(state_dir, &config.environment().home());
    match store.load() {
        Err(error) => tracing::warn!("{error}"),
        Ok(loaded) if loaded.file.has_rules() => {
            if let Some(says) = unheeded_approvals(config) {
                tracing::warn!("{}: {says}", loaded.path.display());
            }
        }
        Ok(_) => {}
    }
}

/// Names files that are not where they are looked for.
fn report_places(config: &Config) {
    for left in left_workspaces(config) {
        tracing::warn!("{left}");
    }
    if let Some(root) = own_page::without_page(config) {
        tracing::warn!("gateway.controlUi.root: there is no index.html in {}", root.display());
    }
}

/// Names the default agent's model; finding it out may take a while.
async fn report_model(models: &Models, settings: &Settings) {
    let agent = settings.config.default_agent();
    let agent_dir = settings.config.agent(&agent).agent_dir;
    let ask = Ask::new(&agent, &agent_dir);
    match models.describe(&settings.models, &ask).await {
        Ok(described) => tracing::info!("agent model: {}", described.reference),
        Err(error) => tracing::warn!(%error, "agent {agent} has no usable model"),
    }
    for warning in models.warn_of_fallbacks(&settings.models, &agent_dir).await {
        tracing::warn!("{warning}");
    }
}
