//! `openclaw status`: what an operator asks first (spec `cli.md` §3.1).

use openclaw_config::Config;
use openclaw_config::clock::now_ms;
use openclaw_config::settings::TailscaleMode;
use openclaw_gateway::Host;
use openclaw_protocol::AgentId;
use serde_json::{Map, Value, json};

use super::default_models::DefaultModels;
use super::gateway_probe::{Ask, Probed, ask as ask_gateway};
use super::sessions::{StoredSession, read_newest};
use super::{audit, damaged_store, dashboard, heartbeat, status_text, usage};
use crate::args::StatusArgs;
use crate::client::{self, DEFAULT_TIMEOUT, Target, TargetFlags};
use crate::context::Context;
use crate::failure::Outcome;
use crate::output;

/// Sessions shown.
const RECENT: usize = 10;

pub(super) fn run(args: &StatusArgs, context: &Context) -> Outcome {
    let timeout = client::timeout_of(args.timeout.as_deref(), DEFAULT_TIMEOUT)?;
    let config = context.config_or_default();
    context.print_warnings();
    for issue in &context.loaded.snapshot.issues {
        output::error_line(&context.style.error(&format!("config: {}", issue.line())));
    }
    let target = Target::of(&config, context.env(), &TargetFlags::default())?;
    let ask = if args.deep || args.all { Ask::All } else { Ask::Summary };
    let probed = ask_gateway(context, &target, timeout, ask)?;
    let mut status = document(context, &config, &target, &probed);
    if let Some(status) = status.as_object_mut() {
        if args.deep || args.all {
            status.insert("health".to_owned(), json!(probed.health));
        }
        if args.usage {
            let usage = usage::quotas(context, &config, &target, &probed, timeout)?;
            status.insert("usage".to_owned(), json!(usage));
        }
    }
    if args.json {
        output::json(&status);
    } else {
        let extras = Extras::of(context, &config, &target, ask, &probed);
        status_text::lines(&status, context, &extras).iter().for_each(|line| output::line(line));
    }
    Ok(0)
}

/// What the report for people says that is not in the document.
pub(super) struct Extras {
    /// How we authenticate, `auth token`.
    pub(super) auth: Option<&'static str>,
    /// `gateway.tailscale.mode`.
    pub(super) tailscale: &'static str,
    /// What was asked of the gateway.
    pub(super) probes: &'static str,
    /// The address of the web chat, without a secret.
    pub(super) dashboard: String,
    /// What to do so that a gateway answers.
    pub(super) remedy: Option<Remedy>,
}

/// What makes a gateway answer.
pub(super) enum Remedy {
    /// None runs here.
    Start,
    /// Anything else, as a sentence.
    Told(String),
}

impl Remedy {
    fn of(target: &Target, probed: &Probed, is_usable: bool) -> Option<Self> {
        let failure = probed.failure.as_ref()?;
        if failure.code == "unreachable" && target.bind.is_some() && is_usable {
            return Some(Self::Start);
        }
        probed.remedy().map(|remedy| Self::Told(remedy.to_owned()))
    }
}

impl Extras {
    fn of(context: &Context, config: &Config, target: &Target, ask: Ask, probed: &Probed) -> Self {
        let auth = match (&target.token, &target.password) {
            (Some(_), Some(_)) => Some("auth token+password"),
            (Some(_), None) => Some("auth token"),
            (None, Some(_)) => Some("auth password"),
            (None, None) => None,
        };
        Self {
            auth,
            tailscale: match config.gateway.tailscale.mode {
                TailscaleMode::Off => "off",
                TailscaleMode::Serve => "serve (not implemented yet)",
                TailscaleMode::Funnel => "funnel (not implemented yet)",
            },
            probes: match (ask, probed.ok) {
                (Ask::All, true) => "asked (channels are probed by the gateway)",
                (Ask::All, false) => "not asked (no gateway to ask)",
                (Ask::Summary | Ask::Nothing, _) => "skipped (use --deep)",
            },
            dashboard: dashboard::plain_url(context, config, target),
            remedy: Remedy::of(target, probed, context.config().is_ok()),
        }
    }
}

