//! List of things that the audit does not check. The number of findings does not show them, so they are named.

use openclaw_config::Config;
use openclaw_config::registry;
use openclaw_gateway::platforms;
use serde_json::Value;

use super::{AuditFinding, Severity};

/// The id of the finding.
pub(in crate::commands) const CHECK: &str = "summary.not_audited";

/// Checks of OpenClaw's audit that are not made here, and the reason.
const NOT_LOOKED_AT: &[&str] = &[
    "the programs and texts of skills and hooks (they are not scanned)",
    "plugins, browser control, webhooks, nodes and Tailscale (not in this version)",
    "definitions of system services",
];

pub(super) fn finding(config: &Config) -> AuditFinding {
    let mut parts: Vec<String> = NOT_LOOKED_AT.iter().map(|part| (*part).to_owned()).collect();
    let absent = absent_platforms(config);
    if !absent.is_empty() {
        parts.push(format!("{} (not in this version: nobody's message comes in)", absent.join(", ")));
    }
    AuditFinding::new(CHECK, Severity::Info, "Not audited", parts.join("\n"))
}

/// Platforms that the config sets up and this version does not have.
fn absent_platforms(config: &Config) -> Vec<String> {
    let platforms = platforms();
    let sections = config.document().get("channels").and_then(Value::as_object);
    let names = sections.into_iter().flatten().filter(|(name, _)| name.as_str() != "defaults");
    names
        .filter(|(name, _)| platforms.channel(name).is_none())
        .map(|(name, _)| registry::by_name(name).map_or(name.clone(), |info| info.label.to_owned()))
        .collect()
}
