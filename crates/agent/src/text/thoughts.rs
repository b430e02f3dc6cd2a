//! Formats a model's thinking for people (spec `streaming.md` §6 "Reasoning visibility").

use super::tags::{TagRules, strip};
use crate::event::TextChange;

/// Longest beginning of a tag that is held back.
const TAG_START: usize = 14;

/// Thinking as a message for people: every line in italics. `None` where there is none.
pub fn shown(thinking: &str) -> Option<String> {
    let thinking = thinking.trim();
    if thinking.is_empty() {
        return None;
    }
    let lines: Vec<String> = thinking
        .lines()
        .map(|line| if line.trim().is_empty() { String::new() } else { format!("_{}_", line.trim()) })
        .collect();
    Some(format!("Reasoning:\n{}", lines.join("\n")))
}

/// The thinking of one message while it streams, be it the provider's own or between tags in the text.
#[derive(Debug, Default)]
pub(crate) struct Thoughts {
    block: Option<usize>,
    /// The provider's own.
    native: String,
    shown: String,
}

impl Thoughts {
    /// Adds thinking that the provider marked as such.
    pub(crate) fn push(&mut self, block: usize, delta: &str) -> Option<TextChange> {
        if self.block.is_some_and(|last| last != block) && !self.native.is_empty() {
            self.native.push('\n');
        }
        self.block = Some(block);
        self.native.push_str(delta);
        let native = self.native.clone();
        self.change(&native)
    }

    /// The text of the message is this so far.
    pub(crate) fn text(&mut self, raw: &str) -> Option<TextChange> {
        if !raw.contains('<') || !self.native.is_empty() {
            return None;
        }
        let thinking = strip(raw, TagRules { final_only: false, complete: false }).thinking;
        let end = thinking.rfind('<').filter(|at| {
            let tail = thinking.get(*at..).unwrap_or_default();
            tail.len() <= TAG_START && !tail.contains('>')
        });
        self.change(thinking.get(..end.unwrap_or(thinking.len())).unwrap_or_default())
    }

    fn change(&mut self, thinking: &str) -> Option<TextChange> {
        if thinking == self.shown {
            return None;
        }
        let change = match thinking.strip_prefix(self.shown.as_str()) {
            Some(new) if self.shown.is_empty() => TextChange::Begins(new.to_owned()),
            Some(new) => TextChange::Grows(new.to_owned()),
            None => TextChange::Corrected(thinking.to_owned()),
        };
        thinking.clone_into(&mut self.shown);
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of spec `streaming.md` §6 "Reasoning visibility".
    #[test]
    fn thinking_is_shown_line_by_line() {
        assert_eq!(shown("a\n\nb ").as_deref(), Some("Reasoning:\n_a_\n\n_b_"));
        assert_eq!(shown(" \n"), None);
    }

    #[test]
    fn thinking_between_tags_grows_as_it_arrives() {
        let (mut thoughts, mut raw, mut seen) = (Thoughts::default(), String::new(), Vec::new());
        for delta in ["<think>a", "b</thi", "nk>Answer", " and more"] {
            raw.push_str(delta);
            thoughts.text(&raw);
            seen.push(shown(&thoughts.shown).unwrap());
        }
        assert_eq!(seen, ["Reasoning:\n_a_", "Reasoning:\n_ab_", "Reasoning:\n_ab_", "Reasoning:\n_ab_"]);
        let mut own = Thoughts::default();
        assert_eq!(own.push(0, "be"), Some(TextChange::Begins("be".to_owned())));
        assert_eq!(own.push(0, "cause"), Some(TextChange::Grows("cause".to_owned())));
        assert_eq!(own.push(1, "x"), Some(TextChange::Grows("\nx".to_owned())));
        assert_eq!(own.text("Hello <b>"), None);
    }
}
