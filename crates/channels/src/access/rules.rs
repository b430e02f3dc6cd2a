//! Decides whether somebody is heard, and what they may do (spec `channels.md` §2.1, §2.4-2.6,
//! `messages.md` §6). This is decided once for each event, at the door; everybody else is handed the
//! rights.

use openclaw_config::Config;

use super::sender_rules::{CallerRights, CommandSender, OwnerRules, judge};
use super::settings::{AccessSettings, DmPolicy, Entry, GroupPolicy, GroupRules};
use crate::{Address, Channel, ConversationInfo, ConversationKind, Sender};

/// Sender of a message and its conversation.
#[derive(Clone, Copy)]
pub struct Speaker<'a> {
    /// The platform.
    pub channel: &'a dyn Channel,
    /// The configuration.
    pub config: &'a Config,
    /// Access settings of the account.
    pub settings: &'a AccessSettings,
    /// `commands.ownerAllowFrom`, with ids in the place of names.
    pub owners: &'a [String],
    /// People who were let in by a code, as written.
    pub paired: &'a [String],
    /// Address of the conversation.
    pub address: &'a Address,
    /// Conversation in which the message was sent.
    pub conversation: &'a ConversationInfo,
    /// Sender of the message.
    pub sender: &'a Sender,
}

/// Decision about a sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SenderVerdict {
    /// The sender is heard.
    Heard(HeardSender),
    /// The sender is not heard, and is told how to pair.
    Pairing,
    /// The sender is not heard; the reason is for logs and traces.
    Unheard(&'static str),
}

/// Reason why nobody is heard in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Other groups are listed.
    NotListed,
    /// The allowlist that applies there is empty.
    NobodyListed,
    /// The group, or the topic, has a list of its own that names nobody.
    OwnListEmpty,
}

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotListed => "it is not in groups, where others are",
            Self::NobodyListed => "groupAllowFrom names nobody",
            Self::OwnListEmpty => "its own allowFrom names nobody",
        })
    }
}

/// Reason why a sender may give no command in a group, in the words that clients of OpenClaw know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// The group is switched off.
    GroupDisabled,
    /// The topic is.
    TopicDisabled,
    /// The sender is not authorised.
    Unauthorised,
    /// All groups of the account are switched off.
    GroupsDisabled,
    /// Other groups are listed.
    GroupNotListed,
}

impl Denial {
    /// Returns the text for the sender on a platform of this name.
    pub fn text(self, platform: &str) -> String {
        match self {
            Self::GroupDisabled => "This group is disabled.".to_owned(),
            Self::TopicDisabled => "This topic is disabled.".to_owned(),
            Self::Unauthorised => "You are not authorized to use this command.".to_owned(),
            Self::GroupsDisabled => format!("{platform} group commands are disabled."),
            Self::GroupNotListed => "This group is not allowed.".to_owned(),
        }
    }
}

/// Sender who is heard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeardSender {
    /// Rights of the sender.
    pub rights: CallerRights,
    /// True if the sender may press buttons that are for listed people: a list or a pairing names
    /// them. An open policy alone does not.
    pub is_listed: bool,
    /// The group, where it is one.
    pub group: Option<EffectiveGroup>,
}

/// Settings of a group and a topic of it, topic first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EffectiveGroup {
    /// True if messages must speak to the account (mention gating).
    pub requires_mention: bool,
    /// Additional system prompt: the group's text, then the topic's.
    pub system_prompt: Option<String>,
    /// The skills that are offered here; all where absent.
    pub skills: Option<Vec<String>>,
}

/// Reason codes of messages that nobody answers.
pub mod reasons {
    /// The policy of private chats.
    pub const DM_POLICY: &str = "dm-policy";
    /// The list of paired people could not be read.
    pub const PAIRING_UNREADABLE: &str = "pairing-unreadable";
    /// The policy of groups.
    pub const GROUP_POLICY: &str = "group-policy";
    /// The message did not speak to the account.
    pub const NO_MENTION: &str = "no-mention";
    /// A command of somebody who may give none.
    pub const COMMAND_UNAUTHORISED: &str = "command-unauthorised";
    /// A button where none may be pressed, or by somebody who may not.
    pub const INLINE_BUTTONS: &str = "inline-buttons";
    /// The message is from a program, or from the account itself.
    pub const BOT: &str = "bot";
}

