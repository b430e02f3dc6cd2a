//! Which tools a run is offered (spec `tools.md` §8): a pure function over names. Every step filters what the ones before
//! it left; a later step never brings a tool back.

use std::collections::BTreeSet;

/// Allow and deny lists as configured: names, globs with `*`, `group:…`, plugin ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// Nothing configured allows everything.
    pub allow: Option<Vec<String>>,
    /// Adds to `allow`.
    pub also_allow: Vec<String>,
    /// Wins over `allow`.
    pub deny: Vec<String>,
}

/// One step of the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyStep {
    /// The config path, for warnings.
    pub label: String,
    /// A base profile; `None` restricts nothing.
    pub profile: Option<Profile>,
    /// The lists.
    pub policy: ToolPolicy,
}

/// `tools.profile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The status card only.
    Minimal,
    /// Files, commands, sessions, memory, images.
    Coding,
    /// Messages and the sessions they go to.
    Messaging,
    /// Everything.
    Full,
}

impl Profile {
    /// The profile of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name.trim() {
            "minimal" => Some(Self::Minimal),
            "coding" => Some(Self::Coding),
            "messaging" => Some(Self::Messaging),
            "full" => Some(Self::Full),
            _ => None,
        }
    }

    fn allow(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Minimal => Some(&["session_status"]),
            Self::Coding => Some(&["group:fs", "group:runtime", "group:sessions", "group:memory", "image"]),
            Self::Messaging => Some(&[
                "group:messaging",
                "sessions_list",
                "sessions_history",
                "sessions_send",
                "session_status",
            ]),
            Self::Full => None,
        }
    }
}

/// A tool that could be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a str,
    /// The plugin it comes from; `None` for tools of our own.
    pub plugin: Option<&'a str>,
    /// Whether only the owner may use it.
    pub owner_only: bool,
}

impl<'a> Candidate<'a> {
    /// A tool of our own that everyone may use.
    pub fn core(name: &'a str) -> Self {
        Self { name, plugin: None, owner_only: false }
    }
}

/// Who the run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// The owner, or someone trusted as such.
    Owner,
    /// Anyone else.
    Other,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// The tools left, in the order given.
    pub names: Vec<String>,
    /// What to tell the owner about the configuration.
    pub warnings: Vec<String>,
}

/// The groups (spec §8.1).
const GROUPS: &[(&str, &[&str])] = &[
    ("group:fs", &["read", "write", "edit", "apply_patch"]),
    ("group:runtime", &["exec", "process"]),
    ("group:web", &["web_search", "web_fetch"]),
    ("group:memory", &["memory_search", "memory_get"]),
    (
        "group:sessions",
        &["sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "session_status"],
    ),
    ("group:ui", &["browser", "canvas"]),
    ("group:automation", &["cron", "gateway"]),
    ("group:messaging", &["message"]),
    ("group:nodes", &["nodes"]),
    (
        "group:openclaw",
        &[
            "browser",
            "canvas",
            "nodes",
            "cron",
            "message",
            "gateway",
            "agents_list",
            "sessions_list",
            "sessions_history",
            "sessions_send",
            "sessions_spawn",
            "session_status",
            "memory_search",
            "memory_get",
            "web_search",
            "web_fetch",
            "image",
        ],
    ),
];
const PLUGINS: &str = "group:plugins";

/// Tools a sub-agent never has (spec §8.2).
const SUBAGENT_DENY: &[&str] = &[
    "sessions_list",
    "sessions_history",
    "sessions_send",
    "sessions_spawn",
    "gateway",
    "agents_list",
    "whatsapp_login",
    "session_status",
    "cron",
    "memory_search",
    "memory_get",
];

/// The last step of a sub-agent's chain: `tools.subagents.tools` and what no sub-agent has.
pub fn subagent_step(configured: ToolPolicy) -> PolicyStep {
    let mut policy = configured;
    policy.deny.extend(SUBAGENT_DENY.iter().map(|name| (*name).to_owned()));
    PolicyStep { label: "tools.subagents.tools".to_owned(), profile: None, policy }
}

/// A tool's name as policies and events spell it.
pub fn canonical_name(name: &str) -> String {
    let name = name.trim().to_lowercase();
    match name.as_str() {
        "bash" => "exec".to_owned(),
        "apply-patch" => "apply_patch".to_owned(),
        _ => name,
    }
}

/// Runs the chain. `steps` come in the order of spec §8.2: profile, provider profile, global, global by provider, agent,
/// agent by provider, group, sandbox, sub-agent; the caller leaves out what is not configured.
pub fn select(tools: &[Candidate<'_>], sender: Sender, steps: &[PolicyStep]) -> Selection {
    let mut left: Vec<Candidate<'_>> =
        tools.iter().filter(|tool| sender == Sender::Owner || !tool.owner_only).copied().collect();
    let mut warnings = Vec::new();
    for step in steps {
        let rules = Rules::of(step, tools, &mut warnings);
        left.retain(|tool| rules.admits(&canonical_name(tool.name)));
    }
    Selection { names: left.into_iter().map(|tool| tool.name.to_owned()).collect(), warnings }
}

/// The key of `tools.byProvider` that applies: the full reference before the provider (spec §8.2 step 4).
pub fn provider_key<'a>(keys: &[&'a str], provider: &str, model: &str) -> Option<&'a str> {
    let full = format!("{provider}/{model}");
    let is = |wanted: &str| keys.iter().copied().find(|key| key.trim().eq_ignore_ascii_case(wanted));
    is(&full).or_else(|| is(provider))
}

