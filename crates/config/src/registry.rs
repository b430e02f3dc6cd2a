//! Chat platforms that OpenClaw knows, and what is true of each whether or not this build has it:
//! names, defaults of its settings, and the shape and rules of its section. One row a platform; a
//! row with rules of its own is a file.
//!
//! The table stands this low because the checks of the configuration, session keys, the policy of
//! sandboxes, commands and replies all read it. What only the platform itself can say is behind the
//! `Channel` trait of `openclaw-channels`, whose `info` is the row of this table.

mod section_rules;
mod telegram;

use serde::Serialize;
use serde_json::Value;

pub use telegram::TELEGRAM;

use crate::document_rule::{DocumentRule, executable};
use crate::reply_to_mode::ReplyToMode;
use section_rules::{account_dm_policy, dm_policy, nested_dm_policy, slack_http, whatsapp_account};

/// Chat platform in the table.
#[derive(Debug, Clone, Copy)]
pub struct ChannelInfo {
    /// Id in configuration, session keys and frames.
    pub id: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Longer name.
    pub detail_label: &'static str,
    /// Symbol that clients show.
    pub system_image: &'static str,
    /// Other spellings of the id.
    pub aliases: &'static [&'static str],
    /// Prefixes beside the id that name it in lists of people, as in `tg:123`.
    pub entry_prefixes: &'static [&'static str],
    /// True for OpenClaw's own platforms; plugins bring the others.
    pub is_core: bool,
    /// True if its section is checked when the file is read. OpenClaw 2026.2.9 leaves those of most
    /// plugins to the plugin, so that a section may hold any value and any key.
    pub(crate) is_section_checked: bool,
    /// True if this version has it: the gateway's list of platforms has its crate.
    pub is_built: bool,
    /// True if messages can be sent to it; `webchat` exists on gateway connections only.
    pub deliverable: bool,
    /// Variables that hold its credentials.
    pub credentials: &'static [&'static str],
    /// Variables among them that are taken over from a login shell (spec `config.md` §2.2).
    pub shell_credentials: &'static [&'static str],
    /// Keys of its section, and of an account, that hold credentials.
    pub credential_keys: &'static [&'static str],
    /// True if it has a menu of commands of its own.
    pub native_commands: bool,
    /// Groups that are rooms.
    pub rooms: Rooms,
    /// Effect of a thread in a group on the session key.
    pub group_threads: ThreadStyle,
    /// Label that begins the envelope of a message even without a date; `None` if no envelope has one.
    pub envelope_label: Option<&'static str>,
    /// Place of the policy of private chats.
    pub private_policy: PolicyPlace,
    /// True if an allowlist that names nobody means the own number.
    pub hears_own_number: bool,
    /// Defaults of its replies.
    pub replies: ReplyDefaults,
    /// Paths of the keys of its section that are acted on, one a line. Generated from the types of
    /// the platform's crate.
    pub keys: &'static str,
    /// Rules on its section, by their place below it; `""` is the section itself.
    pub(crate) rules: &'static [(&'static str, DocumentRule)],
    /// Lists of its people; `None` if their entries are not checked.
    pub(crate) people: Option<PeopleLists>,
    /// Puts values of the section, or of an account, into the form in which they are used.
    pub(crate) normalize: Option<fn(&mut Value)>,
}

impl ChannelInfo {
    /// Returns an entry of a list without the platform's names before it, whatever their case:
    /// `tg:telegram: 5` is `5`.
    pub fn bare_entry<'a>(&self, mut entry: &'a str) -> &'a str {
        while let Some((_, rest)) = entry.split_once(':').filter(|(name, _)| self.is_named_by(name)) {
            entry = rest.trim_start();
        }
        entry
    }

    /// True if a word before an entry of a list names the platform, whatever its case.
    pub fn is_named_by(&self, word: &str) -> bool {
        word.eq_ignore_ascii_case(self.id)
            || self.entry_prefixes.iter().any(|prefix| word.eq_ignore_ascii_case(prefix))
    }

    /// Returns the path of a place below the platform's section.
    pub(crate) fn path_of(&self, below: &str) -> String {
        let point = if below.is_empty() { "" } else { "." };
        format!("channels.{}{point}{below}", self.id)
    }
}

