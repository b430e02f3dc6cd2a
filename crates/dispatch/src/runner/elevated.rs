//! Whether commands of a run may leave the sandbox and its rules (spec `tools.md` §8.4).

use openclaw_config::settings::{Config, Elevated as Setting, TextOrNumber};
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::ElevatedLevel;
use openclaw_tools::{Elevated, ElevatedMode};

use crate::origin::Origin;

/// Where a client of the gateway speaks.
const WEBCHAT: &str = "webchat";
/// Where the gateway speaks by itself: heartbeats, schedules, programs.
const NOBODY: &str = "none";
/// What stands in the way of a run that no person asked for.
const NOT_A_PERSONS: &str = "a person's message";

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) key: &'a SessionKey,
    /// Where it was said; nothing for clients of the gateway.
    pub(crate) origin: Option<&'a Origin>,
    /// Whether a person said it. What the gateway asks by itself has nobody's rights: anything may have been the cause.
    pub(crate) by_person: bool,
}

/// What holds for a run.
pub(crate) fn of(
    config: &Config,
    asker: Asker<'_>,
    entry: &SessionEntry,
    hint: Option<ElevatedLevel>,
) -> Elevated {
    let mode = match level(config, entry, hint) {
        ElevatedLevel::Off => ElevatedMode::Off,
        ElevatedLevel::On | ElevatedLevel::Ask => ElevatedMode::Ask,
        ElevatedLevel::Full => ElevatedMode::Full,
    };
    Elevated { mode, refusal: refusal(config, asker) }
}

/// The level that holds: the message's, the session's, the configured one; `on`.
pub(crate) fn level(config: &Config, entry: &SessionEntry, hint: Option<ElevatedLevel>) -> ElevatedLevel {
    let configured = || ElevatedLevel::parse(config.agents.defaults.elevated_default.as_deref()?);
    hint.or(entry.elevated_level).or_else(configured).unwrap_or(ElevatedLevel::On)
}

/// Why commands may not be elevated: what has to be set for it; nothing where they may.
pub(crate) fn refusal(config: &Config, asker: Asker<'_>) -> Option<String> {
    let by_client = if asker.by_person { WEBCHAT } else { NOBODY };
    let provider = asker.origin.map_or(by_client, |origin| origin.address.channel.as_str());
    if !asker.by_person {
        return Some(format!(
            "Failing gates: {NOT_A_PERSONS}\nContext: provider={provider} session={}\n\
             Fix-it keys: none. Only a run that a person's message asked for can be elevated, whatever is configured.",
            asker.key,
        ));
    }
    let own = config.agents.list.iter().find(|entry| entry.id == asker.agent.as_str());
    let (shared, own) = (&config.tools.elevated, own.map(|entry| &entry.tools.elevated));
    let (shared_keys, own_keys) = ("tools.elevated", "agents.list[].tools.elevated");
    let mut gates = Vec::new();
    for (setting, keys) in [(Some(shared), shared_keys), (own, own_keys)] {
        let Some(setting) = setting else { continue };
        if setting.enabled == Some(false) {
            gates.push(format!("{keys}.enabled"));
        }
        let is_asked = keys == shared_keys || !setting.allow_from.is_empty();
        if is_asked && !allows(setting, provider, asker.origin) {
            gates.push(format!("{keys}.allowFrom.{provider}"));
        }
    }
    if gates.is_empty() {
        return None;
    }
    Some(format!(
        "Failing gates: {}\nContext: provider={provider} session={}\n\
         Fix-it keys:\n- {}",
        gates.join(", "),
        asker.key,
        gates.join("\n- "),
    ))
}

/// Whether a list has who speaks: by id, by telephone number, or by a name whose id the platform has told at the start (decision 21). What
/// they call themselves counts for nothing: anybody may take a name that another has given up.
fn allows(setting: &Setting, provider: &str, origin: Option<&Origin>) -> bool {
    let Some(allowed) = setting.allow_from.get(provider) else { return false };
    let known = origin.into_iter().flat_map(|origin| {
        let numbers = [Some(&origin.sender.id), origin.sender.phone.as_ref()];
        numbers.into_iter().flatten().chain(&origin.listed_as)
    });
    let known: Vec<String> = known.map(|name| plain(name, provider)).collect();
    allowed.iter().any(|entry| {
        let entry = match entry {
            TextOrNumber::Text(text) => plain(text, provider),
            TextOrNumber::Number(number) => number.to_string(),
        };
        entry == "*" || known.iter().any(|name| !name.is_empty() && *name == entry)
    })
}

