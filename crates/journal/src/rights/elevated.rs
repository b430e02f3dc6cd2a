//! Gates of elevated commands, which leave the sandbox of a run and its rules (spec `tools.md` §8.4).

use std::borrow::Cow;

use openclaw_channels::access::listed::is_everybody;
use openclaw_config::registry::WEBCHAT;
use openclaw_config::settings::{Config, Elevated as Setting, TextOrNumber};
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::ElevatedLevel;
use openclaw_tools::{Elevated, ElevatedMode};

use crate::caller::Caller;

/// Provider of requests that no person makes: heartbeats, schedules, programs.
const NOBODY: &str = "none";
/// Gate that is closed for a run that no person asked for.
const NOT_A_PERSONS: &str = "a person's message";
/// Gate that is closed for a run some of whose callers may not have commands elevated.
const NOT_THEIR_RIGHT: &str = "the rights of the message";

/// Agent and session that a caller wants elevated commands in.
#[derive(Debug, Clone, Copy)]
pub struct Elevation<'a> {
    /// The caller. Requests of the gateway itself have nobody's rights: anything may have caused
    /// them.
    pub caller: Caller<'a>,
    /// The agent that is asked.
    pub agent: &'a AgentId,
    /// The session.
    pub key: &'a SessionKey,
}

/// Returns the mode of elevated commands for a run, and why they are refused if they are.
pub fn of(
    config: &Config,
    asked: Elevation<'_>,
    entry: &SessionEntry,
    hint: Option<ElevatedLevel>,
) -> Elevated {
    let mode = match level(config, entry, hint) {
        ElevatedLevel::Off => ElevatedMode::Off,
        ElevatedLevel::On | ElevatedLevel::Ask => ElevatedMode::Ask,
        ElevatedLevel::Full => ElevatedMode::Full,
    };
    Elevated { mode, refusal: refusal(config, asked) }
}

/// Returns the level that applies: the message's, else the session's, else the configured one, else `on`.
pub fn level(config: &Config, entry: &SessionEntry, hint: Option<ElevatedLevel>) -> ElevatedLevel {
    let configured = || ElevatedLevel::parse(config.agents.defaults.elevated_default.as_deref()?);
    hint.or(entry.elevated_level).or_else(configured).unwrap_or(ElevatedLevel::On)
}

/// True if every gate is open for the caller.
pub fn is_allowed(config: &Config, asked: Elevation<'_>) -> bool {
    asked.caller.is_person() && closed_gates(config, asked).next().is_none()
}

/// Returns why commands may not be elevated and which keys would allow it; `None` if they may.
pub fn refusal(config: &Config, asked: Elevation<'_>) -> Option<String> {
    if !asked.caller.is_person() {
        return Some(not_of(
            asked,
            NOT_A_PERSONS,
            "Only a run that a person's message asked for can be elevated",
        ));
    }
    let gates: Vec<String> = closed_gates(config, asked).collect();
    if gates.is_empty() {
        return None;
    }
    Some(format!(
        "Failing gates: {}\nContext: provider={} session={}\n\
         Fix-it keys:\n- {}",
        gates.join(", "),
        asked.provider(),
        asked.key,
        gates.join("\n- "),
    ))
}

/// Returns the refusal for a run whose message was accepted while a gate was closed, or that another caller asked for too.
pub fn refusal_of_rights(asked: Elevation<'_>) -> String {
    not_of(
        asked,
        NOT_THEIR_RIGHT,
        "Commands are elevated only where all who asked could have them elevated when they asked",
    )
}

fn not_of(asked: Elevation<'_>, gate: &str, rule: &str) -> String {
    format!(
        "Failing gates: {gate}\nContext: provider={} session={}\n\
         Fix-it keys: none. {rule}, whatever is configured.",
        asked.provider(),
        asked.key,
    )
}

impl Elevation<'_> {
    fn provider(&self) -> &str {
        let by_client = if self.caller.is_person() { WEBCHAT } else { NOBODY };
        self.caller.sender().map_or(by_client, |sender| sender.address.channel.as_str())
    }
}

/// Returns the config keys that refuse elevated commands to the caller.
fn closed_gates<'a>(config: &'a Config, asked: Elevation<'a>) -> impl Iterator<Item = String> + 'a {
    let own = config.agents.list.iter().find(|entry| entry.id == asked.agent.as_str());
    let (shared, own) = (&config.tools.elevated, own.map(|entry| &entry.tools.elevated));
    let (shared_keys, own_keys) = ("tools.elevated", "agents.list[].tools.elevated");
    let settings = [(Some(shared), shared_keys), (own, own_keys)];
    settings.into_iter().filter_map(|(setting, keys)| Some((setting?, keys))).flat_map(
        move |(setting, keys)| {
            let is_asked = keys == shared_keys || !setting.allow_from.is_empty();
            let is_off = setting.enabled == Some(false);
            let is_closed = is_asked && !allows(setting, asked);
            let list = is_closed.then(|| format!("{keys}.allowFrom.{}", asked.provider()));
            is_off.then(|| format!("{keys}.enabled")).into_iter().chain(list)
        },
    )
}

/// True if the list for the caller's provider names the caller. A client of the gateway is matched only by an entry for everybody.
fn allows(setting: &Setting, asked: Elevation<'_>) -> bool {
    let provider = asked.provider();
    let Some(allowed) = setting.allow_from.get(provider) else { return false };
    let listed = asked.caller.sender().map(|sender| sender.listed);
    allowed.iter().any(|entry| {
        let entry = match entry {
            TextOrNumber::Text(text) => Cow::Borrowed(text.as_str()),
            TextOrNumber::Number(number) => Cow::Owned(number.to_string()),
        };
        is_everybody(&entry, provider) || listed.is_some_and(|listed| listed.is_named(&entry, provider))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::caller::CallerIdentity;
    use crate::testing::direct;

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
            // The name they use today was not looked up.
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
            let asked = Elevation { caller: ada.caller(), agent: &agent, key: &key };
            let refusal = refusal(&config(&tools, &own), asked);
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
        let at_client = Caller { identity: CallerIdentity::Client, ..Caller::default() };
        let client = Elevation { caller: at_client, agent: &agent, key: &key };
        let tools = |list: Value| config(&json!({"elevated": {"allowFrom": list}}), &json!({}));
        assert!(refusal(&tools(json!({"telegram": ["*"]})), client).is_some());
        assert!(refusal(&tools(json!({"webchat": ["*"]})), client).is_none());
        let by_itself = Elevation { caller: Caller::default(), ..client };
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
        let stranger = Elevation { caller: named.caller(), ..client };
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
