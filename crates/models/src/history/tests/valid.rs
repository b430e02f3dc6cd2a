//! Tests that nothing in a conversation can make every later request invalid: a history with
//! everything that ever went wrong is written for each protocol in a form that its servers accept.

use std::collections::HashSet;

use serde_json::Value;

use super::*;
use crate::model_spec::ModelSpec;
use crate::replay::gone_on;
use crate::request::ModelRequest;

const APIS: [&str; 6] = [
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "openai-codex-responses",
    "google-generative-ai",
    "bedrock-converse-stream",
];

/// Returns a transcript with everything that can go wrong in one. Its answers are the model's own, since those of others are translated
/// anyway.
fn history(spec: &ModelSpec) -> Vec<Arc<Message>> {
    let answer = |content: Value, stop: &str| {
        json!({"role": "assistant", "content": content, "api": spec.api.as_str(), "provider": spec.provider(),
            "model": spec.id(), "stopReason": stop})
    };
    let call =
        |id: &str, name: &str| json!({"type": "toolCall", "id": id, "name": name, "arguments": {"a": 1}});
    let result = |id: &str, name: &str, content: Value| json!({"role": "toolResult", "toolCallId": id, "toolName": name, "content": content});
    // OpenAI's Responses name the item beside the call.
    let whole = if spec.api.as_str().contains("responses") { "call_1|fc_1" } else { "call_1" };
    let lost = json!({"type": "reasoning", "id": "rs_1", "summary": []}).to_string();
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
    let messages = json!([
        answer(json!([text("said before anybody asked")]), "stop"),
        {"role": "user", "content": [text(" "), image("")]},
        result("ghost", "read", json!([text("of no call")])),
        answer(json!([text(""), {"type": "thinking", "thinking": ""}, call("", "lire le fichier")]), "toolUse"),
        result("", "lire le fichier", json!([text("")])),
        answer(json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": lost}, call(whole, "read")]), "toolUse"),
        result(whole, "read", json!([])),
        result(whole, "read", json!([text("again")])),
        answer(json!([call("dup", ""), call("dup", "read")]), "toolUse"),
        result("dup", "", json!([text("once"), image("iVBORw0KGgo=")])),
        answer(json!([call("open", &"long".repeat(30))]), "toolUse"),
        {"role": "user", "content": "never answered"},
        answer(json!([text("half"), call("cut", "read")]), "error"),
        answer(json!([]), "stop"),
        answer(json!([text("fine"), image("iVBORw0KGgo="), {"type": "novel"}]), "stop"),
        {"role": "user", "content": [text("and now?")]},
    ]);
    messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| Arc::new(serde_json::from_value(message.clone()).unwrap()))
        .collect()
}

/// Content of a request, independent of the names that its protocol uses.
#[derive(Debug, Default)]
struct Found {
    calls: Vec<String>,
    results: Vec<String>,
    names: Vec<String>,
    texts: Vec<String>,
}

/// Calls and results of every protocol: the object's fields say which it is.
fn find(value: &Value, found: &mut Found) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Value::Array(list) = value {
        list.iter().for_each(|value| find(value, found));
    }
    let Value::Object(fields) = value else { return };
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    match (kind, value) {
        ("tool_use", v) => {
            found.calls.push(text(&v["id"]));
            found.names.push(text(&v["name"]));
        }
        ("tool_result", v) => found.results.push(text(&v["tool_use_id"])),
        ("function", v) if v.get("function").is_some() => {
            found.calls.push(text(&v["id"]));
            found.names.push(text(&v["function"]["name"]));
        }
        ("function_call", v) => {
            found.calls.push(text(&v["call_id"]));
            found.names.push(text(&v["name"]));
        }
        ("function_call_output", v) => found.results.push(text(&v["call_id"])),
        ("text" | "input_text" | "output_text", v) => found.texts.push(text(&v["text"])),
        _ => {}
    }
    if fields.get("role").is_some_and(|role| role == "tool") {
        found.results.push(text(&value["tool_call_id"]));
    }
    if let Some(call) = fields.get("toolUse") {
        found.calls.push(text(&call["toolUseId"]));
        found.names.push(text(&call["name"]));
    }
    if let Some(result) = fields.get("toolResult") {
        found.results.push(text(&result["toolUseId"]));
    }
    // Google knows calls by their names.
    if let Some(call) = fields.get("functionCall") {
        found.calls.push(text(&call["name"]));
        found.names.push(text(&call["name"]));
    }
    if let Some(result) = fields.get("functionResponse") {
        found.results.push(text(&result["name"]));
    }
    fields.values().for_each(|value| find(value, found));
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[test]
fn a_history_with_all_that_ever_went_wrong_is_valid_for_every_protocol() {
    for api in APIS {
        let mut spec = ModelSpec::sample("p", "m", api);
        (spec.images, spec.reasoning) = (true, true);
        let request = ModelRequest { messages: history(&spec).into(), ..ModelRequest::default() };
        let body: Value = serde_json::from_slice(&gone_on(&spec, &request).unwrap()).unwrap();
        check(api, &body);
    }
}

fn check(api: &str, body: &Value) {
    let all = ["messages", "input", "contents"].iter().find_map(|name| body.get(name)).unwrap();
    let mut found = Found::default();
    find(all, &mut found);
    assert!(!found.calls.is_empty(), "{api}: {all:#}");
    assert_eq!(found.calls, found.results, "{api}: each call has one result, in order");
    assert!(found.names.iter().all(|name| is_name(name)), "{api}: {:?}", found.names);
    assert!(found.calls.iter().all(|id| is_name(id)), "{api}: {:?}", found.calls);
    assert!(found.texts.iter().all(|text| !text.trim().is_empty()), "{api}: {all:#}");
    if api != "google-generative-ai" {
        let different: HashSet<&String> = found.calls.iter().collect();
        assert_eq!(different.len(), found.calls.len(), "{api}: {:?}", found.calls);
    }
    let list = all.as_array().unwrap();
    for message in list {
        let content = message.get("content").or(message.get("parts"));
        assert!(
            content.is_none_or(|content| *content != json!([]) && *content != json!("")),
            "{api}: {message}"
        );
        let is_model = message.get("role").is_some_and(|role| role == "assistant" || role == "model");
        assert!(
            !is_model || !message.to_string().contains("iVBOR"),
            "{api}: an image of the model's: {message}"
        );
        assert_ne!(message["type"], json!("reasoning"), "{api}: the server does not have it: {message}");
        assert_ne!(message["id"], json!("fc_1"), "{api}: the server does not have it: {message}");
    }
    let first = &list[0]["role"];
    assert!(*first == json!("user") || api.starts_with("openai"), "{api}: {first}");
    assert_eq!(list.last().unwrap()["role"], json!("user"), "{api}");
}
