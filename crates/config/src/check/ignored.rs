//! Values that a config may have and that do nothing, because they name what is not there. Each is a warning: the default is used.

use std::path::Path;

use jiff::tz::TimeZone;
use openclaw_protocol::AgentId;
use serde_json::Value;

use super::approvals::agent_ids;
use super::rules::places;
use super::whole::is_channel;
use crate::duration::{DurationUnit, parse_duration};
use crate::mention_pattern::{mention_pattern, regex_fault};
use crate::{Environment, Issue};

/// Finds a fault in a text; returns the fault and the default used in its place.
type FaultFinder = fn(&str, &Environment) -> Option<String>;

const LOOKS: &[(&str, FaultFinder)] = &[
    ("agents.defaults.userTimezone", |name, _| zone(name, &[])),
    ("agents.defaults.envelopeTimezone", |name, _| zone(name, &["utc", "gmt", "local", "host", "user"])),
    ("agents.defaults.heartbeat.activeHours.timezone", |name, _| zone(name, &["user", "local"])),
    ("agents.list.*.heartbeat.activeHours.timezone", |name, _| zone(name, &["user", "local"])),
    ("agents.defaults.contextPruning.ttl", pruning_ttl),
    ("messages.groupChat.mentionPatterns.*", pattern),
    ("agents.list.*.groupChat.mentionPatterns.*", pattern),
    ("bindings.*.match.channel", |name, _| no_channel(name, "the binding never holds")),
    ("skills.load.extraDirs.*", directory),
    ("hooks.internal.load.extraDirs.*", directory),
];

/// The warnings of a valid document.
pub(super) fn check(document: &Value, env: &Environment) -> Vec<Issue> {
    let mut found = Vec::new();
    for (pattern, look) in LOOKS {
        for (path, value) in places(document, pattern) {
            let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
            found.extend(text.and_then(|text| look(text, env)).map(|problem| Issue::new(path, problem)));
        }
    }
    found.extend(unknown_agents(document));
    found.extend(bound_agents(document));
    for key in ["messages.queue.byChannel", "messages.queue.debounceMsByChannel"] {
        let channels = places(document, &format!("{key}.*")).into_iter();
        found.extend(channels.filter_map(|(path, _)| {
            let name = path.strip_prefix(key)?.strip_prefix('.')?;
            let problem = no_channel(name, "the setting is never used")?;
            Some(Issue::new(path, problem))
        }));
    }
    found
}

/// Agents to which bindings lead, and that are not listed.
fn bound_agents(document: &Value) -> Vec<Issue> {
    let known = agent_ids(document);
    let has_list = document.pointer("/agents/list").and_then(Value::as_array).is_some_and(|l| !l.is_empty());
    let named = places(document, "bindings.*.agentId").into_iter();
    let named = named.filter_map(|(path, name)| Some((path, name.as_str()?.trim())));
    let unknown = named.filter(|(_, name)| !known.contains(&AgentId::normalize(name).to_string()));
    let told = unknown.map(|(path, name)| {
        let there = format!("there is no agent \"{name}\" (there is: {})", known.join(", "));
        let happens = if has_list {
            "the default agent answers in its place"
        } else {
            "it answers with the defaults, in a workspace of its own; list it in agents.list if that is meant"
        };
        Issue::new(path, format!("{there}: {happens}"))
    });
    told.collect()
}

fn no_channel(name: &str, happens: &str) -> Option<String> {
    (!is_channel(name.trim())).then(|| format!("unknown channel \"{}\": {happens}", name.trim()))
}

fn pattern(text: &str, _: &Environment) -> Option<String> {
    let why = regex_fault(&mention_pattern(text).err()?);
    Some(format!("\"{text}\" is no regular expression ({why}) and matches nothing"))
}

