//! The channels OpenClaw has, in its fixed order (spec `channels.md` §1.1).

/// Channel in the table.
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
    /// True if messages can be sent to it; `webchat` exists on gateway connections only.
    pub deliverable: bool,
    /// Variables that hold its credentials.
    pub credentials: &'static [&'static str],
}

/// Telegram's row.
pub const TELEGRAM: ChannelInfo = ChannelInfo {
    id: "telegram",
    label: "Telegram",
    detail_label: "Telegram Bot",
    system_image: "paperplane",
    aliases: &[],
    deliverable: true,
    credentials: &["TELEGRAM_BOT_TOKEN"],
};

/// Every channel, core order first.
pub const CHANNELS: &[ChannelInfo] = &[
    TELEGRAM,
    ChannelInfo {
        id: "whatsapp",
        label: "WhatsApp",
        detail_label: "WhatsApp Web",
        system_image: "message",
        aliases: &[],
        deliverable: true,
        credentials: &[],
    },
    ChannelInfo {
        id: "discord",
        label: "Discord",
        detail_label: "Discord Bot",
        system_image: "bubble.left.and.bubble.right",
        aliases: &[],
        deliverable: true,
        credentials: &["DISCORD_BOT_TOKEN"],
    },
    ChannelInfo {
        id: "googlechat",
        label: "Google Chat",
        detail_label: "Google Chat",
        system_image: "message.badge",
        aliases: &["google-chat", "gchat"],
        deliverable: true,
        credentials: &["GOOGLE_CHAT_SERVICE_ACCOUNT"],
    },
    ChannelInfo {
        id: "slack",
        label: "Slack",
        detail_label: "Slack Bot",
        system_image: "number",
        aliases: &[],
        deliverable: true,
        credentials: &["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_USER_TOKEN"],
    },
    ChannelInfo {
        id: "signal",
        label: "Signal",
        detail_label: "Signal REST",
        system_image: "antenna.radiowaves.left.and.right",
        aliases: &[],
        deliverable: true,
        credentials: &[],
    },
    ChannelInfo {
        id: "imessage",
        label: "iMessage",
        detail_label: "iMessage",
        system_image: "message.fill",
        aliases: &["imsg"],
        deliverable: true,
        credentials: &[],
    },
    ChannelInfo {
        id: WEBCHAT,
        label: "WebChat",
        detail_label: "WebChat",
        system_image: "globe",
        aliases: &[],
        deliverable: false,
        credentials: &[],
    },
];

/// The channel of gateway clients.
pub const WEBCHAT: &str = "webchat";

/// Variables that hold the credentials of channels that plugins of OpenClaw bring.
const PLUGIN_CREDENTIALS: &[&str] = &[
    "LINE_CHANNEL_ACCESS_TOKEN",
    "LINE_CHANNEL_SECRET",
    "MATRIX_ACCESS_TOKEN",
    "MATRIX_PASSWORD",
    "MATTERMOST_BOT_TOKEN",
    "MSTEAMS_APP_PASSWORD",
    "NEXTCLOUD_TALK_BOT_SECRET",
    "NOSTR_PRIVATE_KEY",
    "ZALO_BOT_TOKEN",
];

/// All variables that hold credentials of channels.
pub fn credential_variables() -> impl Iterator<Item = &'static str> {
    CHANNELS.iter().flat_map(|channel| channel.credentials).chain(PLUGIN_CREDENTIALS).copied()
}

/// Finds a channel by id or alias; case and surrounding blanks do not matter.
pub fn by_name(name: &str) -> Option<&'static ChannelInfo> {
    let name = name.trim();
    CHANNELS.iter().find(|channel| {
        channel.id.eq_ignore_ascii_case(name)
            || channel.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    })
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
        ];
        for (name, expect) in rows {
            assert_eq!(by_name(name).map(|channel| channel.id), expect, "{name}");
        }
    }
}
