//! Rules about single values and their neighbours that the structure can't express (spec `config.md` §4.3).
//!
//! Each rule names the places it applies to; [`places`] finds them. A rule is skipped where the structure around it is
//! already wrong.

use std::num::NonZeroU32;

use serde_json::Value;

use crate::byte_size::parse_byte_size;
use crate::document_rule::{DocumentPlace, DocumentRule, executable};
use crate::duration::{DurationUnit, parse_duration};
use crate::settings::LoopGuard;
use crate::value_path::{items, join};
use crate::{Issue, registry};

/// Patterns of places with their rule, in the order in which findings are listed; those of chat platforms are in their rows
/// ([`registry`]).
const RULES: &[(&str, DocumentRule)] = &[
    ("browser.profiles.*", browser_profile),
    ("agents.defaults.heartbeat", heartbeat),
    ("agents.list.*.heartbeat", heartbeat),
    ("session.maintenance", maintenance),
    ("agents.list.*.tools", |v, p, out| exclusive("agent tools", v, p, out)),
    ("agents.list.*.tools.byProvider.*", |v, p, out| exclusive("tools.byProvider policy", v, p, out)),
    ("agents.list.*.tools.sandbox.tools", |v, p, out| exclusive("tools policy", v, p, out)),
    ("tools.byProvider.*", |v, p, out| exclusive("tools.byProvider policy", v, p, out)),
    ("tools.subagents.tools", |v, p, out| exclusive("tools policy", v, p, out)),
    ("tools.sandbox.tools", |v, p, out| exclusive("tools policy", v, p, out)),
    ("tools.media.models.*.command", executable),
    ("tools.media.image.models.*.command", executable),
    ("tools.media.audio.models.*.command", executable),
    ("tools.media.video.models.*.command", executable),
    ("tools.links.models.*.command", executable),
    ("tools", |v, p, out| exclusive("tools", v, p, out)),
    ("tools.loopGuard", loop_guard),
    ("broadcast", broadcast),
    ("audio.transcription.command.0", executable),
];

/// Applies all rules. `structure` is what the structural check found.
pub(super) fn check(document: &Value, structure: &[Issue]) -> Vec<Issue> {
    let mut found = Vec::new();
    let mut apply = |pattern: &str, rule: DocumentRule| {
        for (path, value) in places(document, pattern) {
            let broken = structure.iter().any(|issue| is_within(&issue.path, &path));
            if !broken {
                rule(value, &DocumentPlace { path, root: document }, &mut found);
            }
        }
    };
    RULES.iter().for_each(|(pattern, rule)| apply(pattern, *rule));
    for platform in registry::CHANNELS {
        platform.rules.iter().for_each(|(below, rule)| apply(&platform.path_of(below), *rule));
    }
    found
}

fn is_within(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// All places of a document that a pattern names; `*` is every key or index.
pub(super) fn places<'a>(document: &'a Value, pattern: &str) -> Vec<(String, &'a Value)> {
    let mut found = vec![(String::new(), document)];
    for part in pattern.split('.') {
        let mut next = Vec::new();
        for (path, value) in found {
            match (part, value) {
                ("*", Value::Object(map)) => {
                    next.extend(map.iter().map(|(key, each)| (join(&path, key), each)))
                }
                ("*", Value::Array(items)) => next.extend(
                    items.iter().enumerate().map(|(index, each)| (join(&path, &index.to_string()), each)),
                ),
                (_, Value::Array(items)) => {
                    let item = part.parse::<usize>().ok().and_then(|at| items.get(at));
                    next.extend(item.map(|each| (join(&path, part), each)));
                }
                (_, other) => next.extend(other.get(part).map(|each| (join(&path, part), each))),
            }
        }
        found = next;
    }
    found
}

fn exclusive(label: &str, value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    let has_items = |key: &str| items(value.get(key)).next().is_some();
    if has_items("allow") && has_items("alsoAllow") {
        out.push(Issue::new(
            &place.path,
            format!(
                "{label} cannot set both allow and alsoAllow in the same scope (merge alsoAllow into allow, or remove allow and use profile + alsoAllow)"
            ),
        ));
    }
}

/// Requires that `warnAfter` is not above `stopAfter`: a warning that comes after the stop would
/// never be told.
fn loop_guard(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    let defaults = LoopGuard::default();
    let count = |key: &str, default: NonZeroU32| {
        value.get(key).and_then(Value::as_u64).unwrap_or_else(|| default.get().into())
    };
    let (warn, stop) = (count("warnAfter", defaults.warn_after), count("stopAfter", defaults.stop_after));
    if warn > stop {
        let text = format!("warnAfter ({warn}) must not be above stopAfter ({stop})");
        out.push(Issue::new(join(&place.path, "warnAfter"), text));
    }
}

fn browser_profile(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    if value.is_object() && value.get("cdpPort").is_none() && value.get("cdpUrl").is_none() {
        out.push(Issue::new(&place.path, "Profile must set cdpPort or cdpUrl"));
    }
}

