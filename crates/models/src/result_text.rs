//! The outcome of a tool where a protocol takes text alone.

use openclaw_protocol::message::{Block, ToolResultMessage};

/// What announces the images of results, which follow in a message of their own.
pub(crate) const IMAGES_FOLLOW: &str = "Attached image(s) from tool result:";

const ONLY_IMAGE: &str = "(see attached image)";
const NO_OUTPUT: &str = "(no output)";

/// The texts of a result, a line each; never blank, for providers refuse that.
pub(crate) fn result_text(result: &ToolResultMessage) -> String {
    let mut texts = Vec::new();
    let mut has_image = false;
    for block in &result.content {
        match block {
            Block::Text(text) => texts.push(text.text.as_str()),
            Block::Image(_) => has_image = true,
            Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => {}
        }
    }
    let content = texts.join("\n");
    match content.trim().is_empty() {
        false => content,
        true if has_image => ONLY_IMAGE.to_owned(),
        true => NO_OUTPUT.to_owned(),
    }
}
