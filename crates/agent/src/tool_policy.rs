//! Decides which tools a run is offered (spec `tools.md` §8): a pure function over names. Every
//! step filters what the ones before it left; a later step never brings a tool back.

mod verdict;

use std::borrow::Cow;
use std::collections::BTreeSet;

use openclaw_config::settings::{ToolPolicy, ToolProfile};

use crate::tool::{Catalogue, ToolFacts};

pub use verdict::{Removal, ToolVerdict};

/// Step of the policy chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyStep {
    /// The config path, for reasons.
    pub label: &'static str,
    /// The base set and the lists: names, globs with `*`, `group:…`, plugin ids. An empty
    /// configuration allows everything.
    pub policy: ToolPolicy,
}

/// Returns the tools that a profile allows; `None` restricts nothing.
fn tools_of(profile: ToolProfile) -> Option<&'static [&'static str]> {
    match profile {
        ToolProfile::Minimal => Some(&["session_status"]),
        ToolProfile::Coding => {
            Some(&["group:fs", "group:runtime", "group:sessions", "group:memory", "image"])
        }
        ToolProfile::Messaging => {
            Some(&["group:messaging", "sessions_list", "sessions_history", "sessions_send", "session_status"])
        }
        ToolProfile::Full => None,
    }
}

/// A tool that could be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Tool name.
    pub name: &'a str,
    /// The plugin it comes from; `None` for tools of our own.
    pub plugin: Option<&'a str>,
    /// True if only the owner may use the tool.
    pub owner_only: bool,
    /// True if sub-agents may use the tool.
    pub for_subagents: bool,
    /// The tool without which it is not offered.
    pub needs: Option<&'a str>,
}

impl From<&ToolFacts> for Candidate<'_> {
    fn from(facts: &ToolFacts) -> Self {
        let ToolFacts { name, owner_only, for_subagents, needs, .. } = *facts;
        Self { name, plugin: None, owner_only, for_subagents, needs }
    }
}

/// Facts about a run's caller that the tool policy looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyCaller {
    /// True if the owner asked for the run, or somebody trusted as such.
    pub is_owner: bool,
    /// True if a sub-agent makes the run.
    pub is_subagent: bool,
}

impl PolicyCaller {
    /// The owner, in a session that is no sub-agent's.
    pub const OWNER: Self = Self { is_owner: true, is_subagent: false };
}

/// Decision of the whole chain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection<'a> {
    /// Verdicts on all tools, in the order given.
    pub verdicts: Vec<ToolVerdict<'a>>,
}

impl<'a> Selection<'a> {
    /// The tools left.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.verdicts.iter().filter(|verdict| verdict.removed.is_none()).map(|verdict| verdict.name)
    }
}

const PLUGINS: &str = "group:plugins";

/// Returns true if an entry of a list stands for some tool of the catalogue, or for those of plugins.
pub fn is_known(catalogue: &Catalogue, entry: &str) -> bool {
    let name = catalogue.canonical_name(entry);
    name == PLUGINS
        || catalogue.facts().any(|facts| facts.groups.contains(&name.as_str()) || matches(&name, facts.name))
}

/// Runs the chain. `steps` come in the order of spec §8.2: profile, provider profile, global, global by provider, agent,
/// agent by provider, group, sandbox, sub-agent; the caller leaves out what is not configured.
pub fn select<'a>(
    catalogue: &Catalogue,
    tools: &[Candidate<'a>],
    caller: PolicyCaller,
    steps: &[PolicyStep],
) -> Selection<'a> {
    let names = PolicyNames { catalogue, tools };
    let rules: Vec<PolicyRules> = steps.iter().map(|step| PolicyRules::of(step, names)).collect();
    let removal = |tool: &Candidate<'_>| {
        if tool.owner_only && !caller.is_owner {
            return Some(Removal::OwnerOnly);
        }
        // Ours have their own names in the table.
        let name = match tool.plugin {
            None => Cow::Borrowed(tool.name),
            Some(_) => Cow::Owned(catalogue.canonical_name(tool.name)),
        };
        let by_step = rules.iter().find_map(|rules| rules.removal(&name));
        by_step.or((caller.is_subagent && !tool.for_subagents).then_some(Removal::NotForSubagents))
    };
    let verdict = |tool: &Candidate<'a>| ToolVerdict { name: tool.name, removed: removal(tool) };
    let mut verdicts: Vec<ToolVerdict<'a>> = tools.iter().map(verdict).collect();
    let is_removed = |name: &str, verdicts: &[ToolVerdict<'_>]| {
        verdicts.iter().any(|verdict| verdict.name == name && verdict.removed.is_some())
    };
    for (at, tool) in tools.iter().enumerate() {
        let Some(needed) = tool.needs.filter(|needed| is_removed(needed, &verdicts)) else { continue };
        if let Some(verdict) = verdicts.get_mut(at).filter(|verdict| verdict.removed.is_none()) {
            verdict.removed = Some(Removal::Needs { tool: needed.to_owned() });
        }
    }
    Selection { verdicts }
}

