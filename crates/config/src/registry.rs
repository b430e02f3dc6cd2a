//! Chat platforms that OpenClaw knows, and what is true of each whether or not this build has it:
//! names, defaults of its settings, and the shape of its section. One row a platform.
//!
//! The table stands this low because the checks of the configuration, session keys, the policy of
//! sandboxes, commands and replies all read it. What only the platform itself can say is behind the
//! `Channel` trait of `openclaw-channels`, whose `info` is the row of this table.

use crate::settings::ReplyToMode;

/// Chat platform in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// True if messages can be sent to it; `webchat` exists on gateway connections only.
    pub deliverable: bool,
    /// Variables that hold its credentials.
    pub credentials: &'static [&'static str],
    /// True if it has a menu of commands of its own.
    pub native_commands: bool,
    /// True if its groups may be rooms: chat type `channel` (spec `channels.md` §1.1).
    pub has_rooms: bool,
    /// Place of the policy of private chats.
    pub private_policy: PolicyPlace,
    /// True if an allowlist that names nobody means the own number.
    pub hears_own_number: bool,
    /// Defaults of its replies.
    pub replies: ReplyDefaults,
    /// Paths of the keys of its section that are acted on, one a line. Generated from the types of
    /// the platform's crate.
    pub keys: &'static str,
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
        deliverable: true,
        credentials: &[],
        native_commands: false,
        has_rooms: false,
        private_policy: PolicyPlace::Unchecked,
        hears_own_number: false,
        replies: ReplyDefaults::OTHER,
        keys: "",
    }
}

/// Row of a platform of OpenClaw's own.
const fn core(
    id: &'static str,
    label: &'static str,
    detail: &'static str,
    image: &'static str,
) -> ChannelInfo {
    ChannelInfo { detail_label: detail, system_image: image, is_core: true, ..plugin(id, label) }
}

/// Row of Telegram.
pub const TELEGRAM: ChannelInfo = ChannelInfo {
    entry_prefixes: &["tg"],
    credentials: &["TELEGRAM_BOT_TOKEN"],
    native_commands: true,
    has_rooms: true,
    private_policy: PolicyPlace::Section,
    replies: ReplyDefaults {
        reply_to: ReplyToMode::First,
        follows_block_default: true,
        draft_limit: Some(4096),
        ..ReplyDefaults::OTHER
    },
    keys: include_str!("../data/acted_on/telegram.txt"),
    ..core("telegram", "Telegram", "Telegram Bot", "paperplane")
};

/// Every platform: OpenClaw's own in its fixed order (spec `channels.md` §1.1), then those of plugins.
pub const CHANNELS: &[ChannelInfo] = &[
    TELEGRAM,
    ChannelInfo {
        private_policy: PolicyPlace::Section,
        hears_own_number: true,
        ..core("whatsapp", "WhatsApp", "WhatsApp Web", "message")
    },
    ChannelInfo {
        credentials: &["DISCORD_BOT_TOKEN"],
        native_commands: true,
        has_rooms: true,
        private_policy: PolicyPlace::Within("dm"),
        replies: ReplyDefaults::coalesced(2000, ReplyToMode::Off),
        ..core("discord", "Discord", "Discord Bot", "bubble.left.and.bubble.right")
    },
    ChannelInfo {
        aliases: &["google-chat", "gchat"],
        credentials: &["GOOGLE_CHAT_SERVICE_ACCOUNT"],
        private_policy: PolicyPlace::Within("dm"),
        replies: ReplyDefaults::coalesced(4000, ReplyToMode::Off),
        ..core("googlechat", "Google Chat", "Google Chat", "message.badge")
    },
    ChannelInfo {
        credentials: &["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_USER_TOKEN"],
        native_commands: true,
        has_rooms: true,
        private_policy: PolicyPlace::Within("dm"),
        replies: ReplyDefaults { keeps_tags: true, ..ReplyDefaults::coalesced(4000, ReplyToMode::Off) },
        ..core("slack", "Slack", "Slack Bot", "number")
    },
    ChannelInfo {
        private_policy: PolicyPlace::Section,
        replies: ReplyDefaults::coalesced(4000, ReplyToMode::All),
        ..core("signal", "Signal", "Signal REST", "antenna.radiowaves.left.and.right")
    },
    ChannelInfo {
        aliases: &["imsg"],
        entry_prefixes: &["imsg"],
        private_policy: PolicyPlace::Section,
        ..core("imessage", "iMessage", "iMessage", "message.fill")
    },
    ChannelInfo { deliverable: false, ..core(WEBCHAT, "WebChat", "WebChat", "globe") },
    ChannelInfo {
        aliases: &["teams"],
        credentials: &["MSTEAMS_APP_PASSWORD"],
        private_policy: PolicyPlace::Section,
        ..plugin("msteams", "Microsoft Teams")
    },
    ChannelInfo { private_policy: PolicyPlace::Section, ..plugin("bluebubbles", "BlueBubbles") },
    ChannelInfo { credentials: &["MATRIX_ACCESS_TOKEN", "MATRIX_PASSWORD"], ..plugin("matrix", "Matrix") },
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
        replies: ReplyDefaults::of_length(2000),
        ..plugin("zalo", "Zalo")
    },
    ChannelInfo { replies: ReplyDefaults::of_length(2000), ..plugin("zalouser", "Zalo Personal") },
    ChannelInfo {
        credentials: &["LINE_CHANNEL_ACCESS_TOKEN", "LINE_CHANNEL_SECRET"],
        replies: ReplyDefaults::of_length(5000),
        ..plugin("line", "LINE")
    },
    plugin("feishu", "Feishu"),
];

/// The channel of gateway clients.
pub const WEBCHAT: &str = "webchat";

/// Returns OpenClaw's own platforms, in its order.
pub fn core_channels() -> impl Iterator<Item = &'static ChannelInfo> {
    CHANNELS.iter().filter(|channel| channel.is_core)
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
