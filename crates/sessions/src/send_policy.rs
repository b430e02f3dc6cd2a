//! Whether a session may send (spec `sessions.md` §6).

use openclaw_config::settings::{RuleMatch, SendPolicyRules};

use crate::entry::{ChatType, SendPolicy, SessionEntry};
use crate::key::form::{KeyForm, form_of};
use crate::key::{AgentKey, SessionKey};

/// The session a policy is asked about.
#[derive(Debug, Clone, Copy, Default)]
pub struct SendSubject<'a> {
    /// Its key; a bare key is accepted.
    pub key: &'a str,
    /// Its row.
    pub entry: Option<&'a SessionEntry>,
    /// The channel, where the caller knows better than the row.
    pub channel: Option<&'a str>,
    /// The kind of chat, where the caller knows better than the row.
    pub chat_type: Option<ChatType>,
}

/// The verdict. The row's own setting wins, then any matching `deny`, then any matching `allow`, then the default.
pub fn resolve(policy: Option<&SendPolicyRules>, subject: &SendSubject<'_>) -> SendPolicy {
    if let Some(own) = subject.entry.and_then(|entry| entry.send_policy) {
        return own;
    }
    let Some(policy) = policy else { return SendPolicy::Allow };
    let facts = Facts::of(subject);
    let mut allowed = false;
    for rule in policy.rules.iter().filter(|rule| facts.fit(&rule.matches)) {
        match SendPolicy::from(rule.action) {
            SendPolicy::Deny => return SendPolicy::Deny,
            SendPolicy::Allow => allowed = true,
        }
    }
    if allowed { SendPolicy::Allow } else { policy.default.map_or(SendPolicy::Allow, SendPolicy::from) }
}

/// What rules are compared with.
struct Facts {
    key: String,
    bare: String,
    direct: Option<(String, String)>,
    channel: Option<String>,
    chat_type: Option<ChatType>,
}

impl Facts {
    fn of(subject: &SendSubject<'_>) -> Self {
        let key = subject.key.trim().to_lowercase();
        let bare = AgentKey::parse(&key).map_or_else(|| key.clone(), |parts| parts.rest);
        let entry = subject.entry;
        let given = subject.channel.map(str::to_owned);
        let stored =
            || entry.and_then(|e| e.channel.as_deref().or(e.last_channel.as_deref())).map(str::to_owned);
        let channel =
            given.or_else(stored).or_else(|| derived_channel(&bare)).map(|c| c.trim().to_lowercase());
        let chat_type =
            subject.chat_type.or_else(|| entry.and_then(|e| e.chat_type)).or_else(|| chat_type_of(&key));
        let direct = SessionKey::parse(&key).ok().and_then(|key| {
            let spelled = key.direct_spelling()?;
            let bare = AgentKey::parse(&spelled)?.rest;
            Some((spelled, bare))
        });
        Self { key, bare, direct, channel, chat_type }
    }

    fn fit(&self, rule: &RuleMatch) -> bool {
        let given = |text: &Option<String>| {
            text.as_deref().map(|t| t.trim().to_lowercase()).filter(|t| !t.is_empty())
        };
        let channel = given(&rule.channel).is_none_or(|want| self.channel.as_deref() == Some(want.as_str()));
        let kind = rule.chat_type.is_none_or(|want| self.chat_type == Some(want.into()));
        let prefix = given(&rule.key_prefix).is_none_or(|want| self.starts_with(&want));
        channel && kind && prefix
    }

    fn starts_with(&self, prefix: &str) -> bool {
        let direct = self
            .direct
            .as_ref()
            .is_some_and(|(full, bare)| full.starts_with(prefix) || bare.starts_with(prefix));
        self.key.starts_with(prefix) || self.bare.starts_with(prefix) || direct
    }
}

/// The channel that a key without its agent part names.
fn derived_channel(bare: &str) -> Option<String> {
    match form_of(bare) {
        KeyForm::Direct { channel, .. } => channel.map(str::to_owned),
        KeyForm::Group { channel, .. } | KeyForm::Channel { channel, .. } => Some(channel.to_owned()),
        KeyForm::CronRun { .. } | KeyForm::Opened(..) | KeyForm::Named(_) => None,
    }
}

