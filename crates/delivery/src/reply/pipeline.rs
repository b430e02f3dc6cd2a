//! Pipeline of blocks: decides which blocks of an answer are sent while it is written, and what is
//! left for its end (spec `streaming.md` §5). A machine: its driver sends one block after the
//! other, each with a deadline of [`SEND_TIMEOUT`], and reports the result of each.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use openclaw_agent::{ReplyPayload, ReplyTo};

use super::chunker::Continues;
use super::coalescer::{BlockReply, Coalescer};

/// Time that a block may take.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(15);
/// Endings of recordings. They are held until the end: a later block may ask for a voice message.
const AUDIO: [&str; 10] = ["aac", "caf", "flac", "m4a", "mp3", "oga", "ogg", "opus", "wav", "wma"];

/// Effect that the driver carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockEffect {
    /// Send a block, after a pause if it is not the first, and report the result by
    /// [`BlockPipeline::sent`].
    Send {
        /// Payload to send.
        payload: ReplyPayload,
        /// True if it is the first block: there is no pause before it.
        is_first: bool,
        /// True if it is not part of the answer: there is no pause before it either.
        is_notice: bool,
    },
}

/// Result of sending a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendEnd {
    /// The block was sent, or is in the outbox.
    Sent,
    /// The block was not sent; the next ones are sent all the same.
    Failed,
    /// The block took too long and was given up. Later blocks are not sent, so that none overtakes
    /// it: the answer is sent whole at its end.
    TimedOut,
}

/// Key by which two payloads count as the same (dedupe).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PayloadKey {
    text: String,
    media: Vec<String>,
    reply_to: Option<String>,
    /// Two messages may have the same answer.
    said_to: usize,
}

impl PayloadKey {
    fn of(payload: &ReplyPayload) -> Self {
        let reply_to = payload.reply_to.as_ref().map(|to| match to {
            ReplyTo::Current => String::new(),
            ReplyTo::Id(id) => id.clone(),
        });
        Self {
            text: payload.text.trim().to_owned(),
            media: media(payload),
            reply_to,
            said_to: payload.said_to,
        }
    }
}

/// Payload that is to be sent.
#[derive(Debug, Clone)]
struct PendingPayload {
    payload: ReplyPayload,
    /// True if it is not part of the answer: it covers nothing of the answer's end.
    is_notice: bool,
}

impl PendingPayload {
    fn block(payload: ReplyPayload) -> Self {
        Self { payload, is_notice: false }
    }
}

/// The blocks of one turn.
#[derive(Debug)]
pub struct BlockPipeline {
    coalescer: Option<Coalescer>,
    /// Keys of everything that came in.
    seen: HashSet<PayloadKey>,
    waiting: VecDeque<PendingPayload>,
    /// The block that the driver is sending.
    sending: Option<PendingPayload>,
    is_first: bool,
    is_aborted: bool,
    /// Recordings, until the end.
    audio: Vec<ReplyPayload>,
    wants_voice: bool,
    sent: HashSet<PayloadKey>,
    sent_texts: Vec<String>,
    sent_media: HashSet<String>,
    /// Texts of blocks as they came in, repeated ones too.
    arrived: Vec<String>,
    has_failed: bool,
}

impl BlockPipeline {
    /// Creates the pipeline of a turn; without a coalescer every block is a message.
    pub fn new(coalescer: Option<Coalescer>) -> Self {
        Self {
            coalescer,
            seen: HashSet::new(),
            waiting: VecDeque::new(),
            sending: None,
            is_first: true,
            is_aborted: false,
            audio: Vec::new(),
            wants_voice: false,
            sent: HashSet::new(),
            sent_texts: Vec::new(),
            sent_media: HashSet::new(),
            arrived: Vec::new(),
            has_failed: false,
        }
    }

    /// Takes a block.
    pub fn enqueue(&mut self, now: Instant, block: BlockReply) -> Option<BlockEffect> {
        if self.is_aborted {
            return None;
        }
        self.wants_voice |= block.payload.voice;
        if is_audio(&block.payload) {
            if self.seen.insert(PayloadKey::of(&block.payload)) {
                self.audio.push(block.payload);
            }
            return None;
        }
        self.arrived.push(comparable(&block.payload.text));
        let is_new = self.seen.insert(PayloadKey::of(&block.payload));
        if !is_new && block.continues == Continues::Nothing {
            return None;
        }
        match &mut self.coalescer {
            Some(coalescer) => {
                self.waiting.extend(coalescer.enqueue(now, block).into_iter().map(PendingPayload::block))
            }
            None if is_empty(&block.payload) => {}
            None => self.waiting.push_back(PendingPayload::block(block.payload)),
        }
        self.next()
    }

