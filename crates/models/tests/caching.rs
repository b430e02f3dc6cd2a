//! Prompt caching lives on bytes that stay: whatever is said, the next request of a session begins as the last one did.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's way to fail")]

#[path = "caching/kept.rs"]
mod kept;

use openclaw_models::catalog::{Catalog, ModelSpec};
use openclaw_models::replay::posted;
use openclaw_models::{CacheRetention, ModelRef, ModelRequest, ModelSettings, ThinkingLevel, ToolSpec};
use openclaw_protocol::message::{Message, StopReason};
use proptest::prelude::*;
use secrecy::SecretString;
use serde_json::{Value, json};

/// A login of the Codex backend, and a key for everybody else.
const KEY: &str =
    "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOiB7ImNoYXRncHRfYWNjb3VudF9pZCI6ICJhY2NfMSJ9fQ.c2ln";

/// A model of each protocol and of each of its dialects that writes a history differently.
const MODELS: [(&str, &str); 12] = [
    ("anthropic", "claude-opus-4-6"),
    ("anthropic", "claude-haiku-4-5"),
    ("openrouter", "anthropic/claude-sonnet-4.5"),
    ("groq", "any"),
    ("mistral", "any"),
    ("zai", "glm-4.7"),
    ("openai", "gpt-5.2"),
    ("openai-codex", "gpt-5.3-codex"),
    ("google", "gemini-3-pro-preview"),
    ("google", "gemini-2.5-flash"),
    ("google-vertex", "gemini-3-pro-preview"),
    ("amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
];

fn spec((provider, id): (&str, &str)) -> ModelSpec {
    let catalog = Catalog::new(&ModelSettings::default());
    ModelSpec { images: true, reasoning: true, ..catalog.lookup(&ModelRef::new(provider, id)).unwrap() }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => any::<String>(),
        1 => Just(String::new()),
        1 => Just(" \n\t".to_owned()),
        1 => Just("a \"quoted\" {\"json\": [1,\\n]} \u{0} \u{2028} \u{feff} 🦞 \u{fffd}".to_owned()),
        1 => Just("ANTHROPIC_MAGIC_STRING_TRIGGER_REFUSAL".to_owned()),
    ]
}

fn image() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["image/png", "image/jpeg", "image/svg+xml"])
        .prop_map(|mime| json!({"type": "image", "data": "aGk=", "mimeType": mime}))
}

fn said() -> impl Strategy<Value = Value> {
    let block = prop_oneof![3 => text().prop_map(|text| json!({"type": "text", "text": text})), 1 => image()];
    prop_oneof![text().prop_map(Value::String), prop::collection::vec(block, 0..4).prop_map(Value::Array)]
}

/// Generates an answer of a model: thoughts, words, and calls with these ids.
fn answer(calls: Vec<(String, String)>) -> impl Strategy<Value = Value> {
    let signature = prop_oneof![
        Just(Value::Null),
        Just(json!("")),
        Just(json!("QUJD")),
        Just(json!("reasoning_content")),
        Just(json!(r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}"#)),
    ];
    let thought = (text(), signature, any::<bool>()).prop_map(|(text, signature, redacted)| {
        let mut block = json!({"type": "thinking", "thinking": text});
        if !signature.is_null() {
            block["thinkingSignature"] = signature;
        }
        if redacted {
            block["redacted"] = json!(true);
        }
        block
    });
    let words = (text(), any::<bool>()).prop_map(|(text, signed)| match signed {
        true => json!({"type": "text", "text": text, "textSignature": "msg_1"}),
        false => json!({"type": "text", "text": text}),
    });
    let before = prop::collection::vec(prop_oneof![thought, words], 0..4);
    let calls: Vec<_> = calls
        .into_iter()
        .map(|(id, word)| {
            json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": word, "n": [1, {"x": null}]}})
        })
        .collect();
    // Own, a sibling's, another vendor's; whole, failed or cut.
    (before, 0..3_usize, prop::sample::select(vec!["stop", "toolUse", "toolUse", "error", "aborted"])).prop_map(
        move |(mut content, whose, stop)| {
            content.extend(calls.clone());
            json!({"role": "assistant", "content": content, "whose": whose, "stopReason": stop, "timestamp": 2,
                "usage": {}})
        },
    )
}

/// A step of a turn: an answer, and the results of its calls, some of which may be missing.
fn step() -> impl Strategy<Value = Vec<Value>> {
    let id = prop::sample::select(vec!["call_1", "call_2|fc_2", "toolu_1", "call.3/x", "call_1|fc_1"]);
    let calls = prop::collection::vec((id.prop_map(str::to_owned), text()), 0..3);
    // Ids are one of a kind within an answer; from turn to turn careless servers use them again.
    calls
        .prop_map(|mut calls| {
            calls.sort();
            calls.dedup_by(|a, b| a.0 == b.0);
            calls
        })
        .prop_flat_map(|calls| {
            let results = prop::collection::vec((said(), any::<bool>(), 0..8_u8), calls.len());
            let ids: Vec<_> = calls.iter().map(|(id, _)| id.clone()).collect();
            (answer(calls), results, Just(ids))
        })
        .prop_map(|(answer, results, ids)| {
            let results = ids.into_iter().zip(results).filter(|(_, (.., luck))| *luck > 0);
            let results = results.map(|(id, (content, is_error, _))| {
                let content = match content {
                    Value::String(text) => json!([{"type": "text", "text": text}]),
                    blocks => blocks,
                };
                json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": content,
                    "isError": is_error, "timestamp": 3})
            });
            std::iter::once(answer).chain(results).collect()
        })
}

