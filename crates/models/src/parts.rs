//! Parts of messages that the requests of several protocols use in the same way.

use std::sync::LazyLock;

use openclaw_protocol::message::{Block, ImageBlock, ToolCall, ToolResultMessage, UserContent};
use serde_json::{Value, json};

/// Field of a stored call with everything that its provider sent besides name and arguments, and wants back. OpenClaw ignores it.
pub(crate) const CALL_FIELDS: &str = "providerFields";
/// User message put before a conversation whose own beginning is gone, since the first message must be the user's.
pub(crate) const BOOTSTRAP: &str = "(session bootstrap)";

/// Text in the place of an image that the model does not take.
pub(crate) const IMAGE_LEFT_OUT: &str = "[an image is left out here: the model does not take it]";

/// Stand-in for missing arguments.
static NO_ARGUMENTS: LazyLock<Value> = LazyLock::new(|| json!({}));

/// Returns the parts of a user message: texts that are not blank, and the images that are accepted.
/// The model is told of those that are not.
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
                Block::Image(shown) => image(shown).or_else(|| text(IMAGE_LEFT_OUT)),
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
