//! Reading messages in one pass. The derived way would store every message twice on its way (once to find the `role` or
//! `type`, once to part known fields from unknown ones), and contexts of thousands of messages are read before a run.
//!
//! Fields are read straight into their places where the tag comes first, as everybody writes it;
//! otherwise they are collected and then read the same way. If a field is there twice, the last one
//! counts, as in JavaScript.

mod block;
mod fields;

use std::fmt;

use serde::de::value::MapDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use fields::{Name, collect};

use super::{AssistantMessage, Message, ToolResultMessage, UserContent, UserMessage};

/// Implements `Deserialize` by a function from the fields of a JSON object.
macro_rules! read_by {
    ($type:ty, $what:literal, $read:path) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;
                impl<'de> Visitor<'de> for Fields {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
                        $read(map)
                    }
                }
                deserializer.deserialize_map(Fields)
            }
        }
    };
}

read_by!(Message, "a message", message);
read_by!(UserMessage, "a user message", user);
read_by!(AssistantMessage, "an assistant message", assistant);
read_by!(ToolResultMessage, "a tool result", tool_result);

fn message<'de, A: MapAccess<'de>>(mut map: A) -> Result<Message, A::Error> {
    let Some(first) = map.next_key::<Name<'de>>()? else { return Err(A::Error::missing_field("role")) };
    if first == *"role" {
        let role: Name<'de> = map.next_value()?;
        return with_role(role.as_str(), map);
    }
    let mut fields = collect(first, map)?;
    match fields.shift_remove("role") {
        Some(Value::String(role)) => {
            let fields = MapDeserializer::<_, serde_json::Error>::new(fields.into_iter());
            with_role(&role, fields).map_err(A::Error::custom)
        }
        Some(_) => Err(A::Error::custom("role is not a text")),
        None => Err(A::Error::missing_field("role")),
    }
}

fn with_role<'de, A: MapAccess<'de>>(role: &str, fields: A) -> Result<Message, A::Error> {
    match role {
        "user" => user(fields).map(Message::User),
        "assistant" => assistant(fields).map(Message::Assistant),
        "toolResult" => tool_result(fields).map(Message::ToolResult),
        other => Err(A::Error::unknown_variant(other, &["user", "assistant", "toolResult"])),
    }
}

fn user<'de, A: MapAccess<'de>>(mut map: A) -> Result<UserMessage, A::Error> {
    let mut out = UserMessage::default();
    let mut content = None;
    while let Some(name) = map.next_key::<Name<'de>>()? {
        match name.as_str() {
            "content" => content = Some(map.next_value()?),
            "timestamp" => out.timestamp = map.next_value()?,
            "provenance" => {
                let value: Value = map.next_value()?;
                match Option::deserialize(&value) {
                    Ok(provenance) => out.provenance = provenance,
                    // Of a later version: no reason to lose the message.
                    Err(_) => _ = out.extra.insert(name.into_owned(), value),
                }
            }
            _ => keep(&mut out.extra, name, &mut map)?,
        }
    }
    out.content = content.ok_or_else(|| A::Error::missing_field("content"))?;
    Ok(out)
}

fn assistant<'de, A: MapAccess<'de>>(mut map: A) -> Result<AssistantMessage, A::Error> {
    let mut out = AssistantMessage::default();
    let mut content = None;
    while let Some(name) = map.next_key::<Name<'de>>()? {
        match name.as_str() {
            "content" => content = Some(map.next_value()?),
            "api" => out.api = map.next_value()?,
            "provider" => out.provider = map.next_value()?,
            "model" => out.model = map.next_value()?,
            "usage" => out.usage = map.next_value()?,
            "stopReason" => out.stop_reason = map.next_value()?,
            "errorMessage" => out.error_message = map.next_value()?,
            "errorText" => out.error_text = map.next_value()?,
            "timestamp" => out.timestamp = map.next_value()?,
            _ => keep(&mut out.extra, name, &mut map)?,
        }
    }
    out.content = content.ok_or_else(|| A::Error::missing_field("content"))?;
    Ok(out)
}

fn tool_result<'de, A: MapAccess<'de>>(mut map: A) -> Result<ToolResultMessage, A::Error> {
    let mut out = ToolResultMessage::default();
    let mut call_id = None;
    while let Some(name) = map.next_key::<Name<'de>>()? {
        match name.as_str() {
            "toolCallId" => call_id = Some(map.next_value()?),
            // An old spelling: it counts where the new one is not there.
            "toolUseId" if call_id.is_none() => call_id = Some(map.next_value()?),
            "toolName" => out.tool_name = map.next_value()?,
            "content" => out.content = map.next_value()?,
            "details" => out.details = map.next_value()?,
            "isError" => out.is_error = map.next_value()?,
            "timestamp" => out.timestamp = map.next_value()?,
            _ => keep(&mut out.extra, name, &mut map)?,
        }
    }
    out.tool_call_id = call_id.ok_or_else(|| A::Error::missing_field("toolCallId"))?;
    Ok(out)
}

/// Keeps a field this version does not know. A second `role` would be written as a second tag.
fn keep<'de, A: MapAccess<'de>>(
    extra: &mut Map<String, Value>,
    name: Name<'de>,
    map: &mut A,
) -> Result<(), A::Error> {
    let value = map.next_value()?;
    if name != *"role" {
        extra.insert(name.into_owned(), value);
    }
    Ok(())
}