fn document(context: &Context, config: &Config, target: &Target, probed: &Probed) -> Value {
    let agents = config.agent_ids();
    let now = now_ms();
    let models = DefaultModels::load(config, context.env());
    let mut stores = Vec::new();
    for id in &agents {
        let path = config.session_store(id);
        // A store that can't be read hides neither the others nor the rest.
        let (newest, count) = read_newest(&path, RECENT).unwrap_or_default();
        stores.push(Store {
            agent: id.clone(),
            newest,
            count,
            problem: damaged_store::of_configured(context, &path),
        });
    }
    let summary = |key: &str| probed.summary.as_ref().and_then(|summary| summary.get(key)).cloned();
    let host = Host::detect();
    let (os, release) = host.platform.split_once(' ').unwrap_or((host.platform.as_str(), ""));
    json!({
        "linkChannel": summary("linkChannel"),
        "heartbeat": {
            "defaultAgentId": config.default_agent(),
            "agents": agents.iter().map(|id| heartbeat::of_agent(config, id)).collect::<Vec<_>>(),
        },
        "channelSummary": summary("channelSummary").unwrap_or(json!([])),
        "queuedSystemEvents": summary("queuedSystemEvents").unwrap_or(json!([])),
        "sessions": sessions(config, &models, &stores, now),
        "os": {
            "platform": os,
            "arch": host.arch,
            "release": release,
            "label": format!("{} ({})", host.platform, host.arch),
        },
        "update": {
            "root": std::env::current_exe().ok().and_then(|path| Some(path.parent()?.display().to_string())),
            "installKind": "unknown",
            "packageManager": "unknown",
            "registry": { "latestVersion": null },
        },
        "updateChannel": "stable",
        "updateChannelSource": "default",
        "memory": null,
        "memoryPlugin": { "enabled": false, "slot": null, "reason": "not implemented yet" },
        "gateway": {
            "mode": if target.bind.is_some() { "local" } else { "remote" },
            "url": target.url,
            "urlSource": target.source,
            "misconfigured": target.note.is_some(),
            "reachable": probed.ok,
            "connectLatencyMs": probed.latency_ms,
            "self": probed.itself,
            "error": probed.error,
        },
        "gatewayService": service(context, "openclaw-gateway"),
        "nodeService": service(context, "openclaw-node"),
        "agents": agents_part(config, &stores, now),
        "securityAudit": audit::report(context, config),
    })
}

/// What is shown of an agent's sessions.
struct Store {
    agent: AgentId,
    newest: Vec<StoredSession>,
    count: usize,
    /// Why not all of them could be read.
    problem: Option<String>,
}

