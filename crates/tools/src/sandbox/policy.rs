//! Tool policy of runs in a sandbox (spec `tools.md` §8.2).

use openclaw_config::registry;
use openclaw_config::settings::{Config, ToolPolicy};
use openclaw_protocol::AgentId;

/// Origin of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The agent's own.
    Agent,
    /// The shared one.
    Global,
    /// Default list, because none is configured.
    Default,
}

impl Source {
    /// The word that is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Global => "global",
            Self::Default => "default",
        }
    }
}

/// The lists, and where they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// Tools that are offered; empty allows all.
    pub allow: Vec<String>,
    /// Tools that are not offered, whatever `allow` says.
    pub deny: Vec<String>,
    /// Of `allow`.
    pub allow_source: Source,
    /// Of `deny`.
    pub deny_source: Source,
}

const ALLOW: &[&str] = &[
    "exec",
    "process",
    "read",
    "write",
    "edit",
    "apply_patch",
    IMAGE,
    "sessions_list",
    "sessions_history",
    "sessions_send",
    "sessions_spawn",
    "session_status",
];

/// Tools that reach out of the sandbox.
const DENY: &[&str] = &["browser", "canvas", "nodes", "cron", "gateway"];

const IMAGE: &str = "image";

/// Returns true for a name that the lists of sandboxes deny where nothing is configured: files copy them.
pub fn is_denied_by_default(name: &str) -> bool {
    denied().any(|denied| denied == name)
}

impl SandboxPolicy {
    /// Returns the policy of an agent: its own lists replace the shared ones, and those the
    /// default, separately for `allow` and `deny`.
    pub fn of(config: &Config, agent: &AgentId) -> Self {
        let own = config.agent_entry(agent).map(|entry| entry.tools.sandbox.tools.clone());
        Self::chosen(&own.unwrap_or_default(), &config.tools.sandbox.tools)
    }

    fn chosen(own: &ToolPolicy, shared: &ToolPolicy) -> Self {
        let (mut allow, allow_source) =
            list(own.allow.as_ref(), shared.allow.as_ref(), ALLOW.iter().copied());
        let (deny, deny_source) = list(own.deny.as_ref(), shared.deny.as_ref(), denied());
        let names =
            |list: &[String], name: &str| list.iter().any(|each| each.trim().eq_ignore_ascii_case(name));
        if !allow.is_empty() {
            allow.extend(own.also_allow.iter().chain(&shared.also_allow).flatten().cloned());
            if !names(&allow, IMAGE) && !names(&deny, IMAGE) {
                allow.push(IMAGE.to_owned());
            }
        }
        Self { allow, deny, allow_source, deny_source }
    }

    /// Returns the lists as a step of the tool policy.
    pub fn lists(&self) -> ToolPolicy {
        ToolPolicy { allow: Some(self.allow.clone()), deny: Some(self.deny.clone()), ..ToolPolicy::default() }
    }
}

/// Tools that the default list denies: those that reach out, and those named after chat platforms.
fn denied() -> impl Iterator<Item = &'static str> {
    let platforms = registry::core_channels().filter(|channel| channel.deliverable);
    DENY.iter().copied().chain(platforms.map(|channel| channel.id))
}

fn list(
    own: Option<&Vec<String>>,
    shared: Option<&Vec<String>>,
    default: impl Iterator<Item = &'static str>,
) -> (Vec<String>, Source) {
    match (own, shared) {
        (Some(own), _) => (own.clone(), Source::Agent),
        (None, Some(shared)) => (shared.clone(), Source::Global),
        (None, None) => (default.map(str::to_owned).collect(), Source::Default),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(own: Value, shared: Value, allow: &str, deny: &str, sources: (Source, Source)) {
        let policy = |value: Value| serde_json::from_value::<ToolPolicy>(value).unwrap();
        let found = SandboxPolicy::chosen(&policy(own), &policy(shared));
        assert_eq!((found.allow.join(" ").as_str(), found.deny.join(" ").as_str()), (allow, deny));
        assert_eq!((found.allow_source, found.deny_source), sources);
    }

    #[test]
    fn own_lists_replace_shared_ones_and_those_the_default() {
        use Source::{Agent, Default, Global};
        let (allow, deny) = (&ALLOW.join(" "), &denied().collect::<Vec<_>>().join(" "));
        check(json!({}), json!({}), allow, deny, (Default, Default));
        check(json!({}), json!({"deny": ["exec"]}), allow, "exec", (Default, Global));
        check(json!({}), json!({"allow": ["read"]}), "read image", deny, (Global, Default));
        check(json!({"allow": ["exec"]}), json!({"allow": ["read"]}), "exec image", deny, (Agent, Default));
        check(json!({"deny": []}), json!({"deny": ["exec"]}), allow, "", (Default, Agent));
        check(json!({}), json!({"allow": ["read"], "deny": ["Image"]}), "read", "Image", (Global, Global));
        check(json!({"allow": ["image"]}), json!({}), "image", deny, (Agent, Default));
        check(json!({"allow": []}), json!({"allow": ["read"]}), "", deny, (Agent, Default));
        check(
            json!({"alsoAllow": ["web_fetch"]}),
            json!({}),
            &format!("{allow} web_fetch"),
            deny,
            (Default, Default),
        );
    }
}
