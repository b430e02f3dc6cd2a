//! `tools.*`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::WebTools;

/// `tools`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Tools {
    /// The policy every agent starts from.
    #[serde(flatten)]
    pub policy: ToolPolicy,
    /// Policies by provider or `provider/model`.
    pub by_provider: BTreeMap<String, ToolPolicy>,
    /// Running commands.
    pub exec: Exec,
    /// Commands outside the sandbox.
    pub elevated: Elevated,
    /// Messages between agents.
    pub agent_to_agent: ToolsAgentToAgent,
    /// Policy of sub-agents.
    pub subagents: ToolsScope,
    /// Policy in a sandbox.
    pub sandbox: ToolsScope,
    /// Targets that the `message` tool may send to.
    pub message: ToolsMessage,
    /// Searching the web and fetching pages.
    pub web: WebTools,
    /// Runs that go in circles.
    pub loop_guard: LoopGuard,
}

/// `tools.loopGuard` (ours): limits for a run that makes the same call over and over. Counts are of
/// identical calls in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LoopGuard {
    /// Number of repetitions from which each result tells the model that it repeats itself.
    pub warn_after: NonZeroU32,
    /// Number of repetitions after which the run is stopped.
    pub stop_after: NonZeroU32,
}

impl Default for LoopGuard {
    fn default() -> Self {
        let warn_after = NonZeroU32::MIN.saturating_add(9);
        let stop_after = NonZeroU32::MIN.saturating_add(29);
        Self { warn_after, stop_after }
    }
}

/// `tools.message`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolsMessage {
    /// True if a run may send anywhere, whatever conversation it answers.
    pub allow_cross_context_send: bool,
    /// Limits on sending elsewhere than to the conversation that a run answers.
    pub cross_context: CrossContext,
    /// Sending to several at once.
    pub broadcast: Broadcast,
}

/// `tools.message.crossContext`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CrossContext {
    /// Allows other conversations of the same platform.
    pub allow_within_provider: bool,
    /// Allows other platforms.
    pub allow_across_providers: bool,
    /// Marker that tells the reader where a message comes from.
    pub marker: Marker,
}

impl Default for CrossContext {
    fn default() -> Self {
        Self { allow_within_provider: true, allow_across_providers: false, marker: Marker::default() }
    }
}

/// `tools.message.crossContext.marker`. `{channel}` stands for the conversation that the message comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Marker {
    /// True if messages are marked.
    pub enabled: bool,
    /// Text before the message.
    pub prefix: String,
    /// Text after the message.
    pub suffix: String,
}

impl Default for Marker {
    fn default() -> Self {
        Self { enabled: true, prefix: "[from {channel}] ".to_owned(), suffix: String::new() }
    }
}

/// `tools.message.broadcast`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Broadcast {
    /// True if the tool may broadcast.
    pub enabled: bool,
}

impl Default for Broadcast {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// `{tools: policy}`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ToolsScope {
    /// The policy.
    pub tools: ToolPolicy,
}

/// `agents.list[].tools`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentTools {
    /// The agent's own policy.
    #[serde(flatten)]
    pub policy: ToolPolicy,
    /// Policies by provider or `provider/model`.
    pub by_provider: BTreeMap<String, ToolPolicy>,
    /// Running commands.
    pub exec: Exec,
    /// Commands outside the sandbox.
    pub elevated: Elevated,
    /// The agent's policy in a sandbox.
    pub sandbox: ToolsScope,
}

/// Tools that a run may use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolPolicy {
    /// Base set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ToolProfile>,
    /// Only these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Tools allowed in addition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub also_allow: Option<Vec<String>>,
    /// Never these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<String>>,
}

/// `tools.profile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolProfile {
    /// Almost nothing.
    Minimal,
    /// Files, commands, sessions.
    Coding,
    /// Messages and sessions.
    Messaging,
    /// All tools.
    Full,
}

impl ToolProfile {
    /// The word for it in a config.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Coding => "coding",
            Self::Messaging => "messaging",
            Self::Full => "full",
        }
    }
}

