//! `openclaw status`: what an operator asks first (spec `cli.md` §3.1).

use std::cmp::Reverse;
use std::path::PathBuf;

use openclaw_agent::hooks::discover::Problem;
use openclaw_agent::hooks::not_loaded;
use openclaw_config::clock::now_ms;
use openclaw_config::settings::{MEMORY_PLUGIN, MemoryOff, TailscaleMode};
use openclaw_config::{Config, ResolvedAgent};
use openclaw_gateway::{Host, absent_features};
use openclaw_protocol::AgentId;
use openclaw_protocol::params::health::AbsentFeature;
use openclaw_protocol::params::memory::AgentMemoryStatus;
use openclaw_protocol::params::status::{
    AgentSessions, HeartbeatSummary, SessionsSummary, StatusDefaults, StatusRow, percent_used,
};
use openclaw_protocol::params::usage::UsageStatusResult;
use openclaw_sessions::store::read_newest_rows;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::default_models::{DefaultModels, ModelInUse};
use super::gateway_probe::{GatewayItself, ProbeDepth, Probed, ask as ask_gateway};
use super::sandbox::reach;
use super::sessions::StoredSession;
use super::{audit, damaged_store, dashboard, memory, status_text, usage};
use crate::args::StatusArgs;
use crate::client::{self, DEFAULT_TIMEOUT, GatewayTarget, TargetFlags};
use crate::context::CliContext;
use crate::failure::CommandResult;
use crate::{listeners, output, service};

/// Sessions shown.
const RECENT: usize = 10;

pub(super) fn run(args: &StatusArgs, context: &CliContext) -> CommandResult {
    let timeout = client::timeout_of(args.timeout.as_deref(), DEFAULT_TIMEOUT)?;
    let config = context.config_or_default();
    context.print_warnings();
    for issue in &context.loaded.snapshot.issues {
        output::error_line(&context.style.error(&format!("config: {}", issue.line())));
    }
    let target = GatewayTarget::of(&config, context.env(), &TargetFlags::default())?;
    let ask = if args.deep || args.all { ProbeDepth::Deep } else { ProbeDepth::Summary };
    let probed = ask_gateway(context, &target, timeout, ask)?;
    let mut status = document(context, &config, &target, &probed);
    if args.deep || args.all {
        status.health = Some(probed.health.clone().unwrap_or_default());
    }
    if args.usage {
        status.usage = Some(usage::quotas(context, &config, &target, &probed, timeout)?);
    }
    if args.json {
        output::json(&status);
    } else {
        let extras = Extras::of(context, &config, &target, ask, probed);
        status_text::lines(&status, context, &extras).iter().for_each(|line| output::row(line));
    }
    Ok(0)
}

/// Content of the text report that is not in the document.
pub(super) struct Extras {
    /// Authentication used, such as `auth token`.
    pub(super) auth: Option<&'static str>,
    /// `gateway.tailscale.mode`.
    pub(super) tailscale: &'static str,
    /// Questions asked of the gateway, for people.
    pub(super) probes: &'static str,
    /// The address of the web chat, without a secret.
    pub(super) dashboard: String,
    /// Remedy if no gateway answers.
    pub(super) remedy: Option<Remedy>,
    /// Hooks that are on and can't be loaded.
    pub(super) hooks_not_loaded: Vec<Problem>,
    /// Answer of the gateway about the accounts of chat platforms.
    pub(super) channels: Option<Value>,
    /// Health snapshot of the gateway, where the platforms were asked for it.
    pub(super) health: Option<Value>,
}

/// Remedy that makes a gateway answer.
pub(super) enum Remedy {
    /// No gateway runs here: start one.
    Start,
    /// Remedy for anything else, as a sentence.
    Told(String),
}

impl Remedy {
    fn of(target: &GatewayTarget, probed: &Probed, is_usable: bool) -> Option<Self> {
        let failure = probed.failure.as_ref()?;
        let is_free = || target.local_port().is_none_or(|port| listeners::holder(port).is_none());
        if failure.code == "unreachable" && target.bind.is_some() && is_usable && is_free() {
            return Some(Self::Start);
        }
        probed.remedy().map(|remedy| Self::Told(remedy.to_owned()))
    }
}