/// The kind of chat that a key, in lower case, names. The main bucket does not say.
pub fn chat_type_of(key: &str) -> Option<ChatType> {
    if key.contains(":group:") {
        Some(ChatType::Group)
    } else if key.contains(":channel:") {
        Some(ChatType::Channel)
    } else {
        let bare = AgentKey::parse(key).map_or_else(|| key.to_owned(), |parts| parts.rest);
        matches!(form_of(&bare), KeyForm::Direct { .. }).then_some(ChatType::Direct)
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::SendRule;
    use openclaw_protocol::params::sessions::SendPolicy as Action;

    use super::*;

    fn rule(action: Action, json: serde_json::Value) -> SendRule {
        SendRule { action, matches: serde_json::from_value(json).unwrap() }
    }

    fn policy(default: Option<Action>, rules: Vec<SendRule>) -> Option<SendPolicyRules> {
        Some(SendPolicyRules { default, rules })
    }

    fn entry(json: serde_json::Value) -> SessionEntry {
        serde_json::from_value(json).unwrap()
    }

    /// Vectors of `sessions.md` §6; rows marked "better" follow its known-bad notes.
    #[test]
    fn verdicts_follow_row_then_deny_then_allow_then_default() {
        use Action::{Allow, Deny};
        use serde_json::json;
        let cron = || policy(None, vec![rule(Deny, json!({"keyPrefix": "cron:"}))]);
        let rows = [
            (None, json!({}), "agent:main:main", Allow),
            (policy(Some(Deny), vec![]), json!({"sendPolicy": "allow"}), "agent:main:main", Allow),
            (
                policy(None, vec![rule(Deny, json!({"channel": "discord", "chatType": "group"}))]),
                json!({"channel": "discord", "chatType": "group"}),
                "agent:main:discord:group:dev",
                Deny,
            ),
            (cron(), json!({}), "cron:job-1", Deny),
            // better: the prefix is also tried on the key without its agent part
            (cron(), json!({}), "agent:main:cron:job-1", Deny),
            (
                policy(Some(Deny), vec![rule(Allow, json!({"channel": "telegram"}))]),
                json!({"lastChannel": "telegram"}),
                "agent:main:main",
                Allow,
            ),
            (
                policy(None, vec![rule(Allow, json!({"channel": "telegram"})), rule(Deny, json!({}))]),
                json!({"lastChannel": "telegram"}),
                "agent:main:main",
                Deny,
            ),
            (
                policy(None, vec![rule(Deny, json!({"chatType": "group"}))]),
                json!({}),
                "agent:main:discord:channel:1",
                Allow,
            ),
            (
                policy(None, vec![rule(Deny, json!({"chatType": "dm"}))]),
                json!({"chatType": "direct"}),
                "agent:main:main",
                Deny,
            ),
            // better: the channel is read from the key without its agent part
            (
                policy(None, vec![rule(Deny, json!({"channel": "discord"}))]),
                json!({}),
                "agent:main:discord:channel:1",
                Deny,
            ),
            (
                policy(None, vec![rule(Deny, json!({"channel": "telegram"}))]),
                json!({}),
                "agent:main:telegram:biz:direct:7:thread:1",
                Deny,
            ),
            (
                policy(None, vec![rule(Deny, json!({"chatType": "direct"}))]),
                json!({}),
                "agent:main:telegram:dm:7",
                Deny,
            ),
            // the row knows better than the key
            (
                policy(None, vec![rule(Deny, json!({"channel": "discord"}))]),
                json!({"channel": "slack"}),
                "agent:main:discord:channel:1",
                Allow,
            ),
            (
                policy(Some(Deny), vec![rule(Allow, json!({"channel": " Slack ", "chatType": "channel"}))]),
                json!({}),
                "agent:main:slack:channel:c1",
                Allow,
            ),
            (policy(Some(Deny), vec![]), json!({}), "agent:main:main", Deny),
            // either spelling of a direct chat's key fits a prefix
            (
                policy(None, vec![rule(Deny, json!({"keyPrefix": "agent:main:telegram:direct:"}))]),
                json!({}),
                "agent:main:telegram:dm:7",
                Deny,
            ),
        ];
        for (policy, row, key, expect) in rows {
            let entry = entry(row);
            let subject = SendSubject { key, entry: Some(&entry), ..SendSubject::default() };
            assert_eq!(resolve(policy.as_ref(), &subject), SendPolicy::from(expect), "{key} {policy:?}");
        }
    }

    #[test]
    fn what_the_caller_knows_comes_before_row_and_key() {
        use serde_json::json;
        let policy = policy(None, vec![rule(Action::Deny, json!({"channel": "slack", "chatType": "group"}))]);
        let entry = entry(json!({"channel": "discord", "chatType": "direct"}));
        let row = SendSubject { key: "agent:main:main", entry: Some(&entry), ..SendSubject::default() };
        assert_eq!(resolve(policy.as_ref(), &row), SendPolicy::Allow);
        let known = SendSubject { channel: Some("Slack"), chat_type: Some(ChatType::Group), ..row };
        assert_eq!(resolve(policy.as_ref(), &known), SendPolicy::Deny);
    }
}
