//! Blocks of a growing answer: its text in pieces, each file at its place, and the quotation of
//! each (spec `streaming.md` §5, §8).

use std::collections::VecDeque;

use openclaw_agent::event::{Attachment, Quote};
use openclaw_agent::{ReplyPayload, ReplyTo};
use openclaw_config::settings::BlockStreamingBreak;
use openclaw_delivery::reply::chunker::{Block, BlockChunker, Continues, Drain};
use openclaw_delivery::reply::coalescer::BlockReply;
use openclaw_delivery::reply::pipeline::is_audio;
use openclaw_delivery::reply::settings::ReplySettings;

/// The blocks of one answer.
pub(super) struct Blocks {
    chunker: BlockChunker,
    /// Quoted messages, each with the place in the appended text from which on it is quoted.
    quotes: Vec<(usize, ReplyTo)>,
    /// A tag in the text that comes next.
    pub(super) tag: Option<Quote>,
    /// Files in the text that comes next, in their order.
    files: Vec<Attachment>,
    /// True if all blocks wait for the end of their message.
    pub(super) at_message_end: bool,
    /// Blocks that wait for it behind the chunker: files, each with the text behind it.
    tail: VecDeque<(ReplyPayload, String)>,
}

impl Blocks {
    pub(super) fn new(settings: &ReplySettings) -> Self {
        Self {
            chunker: BlockChunker::new(settings.chunk),
            quotes: Vec::new(),
            tag: None,
            files: Vec::new(),
            at_message_end: settings.block_break == BlockStreamingBreak::MessageEnd,
            tail: VecDeque::new(),
        }
    }

    /// Handles new text.
    pub(super) fn grow(&mut self, grown: &str) -> Vec<BlockReply> {
        let mut ready = Vec::new();
        let mut from = 0;
        for file in std::mem::take(&mut self.files) {
            let at = grown.floor_char_boundary(file.after).max(from);
            let tag = self.tag.take_if(|tag| tag.after < at);
            self.quote(tag, from);
            self.append(grown.get(from..at).unwrap_or_default());
            ready.extend(self.attach(file.reference, at));
            from = at;
        }
        let tag = self.tag.take();
        self.quote(tag, from);
        self.append(grown.get(from..).unwrap_or_default());
        if !self.at_message_end {
            ready.extend(self.drain(Drain::Ready));
        }
        ready
    }

    /// Handles a file that was found in the text that comes next, or at the end of the text so far.
    pub(super) fn on_file(&mut self, file: &Attachment) -> Vec<BlockReply> {
        if file.after > 0 {
            self.files.push(file.clone());
            return Vec::new();
        }
        self.attach(file.reference.clone(), 0)
    }

    /// Begins a message, and so ends the one before. Tags and files of this one stay.
    pub(super) fn begin(&mut self) -> Vec<BlockReply> {
        let tag = self.tag.take_if(|tag| !tag.is_under_way);
        let files = std::mem::take(&mut self.files);
        let ready = self.end();
        (self.tag, self.files) = (tag, files);
        ready
    }

    /// Returns the rest of a text of the message that is at its end because something else follows.
    pub(super) fn end_of_text(&mut self) -> Vec<BlockReply> {
        if self.at_message_end { Vec::new() } else { self.drain(Drain::All) }
    }

    /// Returns the rest of a message that is at its end. A tag behind its last block belongs to
    /// nothing; files that have found no place come with the end of the answer.
    pub(super) fn end(&mut self) -> Vec<BlockReply> {
        let tag = self.tag.take();
        self.quote(tag, 0);
        self.files.clear();
        let mut ready = self.drain(Drain::All);
        while let Some((file, text)) = self.tail.pop_front() {
            ready.push(whole(file));
            self.chunker.append(&text);
            ready.extend(self.drain(Drain::All));
        }
        self.quotes.clear();
        ready
    }

    /// Puts a file behind all that was appended. A tag that stands before it is its own. Recordings come with the end of the answer: a tag
    /// behind them may make voice messages of them.
    fn attach(&mut self, reference: String, at: usize) -> Vec<BlockReply> {
        let media_urls = vec![reference.clone()];
        let file = ReplyPayload { media_url: Some(reference), media_urls, ..ReplyPayload::default() };
        if is_audio(&file) {
            return Vec::new();
        }
        let reply_to = self.tag.take_if(|tag| tag.after <= at).map(|tag| tag.reply_to);
        let file = ReplyPayload { reply_to, ..file };
        if self.at_message_end {
            self.tail.push_back((file, String::new()));
            return Vec::new();
        }
        let mut ready = self.drain(Drain::All);
        ready.push(whole(file));
        ready
    }

    /// Notes a quotation from some point on in the text that is appended next, of which so many
    /// bytes were appended already.
    fn quote(&mut self, tag: Option<Quote>, from: usize) {
        let behind = self.tail.iter().map(|(_, text)| text.len()).sum::<usize>();
        let appended = self.chunker.appended() + behind;
        self.quotes.extend(tag.map(|tag| (appended + tag.after.saturating_sub(from), tag.reply_to)));
    }

    fn append(&mut self, text: &str) {
        match self.tail.back_mut() {
            Some((_, last)) => last.push_str(text),
            None => self.chunker.append(text),
        }
    }

    fn drain(&mut self, drain: Drain) -> Vec<BlockReply> {
        let mut drained = self.chunker.drain(drain);
        if let Some(last) = drained.last_mut().filter(|_| drain == Drain::All && self.tail.is_empty()) {
            // A tag at the end of all belongs to it.
            last.end = usize::MAX;
        }
        let mut ready = Vec::new();
        for Block { text, continues, end } in drained {
            let before = self.quotes.partition_point(|(at, _)| *at < end);
            let reply_to = self.quotes.drain(..before).next_back().map(|(_, reply_to)| reply_to);
            // Behind a file it begins with the end of that one's line.
            let text = text.trim_start_matches('\n').to_owned();
            ready.push(BlockReply {
                payload: ReplyPayload { text, reply_to, ..ReplyPayload::default() },
                continues,
            });
        }
        ready
    }
}

/// Makes a file a message of its own.
fn whole(payload: ReplyPayload) -> BlockReply {
    BlockReply { payload, continues: Continues::Nothing }
}