/// The key of `tools.byProvider` that applies: the full reference before the provider (spec §8.2 step 4).
pub fn provider_key<'a>(keys: &[&'a str], provider: &str, model: &str) -> Option<&'a str> {
    let full = format!("{provider}/{model}");
    let is = |wanted: &str| keys.iter().copied().find(|key| key.trim().eq_ignore_ascii_case(wanted));
    is(&full).or_else(|| is(provider))
}

/// A step's lists with groups expanded.
struct PolicyRules {
    step: &'static str,
    profile: Option<(ToolProfile, Vec<String>)>,
    allow: Option<Vec<String>>,
    deny: Vec<Denial>,
}

/// An entry of a deny list, and the patterns it stands for.
struct Denial {
    entry: String,
    patterns: Vec<String>,
}

impl PolicyRules {
    fn of(step: &PolicyStep, known: PolicyNames<'_>) -> Self {
        let policy = &step.policy;
        let extra = known.expand(policy.also_allow.as_deref().unwrap_or_default());
        let profile = policy.profile.and_then(|profile| {
            let names: Vec<String> = tools_of(profile)?.iter().map(|name| (*name).to_owned()).collect();
            Some((profile, [known.expand(&names), extra.clone()].concat()))
        });
        let configured = policy.allow.as_deref().filter(|allow| !allow.is_empty());
        // The list restricts whatever it names: a misspelt one allows nothing (decision 70).
        let allow = configured.map(|allow| [known.expand(allow), extra].concat());
        let denial = |entry: &String| Denial {
            entry: entry.trim().to_owned(),
            patterns: known.expand(std::slice::from_ref(entry)),
        };
        let deny = policy.deny.iter().flatten().map(denial).collect();
        Self { step: step.label, profile, allow, deny }
    }

    /// Returns the reason why the step removes a tool, if it does.
    fn removal(&self, name: &str) -> Option<Removal> {
        let step = self.step;
        let denial =
            self.deny.iter().find(|denial| denial.patterns.iter().any(|pattern| matches(pattern, name)));
        if let Some(Denial { entry, .. }) = denial {
            return Some(Removal::Denied { step, entry: entry.clone() });
        }
        match (&self.profile, &self.allow) {
            (Some((profile, list)), _) if !allowed(list, name) => {
                Some(Removal::NotInProfile { step, profile: *profile })
            }
            (_, Some(list)) if !allowed(list, name) => Some(Removal::NotAllowed { step }),
            _ => None,
        }
    }
}

/// Names and groups that the entries of a list may stand for.
#[derive(Clone, Copy)]
struct PolicyNames<'a> {
    catalogue: &'a Catalogue,
    tools: &'a [Candidate<'a>],
}

impl PolicyNames<'_> {
    /// The members of a group of ours; any other name stands for itself.
    fn in_group(self, name: &str) -> Vec<String> {
        let members = self.catalogue.facts().filter(|facts| facts.groups.contains(&name));
        let members: Vec<String> = members.map(|facts| facts.name.to_owned()).collect();
        if members.is_empty() { vec![name.to_owned()] } else { members }
    }

    /// The patterns that a list stands for: groups and plugins are replaced by their tools.
    fn expand(self, entries: &[String]) -> Vec<String> {
        let mut out = BTreeSet::new();
        for entry in entries {
            let name = self.catalogue.canonical_name(entry);
            let of_plugin = |tool: &&Candidate<'_>| {
                tool.plugin.is_some_and(|plugin| name == PLUGINS || plugin.eq_ignore_ascii_case(&name))
            };
            let members = self.tools.iter().filter(of_plugin);
            let members: Vec<String> = members.map(|tool| self.catalogue.canonical_name(tool.name)).collect();
            out.extend(if members.is_empty() { self.in_group(&name) } else { members });
        }
        out.into_iter().collect()
    }
}

fn allowed(list: &[String], name: &str) -> bool {
    // An agent that may run any command may also patch.
    list.iter().any(|pattern| matches(pattern, name) || (name == "apply_patch" && matches(pattern, "exec")))
}

