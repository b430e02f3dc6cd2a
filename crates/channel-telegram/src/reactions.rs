//! The emoji that bots may react with.

/// Update types, as the Bot API lists them.
const ALLOWED: &[&str] = &[
    "❤",
    "👍",
    "👎",
    "🔥",
    "🥰",
    "👏",
    "😁",
    "🤔",
    "🤯",
    "😱",
    "🤬",
    "😢",
    "🎉",
    "🤩",
    "🤮",
    "💩",
    "🙏",
    "👌",
    "🕊",
    "🤡",
    "🥱",
    "🥴",
    "😍",
    "🐳",
    "❤\u{200d}🔥",
    "🌚",
    "🌭",
    "💯",
    "🤣",
    "⚡",
    "🍌",
    "🏆",
    "💔",
    "🤨",
    "😐",
    "🍓",
    "🍾",
    "💋",
    "🖕",
    "😈",
    "😴",
    "😭",
    "🤓",
    "👻",
    "👨\u{200d}💻",
    "👀",
    "🎃",
    "🙈",
    "😇",
    "😨",
    "🤝",
    "✍",
    "🤗",
    "🫡",
    "🎅",
    "🎄",
    "☃",
    "💅",
    "🤪",
    "🗿",
    "🆒",
    "💘",
    "🙉",
    "🦄",
    "😘",
    "💊",
    "🙊",
    "😎",
    "👾",
    "🤷\u{200d}♂",
    "🤷",
    "🤷\u{200d}♀",
    "😡",
];

/// The emoji as Telegram takes it, whatever way it is written; `None` for one it does not take.
pub(super) fn allowed(emoji: &str) -> Option<&'static str> {
    // Joiners matter, the choice between colour and text does not.
    let plain = |text: &str| text.chars().filter(|c| *c != '\u{fe0f}').collect::<String>();
    let wanted = plain(emoji.trim());
    ALLOWED.iter().find(|each| **each == wanted).copied()
}

/// All of them, for whoever chose another.
pub(super) fn list() -> String {
    ALLOWED.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_are_known_whatever_way_they_are_written() {
        let rows = [
            ("👍", Some("👍")),
            ("❤️", Some("❤")),
            (" ✍️ ", Some("✍")),
            ("❤️‍🔥", Some("❤\u{200d}🔥")),
            ("🤷‍♂️", Some("🤷\u{200d}♂")),
            ("🦀", None),
            ("", None),
            ("x", None),
        ];
        for (emoji, expect) in rows {
            assert_eq!(allowed(emoji), expect, "{emoji}");
        }
        assert_eq!(ALLOWED.len(), 73);
    }
}