/// Names of a sender in the list that applies to them.
#[derive(Clone, Copy)]
struct SenderListing {
    /// True if the list has entries.
    has_list: bool,
    /// True if it names the sender, or everybody; in a group the list of private chats may do so too.
    is_listed: bool,
}

impl Speaker<'_> {
    /// Decides.
    pub fn gate(&self) -> SenderVerdict {
        if self.sender.is_self || self.sender.is_bot {
            return SenderVerdict::Unheard(reasons::BOT);
        }
        match self.conversation.kind {
            ConversationKind::Direct => self.direct(),
            ConversationKind::Group | ConversationKind::Channel => self.group(),
        }
    }

    fn direct(&self) -> SenderVerdict {
        let list = self.private_list();
        let is_listed = self.names(&list);
        let anyone = list.iter().any(|entry| entry == "*");
        let heard = || self.heard(SenderListing { has_list: !list.is_empty(), is_listed: true }, None);
        match self.settings.dm_policy {
            DmPolicy::Disabled => SenderVerdict::Unheard(reasons::DM_POLICY),
            // An open door is one whose list says so too.
            DmPolicy::Open | DmPolicy::Allowlist | DmPolicy::Pairing if is_listed || anyone => heard(),
            DmPolicy::Open | DmPolicy::Allowlist => SenderVerdict::Unheard(reasons::DM_POLICY),
            DmPolicy::Pairing => SenderVerdict::Pairing,
        }
    }

    fn group(&self) -> SenderVerdict {
        match self.group_rules() {
            Some(rules) => self.in_group(&rules),
            None => SenderVerdict::Unheard(reasons::GROUP_POLICY),
        }
    }

    /// Returns the reason why nobody at all is heard in a group, if that looks like something
    /// missing in the configuration. `None` if somebody is heard, or if the configuration intends
    /// it.
    pub fn silence(&self) -> Option<Silence> {
        if self.conversation.kind == ConversationKind::Direct {
            return None;
        }
        let Some(rules) = self.group_rules() else {
            let is_wanted = self.policy(&[]) == GroupPolicy::Disabled;
            return (!is_wanted).then_some(Silence::NotListed);
        };
        let is_wanted = rules.iter().any(|rules| rules.enabled == Some(false));
        let has_own_list = own_list(&rules).is_some();
        let names_nobody = match self.policy(&rules) {
            GroupPolicy::Disabled => false,
            GroupPolicy::Open => has_own_list && self.heard_in(&rules).is_empty(),
            GroupPolicy::Allowlist => self.heard_in(&rules).is_empty(),
        };
        let silence = if has_own_list { Silence::OwnListEmpty } else { Silence::NobodyListed };
        (names_nobody && !is_wanted).then_some(silence)
    }

    /// Returns the message for a sender who is not heard in a group and chooses a menu command
    /// there, in the order of checks of OpenClaw 2026.2.9. `None` for whom neither a list of the
    /// account nor that of the owners names: strangers would make it talk in any group that they
    /// take it into.
    pub fn denial(&self) -> Option<Denial> {
        if self.conversation.kind == ConversationKind::Direct || self.sender.is_self || self.sender.is_bot {
            return None;
        }
        let group = self.settings.group(&self.address.target);
        let topic = group.and_then(|group| group.topic(self.topic()?));
        let is_listed = group.is_some() || self.settings.groups.is_empty();
        let rules: Vec<&GroupRules> = topic.into_iter().chain(group.map(|group| &group.rules)).collect();
        let lists =
            [own_list(&rules), self.settings.group_allow_from.as_ref(), self.settings.allow_from.as_ref()];
        let owners: Vec<String> =
            self.owners.iter().filter_map(|entry| self.channel.allow_entry(entry)).collect();
        if !self.names(&owners) && !lists.into_iter().any(|list| self.names(&self.entries(list))) {
            return None;
        }
        let heard_in = self.heard_in(&rules);
        let is_named = heard_in.iter().any(|entry| entry == "*") || self.names(&heard_in);
        let policy = self.policy(&rules);
        let is_off = |rules: Option<&GroupRules>| rules.is_some_and(|rules| rules.enabled == Some(false));
        if is_off(group.map(|group| &group.rules)) {
            Some(Denial::GroupDisabled)
        } else if is_off(topic) {
            Some(Denial::TopicDisabled)
        } else if own_list(&rules).is_some() && !is_named {
            Some(Denial::Unauthorised)
        } else if policy == GroupPolicy::Disabled {
            Some(Denial::GroupsDisabled)
        } else if policy == GroupPolicy::Allowlist && !is_named {
            Some(Denial::Unauthorised)
        } else {
            (!is_listed).then_some(Denial::GroupNotListed)
        }
    }

    /// Returns the rules of the group, most specific first; `None` if other groups are listed and
    /// this one is not.
    fn group_rules(&self) -> Option<Vec<&GroupRules>> {
        let groups = &self.settings.groups;
        let Some(group) = self.settings.group(&self.address.target) else {
            return groups.is_empty().then(Vec::new);
        };
        let topic = self.topic().and_then(|topic| group.topic(topic));
        // The first entry takes precedence.
        Some(topic.into_iter().chain([&group.rules]).collect())
    }

    /// The topic of a forum.
    fn topic(&self) -> Option<&str> {
        self.address.thread.as_deref().filter(|_| self.conversation.is_forum)
    }

    fn policy(&self, rules: &[&GroupRules]) -> GroupPolicy {
        let own = rules.iter().find_map(|rules| rules.group_policy);
        own.or(self.settings.group_policy).unwrap_or_default()
    }

    /// Returns the people who are heard under an allowlist, and under any policy if the group or
    /// the topic has a list of its own.
    fn heard_in(&self, rules: &[&GroupRules]) -> Vec<String> {
        let own =
            own_list(rules).or(self.settings.group_allow_from.as_ref()).or(self.settings.allow_from.as_ref());
        self.entries(own)
    }

    fn in_group(&self, rules: &[&GroupRules]) -> SenderVerdict {
        if rules.iter().any(|rules| rules.enabled == Some(false)) {
            return SenderVerdict::Unheard(reasons::GROUP_POLICY);
        }
        let list = self.heard_in(rules);
        let anyone = list.iter().any(|entry| entry == "*");
        let is_listed = anyone || self.names(&list);
        let is_heard = match self.policy(rules) {
            GroupPolicy::Disabled => false,
            GroupPolicy::Open => is_listed || own_list(rules).is_none(),
            GroupPolicy::Allowlist => is_listed,
        };
        if !is_heard {
            return SenderVerdict::Unheard(reasons::GROUP_POLICY);
        }
        let requires_mention = self.settings.requires_mention(&self.address.target, self.topic());
        // The group's words come first.
        let prompts = rules.iter().rev().filter_map(|rules| rules.system_prompt.as_deref());
        let prompts: Vec<&str> = prompts.map(str::trim).filter(|prompt| !prompt.is_empty()).collect();
        let group = EffectiveGroup {
            requires_mention,
            system_prompt: (!prompts.is_empty()).then(|| prompts.join("\n\n")),
            skills: rules.iter().find_map(|rules| rules.skills.clone()),
        };
        // Pairing gives no commands in groups.
        let is_owner = self.names(&self.entries(self.settings.allow_from.as_ref()));
        self.heard(
            SenderListing { has_list: !list.is_empty(), is_listed: is_listed || is_owner },
            Some(group),
        )
    }

    /// Returns the verdict on a sender who is heard. Under access groups only people who are listed
    /// may give commands (spec `channels.md` §2.5).
    fn heard(&self, listing: SenderListing, group: Option<EffectiveGroup>) -> SenderVerdict {
        let SenderListing { has_list, is_listed } = listing;
        let uses_groups = self.config.commands.use_access_groups.unwrap_or(true);
        let rights = self.rights(!uses_groups || (has_list && is_listed));
        SenderVerdict::Heard(HeardSender { rights, is_listed, group })
    }

    /// Returns the rights of the sender. `allowed_by_channel` is true if the lists of the channel let
    /// them give commands.
    fn rights(&self, allowed_by_channel: bool) -> CallerRights {
        let Address { channel, target, .. } = self.address;
        let from = match self.conversation.kind {
            ConversationKind::Direct => format!("{channel}:{target}"),
            ConversationKind::Group => format!("{channel}:group:{target}"),
            ConversationKind::Channel => format!("{channel}:channel:{target}"),
        };
        let ids = [Some(self.sender.id.as_str()), self.sender.phone.as_deref(), Some(from.as_str())];
        let ids: Vec<&str> = ids.into_iter().flatten().collect();
        let owners: Vec<&str> = self.owners.iter().map(String::as_str).collect();
        let allow_from = self.settings.allow_from.iter().flatten();
        let allow_from: Vec<&str> = allow_from.map(|Entry(entry)| entry.as_str()).collect();
        let by = CommandSender { channel, ids: &ids, allowed_by_channel };
        let rules =
            OwnerRules { owner_allow_from: &owners, allow_from: &allow_from, ..OwnerRules::default() };
        CallerRights { is_let_in: self.is_let_in(), ..judge(&by, &rules) }
    }

    /// True in a chat of somebody who was let in by hand while no owner is named: they stand in for
    /// the owner.
    fn is_let_in(&self) -> bool {
        let mut named = self.settings.allow_from.iter().flatten().filter(|Entry(entry)| entry != "*");
        let names_owners = !self.owners.is_empty() || named.next().is_some();
        self.conversation.kind == ConversationKind::Direct
            && !names_owners
            && self.settings.dm_policy != DmPolicy::Open
    }

    fn private_list(&self) -> Vec<String> {
        let mut list = self.entries(self.settings.allow_from.as_ref());
        list.extend(self.paired.iter().filter_map(|entry| self.channel.allow_entry(entry)));
        list
    }

    fn entries(&self, written: Option<&Vec<Entry>>) -> Vec<String> {
        written.into_iter().flatten().filter_map(|entry| self.channel.allow_entry(&entry.0)).collect()
    }

    fn names(&self, list: &[String]) -> bool {
        let own = self.channel.allow_entry(&self.sender.id).filter(|own| own != "*");
        own.is_some_and(|own| list.contains(&own))
    }
}

