//! The outcome of a tool where a protocol takes text alone.

use std::borrow::Cow;

use openclaw_protocol::message::{Block, ToolResultMessage};

/// Text that announces the images of results, which follow in a message of their own.
pub(crate) const IMAGES_FOLLOW: &str = "Attached image(s) from tool result:";

const ONLY_IMAGE: &str = "(see attached image)";
const NO_OUTPUT: &str = "(no output)";

/// The texts of a result, a line each; never blank, for providers refuse that.
pub(crate) fn result_text(result: &ToolResultMessage) -> Cow<'_, str> {
    let content = texts(result);
    let has_image = || result.content.iter().any(|block| matches!(block, Block::Image(_)));
    match content.trim().is_empty() {
        false => content,
        true if has_image() => Cow::Borrowed(ONLY_IMAGE),
        true => Cow::Borrowed(NO_OUTPUT),
    }
}

/// The texts of a result, a line each.
pub(crate) fn texts(result: &ToolResultMessage) -> Cow<'_, str> {
    let texts = result.content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Image(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    });
    match texts.collect::<Vec<_>>().as_slice() {
        [] => Cow::Borrowed(""),
        [only] => Cow::Borrowed(*only),
        several => Cow::Owned(several.join("\n")),
    }
}
