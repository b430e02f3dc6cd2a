//! The order of events from the command line to the exit.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_agent::skills;
use openclaw_config::gateway_options::{GatewayFlags, GatewayOptions, StartRefusal, gateway_options};
use openclaw_config::protections::Refuses;
use openclaw_config::{
    Config, Environment, ExposedState, InvalidConfig, Loaded, Unmet, exposed_state, left_workspaces,
    private_file, shared_place, unheeded_approvals, unmet_protections,
};
use openclaw_delivery::outbox::OutboxError;
use openclaw_dispatch::{Settings, StartError as DispatchStartError};
use openclaw_models::Ask;
use openclaw_runtime::tool_access::unknown_names;
use openclaw_sessions::StoreError;
use openclaw_tools::exec_approvals::store::ApprovalsStore;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::file_limit;
use super::force::{ForceError, free_port, holder_that_is_no_gateway};
use super::hold::lock_files;
use super::instance_lock::{InstanceLock, LockError};
use super::old_state;
use super::parts::{Ingredients, assemble};
use super::places::{self, not_ours, state_dir_error};
use super::signals::Signals;
use super::stop::{self, Why};
use crate::absent_features::{Absent, absent_features};
use crate::channels::ChannelManager;
use crate::handshake::origin::PageRules;
use crate::host::{Host, own_addresses};
use crate::logging::{ConsoleFacts, LogFile, LogGuard, LogPlan};
use crate::reload::{self, Reload};
use crate::server::accept;
use crate::server::front::Front;
use crate::server::listen::{ListenError, listen};
use crate::server::own_page;
use crate::state::GatewayState;
use crate::umask::keep_files_private;
use crate::{approval_events, free_memory, heartbeat, sandbox_upkeep, sentinel, ticker, upkeep, web_chat};

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

impl std::fmt::Debug for GatewayState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayState").field("port", &self.port).finish_non_exhaustive()
    }
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
    Lock(#[from] LockError),
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
    let state = Arc::new(assemble(&config, given).await?);
    serve(&state);
    state.tasks.spawn(reload::follow(Arc::clone(&state), asked));
    let left = if is_daemon { sentinel::left(state.paths().state_dir()).await } else { None };
    front.open(Arc::clone(&state));
    if let Some(ready) = options.ready {
        // The receiver may have given up.
        let _ = ready.send(Ready { addresses: addresses.clone(), state: Arc::clone(&state) });
    }
    if is_daemon {
        state.dispatch.follow_groups(crate::channels::moved::follow(&state));
        let sink = state.dispatch.inbound().await?;
        state.tasks.spawn(ChannelManager::run(Arc::clone(&state), sink));
        if let Some(left) = left {
            state.tasks.spawn(sentinel::tell(Arc::clone(&state), left));
        }
    }
    if is_daemon && state.dispatch.has_hooks() {
        state.tasks.spawn(tell_hooks(Arc::clone(&state)));
    }
    force.iter().for_each(|line| tracing::info!("{line}"));
    report(&state, &gateway, &addresses);
    if is_daemon {
        web_chat::tell(&config, &gateway.auth, &addresses);
    }
    let why = tokio::select! {
        () = options.stop.cancelled() => Why::Stop,
        why = signals.stop_asked(|| state.config().commands.restart) => why,
        () = state.around.restart_asked() => Why::Restart,
    };
    let deadline = stop::restart_deadline();
    let why = match why {
        Why::Stop => Why::Stop,
        Why::Restart => tokio::select! { biased;
            () = stop::drain(&state, deadline) => Why::Restart,
            () = signals.terminated() => Why::Stop,
            () = options.stop.cancelled() => Why::Stop,
        },
    };
    if is_daemon {
        state.dispatch.tell_stopping(why.reason());
    }
    let status = end(&state, why, deadline, &mut signals).await;
    match status {
        ExitStatus::Stopped | ExitStatus::Restart => lock.ended_cleanly(),
        ExitStatus::OutOfTime => drop(lock),
    }
    Ok(status)
}

