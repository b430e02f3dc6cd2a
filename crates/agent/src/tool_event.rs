//! Tool events: what clients see of a call (spec `agent-runtime.md` §2.6).

use openclaw_protocol::message::{Block, ToolCall, ToolResultMessage};
use serde_json::{Map, Value, json};

use crate::event::RunEvent;
use crate::tool::Catalogue;

/// Largest number of characters of one text in an event.
const MAX_TEXT: usize = 8_000;
const CUT: &str = "\n\u{2026}(truncated)\u{2026}";

/// The event with the tool's name as clients know it.
pub(crate) fn canonical(mut event: RunEvent, catalogue: &Catalogue) -> RunEvent {
    if let RunEvent::ToolStart { name, .. }
    | RunEvent::ToolUpdate { name, .. }
    | RunEvent::ToolResult { name, .. } = &mut event
    {
        *name = catalogue.canonical_name(name);
    }
    event
}

/// A call begins.
pub(crate) fn start(call: &ToolCall) -> RunEvent {
    RunEvent::ToolStart { name: call.name.clone(), call_id: call.id.clone(), args: call.arguments.clone() }
}

/// A call goes on.
pub(crate) fn update(call: &ToolCall, partial: Value) -> RunEvent {
    RunEvent::ToolUpdate { name: call.name.clone(), call_id: call.id.clone(), partial: shown_value(partial) }
}

/// A call has ended.
pub(crate) fn result(call: &ToolCall, result: &ToolResultMessage, meta: Option<String>) -> RunEvent {
    let content: Vec<Value> = result.content.iter().map(shown_block).collect();
    let mut shown = json!({ "content": content });
    if let (Some(details), Some(fields)) = (&result.details, shown.as_object_mut()) {
        fields.insert("details".to_owned(), details.clone());
    }
    RunEvent::ToolResult {
        name: call.name.clone(),
        call_id: call.id.clone(),
        meta,
        is_error: result.is_error || failed_status(result),
        result: shown,
    }
}

/// Returns true if the details of a result report a failure, although the model was given a normal
/// result.
pub(crate) fn failed_status(result: &ToolResultMessage) -> bool {
    let status = result.details.as_ref().and_then(|details| details.get("status")).and_then(Value::as_str);
    matches!(status, Some("error" | "timeout"))
}

fn shown_block(block: &Block) -> Value {
    shown_content(serde_json::to_value(block).unwrap_or_default())
}

/// Cuts texts and removes image data in `{content, details}`; anything else passes.
fn shown_value(mut value: Value) -> Value {
    if let Some(content) = value.get_mut("content").and_then(Value::as_array_mut) {
        for block in content.iter_mut() {
            *block = shown_content(block.take());
        }
    }
    value
}

fn shown_content(mut block: Value) -> Value {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(fields) = block.as_object_mut() else { return block };
    match kind.as_str() {
        "text" => cut_text(fields),
        "image" => omit_data(fields),
        _ => {}
    }
    block
}

fn cut_text(fields: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = fields.get_mut("text")
        && let Some((at, _)) = text.char_indices().nth(MAX_TEXT)
    {
        text.truncate(at);
        text.push_str(CUT);
    }
}

fn omit_data(fields: &mut Map<String, Value>) {
    let bytes = fields.shift_remove("data").and_then(|data| data.as_str().map(str::len));
    if let Some(bytes) = bytes {
        fields.insert("bytes".to_owned(), bytes.into());
    }
    fields.insert("omitted".to_owned(), true.into());
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::ImageBlock;

    use super::*;
    use crate::tool::ToolFacts;

    fn call(name: &str) -> ToolCall {
        ToolCall { id: "c1".into(), name: name.into(), arguments: json!({"a": 1}), ..ToolCall::default() }
    }

    #[test]
    fn long_texts_are_cut_and_images_left_out() {
        let image = Block::Image(ImageBlock {
            data: "aGVsbG8=".into(),
            mime_type: "image/png".into(),
            ..ImageBlock::default()
        });
        let message = ToolResultMessage {
            content: vec![Block::text("é".repeat(8001)), image],
            ..ToolResultMessage::default()
        };
        let expect = RunEvent::ToolResult {
            name: "exec".into(),
            call_id: "c1".into(),
            meta: None,
            is_error: false,
            result: json!({"content": [
                {"type": "text", "text": format!("{}\n…(truncated)…", "é".repeat(8000))},
                {"type": "image", "mimeType": "image/png", "bytes": 8, "omitted": true},
            ]}),
        };
        let catalogue = [ToolFacts { aliases: &["bash"], ..ToolFacts::named("exec") }].into_iter().collect();
        assert_eq!(canonical(result(&call("bash"), &message, None), &catalogue), expect);
        let partial = json!({"content": [{"type": "text", "text": "x".repeat(9000)}], "details": {"pid": 1}});
        let RunEvent::ToolUpdate { partial, .. } = update(&call("exec"), partial) else {
            panic!("an update")
        };
        assert_eq!(partial["content"][0]["text"].as_str().map(|t| t.chars().count()), Some(8000 + 14));
        assert_eq!(partial["details"], json!({"pid": 1}));
    }

    #[test]
    fn a_failed_status_is_an_error_for_clients_only() {
        for (status, expect) in [("error", true), ("timeout", true), ("completed", false)] {
            let message = ToolResultMessage {
                details: Some(json!({"status": status})),
                ..ToolResultMessage::default()
            };
            let RunEvent::ToolResult { is_error, .. } = result(&call("exec"), &message, None) else {
                panic!("a result")
            };
            assert_eq!(is_error, expect, "{status}");
        }
    }
}
