//! Sandbox rules in effect for a session.

use openclaw_config::Config;
use openclaw_config::settings::{Elevated, SandboxScope};
use openclaw_protocol::AgentId;
use openclaw_sessions::{SessionKey, SessionSettings};
use openclaw_tools::sandbox::{
    Entry, Registry, SandboxPolicy, SandboxSettings, Sandboxes, Source, program_of, scope_key,
};
use serde_json::{Value, json};

use super::reach;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::{client, output};

const FIX: &[&str] = &[
    "tools.sandbox.tools.allow",
    "tools.sandbox.tools.deny",
    "agents.list[].tools.sandbox.tools.allow",
    "agents.list[].tools.sandbox.tools.deny",
    "tools.elevated.enabled",
];

pub(super) fn run(
    context: &CliContext,
    agent: Option<&str>,
    session: Option<&str>,
    json: bool,
) -> CommandResult {
    let config = context.config()?;
    let rules = SessionSettings::from(config.as_ref()).key_rules();
    let asked = agent.map(|id| context.agent(Some(id))).transpose()?;
    let default = asked.clone().unwrap_or_else(|| config.default_agent());
    let key = match session {
        Some(text) => {
            rules.canonical_for(text, &default).map_err(|error| CommandFailure::usage(error.to_string()))?
        }
        None => rules.main(&default),
    };
    let agent: AgentId = match asked {
        Some(agent) => agent,
        // The agent of a key has to be one that there is, as one that is named.
        None => context.agent(Some(rules.agent_of(&key).as_str()))?,
    };
    let is_main = rules.is_main(&key) && rules.agent_of(&key) == agent;
    let settings = SandboxSettings::of(config, &agent);
    let policy = SandboxPolicy::of(config, &agent);
    let sandboxes = Sandboxes::of_this_process(context.paths().state_dir());
    let kernel = client::block_on(async { Ok(sandboxes.level().await) })?;
    let kernel = kernel.map_or_else(|why| format!("none: {why}"), |level| level.as_str().to_owned());
    let problem = reach::problem(context, config, &agent);
    let entry = entry_of(context, &settings, &agent, &key);
    let document = json!({
        "docsUrl": "https://docs.openclaw.ai/sandbox",
        "agentId": agent,
        "sessionKey": key,
        "mainSessionKey": rules.main(&agent),
        "sandbox": {
            "mode": settings.mode.as_str(),
            "backend": settings.backend.as_str(),
            "backendInUse": program_of(settings.backend, config.environment()).unwrap_or("local"),
            "kernel": kernel,
            "problem": problem,
            "limits": entry.as_ref().and_then(Entry::limits),
            "scope": settings.scope.as_str(),
            "perSession": settings.scope == SandboxScope::Session,
            "workspaceAccess": settings.access.as_str(),
            "workspaceRoot": settings.root,
            "sessionIsSandboxed": settings.holds(is_main),
            "tools": {
                "allow": policy.allow,
                "deny": policy.deny,
                "sources": {"allow": source(policy.allow_source, "allow"), "deny": source(policy.deny_source, "deny")},
            },
        },
        "elevated": {
            "enabled": config.tools.elevated.enabled.unwrap_or(true),
            "allowedByConfig": false,
            "alwaysAllowedByConfig": false,
            "allowFrom": {},
            "failures": [],
        },
        "fixIt": FIX,
    });
    if json {
        output::json(&document)
    } else {
        let leaving = settings.holds(is_main).then(|| leaving(config, &agent)).flatten();
        print(&document, leaving.as_deref(), entry.is_some_and(|entry| entry.has_no_group()))
    }
    Ok(0)
}

/// Returns the record of a session's sandbox of the kernel; `None` before a run has had one.
fn entry_of(
    context: &CliContext,
    settings: &SandboxSettings,
    agent: &AgentId,
    session: &SessionKey,
) -> Option<Entry> {
    let key = scope_key(settings.scope, agent, session.as_str());
    let entries = Registry::local(context.paths().state_dir()).entries();
    entries.into_iter().find(|entry| entry.session_key == key)
}

fn source(source: Source, list: &str) -> Value {
    let key = match source {
        Source::Agent => format!("agents.list[].tools.sandbox.tools.{list}"),
        Source::Global | Source::Default => format!("tools.sandbox.tools.{list}"),
    };
    json!({"source": source.as_str(), "key": key})
}

/// Notice about senders whose commands leave the sandbox by default, and how to stop that.
fn leaving(config: &Config, agent: &AgentId) -> Option<String> {
    let shared = &config.tools.elevated;
    let own = config.agent_entry(agent).map(|entry| &entry.tools.elevated);
    let is_off = |elevated: &Elevated| elevated.enabled == Some(false);
    let level = config.agents.defaults.elevated_default.as_deref().unwrap_or("on");
    let names_nobody = shared.allow_from.values().all(Vec::is_empty);
    if is_off(shared) || own.is_some_and(is_off) || names_nobody || level == "off" {
        return None;
    }
    let channels: Vec<&str> = shared.allow_from.keys().map(String::as_str).collect();
    Some(format!(
        "Elevated: commands of senders named in tools.elevated.allowFrom ({}) run on this host, not in the sandbox, because the level \
         is \"{level}\" unless a session says otherwise. To have them in the sandbox: /elevated off in the session, or \
         agents.defaults.elevatedDefault \"off\".",
        channels.join(", ")
    ))
}

fn print(document: &Value, leaving: Option<&str>, has_no_group: bool) {
    let sandbox = &document["sandbox"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let list = |value: &Value| {
        let names: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        names.join(", ")
    };
    output::line(&format!("Agent: {}", text(&document["agentId"])));
    output::line(&format!("Session: {}", text(&document["sessionKey"])));
    for (name, key) in [
        ("In a sandbox", "sessionIsSandboxed"),
        ("Mode", "mode"),
        ("Backend", "backend"),
        ("Backend in use", "backendInUse"),
        ("Kernel", "kernel"),
        ("Scope", "scope"),
        ("Agent workspace access", "workspaceAccess"),
        ("Workspaces", "workspaceRoot"),
    ] {
        output::row(&format!("{name}: {}", text(&sandbox[key])));
    }
    if let Some(problem) = sandbox["problem"].as_str() {
        output::row(&format!("No sandbox can be had, so runs that need one do not begin: {problem}."));
    }
    if let Some(leaving) = leaving {
        output::row(leaving);
    }
    if let Some(limits) = sandbox["limits"].as_str() {
        output::row(&format!("Limits: {limits}"));
        if has_no_group {
            output::line(
                "Limits of a sandbox as a whole need a control group (cgroup v2) of the gateway's own: Delegate=yes in its systemd unit.",
            );
        }
    }
    if text(&sandbox["kernel"]) == "landlock" {
        output::line(
            "Without user namespaces a sandbox has the host's paths, its processes can be listed, and what leaves its process \
             group may live on. To allow them: sysctl kernel.unprivileged_userns_clone=1 and \
             kernel.apparmor_restrict_unprivileged_userns=0.",
        );
    }
    let tools = |which: &str| sandbox.pointer(&format!("/tools/{which}")).unwrap_or(&Value::Null);
    output::row(&format!("Tools allowed: {}", list(tools("allow"))));
    output::row(&format!("Tools denied: {}", list(tools("deny"))));
}