/// `telegram:@Ada` is `ada`.
fn plain(name: &str, provider: &str) -> String {
    let lower = name.trim().to_lowercase();
    let bare = lower.strip_prefix(provider).and_then(|rest| rest.strip_prefix(':')).unwrap_or(&lower);
    bare.trim_start_matches('@').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::commands::testing::direct;

    fn config(tools: &Value, own: &Value) -> Config {
        serde_json::from_value(json!({"tools": tools, "agents": {"list": [{"id": "main", "tools": own}]}}))
            .unwrap()
    }

    #[test]
    fn every_gate_has_to_be_open() {
        let allow = |list: Value| json!({"elevated": {"allowFrom": {"telegram": list}}});
        let none = json!({});
        let mut ada = direct("7", Some("eve"));
        ada.listed_as = vec!["@ada".to_owned()];
        let gate = |keys: &str| Some(keys.to_owned());
        let rows = [
            (none.clone(), none.clone(), gate("tools.elevated.allowFrom.telegram")),
            (allow(json!(["8"])), none.clone(), gate("tools.elevated.allowFrom.telegram")),
            (allow(json!([7])), none.clone(), None),
            (allow(json!(["telegram:7"])), none.clone(), None),
            (allow(json!(["@ADA"])), none.clone(), None),
            // What they call themselves today was not looked up.
            (allow(json!(["@eve", "eve"])), none.clone(), gate("tools.elevated.allowFrom.telegram")),
            (allow(json!(["*"])), none.clone(), None),
            (allow(json!([""])), none.clone(), gate("tools.elevated.allowFrom.telegram")),
            (
                json!({"elevated": {"enabled": false, "allowFrom": {"telegram": ["*"]}}}),
                none,
                gate("tools.elevated.enabled"),
            ),
            (
                allow(json!(["*"])),
                json!({"elevated": {"enabled": false}}),
                gate("agents.list[].tools.elevated.enabled"),
            ),
            (
                allow(json!(["*"])),
                allow(json!(["8"])),
                gate("agents.list[].tools.elevated.allowFrom.telegram"),
            ),
            (allow(json!(["*"])), allow(json!(["7"])), None),
        ];
        let key = SessionKey::parse("agent:main:main").unwrap();
        let agent = AgentId::default();
        for (tools, own, gate) in rows {
            let asker = Asker { agent: &agent, key: &key, origin: Some(&ada), by_person: true };
            let refusal = refusal(&config(&tools, &own), asker);
            let expect = gate.map(|gate| {
                format!(
                    "Failing gates: {gate}\n\
                     Context: provider=telegram session=agent:main:main\nFix-it keys:\n- {gate}"
                )
            });
            assert_eq!(refusal, expect, "{tools} {own}");
        }
    }

    #[test]
    fn a_client_needs_its_own_entry_and_a_name_is_none() {
        let key = SessionKey::parse("agent:main:main").unwrap();
        let agent = AgentId::default();
        let client = Asker { agent: &agent, key: &key, origin: None, by_person: true };
        let tools = |list: Value| config(&json!({"elevated": {"allowFrom": list}}), &json!({}));
        assert!(refusal(&tools(json!({"telegram": ["*"]})), client).is_some());
        assert!(refusal(&tools(json!({"webchat": ["*"]})), client).is_none());
        let by_itself = Asker { by_person: false, ..client };
        for list in [json!({"webchat": ["*"]}), json!({"none": ["*"]})] {
            assert_eq!(
                refusal(&tools(list.clone()), by_itself).unwrap(),
                "Failing gates: a person's message\nContext: provider=none session=agent:main:main\n\
                 Fix-it keys: none. Only a run that a person's message asked for can be elevated, whatever is configured.",
                "{list}"
            );
        }
        let mut named = direct("7", None);
        named.sender.name = Some("Owner".to_owned());
        let stranger = Asker { origin: Some(&named), ..client };
        assert!(refusal(&tools(json!({"telegram": ["Owner"]})), stranger).is_some());
    }

    #[test]
    fn the_message_comes_before_the_session_and_that_before_the_settings() {
        let config = |default: &str| -> Config {
            serde_json::from_value(json!({"agents": {"defaults": {"elevatedDefault": default}}})).unwrap()
        };
        let entry = |level| SessionEntry { elevated_level: level, ..SessionEntry::default() };
        let (full, off) = (Some(ElevatedLevel::Full), Some(ElevatedLevel::Off));
        assert_eq!(level(&Config::default(), &entry(None), None), ElevatedLevel::On);
        assert_eq!(level(&config("ask"), &entry(None), None), ElevatedLevel::Ask);
        assert_eq!(level(&config("ask"), &entry(off), None), ElevatedLevel::Off);
        assert_eq!(level(&config("ask"), &entry(off), full), ElevatedLevel::Full);
    }
}