/// A step's lists with groups expanded.
struct Rules {
    profile: Option<Vec<String>>,
    allow: Option<Vec<String>>,
    deny: Vec<String>,
}

impl Rules {
    fn of(step: &PolicyStep, tools: &[Candidate<'_>], warnings: &mut Vec<String>) -> Self {
        let policy = &step.policy;
        let extra = expand(&policy.also_allow, tools);
        let profile = step.profile.and_then(Profile::allow).map(|names| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            [expand(&names, tools), extra.clone()].concat()
        });
        let configured = policy.allow.as_deref().filter(|allow| !allow.is_empty());
        let allow =
            configured.and_then(|allow| known_allow(&step.label, allow, tools, warnings)).map(|allow| {
                let mut names = expand(&allow, tools);
                names.extend(extra);
                names
            });
        Self { profile, allow, deny: expand(&policy.deny, tools) }
    }

    fn admits(&self, name: &str) -> bool {
        if self.deny.iter().any(|pattern| matches(pattern, name)) {
            return false;
        }
        let within = |list: &Option<Vec<String>>| list.as_ref().is_none_or(|list| allowed(list, name));
        within(&self.profile) && within(&self.allow)
    }
}

/// The allow list, or nothing when it names no tool of ours: such a list would take all core tools away, which nobody who
/// wants a plugin's tool means.
fn known_allow(
    label: &str,
    allow: &[String],
    tools: &[Candidate<'_>],
    warnings: &mut Vec<String>,
) -> Option<Vec<String>> {
    let core = |entry: &String| {
        expand(std::slice::from_ref(entry), &[]).iter().any(|pattern| {
            CORE_NAMES.iter().any(|name| matches(pattern, name))
                || tools
                    .iter()
                    .any(|tool| tool.plugin.is_none() && matches(pattern, &canonical_name(tool.name)))
        })
    };
    if allow.iter().any(core) {
        return Some(allow.to_vec());
    }
    let unknown: Vec<&str> = allow.iter().map(|entry| entry.trim()).collect();
    warnings.push(format!("tools: {label} allowlist contains unknown entries ({}).", unknown.join(", ")));
    None
}

/// Tools of OpenClaw, offered or not: an allow list that names one restricts.
const CORE_NAMES: &[&str] = &[
    "read",
    "write",
    "edit",
    "apply_patch",
    "grep",
    "find",
    "ls",
    "exec",
    "process",
    "web_search",
    "web_fetch",
    "browser",
    "canvas",
    "nodes",
    "cron",
    "message",
    "gateway",
    "agents_list",
    "sessions_list",
    "sessions_history",
    "sessions_send",
    "sessions_spawn",
    "session_status",
    "image",
    "memory_search",
    "memory_get",
    "tts",
    "whatsapp_login",
];

fn expand(entries: &[String], tools: &[Candidate<'_>]) -> Vec<String> {
    let mut out = BTreeSet::new();
    for entry in entries {
        let name = canonical_name(entry);
        if let Some((_, members)) = GROUPS.iter().find(|(group, _)| *group == name) {
            out.extend(members.iter().map(|member| (*member).to_owned()));
            continue;
        }
        let of_plugin = |tool: &&Candidate<'_>| {
            tool.plugin.is_some_and(|plugin| name == PLUGINS || plugin.eq_ignore_ascii_case(&name))
        };
        let members: Vec<String> =
            tools.iter().filter(of_plugin).map(|tool| canonical_name(tool.name)).collect();
        if members.is_empty() {
            out.insert(name);
        } else {
            out.extend(members);
        }
    }
    out.into_iter().collect()
}

fn allowed(list: &[String], name: &str) -> bool {
    // Whoever may run any command may also patch.
    list.iter().any(|pattern| matches(pattern, name) || (name == "apply_patch" && matches(pattern, "exec")))
}

/// `*` stands for any run of characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut tail) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = tail.split_once(part) else { return false };
        tail = after;
    }
    tail.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &[&str] = &[
        "read",
        "write",
        "edit",
        "apply_patch",
        "exec",
        "process",
        "web_search",
        "web_fetch",
        "browser",
        "session_status",
        "sessions_spawn",
        "memory_get",
    ];

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn step(profile: Option<Profile>, allow: Option<&[&str]>, also: &[&str], deny: &[&str]) -> PolicyStep {
        PolicyStep {
            label: "tools.allow".into(),
            profile,
            policy: ToolPolicy { allow: allow.map(list), also_allow: list(also), deny: list(deny) },
        }
    }

    fn names(steps: &[PolicyStep]) -> Vec<String> {
        let tools: Vec<Candidate<'_>> = TOOLS.iter().map(|name| Candidate::core(name)).collect();
        select(&tools, Sender::Owner, steps).names
    }

    /// Vectors of spec `tools.md` §8.2.
    #[test]
    fn the_chain_decides_as_the_reference_does() {
        let rows: [(Vec<PolicyStep>, &[&str], &[&str]); 11] = [
            (vec![step(None, Some(&["read"]), &[], &[])], &["read"], &["exec"]),
            (vec![step(None, Some(&["exec"]), &[], &[])], &["apply_patch", "exec"], &["read"]),
            (vec![step(None, None, &[], &["group:fs"])], &["exec"], &["read", "apply_patch"]),
            (
                vec![step(Some(Profile::Minimal), None, &["web_fetch"], &[])],
                &["web_fetch", "session_status"],
                &["read"],
            ),
            (
                vec![step(Some(Profile::Coding), None, &[], &[]), step(None, None, &[], &["exec"])],
                &["read", "memory_get"],
                &["exec", "browser"],
            ),
            (vec![step(None, Some(&["*"]), &[], &["browser"])], &["read"], &["browser"]),
            (vec![step(None, Some(&["web_*"]), &[], &[])], &["web_fetch"], &["read"]),
            (
                vec![step(None, None, &[], &["exec"]), step(None, Some(&["exec"]), &[], &[])],
                &[],
                &["exec", "read"],
            ),
            (vec![step(None, Some(&[]), &[], &[])], &["read", "exec"], &[]),
            (vec![step(None, None, &["my_tool"], &[])], &["read", "exec"], &[]),
            (
                vec![subagent_step(ToolPolicy {
                    allow: Some(list(&["sessions_spawn"])),
                    ..ToolPolicy::default()
                })],
                &[],
                &["sessions_spawn", "read"],
            ),
        ];
        for (steps, inside, outside) in rows {
            let out = names(&steps);
            for name in inside {
                assert!(out.iter().any(|n| n == name), "{name} in {out:?} for {steps:?}");
            }
            for name in outside {
                assert!(!out.iter().any(|n| n == name), "{name} not in {out:?} for {steps:?}");
            }
        }
    }

    #[test]
    fn a_list_of_plugin_names_alone_takes_no_core_tool_away() {
        let tools = [
            Candidate::core("read"),
            Candidate { name: "fly", plugin: Some("my-plugin"), owner_only: false },
        ];
        let out = select(&tools, Sender::Owner, &[step(None, Some(&["my-plugin"]), &[], &[])]);
        assert_eq!(out.names, ["read", "fly"]);
        assert_eq!(out.warnings, ["tools: tools.allow allowlist contains unknown entries (my-plugin)."]);
        let both = select(&tools, Sender::Owner, &[step(None, Some(&["exec", "my-plugin"]), &[], &[])]);
        assert_eq!(both.names, ["fly"]);
        let none = select(&tools, Sender::Owner, &[step(None, None, &[], &["group:plugins"])]);
        assert_eq!(none.names, ["read"]);
    }

    #[test]
    fn owner_tools_are_for_the_owner() {
        let tools = [Candidate { name: "gateway", plugin: None, owner_only: true }, Candidate::core("read")];
        assert_eq!(select(&tools, Sender::Other, &[]).names, ["read"]);
        assert_eq!(select(&tools, Sender::Owner, &[]).names, ["gateway", "read"]);
    }

    #[test]
    fn the_full_model_reference_wins_over_the_provider() {
        let keys = ["openai", "OpenAI/gpt-5.2", "google"];
        assert_eq!(provider_key(&keys, "openai", "gpt-5.2"), Some("OpenAI/gpt-5.2"));
        assert_eq!(provider_key(&keys, "openai", "gpt-4"), Some("openai"));
        assert_eq!(provider_key(&keys, "xai", "grok"), None);
    }

    #[test]
    fn globs_are_anchored() {
        for (pattern, name, expect) in [
            ("web_*", "web_fetch", true),
            ("*_get", "memory_get", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("web_", "web_fetch", false),
            ("*", "x", true),
            ("e*", "web", false),
        ] {
            assert_eq!(matches(pattern, name), expect, "{pattern} {name}");
        }
    }
}
