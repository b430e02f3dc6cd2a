//! A conversation as Google's contents (spec `models.md` §4.5, `agent-runtime.md` §9.2).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use openclaw_protocol::message::{
    AssistantMessage, Block, ImageBlock, Message, ToolCall, ToolResultMessage, UserContent,
};

use crate::json::{Json, object};
use crate::model_spec::ModelSpec;
use crate::parts::{BOOTSTRAP, arguments, result_images, user_parts};
use crate::result_text::result_text;

/// Text that announces the images of results for models that can't have them inside.
const RESULT_IMAGE: &str = "Tool result image:";
/// Models that refuse a call without the proof of the thought behind it, and take images inside results.
const PROVING: &str = "gemini-3";
/// Models of others behind this API, which know calls by their ids.
const WITH_IDS: &[&str] = &["claude-", "gpt-oss-"];

/// The contents of messages that were made fit for the model, the first of which is number `first` of the history.
pub(super) fn contents<'a>(spec: &'a ModelSpec, history: &'a [Arc<Message>], first: usize) -> Vec<Json<'a>> {
    let mut writer = ContentsWriter {
        spec,
        proving: spec.id().contains(PROVING),
        with_ids: WITH_IDS.iter().any(|start| spec.id().starts_with(start)),
        begins: first == 0,
        out: Vec::with_capacity(history.len() + 1),
        names: HashMap::new(),
        told: HashSet::new(),
        results: Results::default(),
    };
    for message in history {
        match &**message {
            Message::User(user) => writer.user(&user.content),
            Message::Assistant(answer) => writer.answer(answer),
            Message::ToolResult(result) => writer.result(result),
        }
    }
    writer.end_results();
    writer.out
}

/// Builds a content item: consecutive parts of one role.
pub(super) fn content<'a>(role: &'static str, parts: Vec<Json<'a>>) -> Json<'a> {
    object! {"parts": parts, "role": role}
}

struct ContentsWriter<'a> {
    spec: &'a ModelSpec,
    proving: bool,
    with_ids: bool,
    /// True if nothing was said before.
    begins: bool,
    out: Vec<Json<'a>>,
    /// Tools by the ids of their calls in the last answer.
    names: HashMap<&'a str, &'a str>,
    /// Calls in the last answer that were told in words: so are their results.
    told: HashSet<&'a str>,
    results: Results<'a>,
}

/// Results that follow each other. The model wants those of one answer together, and nothing between.
#[derive(Default)]
struct Results<'a> {
    responses: Vec<Json<'a>>,
    told: Vec<Json<'a>>,
    images: Vec<Json<'a>>,
}

impl<'a> ContentsWriter<'a> {
    fn user(&mut self, content: &'a UserContent) {
        self.end_results();
        let parts = user_parts(content, |text| text_part(text, None), |image| self.image_part(image));
        self.push("user", parts);
    }

    fn answer(&mut self, answer: &'a AssistantMessage) {
        self.end_results();
        self.names.clear();
        self.told.clear();
        // Of calls made side by side only the first carries the proof.
        let mut proven = false;
        let mut parts = Vec::new();
        for block in &answer.content {
            match block {
                Block::Text(text) => parts.extend(text_part(&text.text, text.text_signature.as_deref())),
                Block::Thinking(thinking) => {
                    parts.extend(thought(&thinking.thinking, thinking.thinking_signature.as_deref()));
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

    fn call(&mut self, call: &'a ToolCall, proven: bool) -> Json<'a> {
        self.names.insert(&call.id, &call.name);
        let arguments = arguments(call);
        if self.proving && !proven {
            self.told.insert(&call.id);
            return object! {"text": format!(
            "[From earlier in this conversation: another model used the tool \"{}\" with these arguments: {arguments}. \
             This note is a record, not a format to imitate: to use a tool, call it.]", call.name)};
        }
        let mut function = object! {"name": &call.name, "args": arguments};
        if self.with_ids {
            function.put("id", &call.id);
        }
        let mut part = object! {"functionCall": function};
        add_signature(&mut part, call.thought_signature.as_deref());
        part
    }

    fn result(&mut self, result: &'a ToolResultMessage) {
        let name = self.names.get(result.tool_call_id.as_str()).copied().unwrap_or(&result.tool_name);
        let text = result_text(self.spec, result);
        let images: Vec<Json<'a>> =
            result_images(result).filter_map(|image| self.image_part(image)).collect();
        if self.told.contains(result.tool_call_id.as_str()) {
            let told = format!("[The tool \"{name}\" answered: {text}]");
            self.results.told.push(object! {"text": told});
            self.results.images.extend(images);
            return;
        }
        let outcome = if result.is_error {
            object! {"error": text}
        } else {
            object! {"output": text}
        };
        let mut response = object! {"name": name, "response": outcome};
        if self.proving && !images.is_empty() {
            response.put("parts", images);
        } else {
            self.results.images.extend(images);
        }
        if self.with_ids {
            response.put("id", &result.tool_call_id);
        }
        self.results.responses.push(object! {"functionResponse": response});
    }

    fn end_results(&mut self) {
        let Results { responses, told, mut images } = std::mem::take(&mut self.results);
        self.push("user", responses);
        self.push("user", told);
        if !images.is_empty() {
            images.insert(0, object! {"text": RESULT_IMAGE});
        }
        self.push("user", images);
    }

    fn push(&mut self, role: &'static str, parts: Vec<Json<'a>>) {
        if parts.is_empty() {
            return;
        }
        if self.begins && self.out.is_empty() && role == "model" {
            self.out.push(content("user", vec![object! {"text": BOOTSTRAP}]));
        }
        self.out.push(content(role, parts));
    }

    fn image_part(&self, image: &'a ImageBlock) -> Option<Json<'a>> {
        let data = object! {"mimeType": &image.mime_type, "data": &image.data};
        self.spec.images.then(|| object! {"inlineData": data})
    }
}

fn text_part<'a>(text: &'a str, signature: Option<&'a str>) -> Option<Json<'a>> {
    if text.trim().is_empty() {
        return None;
    }
    let mut part = object! {"text": text};
    add_signature(&mut part, signature);
    Some(part)
}

fn thought<'a>(text: &'a str, signature: Option<&'a str>) -> Option<Json<'a>> {
    if text.trim().is_empty() {
        return None;
    }
    let mut part = object! {"thought": true, "text": text};
    add_signature(&mut part, signature);
    Some(part)
}

fn add_signature<'a>(part: &mut Json<'a>, signature: Option<&'a str>) {
    if let Some(signature) = signature.filter(|signature| is_signature(signature)) {
        part.put("thoughtSignature", signature);
    }
}

/// Returns true if a signature is base64, as Google's are: any other is refused, or is another
/// provider's.
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
