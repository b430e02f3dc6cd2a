//! `openclaw status` for people.

use openclaw_config::Config;
use serde_json::Value;

use super::sessions::{StoredSession, tokens};
use crate::context::Context;
use crate::output::{self, Column, boxed, columns};

/// Width of the overview, in characters.
const WIDTH: usize = 119;
/// Security findings shown.
const FINDINGS: usize = 6;

/// The report as lines.
pub(super) fn lines(status: &Value, context: &Context, config: &Config) -> Vec<String> {
    let style = context.style;
    let mut lines = vec![style.accent("OpenClaw status"), String::new(), style.accent("Overview")];
    lines.extend(boxed(["Item", "Value"], &overview(status, context), WIDTH));
    lines.extend([String::new(), style.accent("Security audit")]);
    lines.extend(security(status, context));
    lines.extend([String::new(), style.accent("Sessions")]);
    lines.extend(sessions(status, config));
    lines.push(String::new());
    let next = if flag(status, "/gateway/reachable") { "openclaw logs --follow" } else { "openclaw gateway" };
    lines.push(format!("Next: {}", context.hint_command(next)));
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

fn overview(status: &Value, context: &Context) -> Vec<(String, String)> {
    let dashboard = text(status, "/gateway/url").replacen("ws", "http", 1);
    let events = list(status, "/queuedSystemEvents").count();
    let heartbeats: Vec<String> = list(status, "/heartbeat/agents")
        .map(|agent| format!("{} ({})", text(agent, "/every"), text(agent, "/agentId")))
        .collect();
    let rows = [
        ("Dashboard", format!("{dashboard}/")),
        ("OS", text(status, "/os/label").to_owned()),
        ("Config", config_line(context)),
        ("Gateway", gateway_line(status)),
        (
            "Gateway service",
            format!(
                "{} {}",
                text(status, "/gatewayService/label"),
                text(status, "/gatewayService/loadedText")
            ),
        ),
        ("Agents", agents_line(status)),
        ("Events", if events == 0 { "none".to_owned() } else { format!("{events} queued") }),
        ("Heartbeat", heartbeats.join(", ")),
        ("Sessions", sessions_line(status)),
    ];
    rows.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
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

fn gateway_line(status: &Value) -> String {
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

fn sessions(status: &Value, config: &Config) -> Vec<String> {
    let rows: Vec<Vec<String>> = list(status, "/sessions/recent")
        .map(|row| {
            let session = StoredSession {
                key: text(row, "/key").to_owned(),
                entry: row.as_object().cloned().unwrap_or_default(),
            };
            let age = row.pointer("/age").and_then(Value::as_i64).unwrap_or_default();
            vec![
                session.key.clone(),
                text(row, "/kind").to_owned(),
                output::age(age),
                text(row, "/model").to_owned(),
                tokens(&session, config),
            ]
        })
        .collect();
    if rows.is_empty() { vec!["no sessions yet".to_owned()] } else { columns(COLUMNS, &rows) }
}
