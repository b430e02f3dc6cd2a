//! `openclaw setup`: config file, workspace, sessions directory (spec `cli.md` §6.1).
//!
//! Better than the reference: the gateway can be started right afterwards, because `gateway.mode` and a token are set.

use openclaw_agent::workspace::{Fill, ensure};
use openclaw_config::gateway_options::Secrets;
use openclaw_config::settings::AuthKind;
use openclaw_config::write::{self, Actor, WriteError};
use openclaw_config::{InvalidConfig, Loaded, ResolvedAgent, private_file, value_path};
use openclaw_gateway::premises;
use openclaw_sessions::checkup::wanted_directories;
use rand::RngCore as _;
use serde_json::{Value, json};

use super::config::write_failure;
use crate::args::SetupArgs;
use crate::client::url_problem;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Bytes of a generated token; written as 48 hexadecimal digits.
const TOKEN_BYTES: usize = 24;

pub(super) fn run(args: &SetupArgs, context: &CliContext) -> CommandResult {
    if args.wizard {
        return Err(CommandFailure::usage("openclaw setup --wizard: not implemented yet in this version")
            .hint("Run `openclaw setup` without it, then `openclaw config set …`."));
    }
    let has_url = context.config_or_default().gateway.remote.url.is_some();
    let wanted = GatewayChoice::of(args, has_url)?;
    if !context.loaded.snapshot.is_parsable() || (context.loaded.snapshot.exists && context.config().is_err())
    {
        return Err(context.invalid_config());
    }
    openclaw_gateway::keep_files_private();
    let change = plan(context, args.workspace.as_deref(), &wanted);
    // A directory that cannot be made stays out of the config.
    let agent = prepare(&context.loaded.with(&change.next))?;
    if change.next != context.loaded.snapshot.parsed || !context.loaded.snapshot.exists {
        write::write(&context.loaded, &change.next, Actor::Cli).map_err(write_failure)?;
    }
    let config_path = context.short(context.paths().config_path());
    let config_line = match (context.loaded.snapshot.exists, change.set.is_empty()) {
        (false, _) => format!("Wrote {config_path}"),
        (true, false) => format!("Updated {config_path} (set {})", change.set.join(", ")),
        (true, true) => format!("Config OK: {config_path}"),
    };
    if args.json {
        output::json(&json!({
            "config": context.paths().config_path().display().to_string(),
            "set": change.set,
            "workspace": agent.workspace.display().to_string(),
            "sessions": agent.sessions_dir.display().to_string(),
        }));
        return Ok(0);
    }
    output::line(&config_line);
    output::line(&format!("Workspace OK: {}", context.short(&agent.workspace)));
    output::line(&format!("Sessions OK: {}", context.short(&agent.sessions_dir)));
    if change.set.iter().any(|key| key == "gateway.mode") {
        let next = match wanted {
            GatewayChoice::Remote { .. } => "openclaw gateway probe",
            GatewayChoice::Kept | GatewayChoice::Local => "openclaw gateway",
        };
        output::line("");
        output::line(&format!("Next: {}", context.hint_command(next)));
    }
    Ok(0)
}

/// Place of the gateway, as the flags say.
enum GatewayChoice {
    /// No flag: what is configured stays, a new config is local.
    Kept,
    /// `--mode local`.
    Local,
    /// `--mode remote`, or a `--remote-*` flag.
    Remote { url: Option<String>, token: Option<String> },
}

impl GatewayChoice {
    fn of(args: &SetupArgs, has_url: bool) -> Result<Self, CommandFailure> {
        if let Some(url) = &args.remote_url
            && let Some(problem) = url_problem(url.trim())
        {
            return Err(CommandFailure::usage(format!(
                "--remote-url {url} is no address of a gateway: {problem}"
            )));
        }
        let remote = || Self::Remote { url: args.remote_url.clone(), token: args.remote_token.clone() };
        let wants_remote = args.mode.as_deref() == Some("remote") || args.remote_token.is_some();
        if wants_remote && args.remote_url.is_none() && !has_url {
            return Err(CommandFailure::usage("--mode remote needs the address of that gateway")
                .hint("Pass it: openclaw setup --mode remote --remote-url wss://gateway.example.com"));
        }
        let has_remote = args.remote_url.is_some() || args.remote_token.is_some();
        match args.mode.as_deref() {
            None if has_remote => Ok(remote()),
            None => Ok(Self::Kept),
            Some("remote") => Ok(remote()),
            Some("local") if has_remote => {
                Err(CommandFailure::usage("--remote-url and --remote-token need --mode remote"))
            }
            Some("local") => Ok(Self::Local),
            Some(_) => Err(CommandFailure::usage("Invalid --mode (use \"local\" or \"remote\")")),
        }
    }