/// Ends the gateway. A stop during a restart does not wait for runs, and the gateway does not start
/// again.
async fn end(
    state: &Arc<GatewayState>,
    why: Why,
    deadline: tokio::time::Instant,
    signals: &mut Signals,
) -> ExitStatus {
    let hurry = CancellationToken::new();
    let mut ending = std::pin::pin!(stop::stop(state, why, deadline, &hurry));
    if why == Why::Restart {
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
async fn tell_hooks(state: Arc<GatewayState>) {
    tokio::select! { biased;
        () = state.stopping.cancelled() => {}
        () = async {
            tokio::time::sleep(STARTUP_HOOKS).await;
            state.dispatch.tell_started(state.port).await;
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

fn advice(error: &LockError) -> &'static str {
    match error {
        LockError::Held { .. } => "\nStop that gateway, or use another state directory (--profile <name>)",
        LockError::Io { .. } => "",
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
        LockError::Io { path, source } if path.parent() == Some(paths.state_dir()) => {
            state_dir_error(paths.state_dir(), source)
        }
        LockError::Io { source, .. } if shared_place::is_not_ours(&source) => {
            not_ours("lock directory", paths.lock_dir(), source, "TMPDIR")
        }
        other => other.into(),
    })
}

/// Starts the tasks that a gateway consists of.
fn serve(state: &Arc<GatewayState>) {
    let mut said = state.dispatch.subscribe();
    let hub = Arc::clone(state);
    state.tasks.spawn(async move {
        while let Some(broadcast) = said.recv().await {
            hub.events.forward(broadcast);
        }
    });
    approval_events::listen(state);
    state.tasks.spawn(ticker::run(Arc::clone(state)));
    state.tasks.spawn(ticker::tell_presence(Arc::clone(state)));
    state.tasks.spawn(upkeep::run(Arc::clone(state)));
    state.tasks.spawn(sandbox_upkeep::run(Arc::clone(state)));
    state.tasks.spawn(free_memory::run(state.stopping.clone()));
    state.tasks.spawn(heartbeat::run(Arc::clone(state)));
    state.tasks.spawn(follow_skills(Arc::clone(state)));
}

/// Reads skills again after edits, until the gateway stops.
async fn follow_skills(state: Arc<GatewayState>) {
    let config = |settings: &Arc<Settings>| Arc::clone(&settings.config);
    tokio::select! { biased;
        () = state.stopping.cancelled() => {}
        () = skills::follow(Arc::clone(&state.skills), state.follow_settings(), config) => {}
    }
}

/// Logs what an operator looks for after a start.
fn report(state: &Arc<GatewayState>, gateway: &GatewayOptions, addresses: &[SocketAddr]) {
    for address in addresses {
        tracing::info!("listening on ws://{address} (PID {})", std::process::id());
    }
    if let Some(file) = &state.log_file {
        tracing::info!("log file: {}", file.current().display());
    }
    tracing::info!(
        state = %state.paths().state_dir().display(),
        config = %state.paths().config_path().display(),
        started_in_ms = state.uptime_ms(),
        "gateway started",
    );
    for unmet in state.settings().unmet.iter() {
        tracing::warn!("{unmet}");
    }
    let findings = state.loaded.snapshot.warnings.iter().map(openclaw_config::Issue::line);
    for line in
        gateway.warnings.iter().cloned().chain(state.loaded.snapshot.migrated.iter().cloned()).chain(findings)
    {
        tracing::warn!("{line}");
    }
    let told = Arc::clone(state);
    state.tasks.spawn(async move { report_model(&told).await });
    let told = Arc::clone(state);
    state.tasks.spawn_blocking(move || {
        report_approvals(&told);
        report_places(&told);
        report_tools(&told.config());
        report_absent(&told);
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
fn report_absent(state: &GatewayState) {
    let Absent { features, keys } = absent_features(&state.loaded);
    for feature in &features {
        tracing::warn!("{}", feature.message);
    }
    for path in keys {
        tracing::warn!("not supported yet: {path}");
    }
    state.note_absent(features);
}

/// Names an approvals file that does not do what it is there for.
fn report_approvals(state: &GatewayState) {
    let config = state.config();
    let store = ApprovalsStore::new(state.paths().state_dir(), &config.environment().home());
    match store.load() {
        Err(error) => tracing::warn!("{error}"),
        Ok(loaded) if loaded.file.has_rules() => {
            if let Some(says) = unheeded_approvals(&config) {
                tracing::warn!("{}: {says}", loaded.path.display());
            }
        }
        Ok(_) => {}
    }
}

/// Names files that are not where they are looked for.
fn report_places(state: &GatewayState) {
    let config = state.config();
    for left in left_workspaces(&config) {
        tracing::warn!("{left}");
    }
    if let Some(root) = own_page::without_page(&config) {
        tracing::warn!("gateway.controlUi.root: there is no index.html in {}", root.display());
    }
}

/// Names the default agent's model; finding it out may take a while.
async fn report_model(state: &GatewayState) {
    let settings = state.settings();
    let agent = settings.config.default_agent();
    let agent_dir = settings.config.agent(&agent).agent_dir;
    let ask = Ask::new(&agent, &agent_dir);
    match state.models.describe(&settings.models, &ask).await {
        Ok(described) => tracing::info!("agent model: {}", described.reference),
        Err(error) => tracing::warn!(%error, "agent {agent} has no usable model"),
    }
    for warning in state.models.warn_of_fallbacks(&settings.models, &agent_dir).await {
        tracing::warn!("{warning}");
    }
}
