//! Plans a command: what is run, where, and if it may run (spec `tools.md` §3.1): settings and
//! arguments in, a plan out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::settings::{ExecAsk, ExecGate, ExecHost, ExecSecurity};
use serde_json::Value;

use crate::args::Args;
use crate::exec::approvals::resolve::ToolValues;
use crate::exec::environment::forbidden;
use crate::exec::settings::{Elevated, ElevatedMode, ExecSettings, window};
use crate::path::Resolver;
use crate::sandbox::ActiveSandbox;

/// A command that may run.
#[derive(Debug, PartialEq)]
pub(super) struct ExecPlan {
    pub(super) command: String,
    pub(super) host: ExecHost,
    /// True if the command is elevated: it leaves the sandbox and its rules.
    pub(super) is_elevated: bool,
    /// Rules that the command is judged by; absent if any command may run.
    pub(super) rules: Option<ToolValues>,
    pub(super) workdir: Option<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) timeout: Option<Duration>,
    /// Time after which it goes to the background; `None`: never.
    pub(super) background: Option<Duration>,
    /// True if something may be written to its input.
    pub(super) is_fed: bool,
    pub(super) in_terminal: bool,
    pub(super) warnings: Vec<String>,
}

impl ExecPlan {
    /// Decides. An error is for the model.
    pub(super) fn of(settings: &ExecSettings, args: &Args) -> Result<Self, String> {
        let command = args.text("command").filter(|command| !command.trim().is_empty());
        let command = command.ok_or("Provide a command to start.")?.to_owned();
        let mut warnings = Vec::new();
        let wished = args.flag("background") || args.number("yieldMs").is_some();
        if wished && !settings.may_background {
            warnings.push("Warning: background execution is disabled; running synchronously.".to_owned());
        }
        let background = settings.may_background.then(|| background(settings, args));
        let elevated = elevated(settings, args)?;
        let (host, rules) = match elevated {
            ElevatedMode::Off => host(settings, args)?,
            ElevatedMode::Ask => (ExecHost::Gateway, Some(narrowed(settings, args))),
            ElevatedMode::Full => (ExecHost::Gateway, None),
        };
        let env = variables(args, host)?;
        let timeout = match args.number("timeout").filter(|seconds| *seconds >= 0.0) {
            Some(0.0) => None,
            Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
            None => Some(settings.timeout),
        };
        let workdir = args.word("workdir").map(str::to_owned);
        let in_terminal = args.flag("pty");
        let is_fed = background.is_some() && (wished || in_terminal);
        Ok(Self {
            command,
            host,
            is_elevated: elevated != ElevatedMode::Off,
            rules,
            workdir,
            env,
            timeout,
            background,
            is_fed,
            in_terminal,
            warnings,
        })
    }

    /// The sandbox it runs in; nothing where it runs on this host.
    pub(super) fn sandbox<'a>(&self, settings: &'a ExecSettings) -> Option<&'a Arc<ActiveSandbox>> {
        settings.sandbox.as_ref().filter(|_| self.host == ExecHost::Sandbox)
    }

    /// The directory to run in: the one asked for, else the workspace, with a warning.
    pub(super) async fn directory(
        &mut self,
        settings: &ExecSettings,
        resolver: &Resolver,
        workspace: &Path,
    ) -> PathBuf {
        let sandbox = self.sandbox(settings).cloned();
        let root = sandbox.as_ref().map(|sandbox| sandbox.inner_workspace());
        let workspace = root.as_deref().unwrap_or(workspace);
        let Some(workdir) = &self.workdir else { return workspace.to_owned() };
        let wanted = resolver.absolute(workdir);
        let found = match &sandbox {
            Some(sandbox) => {
                is_directory_within(sandbox.workspace(), &wanted).await.then(|| sandbox.inner(&wanted))
            }
            None => {
                tokio::fs::metadata(&wanted).await.is_ok_and(|meta| meta.is_dir()).then_some(Some(wanted))
            }
        };
        if let Some(directory) = found.flatten() {
            return directory;
        }
        let warning =
            format!("Warning: workdir \"{workdir}\" is unavailable; using \"{}\".", workspace.display());
        self.warnings.push(warning);
        workspace.to_owned()
    }
}

/// Returns true if the path is a directory and no symbolic link leads out of the root.
async fn is_directory_within(root: &Path, wanted: &Path) -> bool {
    let (root, real) = (tokio::fs::canonicalize(root).await, tokio::fs::canonicalize(wanted).await);
    let (Ok(root), Ok(real)) = (root, real) else { return false };
    real.starts_with(root) && tokio::fs::metadata(&real).await.is_ok_and(|meta| meta.is_dir())
}