    /// The keys to set for it.
    fn keys(&self, has_mode: bool) -> Vec<(&'static str, &str)> {
        match self {
            Self::Kept if has_mode => Vec::new(),
            Self::Kept | Self::Local => vec![("gateway.mode", "local")],
            Self::Remote { url, token } => {
                let url = url.as_deref().map(|url| ("gateway.remote.url", url));
                let token = token.as_deref().map(|token| ("gateway.remote.token", token));
                [Some(("gateway.mode", "remote")), url, token].into_iter().flatten().collect()
            }
        }
    }
}

struct SetupChange {
    next: Value,
    set: Vec<String>,
}

/// Change that adds what a gateway needs to start. Existing settings stay.
fn plan(context: &CliContext, workspace: Option<&str>, wanted: &GatewayChoice) -> SetupChange {
    let source = &context.loaded.snapshot.parsed;
    let in_effect = &context.loaded.snapshot.config;
    let mut next = source.clone();
    let mut set = Vec::new();
    let mut put = |key: &str, value: Value| {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        if value_path::get(&next, &path) != Some(&value) {
            value_path::set(&mut next, &path, value);
            set.push(key.to_owned());
        }
    };
    if let Some(dir) = workspace {
        put("agents.defaults.workspace", json!(context.env().expand_path(dir).display().to_string()));
    }
    for (key, value) in wanted.keys(in_effect.pointer("/gateway/mode").is_some()) {
        put(key, json!(value));
    }
    let is_remote = match wanted {
        GatewayChoice::Remote { .. } => true,
        GatewayChoice::Local => false,
        GatewayChoice::Kept => in_effect.pointer("/gateway/mode").and_then(Value::as_str) == Some("remote"),
    };
    if !is_remote && lacks_token(context) {
        generated_token().into_iter().for_each(|(key, value)| put(key, value));
    }
    SetupChange { next, set }
}

/// True if a gateway would let clients in with a token, and has none.
fn lacks_token(context: &CliContext) -> bool {
    let config = context.config_or_default();
    let Secrets { token, password } = Secrets::default().or_local(&config, context.env());
    match config.gateway.auth.mode {
        Some(AuthKind::Password) => false,
        Some(AuthKind::Token) => token.is_none(),
        None => token.is_none() && password.is_none(),
    }
}

/// True if a key of `gateway.auth` is set.
pub(super) fn has_auth(config: &Value, key: &str) -> bool {
    config.pointer("/gateway/auth").and_then(|auth| auth.get(key)).is_some_and(|value| !value.is_null())
}

