//! `openclaw gateway probe`: which gateways answer from here (spec `cli.md` §3.4).

use std::time::{Duration, Instant};

use openclaw_config::clock::now_ms;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{self, AwaitedResponse, ConnectError, GatewayConnection, GatewayTarget, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult, ERROR};
use crate::output;

/// Result of probing one gateway.
#[derive(Debug, Default)]
pub(super) struct Probed {
    /// True if it let us in.
    pub(super) ok: bool,
    /// Time until it answered, in milliseconds.
    pub(super) latency_ms: Option<u64>,
    /// Reason why it did not.
    pub(super) error: Option<String>,
    /// The same as other commands say it, with what to do.
    pub(super) failure: Option<CommandFailure>,
    /// Close code and reason.
    pub(super) close: Option<Value>,
    /// Self-description of the gateway.
    pub(super) itself: Option<GatewayItself>,
    /// Answer to `health`.
    pub(super) health: Option<Value>,
    /// Answer to `status`.
    pub(super) summary: Option<Value>,
    /// Answer to `channels.status`.
    pub(super) channels: Option<Value>,
    /// Presence list of the gateway.
    pub(super) presence: Option<Value>,
    /// Answer to `config.get`.
    pub(super) config: Option<Value>,
}

/// A gateway in its own presence list.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct GatewayItself {
    pub(super) host: Option<String>,
    pub(super) ip: Option<String>,
    pub(super) version: Option<String>,
    pub(super) platform: Option<String>,
}

/// Questions to ask once connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeDepth {
    /// No questions.
    Nothing,
    /// `status`, and how the accounts of chat platforms stand.
    Summary,
    /// All that `gateway probe` shows.
    All,
    /// The same, for which the gateway asks the platforms now.
    Deep,
}

/// Connects to a gateway and asks it. Never fails: what went wrong is part of the answer.
async fn probe(context: &CliContext, target: &GatewayTarget, timeout: Duration, ask: ProbeDepth) -> Probed {
    let mut probed = Probed::default();
    let started = Instant::now();
    if tokio::time::timeout(timeout, interview(context, target, ask, started, &mut probed)).await.is_err() {
        probed.error.get_or_insert_with(|| "timeout".to_owned());
    }
    probed
}

/// [`probe`] of a gateway that may be configured wrongly: then that is the answer.
pub(super) fn ask(
    context: &CliContext,
    target: &GatewayTarget,
    timeout: Duration,
    ask: ProbeDepth,
) -> Result<Probed, CommandFailure> {
    match &target.note {
        Some(note) => Ok(Probed {
            error: Some(note.to_string()),
            failure: target.misconfigured(context),
            ..Probed::default()
        }),
        None => client::block_on(async { Ok(probe(context, target, timeout, ask).await) }),
    }
}

async fn interview(
    context: &CliContext,
    target: &GatewayTarget,
    ask: ProbeDepth,
    started: Instant,
    probed: &mut Probed,
) {
    let mut connection = match GatewayConnection::open(context, target).await {
        Ok(connection) => connection,
        Err(error) => {
            probed.close = match &error {
                ConnectError::Closed { code, reason } => Some(json!({ "code": code, "reason": reason })),
                ConnectError::Unreachable { .. } | ConnectError::UnknownHost { .. } => {
                    Some(json!({ "code": 1006, "reason": "" }))
                }
                _ => None,
            };
            let elsewhere = client::elsewhere(context, target, &error).map(|failure| failure.message);
            probed.error = Some(elsewhere.unwrap_or_else(|| error.to_string()));
            probed.failure = Some(client::explain(context, target, &error));
            return;
        }
    };
    probed.ok = true;
    probed.latency_ms = Some(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
    probed.presence = connection.hello.pointer("/snapshot/presence").cloned();
    probed.itself = probed.presence.as_ref().and_then(gateway_itself);
    let mut get = async |method: &str, params: Value| match connection
        .call(method, params, AwaitedResponse::First)
        .await
    {
        Ok(payload) => Some(payload),
        Err(error) => {
            probed.error.get_or_insert_with(|| format!("{method}: {error}"));
            None
        }
    };
    if matches!(ask, ProbeDepth::All | ProbeDepth::Deep) {
        probed.health = get("health", json!({ "probe": ask == ProbeDepth::Deep })).await;
        probed.config = get("config.get", json!({})).await;
    }
    if ask != ProbeDepth::Nothing {
        probed.summary = get("status", json!({})).await;
    }
    if matches!(ask, ProbeDepth::Summary | ProbeDepth::Deep) {
        probed.channels = get("channels.status", json!({})).await;
    }
    connection.close().await;
}

impl Probed {
    /// Remedy where the gateway could not be talked to.
    pub(super) fn remedy(&self) -> Option<&str> {
        self.failure.as_ref()?.hint.as_deref()
    }
}

/// The gateway's own entry of its presence list.
fn gateway_itself(presence: &Value) -> Option<GatewayItself> {
    let entries = presence.as_array()?;
    let own = entries.iter().find(|entry| entry.get("mode").and_then(Value::as_str) == Some("gateway"))?;
    GatewayItself::deserialize(own).ok()
}

pub(super) fn run(context: &CliContext, flags: &TargetFlags, timeout: Duration, json: bool) -> CommandResult {
    let config = context.config_or_default();
    let target = GatewayTarget::of(&config, context.env(), flags)?;
    let started = Instant::now();
    let probed = ask(context, &target, timeout, ProbeDepth::All)?;
    let duration = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    if json {
        output::json(&document(&target, flags, &probed, timeout, duration));
    } else {
        text(context, &target, &probed, timeout).iter().for_each(|line| output::row(line));
    }
    Ok(if probed.ok { 0 } else { ERROR })
}

fn kind(target: &GatewayTarget, flags: &TargetFlags) -> &'static str {
    match (&flags.url, target.bind) {
        (Some(_), _) => "explicit",
        (None, None) => "configRemote",
        (None, Some(_)) => "localLoopback",
    }
}