    /// Takes a message of its own, such as the model's thoughts, which is sent behind everything
    /// that came in before.
    pub fn enqueue_whole(&mut self, payload: ReplyPayload) -> Option<BlockEffect> {
        if self.is_aborted {
            return None;
        }
        self.gather();
        self.arrived.push(comparable(&payload.text));
        self.seen.insert(PayloadKey::of(&payload));
        self.waiting.push_back(PendingPayload::block(payload));
        self.next()
    }

    /// Takes a message that is not part of the answer, such as a note on a tool: it is sent behind
    /// everything that came in before.
    pub fn notice(&mut self, payload: ReplyPayload) -> Option<BlockEffect> {
        if self.is_aborted {
            return None;
        }
        self.gather();
        self.waiting.push_back(PendingPayload { payload, is_notice: true });
        self.next()
    }

    /// Queues the payload that the coalescer holds.
    fn gather(&mut self) {
        let held = self.coalescer.as_mut().and_then(Coalescer::flush);
        self.waiting.extend(held.filter(|_| !self.is_aborted).map(PendingPayload::block));
    }

    /// Time at which [`BlockPipeline::tick`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        self.coalescer.as_ref().filter(|_| !self.is_aborted).and_then(Coalescer::due)
    }

    /// Handles the time at which it is [`BlockPipeline::due`].
    pub fn tick(&mut self, now: Instant) -> Option<BlockEffect> {
        let ready = self.coalescer.as_mut().and_then(|coalescer| coalescer.tick(now));
        self.waiting.extend(ready.filter(|_| !self.is_aborted).map(PendingPayload::block));
        self.next()
    }

    /// Sends out the held text, because a tool starts or the text is at its end.
    pub fn flush(&mut self) -> Option<BlockEffect> {
        self.gather();
        self.next()
    }

    /// Drops what was not sent yet of the answers to messages behind this one, by
    /// [`ReplyPayload::said_to`].
    pub fn cut_behind(&mut self, said_to: usize) {
        self.gather();
        self.waiting.retain(|waiting| waiting.payload.said_to <= said_to);
        self.audio.retain(|payload| payload.said_to <= said_to);
    }

    /// Sends out everything that is held, recordings too, because the turn is at its end.
    pub fn finish(&mut self) -> Option<BlockEffect> {
        let held = self.flush();
        if !self.is_aborted {
            let voice = self.wants_voice;
            let audio = std::mem::take(&mut self.audio).into_iter();
            self.waiting
                .extend(audio.map(|payload| PendingPayload::block(ReplyPayload { voice, ..payload })));
        }
        held.or_else(|| self.next())
    }

    /// Notes the result of the block that was sent; returns the next one.
    pub fn sent(&mut self, end: SendEnd) -> Option<BlockEffect> {
        let PendingPayload { payload, is_notice } = self.sending.take()?;
        match end {
            SendEnd::Sent | SendEnd::Failed if is_notice => {}
            SendEnd::Sent => {
                self.sent.insert(PayloadKey::of(&payload));
                self.sent_media.extend(media(&payload));
                if !payload.text.trim().is_empty() {
                    self.sent_texts.push(payload.text);
                }
            }
            SendEnd::Failed => self.has_failed = true,
            SendEnd::TimedOut => {
                tracing::warn!(
                    "block reply delivery timed out after {}ms; skipping remaining block replies to preserve ordering",
                    SEND_TIMEOUT.as_millis()
                );
                self.is_aborted = true;
                self.waiting.clear();
                self.audio.clear();
            }
        }
        self.next()
    }

    /// True if the driver has nothing to send now.
    pub fn is_idle(&self) -> bool {
        self.sending.is_none() && self.waiting.is_empty()
    }

    /// True if a block took too long.
    pub fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// True if a payload like this one was sent.
    pub fn has_sent(&self, payload: &ReplyPayload) -> bool {
        self.sent.contains(&PayloadKey::of(payload))
    }

    /// Joins all texts that were sent with line breaks, for speech if only the end of an answer is
    /// spoken.
    pub fn sent_text(&self) -> String {
        self.sent_texts.join("\n")
    }

    /// Returns the final payloads that are still to be sent: errors, media that did not go out,
    /// texts that no block has brought. Called when the pipeline is idle.
    pub fn remaining(&self, finals: Vec<ReplyPayload>) -> Vec<ReplyPayload> {
        if self.is_aborted {
            return finals;
        }
        let sent: Vec<String> = match self.has_failed {
            true => self.sent_texts.iter().map(|text| comparable(text)).collect(),
            false => self.arrived.clone(),
        };
        let left = |payload: ReplyPayload| {
            if payload.is_error {
                return Some(payload);
            }
            let unsent: Vec<String> =
                media(&payload).into_iter().filter(|url| !self.sent_media.contains(url)).collect();
            let text = comparable(&payload.text);
            let is_covered = text.is_empty() || are_said(&sent, &text);
            let text = if is_covered { String::new() } else { payload.text.clone() };
            let left =
                ReplyPayload { text, media_url: unsent.first().cloned(), media_urls: unsent, ..payload };
            (!is_empty(&left)).then_some(left)
        };
        finals.into_iter().filter_map(left).collect()
    }

    fn next(&mut self) -> Option<BlockEffect> {
        if self.sending.is_some() || self.is_aborted {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.sending = Some(next.clone());
        let PendingPayload { payload, is_notice } = next;
        let is_first = !is_notice && std::mem::take(&mut self.is_first);
        Some(BlockEffect::Send { payload, is_first, is_notice })
    }
}

