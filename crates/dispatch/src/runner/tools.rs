//! Which tools a run is offered (spec `tools.md` §8.2).

use openclaw_agent::tool_policy::{self, Candidate, PolicyStep, Sender};
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::{Config, ToolPolicy};
use openclaw_protocol::SessionKey;
use openclaw_tools::CATALOGUE;

/// The names that pass every step of the policy, in the order in which a model is offered them. Whoever reaches the
/// gateway's own protocol is the owner.
pub(super) fn allowed(
    config: &Config,
    agent: &ResolvedAgent,
    provider: &str,
    model: &str,
    session_key: &SessionKey,
    [group, sandbox]: [Option<ToolPolicy>; 2],
) -> Vec<String> {
    let tools: Vec<Candidate<'_>> = openclaw_tools::built_in().map(Candidate::from).collect();
    let mut steps = steps(config, agent, provider, model, session_key);
    steps.extend(group.map(|policy| PolicyStep { label: "channels.*.groups.*.tools", policy }));
    steps.extend(sandbox.map(|policy| PolicyStep { label: "tools.sandbox.tools", policy }));
    let selection = tool_policy::select(&CATALOGUE, &tools, Sender::Owner, &steps);
    for warning in selection.warnings {
        tracing::warn!(agent = %agent.id, %warning, "tool policy");
    }
    selection.names
}

/// The configured steps in the order of the specification. Each narrows what the ones before left.
fn steps(
    config: &Config,
    agent: &ResolvedAgent,
    provider: &str,
    model: &str,
    session_key: &SessionKey,
) -> Vec<PolicyStep> {
    let by = |policies: &'_ std::collections::BTreeMap<String, ToolPolicy>| {
        let keys: Vec<&str> = policies.keys().map(String::as_str).collect();
        policies.get(tool_policy::provider_key(&keys, provider, model)?).cloned()
    };
    let (shared, shared_by) = (&config.tools.policy, by(&config.tools.by_provider));
    let (own, own_by) = (&agent.tool_policy, by(&agent.tool_policy_by_provider));
    let profile_of = |own: Option<&ToolPolicy>, shared: Option<&ToolPolicy>| {
        own.filter(|policy| policy.profile.is_some()).or(shared).cloned()
    };
    let mut steps = Vec::new();
    steps.extend(
        profile_of(Some(own), Some(shared)).and_then(|policy| profile_step("tools.profile", &policy)),
    );
    steps.extend(
        profile_of(own_by.as_ref(), shared_by.as_ref())
            .and_then(|policy| profile_step("tools.byProvider.profile", &policy)),
    );
    steps.push(list_step("tools", shared));
    steps.extend(shared_by.iter().map(|policy| list_step("tools.byProvider", policy)));
    steps.push(list_step("agents.list[].tools", own));
    steps.extend(own_by.iter().map(|policy| list_step("agents.list[].tools.byProvider", policy)));
    if session_key.is_subagent() {
        let lists = ToolPolicy { profile: None, ..config.tools.subagents.tools.clone() };
        steps.push(tool_policy::subagent_step(lists, &CATALOGUE));
    }
    steps
}

/// A profile and what it allows besides.
fn profile_step(label: &'static str, policy: &ToolPolicy) -> Option<PolicyStep> {
    let (profile, also_allow) = (Some(policy.profile?), policy.also_allow.clone());
    Some(PolicyStep { label, policy: ToolPolicy { profile, also_allow, ..ToolPolicy::default() } })
}

/// The lists alone.
fn list_step(label: &'static str, policy: &ToolPolicy) -> PolicyStep {
    PolicyStep { label, policy: ToolPolicy { profile: None, ..policy.clone() } }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::AgentId;
    use serde_json::json;

    use super::*;

    fn check(tools: &serde_json::Value, agent_tools: &serde_json::Value, key: &str, expected: &[&str]) {
        let document = json!({"tools": tools, "agents": {"list": [{"id": "main", "tools": agent_tools}]}});
        let config: Config = serde_json::from_value(document.clone()).unwrap();
        let agent = config.agent(&AgentId::default());
        let key = SessionKey::parse(key).unwrap();
        assert_eq!(allowed(&config, &agent, "google", "g-1", &key, [None, None]), expected, "{document}");
    }

    #[test]
    fn every_step_narrows_what_the_ones_before_left() {
        const KEY: &str = "agent:main:main";
        const ALL: [&str; 6] = ["read", "edit", "write", "exec", "process", "message"];
        check(&json!({}), &json!({}), KEY, &ALL);
        check(&json!({"allow": ["read"]}), &json!({}), KEY, &["read"]);
        check(&json!({"deny": ["group:fs"]}), &json!({}), KEY, &["exec", "process", "message"]);
        check(&json!({"profile": "minimal", "alsoAllow": ["read"]}), &json!({}), KEY, &["read"]);
        check(
            &json!({"profile": "coding", "deny": ["exec"]}),
            &json!({}),
            KEY,
            &["read", "edit", "write", "process"],
        );
        check(
            &json!({"profile": "minimal"}),
            &json!({"profile": "coding"}),
            KEY,
            &["read", "edit", "write", "exec", "process"],
        );
        check(&json!({"byProvider": {"google": {"allow": ["read"]}}}), &json!({}), KEY, &["read"]);
        check(&json!({"byProvider": {"openai": {"allow": ["read"]}}}), &json!({}), KEY, &ALL);
        check(&json!({"deny": ["exec"]}), &json!({"allow": ["exec", "read"]}), KEY, &["read"]);
        check(&json!({"subagents": {"tools": {"allow": ["read"]}}}), &json!({}), KEY, &ALL);
        check(
            &json!({"subagents": {"tools": {"allow": ["read"]}}}),
            &json!({}),
            "agent:main:subagent:x",
            &["read"],
        );
    }
}
