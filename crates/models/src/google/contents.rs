//! A conversation as Google's contents (spec `models.md` §4.5, `agent-runtime.md` §9.2).

use std::collections::{HashMap, HashSet};

use openclaw_protocol::message::{
    AssistantMessage, Block, ImageBlock, Message, ToolCall, ToolResultMessage, UserContent,
};
use serde_json::{Map, Value, json};

use crate::catalog::ModelSpec;
use crate::result_text::result_text;

/// What a conversation begins with when its own beginning is gone: the first word must be the user's.
const BOOTSTRAP: &str = "(session bootstrap)";
/// What announces the images of results to models that can't have them inside.
const RESULT_IMAGE: &str = "Tool result image:";
/// Models that refuse a call without the proof of the thought behind it, and take images inside results.
const PROVING: &str = "gemini-3";
/// Models of others behind this API, which know calls by their ids.
const WITH_IDS: &[&str] = &["claude-", "gpt-oss-"];

/// The contents of a history that was made fit for the model.
pub(super) fn contents(spec: &ModelSpec, history: &[Message]) -> Vec<Value> {
    let mut writer = Writer {
        spec,
        proving: spec.id().contains(PROVING),
        with_ids: WITH_IDS.iter().any(|start| spec.id().starts_with(start)),
        out: Vec::with_capacity(history.len() + 1),
        names: HashMap::new(),
        told: HashSet::new(),
        results: Results::default(),
    };
    for message in history {
        match message {
            Message::User(user) => writer.user(&user.content),
            Message::Assistant(answer) => writer.answer(answer),
            Message::ToolResult(result) => writer.result(result),
        }
    }
    writer.end_results();
    writer.out
}

struct Writer<'a> {
    spec: &'a ModelSpec,
    proving: bool,
    with_ids: bool,
    out: Vec<Value>,
    /// Tools by the ids of their calls.
    names: HashMap<&'a str, &'a str>,
    /// Calls that were told in words: so are their results.
    told: HashSet<&'a str>,
    results: Results,
}

/// Results that follow each other. The model wants those of one answer together, and nothing between.
#[derive(Default)]
struct Results {
    responses: Vec<Value>,
    told: Vec<Value>,
    images: Vec<Value>,
}

