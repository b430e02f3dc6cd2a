//! `openclaw setup`: config file, workspace, sessions directory (spec `cli.md` §6.1).
//!
//! Better than the reference: the gateway can be started right afterwards, because `gateway.mode` and a token are set.

use openclaw_agent::workspace::{Fill, ensure};
use openclaw_config::write::{self, Actor, make_private_dir};
use openclaw_config::{Environment, load, value_path};
use rand::RngCore as _;
use serde_json::{Value, json};

use super::config::write_failure;
use crate::args::SetupArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output;

/// Bytes of a generated token; written as 48 hexadecimal digits.
const TOKEN_BYTES: usize = 24;

pub(super) fn run(args: &SetupArgs, context: &Context) -> Outcome {
    let wants_wizard =
        args.wizard || args.non_interactive || args.mode.is_some() || args.remote_url.is_some();
    if wants_wizard || args.remote_token.is_some() {
        return Err(Failure::usage("openclaw setup: the wizard is not implemented yet in this version")
            .hint("Run `openclaw setup` without these flags, then `openclaw config set …`."));
    }
    if !context.loaded.snapshot.is_parsable() || (context.loaded.snapshot.exists && context.config().is_err())
    {
        return Err(context.invalid_config());
    }
    openclaw_gateway::keep_files_private();
    let change = plan(context, args.workspace.as_deref());
    if change.next != context.loaded.snapshot.parsed || !context.loaded.snapshot.exists {
        write::write(&context.loaded, &change.next, Actor::Cli).map_err(write_failure)?;
    }
    let done = prepare(context.process(), context)?;
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
            "workspace": done.workspace,
            "sessions": done.sessions,
        }));
        return Ok(0);
    }
    output::line(&config_line);
    output::line(&format!("Workspace OK: {}", context.short(done.workspace.as_ref())));
    output::line(&format!("Sessions OK: {}", context.short(done.sessions.as_ref())));
    if change.set.iter().any(|key| key == "gateway.mode") {
        output::line("");
        output::line(&format!("Next: {}", context.hint_command("openclaw gateway")));
    }
    Ok(0)
}

struct Change {
    next: Value,
    set: Vec<String>,
}

/// What is missing for a gateway to start. What is there stays.
fn plan(context: &Context, workspace: Option<&str>) -> Change {
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
    if in_effect.pointer("/gateway/mode").is_none() {
        put("gateway.mode", json!("local"));
    }
    let auth = in_effect.pointer("/gateway/auth");
    let has = |key: &str| auth.and_then(|auth| auth.get(key)).is_some_and(|value| !value.is_null());
    let is_remote = in_effect.pointer("/gateway/mode").and_then(Value::as_str) == Some("remote");
    let from_env =
        context.env().first_nonblank(&["OPENCLAW_GATEWAY_TOKEN", "OPENCLAW_GATEWAY_PASSWORD"]).is_some();
    if !is_remote && !from_env && !has("token") && !has("password") && !has("mode") {
        put("gateway.auth.mode", json!("token"));
        put("gateway.auth.token", json!(new_token()));
    }
    Change { next, set }
}

fn new_token() -> String {
    let mut bytes = [0_u8; TOKEN_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Prepared {
    workspace: String,
    sessions: String,
}

/// Makes the directories that the written config asks for.
fn prepare(process: &Environment, context: &Context) -> Result<Prepared, Failure> {
    let loaded = load(process);
    let config = loaded.config_for_reading().map_err(|_| context.invalid_config())?;
    let agent = config.agent(&config.default_agent());
    let fill = if agent.skip_bootstrap { Fill::DirectoryOnly } else { Fill::Templates };
    ensure(&agent.workspace, fill).map_err(|error| Failure::new("workspace", error.to_string()))?;
    make_private_dir(&agent.sessions_dir).map_err(|error| {
        Failure::new("sessions", format!("could not create {}: {error}", agent.sessions_dir.display()))
    })?;
    Ok(Prepared {
        workspace: agent.workspace.display().to_string(),
        sessions: agent.sessions_dir.display().to_string(),
    })
}

#[cfg(test)]
mod tests {
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
        run(&args(None), &Context::new(&env, true)).unwrap();
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
        run(&args(None), &Context::new(&env, true)).unwrap();
        assert_eq!(std::fs::read_to_string(loaded.paths.config_path()).unwrap(), before);
    }

    #[test]
    fn a_broken_config_is_not_touched() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".openclaw/openclaw.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{ oops").unwrap();
        let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        let failure = run(&args(None), &Context::new(&env, true)).unwrap_err();
        assert_eq!(failure.code, "config-invalid");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ oops");
    }
}