/// Groups of a platform that are rooms: chat type `channel` (spec `channels.md` §1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rooms {
    /// No group is a room.
    None,
    /// Groups may be rooms.
    Some,
    /// Every group is a room.
    All,
}

/// Effect of a thread on the session key (spec `sessions.md` §1.3, `channels.md` §3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadStyle {
    /// `:thread:<id>` is added to the conversation's key.
    Suffix,
    /// The thread is a room of its own and takes the room's place; the room becomes its parent.
    Room,
    /// `<chat>:topic:<id>` takes the chat's place; the chat becomes its parent.
    Topic,
}

/// Lists of a platform's people in the configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeopleLists {
    /// Places of the lists below the section, and below each account.
    pub(crate) lists: &'static [&'static str],
    /// Returns the reason why an entry can match nobody; `None` if it may match somebody.
    pub(crate) fault: fn(&str) -> Option<String>,
}

/// Place of the keys that say who is heard in private chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyPlace {
    /// `dmPolicy` and `allowFrom` of the platform's section.
    Section,
    /// `policy` and `allowFrom` of an object in the section.
    Within(&'static str),
    /// Not checked.
    Unchecked,
}

/// Settings of replies where the configuration says nothing (spec `streaming.md` §1–§4, §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyDefaults {
    /// Characters of a message, in the platform's unit.
    pub text_limit: usize,
    /// Characters that are gathered before a block is sent; `None` is as much as a block has.
    pub coalesce_min: Option<usize>,
    /// Messages that are quoted.
    pub reply_to: ReplyToMode,
    /// True if a reply tag counts although nothing is to be quoted (spec `messages.md` §8.2).
    pub keeps_tags: bool,
    /// True if the agents' default switches blocks on; elsewhere the platform's own setting does.
    pub follows_block_default: bool,
    /// Characters of a draft; `None` if the platform has no drafts.
    pub draft_limit: Option<usize>,
}

impl ReplyDefaults {
    /// Defaults of a platform that differs in nothing, also of one that is not in the table.
    pub const OTHER: Self = Self {
        text_limit: 4000,
        coalesce_min: None,
        reply_to: ReplyToMode::All,
        keeps_tags: false,
        follows_block_default: false,
        draft_limit: None,
    };

    const fn of_length(text_limit: usize) -> Self {
        Self { text_limit, ..Self::OTHER }
    }

    const fn coalesced(text_limit: usize, reply_to: ReplyToMode) -> Self {
        Self { text_limit, coalesce_min: Some(1500), reply_to, ..Self::OTHER }
    }
}

/// Row of a platform that plugins bring.
const fn plugin(id: &'static str, label: &'static str) -> ChannelInfo {
    ChannelInfo {
        id,
        label,
        detail_label: label,
        system_image: "message",
        aliases: &[],
        entry_prefixes: &[],
        is_core: false,
        is_section_checked: false,
        is_built: false,
        deliverable: true,
        credentials: &[],
        shell_credentials: &[],
        credential_keys: &[],
        native_commands: false,
        rooms: Rooms::None,
        group_threads: ThreadStyle::Suffix,
        envelope_label: None,
        private_policy: PolicyPlace::Unchecked,
        hears_own_number: false,
        replies: ReplyDefaults::OTHER,
        keys: "",
        rules: &[],
        people: None,
        normalize: None,
    }
}

/// Row of a platform of OpenClaw's own.
const fn core(
    id: &'static str,
    label: &'static str,
    detail: &'static str,
    image: &'static str,
) -> ChannelInfo {
    ChannelInfo {
        detail_label: detail,
        system_image: image,
        is_core: true,
        is_section_checked: true,
        envelope_label: Some(label),
        ..plugin(id, label)
    }
}

