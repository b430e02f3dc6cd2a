//! `openclaw status` for people.

use std::path::Path;

use openclaw_agent::hooks::discover::Problem;
use openclaw_config::clock::now_ms;
use openclaw_models::quota;
use openclaw_protocol::params::status::{AgentBeat, SessionsSummary, StatusRow};
use openclaw_protocol::params::usage::UsageStatusResult;

use super::audit::{AuditFinding, AuditReport, NOT_AUDITED, Severity};
use super::channels::table::AccountAnswers;
use super::gateway_probe::GatewayItself;
use super::sessions::{kind_name, tokens};
use super::status::{Agents, Extras, GatewayStatus, Remedy, Service, Sessions, StatusDocument};
use crate::context::CliContext;
use crate::output::{self, Column, Style, boxed, columns};
use crate::service;

/// Width of the overview, in characters.
const WIDTH: usize = 119;
/// Security findings shown.
const FINDINGS: usize = 6;

/// The report as lines.
pub(super) fn lines(status: &StatusDocument, context: &CliContext, extras: &Extras) -> Vec<String> {
    let style = context.style;
    let mut lines = vec![style.accent("OpenClaw status"), String::new(), style.accent("Overview")];
    lines.extend(boxed(["Item", "Value"], &overview(status, context, extras), WIDTH));
    lines.extend([String::new(), style.accent("Security audit")]);
    lines.extend(security(&status.security_audit, context));
    if !status.sandbox_problems.is_empty() {
        lines.extend([String::new(), style.accent("Sandbox")]);
        lines.extend(status.sandbox_problems.iter().map(|problem| format!("- {}", style.error(problem))));
    }
    if !extras.hooks_not_loaded.is_empty() {
        lines.extend([String::new(), style.accent("Hooks")]);
        let told = |problem: &Problem| {
            format!("- {}", style.error(&format!("not loaded: {}: {}", problem.path.display(), problem.text)))
        };
        lines.extend(extras.hooks_not_loaded.iter().map(told));
    }
    if !status.absent_features.is_empty() {
        lines.extend([String::new(), style.accent("Not in this version")]);
        lines.extend(status.absent_features.iter().map(|absent| format!("- {}", absent.message)));
    }
    let told = AccountAnswers { status: extras.channels.as_ref(), health: extras.health.as_ref() };
    let channels = super::channels::table::table(context, &told);
    if !channels.is_empty() {
        lines.extend([String::new(), style.accent("Channels")]);
        lines.extend(columns(CHANNEL_COLUMNS, &channels));
    }
    lines.extend([String::new(), style.accent("Sessions")]);
    lines.extend(sessions(&status.sessions, style));
    lines.extend(usage(status));
    lines.extend(footer(context, extras));
    lines
}

/// The quotas, where they were asked for.
fn usage(status: &StatusDocument) -> Vec<String> {
    let report = |usage: &UsageStatusResult| quota::text::report(&usage.providers, now_ms());
    status.usage.iter().flat_map(|usage| std::iter::once(String::new()).chain(report(usage))).collect()
}

