//! A conversation as the input items of the Responses protocol (spec `models.md` §4.3).

use std::borrow::Cow;
use std::sync::Arc;

use openclaw_protocol::message::{
    AssistantMessage, Block, ImageBlock, Message, TextBlock, ThinkingBlock, ToolCall, UserContent,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::json::{Json, object};
use crate::model_spec::ModelSpec;
use crate::parts::{arguments, result_images, user_parts};
use crate::result_text::{IMAGES_FOLLOW, result_text};

/// Longest id the server takes, in bytes.
const MAX_ID: usize = 64;

/// The items of messages that were made fit for the model, the first of which is number `first` of the history.
pub(super) fn items<'a>(spec: &ModelSpec, history: &'a [Arc<Message>], first: usize) -> Vec<Json<'a>> {
    let mut out = Vec::with_capacity(history.len());
    let mut images: Vec<Json<'a>> = Vec::new();
    for (at, message) in (first..).zip(history.iter().map(Arc::as_ref)) {
        if !matches!(message, Message::ToolResult(_)) {
            push_images(&mut out, &mut images);
        }
        match message {
            Message::User(user) => out.extend(user_item(spec, &user.content)),
            Message::Assistant(answer) => answer_items(spec, answer, at, &mut out),
            Message::ToolResult(result) => {
                let (call, _) = call_and_item(&result.tool_call_id);
                let output = result_text(spec, result);
                out.push(object! {"type": "function_call_output", "call_id": call, "output": output});
                images.extend(result_images(result).filter_map(|image| image_part(spec, image)));
            }
        }
    }
    push_images(&mut out, &mut images);
    out
}

/// Outputs hold text alone: the images of a run of them follow in a user item.
fn push_images<'a>(out: &mut Vec<Json<'a>>, images: &mut Vec<Json<'a>>) {
    if images.is_empty() {
        return;
    }
    let mut content = vec![object! {"type": "input_text", "text": IMAGES_FOLLOW}];
    content.append(images);
    out.push(object! {"role": "user", "content": content});
}

fn user_item<'a>(spec: &ModelSpec, content: &'a UserContent) -> Option<Json<'a>> {
    let parts = user_parts(content, text_part, |image| image_part(spec, image));
    (!parts.is_empty()).then(|| object! {"role": "user", "content": parts})
}

fn text_part(text: &str) -> Option<Json<'_>> {
    (!text.trim().is_empty()).then(|| object! {"type": "input_text", "text": text})
}

fn image_part(spec: &ModelSpec, image: &ImageBlock) -> Option<Json<'static>> {
    let ImageBlock { data, mime_type, .. } = image;
    let url = format!("data:{mime_type};base64,{data}");
    spec.images.then(|| object! {"type": "input_image", "detail": "auto", "image_url": url})
}

/// Appends the items of answer number `at` of the history.
fn answer_items<'a>(spec: &ModelSpec, answer: &'a AssistantMessage, at: usize, out: &mut Vec<Json<'a>>) {
    let sibling =
        answer.model != spec.id() && answer.provider == spec.provider() && answer.api == spec.api.as_str();
    let has_lost =
        |block: &Block| matches!(block, Block::Thinking(thought) if reasoning_item(thought).is_none());
    let is_unthought = sibling || answer.content.iter().any(has_lost);
    let mut texts = 0;
    let before = out.len();
    for block in &answer.content {
        match block {
            Block::Thinking(thinking) => out.extend(reasoning_item(thinking).map(Json::from)),
            Block::Text(text) if !text.text.trim().is_empty() => {
                out.push(text_item(text, is_unthought, at, texts));
                texts += 1;
            }
            Block::ToolCall(call) => out.push(call_item(call, is_unthought)),
            Block::Text(_) | Block::Image(_) | Block::Other(_) => {}
        }
    }
    // Reasoning that led to nothing, as when the answer hit its limit, is refused by the server.
    while out.len() > before && out.last().is_some_and(|item| item.is("type", "reasoning")) {
        out.pop();
    }
}

/// The item the server sent, as it sent it. Reasoning without its encrypted content can't be given back: the server stores nothing, so
/// it would look for the item in vain and refuse the request, with every further message.
fn reasoning_item(thinking: &ThinkingBlock) -> Option<Value> {
    let item: Value = serde_json::from_str(thinking.thinking_signature.as_deref()?).ok()?;
    let is_whole = item.get("encrypted_content")?.as_str().is_some_and(|content| !content.is_empty());
    (item.get("type")? == "reasoning" && is_whole).then_some(item)
}

/// `is_unthought`: see [`call_item`].
fn text_item(text: &TextBlock, is_unthought: bool, at: usize, nth: usize) -> Json<'_> {
    let is_id =
        |id: &&str| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let id = match text.text_signature.as_deref().filter(|id| is_id(id) && !is_unthought) {
        Some(id) => fit_id("msg_", id),
        None if nth == 0 => format!("msg_{at}").into(),
        None => format!("msg_{at}_{nth}").into(),
    };
    let part = object! {"type": "output_text", "text": &text.text, "annotations": []};
    object! {"type": "message", "role": "assistant", "content": [part], "status": "completed", "id": id}
}

/// The id, or a short stand-in that is always the same for it.
pub(super) fn fit_id<'a>(prefix: &str, id: &'a str) -> Cow<'a, str> {
    if id.len() <= MAX_ID {
        return Cow::Borrowed(id);
    }
    Cow::Owned(format!("{prefix}{:.24x}", Sha256::digest(id)))
}

/// `is_unthought`: the reasoning behind the call is not given back, as of another model of this provider. The server knows which
/// reasoning belongs to its items and wants it back with them, so the item must not be known.
fn call_item(call: &ToolCall, is_unthought: bool) -> Json<'_> {
    let (call_id, item_id) = call_and_item(&call.id);
    let arguments = arguments(call).to_string();
    let mut item = object! {"type": "function_call"};
    item.put_some("id", item_id.filter(|id| !(is_unthought && id.starts_with("fc_"))));
    item.put("call_id", call_id);
    item.put("name", &call.name);
    item.put("arguments", arguments);
    item
}

/// The parts of `call|item`.
fn call_and_item(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item).filter(|item| !item.is_empty())),
        None => (id, None),
    }
}
