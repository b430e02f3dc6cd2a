//! `openclaw status` for people.

use openclaw_config::clock::now_ms;
use openclaw_models::quota;
use openclaw_protocol::params::usage::UsageStatusResult;
use serde_json::Value;

use super::sessions::tokens;
use super::status::{Extras, Remedy};
use crate::context::Context;
use crate::output::{self, Column, boxed, columns};

/// Width of the overview, in characters.
const WIDTH: usize = 119;
/// Security findings shown.
const FINDINGS: usize = 6;

/// The report as lines.
pub(super) fn lines(status: &Value, context: &Context, extras: &Extras) -> Vec<String> {
    let style = context.style;
    let mut lines = vec![style.accent("OpenClaw status"), String::new(), style.accent("Overview")];
    lines.extend(boxed(["Item", "Value"], &overview(status, context, extras), WIDTH));
    lines.extend([String::new(), style.accent("Security audit")]);
    lines.extend(security(status, context));
    lines.extend([String::new(), style.accent("Sessions")]);
    lines.extend(sessions(status, context));
    lines.extend(usage(status));
    lines.extend(footer(context, extras));
    lines
}

fn text<'a>(status: &'a Value, pointer: &str) -> &'a str {
    status.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(status: &Value, pointer: &str) -> u64 {
    status.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

fn flag(status: &Value, pointer: &str) -> bool {
    status.pointer(pointer) == Some(&Value::Bool(true))
}

fn list<'a>(status: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    status.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The quotas, where they were asked for.
fn usage(status: &Value) -> Vec<String> {
    let asked = status.get("usage").cloned().map(serde_json::from_value::<UsageStatusResult>);
    match asked {
        Some(Ok(usage)) => {
            std::iter::once(String::new()).chain(quota::text::report(&usage.providers, now_ms())).collect()
        }
        Some(Err(_)) | None => Vec::new(),
    }
}

/// Where to read on, and what to type next.
fn footer(context: &Context, extras: &Extras) -> Vec<String> {
    let step = |question: &str, command: &str| format!("  {question} {}", context.hint_command(command));
    let mut lines = vec![
        String::new(),
        "FAQ: https://docs.openclaw.ai/faq".to_owned(),
        "Troubleshooting: https://docs.openclaw.ai/troubleshooting".to_owned(),
        String::new(),
        "Next steps:".to_owned(),
    ];
    if !context.loaded.snapshot.exists {
        lines.push(step("Nothing set up yet?", "openclaw setup"));
    }
    match &extras.remedy {
        _ if !context.loaded.snapshot.exists => {}
        None => {}
        Some(Remedy::Start) => lines.push(step("Need a gateway?    ", "openclaw gateway")),
        Some(Remedy::Told(remedy)) => lines.push(format!("  Need a gateway?     {remedy}")),
    }
    if context.config().is_ok() {
        lines.push(step("Need the web chat? ", "openclaw dashboard"));
    }
    lines.extend([
        step("Need to share?     ", "openclaw status --all"),
        step("Need to debug live?", "openclaw logs --follow"),
        step("Need to test channels?", "openclaw status --deep"),
    ]);
    lines
}

fn overview(status: &Value, context: &Context, extras: &Extras) -> Vec<(String, String)> {
    let events = list(status, "/queuedSystemEvents").count();
    let heartbeats: Vec<String> = list(status, "/heartbeat/agents")
        .map(|agent| format!("{} ({})", text(agent, "/every"), text(agent, "/agentId")))
        .collect();
    let rows = [
        ("Dashboard", extras.dashboard.clone()),
        ("OS", text(status, "/os/label").to_owned()),
        ("Config", config_line(context)),
        ("Tailscale", extras.tailscale.to_owned()),
        ("Channel", format!("{} ({})", text(status, "/updateChannel"), text(status, "/updateChannelSource"))),
        ("Update", format!("not checked · this is {}", env!("CARGO_PKG_VERSION"))),
        ("Gateway", gateway_line(status, extras.auth)),
        ("Gateway service", service_line(status, "/gatewayService")),
        ("Node service", service_line(status, "/nodeService")),
        ("Agents", agents_line(status)),
        ("Memory", memory_line(status)),
        ("Probes", extras.probes.to_owned()),
        ("Events", if events == 0 { "none".to_owned() } else { format!("{events} queued") }),
        ("Heartbeat", format!("does not run yet in this version · configured: {}", heartbeats.join(", "))),
        ("Sessions", sessions_line(status)),
    ];
    rows.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn service_line(status: &Value, service: &str) -> String {
    let part = |name: &str| text(status, &format!("{service}/{name}"));
    format!("{} {}", part("label"), part("loadedText"))
}

fn memory_line(status: &Value) -> String {
    if flag(status, "/memoryPlugin/enabled") {
        return "enabled".to_owned();
    }
    format!("disabled ({})", text(status, "/memoryPlugin/reason"))
}

fn config_line(context: &Context) -> String {
    let snapshot = &context.loaded.snapshot;
    let path = context.short(&snapshot.path);
    match (snapshot.exists, snapshot.valid) {
        (false, _) => format!("{path} · missing (run openclaw setup)"),
        (true, true) => format!("{path} · valid"),
        (true, false) => format!("{path} · {} problem(s)", snapshot.issues.len()),
    }
}

fn gateway_line(status: &Value, auth: Option<&str>) -> String {
    let place = format!(
        "{} · {} ({})",
        text(status, "/gateway/mode"),
        text(status, "/gateway/url"),
        text(status, "/gateway/urlSource")
    );
    if !flag(status, "/gateway/reachable") {
        return format!("{place} · unreachable ({})", text(status, "/gateway/error"));
    }
    let latency = number(status, "/gateway/connectLatencyMs");
    let mut line = format!("{place} · reachable {latency}ms");
    line.extend(auth.map(|auth| format!(" · {auth}")));
    if status.pointer("/gateway/self").is_some_and(Value::is_object) {
        let field = |name: &str| text(status, &format!("/gateway/self/{name}")).to_owned();
        line.push_str(&format!(
            " · {} ({}) app {} {}",
            field("host"),
            field("ip"),
            field("version"),
            field("platform")
        ));
    }
    line
}

fn agents_line(status: &Value) -> String {
    let count = list(status, "/agents/agents").count();
    let default = text(status, "/agents/defaultId");
    let last = list(status, "/agents/agents")
        .find(|agent| text(agent, "/id") == default)
        .and_then(|agent| agent.pointer("/lastActiveAgeMs")?.as_i64())
        .map_or("unknown".to_owned(), output::age);
    let pending = number(status, "/agents/bootstrapPendingCount");
    let sessions = number(status, "/agents/totalSessions");
    format!("{count} · {pending} bootstrapping · sessions {sessions} · default {default} active {last}")
}

fn sessions_line(status: &Value) -> String {
    let model = text(status, "/sessions/defaults/model");
    let window = output::count(number(status, "/sessions/defaults/contextTokens"));
    let stores = list(status, "/sessions/paths").count();
    let count = number(status, "/sessions/count");
    let plural = if stores == 1 { "" } else { "s" };
    format!("{count} active · default {model} ({window} ctx) · {stores} store{plural}")
}

fn security(status: &Value, context: &Context) -> Vec<String> {
    let style = context.style;
    let count = |severity: &str| number(status, &format!("/securityAudit/summary/{severity}"));
    let mut lines = vec![format!(
        "Summary: {} critical · {} warn · {} info",
        count("critical"),
        count("warn"),
        count("info")
    )];
    let mut findings: Vec<&Value> = list(status, "/securityAudit/findings").collect();
    findings.sort_by_key(|finding| match text(finding, "/severity") {
        "critical" => 0,
        "warn" => 1,
        _ => 2,
    });
    for finding in findings.into_iter().take(FINDINGS) {
        let severity = text(finding, "/severity").to_uppercase();
        let severity = if severity == "CRITICAL" { style.error(&severity) } else { style.warn(&severity) };
        lines.push(format!("  {severity} {}", text(finding, "/title")));
        lines.push(format!("    {}", text(finding, "/detail")));
        if finding.get("remediation").is_some() {
            lines.push(format!("    Fix: {}", text(finding, "/remediation")));
        }
    }
    lines
}

const COLUMNS: &[Column] = &[
    Column { name: "Key", width: 40 },
    Column { name: "Kind", width: 7 },
    Column { name: "Age", width: 10 },
    Column { name: "Model", width: 24 },
    Column { name: "Tokens", width: 0 },
];

fn sessions(status: &Value, context: &Context) -> Vec<String> {
    let rows: Vec<Vec<String>> = list(status, "/sessions/recent")
        .map(|row| {
            let age = row.pointer("/age").and_then(Value::as_i64).unwrap_or_default();
            vec![
                text(row, "/key").to_owned(),
                text(row, "/kind").to_owned(),
                output::age(age),
                text(row, "/model").to_owned(),
                tokens(row.pointer("/totalTokens").and_then(Value::as_u64), number(row, "/contextTokens")),
            ]
        })
        .collect();
    let mut lines: Vec<String> = list(status, "/sessions/problems")
        .filter_map(Value::as_str)
        .map(|problem| context.style.error(problem))
        .collect();
    match (rows.is_empty(), lines.is_empty()) {
        (false, _) => lines.extend(columns(COLUMNS, &rows)),
        (true, true) => lines.push("no sessions yet".to_owned()),
        (true, false) => {}
    }
    lines
}