/// Every platform: OpenClaw's own in its fixed order (spec `channels.md` §1.1), then those of plugins.
pub const CHANNELS: &[ChannelInfo] = &[
    TELEGRAM,
    ChannelInfo {
        private_policy: PolicyPlace::Section,
        hears_own_number: true,
        rules: &[("accounts.*", whatsapp_account), ("", dm_policy)],
        ..core("whatsapp", "WhatsApp", "WhatsApp Web", "message")
    },
    ChannelInfo {
        credentials: &["DISCORD_BOT_TOKEN"],
        shell_credentials: &["DISCORD_BOT_TOKEN"],
        native_commands: true,
        rooms: Rooms::All,
        group_threads: ThreadStyle::Room,
        private_policy: PolicyPlace::Within("dm"),
        replies: ReplyDefaults::coalesced(2000, ReplyToMode::Off),
        rules: NESTED_POLICY,
        ..core("discord", "Discord", "Discord Bot", "bubble.left.and.bubble.right")
    },
    ChannelInfo {
        aliases: &["google-chat", "gchat"],
        credentials: &["GOOGLE_CHAT_SERVICE_ACCOUNT"],
        private_policy: PolicyPlace::Within("dm"),
        replies: ReplyDefaults::coalesced(4000, ReplyToMode::Off),
        rules: NESTED_POLICY,
        ..core("googlechat", "Google Chat", "Google Chat", "message.badge")
    },
    ChannelInfo {
        credentials: &["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_USER_TOKEN"],
        shell_credentials: &["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"],
        native_commands: true,
        rooms: Rooms::All,
        private_policy: PolicyPlace::Within("dm"),
        rules: &[("dm", nested_dm_policy), ("accounts.*.dm", nested_dm_policy), ("", slack_http)],
        replies: ReplyDefaults { keeps_tags: true, ..ReplyDefaults::coalesced(4000, ReplyToMode::Off) },
        ..core("slack", "Slack", "Slack Bot", "number")
    },
    ChannelInfo {
        private_policy: PolicyPlace::Section,
        replies: ReplyDefaults::coalesced(4000, ReplyToMode::All),
        rules: WITH_PROGRAM,
        ..core("signal", "Signal", "Signal REST", "antenna.radiowaves.left.and.right")
    },
    ChannelInfo {
        aliases: &["imsg"],
        entry_prefixes: &["imsg"],
        private_policy: PolicyPlace::Section,
        rules: WITH_PROGRAM,
        ..core("imessage", "iMessage", "iMessage", "message.fill")
    },
    ChannelInfo { deliverable: false, ..core(WEBCHAT, "WebChat", "WebChat", "globe") },
    ChannelInfo {
        aliases: &["teams"],
        credentials: &["MSTEAMS_APP_PASSWORD"],
        private_policy: PolicyPlace::Section,
        envelope_label: Some("Teams"),
        is_section_checked: true,
        rules: &[("", dm_policy)],
        ..plugin("msteams", "Microsoft Teams")
    },
    ChannelInfo {
        private_policy: PolicyPlace::Section,
        envelope_label: Some("BlueBubbles"),
        is_section_checked: true,
        rules: &[("", dm_policy)],
        ..plugin("bluebubbles", "BlueBubbles")
    },
    ChannelInfo {
        credentials: &["MATRIX_ACCESS_TOKEN", "MATRIX_PASSWORD"],
        envelope_label: Some("Matrix"),
        ..plugin("matrix", "Matrix")
    },
    ChannelInfo {
        credentials: &["MATTERMOST_BOT_TOKEN"],
        replies: ReplyDefaults::coalesced(4000, ReplyToMode::All),
        ..plugin("mattermost", "Mattermost")
    },
    ChannelInfo { credentials: &["NEXTCLOUD_TALK_BOT_SECRET"], ..plugin("nextcloud-talk", "Nextcloud Talk") },
    ChannelInfo { credentials: &["NOSTR_PRIVATE_KEY"], ..plugin("nostr", "Nostr") },
    ChannelInfo { replies: ReplyDefaults::of_length(10_000), ..plugin("tlon", "Tlon") },
    ChannelInfo { replies: ReplyDefaults::of_length(500), ..plugin("twitch", "Twitch") },
    ChannelInfo {
        credentials: &["ZALO_BOT_TOKEN"],
        envelope_label: Some("Zalo"),
        replies: ReplyDefaults::of_length(2000),
        ..plugin("zalo", "Zalo")
    },
    ChannelInfo {
        replies: ReplyDefaults::of_length(2000),
        envelope_label: Some("Zalo Personal"),
        ..plugin("zalouser", "Zalo Personal")
    },
    ChannelInfo {
        credentials: &["LINE_CHANNEL_ACCESS_TOKEN", "LINE_CHANNEL_SECRET"],
        replies: ReplyDefaults::of_length(5000),
        ..plugin("line", "LINE")
    },
    plugin("feishu", "Feishu"),
];