/// Active hours are only looked at together with an interval, as in the reference. An empty interval
/// switches the heartbeat off.
fn heartbeat(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    let every = value.get("every").and_then(Value::as_str).filter(|every| !every.is_empty());
    let Some(every) = every else { return };
    if parse_duration(every, DurationUnit::Minutes).is_err() {
        out.push(Issue::new(join(&place.path, "every"), "invalid duration (use ms, s, m, h)"));
    }
    for (key, may_be_midnight) in [("start", false), ("end", true)] {
        let time = value.pointer(&format!("/activeHours/{key}")).and_then(Value::as_str);
        if let Some(problem) = time.and_then(|time| time_problem(time, may_be_midnight)) {
            out.push(Issue::new(join(&place.path, &format!("activeHours.{key}")), problem));
        }
    }
}

/// Limits that are texts.
fn maintenance(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    for key in ["pruneAfter", "resetArchiveRetention"] {
        if text(key).is_some_and(|text| parse_duration(text, DurationUnit::Days).is_err()) {
            out.push(Issue::new(join(&place.path, key), "invalid duration (use ms, s, m, h, d)"));
        }
    }
    for key in ["rotateBytes", "maxDiskBytes", "highWaterBytes"] {
        if text(key).is_some_and(|text| parse_byte_size(text).is_err()) {
            out.push(Issue::new(join(&place.path, key), "invalid size (use b, kb, mb, gb, tb)"));
        }
    }
}

fn time_problem(text: &str, may_be_midnight: bool) -> Option<&'static str> {
    const FORMAT: &str = "invalid time (use \"HH:MM\" 24h format)";
    let two_digits = |part: &str| {
        let plain = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| part.parse::<u32>().ok()).flatten()
    };
    let Some((hour, minute)) = text.split_once(':') else { return Some(FORMAT) };
    match (two_digits(hour), two_digits(minute)) {
        (Some(24), Some(0)) => (!may_be_midnight).then_some("invalid time (start cannot be 24:00)"),
        (Some(24), Some(1..=59)) => Some("invalid time (24:00 is the only allowed 24:xx value)"),
        (Some(0..=23), Some(0..=59)) => None,
        _ => Some(FORMAT),
    }
}

fn broadcast(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    let agents = items(place.root.pointer("/agents/list"));
    let ids: Vec<&str> = agents.filter_map(|agent| agent.get("id")?.as_str()).collect();
    if ids.is_empty() {
        return;
    }
    for (peer, agents) in value.as_object().into_iter().flatten() {
        for (index, agent) in items(Some(agents)).enumerate() {
            if let Some(id) = agent.as_str().filter(|id| !ids.contains(id)) {
                out.push(Issue::new(
                    join(&place.path, &format!("{peer}.{index}")),
                    format!("Unknown agent id \"{id}\" (not in agents.list)."),
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Spec `channels.md` §1.2, §1.3: what an account does not say it takes from its channel.
    #[test]
    fn an_open_door_is_stated_in_the_list_in_force() {
        let told = |path: &str, section: &str| {
            format!(
                "{path}.allowFrom: {section}.dmPolicy=\"open\" requires {section}.allowFrom to include \"*\""
            )
        };
        for channel in ["telegram", "signal", "imessage"] {
            let section = format!("channels.{channel}");
            let account = format!("{section}.accounts.b");
            let rows = [
                (json!({"dmPolicy": "open"}), told(&section, &section)),
                (json!({"dmPolicy": "open", "allowFrom": ["*"]}), String::new()),
                (json!({"allowFrom": ["*"], "accounts": {"b": {"dmPolicy": "open"}}}), String::new()),
                (
                    json!({"allowFrom": [5], "accounts": {"b": {"dmPolicy": "open"}}}),
                    told(&account, &section),
                ),
                (json!({"accounts": {"b": {"dmPolicy": "open"}}}), told(&account, &section)),
                (
                    json!({"allowFrom": ["*"], "accounts": {"b": {"dmPolicy": "open", "allowFrom": [5]}}}),
                    told(&account, &section),
                ),
                // Valid in OpenClaw 2026.2.9, and told as a warning.
                (
                    json!({"dmPolicy": "open", "allowFrom": ["*"], "accounts": {"b": {"allowFrom": [5]}}}),
                    String::new(),
                ),
            ];
            for (keys, expect) in rows {
                let found = check(&json!({"channels": {channel: keys}}), &[]);
                let lines: Vec<String> = found.iter().map(Issue::line).collect();
                assert_eq!(lines.join("; "), expect, "{channel} {keys}");
            }
        }
    }

    #[test]
    fn a_run_in_circles_is_warned_before_it_is_stopped() {
        let rows = [
            (json!({}), ""),
            (json!({"warnAfter": 30}), ""),
            (json!({"warnAfter": 5, "stopAfter": 5}), ""),
            (
                json!({"warnAfter": 31}),
                "tools.loopGuard.warnAfter: warnAfter (31) must not be above stopAfter (30)",
            ),
            (
                json!({"stopAfter": 9}),
                "tools.loopGuard.warnAfter: warnAfter (10) must not be above stopAfter (9)",
            ),
        ];
        for (guard, expect) in rows {
            let found = check(&json!({"tools": {"loopGuard": guard}}), &[]);
            let lines: Vec<String> = found.iter().map(Issue::line).collect();
            assert_eq!(lines.join("; "), expect, "{guard}");
        }
    }
}
