//! What holds for a session.

use openclaw_config::settings::SandboxScope;
use openclaw_protocol::AgentId;
use openclaw_sessions::SessionSettings;
use openclaw_tools::sandbox::{SandboxPolicy, SandboxSettings, Sandboxes, Source};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::{client, output};

const FIX: &[&str] = &[
    "tools.sandbox.tools.allow",
    "tools.sandbox.tools.deny",
    "agents.list[].tools.sandbox.tools.allow",
    "agents.list[].tools.sandbox.tools.deny",
    "tools.elevated.enabled",
];

pub(super) fn run(context: &Context, agent: Option<&str>, session: Option<&str>, json: bool) -> Outcome {
    let config = context.config()?;
    let rules = SessionSettings::from(config.as_ref()).key_rules();
    let asked = agent.map(|id| context.agent(Some(id))).transpose()?;
    let default = asked.clone().unwrap_or_else(|| config.default_agent());
    let key = match session {
        Some(text) => {
            rules.canonical_for(text, &default).map_err(|error| Failure::usage(error.to_string()))?
        }
        None => rules.main(&default),
    };
    let agent: AgentId = asked.unwrap_or_else(|| rules.agent_of(&key));
    let is_main = rules.is_main(&key) && rules.agent_of(&key) == agent;
    let settings = SandboxSettings::of(config, &agent);
    let policy = SandboxPolicy::of(config, &agent);
    let sandboxes = Sandboxes::of_this_process(context.paths().state_dir());
    let kernel = client::block_on(async { Ok(sandboxes.level().await) })?;
    let kernel = kernel.map_or_else(|why| format!("none: {why}"), |level| level.as_str().to_owned());
    let document = json!({
        "docsUrl": "https://docs.openclaw.ai/sandbox",
        "agentId": agent,
        "sessionKey": key,
        "mainSessionKey": rules.main(&agent),
        "sandbox": {
            "mode": settings.mode.as_str(),
            "backend": settings.backend.as_str(),
            "kernel": kernel,
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
        print(&document)
    }
    Ok(0)
}

fn source(source: Source, list: &str) -> Value {
    let key = match source {
        Source::Agent => format!("agents.list[].tools.sandbox.tools.{list}"),
        Source::Global | Source::Default => format!("tools.sandbox.tools.{list}"),
    };
    json!({"source": source.as_str(), "key": key})
}

fn print(document: &Value) {
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
        ("Kernel", "kernel"),
        ("Scope", "scope"),
        ("Agent workspace access", "workspaceAccess"),
        ("Workspaces", "workspaceRoot"),
    ] {
        output::row(&format!("{name}: {}", text(&sandbox[key])));
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