/// The list of a topic, or else of its group. It holds whatever the policy is, as in OpenClaw 2026.2.9; an empty one names nobody.
fn own_list<'a>(rules: &[&'a GroupRules]) -> Option<&'a Vec<Entry>> {
    rules.iter().find_map(|rules| rules.allow_from.as_ref())
}

/// Facts that decide if a message in a group is for the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Addressed {
    /// Messages must speak to the account.
    pub requires_mention: bool,
    /// True if a mention of the account could be detected.
    pub can_detect: bool,
    /// True if the account is named, or one of its patterns matches.
    pub was_mentioned: bool,
    /// True if the message answers one of the account's own.
    pub is_reply: bool,
    /// Anybody is named.
    pub has_any_mention: bool,
    /// True if the message is a command of a sender who may give it.
    pub is_command: bool,
}

impl Addressed {
    /// Returns true if the message counts as spoken to the account.
    pub fn is_addressed(self) -> bool {
        let bypasses =
            self.requires_mention && !self.was_mentioned && !self.has_any_mention && self.is_command;
        self.was_mentioned || self.is_reply || bypasses
    }

    /// Returns true if the message is only kept as context for later (spec `channels.md` §2.6). The
    /// message is kept as context if a mention could not be detected: an agent that answers
    /// everything because its name is not known is worse than one that waits to be named.
    pub fn is_skipped(self) -> bool {
        self.requires_mention && !self.is_addressed()
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::{Config, Environment};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Numbered;

    fn gate(
        section: &Value,
        paired: &[&str],
        kind: ConversationKind,
        thread: Option<&str>,
        sender: &str,
    ) -> SenderVerdict {
        asked(&of(section), (paired, &[]), kind, thread, sender, |speaker| speaker.gate())
    }

    fn of(section: &Value) -> Value {
        json!({"channels": {"telegram": section}})
    }

    fn asked<T>(
        document: &Value,
        (paired, owners): (&[&str], &[String]),
        kind: ConversationKind,
        thread: Option<&str>,
        sender: &str,
        ask: impl FnOnce(Speaker<'_>) -> T,
    ) -> T {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME".to_owned(), home.path().display().to_string())], home.path());
        let config = Config::from_json5(&document.to_string(), &env).unwrap();
        let settings = AccessSettings::of(&config, "telegram", "default").unwrap();
        let conversation = ConversationInfo {
            kind,
            title: None,
            thread_title: None,
            is_forum: thread.is_some(),
            space: None,
            descriptions: Vec::new(),
        };
        let target = if kind == ConversationKind::Direct { sender } else { "-100" };
        let address = Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: target.to_owned(),
            thread: thread.map(str::to_owned),
        };
        let sender = Sender { id: sender.to_owned(), ..Sender::default() };
        let paired: Vec<String> = paired.iter().map(|id| (*id).to_owned()).collect();
        ask(Speaker {
            channel: &Numbered,
            config: &config,
            settings: &settings,
            owners,
            paired: &paired,
            address: &address,
            conversation: &conversation,
            sender: &sender,
        })
    }

    fn outcome(gate: &SenderVerdict) -> &'static str {
        match gate {
            SenderVerdict::Heard(_) => "heard",
            SenderVerdict::Pairing => "pairing",
            SenderVerdict::Unheard(why) => why,
        }
    }

