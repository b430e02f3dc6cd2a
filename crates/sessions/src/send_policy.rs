//! Send policy: may a session send (spec `sessions.md` §6)?

use openclaw_config::settings::{RuleMatch, SendPolicyRules};

use crate::entry::{ChatType, SendPolicy, SessionEntry};
use crate::key::{KeyForm, SessionKey};

/// The session a policy is asked about.
#[derive(Debug, Clone, Copy)]
pub struct SendSubject<'a> {
    /// Session key.
    pub key: &'a SessionKey,
    /// Row of the session, if there is one.
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
    let facts = SendFacts::of(subject);
    let mut allowed = false;
    for rule in policy.rules.iter().filter(|rule| facts.fit(&rule.matches)) {
        match rule.action {
            SendPolicy::Deny => return SendPolicy::Deny,
            SendPolicy::Allow => allowed = true,
        }
    }
    if allowed { SendPolicy::Allow } else { policy.default.unwrap_or(SendPolicy::Allow) }
}

/// Facts that rules are compared with.
struct SendFacts<'a> {
    key: &'a SessionKey,
    /// The key as 2.9 spells that of a direct chat.
    direct: Option<String>,
    channel: Option<String>,
    chat_type: Option<ChatType>,
}

impl<'a> SendFacts<'a> {
    fn of(subject: &SendSubject<'a>) -> Self {
        let key = subject.key;
        let entry = subject.entry;
        let given = subject.channel.map(str::to_owned);
        let stored =
            || entry.and_then(|e| e.channel.as_deref().or(e.last_channel.as_deref())).map(str::to_owned);
        let channel = given.or_else(stored).or_else(|| derived_channel(key)).map(|c| c.trim().to_lowercase());
        let chat_type =
            subject.chat_type.or_else(|| entry.and_then(|e| e.chat_type)).or_else(|| chat_type_of(key));
        Self { key, direct: key.direct_spelling(), channel, chat_type }
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
        // With or without `agent:<agentId>:`, which is as long in both spellings.
        let bare_from = self.key.as_str().len() - self.key.rest().len();
        let starts = |key: &str| {
            key.starts_with(prefix) || key.get(bare_from..).is_some_and(|bare| bare.starts_with(prefix))
        };
        starts(self.key.as_str()) || self.direct.as_deref().is_some_and(starts)
    }
}

/// The channel that a key names.
fn derived_channel(key: &SessionKey) -> Option<String> {
    match key.form() {
        KeyForm::Direct { channel, .. } => channel.map(str::to_owned),
        KeyForm::Group { channel, .. } | KeyForm::Channel { channel, .. } => Some(channel.to_owned()),
        KeyForm::CronRun { .. } | KeyForm::Opened(..) | KeyForm::Named(_) => None,
    }
}

/// The kind of chat that a key names. The main bucket does not say.
pub fn chat_type_of(key: &SessionKey) -> Option<ChatType> {
    if key.is_room() {
        Some(ChatType::Channel)
    } else if key.is_group() {
        Some(ChatType::Group)
    } else {
        matches!(key.form(), KeyForm::Direct { .. }).then_some(ChatType::Direct)
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::SendRule;

    use super::SendPolicy as Action;
    use super::*;
    use crate::KeyRules;

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
            let session = &KeyRules::default().canonical(key).unwrap();
            let subject = SendSubject { key: session, entry: Some(&entry), channel: None, chat_type: None };
            assert_eq!(resolve(policy.as_ref(), &subject), expect, "{key} {policy:?}");
        }
    }

    #[test]
    fn what_the_caller_knows_comes_before_row_and_key() {
        use serde_json::json;
        let policy = policy(None, vec![rule(Action::Deny, json!({"channel": "slack", "chatType": "group"}))]);
        let entry = entry(json!({"channel": "discord", "chatType": "direct"}));
        let key = &SessionKey::parse("agent:main:main").unwrap();
        let row = SendSubject { key, entry: Some(&entry), channel: None, chat_type: None };
        assert_eq!(resolve(policy.as_ref(), &row), SendPolicy::Allow);
        let known = SendSubject { channel: Some("Slack"), chat_type: Some(ChatType::Group), ..row };
        assert_eq!(resolve(policy.as_ref(), &known), SendPolicy::Deny);
    }
}