fn sessions(config: &Config, models: &DefaultModels, stores: &[Store], now: i64) -> Value {
    let row = |id: &AgentId, session: &StoredSession| session_row(models, id, session, now);
    let mut all: Vec<(&AgentId, &StoredSession)> =
        stores.iter().flat_map(|store| store.newest.iter().map(|session| (&store.agent, session))).collect();
    all.sort_by_key(|(_, session)| std::cmp::Reverse(session.updated_at()));
    let by_agent: Vec<Value> = stores
        .iter()
        .map(|Store { agent, newest, count, problem: _ }| {
            json!({
                "agentId": agent,
                "path": config.session_store(agent).display().to_string(),
                "count": count,
                "recent": newest.iter().map(|session| row(agent, session)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let default = models.of(&config.default_agent());
    let mut out = json!({
        "paths": stores.iter().map(|store| config.session_store(&store.agent).display().to_string()).collect::<Vec<_>>(),
        "count": stores.iter().map(|store| store.count).sum::<usize>(),
        "defaults": { "model": default.model, "contextTokens": models.window(&default) },
        "recent": all.iter().take(RECENT).map(|(id, session)| row(id, session)).collect::<Vec<_>>(),
        "byAgent": by_agent,
    });
    let problems: Vec<&String> = stores.iter().filter_map(|store| store.problem.as_ref()).collect();
    if let (false, Some(out)) = (problems.is_empty(), out.as_object_mut()) {
        out.insert("problems".to_owned(), json!(problems));
    }
    out
}

/// Fields that are shown when they are set, in their order.
const OPTIONAL_FIELDS: &[&str] = &[
    "thinkingLevel",
    "verboseLevel",
    "reasoningLevel",
    "elevatedLevel",
    "systemSent",
    "abortedLastRun",
    "inputTokens",
    "outputTokens",
];

fn session_row(models: &DefaultModels, agent: &AgentId, session: &StoredSession, now: i64) -> Value {
    let used = models.of_session(agent, session);
    let window = used.window;
    let total = session.number("totalTokens").unwrap_or_else(|| {
        session.number("inputTokens").unwrap_or(0) + session.number("outputTokens").unwrap_or(0)
    });
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| {
        out.insert(key.to_owned(), value);
    };
    put("agentId", json!(agent));
    put("key", json!(session.key));
    put("kind", json!(session.kind()));
    put("sessionId", json!(session.text("sessionId")));
    put("updatedAt", json!(session.updated_at()));
    put("age", json!(now - session.updated_at()));
    for field in OPTIONAL_FIELDS {
        if let Some(value) = session.entry.get(*field) {
            put(field, value.clone());
        }
    }
    put("totalTokens", json!(total));
    put("remainingTokens", json!(window.saturating_sub(total)));
    put("percentUsed", json!(total.saturating_mul(100).checked_div(window).map(|percent| percent.min(999))));
    put("model", json!(used.model));
    put("contextTokens", json!(window));
    put("flags", json!(session.flags()));
    Value::Object(out)
}

fn agents_part(config: &Config, stores: &[Store], now: i64) -> Value {
    let mut pending = 0;
    let agents: Vec<Value> = stores
        .iter()
        .map(|Store { agent: id, newest, count, problem: _ }| {
            let agent = config.agent(id);
            let is_pending = agent.workspace.join("BOOTSTRAP.md").exists();
            pending += usize::from(is_pending);
            let last = newest.first().map(StoredSession::updated_at);
            let mut out = json!({ "id": id });
            if let (Some(name), Some(out)) = (&agent.name, out.as_object_mut()) {
                out.insert("name".to_owned(), json!(name));
            }
            let rest = json!({
                "workspaceDir": agent.workspace.display().to_string(),
                "bootstrapPending": is_pending,
                "sessionsPath": config.session_store(id).display().to_string(),
                "sessionsCount": count,
                "lastUpdatedAt": last,
                "lastActiveAgeMs": last.map(|at| now - at),
            });
            if let (Some(out), Value::Object(rest)) = (out.as_object_mut(), rest) {
                out.extend(rest);
            }
            out
        })
        .collect();
    json!({
        "defaultId": config.default_agent(),
        "agents": agents,
        "totalSessions": stores.iter().map(|store| store.count).sum::<usize>(),
        "bootstrapPendingCount": pending,
    })
}

/// Whether a service file is there; managing services is not part of this version.
pub(super) fn service(context: &Context, name: &str) -> Value {
    let (label, file) = service_file(context, name);
    let is_installed = file.exists();
    let text = if is_installed { "installed" } else { "not installed" };
    json!({ "label": label, "installed": is_installed, "loadedText": text, "runtimeShort": null })
}

/// The manager's name and the file of a service (spec `cli.md` §9.1).
pub(super) fn service_file(context: &Context, name: &str) -> (&'static str, std::path::PathBuf) {
    let suffix = context.paths().profile().map(|profile| format!("-{profile}")).unwrap_or_default();
    let home = context.paths().home();
    if cfg!(target_os = "macos") {
        let label = context.paths().profile().unwrap_or(name.trim_start_matches("openclaw-"));
        ("LaunchAgent", home.join("Library/LaunchAgents").join(format!("ai.openclaw.{label}.plist")))
    } else {
        ("systemd", home.join(".config/systemd/user").join(format!("{name}{suffix}.service")))
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    fn golden() -> Value {
        let runs: Value = serde_json::from_str(include_str!("../../tests/golden/cli-status.json")).unwrap();
        let is_json = |run: &&Value| run["argv"] == json!(["openclaw", "status", "--json"]);
        runs.as_array().unwrap().iter().find(is_json).unwrap()["stdoutJson"].clone()
    }

    fn ours() -> Value {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join(".openclaw/agents/main/sessions");
        std::fs::create_dir_all(&sessions).unwrap();
        let row = json!({
            "sessionId": "test1", "updatedAt": 1_795_229_479_704_i64, "abortedLastRun": false, "inputTokens": 1000,
            "outputTokens": 5, "totalTokens": 1000, "model": "mock-1", "contextTokens": 32000,
        });
        std::fs::write(sessions.join("sessions.json"), json!({ "agent:main:main": row }).to_string())
            .unwrap();
        let config = "{ agents: { list: [{ id: 'main', name: 'Main', default: true }, { id: 'work', name: 'Work' }] } }";
        std::fs::write(home.path().join(".openclaw/openclaw.json"), config).unwrap();
        let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        let context = Context::new(&env, true);
        let config = context.config_or_default();
        let target = Target::of(&config, context.env(), &TargetFlags::default()).unwrap();
        document(&context, &config, &target, &Probed::default())
    }

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    #[test]
    fn keys_and_their_order_are_those_of_the_reference() {
        let (golden, ours) = (golden(), ours());
        assert_eq!(keys(&ours), keys(&golden));
        let places = [
            "/heartbeat",
            "/heartbeat/agents/0",
            "/sessions",
            "/sessions/recent/0",
            "/sessions/byAgent/0",
            "/os",
            "/gateway",
            "/gatewayService",
            "/agents",
            "/agents/agents/0",
            "/securityAudit",
            "/securityAudit/summary",
        ];
        for place in places {
            let at = |document: &Value| document.pointer(place).cloned().unwrap();
            assert_eq!(keys(&at(&ours)), keys(&at(&golden)), "{place}");
        }
    }

    #[test]
    fn a_session_row_has_the_recorded_values() {
        let (golden, ours) = (golden(), ours());
        let at = |document: &Value| {
            let mut row = document.pointer("/sessions/recent/0").cloned().unwrap();
            row["age"] = json!(0);
            row
        };
        assert_eq!(at(&ours).to_string(), at(&golden).to_string());
    }
}
