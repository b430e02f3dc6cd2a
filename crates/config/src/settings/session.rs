//! `session.*`.

mod maintenance;

use std::collections::BTreeMap;

use indexmap::IndexMap;
use openclaw_protocol::params::sessions::SendPolicy;
use openclaw_protocol::{DmScope, IdentityLinks, PeerKind, SessionScope};
use serde::{Deserialize, Deserializer, Serialize};

use super::TypingMode;

pub use maintenance::{MaintenanceMode, SessionMaintenance};

/// `session`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Session {
    /// Sharing of sessions: one for each sender, or one for all.
    pub scope: SessionScope,
    /// Sharing of sessions between direct chats.
    pub dm_scope: DmScope,
    /// People known under several ids.
    #[serde(deserialize_with = "in_order")]
    pub identity_links: IdentityLinks,
    /// Messages that start a new session; see [`Session::triggers`].
    pub reset_triggers: Vec<String>,
    /// Older form of `reset.idleMinutes`.
    pub idle_minutes: Option<u64>,
    /// Rule for starting a session afresh.
    pub reset: Option<ResetRule>,
    /// The same by kind of chat.
    pub reset_by_type: Option<ResetByType>,
    /// The same by channel.
    pub reset_by_channel: BTreeMap<String, ResetRule>,
    /// Path of the store; `{agentId}` is replaced. See [`crate::Config::session_store`].
    pub store: Option<String>,
    /// Name of the main session as written; see [`Session::main_key`].
    pub main_key: String,
    /// Rules on where replies may go.
    pub send_policy: Option<SendPolicyRules>,
    /// Talks between agents.
    pub agent_to_agent: AgentToAgent,
    /// Moment at which typing signals start; goes before the agents'.
    pub typing_mode: Option<TypingMode>,
    /// Interval of typing signals in seconds, where the agents have none.
    pub typing_interval_seconds: Option<u64>,
    /// Pruning and archiving; ours, absent nothing is pruned.
    pub maintenance: Option<SessionMaintenance>,
}

impl Session {
    /// Name of the main session: in lower case, and `main` where the file names none that can stand in a key.
    pub fn main_key(&self) -> String {
        let name = self.main_key.trim().to_lowercase();
        if is_session_name(&name) { name } else { "main".to_owned() }
    }

    /// Messages that start a new session: `/new`, `/reset` and those that the file adds.
    pub fn triggers(&self) -> Vec<&str> {
        let given = self.reset_triggers.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        let mut all = vec!["/new", "/reset"];
        for text in given {
            if !all.iter().any(|known| known.eq_ignore_ascii_case(text)) {
                all.push(text);
            }
        }
        all
    }
}

/// True if a text in lower case can be the last part of a session key, and of no other key.
pub(crate) fn is_session_name(name: &str) -> bool {
    const MAX_CHARS: usize = 64;
    let fits = |c: char| !(c == ':' || c.is_whitespace() || c.is_control());
    let is_taken = matches!(name, "global" | "unknown");
    !name.is_empty() && !is_taken && name.chars().count() <= MAX_CHARS && name.chars().all(fits)
}

fn in_order<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IdentityLinks, D::Error> {
    Ok(IndexMap::<String, Vec<String>>::deserialize(deserializer)?.into_iter().collect())
}

/// `session.reset` and its variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResetRule {
    /// Trigger of a reset.
    pub mode: Option<ResetMode>,
    /// Local hour of the daily reset, 0 to 23; default 4.
    pub at_hour: Option<u8>,
    /// Minutes without a message.
    pub idle_minutes: Option<u64>,
}

/// `session.reset.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResetMode {
    /// Reset every day at an hour.
    Daily,
    /// Reset after a time without messages.
    Idle,
}

/// `session.resetByType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ResetByType {
    /// Direct chats; see [`ResetByType::direct`].
    direct: Option<ResetRule>,
    /// Older name of `direct`.
    dm: Option<ResetRule>,
    /// Groups and channels.
    pub group: Option<ResetRule>,
    /// Threads and topics.
    pub thread: Option<ResetRule>,
}

impl ResetByType {
    /// Direct chats; `direct` counts before its older name `dm`.
    pub fn direct(&self) -> Option<ResetRule> {
        self.direct.or(self.dm)
    }
}

/// `session.sendPolicy`: rules; one that denies and fits outweighs all that allow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct SendPolicyRules {
    /// Decision when no rule matches; absent is allow.
    pub default: Option<SendPolicy>,
    /// The rules.
    pub rules: Vec<SendRule>,
}

impl SendPolicyRules {
    /// Rules that allow direct chats and nothing else.
    pub fn direct_chats() -> Self {
        let matches = RuleMatch { chat_type: Some(PeerKind::Direct), ..RuleMatch::default() };
        Self { default: Some(SendPolicy::Deny), rules: vec![SendRule { action: SendPolicy::Allow, matches }] }
    }
}

/// Rule of [`SendPolicyRules`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SendRule {
    /// Decision of the rule.
    pub action: SendPolicy,
    /// Condition of the rule; absent is always.
    #[serde(default, rename = "match")]
    pub matches: RuleMatch,
}

/// The conditions of a rule; all given ones must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RuleMatch {
    /// Channel id.
    pub channel: Option<String>,
    /// Kind of chat.
    pub chat_type: Option<PeerKind>,
    /// Prefix of the session key.
    pub key_prefix: Option<String>,
}

/// `session.agentToAgent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentToAgent {
    /// Replies back and forth, 0 to 5; default 5.
    pub max_ping_pong_turns: Option<u8>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Config, Environment};

    #[test]
    fn hours_and_minutes_of_resets_are_whole_and_possible() {
        let is_taken = |reset: serde_json::Value| {
            let document = json!({"session": {"reset": reset}}).to_string();
            Config::from_json5(&document, &Environment::new([("HOME", "/home/user")], "/")).is_ok()
        };
        assert!(is_taken(json!({"atHour": 23.0, "idleMinutes": 1})));
        for refused in [
            json!({"atHour": -3}),
            json!({"atHour": 4.9}),
            json!({"atHour": 25}),
            json!({"idleMinutes": 0.2}),
            json!({"idleMinutes": 0}),
        ] {
            assert!(!is_taken(refused.clone()), "{refused}");
        }
    }
    #[test]
    fn the_main_session_is_named_as_configured_where_that_can_be_a_name() {
        let rows = [
            ("", "main", false),
            (" Work ", "work", false),
            ("Büro", "büro", false),
            ("main", "main", false),
            (":", "main", true),
            ("a:b", "main", true),
            ("two words", "main", true),
            ("bell\u{7}", "main", true),
            ("Global", "main", true),
            ("unknown", "main", true),
        ];
        for (written, expect, is_warned) in rows {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("openclaw.json");
            std::fs::write(&file, json!({"session": {"mainKey": written}}).to_string()).unwrap();
            let vars = [("OPENCLAW_CONFIG_PATH", file.to_str().unwrap())];
            let loaded = crate::load(&Environment::new(vars, home.path()));
            assert_eq!(loaded.config().unwrap().session.main_key(), expect, "{written:?}");
            let warned = loaded.snapshot.warnings.iter().any(|warning| warning.path == "session.mainKey");
            assert_eq!(warned, is_warned, "{written:?}");
        }
    }
}
