//! Settings for running commands (spec `tools.md` §3): `tools.exec` with its defaults, and the
//! environment of the process.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use openclaw_agent::skills::Overlay;
use openclaw_config::Environment;
use openclaw_config::settings::{Exec, ExecAsk, ExecGate, ExecHost, ExecSecurity};
use openclaw_protocol::SessionKey;

use super::approvals::safe_bins;
use super::approvals::store::ApprovalsStore;
use crate::approvals::Approvals;
use crate::command::guard::CommandLock;
use crate::command::sessions::CommandSessions;
use crate::sandbox::ActiveSandbox;

/// Seconds a command may take when neither the call nor the configuration says.
const DEFAULT_TIMEOUT_SECONDS: u64 = 1800;
/// Characters of output that are kept, and how few the owner may make of them (spec `tools.md` §3.1 row 11).
const OUTPUT_CHARS: std::ops::RangeInclusive<usize> = 1_000..=200_000;
/// Variable for the number of characters that are kept of the whole output.
const OUTPUT_VARIABLE: &str = "PI_BASH_MAX_OUTPUT_CHARS";
/// Variable for the number of characters that are kept for the next poll.
const PENDING_VARIABLE: &str = "OPENCLAW_BASH_PENDING_MAX_OUTPUT_CHARS";

/// Returns the time after which a command goes to the background (spec `tools.md` §3.1 row 3); 10
/// seconds by default.
pub(crate) fn window(ms: Option<u64>) -> Duration {
    Duration::from_millis(ms.unwrap_or(10_000).clamp(10, 120_000))
}

/// Returns the number of characters from a variable, within bounds.
fn output_chars(environment: &Environment, variable: &str) -> usize {
    let said = environment.get_nonblank(variable).and_then(|text| text.trim().parse().ok());
    said.unwrap_or(*OUTPUT_CHARS.end()).clamp(*OUTPUT_CHARS.start(), *OUTPUT_CHARS.end())
}

fn default_safe_bins() -> Arc<[String]> {
    static BINS: LazyLock<Arc<[String]>> =
        LazyLock::new(|| safe_bins::DEFAULT.iter().map(|name| (*name).to_owned()).collect());
    Arc::clone(&BINS)
}

/// Elevation of commands (spec `tools.md` §8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ElevatedMode {
    /// Elevation is off.
    #[default]
    Off,
    /// Commands run on this host and ask for approval as its rules require.
    Ask,
    /// Commands run on this host without approval.
    Full,
}

/// Permission to elevate commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elevated {
    /// Default mode if the call names none.
    pub mode: ElevatedMode,
    /// Reason why commands may not be elevated: the setting that is missing
    /// ([`Elevated::unavailable`]).
    pub refusal: Option<String>,
}

impl Elevated {
    /// Returns true if commands may leave the sandbox.
    pub(crate) fn is_available(&self) -> bool {
        self.refusal.is_none() && self.mode != ElevatedMode::Off
    }

    /// Returns the message if commands may not be elevated.
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

    pub(crate) fn find(&self) -> BTreeSet<String> {
        self.0.as_ref().map(|find| find()).unwrap_or_default()
    }
}

impl std::fmt::Debug for SkillBins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillBins").finish_non_exhaustive()
    }
}

/// Settings of `exec`.
#[derive(Debug, Clone)]
pub struct ExecSettings {
    /// Host on which commands run, if configured.
    pub host: Option<ExecHost>,
    /// Security mode, if configured.
    pub security: Option<ExecSecurity>,
    /// Ask mode, if configured.
    pub ask: Option<ExecAsk>,
    /// Directories put before `PATH`.
    pub path_prepend: Vec<String>,
    /// Default for calls that name no timeout.
    pub timeout: Duration,
    /// Characters of output that are kept, the last ones.
    pub max_output_chars: usize,
    /// Maximum number of kept characters of output that was not polled yet.
    pub max_pending_chars: usize,
    /// Environment that commands inherit, except for what is withheld; includes `SHELL` and `PATH`,
    /// and its home is what `~` stands for in all tools.
    pub environment: Environment,
    /// Variables with credentials of the gateway, which commands do not inherit.
    pub withheld: Arc<BTreeSet<String>>,
    /// Withheld variables that commands inherit nevertheless (`tools.exec.passEnv`).
    pub pass_env: Vec<String>,
    /// Variables that commands are given for skills if they do not inherit them.
    pub overlay: Arc<Overlay>,
    /// Approvals of this host: who may run what without asking; absent outside of a gateway.
    pub approvals: Option<ApprovalsStore>,
    /// Channel through which people are asked.
    pub people: Arc<Approvals>,
    /// The agent, by whose rules commands are judged.
    pub agent: String,
    /// Programs that may run where they only work on what is piped into them.
    pub safe_bins: Arc<[String]>,
    /// Programs of skills.
    pub skill_bins: SkillBins,
    /// Time after which the agent is told that a command runs that a person has allowed.
    pub running_notice: Duration,
    /// Mode of elevated commands, and whether a call that does not say is elevated.
    pub elevated: Elevated,
    /// Sandbox of the run, if it is in one. Commands run nowhere else then.
    pub sandbox: Option<Arc<ActiveSandbox>>,
    /// Lock held by each running command; absent outside a gateway.
    pub lock: Option<CommandLock>,
    /// The commands of this gateway.
    pub sessions: Arc<CommandSessions>,
    /// Scope whose commands are seen, such as `session:agent:main:main`.
    pub scope: String,
    /// Scope of commands that leave the sandbox of the run; absent if the run is in none. Commands in a sandbox never see them, and a run
    /// in a sandbox sees no other commands of the host.
    pub outside_scope: Option<String>,
    /// Session that is told when a command ends in the background, if that is configured.
    pub owner: Option<SessionKey>,
    /// True if commands may go to the background: not if nothing could be done with them there.
    pub may_background: bool,
    /// Time after which a command goes to the background.
    pub background: Duration,
    /// Time for which a command that ended in the background is remembered.
    pub kept: Duration,
    /// True if the end of such a command is told.
    pub notify_on_exit: bool,
    /// True if the agent may be woken to hear of commands. Not if the woken run would have more rights than the run that started them.
    pub may_wake: bool,
}

impl ExecSettings {
    /// True if any command may run, and nobody is asked.
    pub(crate) fn runs_anything(&self) -> bool {
        ExecGate::of(self.host, self.security, self.ask) == ExecGate::Open
    }

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
            may_wake: true,
        }
    }

    /// Returns the scope that sees a command, by its place: in the sandbox of the run, or outside
    /// of it.
    pub(crate) fn scope_of(&self, is_outside: bool) -> &str {
        self.outside_scope.as_deref().filter(|_| is_outside).unwrap_or(&self.scope)
    }

    /// The scopes whose commands the run sees. Commands outside its sandbox are for callers who may
    /// run commands there.
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