fn turn() -> impl Strategy<Value = Vec<Value>> {
    (said(), prop::collection::vec(step(), 0..4)).prop_map(|(content, steps)| {
        let user = json!({"role": "user", "content": content, "timestamp": 1});
        std::iter::once(user).chain(steps.into_iter().flatten()).collect()
    })
}

fn messages(spec: &ModelSpec, raw: &[Value]) -> Vec<Message> {
    let write = |message: &Value| {
        let mut message = message.clone();
        if let Some(whose) = message.get("whose").and_then(Value::as_u64) {
            let (api, provider, model) = match whose {
                0 => (spec.api.as_str(), spec.provider(), spec.id()),
                1 => (spec.api.as_str(), spec.provider(), "sibling"),
                _ => ("somebody-elses", "other", "m"),
            };
            message["api"] = json!(api);
            message["provider"] = json!(provider);
            message["model"] = json!(model);
        }
        serde_json::from_value(message).unwrap()
    };
    raw.iter().map(write).collect()
}

fn tool() -> ToolSpec {
    let parameters =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    ToolSpec { name: "read".into(), description: "reads".into(), parameters: parameters.into() }
}

/// A request without a conversation.
fn request(system: &str, tools: Vec<ToolSpec>) -> ModelRequest {
    ModelRequest {
        system: system.into(),
        tools: tools.into(),
        thinking: ThinkingLevel::Medium,
        cache: CacheRetention::Long,
        session_id: Some("session".to_owned()),
        ..ModelRequest::default()
    }
}

/// The request after this much of a conversation, as text: everything but the conversation, and the pieces of it one by one.
/// Marks that say how far to cache are no content and move on.
fn pieces(spec: &ModelSpec, conversation: &[Message]) -> (String, Vec<String>) {
    let request = ModelRequest {
        messages: conversation.iter().cloned().map(Into::into).collect::<Vec<_>>().into(),
        ..request("The rules.\n\"Quoted\" \u{2028}", vec![tool()])
    };
    let body = posted(spec, &SecretString::from(KEY), &request).unwrap().unwrap();
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    // Behind calls that were made without a thought these models have to go on without: the request would be refused otherwise.
    if spec.id() == "claude-haiku-4-5"
        && let Some(fields) = body.as_object_mut()
    {
        fields.retain(|name, _| name != "thinking" && name != "max_tokens");
    }
    let mut out = Vec::new();
    for list in ["messages", "input", "contents"] {
        let Some(Value::Array(messages)) = body.get_mut(list).map(Value::take) else { continue };
        for mut message in messages {
            let parts = ["content", "parts"].iter().find_map(|name| match message.get_mut(*name) {
                Some(Value::Array(parts)) => Some(std::mem::take(parts)),
                _ => None,
            });
            let mut parts = parts.unwrap_or_default();
            parts.retain(|part| part.get("cachePoint").is_none());
            for part in &mut parts {
                if let Some(fields) = part.as_object_mut() {
                    fields.shift_remove("cache_control");
                }
            }
            let head = message.to_string();
            out.extend(parts.iter().map(|part| format!("{head} {part}")));
            if parts.is_empty() {
                out.push(head);
            }
        }
    }
    (body.to_string(), out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, ..ProptestConfig::default() })]

    #[test]
    fn the_next_request_begins_as_the_last_one_did(
        turns in prop::collection::vec(turn(), 1..5),
        which in prop::sample::select(MODELS.to_vec()),
    ) {
        let spec = spec(which);
        let raw = turns.concat();
        let conversation = messages(&spec, &raw);
        // The model is asked after a person spoke, and once all calls of its answer have their result.
        let is_asked = |at: &usize| {
            let said = conversation[..*at].iter().rev();
            let results = said.take_while(|message| matches!(message, Message::ToolResult(_))).count();
            match conversation.get(*at - 1 - results) {
                Some(Message::User(_)) => results == 0,
                Some(Message::Assistant(answer)) => {
                    // Calls of half an answer are not run.
                    let whole = !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
                    whole && results > 0 && answer.tool_calls().count() == results
                }
                Some(Message::ToolResult(_)) | None => false,
            }
        };
        let mut last: Option<(String, Vec<String>)> = None;
        for at in (1..=conversation.len()).filter(is_asked) {
            let next = pieces(&spec, &conversation[..at]);
            if let Some((around, said)) = last {
                prop_assert_eq!(&around, &next.0);
                let shared = next.1.get(..said.len()).unwrap_or(&next.1);
                prop_assert_eq!(&said[..], shared, "{:?} after {}", which, at);
            }
            last = Some(next);
        }
    }
}