    /// Spec `channels.md` §2.1.
    #[test]
    fn private_chats_follow_their_policy() {
        let rows = [
            (json!({}), &[][..], "pairing"),
            (json!({}), &["7"], "heard"),
            (json!({"allowFrom": ["tg:7"]}), &[], "heard"),
            (json!({"allowFrom": [7]}), &[], "heard"),
            (json!({"allowFrom": ["seven"]}), &[], "pairing"),
            (json!({"dmPolicy": "allowlist", "allowFrom": ["8"]}), &[], "dm-policy"),
            (json!({"dmPolicy": "allowlist", "allowFrom": ["8"]}), &["7"], "heard"),
            (json!({"dmPolicy": "allowlist", "allowFrom": ["*"]}), &[], "heard"),
            (json!({"dmPolicy": "allowlist"}), &[], "dm-policy"),
            (json!({"dmPolicy": "disabled", "allowFrom": ["7"]}), &["7"], "dm-policy"),
            (json!({"dmPolicy": "open", "allowFrom": ["*"]}), &[], "heard"),
            // An account's own settings narrow the policy that it inherits.
            (
                json!({"dmPolicy": "open", "allowFrom": ["*"], "accounts": {"default": {"allowFrom": [8]}}}),
                &[],
                "dm-policy",
            ),
            (
                json!({"dmPolicy": "open", "allowFrom": ["*"], "accounts": {"default": {"allowFrom": [7]}}}),
                &[],
                "heard",
            ),
            (
                json!({"dmPolicy": "open", "allowFrom": ["*"], "accounts": {"default": {"allowFrom": [8]}}}),
                &["7"],
                "heard",
            ),
            (
                json!({"dmPolicy": "open", "allowFrom": ["*"], "accounts": {"default": {"allowFrom": []}}}),
                &[],
                "dm-policy",
            ),
            (json!({"dmPolicy": "open", "allowFrom": ["*"], "accounts": {"default": {}}}), &[], "heard"),
            (json!({"allowFrom": ["*"], "accounts": {"default": {"dmPolicy": "open"}}}), &[], "heard"),
        ];
        for (section, paired, expect) in rows {
            let gate = gate(&section, paired, ConversationKind::Direct, None, "7");
            assert_eq!(outcome(&gate), expect, "{section} {paired:?}");
        }
    }