impl<'a> Writer<'a> {
    fn user(&mut self, content: &UserContent) {
        self.end_results();
        let parts = match content {
            UserContent::Text(text) => text_part(text, None).into_iter().collect(),
            UserContent::Blocks(blocks) => blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Text(text) => text_part(&text.text, None),
                    Block::Image(image) => self.image_part(image),
                    Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
                })
                .collect(),
        };
        self.push("user", parts);
    }

    fn answer(&mut self, answer: &'a AssistantMessage) {
        self.end_results();
        // Of calls made side by side only the first carries the proof.
        let mut proven = false;
        let mut parts = Vec::new();
        for block in &answer.content {
            match block {
                Block::Text(text) => parts.extend(text_part(&text.text, text.text_signature.as_deref())),
                Block::Thinking(thinking) => {
                    let part = text_part(&thinking.thinking, thinking.thinking_signature.as_deref());
                    parts.extend(part.map(|part| thought(&part)));
                }
                Block::ToolCall(call) => {
                    proven |= call.thought_signature.as_deref().is_some_and(is_signature);
                    parts.push(self.call(call, proven));
                }
                Block::Image(_) | Block::Other(_) => {}
            }
        }
        self.push("model", parts);
    }

    fn call(&mut self, call: &'a ToolCall, proven: bool) -> Value {
        self.names.insert(&call.id, &call.name);
        let arguments = if call.arguments.is_object() { call.arguments.clone() } else { json!({}) };
        if self.proving && !proven {
            self.told.insert(&call.id);
            return json!({"text": format!(
                "[From earlier in this conversation: another model used the tool \"{}\" with these arguments: {arguments}. \
                 This note is a record, not a format to imitate: to use a tool, call it.]", call.name)});
        }
        let mut function = Map::new();
        function.insert("name".to_owned(), json!(call.name));
        function.insert("args".to_owned(), arguments);
        if self.with_ids {
            function.insert("id".to_owned(), json!(call.id));
        }
        let mut part = Map::new();
        part.insert("functionCall".to_owned(), Value::Object(function));
        add_signature(&mut part, call.thought_signature.as_deref());
        Value::Object(part)
    }

    fn result(&mut self, result: &ToolResultMessage) {
        let name = self.names.get(result.tool_call_id.as_str()).copied().unwrap_or(&result.tool_name);
        let text = result_text(result);
        let images: Vec<Value> = result
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Image(image) => self.image_part(image),
                Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
            })
            .collect();
        if self.told.contains(result.tool_call_id.as_str()) {
            let told = format!("[The tool \"{name}\" answered: {text}]");
            self.results.told.push(json!({"text": told}));
            self.results.images.extend(images);
            return;
        }
        let mut response = Map::new();
        response.insert("name".to_owned(), json!(name));
        let outcome = if result.is_error { "error" } else { "output" };
        response.insert("response".to_owned(), json!({outcome: text}));
        if self.proving && !images.is_empty() {
            response.insert("parts".to_owned(), Value::Array(images));
        } else {
            self.results.images.extend(images);
        }
        if self.with_ids {
            response.insert("id".to_owned(), json!(result.tool_call_id));
        }
        self.results.responses.push(json!({"functionResponse": response}));
    }

    fn end_results(&mut self) {
        let Results { responses, told, mut images } = std::mem::take(&mut self.results);
        self.push("user", responses);
        self.push("user", told);
        if !images.is_empty() {
            images.insert(0, json!({"text": RESULT_IMAGE}));
        }
        self.push("user", images);
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers hand over what they made")]
    fn push(&mut self, role: &str, parts: Vec<Value>) {
        if parts.is_empty() {
            return;
        }
        if self.out.is_empty() && role == "model" {
            self.out.push(json!({"parts": [{"text": BOOTSTRAP}], "role": "user"}));
        }
        self.out.push(json!({"parts": parts, "role": role}));
    }

    fn image_part(&self, image: &ImageBlock) -> Option<Value> {
        let data = json!({"mimeType": image.mime_type, "data": image.data});
        self.spec.images.then(|| json!({"inlineData": data}))
    }
}

fn text_part(text: &str, signature: Option<&str>) -> Option<Value> {
    if text.trim().is_empty() {
        return None;
    }
    let mut part = Map::new();
    part.insert("text".to_owned(), json!(text));
    add_signature(&mut part, signature);
    Some(Value::Object(part))
}

fn thought(part: &Value) -> Value {
    let mut marked = json!({"thought": true});
    if let (Some(marked), Some(fields)) = (marked.as_object_mut(), part.as_object()) {
        marked.extend(fields.clone());
    }
    marked
}

fn add_signature(part: &mut Map<String, Value>, signature: Option<&str>) {
    if let Some(signature) = signature.filter(|signature| is_signature(signature)) {
        part.insert("thoughtSignature".to_owned(), json!(signature));
    }
}

/// Whether a proof is base64, as Google's are: anything else is refused, or is another provider's.
fn is_signature(signature: &str) -> bool {
    let digits = signature.trim_end_matches('=');
    !digits.is_empty()
        && signature.len().is_multiple_of(4)
        && signature.len() - digits.len() <= 2
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_base64() {
        for (text, expect) in [
            ("QUJD", true),
            ("QUI=", true),
            ("QQ==", true),
            ("", false),
            ("====", false),
            ("Q===", false),
            ("sig", false),
            ("msg_abcd", false),
            ("QU-D", false),
        ] {
            assert_eq!(is_signature(text), expect, "{text}");
        }
    }
}
