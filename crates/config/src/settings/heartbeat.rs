//! `heartbeat`: periodic turns in which an agent looks after its session (spec `agent-runtime.md` §11.1).

use openclaw_protocol::AgentId;
use openclaw_protocol::params::status::AgentBeat;
use serde::Deserialize;

use super::Config;
use crate::{DurationUnit, parse_duration};

/// Interval unless configured (spec `config.md` §5.2).
const DEFAULT_EVERY: &str = "30m";

/// `agents.defaults.heartbeat` and `agents.list[].heartbeat`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Heartbeat {
    /// Interval; a plain number is minutes; `0m` is off.
    pub every: Option<String>,
    /// Hours of the day in which beats are made; absent is always.
    pub active_hours: Option<ActiveHours>,
    /// Model of the beat, `provider/model` or an alias.
    pub model: Option<String>,
    /// Session it runs in; absent is the agent's main session.
    pub session: Option<String>,
    /// Target of its answer: `last`, `none` or a channel.
    pub target: Option<String>,
    /// Recipient at the target.
    pub to: Option<String>,
    /// Account of the target.
    pub account_id: Option<String>,
    /// Prompt of the beat; blank is [`Heartbeat::PROMPT`].
    pub prompt: Option<String>,
    /// True if the reasoning message goes out with the answer.
    pub include_reasoning: Option<bool>,
    /// Characters an answer may have beside the token and still be nothing but an acknowledgement; default 300.
    pub ack_max_chars: Option<u64>,
}

/// `heartbeat.activeHours`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ActiveHours {
    /// `HH:MM`, the first minute.
    pub start: Option<String>,
    /// `HH:MM` or `24:00`, the minute after the last.
    pub end: Option<String>,
    /// `user`, `local` or an IANA name; default `user`.
    pub timezone: Option<String>,
}

impl Heartbeat {
    /// The documented default of `prompt`, as clients know it.
    pub const PROMPT: &str = "Read HEARTBEAT.md if it exists (workspace context). Follow it strictly. Do not infer or \
                              repeat old tasks from prior chats. If nothing needs attention, reply HEARTBEAT_OK.";
    /// The documented default of `ackMaxChars`.
    pub const ACK_MAX_CHARS: u64 = 300;

    /// Prompt for the agent.
    pub fn prompt_text(&self) -> &str {
        let own = self.prompt.as_deref().map(str::trim).filter(|text| !text.is_empty());
        own.unwrap_or(Self::PROMPT)
    }

    /// Longest acknowledgement, in characters.
    pub fn ack_limit(&self) -> usize {
        usize::try_from(self.ack_max_chars.unwrap_or(Self::ACK_MAX_CHARS)).unwrap_or(usize::MAX)
    }

    /// `self` laid over `shared`, key by key.
    fn over(self, shared: &Self) -> Self {
        let shared = shared.clone();
        Self {
            every: self.every.or(shared.every),
            active_hours: self.active_hours.or(shared.active_hours),
            model: self.model.or(shared.model),
            session: self.session.or(shared.session),
            target: self.target.or(shared.target),
            to: self.to.or(shared.to),
            account_id: self.account_id.or(shared.account_id),
            prompt: self.prompt.or(shared.prompt),
            include_reasoning: self.include_reasoning.or(shared.include_reasoning),
            ack_max_chars: self.ack_max_chars.or(shared.ack_max_chars),
        }
    }
}

impl Config {
    /// The heartbeat settings of an agent: its own laid over the shared ones.
    pub fn heartbeat_of(&self, id: &AgentId) -> Heartbeat {
        let shared = self.agents.defaults.heartbeat.clone().unwrap_or_default();
        match self.agent_entry(id).and_then(|entry| entry.heartbeat.clone()) {
            Some(own) => own.over(&shared),
            None => shared,
        }
    }

    /// Interval of an agent's heartbeat. When some agent has a heartbeat of its own, only such
    /// agents beat; else only the default agent does.
    pub fn heartbeat(&self, id: &AgentId) -> AgentBeat {
        let has_own = self.agent_entry(id).is_some_and(|entry| entry.heartbeat.is_some());
        let some_have_own = self.agents.list.iter().any(|entry| entry.heartbeat.is_some());
        let enabled = if some_have_own { has_own } else { *id == self.default_agent() };
        let every = self.heartbeat_of(id).every.unwrap_or_else(|| DEFAULT_EVERY.to_owned());
        let every_ms = parse_duration(&every, DurationUnit::Minutes).ok().filter(|ms| *ms > 0 && enabled);
        let every = if enabled { every } else { "disabled".to_owned() };
        AgentBeat { agent_id: id.to_string(), enabled, every, every_ms }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Environment;

    fn config(document: &Value) -> std::sync::Arc<Config> {
        Config::from_json5(&document.to_string(), &Environment::new([("HOME", "/home/user")], "/")).unwrap()
    }

    #[test]
    fn an_agents_own_keys_are_laid_over_the_shared_ones() {
        let config = config(&json!({"agents": {
            "defaults": {"heartbeat": {"every": "1h", "target": "none", "prompt": " ", "ackMaxChars": 5}},
            "list": [{"id": "main"}, {"id": "work", "heartbeat": {"every": "10", "to": "x", "includeReasoning": true}}],
        }}));
        let work = config.heartbeat_of(&AgentId::normalize("work"));
        let expect = Heartbeat {
            every: Some("10".to_owned()),
            target: Some("none".to_owned()),
            to: Some("x".to_owned()),
            prompt: Some(" ".to_owned()),
            include_reasoning: Some(true),
            ack_max_chars: Some(5),
            ..Heartbeat::default()
        };
        assert_eq!(work, expect);
        assert_eq!((work.prompt_text(), work.ack_limit()), (Heartbeat::PROMPT, 5));
    }

    #[test]
    fn only_agents_with_a_heartbeat_beat_and_without_any_the_default_one() {
        let beats = |document: Value| {
            let config = config(&document);
            let ids = config.agent_ids();
            ids.iter().map(|id| (id.to_string(), config.heartbeat(id).every_ms)).collect::<Vec<_>>()
        };
        let pair = |id: &str, every: Option<u64>| (id.to_owned(), every);
        assert_eq!(beats(json!({})), [pair("main", Some(1_800_000))]);
        let list =
            json!({"agents": {"list": [{"id": "main"}, {"id": "work", "heartbeat": {"every": "5m"}}]}});
        assert_eq!(beats(list), [pair("main", None), pair("work", Some(300_000))]);
        for every in ["0m", "0", "0h", ""] {
            assert_eq!(
                beats(json!({"agents": {"defaults": {"heartbeat": {"every": every}}}})),
                [pair("main", None)]
            );
        }
    }
}
