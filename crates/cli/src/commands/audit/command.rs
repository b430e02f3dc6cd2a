//! `openclaw security audit` (spec `cli.md` §8).

use openclaw_config::Config;
use serde_json::{Value, json};

use super::fix::Fixed;
use super::{AuditFinding, AuditReport, Severity, fix, report};
use crate::args::SecurityAuditArgs;
use crate::client::{DEFAULT_TIMEOUT, GatewayTarget, TargetFlags};
use crate::commands::gateway_probe::{ProbeDepth, Probed, ask};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult, ERROR};
use crate::output;

pub(crate) fn run(args: &SecurityAuditArgs, context: &CliContext) -> CommandResult {
    let fail_on = args.fail_on.as_deref().map(|text| {
        Severity::parse(text).ok_or_else(|| {
            CommandFailure::usage(format!(
                "--fail-on must be critical, warn or info, not \"{}\"",
                output::one_line(text)
            ))
        })
    });
    let fail_on = fail_on.transpose()?;
    openclaw_gateway::keep_files_private();
    let fixed = args.fix.then(|| fix::run(context, &context.config_or_default()));
    // With the files as they are now.
    let context = &context.reread();
    let config = context.config_or_default();
    let mut report = report(context, &config);
    let deep = if args.deep { Some(probe(context, &config)?) } else { None };
    if let Some((_, probed)) = &deep {
        let failed = probed.error.as_deref().filter(|_| !probed.ok).map(probe_failed);
        report = AuditReport::of(report.findings.into_iter().chain(failed).collect());
    }
    if args.json {
        output::json(&document(&report, fixed.as_ref(), deep.as_ref()));
    } else {
        lines(&report, fixed.as_ref(), context).iter().for_each(|line| output::row(line));
    }
    let is_bad = |finding: &AuditFinding| fail_on.is_some_and(|least| finding.severity <= least);
    let has_failed = fixed.is_some_and(|fixed| !fixed.ok);
    Ok(if has_failed || report.findings.iter().any(is_bad) { ERROR } else { 0 })
}

/// Asks the gateway, and says which one that was.
fn probe(context: &CliContext, config: &Config) -> Result<(String, Probed), CommandFailure> {
    let target = GatewayTarget::of(config, context.env(), &TargetFlags::default())?;
    let probed = ask(context, &target, DEFAULT_TIMEOUT, ProbeDepth::Nothing)?;
    Ok((target.url, probed))
}

fn probe_failed(error: &str) -> AuditFinding {
    AuditFinding::new("gateway.probe_failed", Severity::Warn, "Gateway probe failed (deep)", error)
        .remedy("Start the gateway, or look at `openclaw gateway status`.")
}

fn document(report: &AuditReport, fixed: Option<&Fixed>, deep: Option<&(String, Probed)>) -> Value {
    let mut document = json!(report);
    if let (Some((url, probed)), Some(map)) = (deep, document.as_object_mut()) {
        let gateway = json!({"attempted": true, "url": url, "ok": probed.ok, "error": probed.error, "close": probed.close});
        map.insert("deep".to_owned(), json!({ "gateway": gateway }));
    }
    match fixed {
        Some(fixed) => json!({"fix": fixed, "report": document}),
        None => document,
    }
}

fn lines(report: &AuditReport, fixed: Option<&Fixed>, context: &CliContext) -> Vec<String> {
    let style = context.style;
    let mut lines = vec![style.accent("OpenClaw security audit"), report.summary_line()];
    lines.push(
        style.muted(&format!("Run deeper: {}", context.hint_command("openclaw security audit --deep"))),
    );
    lines.extend(fixed.into_iter().flat_map(fixed_lines));
    for (severity, title) in
        [(Severity::Critical, "CRITICAL"), (Severity::Warn, "WARN"), (Severity::Info, "INFO")]
    {
        let mut found = report.findings.iter().filter(|finding| finding.severity == severity).peekable();
        if found.peek().is_none() {
            continue;
        }
        let title = match severity {
            Severity::Critical => style.error(title),
            Severity::Warn => style.warn(title),
            Severity::Info => style.muted(title),
        };
        lines.extend([String::new(), title]);
        for AuditFinding { check_id, title, detail, remediation, .. } in found {
            lines.push(format!("{check_id} {title}"));
            lines.extend(detail.lines().map(|line| format!("  {line}")));
            lines.extend(remediation.iter().map(|fix| format!("  Fix: {fix}")));
        }
    }
    lines
}

fn fixed_lines(fixed: &Fixed) -> Vec<String> {
    let Fixed { changes, actions, errors, .. } = fixed;
    let mut lines = vec![String::new(), "FIX".to_owned()];
    lines.extend(changes.iter().cloned());
    let done = actions.iter().filter(|action| action.ok);
    lines.extend(done.map(|action| format!("{} {} {}", action.kind, action.mode, action.path)));
    lines.extend(errors.iter().map(|error| format!("not done: {error}")));
    if lines.len() == 2 {
        lines.push("nothing to change".to_owned());
    }
    lines
}
