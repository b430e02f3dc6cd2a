//! The visible text of one assistant message while it streams: what to show, and when (spec `streaming.md` §7).

use std::borrow::Cow;

use super::directive::{self, Directives};
use super::silent;
use super::tags::{self, TagRules};
use crate::event::{Attachment, Quote, TextChange};
use crate::reply::ReplyTo;

/// Accumulates the text of one assistant message.
#[derive(Debug, Default)]
pub(crate) struct VisibleText {
    final_only: bool,
    raw: String,
    block: Option<usize>,
    /// Text that was shown last; later texts extend it.
    shown: String,
    /// True if anything in `raw` needs more than trimming.
    special: bool,
    /// Message quoted according to the tags so far.
    reply_to: Option<ReplyTo>,
    /// Quote that was not emitted yet.
    quote: Option<Quote>,
    /// Media references that were found so far.
    media: Vec<String>,
    /// Attachments that were not emitted yet.
    attached: Vec<Attachment>,
    /// Below so many bytes a long `raw` is not read anew.
    next_read: usize,
}

/// Visible part of a text.
struct Cleaned<'a> {
    text: Cow<'a, str>,
    /// Reply tag in the text.
    tag: Option<Tagged>,
    /// Media references that were not found before, each with the bytes to see before it.
    media: Vec<(String, usize)>,
}

/// A reply tag in a text.
struct Tagged {
    reply_to: ReplyTo,
    /// Bytes to see before it.
    before: usize,
}

/// Files of one message that are told where they stand. More of them come with its end.
const MOST_PLACED: usize = 32;

/// Bytes up to which a text is read anew with every delta. A longer one is read when a sixty-fourth has come in, so that the work grows
/// with its length and not with the square of it.
const READ_EVERY_TIME: usize = 16 * 1024;

impl VisibleText {
    pub(crate) fn new(final_only: bool) -> Self {
        Self { final_only, special: final_only, ..Self::default() }
    }

    /// Adds what arrived. Text is held back while its end may still become a tag, a directive or
    /// the silent token.
    pub(crate) fn push(&mut self, block: usize, delta: &str) -> Option<TextChange> {
        if self.block.is_some_and(|last| last != block) && !self.raw.is_empty() {
            self.raw.push('\n');
        }
        self.block = Some(block);
        self.raw.push_str(delta);
        self.special |=
            delta.contains(['<', '[']) || (delta.contains('M') && self.has_media_start(delta.len()));
        if self.special && self.raw.len() < self.next_read {
            return None;
        }
        let Cleaned { text, tag, media } = self.clean(false);
        let may_be_silent = silent::may_become_token(&text);
        let delta = match self.special {
            true => text.strip_prefix(self.shown.as_str()),
            // The new text is longer than the shown one, and begins with it.
            false => text.get(self.shown.len()..),
        };
        let delta = delta.filter(|delta| !delta.is_empty()).map(str::to_owned);
        self.attach(media);
        if may_be_silent {
            return None;
        }
        self.quote(tag);
        if self.raw.len() > READ_EVERY_TIME {
            self.next_read = self.raw.len() + self.raw.len() / 64;
        }
        delta.map(|delta| self.extend(delta))
    }

    /// The message is whole: shows what is left, or the corrected text when it could not be extended. `whole` is the
    /// message's text as it was stored, which counts when nothing was streamed.
    pub(crate) fn finish(&mut self, whole: &str) -> Option<TextChange> {
        if self.raw.is_empty() {
            whole.clone_into(&mut self.raw);
        }
        self.special = true;
        let Cleaned { text, tag, media } = self.clean(true);
        let text = text.into_owned();
        self.attach(media);
        if text.is_empty() || silent::is_silent(&text) {
            return None;
        }
        self.quote(tag);
        if text == self.shown {
            return None;
        }
        if let Some(delta) = text.strip_prefix(self.shown.as_str()) {
            return Some(self.extend(delta.to_owned()));
        }
        self.shown = text;
        Some(TextChange::Corrected(self.shown.clone()))
    }

    /// Returns the message that the text quotes from here on, once for each tag that changes it.
    /// The quote is emitted before the text that came with it.
    pub(crate) fn take_quote(&mut self) -> Option<Quote> {
        self.quote.take()
    }

    /// The files that stand in the text from here on, once each. They go before the text that came with them.
    pub(crate) fn take_attached(&mut self) -> Vec<Attachment> {
        std::mem::take(&mut self.attached)
    }

    /// Raw text received so far.
    pub(crate) fn raw(&self) -> &str {
        &self.raw
    }

    fn attach(&mut self, media: Vec<(String, usize)>) {
        for (reference, before) in media {
            self.media.push(reference.clone());
            let (is_under_way, after) = (!self.shown.is_empty(), before.saturating_sub(self.shown.len()));
            self.attached.push(Attachment { reference, is_under_way, after });
        }
        self.attached.sort_by_key(|file| file.after);
    }