/// `tools.exec`. Absent fields take the default given beside them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Exec {
    /// Place where commands run.
    pub host: Option<ExecHost>,
    /// Commands that may run.
    pub security: Option<ExecSecurity>,
    /// Cases in which a person is asked.
    pub ask: Option<ExecAsk>,
    /// Directories put before `PATH`.
    pub path_prepend: Option<Vec<String>>,
    /// Seconds until a command is stopped; default 1,800.
    pub timeout_sec: Option<u64>,
    /// Variables with credentials of the gateway that commands get all the same (ours).
    pub pass_env: Option<Vec<String>>,
    /// Programs that may run unasked where they only work on what is piped into them.
    pub safe_bins: Option<Vec<String>>,
    /// Time in milliseconds after which people are told that an approved command still runs;
    /// default 10,000.
    pub approval_running_notice_ms: Option<u64>,
    /// Milliseconds after which a command goes to the background; default 10,000.
    pub background_ms: Option<u64>,
    /// Milliseconds for which a command in the background that has ended is remembered; default 30 minutes.
    pub cleanup_ms: Option<u64>,
    /// True if the agent is told when a command in the background ends; default yes.
    pub notify_on_exit: Option<bool>,
    /// Models that are offered the tool `apply_patch`.
    pub apply_patch: ApplyPatch,
}

/// `tools.exec.applyPatch`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplyPatch {
    /// True if it is offered at all; default no.
    pub enabled: Option<bool>,
    /// Only these models, as `model` or `provider/model`; empty means every model that can use it.
    pub allow_models: Option<Vec<String>>,
}

impl Exec {
    /// Returns these settings with gaps filled from `base`.
    pub fn over(&self, base: &Self) -> Self {
        let own = self.clone();
        let base = base.clone();
        Self {
            host: own.host.or(base.host),
            security: own.security.or(base.security),
            ask: own.ask.or(base.ask),
            path_prepend: own.path_prepend.or(base.path_prepend),
            timeout_sec: own.timeout_sec.or(base.timeout_sec),
            pass_env: own.pass_env.or(base.pass_env),
            safe_bins: own.safe_bins.or(base.safe_bins),
            approval_running_notice_ms: own.approval_running_notice_ms.or(base.approval_running_notice_ms),
            background_ms: own.background_ms.or(base.background_ms),
            cleanup_ms: own.cleanup_ms.or(base.cleanup_ms),
            notify_on_exit: own.notify_on_exit.or(base.notify_on_exit),
            apply_patch: ApplyPatch {
                enabled: own.apply_patch.enabled.or(base.apply_patch.enabled),
                allow_models: own.apply_patch.allow_models.or(base.apply_patch.allow_models),
            },
        }
    }
}

/// Decision if a command may run, from the settings alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecGate {
    /// Any command, and nobody is asked.
    Open,
    /// No command may run.
    Denied,
    /// Some only after a person said yes, or when they are on a list.
    NeedsApproval,
    /// Commands run in a sandbox only.
    NeedsSandbox,
    /// Commands run on a node only; none can be used yet.
    NeedsNode,
}

impl ExecGate {
    /// Decides from the settings. Without a host, commands run here, as in OpenClaw without an
    /// active sandbox; rules that are set hold there as with the host `gateway`.
    pub fn of(host: Option<ExecHost>, security: Option<ExecSecurity>, ask: Option<ExecAsk>) -> Self {
        match (host, security, ask) {
            (Some(ExecHost::Sandbox), _, _) => return Self::NeedsSandbox,
            (Some(ExecHost::Node), _, _) => return Self::NeedsNode,
            (None, None, None) => return Self::Open,
            (Some(ExecHost::Gateway), _, _) | (None, _, _) => {}
        }
        match (security.unwrap_or(ExecSecurity::Allowlist), ask.unwrap_or(ExecAsk::OnMiss)) {
            (ExecSecurity::Deny, _) => Self::Denied,
            (ExecSecurity::Full, ExecAsk::Off | ExecAsk::OnMiss) => Self::Open,
            (ExecSecurity::Full, ExecAsk::Always) | (ExecSecurity::Allowlist, _) => Self::NeedsApproval,
        }
    }
}

impl Exec {
    /// Decision if a command may run.
    pub fn gate(&self) -> ExecGate {
        ExecGate::of(self.host, self.security, self.ask)
    }

