//! How commands run (spec `tools.md` §3): `tools.exec` with its defaults, and what the process was started with.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::skills::Overlay;
use openclaw_config::Environment;
use openclaw_config::settings::{Exec, ExecAsk, ExecHost, ExecSecurity};
use openclaw_protocol::SessionKey;

use super::guard::CommandLock;
use super::sessions::CommandSessions;
use crate::sandbox::ActiveSandbox;

/// Seconds a command may take when neither the call nor the configuration says.
const DEFAULT_TIMEOUT_SECONDS: u64 = 1800;
/// Characters of output that are kept (spec `tools.md` §3.1 row 11).
const MAX_OUTPUT_CHARS: usize = 200_000;

/// After how long a command goes to the background (spec `tools.md` §3.1 row 3); 10 seconds.
pub(super) fn window(ms: Option<u64>) -> Duration {
    Duration::from_millis(ms.unwrap_or(10_000).clamp(10, 120_000))
}

/// Everything `exec` must be told.
#[derive(Debug, Clone)]
pub struct ExecSettings {
    /// Where commands run, if configured.
    pub host: Option<ExecHost>,
    /// What may run, if configured.
    pub security: Option<ExecSecurity>,
    /// When a person is asked, if configured.
    pub ask: Option<ExecAsk>,
    /// Directories put before `PATH`.
    pub path_prepend: Vec<String>,
    /// For calls that name no timeout.
    pub timeout: Duration,
    /// Characters of output that are kept, the last ones.
    pub max_output_chars: usize,
    /// What commands inherit unless it is withheld, `SHELL` and `PATH` among it; its home is what `~` stands for in all tools.
    pub environment: Environment,
    /// Variables with credentials of the gateway, which commands do not inherit.
    pub withheld: Arc<BTreeSet<String>>,
    /// Withheld variables that commands inherit nevertheless (`tools.exec.passEnv`).
    pub pass_env: Vec<String>,
    /// What they are given where they do not inherit it, for skills.
    pub overlay: Arc<Overlay>,
    /// The exec approvals file. Where it exists, host=gateway is refused: its rules are not enforced yet.
    pub approvals_file: Option<PathBuf>,
    /// Where commands run, if the run is in a sandbox. They run nowhere else then.
    pub sandbox: Option<Arc<ActiveSandbox>>,
    /// Held by each running command; absent outside of a gateway.
    pub lock: Option<CommandLock>,
    /// The commands of this gateway.
    pub sessions: Arc<CommandSessions>,
    /// Whose commands are seen, such as `agent:main`.
    pub scope: String,
    /// Whose commands are told of when they end in the background, if that is configured.
    pub owner: Option<SessionKey>,
    /// Whether commands may go to the background: not where nothing could be done with them there.
    pub may_background: bool,
    /// After how long a command goes there.
    pub background: Duration,
    /// How long one that has ended there is remembered.
    pub kept: Duration,
    /// Whether its end is told.
    pub notify_on_exit: bool,
}

impl ExecSettings {
    /// `tools.exec` of the agent (already merged over the global one) with its defaults.
    pub fn new(config: &Exec, environment: Environment) -> Self {
        let path_prepend = config.path_prepend.clone().unwrap_or_default();
        Self {
            host: config.host,
            security: config.security,
            ask: config.ask,
            path_prepend: path_prepend
                .iter()
                .map(|dir| environment.expand_tilde(dir).display().to_string())
                .collect(),
            timeout: Duration::from_secs(config.timeout_sec.unwrap_or(DEFAULT_TIMEOUT_SECONDS)),
            max_output_chars: MAX_OUTPUT_CHARS,
            environment,
            withheld: Arc::default(),
            pass_env: config.pass_env.clone().unwrap_or_default(),
            overlay: Arc::default(),
            approvals_file: None,
            sandbox: None,
            lock: None,
            sessions: Arc::new(CommandSessions::new(Box::new(|_, _| {}))),
            scope: String::new(),
            owner: None,
            may_background: false,
            background: window(config.background_ms),
            kept: CommandSessions::kept(config.cleanup_ms),
            notify_on_exit: config.notify_on_exit.unwrap_or(true),
        }
    }
}
