//! Images as a provider takes them: called what they are, and none without bytes (spec
//! `agent-runtime.md` §9.2, step 2). Providers refuse the whole request for one that is not, with
//! every further message. Images of our own tools and clients are valid when they are stored; those
//! of other programs that write transcripts may not be. The size of an image is handled by the
//! sender of the conversation.

use std::sync::Arc;

use openclaw_protocol::message::{Block, ImageBlock, Message, UserContent};

/// Placeholder for an image without bytes; clients know the text.
const EMPTY: &str = "[session:history] omitted empty image payload";

/// Beginnings of the base64 of a file, with the file types they identify.
const BEGINNINGS: [(&str, &str); 3] =
    [("/9j/", "image/jpeg"), ("iVBOR", "image/png"), ("R0lGOD", "image/gif")];

/// Mends what has to be mended. Only messages that change are copied.
pub(super) fn mend(messages: &mut [Arc<Message>]) {
    for message in messages {
        if !blocks(message)
            .iter()
            .any(|block| matches!(block, Block::Image(image) if mended(image).is_some()))
        {
            continue;
        }
        for block in blocks_mut(Arc::make_mut(message)) {
            if let Block::Image(image) = block
                && let Some(mended) = mended(image)
            {
                *block = mended;
            }
        }
    }
}

/// Returns the replacement of an image; `None` if the image is valid.
fn mended(image: &ImageBlock) -> Option<Block> {
    let data = image.data.trim_ascii_start();
    if data.is_empty() {
        return Some(Block::text(EMPTY));
    }
    let (_, mime) = BEGINNINGS.iter().find(|(beginning, _)| data.starts_with(beginning))?;
    (image.mime_type != *mime)
        .then(|| Block::Image(ImageBlock { mime_type: (*mime).to_owned(), ..image.clone() }))
}

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

fn blocks_mut(message: &mut Message) -> &mut [Block] {
    match message {
        Message::User(user) => match &mut user.content {
            UserContent::Blocks(blocks) => blocks,
            UserContent::Text(_) => &mut [],
        },
        Message::ToolResult(result) => &mut result.content,
        Message::Assistant(_) => &mut [],
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{ToolResultMessage, UserMessage};

    use super::*;

    fn image(mime: &str, data: &str) -> Block {
        Block::Image(ImageBlock {
            data: data.to_owned(),
            mime_type: mime.to_owned(),
            ..ImageBlock::default()
        })
    }

    #[test]
    fn images_are_called_what_they_are_and_empty_ones_are_told_of() {
        let rows = [
            (image("image/png", "/9j/4AAQ"), image("image/jpeg", "/9j/4AAQ")),
            (image("", "iVBORw0KGgo="), image("image/png", "iVBORw0KGgo=")),
            (image("image/jpg", "R0lGODlh"), image("image/gif", "R0lGODlh")),
            (image("image/webp", "UklGRg=="), image("image/webp", "UklGRg==")),
            (image("image/png", "iVBORw0KGgo="), image("image/png", "iVBORw0KGgo=")),
            (image("image/png", " \n"), Block::text(EMPTY)),
            (Block::text("iVBOR"), Block::text("iVBOR")),
        ];
        let (given, expect): (Vec<Block>, Vec<Block>) = rows.into_iter().unzip();
        let user = |content| {
            Message::User(UserMessage { content: UserContent::Blocks(content), ..UserMessage::default() })
        };
        let result =
            |content| Message::ToolResult(ToolResultMessage { content, ..ToolResultMessage::default() });
        let mut messages = vec![Arc::new(user(given.clone())), Arc::new(result(given))];
        mend(&mut messages);
        assert_eq!(messages, [Arc::new(user(expect.clone())), Arc::new(result(expect))]);
        let before = messages.clone();
        mend(&mut messages);
        assert!(
            messages.iter().zip(&before).all(|(now, before)| Arc::ptr_eq(now, before)),
            "nothing is copied"
        );
    }
}
