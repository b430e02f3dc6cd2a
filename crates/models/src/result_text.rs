//! The outcome of a tool where a protocol takes text alone.

use std::borrow::Cow;

use openclaw_protocol::message::{Block, ToolResultMessage};

use crate::model_spec::ModelSpec;
use crate::parts::{IMAGE_LEFT_OUT, result_images};

/// Text that announces the images of results, which follow in a message of their own.
pub(crate) const IMAGES_FOLLOW: &str = "Attached image(s) from tool result:";

const ONLY_IMAGE: &str = "(see attached image)";
const NO_OUTPUT: &str = "(no output)";

/// The texts of a result for a model; never blank, for providers refuse that.
pub(crate) fn result_text<'a>(spec: &ModelSpec, result: &'a ToolResultMessage) -> Cow<'a, str> {
    let content = texts_for(spec, result);
    match content.trim().is_empty() {
        false => content,
        true if result_images(result).next().is_some() => Cow::Borrowed(ONLY_IMAGE),
        true => Cow::Borrowed(NO_OUTPUT),
    }
}

/// The texts of a result for a model, a line each. One that takes no images is told of those of the
/// result.
pub(crate) fn texts_for<'a>(spec: &ModelSpec, result: &'a ToolResultMessage) -> Cow<'a, str> {
    let content = texts(result);
    match spec.images || result_images(result).next().is_none() {
        true => content,
        false if content.trim().is_empty() => Cow::Borrowed(IMAGE_LEFT_OUT),
        false => Cow::Owned(format!("{content}\n{IMAGE_LEFT_OUT}")),
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