fn background(settings: &ExecSettings, args: &Args) -> Duration {
    if args.flag("background") {
        return Duration::ZERO;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and is bounded then"
    )]
    let asked = args.number("yieldMs").map(|ms| window(Some(ms as u64)));
    asked.unwrap_or(settings.background)
}

/// Returns the place and the rules in a sandbox, whatever host is configured: settings of commands
/// can't lead out of the sandbox.
fn in_sandbox(settings: &ExecSettings, args: &Args) -> Result<(ExecHost, Option<ToolValues>), String> {
    match named(args, "host").unwrap_or(ExecHost::Sandbox) {
        ExecHost::Sandbox if settings.security == Some(ExecSecurity::Deny) => {
            Err("exec denied: security=deny".into())
        }
        ExecHost::Sandbox => Ok((ExecHost::Sandbox, None)),
        other @ (ExecHost::Gateway | ExecHost::Node) => Err(format!(
            "exec host not allowed (requested {}; this session runs in a sandbox).",
            other.as_str()
        )),
    }
}

/// Returns the elevation of the command: as the call requests, else as its session does if that is
/// allowed.
fn elevated(settings: &ExecSettings, args: &Args) -> Result<ElevatedMode, String> {
    let Elevated { mode, refusal } = &settings.elevated;
    let asked = match (args.0.get("elevated").and_then(Value::as_bool), mode) {
        (Some(false), _) => ElevatedMode::Off,
        (Some(true), ElevatedMode::Full) => ElevatedMode::Full,
        (Some(true), ElevatedMode::Off | ElevatedMode::Ask) => ElevatedMode::Ask,
        (None, _) if refusal.is_some() => ElevatedMode::Off,
        (None, mode) => *mode,
    };
    match refusal {
        Some(refusal) if asked != ElevatedMode::Off => {
            Err(Elevated::unavailable(settings.sandbox.is_some(), refusal))
        }
        Some(_) | None => Ok(asked),
    }
}

/// Returns where the command runs, and by which rules.
fn host(settings: &ExecSettings, args: &Args) -> Result<(ExecHost, Option<ToolValues>), String> {
    if settings.sandbox.is_some() {
        return in_sandbox(settings, args);
    }
    let configured = settings.host.unwrap_or(ExecHost::Sandbox);
    let requested = named(args, "host").unwrap_or(configured);
    if requested != configured {
        let name = requested.as_str();
        return Err(format!(
            "exec host not allowed (requested {name}; configure tools.exec.host={name} to allow)."
        ));
    }
    if requested == ExecHost::Gateway {
        // The rules of the file hold whatever the settings allow.
        return Ok((requested, Some(narrowed(settings, args))));
    }
    let has_rules = settings.security.is_some() || settings.ask.is_some();
    match ExecGate::of(settings.host, settings.security, settings.ask) {
        ExecGate::Open if !has_rules => Ok((requested, None)),
        ExecGate::Denied => Err("exec denied: security=deny".into()),
        // Without a host it runs here: rules that are set hold here as on the host `gateway`, and those of the file with them.
        ExecGate::Open | ExecGate::NeedsApproval => Ok((ExecHost::Gateway, Some(narrowed(settings, args)))),
        ExecGate::NeedsSandbox => Err("exec host=sandbox is not available: this session runs in no sandbox. Set \
                                       agents.defaults.sandbox.mode, or tools.exec.host=gateway, tools.exec.security=full and tools.exec.ask=off to run \
                                       commands on this host without one."
            .into()),
        ExecGate::NeedsNode => {
            Err("exec host=node requires a paired node (none available). This requires a companion app or \
                               node host."
                .into())
        }
    }
}

/// An argument that names one of the configuration's variants, in any case; anything else counts as absent.
fn named<T: serde::de::DeserializeOwned>(args: &Args, name: &str) -> Option<T> {
    serde_json::from_value(Value::String(args.word(name)?.to_lowercase())).ok()
}

/// The stricter of what the owner says and what the call asks for.
fn narrowed(settings: &ExecSettings, args: &Args) -> ToolValues {
    let security = settings.security.unwrap_or(ExecSecurity::Allowlist);
    let ask = settings.ask.unwrap_or(ExecAsk::OnMiss);
    ToolValues {
        security: named(args, "security").map_or(security, |asked: ExecSecurity| asked.min(security)),
        ask: named(args, "ask").map_or(ask, |asked: ExecAsk| asked.max(ask)),
    }
}

