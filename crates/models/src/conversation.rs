//! The messages of one request, made fit for its model, as a protocol writes them.

use std::collections::BTreeSet;
use std::sync::Arc;

use openclaw_protocol::message::{Block, Message, UserContent};

use crate::json::{Json, JsonMessages};

/// The messages that are still to be written. Earlier messages were written for an earlier request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestConversation<'a> {
    /// Number of messages that are written already.
    pub(crate) written: usize,
    /// Summary of the messages that are written already.
    pub(crate) known: &'a MessageFacts,
    /// Messages that every later request repeats in the same form. Only a
    /// [seam](crate::history::last_seam) ends them.
    pub(crate) settled: &'a [Arc<Message>],
    /// Remaining messages: at least one, except for a conversation without any.
    pub(crate) open: &'a [Arc<Message>],
}

/// Facts about messages that need not be examined again.
#[derive(Debug, Default)]
pub(crate) struct MessageFacts {
    tools_used: BTreeSet<String>,
    shows_images: bool,
}

/// Facts about a request besides its body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFacts {
    /// True if the last message is from a person rather than a tool.
    pub(crate) by_user: bool,
    pub(crate) shows_images: bool,
}

impl<'a> RequestConversation<'a> {
    /// Creates a conversation of which nothing was written before and nothing is kept.
    pub(crate) fn whole(messages: &'a [Arc<Message>]) -> Self {
        static NOTHING: MessageFacts = MessageFacts { tools_used: BTreeSet::new(), shows_images: false };
        Self { written: 0, known: &NOTHING, settled: &[], open: messages }
    }

    /// The messages as `write` writes some of them; it is also told how many there are before.
    pub(crate) fn messages(
        &self,
        write: impl Fn(&'a [Arc<Message>], usize) -> Vec<Json<'a>>,
    ) -> JsonMessages<'a> {
        let settled = write(self.settled, self.written);
        let open = write(self.open, self.written + self.settled.len());
        JsonMessages { head: Vec::new(), settled, open }
    }

    /// The names of the tools that were called.
    pub(crate) fn tools_used(&self) -> BTreeSet<&'a str> {
        self.unwritten()
            .flat_map(tools_used)
            .chain(self.known.tools_used.iter().map(String::as_str))
            .collect()
    }

    pub(crate) fn asked(&self) -> RequestFacts {
        RequestFacts {
            by_user: self.open.last().is_none_or(|last| matches!(**last, Message::User(_))),
            shows_images: self.known.shows_images || self.unwritten().any(shows_image),
        }
    }

    fn unwritten(&self) -> impl Iterator<Item = &'a Message> + use<'a> {
        self.settled.iter().chain(self.open).map(Arc::as_ref)
    }
}

impl MessageFacts {
    /// Adds messages.
    pub(crate) fn note(&mut self, messages: &[Arc<Message>]) {
        for message in messages {
            self.shows_images |= shows_image(message);
            for name in tools_used(message) {
                if !self.tools_used.contains(name) {
                    self.tools_used.insert(name.to_owned());
                }
            }
        }
    }
}

fn tools_used(message: &Message) -> impl Iterator<Item = &str> {
    let answer = match message {
        Message::Assistant(answer) => Some(answer),
        Message::User(_) | Message::ToolResult(_) => None,
    };
    answer.into_iter().flat_map(|answer| answer.tool_calls()).map(|call| call.name.as_str())
}

fn shows_image(message: &Message) -> bool {
    let blocks = match message {
        Message::User(user) => match &user.content {
            UserContent::Blocks(blocks) => blocks,
            UserContent::Text(_) => return false,
        },
        Message::ToolResult(result) => &result.content,
        Message::Assistant(_) => return false,
    };
    blocks.iter().any(|block| matches!(block, Block::Image(_)))
}