    /// Spec `channels.md` §2.4.
    #[test]
    fn groups_follow_theirs() {
        let rows = [
            (json!({}), "group-policy"),
            (json!({"groupPolicy": "open"}), "heard"),
            (json!({"groupPolicy": "open", "groups": {"-200": {}}}), "group-policy"),
            (json!({"groupPolicy": "open", "groups": {"*": {}}}), "heard"),
            (json!({"groupPolicy": "open", "groups": {"-100": {"enabled": false}}}), "group-policy"),
            (json!({"groupPolicy": "disabled", "groupAllowFrom": [7]}), "group-policy"),
            (json!({"groupAllowFrom": [7]}), "heard"),
            (json!({"groupAllowFrom": [8], "allowFrom": [7]}), "group-policy"),
            (json!({"allowFrom": [7]}), "heard"),
            (json!({"groupAllowFrom": ["*"]}), "heard"),
            (json!({"groups": {"-100": {"allowFrom": [7]}}}), "heard"),
            (json!({"groups": {"-100": {"groupPolicy": "open"}}}), "heard"),
            // A list of the group's or the topic's own holds under every policy.
            (json!({"groupPolicy": "open", "groups": {"-100": {"allowFrom": [8]}}}), "group-policy"),
            (json!({"groupPolicy": "open", "groups": {"-100": {"allowFrom": [8, 7]}}}), "heard"),
            (json!({"groupPolicy": "open", "groups": {"-100": {"allowFrom": ["*"]}}}), "heard"),
            (json!({"groupPolicy": "open", "groups": {"-100": {"allowFrom": []}}}), "group-policy"),
            (json!({"groupPolicy": "open", "groups": {"-100": {"allowFrom": ["seven"]}}}), "group-policy"),
            (json!({"groupPolicy": "open", "groups": {"*": {"allowFrom": [8]}}}), "group-policy"),
            (
                json!({"groupPolicy": "open", "groups": {"-100": {"groupPolicy": "open", "allowFrom": [8]}}}),
                "group-policy",
            ),
            (json!({"groupPolicy": "open", "groupAllowFrom": [8]}), "heard"),
            (
                json!({"groupPolicy": "open", "groupAllowFrom": [7], "groups": {"-100": {"allowFrom": [8]}}}),
                "group-policy",
            ),
            (
                json!({"groupPolicy": "open", "groups": {"-100": {"topics": {"5": {"allowFrom": [8]}}}}}),
                "group-policy",
            ),
            (
                json!({"groupPolicy": "open", "groups": {"-100": {"topics": {"*": {"allowFrom": [8]}}}}}),
                "group-policy",
            ),
            (
                json!({"groupPolicy": "open", "groups": {"-100": {"topics": {"6": {"allowFrom": [8]}}}}}),
                "heard",
            ),
            (
                json!({"groupPolicy": "open", "groups": {"-100": {"allowFrom": [8], "topics": {"5": {"allowFrom": [7]}}}}}),
                "heard",
            ),
            (
                json!({"groupPolicy": "open", "groups": {"-100": {"allowFrom": [8], "topics": {"5": {"skills": []}}}}}),
                "group-policy",
            ),
            (json!({"groupPolicy": "disabled", "groups": {"-100": {"allowFrom": [7]}}}), "group-policy"),
            (json!({"groups": {"-100": {"topics": {"5": {"groupPolicy": "open"}}}}}), "heard"),
            (
                json!({"groupPolicy": "open", "groups": {"-100": {"topics": {"5": {"enabled": false}}}}}),
                "group-policy",
            ),
            (
                json!({"groupPolicy": "open", "groups": {"-100": {"topics": {"6": {"enabled": false}}}}}),
                "heard",
            ),
        ];
        for (section, expect) in rows {
            // A paired person is heard in private only.
            let gate = gate(&section, &["7"], ConversationKind::Group, Some("5"), "7");
            assert_eq!(outcome(&gate), expect, "{section}");
        }
    }

