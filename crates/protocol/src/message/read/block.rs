//! Reading content blocks. A block of a kind that is not known, or with fields of other types, is kept as it is.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::fields::{Name, Said, collect, collect_into, keep_as_is};
use crate::message::{Block, ImageBlock, TextBlock, ThinkingBlock, ToolCall};

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Blocks;
        impl<'de> Visitor<'de> for Blocks {
            type Value = Block;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a content block")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Block, A::Error> {
                block(map)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Block, E> {
                Ok(Block::Other(text.into()))
            }

            keep_as_is!(Block);

            fn visit_unit<E: Error>(self) -> Result<Block, E> {
                Ok(Block::Other(Value::Null))
            }
        }
        deserializer.deserialize_any(Blocks)
    }
}

fn block<'de, A: MapAccess<'de>>(mut map: A) -> Result<Block, A::Error> {
    let Some(first) = map.next_key::<Name<'de>>()? else {
        return Ok(Block::Other(Value::Object(Map::new())));
    };
    if first != *"type" {
        return Ok(block_of(collect(first, map)?));
    }
    match map.next_value()? {
        Said::Text(kind) if kind == "text" => text(map),
        Said::Text(kind) if kind == "thinking" => thinking(map),
        kind => {
            let mut fields = Map::new();
            fields.insert("type".to_owned(), kind.into());
            Ok(block_of(collect_into(fields, map)?))
        }
    }
}

fn text<'de, A: MapAccess<'de>>(map: A) -> Result<Block, A::Error> {
    let (fields, extra) = texts(["text", "textSignature"], map)?;
    Ok(match fields {
        [Some(Said::Text(text)), None | Some(Said::Null)] => {
            Block::Text(TextBlock { text, text_signature: None, extra })
        }
        [Some(Said::Text(text)), Some(Said::Text(signature))] => {
            Block::Text(TextBlock { text, text_signature: Some(signature), extra })
        }
        other => as_it_is("text", ["text", "textSignature"], other, extra),
    })
}

fn thinking<'de, A: MapAccess<'de>>(map: A) -> Result<Block, A::Error> {
    let (fields, extra) = texts(["thinking", "thinkingSignature"], map)?;
    Ok(match fields {
        [Some(Said::Text(thinking)), None | Some(Said::Null)] => {
            Block::Thinking(ThinkingBlock { thinking, thinking_signature: None, extra })
        }
        [Some(Said::Text(thinking)), Some(Said::Text(signature))] => {
            Block::Thinking(ThinkingBlock { thinking, thinking_signature: Some(signature), extra })
        }
        other => as_it_is("thinking", ["thinking", "thinkingSignature"], other, extra),
    })
}

/// The two text fields of a block, and the others.
#[expect(clippy::type_complexity, reason = "fields of these names, and all others")]
fn texts<'de, A: MapAccess<'de>>(
    [text, signature]: [&str; 2],
    mut map: A,
) -> Result<([Option<Said>; 2], Map<String, Value>), A::Error> {
    let (mut fields, mut extra) = ([None, None], Map::new());
    while let Some(name) = map.next_key::<Name<'de>>()? {
        let [said, signed] = &mut fields;
        if name == *text {
            *said = Some(map.next_value()?);
        } else if name == *signature {
            *signed = Some(map.next_value()?);
        } else if name == *"type" {
            map.next_value::<IgnoredAny>()?;
        } else {
            extra.insert(name.into_owned(), map.next_value()?);
        }
    }
    Ok((fields, extra))
}

/// A block whose fields have other types than the block's.
fn as_it_is(kind: &str, names: [&str; 2], said: [Option<Said>; 2], extra: Map<String, Value>) -> Block {
    let mut fields = Map::new();
    fields.insert("type".to_owned(), kind.into());
    for (name, said) in names.into_iter().zip(said) {
        if let Some(said) = said {
            fields.insert(name.to_owned(), said.into());
        }
    }
    fields.extend(extra);
    Block::Other(Value::Object(fields))
}

/// A block whose fields have been collected.
fn block_of(mut fields: Map<String, Value>) -> Block {
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    let block = match kind {
        "text" if fits(&fields, &["text"], &["textSignature"]) => Block::Text(TextBlock {
            text: take(&mut fields, "text").unwrap_or_default(),
            text_signature: take(&mut fields, "textSignature"),
            extra: Map::new(),
        }),
        "thinking" if fits(&fields, &["thinking"], &["thinkingSignature"]) => {
            Block::Thinking(ThinkingBlock {
                thinking: take(&mut fields, "thinking").unwrap_or_default(),
                thinking_signature: take(&mut fields, "thinkingSignature"),
                extra: Map::new(),
            })
        }
        "image" if are_texts(&fields, &["data", "mimeType"]) => Block::Image(ImageBlock {
            data: take(&mut fields, "data").unwrap_or_default(),
            mime_type: take(&mut fields, "mimeType").unwrap_or_default(),
            extra: Map::new(),
        }),
        "toolCall" | "toolUse" | "functionCall"
            if fits(&fields, &[], &["thoughtSignature"]) && are_texts(&fields, &["id", "name"]) =>
        {
            Block::ToolCall(ToolCall {
                id: take(&mut fields, "id").unwrap_or_default(),
                name: take(&mut fields, "name").unwrap_or_default(),
                arguments: fields
                    .shift_remove("arguments")
                    .or_else(|| fields.shift_remove("input"))
                    .unwrap_or_default(),
                thought_signature: take(&mut fields, "thoughtSignature"),
                extra: Map::new(),
            })
        }
        _ => return Block::Other(Value::Object(fields)),
    };
    fields.shift_remove("type");
    with_extra(block, fields)
}

fn with_extra(mut block: Block, fields: Map<String, Value>) -> Block {
    match &mut block {
        Block::Text(TextBlock { extra, .. })
        | Block::Thinking(ThinkingBlock { extra, .. })
        | Block::Image(ImageBlock { extra, .. })
        | Block::ToolCall(ToolCall { extra, .. }) => *extra = fields,
        Block::Other(_) => {}
    }
    block
}

/// True if the required fields are texts, and the optional ones are absent, null or texts.
fn fits(fields: &Map<String, Value>, required: &[&str], optional: &[&str]) -> bool {
    required.iter().all(|name| fields.get(*name).is_some_and(Value::is_string))
        && optional
            .iter()
            .all(|name| fields.get(*name).is_none_or(|value| value.is_string() || value.is_null()))
}

/// True if every one of these fields is absent or a text.
fn are_texts(fields: &Map<String, Value>, names: &[&str]) -> bool {
    names.iter().all(|name| fields.get(*name).is_none_or(Value::is_string))
}

fn take(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    match fields.shift_remove(name) {
        Some(Value::String(text)) => Some(text),
        Some(_) | None => None,
    }
}