/// Footer: where to read on, and what to type next.
fn footer(context: &CliContext, extras: &Extras) -> Vec<String> {
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
        Some(Remedy::Start) => {
            lines.push(format!("  Need a gateway?     {}", service::start_command(context)));
        }
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

fn overview(status: &StatusDocument, context: &CliContext, extras: &Extras) -> Vec<(String, String)> {
    let events = status.queued_system_events.len();
    let heartbeats: Vec<String> = status
        .heartbeat
        .agents
        .iter()
        .map(|beat| format!("{} ({})", interval(beat), beat.agent_id))
        .collect();
    let service = |service: &Service| format!("{} {}", service.label, service.loaded_text);
    let rows = [
        ("Dashboard", extras.dashboard.clone()),
        ("OS", status.os.label.clone()),
        ("Config", config_line(context)),
        ("Tailscale", extras.tailscale.to_owned()),
        ("Channel", format!("{} ({})", status.update_channel, status.update_channel_source)),
        ("Update", format!("not checked · this is {}", env!("CARGO_PKG_VERSION"))),
        ("Gateway", gateway_line(&status.gateway, extras.auth)),
        ("Gateway service", service(&status.gateway_service)),
        ("Node service", service(&status.node_service)),
        ("Agents", agents_line(&status.agents)),
        ("Memory", status.memory_row.clone()),
        ("Probes", extras.probes.to_owned()),
        ("Events", if events == 0 { "none".to_owned() } else { format!("{events} queued") }),
        ("Heartbeat", heartbeats.join(", ")),
        ("Sessions", sessions_line(&status.sessions.summary, context)),
    ];
    rows.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Interval of an agent's heartbeat, for people; a beat that is set to never is off.
fn interval(beat: &AgentBeat) -> &str {
    if beat.every_ms.is_some() { &beat.every } else { "disabled" }
}

fn config_line(context: &CliContext) -> String {
    let snapshot = &context.loaded.snapshot;
    let path = context.short(&snapshot.path);
    match (snapshot.exists, snapshot.valid) {
        (false, _) => format!("{path} · missing (run {})", context.hint_command("openclaw setup")),
        (true, true) => format!("{path} · valid"),
        (true, false) => format!("{path} · {} problem(s)", snapshot.issues.len()),
    }
}

fn gateway_line(gateway: &GatewayStatus, auth: Option<&str>) -> String {
    let place = format!("{} · {} ({})", gateway.mode, gateway.url, gateway.url_source);
    if !gateway.reachable {
        return format!("{place} · unreachable ({})", gateway.error.as_deref().unwrap_or_default());
    }
    let latency = gateway.connect_latency_ms.unwrap_or_default();
    let mut line = format!("{place} · reachable {latency}ms");
    line.extend(auth.map(|auth| format!(" · {auth}")));
    if let Some(GatewayItself { host, ip, version, platform }) = &gateway.itself {
        let [host, ip, version, platform] =
            [host, ip, version, platform].map(|field| field.as_deref().unwrap_or_default());
        line.push_str(&format!(" · {host} ({ip}) app {version} {platform}"));
    }
    line
}

fn agents_line(agents: &Agents) -> String {
    let default = agents.agents.iter().find(|agent| agent.id == agents.default_id);
    let last = default.and_then(|agent| agent.last_active_age_ms).map_or("unknown".to_owned(), output::age);
    format!(
        "{} · {} bootstrapping · sessions {} · default {} active {last}",
        agents.agents.len(),
        agents.bootstrap_pending_count,
        agents.total_sessions,
        agents.default_id,
    )
}

fn sessions_line(sessions: &SessionsSummary, context: &CliContext) -> String {
    let SessionsSummary { paths, count, defaults, .. } = sessions;
    let model = defaults.model.as_deref().unwrap_or_default();
    let window = output::count(defaults.context_tokens.unwrap_or_default());
    let stores = match paths.as_slice() {
        [path] => context.short(Path::new(path)),
        paths => format!("{} stores", paths.len()),
    };
    format!("{count} active · default {model} ({window} ctx) · {stores}")
}

/// The worst findings, what was not looked at, and where all of it stands.
fn security(report: &AuditReport, context: &CliContext) -> Vec<String> {
    let style = context.style;
    let mut lines = vec![report.summary_line()];
    let mut findings: Vec<(String, &AuditFinding)> = report
        .findings
        .iter()
        .filter_map(|finding| match finding.severity {
            Severity::Critical => Some((style.error("CRITICAL"), finding)),
            Severity::Warn => Some((style.warn("WARN"), finding)),
            Severity::Info => None,
        })
        .collect();
    findings.sort_by_key(|(_, finding)| finding.severity);
    let more = findings.len().saturating_sub(FINDINGS);
    for (severity, finding) in findings.into_iter().take(FINDINGS) {
        lines.push(format!("  {severity} {}", finding.title));
        lines.push(format!("    {}", finding.detail));
        lines.extend(finding.remediation.iter().map(|fix| format!("    Fix: {fix}")));
    }
    if more > 0 {
        lines.push(format!("  … and {more} more"));
    }
    let not_audited = report.findings.iter().find(|finding| finding.check_id == NOT_AUDITED);
    lines.extend(not_audited.map(|finding| format!("Not audited: {}", finding.detail.replace('\n', "; "))));
    let command = |command: &str| context.hint_command(command);
    lines.push(format!("Full report: {}", command("openclaw security audit")));
    lines.push(format!("Deep probe: {}", command("openclaw security audit --deep")));
    lines
}

const CHANNEL_COLUMNS: &[Column] = &[("Channel", 12), ("Enabled", 7), ("State", 7), ("Detail", 0)];

const COLUMNS: &[Column] = &[("Key", 40), ("Kind", 7), ("Age", 10), ("Model", 24), ("Tokens", 0)];

fn sessions(sessions: &Sessions, style: Style) -> Vec<String> {
    let cells = |row: &StatusRow| {
        vec![
            row.key.clone(),
            kind_name(row.kind).to_owned(),
            output::age(row.age.unwrap_or_default()),
            row.model.clone().unwrap_or_default(),
            tokens(Some(row.total_tokens), row.context_tokens.unwrap_or_default()),
        ]
    };
    let rows: Vec<Vec<String>> = sessions.summary.recent.iter().map(cells).collect();
    let mut lines: Vec<String> = sessions.problems.iter().map(|problem| style.error(problem)).collect();
    match (rows.is_empty(), lines.is_empty()) {
        (false, _) => lines.extend(columns(COLUMNS, &rows)),
        (true, true) => lines.push("no sessions yet".to_owned()),
        (true, false) => {}
    }
    lines
}