fn document(
    target: &GatewayTarget,
    flags: &TargetFlags,
    probed: &Probed,
    timeout: Duration,
    duration: u64,
) -> Value {
    let id = kind(target, flags);
    let loopback = target.bind.map(|_| target.url.clone());
    json!({
        "ok": probed.ok,
        "ts": now_ms(),
        "durationMs": duration,
        "timeoutMs": u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        "primaryTargetId": probed.ok.then_some(id),
        "warnings": [],
        "network": { "localLoopbackUrl": loopback, "localTailnetUrl": null, "tailnetIPv4": null },
        "discovery": { "timeoutMs": 0, "count": 0, "beacons": [] },
        "targets": [{
            "id": id,
            "kind": id,
            "url": target.url,
            "active": true,
            "tunnel": null,
            "connect": {
                "ok": probed.ok,
                "latencyMs": probed.latency_ms,
                "error": probed.error,
                "close": probed.close,
            },
            "self": probed.itself,
            "config": probed.config.as_ref().map(config_summary),
            "health": probed.health,
            "summary": probed.summary,
            "presence": probed.presence,
        }],
    })
}

/// Summary of the answer to `config.get`; never its secrets.
fn config_summary(answer: &Value) -> Value {
    let part = |name: &str| answer.get(name).cloned().unwrap_or_default();
    let gateway =
        |pointer: &str| answer.pointer(&format!("/config/gateway{pointer}")).cloned().unwrap_or_default();
    let is_set =
        |pointer: &str| answer.pointer(&format!("/config/gateway{pointer}")).is_some_and(|v| !v.is_null());
    json!({
        "path": part("path"),
        "exists": part("exists"),
        "valid": part("valid"),
        "issues": part("issues"),
        "legacyIssues": part("legacyIssues"),
        "gateway": {
            "mode": gateway("/mode"),
            "bind": gateway("/bind"),
            "port": gateway("/port"),
            "controlUiEnabled": gateway("/controlUi/enabled"),
            "controlUiBasePath": gateway("/controlUi/basePath"),
            "authMode": gateway("/auth/mode"),
            "authTokenConfigured": is_set("/auth/token"),
            "authPasswordConfigured": is_set("/auth/password"),
            "remoteUrl": gateway("/remote/url"),
            "remoteTokenConfigured": is_set("/remote/token"),
            "remotePasswordConfigured": is_set("/remote/password"),
            "tailscaleMode": gateway("/tailscale/mode"),
        },
        "discovery": { "wideAreaEnabled": answer.pointer("/config/discovery/wideArea/enabled") },
    })
}

fn text(context: &CliContext, target: &GatewayTarget, probed: &Probed, timeout: Duration) -> Vec<String> {
    let style = context.style;
    let reachable = if probed.ok { style.success("yes") } else { style.error("no") };
    let mut lines = vec![
        style.accent("Gateway Status"),
        format!("Reachable: {reachable}"),
        style.muted(&format!("Probe budget: {}ms", timeout.as_millis())),
        String::new(),
        style.accent("Targets"),
        format!("{} {}", target.source, target.url),
    ];
    match (probed.ok, probed.latency_ms, &probed.error) {
        (true, Some(latency), None) => lines.push(format!("  Connect: ok ({latency}ms) · RPC: ok")),
        (true, latency, error) => lines.push(format!(
            "  Connect: ok ({}ms) · RPC: failed - {}",
            latency.unwrap_or_default(),
            error.as_deref().unwrap_or("unknown error")
        )),
        (false, _, error) => {
            lines.push(format!("  Connect: failed - {}", error.as_deref().unwrap_or("unknown error")))
        }
    }
    lines.extend(probed.remedy().map(|remedy| format!("Next: {remedy}")));
    if let Some(GatewayItself { host, ip, version, platform }) = &probed.itself {
        let [host, ip, platform, version] =
            [host, ip, platform, version].map(|field| field.as_deref().unwrap_or("unknown"));
        lines.push(format!("  Gateway: {host} ({ip}) · {platform} · app {version}"));
    }
    lines
}