/// Returns all media of a payload.
pub fn media(payload: &ReplyPayload) -> Vec<String> {
    match (&payload.media_url, payload.media_urls.as_slice()) {
        (Some(url), []) => vec![url.clone()],
        (_, urls) => urls.to_vec(),
    }
}

fn is_empty(payload: &ReplyPayload) -> bool {
    payload.text.trim().is_empty() && media(payload).is_empty()
}

/// True if a payload consists only of recordings.
pub fn is_audio(payload: &ReplyPayload) -> bool {
    let media = media(payload);
    let is_recording = |url: &String| {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        path.rsplit_once('.').is_some_and(|(_, end)| AUDIO.contains(&end.to_ascii_lowercase().as_str()))
    };
    payload.text.trim().is_empty() && !media.is_empty() && media.iter().all(is_recording)
}

/// True if some of the texts, one after the other, are this one.
fn are_said(texts: &[String], whole: &str) -> bool {
    (0..texts.len()).any(|from| {
        let mut rest = whole;
        for text in texts.get(from..).unwrap_or_default() {
            match rest.strip_prefix(text.as_str()) {
                Some("") => return true,
                Some(left) => rest = left,
                None => return false,
            }
        }
        false
    })
}

/// Returns a text without the parts that cutting changes: blanks, and the lines around code.
fn comparable(text: &str) -> String {
    compared(text).map(|(_, c)| c).collect()
}

/// Iterates over the characters that are compared, with their places in the text.
pub(super) fn compared(text: &str) -> impl Iterator<Item = (usize, char)> {
    let lines = text.split_inclusive('\n').scan(0, |end, line| {
        let from = *end;
        *end += line.len();
        Some((from, line))
    });
    let lines = lines.filter(|(_, line)| !is_fence(line));
    let chars = lines.flat_map(|(from, line)| line.char_indices().map(move |(at, c)| (from + at, c)));
    chars.filter(|(_, c)| !c.is_whitespace())
}