/// `*` stands for any run of characters.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
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

    fn catalogue() -> Catalogue {
        let owners = ToolFacts { owner_only: true, ..ToolFacts::named("gateway") };
        let alone = ToolFacts { for_subagents: false, ..ToolFacts::named("cron") };
        let read = ToolFacts { aliases: &["open"], groups: &["group:fs"], ..ToolFacts::named("read") };
        [read, ToolFacts::named("exec"), owners, alone].into_iter().collect()
    }

    const PLUGIN_TOOL: Candidate<'_> = Candidate {
        name: "fly",
        plugin: Some("my-plugin"),
        owner_only: false,
        for_subagents: true,
        needs: None,
    };

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn lists(allow: Option<&[&str]>, deny: &[&str]) -> PolicyStep {
        let policy = ToolPolicy { allow: allow.map(list), deny: Some(list(deny)), ..ToolPolicy::default() };
        PolicyStep { label: "tools", policy }
    }

    fn selected(caller: PolicyCaller, steps: &[PolicyStep]) -> Selection<'static> {
        let catalogue = catalogue();
        let tools: Vec<Candidate<'_>> = catalogue.facts().map(Candidate::from).chain([PLUGIN_TOOL]).collect();
        select(&catalogue, &tools, caller, steps)
    }

    fn names(steps: &[PolicyStep]) -> String {
        left(PolicyCaller::OWNER, steps)
    }

    fn left(caller: PolicyCaller, steps: &[PolicyStep]) -> String {
        selected(caller, steps).names().collect::<Vec<_>>().join(" ")
    }

    const STRANGER: PolicyCaller = PolicyCaller { is_owner: false, is_subagent: false };
    const SUBAGENT: PolicyCaller = PolicyCaller { is_owner: true, is_subagent: true };

    #[test]
    fn an_allow_list_limits_whatever_it_names() {
        assert_eq!(names(&[lists(Some(&["my-plugin"]), &[])]), "fly");
        assert_eq!(names(&[lists(Some(&["reed"]), &[])]), "");
        assert_eq!(names(&[lists(Some(&["group:fz", ""]), &[])]), "");
        assert_eq!(names(&[lists(Some(&[]), &[])]), "read exec gateway cron fly");
        assert_eq!(names(&[lists(Some(&["exec", "my-plugin"]), &[])]), "exec fly");
        assert_eq!(names(&[lists(None, &["group:plugins"])]), "read exec gateway cron");
    }

    #[test]
    fn names_globs_groups_and_aliases_of_the_catalogue_are_known() {
        let known = ["read", " Open ", "EXEC", "ga*", "*", "group:fs", "group:plugins"];
        assert!(known.iter().all(|entry| is_known(&catalogue(), entry)));
        for entry in ["reed", "re", "x*", "group:fz", "my-plugin", ""] {
            assert!(!is_known(&catalogue(), entry), "{entry}");
        }
    }

    #[test]
    fn the_facts_of_the_catalogue_decide_what_a_list_means() {
        assert_eq!(names(&[lists(Some(&["group:fs"]), &[])]), "read");
        assert_eq!(names(&[lists(Some(&[" Open "]), &[])]), "read");
        assert_eq!(names(&[lists(None, &["open", "fly"])]), "exec gateway cron");
    }

    #[test]
    fn some_tools_are_not_for_everyone() {
        assert_eq!(left(STRANGER, &[]), "read exec cron fly");
        assert_eq!(left(SUBAGENT, &[]), "read exec gateway fly");
        assert_eq!(names(&[]), "read exec gateway cron fly");
    }

    #[test]
    fn the_first_rule_that_removed_a_tool_is_told() {
        let profile = PolicyStep {
            label: "tools.profile",
            policy: ToolPolicy { profile: Some(ToolProfile::Coding), ..ToolPolicy::default() },
        };
        let steps = |step: PolicyStep| vec![step, lists(Some(&["read"]), &["ex*", "group:plugins"])];
        let both = || steps(lists(None, &[" Open "]));
        for (caller, steps, tool, expect) in [
            (PolicyCaller::OWNER, both(), "read", Some("denied by \"Open\" in tools.deny")),
            (PolicyCaller::OWNER, both(), "exec", Some("denied by \"ex*\" in tools.deny")),
            (PolicyCaller::OWNER, both(), "fly", Some("denied by \"group:plugins\" in tools.deny")),
            (PolicyCaller::OWNER, both(), "cron", Some("not in tools.allow")),
            (PolicyCaller::OWNER, steps(profile.clone()), "cron", Some("not in tools.profile \"coding\"")),
            (PolicyCaller::OWNER, steps(profile.clone()), "read", None),
            (SUBAGENT, steps(profile), "cron", Some("not in tools.profile \"coding\"")),
            (SUBAGENT, vec![], "cron", Some("no sub-agent has it")),
            (STRANGER, both(), "gateway", Some("only the owner has it")),
        ] {
            let selection = selected(caller, &steps);
            let verdict = selection.verdicts.iter().find(|verdict| verdict.name == tool).unwrap();
            let told = verdict.removed.as_ref().map(ToString::to_string);
            assert_eq!(told.as_deref(), expect, "{tool} {caller:?} {steps:?}");
        }
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
