//! Summary of the attack surface in four lines.

use openclaw_config::Config;

use super::channels::{accounts, group_policies};
use super::{AuditFinding, Severity};
use openclaw_channels::access::GroupPolicy;

pub(super) fn summary(config: &Config) -> AuditFinding {
    let policies: Vec<GroupPolicy> =
        accounts(config).iter().flat_map(|account| group_policies(&account.settings)).collect();
    let count = |wanted| policies.iter().filter(|policy| **policy == wanted).count();
    let word = |is_on: bool| if is_on { "enabled" } else { "disabled" };
    let detail = format!(
        "groups: open={}, allowlist={}\ntools.elevated: {}\nhooks: {}\nbrowser control: not in this version",
        count(GroupPolicy::Open),
        count(GroupPolicy::Allowlist),
        word(config.tools.elevated.enabled != Some(false)),
        word(config.hooks.internal.is_on()),
    );
    AuditFinding::new("summary.attack_surface", Severity::Info, "Attack surface summary", detail)
}