fn variables(args: &Args, host: ExecHost) -> Result<Vec<(String, String)>, String> {
    let Some(map) = args.0.get("env").and_then(Value::as_object) else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for (name, value) in map {
        // The text before the first `=` is the name that a program sees: `PATH=/x` would be `PATH`.
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!(
                "env has a name that no variable can have: {name:?}. Names are not empty and hold neither '=' nor NUL."
            ));
        }
        if host != ExecHost::Sandbox
            && let Some(why) = forbidden(name)
        {
            return Err(why);
        }
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                return Err(format!("env.{name} must be a string"));
            }
        };
        if value.contains('\0') {
            return Err(format!("env.{name} holds a NUL character, which no variable can."));
        }
        out.push((name.clone(), value));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(
        host: Option<ExecHost>,
        security: Option<ExecSecurity>,
        ask: Option<ExecAsk>,
    ) -> ExecSettings {
        let config = openclaw_config::settings::Exec { host, security, ask, ..Default::default() };
        ExecSettings::new(&config, openclaw_config::Environment::default())
    }

    fn on_gateway(security: Option<ExecSecurity>, ask: ExecAsk) -> ExecSettings {
        settings(Some(ExecHost::Gateway), security, Some(ask))
    }

    fn open_gateway() -> ExecSettings {
        on_gateway(Some(ExecSecurity::Full), ExecAsk::Off)
    }

    fn says(settings: &ExecSettings, args: Value) -> String {
        ExecPlan::of(settings, &Args(args)).map_or_else(|error| error, |plan| plan.warnings.join("|"))
    }

    #[test]
    fn each_rule_answers_in_its_words() {
        use ExecAsk::Off;
        use ExecSecurity::{Deny, Full};
        let unset = settings(None, None, None);
        let background = "Warning: background execution is disabled; running synchronously.";
        let no_sandbox = "exec host=sandbox is not available: this session runs in no sandbox. Set agents.defaults.sandbox.mode, or tools.exec.host=gateway, \
                          tools.exec.security=full and tools.exec.ask=off to run commands on this host without one.";
        for (settings, args, text) in [
            (unset.clone(), json!({}), "Provide a command to start."),
            (unset.clone(), json!({"command": " \n"}), "Provide a command to start."),
            (unset.clone(), json!({"command": "ls"}), ""),
            (unset.clone(), json!({"command": "ls", "security": "deny", "ask": "always"}), ""),
            (unset.clone(), json!({"command": "ls", "background": true}), background),
            (unset.clone(), json!({"command": "ls", "yieldMs": 5}), background),
            (
                unset.clone(),
                json!({"command": "ls", "elevated": true}),
                "elevated is not available right now (runtime=direct).",
            ),
            (
                unset.clone(),
                json!({"command": "ls", "host": "gateway"}),
                "exec host not allowed (requested gateway; configure tools.exec.host=gateway to allow).",
            ),
            (
                unset.clone(),
                json!({"command": "ls", "host": "node"}),
                "exec host not allowed (requested node; configure tools.exec.host=node to allow).",
            ),
            (
                settings(Some(ExecHost::Node), None, None),
                json!({"command": "ls"}),
                "exec host=node requires a paired node (none available). This requires a companion app or node host.",
            ),
            (open_gateway(), json!({"command": "ls"}), ""),
            (settings(Some(ExecHost::Sandbox), Some(Full), Some(Off)), json!({"command": "ls"}), no_sandbox),
            (settings(None, Some(Deny), None), json!({"command": "ls"}), "exec denied: security=deny"),
            (settings(None, Some(Full), Some(Off)), json!({"command": "ls"}), ""),
            (unset.clone(), json!({"command": "ls", "env": {"PATH": "/x", "LD_PRELOAD": "y"}}), ""),
            (unset.clone(), json!({"command": "ls", "env": {"A": [1]}}), "env.A must be a string"),
            (
                unset.clone(),
                json!({"command": "ls", "env": {"PATH=/evil:x": "1"}}),
                "env has a name that no variable can have: \"PATH=/evil:x\". Names are not empty and hold neither '=' nor NUL.",
            ),
            (
                open_gateway(),
                json!({"command": "ls", "env": {"": "1"}}),
                "env has a name that no variable can have: \"\". Names are not empty and hold neither '=' nor NUL.",
            ),
            (
                open_gateway(),
                json!({"command": "ls", "env": {"A\0B": "1"}}),
                "env has a name that no variable can have: \"A\\0B\". Names are not empty and hold neither '=' nor NUL.",
            ),
            (
                unset,
                json!({"command": "ls", "env": {"A": "1\u{0}2"}}),
                "env.A holds a NUL character, which no variable can.",
            ),
            (
                open_gateway(),
                json!({"command": "ls", "env": {"PATH": "/x"}}),
                "Security Violation: Custom 'PATH' variable is forbidden during host execution.",
            ),
            (
                open_gateway(),
                json!({"command": "ls", "env": {"A": "1", "LD_PRELOAD": "y"}}),
                "Security Violation: Environment variable 'LD_PRELOAD' is forbidden during host execution.",
            ),
        ] {
            assert_eq!(says(&settings, args.clone()), text, "{args}");
        }
    }

    #[test]
    fn commands_on_this_host_are_judged_by_the_stricter_rules() {
        use ExecAsk::{Always, Off, OnMiss};
        use ExecSecurity::{Allowlist, Deny, Full};
        let elevated =
            |mode| ExecSettings { elevated: Elevated { mode, refusal: None }, ..settings(None, None, None) };
        let by = |settings: &ExecSettings, args: Value| {
            let plan = ExecPlan::of(settings, &Args(args)).unwrap();
            (plan.host, plan.rules.map(|rules| (rules.security, rules.ask)))
        };
        let (here, anywhere) = (ExecHost::Gateway, ExecHost::Sandbox);
        for (settings, args, expect) in [
            (settings(None, None, None), json!({}), (anywhere, None)),
            (settings(None, Some(Full), Some(Off)), json!({}), (here, Some((Full, Off)))),
            (settings(None, None, Some(Off)), json!({}), (here, Some((Allowlist, Off)))),
            (settings(None, Some(Allowlist), None), json!({}), (here, Some((Allowlist, OnMiss)))),
            (settings(None, None, Some(Always)), json!({"ask": "off"}), (here, Some((Allowlist, Always)))),
            (on_gateway(None, OnMiss), json!({}), (here, Some((Allowlist, OnMiss)))),
            (on_gateway(Some(Full), Off), json!({}), (here, Some((Full, Off)))),
            (on_gateway(Some(Full), Off), json!({"security": "allowlist"}), (here, Some((Allowlist, Off)))),
            (on_gateway(Some(Full), Off), json!({"ask": "always"}), (here, Some((Full, Always)))),
            (on_gateway(Some(Deny), Off), json!({"security": "full"}), (here, Some((Deny, Off)))),
            (elevated(ElevatedMode::Off), json!({}), (anywhere, None)),
            (elevated(ElevatedMode::Ask), json!({}), (here, Some((Allowlist, OnMiss)))),
            (elevated(ElevatedMode::Ask), json!({"elevated": false}), (anywhere, None)),
            (elevated(ElevatedMode::Off), json!({"elevated": true}), (here, Some((Allowlist, OnMiss)))),
            (elevated(ElevatedMode::Full), json!({}), (here, None)),
            (elevated(ElevatedMode::Full), json!({"elevated": true}), (here, None)),
            (elevated(ElevatedMode::Full), json!({"elevated": false}), (anywhere, None)),
        ] {
            let mut args = args;
            args["command"] = json!("ls");
            assert_eq!(by(&settings, args.clone()), expect, "{args}");
        }
        // If elevation is not allowed, a session's level requests nothing.
        let refused = ExecSettings {
            elevated: Elevated { mode: ElevatedMode::Full, refusal: Some("no".to_owned()) },
            ..settings(None, None, None)
        };
        assert_eq!(by(&refused, json!({"command": "ls"})), (anywhere, None));
        let refusal = "elevated is not available right now (runtime=direct).\nno";
        assert_eq!(says(&refused, json!({"command": "ls", "elevated": true})), refusal);
    }

    #[test]
    fn a_command_goes_to_the_background_when_it_may_and_when_told() {
        let mut settings = settings(None, None, None);
        let plan = |settings: &ExecSettings, args: Value| {
            let plan = ExecPlan::of(settings, &Args(args)).unwrap();
            (plan.background.map(|window| window.as_millis()), plan.is_fed)
        };
        let rows = [
            (json!({"command": "x"}), Some(10_000), false),
            (json!({"command": "x", "background": true, "yieldMs": 500}), Some(0), true),
            (json!({"command": "x", "yieldMs": 500}), Some(500), true),
            (json!({"command": "x", "yieldMs": -1}), Some(10), true),
            (json!({"command": "x", "yieldMs": 1e30}), Some(120_000), true),
            (json!({"command": "x", "pty": true}), Some(10_000), true),
        ];
        for (args, window, is_fed) in rows {
            assert_eq!(plan(&settings, args.clone()), (None, false), "it may not: {args}");
            settings.may_background = true;
            assert_eq!(plan(&settings, args.clone()), (window, is_fed), "{args}");
            settings.may_background = false;
        }
    }

    #[test]
    fn the_timeout_is_the_calls_or_the_configured_one() {
        let settings = settings(None, None, None);
        for (timeout, expect) in [
            (json!(null), Some(Duration::from_secs(1800))),
            (json!(5), Some(Duration::from_secs(5))),
            (json!("0.5"), Some(Duration::from_millis(500))),
            (json!(0), None),
            (json!(-1), Some(Duration::from_secs(1800))),
        ] {
            let plan = ExecPlan::of(&settings, &Args(json!({"command": "ls", "timeout": timeout}))).unwrap();
            assert_eq!(plan.timeout, expect, "{timeout}");
        }
    }
}
