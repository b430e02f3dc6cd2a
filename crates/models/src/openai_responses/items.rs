//! A conversation as the input items of the Responses protocol (spec `models.md` §4.3).

use openclaw_protocol::message::{
    AssistantMessage, Block, ImageBlock, Message, TextBlock, ThinkingBlock, ToolCall, UserContent,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::catalog::ModelSpec;
use crate::result_text::{IMAGES_FOLLOW, result_text};

/// Longest id the server takes, in bytes.
const MAX_ID: usize = 64;

/// The items of a history that was made fit for the model.
pub(super) fn items(spec: &ModelSpec, history: &[Message]) -> Vec<Value> {
    let mut out = Vec::with_capacity(history.len() + 1);
    let mut images: Vec<Value> = Vec::new();
    for (at, message) in history.iter().enumerate() {
        if !matches!(message, Message::ToolResult(_)) {
            push_images(&mut out, &mut images);
        }
        match message {
            Message::User(user) => out.extend(user_item(spec, &user.content)),
            Message::Assistant(answer) => out.extend(answer_items(spec, answer, at)),
            Message::ToolResult(result) => {
                let (call, _) = call_and_item(&result.tool_call_id);
                let output = result_text(result);
                out.push(json!({"type": "function_call_output", "call_id": call, "output": output}));
                images.extend(result.content.iter().filter_map(|block| image_part(spec, block)));
            }
        }
    }
    push_images(&mut out, &mut images);
    out
}

/// Outputs hold text alone: the images of a run of them follow in a user item.
fn push_images(out: &mut Vec<Value>, images: &mut Vec<Value>) {
    if images.is_empty() {
        return;
    }
    let mut content = vec![json!({"type": "input_text", "text": IMAGES_FOLLOW})];
    content.append(images);
    out.push(json!({"role": "user", "content": content}));
}

fn user_item(spec: &ModelSpec, content: &UserContent) -> Option<Value> {
    let parts: Vec<Value> = match content {
        UserContent::Text(text) => text_part(text).into_iter().collect(),
        UserContent::Blocks(blocks) => blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) => text_part(&text.text),
                Block::Image(_) => image_part(spec, block),
                Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
            })
            .collect(),
    };
    (!parts.is_empty()).then(|| json!({"role": "user", "content": parts}))
}

fn text_part(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "input_text", "text": text}))
}

fn image_part(spec: &ModelSpec, block: &Block) -> Option<Value> {
    let Block::Image(ImageBlock { data, mime_type, .. }) = block else { return None };
    let url = format!("data:{mime_type};base64,{data}");
    spec.images.then(|| json!({"type": "input_image", "detail": "auto", "image_url": url}))
}

/// The items of answer number `at` of the history.
fn answer_items(spec: &ModelSpec, answer: &AssistantMessage, at: usize) -> Vec<Value> {
    let sibling =
        answer.model != spec.id() && answer.provider == spec.provider() && answer.api == spec.api.as_str();
    let mut texts = 0;
    let mut out: Vec<Value> = Vec::new();
    for block in &answer.content {
        match block {
            Block::Thinking(thinking) => out.extend(reasoning_item(thinking)),
            Block::Text(text) if !text.text.trim().is_empty() => {
                out.push(text_item(text, at, texts));
                texts += 1;
            }
            Block::ToolCall(call) => out.push(call_item(call, sibling)),
            Block::Text(_) | Block::Image(_) | Block::Other(_) => {}
        }
    }
    // Reasoning that led to nothing, as when the answer hit its limit, is refused by the server.
    while out.last().is_some_and(|item| item.get("type") == Some(&json!("reasoning"))) {
        out.pop();
    }
    out
}

/// The item the server sent, as it sent it. Reasoning of which it kept nothing for us can't be given back.
fn reasoning_item(thinking: &ThinkingBlock) -> Option<Value> {
    let item: Value = serde_json::from_str(thinking.thinking_signature.as_deref()?).ok()?;
    (item.get("type")? == "reasoning").then_some(item)
}

fn text_item(text: &TextBlock, at: usize, nth: usize) -> Value {
    let id = match text.text_signature.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => fit_id("msg_", id),
        None if nth == 0 => format!("msg_{at}"),
        None => format!("msg_{at}_{nth}"),
    };
    let part = json!({"type": "output_text", "text": text.text, "annotations": []});
    json!({"type": "message", "role": "assistant", "content": [part], "status": "completed", "id": id})
}

/// The id, or a short stand-in that is always the same for it.
pub(super) fn fit_id(prefix: &str, id: &str) -> String {
    if id.len() <= MAX_ID {
        return id.to_owned();
    }
    let digest = Sha256::digest(id.as_bytes());
    let hex: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}{hex}")
}

/// `sibling`: another model of this provider made the call. The server knows which reasoning belongs to its items and
/// wants it back with them; that was dropped, so the item must not be known.
fn call_item(call: &ToolCall, sibling: bool) -> Value {
    let (call_id, item_id) = call_and_item(&call.id);
    let arguments = if call.arguments.is_object() { call.arguments.to_string() } else { "{}".to_owned() };
    let mut item = Map::new();
    item.insert("type".to_owned(), json!("function_call"));
    if let Some(id) = item_id.filter(|id| !(sibling && id.starts_with("fc_"))) {
        item.insert("id".to_owned(), json!(id));
    }
    item.insert("call_id".to_owned(), json!(call_id));
    item.insert("name".to_owned(), json!(call.name));
    item.insert("arguments".to_owned(), json!(arguments));
    Value::Object(item)
}

/// The parts of `call|item`.
fn call_and_item(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item).filter(|item| !item.is_empty())),
        None => (id, None),
    }
}
