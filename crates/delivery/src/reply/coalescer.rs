//! Small blocks become one message (spec `streaming.md` §3). A machine: it is told the time, and says when it wants to hear it again.

use std::time::{Duration, Instant};

use openclaw_agent::ReplyPayload;
use openclaw_channels::text::Limit;

use super::chunker::Continues;

/// Limits at which blocks are combined into a message, and the time for which more are awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoalesceSettings {
    /// UTF-16 units that are waited for.
    pub min: usize,
    /// UTF-16 units of a message, at most.
    pub max: usize,
    /// Quiet time after which a message of `min` is sent.
    pub idle: Duration,
    /// Text between two blocks.
    pub joiner: &'static str,
    /// True if every block is a message.
    pub each: bool,
}

/// A block on its way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockReply {
    /// Payload that is sent.
    pub payload: ReplyPayload,
    /// Tells if it goes on with code of the block before.
    pub continues: Continues,
}

/// Gathers blocks.
#[derive(Debug)]
pub struct Coalescer {
    settings: CoalesceSettings,
    held: Option<ReplyPayload>,
    due: Option<Instant>,
}

impl Coalescer {
    /// Creates an empty coalescer.
    pub fn new(settings: CoalesceSettings) -> Self {
        Self { settings, held: None, due: None }
    }

    /// Time at which [`Coalescer::tick`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Payload that is held.
    pub fn held(&self) -> Option<&ReplyPayload> {
        self.held.as_ref()
    }

    /// Takes a block; returns the payloads that are to be sent now, in order.
    pub fn enqueue(&mut self, now: Instant, block: BlockReply) -> Vec<ReplyPayload> {
        let BlockReply { payload, continues } = block;
        if !payload.media_urls.is_empty() || payload.media_url.is_some() {
            return self.flush().into_iter().chain([payload]).collect();
        }
        if payload.text.trim().is_empty() {
            return Vec::new();
        }
        if self.settings.each {
            return self.flush().into_iter().chain([payload]).collect();
        }
        let mut ready = Vec::new();
        let differs = |held: &ReplyPayload| held.reply_to != payload.reply_to || held.voice != payload.voice;
        if self.held.as_ref().is_some_and(differs) {
            ready.extend(self.flush());
        }
        let joined =
            self.held.as_ref().map(|held| joined(&held.text, &payload.text, continues, self.settings.joiner));
        match joined {
            Some(text) if self.len(&text) <= self.settings.max => {
                self.hold(now, ReplyPayload { text, ..payload }, &mut ready);
            }
            Some(_) => {
                ready.extend(self.flush());
                self.hold(now, payload, &mut ready);
            }
            None => self.hold(now, payload, &mut ready),
        }
        ready
    }

    /// Sends the held payload if the quiet time is over.
    pub fn tick(&mut self, now: Instant) -> Option<ReplyPayload> {
        if self.due.is_none_or(|due| now < due) {
            return None;
        }
        let len = self.held.as_ref().map(|held| self.len(&held.text))?;
        if len < self.settings.min {
            self.due = Some(now + self.settings.idle);
            return None;
        }
        self.flush()
    }

    /// Takes the held payload out, however short it is.
    pub fn flush(&mut self) -> Option<ReplyPayload> {
        self.due = None;
        self.held.take()
    }

    fn hold(&mut self, now: Instant, payload: ReplyPayload, ready: &mut Vec<ReplyPayload>) {
        if self.len(&payload.text) >= self.settings.max {
            self.flush();
            ready.push(payload);
        } else {
            self.held = Some(payload);
            self.due = Some(now + self.settings.idle);
        }
    }

    fn len(&self, text: &str) -> usize {
        Limit::utf16(self.settings.max).len(text)
    }
}

