//! Access settings in a channel's section: the keys that all platforms share (spec `channels.md`
//! §1.2, §1.3).

use std::collections::BTreeMap;

use openclaw_config::{Config, account_keys};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::Account;

/// The settings of one account: its own keys over its channel's, defaults last.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AccessSettings {
    /// Policy of private chats.
    pub dm_policy: DmPolicy,
    /// Allowlist, as written.
    pub allow_from: Option<Vec<Entry>>,
    /// Allowlist of groups; `allow_from` where absent.
    pub group_allow_from: Option<Vec<Entry>>,
    /// Policy of groups.
    pub group_policy: Option<GroupPolicy>,
    /// Groups by id; `*` is any other. If one is listed, all other groups are not heard.
    pub groups: BTreeMap<String, GroupSettings>,
    /// Messages of a group that are told to the agent with the next one.
    pub history_limit: Option<u32>,
    /// Permission of the channel to write the configuration; absent allows it.
    pub config_writes: Option<bool>,
    /// Selection of reactions that the agent is told.
    pub reaction_notifications: ReactionNotifications,
    /// Policy for error messages in its chats; see [`AccessSettings::error_policy`].
    error_policy: Option<ErrorPolicy>,
    /// True if the reader's device stays silent for error messages.
    pub silent_error_replies: bool,
    /// `dm`, where a platform keeps policy and list in a section of their own.
    dm: Direct,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Direct {
    policy: Option<DmPolicy>,
    allow_from: Option<Vec<Entry>>,
}

/// An id in a list: people write numbers and texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry(pub String);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            _ => Err(serde::de::Error::custom("an id is a text or a number")),
        }
    }
}

/// `dmPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DmPolicy {
    /// Strangers are given a code.
    #[default]
    Pairing,
    /// Hears only listed people.
    Allowlist,
    /// Hears everybody.
    Open,
    /// Hears nobody.
    Disabled,
}

impl DmPolicy {
    /// Returns the effective policy if the list of the account does not let everybody in. `open`
    /// applies only if policy and list both say so: an account that inherits `open` from its
    /// channel and lists people itself is for these people.
    fn of_a_list(self) -> Self {
        match self {
            Self::Open => Self::Allowlist,
            Self::Pairing | Self::Allowlist | Self::Disabled => self,
        }
    }

    /// Returns the name as it is written in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pairing => "pairing",
            Self::Allowlist => "allowlist",
            Self::Open => "open",
            Self::Disabled => "disabled",
        }
    }
}

/// `groupPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupPolicy {
    /// Hears only listed people (decision 20).
    #[default]
    Allowlist,
    /// Hears everybody.
    Open,
    /// Hears nobody.
    Disabled,
}

/// `reactionNotifications`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReactionNotifications {
    /// Reports no reactions.
    Off,
    /// Reports reactions to messages of ours.
    #[default]
    Own,
    /// All.
    All,
}

/// `errorPolicy`: what a chat is told of runs and tools that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorPolicy {
    /// Reports each error.
    #[default]
    Always,
    /// Reports the same error only once in a while.
    Once,
    /// Reports no errors.
    Silent,
}

/// `groups.<id>`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupSettings {
    /// Rules that a group and each of its topics can have.
    #[serde(flatten)]
    pub rules: GroupRules,
    /// Tools in the group.
    pub tools: Option<Value>,
    /// Tools by sender.
    pub tools_by_sender: Option<Value>,
    /// Topics by id; `*` is any other.
    pub topics: BTreeMap<String, GroupRules>,
}

/// Rules of a group or a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupRules {
    /// False if messages there are ignored.
    pub enabled: Option<bool>,
    /// True if messages must mention the account.
    pub require_mention: Option<bool>,
    /// Policy that decides which senders are heard.
    pub group_policy: Option<GroupPolicy>,
    /// Allowlist, by id.
    pub allow_from: Option<Vec<Entry>>,
    /// Skills.
    pub skills: Option<Vec<String>>,
    /// Additional system prompt.
    pub system_prompt: Option<String>,
    /// Policy for error messages.
    pub error_policy: Option<ErrorPolicy>,
}

impl GroupSettings {
    /// Returns the rules of a topic.
    pub(super) fn topic(&self, id: &str) -> Option<&GroupRules> {
        self.topics.get(id).or_else(|| self.topics.get("*"))
    }
}

impl AccessSettings {
    /// The settings of an account of a channel.
    ///
    /// # Errors
    /// When the section says something that has no meaning: then nobody is heard.
    pub fn of(config: &Config, channel: &str, account: &str) -> Result<Self, serde_json::Error> {
        let keys = account_keys(config.document(), channel, account);
        let settings: Self = serde_json::from_value(Value::Object(keys))?;
        let for_all = config.document().pointer("/channels/defaults/groupPolicy").cloned();
        let for_all = for_all.map(serde_json::from_value).transpose()?;
        let allow_from = settings.allow_from.or(settings.dm.allow_from.clone());
        let policy = settings.dm.policy.unwrap_or(settings.dm_policy);
        let lets_all_in = allow_from.iter().flatten().any(|entry| entry.0.trim() == "*");
        Ok(Self {
            dm_policy: if lets_all_in { policy } else { policy.of_a_list() },
            allow_from,
            group_policy: settings.group_policy.or(for_all),
            ..settings
        })
    }

    /// Every list of who is heard.
    pub fn lists_mut(&mut self) -> impl Iterator<Item = &mut Vec<Entry>> {
        let groups = self.groups.values_mut();
        let rules =
            groups.flat_map(|group| std::iter::once(&mut group.rules).chain(group.topics.values_mut()));
        let of_groups = rules.filter_map(|rules| rules.allow_from.as_mut());
        self.allow_from.iter_mut().chain(self.group_allow_from.iter_mut()).chain(of_groups)
    }