    fn quote(&mut self, tag: Option<Tagged>) {
        let Some(Tagged { reply_to, before }) = tag else { return };
        if self.reply_to.as_ref() != Some(&reply_to) {
            let after = before.saturating_sub(self.shown.len());
            self.quote =
                Some(Quote { reply_to: reply_to.clone(), is_under_way: !self.shown.is_empty(), after });
            self.reply_to = Some(reply_to);
        }
    }

    fn extend(&mut self, delta: String) -> TextChange {
        let is_first = self.shown.is_empty();
        self.shown.push_str(&delta);
        if is_first { TextChange::Begins(delta) } else { TextChange::Grows(delta) }
    }

    /// Returns true if one of the lines that contain the last `new` bytes begins as a media line
    /// does. Code marks matter only beside tags and directives.
    fn has_media_start(&self, new: usize) -> bool {
        let before = self.raw.get(..self.raw.len() - new).unwrap_or_default();
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        self.raw.get(line..).unwrap_or_default().lines().any(|line| line.trim_start().starts_with('M'))
    }

    fn clean(&self, complete: bool) -> Cleaned<'_> {
        if !self.special {
            let (_, text) = silent::spoken_so_far(self.raw.trim());
            return Cleaned { text: text.into(), tag: None, media: Vec::new() };
        }
        let stripped = tags::strip(&self.raw, TagRules { final_only: self.final_only, complete }).visible;
        let whole = if complete { stripped.as_str() } else { directive::settled(&stripped) };
        let Directives { text, reply_to, reply_at, media, .. } = directive::parse(whole);
        let (taken, so_far) = silent::spoken_so_far(&text);
        let said = if complete { silent::spoken(&text) } else { so_far };
        let within = |before: usize| before.saturating_sub(taken).min(said.len());
        let tag = reply_to.map(|reply_to| {
            let is_known = self.reply_to.as_ref() == Some(&reply_to);
            let before = || within(directive::parse(whole.get(..reply_at).unwrap_or_default()).text.len());
            Tagged { reply_to, before: if is_known { 0 } else { before() } }
        });
        let mut media = self.placed(whole, media, text.len());
        media.iter_mut().for_each(|(_, before)| *before = within(*before));
        let text = if said.len() == text.len() { text } else { said.to_owned() };
        Cleaned { text: text.into(), tag, media }
    }

    /// Returns the new media with their positions; media that are found nowhere get the end.
    fn placed(&self, whole: &str, media: Vec<String>, end: usize) -> Vec<(String, usize)> {
        let mut placed: Vec<(String, usize)> = Vec::new();
        for reference in media {
            let is_known =
                self.media.contains(&reference) || placed.iter().any(|(known, _)| *known == reference);
            if is_known {
                continue;
            }
            if self.media.len() + placed.len() >= MOST_PLACED {
                break;
            }
            let before = directive::before_media(whole, &reference).unwrap_or(end);
            placed.push((reference, before));
        }
        placed
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
        let rows: [(bool, &[&str], &[&str]); 18] = [
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
            (false, &["Here", ".\n\nNO", "_REPLY"], &["Here", "Here."]),
            (false, &["NO_REPLY", "\n\nHere", "."], &["Here", "Here."]),
            (false, &["One\nNO_", "REPLY\n", "two"], &["One", "One\nNO_REPLY\ntwo"]),
            (false, &["One\nN", "ext"], &["One", "One\nNext"]),
            (
                false,
                &["[[voice]] One\n```\nNO_", "REPLY\n```"],
                &["One\n```\nNO_", "One\n```\nNO_REPLY\n```"],
            ),
            (false, &[" a ", "\n\n b "], &["a", "a \n\n b"]),
        ];
        for (final_only, deltas, expect) in rows {
            assert_eq!(events(final_only, deltas), expect, "{deltas:?}");
        }
    }

    /// The quote is emitted before the text that quotes (spec `streaming.md` §8).
    #[test]
    fn a_tag_is_told_before_the_text_behind_it() {
        let rows: [(&[&str], &[&str]); 13] = [
            (&["[[reply_to_current]]", "Hello"], &["> current 0", "Hello"]),
            (&["[[reply_to:12", "3]] Hi"], &["> 123 0", "Hi"]),
            (&["[[reply_to_current]]", "Hello", "again"], &["> current 0", "Hello", "again"]),
            (&["[[reply_to:1]]", "[[reply_to_current]]", "Z"], &["> 1 0", "Z"]),
            (&["[[reply_to_current]]", "[[reply_to:1]]", "Z"], &["> 1 0", "Z"]),
            (&["C ", "[[reply_to:1]]", " B"], &["C", "> 1 under way 0", " B"]),
            (&["C", " [[reply_to:1]]"], &["C", "> 1 under way 0"]),
            (&["[[reply_to:1]] C", "[[reply_to:2]] B"], &["> 1 0", "C", "> 2 under way 0", " B"]),
            (&["`[[reply_to:1]]` a [[x]] b"], &["`[[reply_to:1]]` a [[x]] b"]),
            (&["[[reply_to:1]] NO_REPLY"], &[]),
            (&["NO_REPLY\nOne.\n\n[[reply_to:1]]Two\nNO_REPLY"], &["> 1 4", "One.\n\nTwo"]),
            (&["One.\n\n[[reply_to:1]]Two"], &["> 1 4", "One.\n\nTwo"]),
            (&["On", "e.\n\n[[reply_to:1]]Two"], &["On", "> 1 under way 2", "e.\n\nTwo"]),
        ];
        for (deltas, expect) in rows {
            let mut visible = VisibleText::new(false);
            let mut out = Vec::new();
            let mut note = |quote: Option<Quote>, change: Option<TextChange>| {
                out.extend(quote.map(|Quote { reply_to, is_under_way, after }| {
                    let id = reply_to.into_id().unwrap_or_else(|| "current".to_owned());
                    format!("> {id}{} {after}", if is_under_way { " under way" } else { "" })
                }));
                out.extend(change.map(|change| match change {
                    TextChange::Begins(text) | TextChange::Grows(text) | TextChange::Corrected(text) => text,
                }));
            };
            for delta in deltas {
                let change = visible.push(0, delta);
                note(visible.take_quote(), change);
            }
            let change = visible.finish(&deltas.concat());
            note(visible.take_quote(), change);
            assert_eq!(out, expect, "{deltas:?}");
        }
    }

    /// Spec `streaming.md` §5: a file is sent where it stands.
    #[test]
    fn a_file_is_told_before_the_text_it_came_with() {
        let rows: [(&[&str], &[&str]); 7] = [
            (&["one\n", "MEDIA:./a\ntwo"], &["one", "./a under way 0", "\ntwo"]),
            (&["one\nMEDIA:./a\ntwo\nMEDIA:./b\nthree"], &["./a 3", "./b 7", "one\ntwo\nthree"]),
            (&["one\nMEDIA:./a\ntwo\nMEDIA:./b\n", "end"], &["./a 3", "./b 7", "one\ntwo", "\nend"]),
            (&["MEDIA:", "./a"], &["./a 0"]),
            (&["MEDIA:./a\n", "cap"], &["./a 0", "cap"]),
            (&["one\nMEDIA:./a", "\n", "MEDIA:./a"], &["one", "./a under way 0"]),
            (&["no `MEDIA:` MEDIA:./a\nx"], &["no `MEDIA:` MEDIA:./a\nx"]),
        ];
        for (deltas, expect) in rows {
            let mut visible = VisibleText::new(false);
            let mut out = Vec::new();
            let mut note = |files: Vec<Attachment>, change: Option<TextChange>| {
                out.extend(files.into_iter().map(|Attachment { reference, is_under_way, after }| {
                    format!("{reference}{} {after}", if is_under_way { " under way" } else { "" })
                }));
                out.extend(change.map(|change| match change {
                    TextChange::Begins(text) | TextChange::Grows(text) | TextChange::Corrected(text) => text,
                }));
            };
            for delta in deltas {
                let change = visible.push(0, delta);
                note(visible.take_attached(), change);
            }
            let change = visible.finish(&deltas.concat());
            note(visible.take_attached(), change);
            assert_eq!(out, expect, "{deltas:?}");
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
    fn a_long_text_is_shown_in_larger_steps_and_whole_at_its_end() {
        let mut visible = VisibleText::new(false);
        let mut shown = 0;
        for at in 0..20_000 {
            shown += usize::from(visible.push(0, if at == 0 { "[a]" } else { "word " }).is_some());
        }
        assert!((3_000..4_000).contains(&shown), "{shown}");
        visible.finish("");
        assert_eq!(visible.shown.len(), "[a]".len() + 19_999 * "word ".len() - 1);
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

    /// Text full of what is more than text.
    const PIECES: &str = "(<think>|</think>|<final>|`|``|\n```\n|\\[\\[voice\\]\\]|\\[\\[reply_to:1\\]\\]|\\[|\\]|NO_REPLY|HEARTBEAT_OK|\nMEDIA:\\./a\\.png|MEDIA|[a-c <\n]|é){0,14}";

    proptest::proptest! {
        /// Wherever its deltas are cut, a message is shown the same at its end.
        #[test]
        fn the_end_is_the_same_however_it_is_cut(text in PIECES, steps in proptest::collection::vec(1..9usize, 1..30)) {
            let mut whole = VisibleText::new(false);
            whole.finish(&text);
            let mut cut = VisibleText::new(false);
            let chars: Vec<char> = text.chars().collect();
            let mut at = 0;
            for step in steps.iter().cycle() {
                if at >= chars.len() {
                    break;
                }
                let end = (at + step).min(chars.len());
                let before = cut.shown.clone();
                cut.push(0, &chars[at..end].iter().collect::<String>());
                // Shown text is never taken back, except for blanks.
                let bare = |text: &str| text.split_whitespace().collect::<String>();
                proptest::prop_assert!(bare(&whole.shown).starts_with(&bare(&before)), "{:?} of {:?}", before, whole.shown);
                at = end;
            }
            cut.finish(&text);
            proptest::prop_assert_eq!(cut.shown, whole.shown);
        }

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
