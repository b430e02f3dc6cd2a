//! How commands run (spec `tools.md` §3): `tools.exec` with its defaults, and what the process was started with.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use openclaw_agent::skills::Overlay;
use openclaw_config::Environment;
use openclaw_config::settings::{Exec, ExecAsk, ExecHost, ExecSecurity};
use openclaw_protocol::SessionKey;

use super::approvals::safe_bins;
use super::approvals::store::ApprovalsStore;
use super::guard::CommandLock;
use super::sessions::CommandSessions;
use crate::approvals::Approvals;
use crate::sandbox::ActiveSandbox;

/// Seconds a command may take when neither the call nor the configuration says.
const DEFAULT_TIMEOUT_SECONDS: u64 = 1800;
/// Characters of output that are kept, and how few the owner may make of them (spec `tools.md` §3.1 row 11).
const OUTPUT_CHARS: std::ops::RangeInclusive<usize> = 1_000..=200_000;
/// How many are kept of all that a command printed.
const OUTPUT_VARIABLE: &str = "PI_BASH_MAX_OUTPUT_CHARS";
/// How many are kept for the next poll.
const PENDING_VARIABLE: &str = "OPENCLAW_BASH_PENDING_MAX_OUTPUT_CHARS";

/// After how long a command goes to the background (spec `tools.md` §3.1 row 3); 10 seconds.
pub(super) fn window(ms: Option<u64>) -> Duration {
    Duration::from_millis(ms.unwrap_or(10_000).clamp(10, 120_000))
}

/// As many as the variable says, within bounds.
fn output_chars(environment: &Environment, variable: &str) -> usize {
    let said = environment.get_nonblank(variable).and_then(|text| text.trim().parse().ok());
    said.unwrap_or(*OUTPUT_CHARS.end()).clamp(*OUTPUT_CHARS.start(), *OUTPUT_CHARS.end())
}

fn default_safe_bins() -> Arc<[String]> {
    static BINS: LazyLock<Arc<[String]>> =
        LazyLock::new(|| safe_bins::DEFAULT.iter().map(|name| (*name).to_owned()).collect());
    Arc::clone(&BINS)
}

/// How far commands are elevated (spec `tools.md` §8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ElevatedMode {
    /// Not at all.
    #[default]
    Off,
    /// They run on this host, and ask as its rules say.
    Ask,
    /// They run on this host, and nobody is asked.
    Full,
}

/// Whether commands may be elevated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elevated {
    /// What holds where the call does not say.
    pub mode: ElevatedMode,
    /// Why they may not be: what has to be set for it ([`Elevated::unavailable`]).
    pub refusal: Option<String>,
}

impl Elevated {
    /// Whether commands may leave the sandbox.
    pub(crate) fn is_available(&self) -> bool {
        self.refusal.is_none() && self.mode != ElevatedMode::Off
    }

    /// What is said where commands may not be elevated.
    pub fn unavailable(is_sandboxed: bool, refusal: &str) -> String {
        let runtime = if is_sandboxed { "sandboxed" } else { "direct" };
        let text = format!("elevated is not available right now (runtime={runtime}).\n{refusal}");
        text.trim_end().to_owned()
    }
}

impl Default for Elevated {
    fn default() -> Self {
        Self { mode: ElevatedMode::Off, refusal: Some(String::new()) }
    }
}

/// Finds the programs that belong to skills. Blocking.
#[derive(Clone, Default)]
pub struct SkillBins(Option<Arc<dyn Fn() -> BTreeSet<String> + Send + Sync>>);

impl SkillBins {
    /// Finds them so.
    pub fn by(find: impl Fn() -> BTreeSet<String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(find)))
    }

    pub(super) fn find(&self) -> BTreeSet<String> {
        self.0.as_ref().map(|find| find()).unwrap_or_default()
    }
}

