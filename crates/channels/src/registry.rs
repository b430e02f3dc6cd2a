//! The channels OpenClaw has, in its fixed order (spec `channels.md` §1.1).

/// One channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// Id in configuration, session keys and frames.
    pub id: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Other spellings of the id.
    pub aliases: &'static [&'static str],
    /// Whether messages can be sent to it; `webchat` lives on gateway connections only.
    pub deliverable: bool,
}

/// Every channel, core order first.
pub const CHANNELS: &[Channel] = &[
    Channel { id: "telegram", label: "Telegram", aliases: &[], deliverable: true },
    Channel { id: "whatsapp", label: "WhatsApp", aliases: &[], deliverable: true },
    Channel { id: "discord", label: "Discord", aliases: &[], deliverable: true },
    Channel { id: "googlechat", label: "Google Chat", aliases: &["google-chat", "gchat"], deliverable: true },
    Channel { id: "slack", label: "Slack", aliases: &[], deliverable: true },
    Channel { id: "signal", label: "Signal", aliases: &[], deliverable: true },
    Channel { id: "imessage", label: "iMessage", aliases: &["imsg"], deliverable: true },
    Channel { id: WEBCHAT, label: "WebChat", aliases: &[], deliverable: false },
];

/// The channel of gateway clients.
pub const WEBCHAT: &str = "webchat";

/// Finds a channel by id or alias; case and surrounding blanks do not matter.
pub fn by_name(name: &str) -> Option<&'static Channel> {
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