/// Agents that may be given work, and that there are not.
fn unknown_agents(document: &Value) -> Vec<Issue> {
    let known = agent_ids(document);
    let named = places(document, "agents.list.*.subagents.allowAgents.*").into_iter();
    let named = named.filter_map(|(path, name)| Some((path, name.as_str()?.trim())));
    let unknown =
        named.filter(|(_, name)| *name != "*" && !known.contains(&AgentId::normalize(name).to_string()));
    let told = unknown.map(|(path, name)| {
        Issue::new(path, format!("there is no agent \"{name}\" (there is: {})", known.join(", ")))
    });
    told.collect()
}

fn zone(name: &str, words: &[&str]) -> Option<String> {
    let is_known = words.contains(&name.to_lowercase().as_str()) || TimeZone::get(name).is_ok();
    (!is_known).then(|| {
        format!(
            "unknown time zone \"{name}\" is ignored; use a name such as Europe/Vienna or America/New_York"
        )
    })
}

fn pruning_ttl(text: &str, _: &Environment) -> Option<String> {
    parse_duration(text, DurationUnit::Minutes).err()?;
    Some(format!("invalid duration \"{text}\" is ignored (use ms, s, m, h)"))
}

fn directory(text: &str, env: &Environment) -> Option<String> {
    let path = env.expand_path(text);
    (!Path::new(&path).is_dir()).then(|| format!("there is no directory {}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_names_nothing_is_said() {
        let env = Environment::new([("HOME", "/nonexistent")], "/");
        let zones = |name: &str| {
            json!({
                "agents": {
                    "defaults": {
                        "userTimezone": name, "envelopeTimezone": name,
                        "heartbeat": {"activeHours": {"timezone": name}},
                    },
                    "list": [{"id": "a", "heartbeat": {"activeHours": {"timezone": name}}}],
                },
            })
        };
        let paths = |document: &Value| -> Vec<String> {
            check(document, &env).into_iter().map(|issue| issue.path).collect()
        };
        assert_eq!(
            paths(&zones("Mars/Olympus")),
            [
                "agents.defaults.userTimezone",
                "agents.defaults.envelopeTimezone",
                "agents.defaults.heartbeat.activeHours.timezone",
                "agents.list.0.heartbeat.activeHours.timezone",
            ]
        );
        for name in ["Asia/Tokyo", " UTC ", "", " "] {
            assert!(paths(&zones(name)).is_empty(), "{name:?}");
        }
        // The host's zone has a word in some places only.
        assert_eq!(paths(&zones("local")), ["agents.defaults.userTimezone"]);
        let ttl = |text: &str| json!({"agents": {"defaults": {"contextPruning": {"ttl": text}}}});
        assert_eq!(paths(&ttl("soon")), ["agents.defaults.contextPruning.ttl"]);
        assert!(paths(&ttl("5")).is_empty() && paths(&ttl("1h")).is_empty());
        let allowed = json!(["*", "Main", "work", "ghost"]);
        let agents = json!({"agents": {"list": [{"id": "main", "subagents": {"allowAgents": allowed}}, {"id": "work"}]}});
        assert_eq!(paths(&agents), ["agents.list.0.subagents.allowAgents.3"]);
        let bound = |agents: Value| {
            json!({
                "agents": agents,
                "bindings": [
                    {"agentId": "Main", "match": {"channel": "Telegram"}},
                    {"agentId": "nope", "match": {"channel": "telegrm"}},
                ],
                "messages": {
                    "groupChat": {"mentionPatterns": ["\u{8}bot\u{8}", "("]},
                    "queue": {"byChannel": {"telegram": "steer", "telegrm": "steer", "webchat": "steer"}},
                },
            })
        };
        for agents in [json!({"list": [{"id": "main"}]}), json!({})] {
            assert_eq!(
                paths(&bound(agents)),
                [
                    "messages.groupChat.mentionPatterns.1",
                    "bindings.1.match.channel",
                    "bindings.1.agentId",
                    "messages.queue.byChannel.telegrm",
                ]
            );
        }
        let dirs = json!({"skills": {"load": {"extraDirs": ["/", "~/gone"]}}, "hooks": {"internal": {"load": {"extraDirs": ["/gone"]}}}});
        assert_eq!(paths(&dirs), ["skills.load.extraDirs.1", "hooks.internal.load.extraDirs.0"]);
    }
}