impl<'de> Deserialize<'de> for UserContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Content;
        impl<'de> Visitor<'de> for Content {
            type Value = UserContent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or content blocks")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<UserContent, E> {
                Ok(UserContent::Text(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<UserContent, E> {
                Ok(UserContent::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<UserContent, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(UserContent::Blocks(blocks))
            }
        }
        deserializer.deserialize_any(Content)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::Block;

    fn read(text: &str) -> Option<Message> {
        serde_json::from_str(text).ok()
    }

    /// Fields in any order, through a text or a value, read the same.
    #[test]
    fn the_order_of_fields_does_not_matter() {
        let messages = [
            json!({"role": "user", "content": "hi", "timestamp": 1, "provenance": {"kind": "inter_session"}, "x": [1]}),
            json!({"role": "user", "content": [{"type": "text", "text": "a", "textSignature": "s", "y": 1}, {"type": "image", "data": "AA", "mimeType": "image/png"}]}),
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "", "thinkingSignature": null, "redacted": true},
                {"type": "toolUse", "id": "c", "name": "n", "input": {"b": 1, "a": 2}}, {"type": "novel"}], "api": "a", "provider": "p",
                "model": "m", "usage": {"input": 1}, "stopReason": "toolUse", "errorMessage": "e", "timestamp": 2, "z": null}),
            json!({"role": "toolResult", "toolCallId": "c", "toolName": "n", "content": [], "details": {"a": 1}, "isError": true, "timestamp": 3}),
        ];
        for message in messages {
            let forward = read(&message.to_string()).unwrap();
            let reversed: Map<String, Value> = message
                .as_object()
                .unwrap()
                .iter()
                .rev()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            assert_eq!(read(&serde_json::to_string(&reversed).unwrap()).unwrap(), forward, "{message}");
            assert_eq!(Message::deserialize(&message).unwrap(), forward, "{message}");
            assert_eq!(read(&serde_json::to_string(&forward).unwrap()).unwrap(), forward, "{message}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let bad = [
            json!({}),
            json!({"content": "x"}),
            json!({"role": 5, "content": "x"}),
            json!({"content": "x", "role": 5}),
            json!({"role": "oracle", "content": "x"}),
            json!({"role": "user"}),
            json!({"role": "user", "content": 5}),
            json!({"role": "assistant", "content": "x"}),
            json!({"role": "toolResult", "content": []}),
            json!([]),
            json!("user"),
        ];
        for message in bad {
            assert!(Message::deserialize(&message).is_err(), "{message}");
            assert!(read(&message.to_string()).is_none(), "{message}");
        }
    }

    /// A block is what it says it is only if its fields have the right types; otherwise it is kept as it is.
    #[test]
    fn blocks_with_other_fields_than_theirs_are_kept_as_they_are() {
        let odd = [
            json!({"type": "text"}),
            json!({"type": "text", "text": 5, "x": 1}),
            json!({"type": "text", "text": null}),
            json!({"type": "text", "text": "x", "textSignature": [1, {"a": null}]}),
            json!({"x": {"y": 1}, "type": "text", "text": 5}),
            json!({"type": "thinking", "thinking": {"a": 1}, "thinkingSignature": "s"}),
            json!({"type": "image", "data": 5}),
            json!({"type": "toolCall", "id": null}),
            json!({"type": "toolCall", "id": "a", "thoughtSignature": 5}),
            json!({"type": 5, "text": "x"}),
            json!({"type": null}),
            json!({"text": "x"}),
            json!({}),
            json!(null),
            json!(5),
            json!(-5),
            json!(0.5),
            json!(true),
            json!("x"),
            json!([1, "x"]),
        ];
        for value in odd {
            let text = value.to_string();
            for block in [serde_json::from_str(&text).unwrap(), Block::deserialize(&value).unwrap()] {
                assert_eq!(block, Block::Other(value.clone()), "{text}");
                assert_eq!(serde_json::to_string(&block).unwrap(), text);
            }
        }
    }

    #[test]
    fn a_call_without_arguments_has_none_and_the_new_name_counts() {
        let arguments = |text: &str| match serde_json::from_str(text).unwrap() {
            Block::ToolCall(call) => call.arguments,
            other => panic!("{other:?}"),
        };
        assert_eq!(arguments(r#"{"type":"toolCall"}"#), Value::Null);
        assert_eq!(arguments(r#"{"type":"functionCall","input":[1]}"#), json!([1]));
        assert_eq!(arguments(r#"{"input":1,"arguments":{"a":1},"type":"toolCall"}"#), json!({"a": 1}));
    }

    #[test]
    fn of_a_field_that_is_there_twice_the_last_counts_and_no_second_role_is_kept() {
        let text = r#"{"role":"user","content":"a","role":"assistant","content":"b","timestamp":1,"timestamp":2,"x":1,"x":2}"#;
        let message = read(text).unwrap();
        let expect = r#"{"role":"user","content":"b","timestamp":2,"x":2}"#;
        assert_eq!(serde_json::to_string(&message).unwrap(), expect);
        let block: Block = serde_json::from_str(r#"{"type":"text","text":"a","type":5,"text":"b"}"#).unwrap();
        assert_eq!(block, Block::text("b"));
    }

    #[test]
    fn an_unknown_provenance_costs_nothing_but_itself() {
        let text = r#"{"role":"user","content":"a","timestamp":0,"provenance":{"kind":"oracle","x":1}}"#;
        let message = read(text).unwrap();
        assert!(matches!(&message, Message::User(user) if user.provenance.is_none()));
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
    }
}