    /// Spec `channels.md` §7.5.
    #[test]
    fn who_is_named_somewhere_hears_why_a_command_of_the_menu_is_refused() {
        let off = json!({"enabled": false});
        let rows = [
            (json!({"allowFrom": [7], "groups": {"-100": off}}), Some(Denial::GroupDisabled)),
            (json!({"allowFrom": [7], "groups": {"*": off}}), Some(Denial::GroupDisabled)),
            (
                json!({"allowFrom": [7], "groups": {"-100": {"topics": {"5": off}}}}),
                Some(Denial::TopicDisabled),
            ),
            (json!({"allowFrom": [7], "groups": {"-100": {"topics": {"6": off}}}}), None),
            (
                json!({"allowFrom": [7], "groupPolicy": "open", "groups": {"-100": {"allowFrom": [8]}}}),
                Some(Denial::Unauthorised),
            ),
            (json!({"allowFrom": [7], "groupAllowFrom": [8]}), Some(Denial::Unauthorised)),
            (json!({"allowFrom": [7], "groupPolicy": "disabled"}), Some(Denial::GroupsDisabled)),
            (json!({"groupAllowFrom": [7], "groups": {"-200": {}}}), Some(Denial::GroupNotListed)),
            (json!({"allowFrom": [7]}), None),
            // Strangers.
            (json!({"allowFrom": [8], "groups": {"-100": off}}), None),
            (json!({"allowFrom": ["*"], "groupPolicy": "open", "groups": {"-100": off}}), None),
            (json!({"allowFrom": ["*"], "groupPolicy": "open", "groups": {"-200": {}}}), None),
            (json!({"groupPolicy": "disabled"}), None),
        ];
        let told = |section: &Value, sender: &str, owners: &[String]| {
            let ask = |speaker: Speaker<'_>| {
                // A person who is heard is told nothing.
                let is_heard = matches!(speaker.gate(), SenderVerdict::Heard(_));
                (is_heard, speaker.denial())
            };
            asked(&of(section), (&[], owners), ConversationKind::Group, Some("5"), sender, ask)
        };
        for (section, expect) in &rows {
            let (is_heard, denial) = told(section, "7", &[]);
            assert_eq!(denial, *expect, "{section}");
            assert!(!is_heard || denial.is_none(), "{section}");
        }
        let section = json!({"groups": {"-100": off}});
        assert_eq!(told(&section, "7", &["telegram:7".to_owned()]).1, Some(Denial::GroupDisabled));
        assert_eq!(told(&section, "7", &["*".to_owned()]).1, None);
    }

    #[test]
    fn topics_go_before_their_group_and_that_before_all_others() {
        let section = json!({"groupPolicy": "open", "groups": {
            "*": {"requireMention": false},
            "-100": {"requireMention": true, "systemPrompt": "Group.", "skills": ["a"],
                     "topics": {"5": {"requireMention": false, "systemPrompt": "Topic.", "skills": []}}},
        }});
        let SenderVerdict::Heard(admission) = gate(&section, &[], ConversationKind::Group, Some("5"), "7")
        else {
            panic!()
        };
        let group = admission.group.unwrap();
        assert_eq!(group.system_prompt.as_deref(), Some("Group.\n\nTopic."));
        assert_eq!((group.requires_mention, group.skills), (false, Some(vec![])));
        assert!(!admission.is_listed);
    }

    /// Spec `channels.md` §2.4: of all groups a group takes whether it must be mentioned, and nothing else that is told of here.
    #[test]
    fn what_a_group_does_not_say_all_groups_say() {
        let rows = [
            (json!({}), true),
            (json!({"-100": {}}), true),
            (json!({"*": {}}), true),
            (json!({"*": {"requireMention": false}}), false),
            (json!({"*": {"requireMention": false}, "-100": {"systemPrompt": "Brief."}}), false),
            (json!({"*": {"requireMention": false}, "-100": {"requireMention": true}}), true),
            (json!({"*": {"requireMention": true}, "-100": {"requireMention": false}}), false),
            (json!({"*": {"requireMention": false}, "-100": {"topics": {"5": {"skills": []}}}}), false),
            (
                json!({"*": {"requireMention": false}, "-100": {"topics": {"5": {"requireMention": true}}}}),
                true,
            ),
            (json!({"-100": {"requireMention": false, "topics": {"*": {"requireMention": true}}}}), true),
            // Topics of all groups are for groups without an entry.
            (json!({"*": {"topics": {"5": {"requireMention": false}}}}), false),
            (json!({"*": {"topics": {"5": {"requireMention": false}}}, "-100": {}}), true),
        ];
        for (groups, expect) in rows {
            let section = json!({"groupPolicy": "open", "groups": groups});
            let SenderVerdict::Heard(heard) = gate(&section, &[], ConversationKind::Group, Some("5"), "7")
            else {
                panic!("{groups}")
            };
            assert_eq!(heard.group.unwrap().requires_mention, expect, "{groups}");
        }
        let section = json!({"groupPolicy": "open", "groups": {
            "*": {"enabled": false, "groupPolicy": "disabled", "allowFrom": [8], "skills": [], "systemPrompt": "All."},
            "-100": {},
        }});
        let heard = gate(&section, &[], ConversationKind::Group, None, "7");
        let group = EffectiveGroup { requires_mention: true, ..EffectiveGroup::default() };
        assert_eq!(heard, SenderVerdict::Heard(HeardSender { group: Some(group), ..HeardSender::default() }));
    }

    /// Spec `channels.md` §2.6.
    #[test]
    fn a_group_is_answered_where_it_speaks_to_the_account() {
        let base = Addressed { requires_mention: true, can_detect: true, ..Addressed::default() };
        let rows = [
            (Addressed { is_reply: true, ..base }, (true, false)),
            (base, (false, true)),
            (Addressed { can_detect: false, ..base }, (false, true)),
            (Addressed { is_command: true, ..base }, (true, false)),
            (Addressed { is_command: true, has_any_mention: true, ..base }, (false, true)),
            (Addressed { was_mentioned: true, ..base }, (true, false)),
            (Addressed { requires_mention: false, ..base }, (false, false)),
        ];
        for (facts, expect) in rows {
            assert_eq!((facts.is_addressed(), facts.is_skipped()), expect, "{facts:?}");
        }
    }

    /// Spec `channels.md` §2.5, `messages.md` §6.
    #[test]
    fn a_sender_who_is_heard_has_the_rights_that_the_lists_give() {
        use ConversationKind::{Direct, Group};
        let by_list = |commands: bool, owner: bool| (commands, owner, false);
        let rows = [
            (json!({"allowFrom": [7]}), &[][..], Direct, &[][..], (true, true, false), true),
            (json!({"dmPolicy": "open", "allowFrom": ["*"]}), &[], Direct, &[], by_list(true, false), true),
            // Somebody who was let in by a code stands in for an owner while none is named.
            (json!({}), &["7"], Direct, &[], (true, false, true), true),
            (json!({}), &["7"], Direct, &["telegram:8"], by_list(false, false), true),
            (json!({"allowFrom": [8]}), &["7"], Direct, &[], by_list(true, false), true),
            // An open group gives no commands to people whom no list names.
            (json!({"groupPolicy": "open"}), &[], Group, &[], by_list(false, false), false),
            (json!({"groupPolicy": "open", "allowFrom": [7]}), &[], Group, &[], by_list(true, true), true),
            (json!({"groupAllowFrom": [7]}), &[], Group, &["8"], by_list(false, false), true),
            (json!({"groupAllowFrom": [7]}), &[], Group, &["tg:7"], by_list(true, true), true),
        ];
        for (section, paired, kind, owners, expect, is_listed) in rows {
            let owners: Vec<String> = owners.iter().map(|entry| (*entry).to_owned()).collect();
            let SenderVerdict::Heard(heard) =
                asked(&of(&section), (paired, &owners), kind, None, "7", |speaker| speaker.gate())
            else {
                panic!("{section} {kind:?}")
            };
            let CallerRights { may_command, is_owner, is_let_in, .. } = heard.rights;
            assert_eq!((may_command, is_owner, is_let_in), expect, "{section} {kind:?} {owners:?}");
            assert_eq!(heard.is_listed, is_listed, "{section} {kind:?}");
        }
    }

    #[test]
    fn without_access_groups_everybody_who_is_heard_may_give_commands() {
        for (uses_groups, expect) in [(true, false), (false, true)] {
            let mut document = of(&json!({"groupPolicy": "open"}));
            document["commands"] = json!({"useAccessGroups": uses_groups});
            let verdict =
                asked(&document, (&[], &[]), ConversationKind::Group, None, "7", |speaker| speaker.gate());
            let SenderVerdict::Heard(heard) = verdict else { panic!("{uses_groups}") };
            assert_eq!(heard.rights.may_command, expect, "{uses_groups}");
        }
    }
}