/// True if a line begins or ends code.
pub(super) fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::coalescer::CoalesceSettings;

    fn payload(text: &str) -> ReplyPayload {
        ReplyPayload { text: text.to_owned(), ..ReplyPayload::default() }
    }

    fn block(payload: ReplyPayload) -> BlockReply {
        BlockReply { payload, continues: Continues::Nothing }
    }

    fn with_media(text: &str, url: &str) -> ReplyPayload {
        ReplyPayload { media_url: Some(url.to_owned()), media_urls: vec![url.to_owned()], ..payload(text) }
    }

    /// Sends everything at once; gives the texts that went out.
    fn drive(pipeline: &mut BlockPipeline, effect: Option<BlockEffect>) -> Vec<String> {
        let mut sent = Vec::new();
        let mut next = effect;
        while let Some(BlockEffect::Send { payload, .. }) = next {
            sent.push(payload.text);
            next = pipeline.sent(SendEnd::Sent);
        }
        sent
    }

    /// Spec `streaming.md` §5.
    #[test]
    fn a_block_is_sent_once() {
        let now = Instant::now();
        let mut pipeline = BlockPipeline::new(None);
        let answering = ReplyPayload { reply_to: Some(ReplyTo::Id("1".to_owned())), ..payload("A") };
        let blocks = [payload("A"), payload("A"), payload("B"), answering];
        let mut sent = Vec::new();
        for each in blocks {
            let effect = pipeline.enqueue(now, block(each));
            sent.extend(drive(&mut pipeline, effect));
        }
        assert_eq!(sent, ["A", "B", "A"]);
        assert!(pipeline.has_sent(&payload(" A ")) && !pipeline.has_sent(&payload("C")));
        assert!(pipeline.is_idle());
    }

    #[test]
    fn a_recording_is_sent_once_as_any_file() {
        let now = Instant::now();
        let mut pipeline = BlockPipeline::new(None);
        for url in ["./a.png", "./e.mp3", "./a.png", "./e.mp3", "./f.mp3"] {
            let effect = pipeline.enqueue(now, block(with_media("", url)));
            drive(&mut pipeline, effect);
        }
        let mut next = pipeline.finish();
        let mut sent = Vec::new();
        while let Some(BlockEffect::Send { payload, .. }) = next {
            sent.extend(media(&payload));
            next = pipeline.sent(SendEnd::Sent);
        }
        assert_eq!(sent, ["./e.mp3", "./f.mp3"]);
    }

    #[test]
    fn a_block_that_takes_too_long_ends_streaming() {
        let now = Instant::now();
        let mut pipeline = BlockPipeline::new(None);
        assert!(matches!(
            pipeline.enqueue(now, block(payload("slow"))),
            Some(BlockEffect::Send { is_first: true, .. })
        ));
        assert_eq!(pipeline.enqueue(now, block(payload("B"))), None);
        assert_eq!(pipeline.sent(SendEnd::TimedOut), None);
        assert_eq!(pipeline.enqueue(now, block(payload("C"))), None);
        assert_eq!(pipeline.finish(), None);
        assert!(pipeline.is_aborted() && pipeline.is_idle());
        assert_eq!(pipeline.remaining(vec![payload("slow B C")]), [payload("slow B C")]);
    }

    #[test]
    fn a_block_that_fails_is_sent_again_at_the_end() {
        let now = Instant::now();
        let mut pipeline = BlockPipeline::new(None);
        pipeline.enqueue(now, block(payload("A")));
        pipeline.enqueue(now, block(payload("B")));
        let next = pipeline.sent(SendEnd::Failed);
        assert!(matches!(next, Some(BlockEffect::Send { is_first: false, .. })));
        assert_eq!(pipeline.sent(SendEnd::Sent), None);
        assert_eq!(pipeline.remaining(vec![payload("A"), payload("B")]), [payload("A")]);
    }

    #[test]
    fn what_was_streamed_is_not_sent_again() {
        let now = Instant::now();
        let error = ReplyPayload { is_error: true, ..payload("hello") };
        let rows: Vec<(Vec<ReplyPayload>, Vec<ReplyPayload>, Vec<ReplyPayload>)> = vec![
            (vec![payload("hello")], vec![payload("hello")], vec![]),
            (vec![payload("a b"), payload("c")], vec![payload("a b\n\nc")], vec![]),
            (
                vec![payload("```js\na\n```"), payload("```js\nb\n```")],
                vec![payload("```js\na\nb\n```")],
                vec![],
            ),
            (vec![payload("hello")], vec![error.clone()], vec![error]),
            (vec![payload("hello")], vec![with_media("hello", "./a.png")], vec![with_media("", "./a.png")]),
            (vec![with_media("", "./a.png")], vec![with_media("x", "./a.png")], vec![payload("x")]),
            (vec![payload("hello")], vec![payload("something else")], vec![payload("something else")]),
            (vec![payload("a book")], vec![payload("ok")], vec![payload("ok")]),
            (vec![payload("again"), payload("again")], vec![payload("again\n\nagain")], vec![]),
            (vec![payload("first"), payload("second")], vec![payload("second")], vec![]),
            (vec![], vec![payload("hello")], vec![payload("hello")]),
        ];
        for (blocks, finals, expect) in rows {
            let mut pipeline = BlockPipeline::new(None);
            for each in blocks.clone() {
                let effect = pipeline.enqueue(now, block(each));
                drive(&mut pipeline, effect);
            }
            assert_eq!(pipeline.remaining(finals), expect, "{blocks:?}");
        }
    }

    #[test]
    fn a_text_that_is_short_to_its_end_is_one_block_and_the_answer() {
        let settings = CoalesceSettings {
            min: 1500,
            max: 2000,
            idle: Duration::from_secs(1),
            joiner: "\n\n",
            each: false,
        };
        let now = Instant::now();
        let mut pipeline = BlockPipeline::new(Some(Coalescer::new(settings)));
        for text in ["one", "two", "one"] {
            assert_eq!(pipeline.enqueue(now, block(payload(text))), None);
        }
        assert_eq!(pipeline.tick(now + Duration::from_secs(1)), None, "it waits for more");
        let effect = pipeline.finish();
        assert_eq!(drive(&mut pipeline, effect), ["one\n\ntwo"]);
        assert_eq!(pipeline.remaining(vec![payload("one\n\ntwo\n\none")]), []);
    }

    #[test]
    fn recordings_wait_for_the_voice_tag() {
        let now = Instant::now();
        let mut pipeline = BlockPipeline::new(None);
        assert_eq!(pipeline.enqueue(now, block(with_media("", "https://e.com/a.OGG?x=1"))), None);
        let voice = ReplyPayload { voice: true, ..payload("say") };
        let effect = pipeline.enqueue(now, block(voice));
        assert_eq!(drive(&mut pipeline, effect), ["say"]);
        let Some(BlockEffect::Send { payload, .. }) = pipeline.finish() else { panic!("not sent") };
        assert!(payload.voice && payload.media_urls == ["https://e.com/a.OGG?x=1"]);
    }

    #[test]
    fn what_is_none_of_the_answer_keeps_its_place_and_covers_nothing() {
        let mut pipeline = BlockPipeline::new(None);
        let effect = pipeline.notice(payload("🛠️ Exec: `ls`"));
        assert!(matches!(effect, Some(BlockEffect::Send { is_first: false, is_notice: true, .. })));
        assert_eq!(pipeline.enqueue(Instant::now(), block(payload("A"))), None);
        assert_eq!(pipeline.enqueue_whole(payload("Reasoning:\n_a_")), None);
        let effect = pipeline.sent(SendEnd::Failed);
        assert!(matches!(effect, Some(BlockEffect::Send { is_first: true, is_notice: false, .. })));
        let effect = pipeline.sent(SendEnd::Sent);
        assert_eq!(drive(&mut pipeline, effect), ["Reasoning:\n_a_"]);
        let finals = vec![payload("🛠️ Exec: `ls`"), payload("Reasoning:\n_a_"), payload("A"), payload("B")];
        assert_eq!(pipeline.remaining(finals), [payload("🛠️ Exec: `ls`"), payload("B")]);
        assert_eq!(pipeline.sent_text(), "A\nReasoning:\n_a_");
    }

    #[test]
    fn a_tool_is_told_of_after_the_text_before_it() {
        let now = Instant::now();
        let settings = super::super::CoalesceSettings {
            min: 100,
            max: 1000,
            idle: Duration::from_secs(1),
            joiner: "\n\n",
            each: false,
        };
        let mut pipeline = BlockPipeline::new(Some(Coalescer::new(settings)));
        assert_eq!(pipeline.enqueue(now, block(payload("short"))), None);
        assert_eq!(pipeline.due(), Some(now + Duration::from_secs(1)));
        assert_eq!(pipeline.tick(now + Duration::from_secs(1)), None);
        let effect = pipeline.flush();
        assert_eq!(drive(&mut pipeline, effect), ["short"]);
        assert_eq!(pipeline.sent_text(), "short");
    }
}