    /// True if commands that are not elevated are held to `exec-approvals.json`: on the host
    /// `gateway`, and without a host where a rule is set.
    pub fn heeds_approvals_file(&self) -> bool {
        match self.host {
            Some(ExecHost::Gateway) => true,
            Some(ExecHost::Sandbox | ExecHost::Node) => false,
            None => self.security.is_some() || self.ask.is_some(),
        }
    }

    /// The rules that are set, for people: `host=gateway ask=always`.
    pub fn rules(&self) -> String {
        let rules = [
            self.host.map(|host| format!("host={}", host.as_str())),
            self.security.map(|security| format!("security={}", security.as_str())),
            self.ask.map(|ask| format!("ask={}", ask.as_str())),
        ];
        rules.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// `tools.exec.host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecHost {
    /// Runs in a container.
    Sandbox,
    /// Runs on the gateway's host.
    Gateway,
    /// Runs on a node.
    Node,
}

impl ExecHost {
    /// The word used in the config.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Gateway => "gateway",
            Self::Node => "node",
        }
    }
}

/// `tools.exec.security`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecSecurity {
    /// No command may run.
    Deny,
    /// Approved ones.
    Allowlist,
    /// Any.
    Full,
}

impl ExecSecurity {
    /// The word used in the config.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allowlist => "allowlist",
            Self::Full => "full",
        }
    }
}

/// `tools.exec.ask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExecAsk {
    /// Never.
    Off,
    /// Asks about commands that are not on the list.
    OnMiss,
    /// Asks about every command.
    Always,
}

impl ExecAsk {
    /// The word used in the config.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::OnMiss => "on-miss",
            Self::Always => "always",
        }
    }
}

/// `tools.elevated`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Elevated {
    /// Default true.
    pub enabled: Option<bool>,
    /// Channel to the senders that may use it; ids may be written as numbers.
    pub allow_from: BTreeMap<String, Vec<TextOrNumber>>,
}

/// An id or a size that may be written as a number.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum TextOrNumber {
    /// Text.
    Text(String),
    /// A number.
    Number(serde_json::Number),
}

impl std::fmt::Display for TextOrNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text.trim()),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// `tools.agentToAgent`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ToolsAgentToAgent {
    /// Default false.
    pub enabled: bool,
    /// Agents that may talk to each other; `*` is any.
    pub allow: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_without_a_host_hold_as_on_the_gateway() {
        for (rules, gate) in [
            (json!({}), ExecGate::Open),
            (json!({"ask": "off"}), ExecGate::NeedsApproval),
            (json!({"ask": "on-miss"}), ExecGate::NeedsApproval),
            (json!({"security": "allowlist"}), ExecGate::NeedsApproval),
            (json!({"security": "deny", "ask": "off"}), ExecGate::Denied),
            (json!({"security": "full"}), ExecGate::Open),
            (json!({"security": "full", "ask": "always"}), ExecGate::NeedsApproval),
        ] {
            let exec = |rules| serde_json::from_value::<Exec>(rules).unwrap();
            let mut on_gateway = rules.clone();
            on_gateway["host"] = json!("gateway");
            let bare = exec(rules.clone());
            assert_eq!(bare.gate(), gate, "{rules}");
            assert_eq!(bare.heeds_approvals_file(), rules != json!({}), "{rules}");
            if rules != json!({}) {
                assert_eq!(exec(on_gateway).gate(), gate, "{rules}");
            }
        }
    }

    #[test]
    fn an_agent_changes_single_settings_of_apply_patch() {
        let exec = |value| serde_json::from_value::<Exec>(value).unwrap();
        let shared = exec(json!({"applyPatch": {"enabled": true, "allowModels": ["gpt-5.2"]}}));
        for (own, enabled, models) in [
            (json!({}), Some(true), &["gpt-5.2"][..]),
            (json!({"applyPatch": {"enabled": false}}), Some(false), &["gpt-5.2"]),
            (json!({"applyPatch": {"allowModels": []}}), Some(true), &[]),
        ] {
            let merged = exec(own).over(&shared).apply_patch;
            let models = models.iter().map(|model| (*model).to_owned()).collect();
            assert_eq!(merged, ApplyPatch { enabled, allow_models: Some(models) });
        }
        assert_eq!(exec(json!({})).over(&Exec::default()).apply_patch, ApplyPatch::default());
    }
}