impl std::fmt::Debug for SkillBins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillBins").finish_non_exhaustive()
    }
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
    /// The same of what was not polled yet.
    pub max_pending_chars: usize,
    /// What commands inherit unless it is withheld, `SHELL` and `PATH` among it; its home is what `~` stands for in all tools.
    pub environment: Environment,
    /// Variables with credentials of the gateway, which commands do not inherit.
    pub withheld: Arc<BTreeSet<String>>,
    /// Withheld variables that commands inherit nevertheless (`tools.exec.passEnv`).
    pub pass_env: Vec<String>,
    /// What they are given where they do not inherit it, for skills.
    pub overlay: Arc<Overlay>,
    /// Who may do what on this host without asking; absent outside of a gateway.
    pub approvals: Option<ApprovalsStore>,
    /// Where people are asked.
    pub people: Arc<Approvals>,
    /// The agent, by whose rules commands are judged.
    pub agent: String,
    /// Programs that may run where they only work on what is piped into them.
    pub safe_bins: Arc<[String]>,
    /// Programs of skills.
    pub skill_bins: SkillBins,
    /// After how long it is told that a command runs that a person has allowed.
    pub running_notice: Duration,
    /// Whether commands may be elevated, and whether they are where the call does not say.
    pub elevated: Elevated,
    /// Where commands run, if the run is in a sandbox. They run nowhere else then.
    pub sandbox: Option<Arc<ActiveSandbox>>,
    /// Held by each running command; absent outside of a gateway.
    pub lock: Option<CommandLock>,
    /// The commands of this gateway.
    pub sessions: Arc<CommandSessions>,
    /// Whose commands are seen, such as `agent:main`.
    pub scope: String,
    /// The same for commands that leave the sandbox of the run; absent where no sandbox holds it. What runs in a sandbox never sees
    /// them, and what is held in one sees no other command of the host.
    pub outside_scope: Option<String>,
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
            max_output_chars: output_chars(&environment, OUTPUT_VARIABLE),
            max_pending_chars: output_chars(&environment, PENDING_VARIABLE),
            environment,
            withheld: Arc::default(),
            pass_env: config.pass_env.clone().unwrap_or_default(),
            overlay: Arc::default(),
            approvals: None,
            people: Arc::default(),
            agent: String::new(),
            safe_bins: config.safe_bins.clone().map_or_else(default_safe_bins, Arc::from),
            skill_bins: SkillBins::default(),
            running_notice: Duration::from_millis(config.approval_running_notice_ms.unwrap_or(10_000)),
            elevated: Elevated::default(),
            sandbox: None,
            lock: None,
            sessions: Arc::new(CommandSessions::new(Box::new(|_, _| {}))),
            scope: String::new(),
            outside_scope: None,
            owner: None,
            may_background: false,
            background: window(config.background_ms),
            kept: CommandSessions::kept(config.cleanup_ms),
            notify_on_exit: config.notify_on_exit.unwrap_or(true),
        }
    }

    /// Who sees a command that runs in the sandbox of the run, or outside of it.
    pub(crate) fn scope_of(&self, is_outside: bool) -> &str {
        self.outside_scope.as_deref().filter(|_| is_outside).unwrap_or(&self.scope)
    }

    /// The scopes whose commands the run sees. Those outside its sandbox are for who may run commands there.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = &str> {
        let outside = self.outside_scope.as_deref().filter(|_| self.elevated.is_available());
        [&*self.scope].into_iter().chain(outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec `tools.md` §3.1 row 11.
    #[test]
    fn the_owner_says_within_bounds_how_much_output_is_kept() {
        for (said, expect) in [
            ("", 200_000),
            ("x", 200_000),
            ("-5", 200_000),
            ("0", 1_000),
            ("999", 1_000),
            (" 5000 ", 5_000),
            ("200000", 200_000),
            ("9999999", 200_000),
        ] {
            for (variable, other) in
                [(OUTPUT_VARIABLE, PENDING_VARIABLE), (PENDING_VARIABLE, OUTPUT_VARIABLE)]
            {
                let environment = Environment::new([(variable, said)], "/");
                let settings = ExecSettings::new(&Exec::default(), environment);
                let kept = (settings.max_output_chars, settings.max_pending_chars);
                let expect = if variable == OUTPUT_VARIABLE { (expect, 200_000) } else { (200_000, expect) };
                assert_eq!(kept, expect, "{variable}={said} beside {other}");
            }
        }
    }
}
