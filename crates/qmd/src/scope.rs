//! Sessions that may search.

use openclaw_config::settings::{RuleMatch, SendPolicyRules};
use openclaw_protocol::PeerKind;
use openclaw_protocol::params::sessions::SendPolicy;

/// Facts of a session key that rules are compared with. A sub-agent's has none.
#[derive(Debug, Default, PartialEq, Eq)]
struct ScopeSubject {
    /// The whole key in lower case.
    key: String,
    /// The key without `agent:<id>:`.
    rest: String,
    channel: Option<String>,
    chat_type: Option<PeerKind>,
}

/// Checks whether a session may search.
///
/// # Errors
/// The refusal, for the log.
pub(crate) fn check(rules: &SendPolicyRules, session: &str) -> Result<(), String> {
    let subject = ScopeSubject::of(session);
    let matching = rules.rules.iter().find(|rule| subject.fits(&rule.matches));
    let action = matching.map(|rule| rule.action).or(rules.default).unwrap_or(SendPolicy::Allow);
    match action {
        SendPolicy::Allow => Ok(()),
        SendPolicy::Deny => Err(format!(
            "qmd search denied by scope (channel={}, chatType={}, session={session})",
            subject.channel.as_deref().unwrap_or("unknown"),
            subject.chat_type.map_or("unknown", PeerKind::as_str),
        )),
    }
}

impl ScopeSubject {
    fn of(session: &str) -> Self {
        let key = session.trim().to_lowercase();
        let own = key.strip_prefix("agent:").and_then(|rest| Some(rest.split_once(':')?.1));
        let rest = own.unwrap_or(&key).to_owned();
        if rest.is_empty() || rest.starts_with("subagent:") {
            return Self { key, rest, ..Self::default() };
        }
        let mut tokens = rest.split(':');
        let (first, second) = (tokens.next(), tokens.next());
        let is_of_channel = matches!(second, Some("group" | "channel" | "direct" | "dm"));
        let channel = first.filter(|_| is_of_channel).map(str::to_owned);
        let chat_type = if rest.contains(":group:") {
            PeerKind::Group
        } else if rest.contains(":channel:") {
            PeerKind::Channel
        } else {
            PeerKind::Direct
        };
        Self { key, rest, channel, chat_type: Some(chat_type) }
    }

    fn fits(&self, rule: &RuleMatch) -> bool {
        let given = |text: &Option<String>| {
            text.as_deref().map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty())
        };
        given(&rule.channel).is_none_or(|wanted| self.channel.as_deref() == Some(wanted.as_str()))
            && rule.chat_type.is_none_or(|wanted| self.chat_type == Some(wanted))
            && given(&rule.key_prefix)
                .is_none_or(|prefix| self.rest.starts_with(&prefix) || self.key.starts_with(&prefix))
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::SendRule;

    use super::*;
    use crate::tests::golden;

    #[test]
    fn sessions_are_read_as_recorded() {
        let rules = SendPolicyRules::direct_chats();
        for case in golden("memory-text.json")["qmd_scope"]["cases_default_scope"].as_array().unwrap() {
            let key = case[0].as_str().unwrap_or_default();
            let subject = ScopeSubject::of(key);
            assert_eq!(subject.channel.as_deref(), case[1].as_str(), "{key}");
            assert_eq!(subject.chat_type.map(PeerKind::as_str), case[2].as_str(), "{key}");
            assert_eq!(check(&rules, key).is_ok(), case[3], "{key}");
        }
        let denied = check(&rules, "agent:main:discord:group:123").unwrap_err();
        assert_eq!(denied, golden("memory-qmd.json")["scope_denied_log"]);
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rule = |action, channel: Option<&str>, prefix: Option<&str>| SendRule {
            action,
            matches: RuleMatch {
                channel: channel.map(str::to_owned),
                key_prefix: prefix.map(str::to_owned),
                ..RuleMatch::default()
            },
        };
        let rules = SendPolicyRules {
            default: None,
            rules: vec![
                rule(SendPolicy::Deny, None, Some("discord:group:1")),
                rule(SendPolicy::Allow, Some("Discord"), None),
            ],
        };
        for (key, expect) in [
            ("agent:main:discord:group:12", false),
            ("agent:main:discord:group:2", true),
            // As in session.sendPolicy, nothing said is allowed.
            ("agent:main:slack:group:2", true),
            ("agent:main:main", true),
        ] {
            assert_eq!(check(&rules, key).is_ok(), expect, "{key}");
        }
    }
}
