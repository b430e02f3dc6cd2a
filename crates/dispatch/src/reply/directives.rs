//! Tags in an answer that arrives in chunks (spec `streaming.md` §8): one that is not at its end yet is held back, and one that stands alone
//! belongs to the next chunk that says something.

use openclaw_agent::text::directive::{self, Directives};
use openclaw_agent::text::silent::is_silent;
use openclaw_agent::{ReplyPayload, ReplyTo};

/// The tags of one assistant message.
#[derive(Debug, Clone, Default)]
pub struct DirectiveStream {
    /// A tag without its end.
    tail: String,
    /// What tags said for which nothing was to be shown yet.
    reply_to: Option<ReplyTo>,
}

impl DirectiveStream {
    /// Takes a chunk; gives what it says, if anything.
    pub fn push(&mut self, chunk: &str) -> Option<ReplyPayload> {
        let combined = std::mem::take(&mut self.tail) + chunk;
        let open =
            combined.rfind("[[").filter(|at| !combined.get(*at..).is_some_and(|tag| tag.contains("]]")));
        let (text, tail) = combined.split_at(open.unwrap_or(combined.len()));
        self.tail = tail.to_owned();
        self.read(text)
    }

    /// The message is at its end: what is held back is text.
    pub fn finish(&mut self) -> Option<ReplyPayload> {
        let tail = std::mem::take(&mut self.tail);
        let payload = self.read(&tail);
        *self = Self::default();
        payload
    }

    fn read(&mut self, chunk: &str) -> Option<ReplyPayload> {
        let Directives { text, reply_to, voice, media } = directive::parse(chunk);
        let text = if is_silent(&text) { String::new() } else { text };
        let reply_to = match (self.reply_to.take(), reply_to) {
            // An id goes before the current message; of two ids the later one.
            (Some(ReplyTo::Id(id)), Some(ReplyTo::Current)) => Some(ReplyTo::Id(id)),
            (earlier, later) => later.or(earlier),
        };
        if text.is_empty() && media.is_empty() && !voice {
            self.reply_to = reply_to;
            return None;
        }
        let media_url = media.first().cloned();
        Some(ReplyPayload { text, media_url, media_urls: media, is_error: false, reply_to, voice })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(chunks: &[&str]) -> Vec<ReplyPayload> {
        let mut stream = DirectiveStream::default();
        let mut out: Vec<ReplyPayload> = chunks.iter().filter_map(|chunk| stream.push(chunk)).collect();
        out.extend(stream.finish());
        out
    }

    /// Spec `streaming.md` §8.
    #[test]
    fn a_tag_belongs_to_what_is_said_next() {
        let say = |text: &str, reply_to: Option<ReplyTo>| ReplyPayload {
            text: text.to_owned(),
            reply_to,
            ..ReplyPayload::default()
        };
        let id = |id: &str| Some(ReplyTo::Id(id.to_owned()));
        let current = || Some(ReplyTo::Current);
        let rows: Vec<(&[&str], Vec<ReplyPayload>)> = vec![
            (&["[[reply_to_current]]", "Hello"], vec![say("Hello", current())]),
            (&["Hello [["], vec![say("Hello", None), say("[[", None)]),
            (&["[[reply_to:12", "3]] Hi"], vec![say("Hi", id("123"))]),
            (&["[[reply_to_current]]", "Hello", "again"], vec![say("Hello", current()), say("again", None)]),
            (&["[[reply_to:1]]", "[[reply_to_current]]", "Z"], vec![say("Z", id("1"))]),
            (&["a [[x]] b"], vec![say("a [[x]] b", None)]),
            (&["NO_REPLY"], vec![]),
            (&["a [[x", "]] b"], vec![say("a", None), say("[[x]] b", None)]),
        ];
        for (chunks, expect) in rows {
            assert_eq!(blocks(chunks), expect, "{chunks:?}");
        }
        let voice = blocks(&["[[audio_as_voice]]", "MEDIA:https://e.com/a.ogg"]);
        assert_eq!(
            voice.iter().map(|block| (block.voice, block.media_urls.len())).collect::<Vec<_>>(),
            [(true, 0), (false, 1)]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// Wherever a text is cut into chunks, but for the brackets of a tag, it says the same.
        #[test]
        fn chunks_say_what_the_whole_says(
            pieces in proptest::collection::vec(
                "(\\[\\[reply_to:[12]\\]\\]|\\[\\[reply_to_current\\]\\]|\\[\\[ audio_as_voice \\]\\]|\\[\\[x\\]\\]|[a-c]{1,4}| |\n|é)", 0..14
            ),
            cuts in proptest::collection::vec(0..12usize, 1..20),
        ) {
            let text = pieces.concat();
            let whole = directive::parse(&text);
            let mut chunks: Vec<String> = vec![String::new()];
            let mut cuts = cuts.into_iter().cycle();
            let mut left = cuts.next().unwrap_or(1);
            let mut before = ' ';
            for c in text.chars() {
                let is_pair = c == before && matches!(c, '[' | ']');
                if left == 0 && !is_pair {
                    chunks.push(String::new());
                    left = cuts.next().unwrap_or(1) + 1;
                }
                left = left.saturating_sub(1);
                if let Some(chunk) = chunks.last_mut() {
                    chunk.push(c);
                }
                before = c;
            }
            let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
            let said = blocks(&chunks);
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            let text: String = said.iter().map(|block| block.text.as_str()).collect();
            prop_assert_eq!(bare(&text), bare(&whole.text), "{:?}", &chunks);
            prop_assert_eq!(said.iter().any(|block| block.voice), whole.voice, "{:?}", &chunks);
        }
    }
}