    /// The entries of `toolsBySender` in its groups, which name people too.
    pub fn senders_with_tools(&self) -> impl Iterator<Item = &str> {
        let rules = self.groups.values().filter_map(|group| group.tools_by_sender.as_ref()?.as_object());
        rules.flat_map(|rules| rules.keys().map(String::as_str))
    }

    /// Replaces names by their ids where the account knows them.
    #[must_use]
    pub fn with_ids(mut self, account: &dyn Account) -> Self {
        for Entry(entry) in self.lists_mut().flatten() {
            if let Some(id) = account.id_of_name(entry) {
                *entry = id;
            }
        }
        self
    }

    /// Returns the settings of a group: its own entry, or else that of all groups, as a whole.
    pub(super) fn group(&self, id: &str) -> Option<&GroupSettings> {
        self.groups.get(id).or_else(|| self.groups.get("*"))
    }

    /// Returns true if messages of a group must mention the account: by the rule of the topic, else
    /// of the group, else of all groups. Besides tools it is all that a group with an entry of its
    /// own takes from `*` (spec `channels.md` §2.4).
    pub fn requires_mention(&self, group: &str, topic: Option<&str>) -> bool {
        let own = self.group(group);
        let topic = topic.and_then(|topic| own?.topic(topic));
        let rules = [topic, own.map(|group| &group.rules), self.groups.get("*").map(|group| &group.rules)];
        rules.into_iter().flatten().find_map(|rules| rules.require_mention).unwrap_or(true)
    }

    /// Returns the policy for error messages in a conversation: that of its topic, else of its
    /// group, else of the account.
    pub fn error_policy(&self, group: Option<&str>, topic: Option<&str>) -> ErrorPolicy {
        let own = group.and_then(|group| self.group(group));
        let topic = topic.and_then(|topic| own?.topic(topic)).and_then(|rules| rules.error_policy);
        topic.or_else(|| own?.rules.error_policy).or(self.error_policy).unwrap_or_default()
    }

    /// Returns true if the channel may write the configuration.
    pub fn may_write_config(&self) -> bool {
        self.config_writes.unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use serde_json::json;

    use super::*;

    fn of(channels: &Value, channel: &str, account: &str) -> AccessSettings {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME".to_owned(), home.path().display().to_string())], home.path());
        let config = Config::from_json5(&json!({ "channels": channels }).to_string(), &env).unwrap();
        AccessSettings::of(&config, channel, account).unwrap()
    }

    #[test]
    fn errors_are_told_as_topic_group_or_account_say() {
        use ErrorPolicy::{Always, Once, Silent};
        let groups = json!({
            "*": {"errorPolicy": "silent"},
            "-1": {"topics": {"5": {"errorPolicy": "always"}, "6": {}}},
            "-2": {"errorPolicy": "silent", "topics": {"*": {"errorPolicy": "once"}}},
        });
        let channels = json!({"telegram": {"errorPolicy": "once", "groups": groups, "accounts": {
            "a": {}, "b": {"errorPolicy": "silent", "silentErrorReplies": true, "groups": {}}, "c": {"groups": {}},
        }}});
        let rows = [
            ("a", None, None, Once),
            ("a", None, Some("5"), Once),
            ("a", Some("-9"), None, Silent),
            ("a", Some("-1"), None, Once),
            ("a", Some("-1"), Some("5"), Always),
            ("a", Some("-1"), Some("6"), Once),
            ("a", Some("-1"), Some("7"), Once),
            ("a", Some("-2"), None, Silent),
            ("a", Some("-2"), Some("5"), Once),
            ("b", None, None, Silent),
            ("c", Some("-2"), Some("5"), Once),
        ];
        for (account, group, topic, expect) in rows {
            let found = of(&channels, "telegram", account);
            assert_eq!(found.error_policy(group, topic), expect, "{account} {group:?} {topic:?}");
            assert_eq!(found.silent_error_replies, account == "b");
        }
        assert_eq!(of(&json!({}), "telegram", "default").error_policy(None, None), Always);
    }

    /// Spec `channels.md` §1.3.
    #[test]
    fn an_account_takes_nothing_away_by_saying_nothing() {
        let channels = json!({
            "defaults": {"groupPolicy": "disabled"},
            "telegram": {"dmPolicy": "allowlist", "allowFrom": ["+1", 7], "accounts": {"B ": {"allowFrom": ["+2"]}, "c": {}}},
        });
        let list = |account| {
            let found = of(&channels, "telegram", account);
            (found.dm_policy, found.allow_from.unwrap(), found.group_policy)
        };
        let entries = |all: &[&str]| all.iter().map(|one| Entry((*one).to_owned())).collect::<Vec<_>>();
        let disabled = Some(GroupPolicy::Disabled);
        assert_eq!(list("b"), (DmPolicy::Allowlist, entries(&["+2"]), disabled));
        assert_eq!(list("c"), (DmPolicy::Allowlist, entries(&["+1", "7"]), disabled));
        assert_eq!(of(&json!({}), "telegram", "default").dm_policy, DmPolicy::Pairing);
        let open = json!({"telegram": {"dmPolicy": "open", "allowFrom": [" * "], "accounts": {"b": {"allowFrom": [5]}, "c": {}}}});
        assert_eq!(of(&open, "telegram", "b").dm_policy, DmPolicy::Allowlist);
        assert_eq!(of(&open, "telegram", "c").dm_policy, DmPolicy::Open);
        let nested =
            of(&json!({"slack": {"dm": {"policy": "open", "allowFrom": ["*"]}}}), "slack", "default");
        assert_eq!((nested.dm_policy, nested.allow_from), (DmPolicy::Open, Some(entries(&["*"]))));
    }
}
