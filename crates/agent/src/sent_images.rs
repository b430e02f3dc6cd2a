//! Images that are larger than providers take, made smaller before they are sent (spec `agent-runtime.md` §9.2, step 2), wherever
//! they came from: a client, a tool, another program's transcript. The transcript keeps what it has.
//!
//! A look at the header says which these are. The replacements are remembered for later calls: they
//! have to be the same to the byte, and take long to make.

mod look;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use openclaw_protocol::message::{Block, Message, ToolResultMessage, UserContent, UserMessage};
use tokio_util::sync::CancellationToken;

use crate::picture::{self, PictureError};

/// Images as they are sent: what a session remembers between the calls of a run, and between runs.
#[derive(Debug, Default)]
pub struct SentImages {
    /// The beginning of the conversation that was looked at.
    seen: Vec<Weak<Message>>,
    /// Messages among `seen` that show images, in order.
    shown: Vec<ShownImages>,
}

/// A message that shows images.
#[derive(Debug)]
struct ShownImages {
    /// Index of the message in the conversation.
    at: usize,
    /// Message that is sent instead; `None` if the original can be sent.
    sent: Option<Arc<Message>>,
}

impl SentImages {
    /// The messages as they are sent. No message is copied while no image is too large. `None`: the
    /// run was stopped meanwhile.
    pub async fn view(
        &mut self,
        messages: &Arc<Vec<Arc<Message>>>,
        cancel: &CancellationToken,
    ) -> Option<Arc<Vec<Arc<Message>>>> {
        let mut known = self.forget_unless_it_goes_on(messages);
        for (at, message) in messages.iter().enumerate().skip(self.seen.len()) {
            if blocks(message).iter().any(is_image) {
                let sent = match known.remove(&Arc::as_ptr(message).addr()) {
                    Some(sent) => sent,
                    None => in_place_of(message, cancel).await.ok()?,
                };
                self.shown.push(ShownImages { at, sent });
            }
            self.seen.push(Arc::downgrade(message));
        }
        if self.shown.iter().all(|shown| shown.sent.is_none()) {
            return Some(Arc::clone(messages));
        }
        let mut view = messages.to_vec();
        for shown in &self.shown {
            if let (Some(message), Some(sent)) = (view.get_mut(shown.at), &shown.sent) {
                message.clone_from(sent);
            }
        }
        Some(Arc::new(view))
    }

    /// About how much memory it takes, in bytes.
    pub fn memory(&self) -> usize {
        let sent: usize = self.shown.iter().filter_map(|shown| shown.sent.as_deref()).map(size).sum();
        sent + self.seen.len() * size_of::<Weak<Message>>() + self.shown.len() * size_of::<ShownImages>()
    }

    /// Forgets everything if the conversation does not continue the one that was seen, such as
    /// after a compaction. Returns the results known so far by message address: every address in
    /// `seen` is still reserved by a weak reference, so no other message can have it.
    fn forget_unless_it_goes_on(
        &mut self,
        messages: &[Arc<Message>],
    ) -> HashMap<usize, Option<Arc<Message>>> {
        let is_same = |(seen, now): (&Weak<Message>, &Arc<Message>)| seen.as_ptr() == Arc::as_ptr(now);
        if self.seen.len() <= messages.len() && self.seen.iter().zip(messages).all(is_same) {
            return HashMap::new();
        }
        let seen = std::mem::take(&mut self.seen);
        let shown = std::mem::take(&mut self.shown).into_iter();
        shown.filter_map(|shown| Some((seen.get(shown.at)?.as_ptr().addr(), shown.sent))).collect()
    }
}

/// The run was stopped.
struct RunStopped;

/// Returns the replacement of a message, or `None` if the message can be sent unchanged.
async fn in_place_of(
    message: &Arc<Message>,
    cancel: &CancellationToken,
) -> Result<Option<Arc<Message>>, RunStopped> {
    let mut changes = Vec::new();
    for (at, block) in blocks(message).iter().enumerate() {
        let Block::Image(image) = block else { continue };
        if look::plainly_fits(image) {
            continue;
        }
        let of = Arc::clone(message);
        let made = picture::in_turn(cancel, move |stop| match blocks(&of).get(at) {
            Some(Block::Image(image)) => look::shrunk(image, stop),
            _ => Ok(None),
        });
        match made.await {
            Ok(None) => {}
            Ok(Some(smaller)) => {
                tracing::debug!(
                    bytes = image.data.len(),
                    sent = smaller.data.len(),
                    "an image was made smaller"
                );
                changes.push((at, Block::Image(smaller)));
            }
            Err(PictureError::Stopped) => return Err(RunStopped),
            Err(error) => {
                tracing::warn!(mime = %image.mime_type, bytes = image.data.len(), %error, "an image is left out");
                // Clients know the text.
                changes.push((at, Block::text(format!("[session:history] omitted image payload: {error}"))));
            }
        }
    }
    Ok((!changes.is_empty()).then(|| Arc::new(changed(message, changes))))
}

/// The message with other blocks at some places. Replaced blocks are large, and are not copied.
fn changed(message: &Message, changes: Vec<(usize, Block)>) -> Message {
    let mut changes = changes.into_iter().peekable();
    let content = blocks(message).iter().enumerate().map(|(at, block)| {
        let change = changes.next_if(|(changed, _)| *changed == at);
        change.map_or_else(|| block.clone(), |(_, block)| block)
    });
    let content: Vec<Block> = content.collect();
    match message {
        Message::User(user) => Message::User(UserMessage {
            content: UserContent::Blocks(content),
            timestamp: user.timestamp,
            provenance: user.provenance.clone(),
            extra: user.extra.clone(),
        }),
        Message::ToolResult(result) => Message::ToolResult(ToolResultMessage {
            tool_call_id: result.tool_call_id.clone(),
            tool_name: result.tool_name.clone(),
            content,
            // Never sent to a model.
            details: None,
            is_error: result.is_error,
            timestamp: result.timestamp,
            extra: result.extra.clone(),
        }),
        // The pictures it shows are not sent.
        Message::Assistant(answer) => Message::Assistant(answer.clone()),
    }
}

/// Returns the number of images of a message that are sent.
pub(crate) fn pictures(message: &Message) -> usize {
    blocks(message).iter().filter(|block| is_image(block)).count()
}

/// The blocks whose images are sent.
fn blocks(message: &Message) -> &[Block] {
    match message {
        Message::User(user) => match &user.content {
            UserContent::Blocks(blocks) => blocks,
            UserContent::Text(_) => &[],
        },
        Message::ToolResult(result) => &result.content,
        Message::Assistant(_) => &[],
    }
}

fn is_image(block: &Block) -> bool {
    matches!(block, Block::Image(_))
}

/// Returns the memory that a replacement message takes, in bytes.
fn size(message: &Message) -> usize {
    let of_block = |block: &Block| match block {
        Block::Image(image) => image.data.len(),
        Block::Text(text) => text.text.len(),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => 0,
    };
    size_of::<Message>()
        + blocks(message).iter().map(|block| size_of::<Block>() + of_block(block)).sum::<usize>()
}

#[cfg(test)]
mod tests;
