//! Texts that an agent reads of messages that waited together, and of those a full queue has
//! dropped (spec `queue.md` §4). The texts are exact: agents and people know them.

use openclaw_protocol::printable::excerpt;

use crate::frames::{OVERFLOW, QUEUED_ANNOUNCES, QUEUED_ITEM, QUEUED_MESSAGES, framed_words};

/// Kind of waiting messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingKind {
    /// Messages of people.
    Messages,
    /// Announcements of sub-agents.
    Announces,
}

impl WaitingKind {
    /// Returns the form for announcements of sub-agents, or for other messages.
    pub fn of(is_announcement: bool) -> Self {
        if is_announcement { Self::Announces } else { Self::Messages }
    }

    /// Title above several that are run together.
    fn title(self) -> &'static str {
        match self {
            Self::Messages => QUEUED_MESSAGES,
            Self::Announces => QUEUED_ANNOUNCES,
        }
    }

    /// Noun for one of them.
    fn noun(self) -> &'static str {
        match self {
            Self::Messages => "message",
            Self::Announces => "announce",
        }
    }
}

/// Characters of the line that is left of a dropped message.
const LINE: usize = 160;

/// Joins messages that are run together, in order, with the text about dropped ones.
pub fn collected(what: WaitingKind, overflow: Option<&str>, prompts: &[String]) -> String {
    let mut blocks = vec![what.title().to_owned()];
    blocks.extend(overflow.map(str::to_owned));
    let numbered = (1..).zip(prompts);
    blocks.extend(
        numbered.map(|(number, prompt)| format!("---\n{QUEUED_ITEM}{number}\n{prompt}").trim().to_owned()),
    );
    blocks.join("\n\n")
}

/// Text about so many dropped messages, of which these lines are left.
pub fn overflow(what: WaitingKind, dropped: u64, lines: &[String]) -> String {
    let noun = what.noun();
    let plural = if dropped == 1 { "" } else { "s" };
    let mut told = format!("{OVERFLOW} Dropped {dropped} {noun}{plural} due to cap.");
    if !lines.is_empty() {
        told.push_str("\nSummary:");
        for line in lines {
            told.push_str("\n- ");
            told.push_str(line);
        }
    }
    told
}

/// Returns the line that is left of a dropped message: its words with single spaces, cut if it is
/// long. The line stands among those of others.
pub fn line(text: &str) -> String {
    let words = framed_words(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
    if words.chars().count() <= LINE { words } else { excerpt(&words, LINE - 1).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(of: &[&str]) -> Vec<String> {
        of.iter().map(|&text| text.to_owned()).collect()
    }

    /// Spec `queue.md` §4.2.
    #[test]
    fn the_texts_are_exact() {
        let messages = WaitingKind::Messages;
        assert_eq!(
            collected(messages, None, &strings(&["one", "two"])),
            "[Queued messages while agent was busy]\n\n---\nQueued #1\none\n\n---\nQueued #2\ntwo"
        );
        let told = overflow(messages, 2, &strings(&["first line", "b"]));
        assert_eq!(told, "[Queue overflow] Dropped 2 messages due to cap.\nSummary:\n- first line\n- b");
        assert_eq!(
            collected(messages, Some(&told), &strings(&["c", "d"])),
            "[Queued messages while agent was busy]\n\n[Queue overflow] Dropped 2 messages due to cap.\nSummary:\n\
             - first line\n- b\n\n---\nQueued #1\nc\n\n---\nQueued #2\nd"
        );
        assert_eq!(overflow(messages, 1, &[]), "[Queue overflow] Dropped 1 message due to cap.");
        // Spec `sessions.md` §8.6.
        let announces = WaitingKind::Announces;
        assert_eq!(overflow(announces, 2, &[]), "[Queue overflow] Dropped 2 announces due to cap.");
        assert_eq!(
            collected(announces, None, &strings(&["one", "two"])),
            "[Queued announce messages while agent was busy]\n\n---\nQueued #1\none\n\n---\nQueued #2\ntwo"
        );
    }

    /// Spec `queue.md` §4.1.
    #[test]
    fn a_line_is_at_most_160_characters() {
        assert_eq!(line("  a\n\tb  "), "a b");
        for text in ["x".repeat(200), "é".repeat(200)] {
            let line = line(&text);
            assert!(line.chars().count() == 160 && line.ends_with('…'), "{line}");
        }
        assert_eq!(line(&"x".repeat(160)).chars().count(), 160);
        assert!(!line(&"x".repeat(160)).ends_with('…'));
    }
}
