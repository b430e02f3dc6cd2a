//! The visible text of one assistant message while it streams: what to show, and when (spec `streaming.md` §7).

use std::borrow::Cow;

use super::directive;
use super::silent;
use super::tags::{self, TagRules};
use crate::event::TextChange;

/// Accumulates the text of one assistant message.
#[derive(Debug, Default)]
pub(crate) struct VisibleText {
    final_only: bool,
    raw: String,
    block: Option<usize>,
    /// What was shown last; later texts extend it.
    shown: String,
    /// Whether anything in `raw` needs more than trimming.
    special: bool,
}

impl VisibleText {
    pub(crate) fn new(final_only: bool) -> Self {
        Self { final_only, special: final_only, ..Self::default() }
    }

    /// Adds what arrived. Nothing is shown while the end may still become a tag, a directive or the silent token.
    pub(crate) fn push(&mut self, block: usize, delta: &str) -> Option<TextChange> {
        if self.block.is_some_and(|last| last != block) && !self.raw.is_empty() {
            self.raw.push('\n');
        }
        self.block = Some(block);
        self.raw.push_str(delta);
        self.special |= delta.contains(['<', '[']) || (delta.contains('M') && self.has_media_start());
        let text = self.clean(false);
        if silent::may_become_token(&text) {
            return None;
        }
        let delta = text.strip_prefix(self.shown.as_str()).filter(|delta| !delta.is_empty())?.to_owned();
        Some(self.extend(delta))
    }

    /// The message is whole: shows what is left, or the corrected text when it could not be extended. `whole` is the
    /// message's text as it was stored, which counts when nothing was streamed.
    pub(crate) fn finish(&mut self, whole: &str) -> Option<TextChange> {
        if self.raw.is_empty() {
            whole.clone_into(&mut self.raw);
        }
        self.special = true;
        let text = self.clean(true);
        if text.is_empty() || text == self.shown || silent::is_silent(&text) {
            return None;
        }
        if let Some(delta) = text.strip_prefix(self.shown.as_str()) {
            let delta = delta.to_owned();
            return Some(self.extend(delta));
        }
        self.shown = text.into_owned();
        Some(TextChange::Corrected(self.shown.clone()))
    }

    /// Everything that arrived, as it came.
    pub(crate) fn raw(&self) -> &str {
        &self.raw
    }

    fn extend(&mut self, delta: String) -> TextChange {
        let is_first = self.shown.is_empty();
        self.shown.push_str(&delta);
        if is_first { TextChange::Begins(delta) } else { TextChange::Grows(delta) }
    }

    /// Whether a line begins as a media line does. Code marks matter only beside tags and directives.
    fn has_media_start(&self) -> bool {
        self.raw.lines().any(|line| line.trim_start().starts_with('M'))
    }

    fn clean(&self, complete: bool) -> Cow<'_, str> {
        if !self.special {
            return self.raw.trim().into();
        }
        let stripped = tags::strip(&self.raw, TagRules { final_only: self.final_only, complete }).visible;
        let whole = if complete { stripped.as_str() } else { directive::settled(&stripped) };
        directive::parse(whole).text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts that are shown one after the other.
    fn events(final_only: bool, deltas: &[&str]) -> Vec<String> {
        let mut visible = VisibleText::new(final_only);
        let mut out = Vec::new();
        for delta in deltas {
            out.extend(visible.push(0, delta).map(|_| visible.shown.clone()));
        }
        out.extend(visible.finish(&deltas.concat()).map(|_| visible.shown.clone()));
        out
    }

    /// Vectors of spec `streaming.md` §6 and §7, without the flashes it calls known-bad.
    #[test]
    fn text_is_shown_as_it_grows() {
        let rows: [(bool, &[&str], &[&str]); 13] = [
            (
                false,
                &["Hel", "lo <thi", "nking>secret</think", "ing> world"],
                &["Hel", "Hello", "Hello  world"],
            ),
            (true, &["pre <fin", "al>Hi th", "ere</final> post"], &["Hi th", "Hi there"]),
            (true, &["</final>Oops no start"], &["Oops no start"]),
            (true, &["plain answer"], &["plain answer"]),
            (false, &["use `<thi", "nking>` now"], &["use `", "use `<thinking>` now"]),
            (false, &["A <think>rest never closed"], &["A"]),
            (false, &["[[reply_to:1897", "]] Hello", " world"], &["Hello", "Hello world"]),
            (false, &["MEDIA:", " https://e.com/a.png\nCaption"], &["Caption"]),
            (false, &["NO_", "REPLY"], &[]),
            (false, &["NO_", "REPLY is the token"], &["NO_REPLY is the token"]),
            (false, &["**NO_REPLY**"], &[]),
            (false, &["No", " reply"], &["No", "No reply"]),
            (false, &[" a ", "\n\n b "], &["a", "a \n\n b"]),
        ];
        for (final_only, deltas, expect) in rows {
            assert_eq!(events(final_only, deltas), expect, "{deltas:?}");
        }
    }

    #[test]
    fn a_message_that_was_not_streamed_is_shown_once() {
        let mut visible = VisibleText::new(false);
        let shown = visible.finish("Hello");
        assert_eq!(shown, Some(TextChange::Begins("Hello".into())));
        assert_eq!(visible.finish("Hello"), None);
    }

    #[test]
    fn blocks_are_separate_lines() {
        let mut visible = VisibleText::new(false);
        visible.push(0, "one");
        assert_eq!(visible.push(2, "two"), Some(TextChange::Grows("\ntwo".into())));
    }

    #[test]
    fn a_text_that_stops_extending_is_corrected_at_the_end() {
        let mut visible = VisibleText::new(false);
        assert_eq!(visible.push(0, "a  b"), Some(TextChange::Begins("a  b".into())));
        assert_eq!(visible.push(0, " [[voice]]"), None);
        assert_eq!(visible.finish(""), Some(TextChange::Corrected("a b".into())));
    }

    proptest::proptest! {
        #[test]
        fn deltas_add_up_to_the_text_however_it_is_cut(
            pieces in proptest::collection::vec("(<think>|</think>|`|\\[\\[voice\\]\\]|NO_REPLY|MEDIA:|[a-c <\\n]|é){0,4}", 0..12)
        ) {
            let mut visible = VisibleText::new(false);
            let mut sum = String::new();
            for piece in &pieces {
                let is_first = sum.is_empty();
                match visible.push(0, piece) {
                    None => {}
                    Some(TextChange::Begins(delta)) if is_first => sum = delta,
                    Some(TextChange::Grows(delta)) if !is_first => sum.push_str(&delta),
                    Some(other) => panic!("{other:?} behind {sum:?}"),
                }
                proptest::prop_assert_eq!(&sum, &visible.shown);
            }
        }
    }
}