/// Settings that make clients need a random secret.
pub(super) fn generated_token() -> [(&'static str, Value); 2] {
    let mut bytes = [0_u8; TOKEN_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [("gateway.auth.mode", json!("token")), ("gateway.auth.token", json!(token))]
}

/// Makes the directories that the planned config asks for. Gives the default agent, whose they are.
fn prepare(planned: &Loaded) -> Result<ResolvedAgent, CommandFailure> {
    let config = planned
        .config_for_reading()
        .map_err(|InvalidConfig { issues, .. }| write_failure(WriteError::Invalid { issues }))?;
    let agent = config.agent(&config.default_agent());
    let fill = if agent.skip_bootstrap { Fill::DirectoryOnly } else { Fill::Templates };
    ensure(&agent.workspace, fill).map_err(|error| CommandFailure::new("workspace", error.to_string()))?;
    let premises = premises(config);
    for dir in wanted_directories(&premises).iter().map(|wanted| &wanted.path).chain([&agent.sessions_dir]) {
        private_file::make_dir(dir).map_err(|error| {
            CommandFailure::new("directory", format!("could not create {}: {error}", dir.display()))
        })?;
    }
    Ok(agent)
}

#[cfg(test)]
mod tests {
    use openclaw_config::{Environment, load};

    use super::*;

    fn args(workspace: Option<&str>) -> SetupArgs {
        SetupArgs {
            wizard: false,
            non_interactive: false,
            mode: None,
            remote_url: None,
            remote_token: None,
            workspace: workspace.map(str::to_owned),
            json: true,
        }
    }

    #[test]
    fn setup_makes_a_gateway_startable_and_is_idempotent() {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        run(&args(None), &CliContext::new(&env, true)).unwrap();
        let loaded = load(&env);
        let config = loaded.config().unwrap();
        let options = openclaw_config::gateway_options::gateway_options(
            config,
            &loaded.environment,
            &openclaw_config::gateway_options::GatewayFlags::default(),
        );
        assert!(options.is_ok());
        assert!(home.path().join(".openclaw/workspace/AGENTS.md").exists());
        assert!(home.path().join(".openclaw/agents/main/sessions").is_dir());

        let before = std::fs::read_to_string(loaded.paths.config_path()).unwrap();
        run(&args(None), &CliContext::new(&env, true)).unwrap();
        assert_eq!(std::fs::read_to_string(loaded.paths.config_path()).unwrap(), before);
    }

    #[test]
    fn a_remote_gateway_is_written_down_without_a_secret_of_its_own() {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        let text = |value: &str| Some(value.to_owned());
        let remote = SetupArgs {
            remote_url: text("wss://host:1"),
            remote_token: text("t0ken"),
            non_interactive: true,
            ..args(None)
        };
        run(&remote, &CliContext::new(&env, true)).unwrap();
        let gateway = load(&env).snapshot.parsed["gateway"].clone();
        assert_eq!(
            gateway,
            json!({ "mode": "remote", "remote": { "url": "wss://host:1", "token": "t0ken" } })
        );
        let wrong = SetupArgs { mode: text("elsewhere"), ..args(None) };
        assert!(run(&wrong, &CliContext::new(&env, true)).is_err());
    }

    #[test]
    fn a_workspace_that_cannot_be_made_is_not_written_down() {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        std::fs::write(home.path().join("file"), "").unwrap();
        let impossible = home.path().join("file/workspace");
        let failure = run(&args(impossible.to_str()), &CliContext::new(&env, true)).unwrap_err();
        assert_eq!(failure.code, "workspace");
        assert!(!load(&env).snapshot.exists);
    }

    #[test]
    fn a_token_is_made_where_a_gateway_would_miss_it() {
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], bool);
        let rows: [Row<'_>; 6] = [
            ("{}", &[], true),
            ("{gateway: {auth: {mode: 'token'}}}", &[], true),
            ("{gateway: {auth: {mode: 'token', token: ''}}}", &[], true),
            ("{gateway: {auth: {mode: 'token'}}}", &[("CLAWDBOT_GATEWAY_TOKEN", "t")], false),
            ("{gateway: {auth: {mode: 'password'}}}", &[], false),
            ("{gateway: {auth: {password: 'p'}}}", &[], false),
        ];
        for (config, vars, expect) in rows {
            let context = crate::testing::context(config, vars);
            let change = plan(&context, None, &GatewayChoice::Local);
            assert_eq!(change.set.contains(&"gateway.auth.token".to_owned()), expect, "{config} {vars:?}");
        }
    }

    #[test]
    fn remote_mode_needs_an_address() {
        let remote = SetupArgs { mode: Some("remote".to_owned()), ..args(None) };
        assert!(GatewayChoice::of(&remote, false).is_err());
        assert!(GatewayChoice::of(&remote, true).is_ok());
    }

    #[test]
    fn a_broken_config_is_not_touched() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".openclaw/openclaw.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{ oops").unwrap();
        let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        let failure = run(&args(None), &CliContext::new(&env, true)).unwrap_err();
        assert_eq!(failure.code, "config-invalid");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ oops");
    }
}