impl Extras {
    fn of(
        context: &CliContext,
        config: &Config,
        target: &GatewayTarget,
        ask: ProbeDepth,
        probed: Probed,
    ) -> Self {
        let auth = match (&target.secrets.token, &target.secrets.password) {
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
                (ProbeDepth::All | ProbeDepth::Deep, true) => "asked (channels are probed by the gateway)",
                (ProbeDepth::All | ProbeDepth::Deep, false) => "not asked (no gateway to ask)",
                (ProbeDepth::Summary | ProbeDepth::Nothing, _) => "skipped (use --deep)",
            },
            dashboard: dashboard::plain_url(context, config, target),
            hooks_not_loaded: not_loaded(config),
            remedy: Remedy::of(target, &probed, context.config().is_ok()),
            channels: probed.channels,
            health: probed.health,
        }
    }
}

/// The document, keys in the order of the reference.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusDocument {
    link_channel: Value,
    pub(super) heartbeat: HeartbeatSummary,
    channel_summary: Value,
    /// Counts of inbound events by outcome, by platform and account; ours. Absent where no gateway
    /// answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    inbound: Option<Value>,
    pub(super) queued_system_events: Vec<Value>,
    pub(super) sessions: Sessions,
    pub(super) os: Os,
    update: Value,
    pub(super) update_channel: &'static str,
    pub(super) update_channel_source: &'static str,
    memory: Value,
    memory_plugin: Value,
    #[serde(skip)]
    pub(super) memory_row: String,
    pub(super) gateway: GatewayStatus,
    pub(super) gateway_service: Service,
    pub(super) node_service: Service,
    pub(super) agents: Agents,
    pub(super) security_audit: audit::AuditReport,
    /// Reasons why runs that need a sandbox do not begin; ours, absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sandbox_problems: Vec<String>,
    /// Features of OpenClaw that the state directory uses and this version does not have; ours, absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) absent_features: Vec<AbsentFeature>,
    /// Health snapshot of the gateway, where it was asked for; `null` where none answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<Value>,
    /// The quotas, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<UsageStatusResult>,
}

/// The counts of each account in an answer of `channels.status`.
fn inbound(channels: &Value) -> Value {
    let accounts = channels.get("channelAccounts").and_then(Value::as_object);
    let counts = |account: &Value| {
        let id = account.get("accountId")?.as_str()?;
        Some((id.to_owned(), account.get("inbound")?.clone()))
    };
    let of_channel = |(channel, accounts): (&String, &Value)| {
        let counts: Map<String, Value> =
            accounts.as_array().into_iter().flatten().filter_map(counts).collect();
        (!counts.is_empty()).then(|| (channel.clone(), Value::Object(counts)))
    };
    Value::Object(accounts.into_iter().flatten().filter_map(of_channel).collect())
}

