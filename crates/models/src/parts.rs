//! What the requests of several protocols take from a message in the same way.

use std::sync::LazyLock;

use openclaw_protocol::message::{Block, ImageBlock, ToolCall, ToolResultMessage, UserContent};
use serde_json::{Value, json};

/// What stands for arguments that are none.
static NO_ARGUMENTS: LazyLock<Value> = LazyLock::new(|| json!({}));

/// What a person says: texts that are not blank, and the images that are taken.
pub(crate) fn user_parts<'a, P>(
    content: &'a UserContent,
    text: impl Fn(&'a str) -> Option<P>,
    image: impl Fn(&'a ImageBlock) -> Option<P>,
) -> Vec<P> {
    match content {
        UserContent::Text(said) => text(said).into_iter().collect(),
        UserContent::Blocks(blocks) => blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text(said) => text(&said.text),
                Block::Image(shown) => image(shown),
                Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
            })
            .collect(),
    }
}

/// The images of a tool's result.
pub(crate) fn result_images(result: &ToolResultMessage) -> impl Iterator<Item = &ImageBlock> {
    result.content.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    })
}

/// The arguments of a call: always an object.
pub(crate) fn arguments(call: &ToolCall) -> &Value {
    if call.arguments.is_object() { &call.arguments } else { &NO_ARGUMENTS }
}
