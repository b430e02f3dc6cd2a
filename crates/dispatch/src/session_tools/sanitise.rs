//! Part of a conversation that another agent is told: its words, without data that only the
//! provider needs, and no more than fits (spec `sessions.md` §8.2). Pure.

use serde_json::{Map, Value, json};

/// Bytes of JSON that a history may have.
const MOST_BYTES: usize = 80 * 1024;
/// Characters of one text.
const MOST_CHARS: usize = 4_000;
/// Stands behind a text that was cut.
const CUT: &str = "\n…(truncated)…";
/// Stands for a last message that is too large by itself.
const TOO_LARGE: &str = "[sessions_history omitted: message too large]";

/// A history that may be told, cut to size.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Sanitised {
    pub(super) messages: Vec<Value>,
    /// True if messages were left out.
    pub(super) is_dropped: bool,
    /// True if a part of a message was left out.
    pub(super) is_cut: bool,
    /// Bytes of the messages as JSON.
    pub(super) bytes: usize,
}

impl Sanitised {
    /// The answer of the tool.
    pub(super) fn answer(self, key: &str) -> Value {
        json!({
            "sessionKey": key,
            "messages": self.messages,
            "truncated": self.is_dropped || self.is_cut,
            "droppedMessages": self.is_dropped,
            "contentTruncated": self.is_cut,
            "bytes": self.bytes,
        })
    }
}

/// Cleans messages and keeps the newest that fit.
pub(super) fn sanitised(mut messages: Vec<Value>) -> Sanitised {
    let mut is_cut = false;
    for message in &mut messages {
        is_cut |= clean_message(message);
    }
    let sizes: Vec<usize> = messages.iter().map(size).collect();
    let (mut bytes, mut kept) = (2, 0);
    for size in sizes.iter().rev() {
        let more = size + usize::from(kept > 0);
        if bytes + more > MOST_BYTES {
            break;
        }
        bytes += more;
        kept += 1;
    }
    let dropped = messages.len() - kept;
    if kept == 0 && dropped > 0 {
        let instead = json!({"role": "assistant", "content": [{"type": "text", "text": TOO_LARGE}]});
        return Sanitised { bytes: size(&instead) + 2, messages: vec![instead], is_dropped: true, is_cut };
    }
    messages.drain(..dropped);
    Sanitised { messages, is_dropped: dropped > 0, is_cut, bytes }
}

fn size(message: &Value) -> usize {
    serde_json::to_string(message).map_or(0, |text| text.len())
}

/// Removes what may not be told; true if anything was left out.
fn clean_message(message: &mut Value) -> bool {
    let Some(fields) = message.as_object_mut() else { return false };
    let mut is_cut = remove(fields, &["details", "usage", "cost"]);
    is_cut |= cut_field(fields, "text");
    match fields.get_mut("content") {
        Some(Value::Array(blocks)) => {
            for block in blocks {
                is_cut |= clean_block(block);
            }
        }
        Some(_) => is_cut |= cut_field(fields, "content"),
        None => {}
    }
    is_cut
}

fn clean_block(block: &mut Value) -> bool {
    let Some(fields) = block.as_object_mut() else { return false };
    let mut is_cut = ["text", "thinking", "partialJson"]
        .iter()
        .fold(false, |is_cut, name| cut_field(fields, name) | is_cut);
    is_cut |= remove(fields, &["thinkingSignature"]);
    if fields.get("type").and_then(Value::as_str) == Some("image") {
        let bytes = fields.get("data").and_then(Value::as_str).map(str::len);
        is_cut |= remove(fields, &["data"]);
        fields.insert("omitted".to_owned(), Value::Bool(true));
        if let Some(bytes) = bytes {
            fields.insert("bytes".to_owned(), bytes.into());
        }
    }
    is_cut
}

fn remove(fields: &mut Map<String, Value>, names: &[&str]) -> bool {
    names.iter().fold(false, |removed, name| fields.shift_remove(*name).is_some() | removed)
}

fn cut_field(fields: &mut Map<String, Value>, name: &str) -> bool {
    let Some(Value::String(text)) = fields.get_mut(name) else { return false };
    let Some((end, _)) = text.char_indices().nth(MOST_CHARS) else { return false };
    text.truncate(end);
    text.push_str(CUT);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": [{"type": "text", "text": text}]})
    }

    #[test]
    fn what_only_the_provider_needs_is_left_out() {
        let long = "ä".repeat(4_001);
        let cut = format!("{}\n…(truncated)…", "ä".repeat(4_000));
        let rows = [
            (user("hi"), user("hi"), false),
            (user(&"ä".repeat(4_000)), user(&"ä".repeat(4_000)), false),
            (user(&long), user(&cut), true),
            (json!({"role": "user", "content": long}), json!({"role": "user", "content": cut}), true),
            (
                json!({"role": "assistant", "content": [], "usage": {"input": 1}, "cost": 1, "model": "m"}),
                json!({"role": "assistant", "content": [], "model": "m"}),
                true,
            ),
            (
                json!({"role": "toolResult", "content": [{"type": "text", "text": "x"}], "details": {"a": 1}}),
                json!({"role": "toolResult", "content": [{"type": "text", "text": "x"}]}),
                true,
            ),
            (
                json!({"role": "assistant", "content": [
                    {"type": "thinking", "thinking": long, "thinkingSignature": "s"},
                    {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}, "partialJson": long},
                ]}),
                json!({"role": "assistant", "content": [
                    {"type": "thinking", "thinking": cut},
                    {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}, "partialJson": cut},
                ]}),
                true,
            ),
            (
                json!({"role": "user", "content": [{"type": "image", "data": "QUJD", "mimeType": "image/png"}]}),
                json!({"role": "user", "content": [
                    {"type": "image", "mimeType": "image/png", "omitted": true, "bytes": 4},
                ]}),
                true,
            ),
            (json!("odd"), json!("odd"), false),
        ];
        for (message, expect, is_cut) in rows {
            let told = sanitised(vec![message]);
            assert_eq!((told.messages, told.is_cut, told.is_dropped), (vec![expect], is_cut, false));
        }
    }

    #[test]
    fn the_newest_that_fit_are_told() {
        let message = user(&"x".repeat(3_900));
        let told = sanitised(vec![message.clone(); 100]);
        let exact = serde_json::to_string(&told.messages).unwrap().len();
        assert_eq!(told.bytes, exact);
        assert!(told.bytes <= MOST_BYTES && told.bytes + size(&message) + 1 > MOST_BYTES);
        assert!(told.is_dropped && !told.is_cut);
        assert_eq!(sanitised(Vec::new()), Sanitised { bytes: 2, ..Sanitised::default() });

        let huge = json!({"role": "assistant", "content": [
            {"type": "toolCall", "id": "c", "name": "write", "arguments": {"content": "x".repeat(MOST_BYTES)}},
        ]});
        let told = sanitised(vec![user("hi"), huge]);
        let instead = json!({"role": "assistant", "content": [{"type": "text", "text": TOO_LARGE}]});
        assert_eq!((told.messages, told.is_dropped), (vec![instead], true));
    }
}