/// The sessions as the gateway's `status` has them.
#[derive(Debug, Serialize)]
pub(super) struct Sessions {
    #[serde(flatten)]
    pub(super) summary: SessionsSummary,
    /// Reasons why not all of them could be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Os {
    platform: String,
    arch: &'static str,
    release: String,
    pub(super) label: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GatewayStatus {
    pub(super) mode: &'static str,
    pub(super) url: String,
    pub(super) url_source: String,
    misconfigured: bool,
    pub(super) reachable: bool,
    pub(super) connect_latency_ms: Option<u64>,
    #[serde(rename = "self")]
    pub(super) itself: Option<GatewayItself>,
    pub(super) error: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Agents {
    pub(super) default_id: AgentId,
    pub(super) agents: Vec<AgentPart>,
    pub(super) total_sessions: usize,
    pub(super) bootstrap_pending_count: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentPart {
    pub(super) id: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    workspace_dir: PathBuf,
    bootstrap_pending: bool,
    sessions_path: PathBuf,
    sessions_count: usize,
    last_updated_at: Option<i64>,
    pub(super) last_active_age_ms: Option<i64>,
}

/// State of the service file; managing services is not part of this version.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Service {
    pub(super) label: &'static str,
    installed: bool,
    pub(super) loaded_text: &'static str,
    runtime_short: Value,
}

fn document(
    context: &CliContext,
    config: &Config,
    target: &GatewayTarget,
    probed: &Probed,
) -> StatusDocument {
    let agents = config.agent_ids();
    let now = now_ms();
    let stores: Vec<Store> = agents.iter().map(|id| Store::look(context, config, id)).collect();
    let summary = |key: &str| probed.summary.as_ref().and_then(|summary| summary.get(key)).cloned();
    let memory = MemoryRow::of(context, config);
    let host = Host::detect();
    let (os, release) = host.platform.split_once(' ').unwrap_or((host.platform.as_str(), ""));
    StatusDocument {
        link_channel: summary("linkChannel").unwrap_or_default(),
        heartbeat: HeartbeatSummary {
            default_agent_id: config.default_agent().to_string(),
            agents: agents.iter().map(|id| config.heartbeat(id)).collect(),
        },
        channel_summary: summary("channelSummary").unwrap_or(json!([])),
        inbound: probed.channels.as_ref().map(inbound),
        queued_system_events: match summary("queuedSystemEvents") {
            Some(Value::Array(events)) => events,
            Some(_) | None => Vec::new(),
        },
        sessions: sessions(context, config, &stores, now),
        os: Os {
            platform: os.to_owned(),
            release: release.to_owned(),
            label: format!("{} ({})", host.platform, host.arch),
            arch: host.arch,
        },
        update: json!({
            "root": std::env::current_exe().ok().and_then(|path| Some(path.parent()?.display().to_string())),
            "installKind": "unknown",
            "packageManager": "unknown",
            "registry": { "latestVersion": null },
        }),
        update_channel: "stable",
        update_channel_source: "default",
        memory: memory.document(),
        memory_plugin: memory.plugin(),
        memory_row: memory.row(),
        gateway: GatewayStatus {
            mode: if target.bind.is_some() { "local" } else { "remote" },
            url: target.url.clone(),
            url_source: target.source.clone(),
            misconfigured: target.note.is_some(),
            reachable: probed.ok,
            connect_latency_ms: probed.latency_ms,
            itself: probed.itself.clone(),
            error: probed.error.clone(),
        },
        gateway_service: Service::of(context, "openclaw-gateway"),
        node_service: Service::of(context, "openclaw-node"),
        agents: Agents {
            default_id: config.default_agent(),
            total_sessions: stores.iter().map(|store| store.count).sum(),
            bootstrap_pending_count: stores.iter().filter(|store| store.is_bootstrap_pending()).count(),
            agents: stores.iter().map(|store| store.agent_part(now)).collect(),
        },
        security_audit: audit::report(context, config),
        sandbox_problems: reach::problems(context, config),
        absent_features: absent_features(&context.loaded).features,
        health: None,
        usage: None,
    }
}

/// Memory of the default agent, as the overview shows it.
enum MemoryRow {
    Off(MemoryOff),
    Failed(String),
    Found(Box<AgentMemoryStatus>),
}

impl MemoryRow {
    fn of(context: &CliContext, config: &Config) -> Self {
        let agent = config.default_agent();
        if let Some(off) = config.memory_off(&agent) {
            return Self::Off(off);
        }
        let found = memory::status_here(context, &[agent], false, false);
        match found.map(|mut found| (found.agents.pop(), found.absent.pop())) {
            Ok((Some(found), _)) => Self::Found(Box::new(found)),
            Ok((None, absent)) => Self::Failed(absent.map(|absent| absent.reason).unwrap_or_default()),
            Err(failure) => Self::Failed(failure.message),
        }
    }

    /// `memory` of the document.
    fn document(&self) -> Value {
        let Self::Found(found) = self else { return Value::Null };
        let mut document = json!({ "agentId": found.agent_id });
        if let (Some(document), Ok(Value::Object(status))) =
            (document.as_object_mut(), serde_json::to_value(&found.status))
        {
            document.extend(status);
        }
        document
    }

    /// `memoryPlugin` of the document.
    fn plugin(&self) -> Value {
        match self {
            Self::Off(MemoryOff::Plugin { setting }) => {
                json!({ "enabled": false, "slot": null, "reason": setting })
            }
            Self::Off(MemoryOff::Search) | Self::Failed(_) | Self::Found(_) => {
                json!({ "enabled": true, "slot": MEMORY_PLUGIN })
            }
        }
    }

    fn row(&self) -> String {
        match self {
            Self::Off(MemoryOff::Plugin { setting }) => format!("disabled ({setting})"),
            Self::Off(MemoryOff::Search) => "disabled (memorySearch.enabled is false)".to_owned(),
            Self::Failed(reason) => format!("enabled (plugin {MEMORY_PLUGIN}) · unavailable: {reason}"),
            Self::Found(found) => memory::row(&found.status),
        }
    }
}

/// Store of an agent, and the parts of its sessions that are shown.
struct Store {
    agent: ResolvedAgent,
    path: PathBuf,
    newest: Vec<StoredSession>,
    count: usize,
    /// Reason why not all of it could be read.
    problem: Option<String>,
}

impl Store {
    /// A store that can't be read hides neither the others nor the rest.
    fn look(context: &CliContext, config: &Config, id: &AgentId) -> Self {
        let path = config.session_store(id);
        let (newest, count) = read_newest_rows(&path, RECENT).unwrap_or_default();
        Self {
            agent: config.agent(id),
            newest: newest.into_iter().map(StoredSession::from).collect(),
            count,
            problem: damaged_store::of_configured(context, &path),
            path,
        }
    }

    fn is_bootstrap_pending(&self) -> bool {
        self.agent.workspace.join("BOOTSTRAP.md").exists()
    }

    fn agent_part(&self, now: i64) -> AgentPart {
        let last = self.newest.first().map(|session| session.entry.updated_at_ms());
        AgentPart {
            id: self.agent.id.clone(),
            name: self.agent.name.clone(),
            workspace_dir: self.agent.workspace.clone(),
            bootstrap_pending: self.is_bootstrap_pending(),
            sessions_path: self.path.clone(),
            sessions_count: self.count,
            last_updated_at: last,
            last_active_age_ms: last.map(|at| now - at),
        }
    }
}

fn sessions(context: &CliContext, config: &Config, stores: &[Store], now: i64) -> Sessions {
    let models = DefaultModels::load(config, context.env());
    let of_agent = |store: &Store| AgentSessions {
        agent_id: store.agent.id.to_string(),
        path: store.path.display().to_string(),
        count: store.count as u64,
        recent: store.newest.iter().map(|session| row(&models, &store.agent.id, session, now)).collect(),
    };
    let by_agent: Vec<AgentSessions> = stores.iter().map(of_agent).collect();
    let mut recent: Vec<StatusRow> = by_agent.iter().flat_map(|agent| agent.recent.clone()).collect();
    recent.sort_by_key(|row| Reverse(row.updated_at));
    recent.truncate(RECENT);
    let default = models.of(&config.default_agent());
    Sessions {
        summary: SessionsSummary {
            paths: by_agent.iter().map(|agent| agent.path.clone()).collect(),
            count: by_agent.iter().map(|agent| agent.count).sum(),
            defaults: StatusDefaults {
                context_tokens: Some(models.window(&default)),
                model: Some(default.model),
            },
            recent,
            by_agent,
        },
        problems: stores.iter().filter_map(|store| store.problem.clone()).collect(),
    }
}

fn row(models: &DefaultModels, agent: &AgentId, session: &StoredSession, now: i64) -> StatusRow {
    let entry = &session.entry;
    let ModelInUse { model, window } = models.of_session(agent, session);
    let total = entry
        .total_tokens
        .unwrap_or_else(|| entry.input_tokens.unwrap_or(0).saturating_add(entry.output_tokens.unwrap_or(0)));
    StatusRow {
        agent_id: Some(agent.to_string()),
        key: session.key.clone(),
        kind: session.kind(),
        session_id: entry.session_id.as_ref().map(ToString::to_string),
        updated_at: Some(entry.updated_at_ms()),
        age: Some(now - entry.updated_at_ms()),
        thinking_level: entry.thinking_level.as_deref().map(str::to_owned),
        verbose_level: entry.verbose_level.map(|level| level.to_string()),
        reasoning_level: entry.reasoning_level.map(|level| level.to_string()),
        elevated_level: entry.elevated_level.map(|level| level.to_string()),
        system_sent: entry.system_sent,
        aborted_last_run: entry.aborted_last_run,
        input_tokens: entry.input_tokens,
        output_tokens: entry.output_tokens,
        total_tokens: total,
        remaining_tokens: Some(window.saturating_sub(total)),
        percent_used: percent_used(total, window),
        model: Some(model),
        context_tokens: Some(window),
        flags: session.flags(),
    }
}

impl Service {
    fn of(context: &CliContext, name: &str) -> Self {
        let service = service::Service::of(context, name);
        let (label, installed) = (service.label, service.is_installed());
        let loaded_text = if installed { "installed" } else { "not installed" };
        Self { label, installed, loaded_text, runtime_short: Value::Null }
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
        let context = CliContext::new(&env, true);
        let config = context.config_or_default();
        let target = GatewayTarget::of(&config, context.env(), &TargetFlags::default()).unwrap();
        serde_json::to_value(document(&context, &config, &target, &Probed::default())).unwrap()
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
