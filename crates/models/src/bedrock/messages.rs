//! A conversation as Converse's messages (spec `models.md` §4.6).

use std::sync::Arc;

use openclaw_protocol::message::{
    AssistantMessage, Block, ImageBlock, Message, ThinkingBlock, ToolResultMessage,
};
use serde_json::Value;

use crate::json::{Json, object};
use crate::model_spec::ModelSpec;
use crate::parts::{BOOTSTRAP, arguments, result_images, user_parts};
use crate::result_text::result_text;

/// Image formats by their MIME types.
const FORMATS: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpeg"),
    ("image/jpg", "jpeg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
];

/// Returns true if a model is one of Anthropic's, which sign their thoughts and require the
/// signature back.
pub(super) fn is_claude(spec: &ModelSpec) -> bool {
    spec.id().contains("anthropic.claude") || spec.id().contains("anthropic/claude")
}

/// Messages that were made fit for the model, the first of which is number `first` of the history. Two in a row of one role are
/// one: Bedrock wants turns.
pub(super) fn messages<'a>(spec: &ModelSpec, history: &'a [Arc<Message>], first: usize) -> Vec<Json<'a>> {
    let mut out: Vec<(&str, Vec<Json<'a>>)> = Vec::with_capacity(history.len() + 1);
    for message in history {
        let (role, content) = match &**message {
            Message::User(user) => {
                ("user", user_parts(&user.content, text_block, |image| image_block(spec, image)))
            }
            Message::Assistant(answer) => ("assistant", answer_blocks(spec, answer)),
            Message::ToolResult(result) => ("user", vec![result_block(spec, result)]),
        };
        if content.is_empty() {
            continue;
        }
        if first == 0 && out.is_empty() && role == "assistant" {
            out.push(("user", vec![object! {"text": BOOTSTRAP}]));
        }
        match out.last_mut() {
            Some((last, blocks)) if *last == role => blocks.extend(content),
            Some(_) | None => out.push((role, content)),
        }
    }
    out.into_iter().map(|(role, content)| object! {"role": role, "content": content}).collect()
}

fn answer_blocks<'a>(spec: &ModelSpec, answer: &'a AssistantMessage) -> Vec<Json<'a>> {
    answer
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => text_block(&text.text),
            Block::Thinking(thinking) => thinking_block(spec, thinking),
            Block::ToolCall(call) => {
                Some(object! {"toolUse": object! {"toolUseId": &call.id, "name": &call.name, "input": arguments(call)}})
            }
            Block::Image(_) | Block::Other(_) => None,
        })
        .collect()
}

fn thinking_block<'a>(spec: &ModelSpec, thinking: &'a ThinkingBlock) -> Option<Json<'a>> {
    let signature = thinking.thinking_signature.as_deref().filter(|signature| !signature.is_empty());
    if thinking.extra.get("redacted") == Some(&Value::Bool(true)) {
        return signature.map(|data| object! {"reasoningContent": object! {"redactedContent": data}});
    }
    let text = thinking.thinking.as_str();
    match signature {
        Some(signature) if is_claude(spec) => Some(reasoning(object! {"text": text, "signature": signature})),
        // Without its proof Claude refuses a thought.
        None if is_claude(spec) => text_block(text),
        Some(_) | None => (!text.trim().is_empty()).then(|| reasoning(object! {"text": text})),
    }
}

fn reasoning(text: Json<'_>) -> Json<'_> {
    object! {"reasoningContent": object! {"reasoningText": text}}
}

fn result_block<'a>(spec: &ModelSpec, result: &'a ToolResultMessage) -> Json<'a> {
    let mut content = vec![object! {"text": result_text(spec, result)}];
    content.extend(result_images(result).filter_map(|image| image_block(spec, image)));
    let status = if result.is_error { "error" } else { "success" };
    object! {"toolResult": object! {"toolUseId": &result.tool_call_id, "content": content, "status": status}}
}

fn text_block(text: &str) -> Option<Json<'_>> {
    (!text.trim().is_empty()).then(|| object! {"text": text})
}

/// An image in a format Bedrock has.
fn image_block<'a>(spec: &ModelSpec, image: &'a ImageBlock) -> Option<Json<'a>> {
    let (_, format) = FORMATS.iter().find(|(mime, _)| image.mime_type.eq_ignore_ascii_case(mime))?;
    let source = object! {"bytes": &image.data};
    spec.images.then(|| object! {"image": object! {"format": *format, "source": source}})
}