/// Rules on a section that has the policy of private chats in an object of its own.
const NESTED_POLICY: &[(&str, DocumentRule)] =
    &[("dm", nested_dm_policy), ("accounts.*.dm", nested_dm_policy)];
/// Rules on a section that names a program to start.
const WITH_PROGRAM: &[(&str, DocumentRule)] = &[
    ("cliPath", executable),
    ("accounts.*.cliPath", executable),
    ("accounts.*", account_dm_policy),
    ("", dm_policy),
];

/// The channel of gateway clients.
pub const WEBCHAT: &str = "webchat";

/// Returns OpenClaw's own platforms, in its order.
pub fn core_channels() -> impl Iterator<Item = &'static ChannelInfo> {
    CHANNELS.iter().filter(|channel| channel.is_core)
}

/// Returns the platforms that this version has, in OpenClaw's order.
pub fn built_channels() -> impl Iterator<Item = &'static ChannelInfo> {
    CHANNELS.iter().filter(|channel| channel.is_built)
}

/// Returns the labels that begin envelopes even without a date.
pub fn envelope_labels() -> impl Iterator<Item = &'static str> {
    CHANNELS.iter().filter_map(|channel| channel.envelope_label)
}

/// All variables that hold credentials of channels.
pub fn credential_variables() -> impl Iterator<Item = &'static str> {
    CHANNELS.iter().flat_map(|channel| channel.credentials).copied()
}

/// Finds a platform of OpenClaw's own by id or alias; case and surrounding blanks do not matter.
pub fn by_name(name: &str) -> Option<&'static ChannelInfo> {
    by_any_name(name).filter(|channel| channel.is_core)
}

/// Finds a platform by id or alias, also one that plugins bring; case and surrounding blanks do not
/// matter.
pub fn by_any_name(name: &str) -> Option<&'static ChannelInfo> {
    let name = name.trim();
    CHANNELS.iter().find(|channel| {
        channel.id.eq_ignore_ascii_case(name)
            || channel.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    })
}

/// Finds a platform by its id.
pub fn by_id(id: &str) -> Option<&'static ChannelInfo> {
    CHANNELS.iter().find(|channel| channel.id == id)
}

/// True if the section of `channels` with this name is checked when the file is read.
pub(crate) fn is_section_checked(name: &str) -> bool {
    by_id(name).is_none_or(|channel| channel.is_section_checked)
}

/// Returns the defaults of replies on a channel, also of one that is not in the table.
pub fn reply_defaults(id: &str) -> &'static ReplyDefaults {
    by_id(id).map_or(&ReplyDefaults::OTHER, |channel| &channel.replies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_find_their_channel() {
        let rows = [
            ("telegram", Some("telegram")),
            (" GChat ", Some("googlechat")),
            ("imsg", Some("imessage")),
            ("fax", None),
            ("msteams", None),
        ];
        for (name, expect) in rows {
            assert_eq!(by_name(name).map(|channel| channel.id), expect, "{name}");
        }
    }
}
