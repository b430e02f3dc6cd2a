//! The checks of `security audit` that concern what this version has (spec `cli.md` §8). `status` shows their worst findings.
//!
//! Each module below looks at one thing; [`command`] prints, [`fix`] changes. Parts that are not
//! audited are a finding of their own ([`not_audited`]), so that a count of zero is one that was
//! counted.

mod channels;
pub(super) mod command;
mod files;
mod fix;
mod gateway;
mod models;
mod not_audited;
mod secrets;
mod surface;
mod tools;

use openclaw_config::clock::now_ms;
use openclaw_config::settings::GatewayMode;
use openclaw_config::{Config, ExposedState, Unmet, exposed_state, unmet_protections};
use openclaw_runtime::tool_access::{UnknownName, unknown_names};
use serde::Serialize;

pub(super) use not_audited::CHECK as NOT_AUDITED;

use crate::context::CliContext;

/// Result of an audit.
#[derive(Debug, Serialize)]
pub(super) struct AuditReport {
    ts: i64,
    pub(super) summary: SeverityCounts,
    pub(super) findings: Vec<AuditFinding>,
}

/// Number of findings by severity.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct SeverityCounts {
    pub(super) critical: usize,
    pub(super) warn: usize,
    pub(super) info: usize,
}

/// Severity of a finding, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Critical,
    Warn,
    Info,
}

impl Severity {
    /// Reads one as it is written.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "critical" => Some(Self::Critical),
            "warn" => Some(Self::Warn),
            "info" => Some(Self::Info),
            _ => None,
        }
    }
}

/// Finding of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditFinding {
    pub(super) check_id: String,
    pub(super) severity: Severity,
    pub(super) title: String,
    pub(super) detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remediation: Option<String>,
}

impl AuditFinding {
    fn new(
        check_id: impl Into<String>,
        severity: Severity,
        title: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        let (check_id, title, detail) = (check_id.into(), title.into(), detail.into());
        Self { check_id, severity, title, detail, remediation: None }
    }

    /// The same with what to do about it.
    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remediation = Some(remedy.into());
        self
    }
}

impl AuditReport {
    fn of(findings: Vec<AuditFinding>) -> Self {
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        let summary = SeverityCounts {
            critical: count(Severity::Critical),
            warn: count(Severity::Warn),
            info: count(Severity::Info),
        };
        Self { ts: now_ms(), summary, findings }
    }

    /// `Summary: 0 critical · 3 warn · 1 info`.
    pub(super) fn summary_line(&self) -> String {
        let SeverityCounts { critical, warn, info } = self.summary;
        format!("Summary: {critical} critical · {warn} warn · {info} info")
    }
}

/// Looks at everything.
pub(super) fn report(context: &CliContext, config: &Config) -> AuditReport {
    let mut findings = Vec::new();
    let is_usable = context.config().is_ok();
    if is_usable {
        findings.push(surface::summary(config));
    }
    findings.push(not_audited::finding(config));
    findings.extend(unmet_protections(config).iter().map(unmet));
    findings.extend(exposed_state(config).iter().map(exposed));
    findings.extend(unknown_names(config).iter().map(unknown));
    if is_usable {
        findings.extend(secrets::findings(context, config));
        findings.extend(channels::findings(context, config));
        findings.extend(tools::findings(config));
        findings.extend(models::findings(config));
        if config.gateway.mode != Some(GatewayMode::Remote) {
            findings.extend(gateway::findings(context, config));
        }
    } else {
        findings.push(unusable_config(context));
    }
    findings.extend(files::findings(context, config));
    AuditReport::of(findings)
}

fn unmet(unmet: &Unmet) -> AuditFinding {
    let title = format!("{} asks for a protection that is missing", unmet.key);
    AuditFinding::new("config.protection_missing", Severity::Critical, title, unmet.detail())
        .remedy(unmet.remedy())
}

fn exposed(exposed: &ExposedState) -> AuditFinding {
    let title = "A workspace holds the gateway's own state";
    AuditFinding::new("fs.workspace.holds_state", Severity::Warn, title, exposed.to_string())
        .remedy(ExposedState::REMEDY)
}

fn unknown(name: &UnknownName) -> AuditFinding {
    let title = "A tool policy names something that is no tool";
    AuditFinding::new("tools.unknown_name", Severity::Warn, title, name.to_string())
}

/// Reports a config that can't be used. Nothing else is known about it: the settings that were checked are not those in the file.
fn unusable_config(context: &CliContext) -> AuditFinding {
    let title = "The config cannot be used, so its settings were not checked";
    let detail = format!("{}.", context.unusable_config());
    AuditFinding::new("config.unusable", Severity::Critical, title, detail)
        .remedy(format!("{}.", context.config_fix()))
}

#[cfg(test)]
mod tests;