/// Two blocks as one text. Code that was cut is whole again: the lines at the cut were put in.
pub fn joined(head: &str, tail: &str, continues: Continues, joiner: &str) -> String {
    let cut = match continues {
        Continues::Nothing => None,
        Continues::Code | Continues::CodeLine => head.rsplit_once('\n').zip(tail.split_once('\n')),
    };
    match cut {
        Some(((head, _), (_, tail))) if continues == Continues::Code => format!("{head}\n{tail}"),
        Some(((head, _), (_, tail))) => format!("{head}{tail}"),
        None => format!("{head}{joiner}{tail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_millis(1000);

    fn settings(min: usize, max: usize) -> CoalesceSettings {
        CoalesceSettings { min, max, idle: IDLE, joiner: " ", each: false }
    }

    fn text(text: &str) -> BlockReply {
        let payload = ReplyPayload { text: text.to_owned(), ..ReplyPayload::default() };
        BlockReply { payload, continues: Continues::Nothing }
    }

    fn media(url: &str) -> BlockReply {
        let payload = ReplyPayload { media_urls: vec![url.to_owned()], ..ReplyPayload::default() };
        BlockReply { payload, continues: Continues::Nothing }
    }

    /// Returns the payloads that come out: at once and after a flush at the end.
    fn run(settings: CoalesceSettings, blocks: Vec<BlockReply>) -> Vec<String> {
        let mut coalescer = Coalescer::new(settings);
        let now = Instant::now();
        let mut out: Vec<ReplyPayload> =
            blocks.into_iter().flat_map(|block| coalescer.enqueue(now, block)).collect();
        out.extend(coalescer.flush());
        let name = |out: ReplyPayload| if out.text.is_empty() { out.media_urls.concat() } else { out.text };
        out.into_iter().map(name).collect()
    }

    /// Spec `streaming.md` §3.
    #[test]
    fn small_blocks_become_one() {
        let reply = |words: &str, id: &str| {
            let mut block = text(words);
            block.payload.reply_to = Some(openclaw_agent::ReplyTo::Id(id.to_owned()));
            block
        };
        let each = CoalesceSettings { each: true, ..settings(1500, 4000) };
        let x = "x".repeat(12);
        let rows: Vec<(CoalesceSettings, Vec<BlockReply>, Vec<&str>)> = vec![
            (settings(1, 200), vec![text("Hello"), text("world")], vec!["Hello world"]),
            (
                settings(1, 200),
                vec![text("Hello"), text("world"), media("a.png")],
                vec!["Hello world", "a.png"],
            ),
            (
                settings(1, 12),
                vec![text("Hello"), text("world"), text("again"), text(&x)],
                vec!["Hello world", "again", &x],
            ),
            (settings(1, 11), vec![text("Hello"), text("world")], vec!["Hello world"]),
            (settings(1, 200), vec![reply("a", "1"), reply("b", "1"), reply("c", "2")], vec!["a b", "c"]),
            (each, vec![text("a"), text("b")], vec!["a", "b"]),
            (settings(1, 200), vec![text(" \n"), text("a")], vec!["a"]),
        ];
        for (settings, blocks, expect) in rows {
            assert_eq!(run(settings, blocks.clone()), expect, "{blocks:?}");
        }
        let mut full = Coalescer::new(settings(1, 11));
        let now = Instant::now();
        assert!(full.enqueue(now, text("Hello")).is_empty());
        assert_eq!(full.enqueue(now, text("world"))[0].text, "Hello world");
        assert_eq!((full.due(), full.flush()), (None, None));
        let mut idle =
            Coalescer::new(CoalesceSettings { idle: Duration::from_millis(40), ..settings(1, 200) });
        assert!(idle.enqueue(now, text("Hello")).is_empty() && idle.enqueue(now, text("world")).is_empty());
        assert_eq!(idle.tick(now + Duration::from_millis(39)), None);
        assert_eq!(idle.tick(now + Duration::from_millis(40)).unwrap().text, "Hello world");
    }

    #[test]
    fn a_short_message_waits_until_it_is_long_enough() {
        let mut coalescer = Coalescer::new(settings(10, 200));
        let start = Instant::now();
        assert!(coalescer.enqueue(start, text("short")).is_empty());
        assert_eq!(coalescer.due(), Some(start + IDLE));
        assert_eq!(coalescer.tick(start), None);
        assert_eq!(coalescer.tick(start + IDLE), None);
        let later = coalescer.due().unwrap();
        assert_eq!(later, start + 2 * IDLE);
        assert!(coalescer.enqueue(later, text("message")).is_empty());
        assert_eq!(coalescer.tick(later + IDLE).unwrap().text, "short message");
        assert_eq!(coalescer.due(), None);
    }

    #[test]
    fn code_that_was_cut_is_joined_again() {
        let rows = [
            (Continues::Code, "```js\na\n```", "```js\nb\n```", "```js\na\nb\n```"),
            (Continues::CodeLine, "```js\naa", "x", "```js\naa x"),
            (Continues::Nothing, "```js\na\n```", "```js\nb\n```", "```js\na\n``` ```js\nb\n```"),
        ];
        for (continues, head, tail, expect) in rows {
            assert_eq!(joined(head, tail, continues, " "), expect);
        }
        assert_eq!(joined("```\naa\n```", "```\nbb\n```", Continues::CodeLine, " "), "```\naabb\n```");
    }
}
