//! Whatever stands in the events of a protocol, rightly formed, the answer ends in exactly one message, and in the same one
//! wherever the bytes are cut. (Wrongly formed bytes are the `answer` target's, Bedrock's frames the `converse` target's.)
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use openclaw_models::catalog::{Catalog, ModelSpec};
use openclaw_models::replay::replay;
use openclaw_models::{ModelEvent, ModelRef, ModelSettings};

/// A model of each protocol over server-sent events, and its events. `%` stands for any text, `#` for any number.
const PROTOCOLS: [(&str, &str, &[&str]); 4] = [
    (
        "anthropic",
        "claude-opus-4-6",
        &[
            r#"{"type":"message_start","message":{"usage":{"input_tokens":#,"cache_read_input_tokens":#}}}"#,
            r#"{"type":"content_block_start","index":#,"content_block":{"type":"text","text":%}}"#,
            r#"{"type":"content_block_start","index":#,"content_block":{"type":"thinking","thinking":%,"signature":%}}"#,
            r#"{"type":"content_block_start","index":#,"content_block":{"type":"redacted_thinking","data":%}}"#,
            r#"{"type":"content_block_start","index":#,"content_block":{"type":"tool_use","id":%,"name":%,"input":{}}}"#,
            r#"{"type":"content_block_delta","index":#,"delta":{"type":"text_delta","text":%}}"#,
            r#"{"type":"content_block_delta","index":#,"delta":{"type":"thinking_delta","thinking":%}}"#,
            r#"{"type":"content_block_delta","index":#,"delta":{"type":"signature_delta","signature":%}}"#,
            r#"{"type":"content_block_delta","index":#,"delta":{"type":"input_json_delta","partial_json":%}}"#,
            r#"{"type":"content_block_stop","index":#}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":%},"usage":{"output_tokens":#}}"#,
            r#"{"type":"message_stop"}"#,
            r#"{"type":"error","error":{"type":%,"message":%}}"#,
        ],
    ),
    (
        "openrouter",
        "any",
        &[
            r#"{"choices":[{"index":#,"delta":{"content":%},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":%,"reasoning":%}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":#,"id":%,"function":{"name":%,"arguments":%}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":#,"function":{"arguments":%}}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","id":%,"data":%}]}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"text":%},{"thinking":[{"text":%}]}]}}]}"#,
            r#"{"choices":[{"delta":{"refusal":%},"finish_reason":%}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":#,"completion_tokens":#,"prompt_tokens_details":{"cached_tokens":#}}}"#,
            r#"{"error":{"message":%,"code":#,"metadata":{"raw":%}}}"#,
            "[DONE]",
        ],
    ),
    (
        "openai",
        "gpt-5.2",
        &[
            r#"{"type":"response.output_item.added","output_index":#,"item":{"type":"message","id":%}}"#,
            r#"{"type":"response.output_item.added","output_index":#,"item":{"type":"reasoning","id":%}}"#,
            r#"{"type":"response.output_item.added","output_index":#,"item":{"type":"function_call","id":%,"call_id":%,"name":%}}"#,
            r#"{"type":"response.output_text.delta","output_index":#,"delta":%}"#,
            r#"{"type":"response.reasoning_summary_part.added","output_index":#}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":#,"delta":%}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":#,"delta":%}"#,
            r#"{"type":"response.function_call_arguments.done","output_index":#,"arguments":%}"#,
            r#"{"type":"response.output_item.done","output_index":#,"item":{"type":"message","id":%,"content":[{"text":%}]}}"#,
            r#"{"type":"response.output_item.done","output_index":#,"item":{"type":"reasoning","summary":[{"text":%}],"encrypted_content":%}}"#,
            r#"{"type":"response.output_item.done","output_index":#,"item":{"type":"function_call","call_id":%,"name":%,"arguments":%}}"#,
            r#"{"type":"response.completed","response":{"status":%,"usage":{"input_tokens":#,"output_tokens":#},"service_tier":%}}"#,
            r#"{"type":"response.failed","response":{"error":{"code":%,"message":%}}}"#,
            r#"{"type":"error","code":%,"message":%}"#,
        ],
    ),
    (
        "google",
        "gemini-3-pro-preview",
        &[
            r#"{"candidates":[{"content":{"parts":[{"text":%,"thoughtSignature":%}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":%,"thought":true},{"thoughtSignature":%}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":%,"id":%,"args":{"a":%}},"thoughtSignature":%}]}}]}"#,
            r#"{"candidates":[{"finishReason":%,"finishMessage":%}]}"#,
            r#"{"candidates":[],"usageMetadata":{"promptTokenCount":#,"cachedContentTokenCount":#,"thoughtsTokenCount":#}}"#,
            r#"{"promptFeedback":{"blockReason":%}}"#,
            r#"{"error":{"code":#,"status":%,"message":%}}"#,
        ],
    ),
];

static MODELS: LazyLock<Vec<ModelSpec>> = LazyLock::new(|| {
    let catalog = Catalog::new(&ModelSettings::default());
    let lookup = |(provider, id, _): &(&str, &str, &[&str])| catalog.lookup(&ModelRef::new(provider, id));
    PROTOCOLS.iter().map(|protocol| lookup(protocol).expect("a built-in model")).collect()
});

/// Number of the protocol, pieces of a stream, and where its bytes are cut.
type Input = (u8, Vec<(u8, Vec<String>, Vec<u64>)>, usize);

fuzz_target!(|input: Input| {
    let (which, events, at) = input;
    let which = usize::from(which) % PROTOCOLS.len();
    let (model, templates) = (&MODELS[which], PROTOCOLS[which].2);
    let mut bytes = String::new();
    for (template, texts, numbers) in events {
        let template = templates[usize::from(template) % templates.len()];
        bytes.push_str(&format!("data: {}\n\n", filled(template, &texts, &numbers)));
    }
    let bytes = bytes.as_bytes();
    let (head, tail) = bytes.split_at(at.min(bytes.len()));
    let whole = replay(model, 0, [bytes]).expect("a protocol with a client");
    let ends = whole.iter().filter(|event| matches!(event, ModelEvent::Done { .. })).count();
    assert_eq!(ends, 1);
    assert_eq!(replay(model, 0, [head, tail]), Some(whole));
});

fn filled(template: &str, texts: &[String], numbers: &[u64]) -> String {
    let (mut texts, mut numbers) = (texts.iter(), numbers.iter());
    let mut out = String::new();
    for c in template.chars() {
        match c {
            '%' => match texts.next() {
                Some(text) => out.push_str(&serde_json::json!(text).to_string()),
                None => out.push_str("null"),
            },
            '#' => out.push_str(&numbers.next().copied().unwrap_or_default().to_string()),
            other => out.push(other),
        }
    }
    out
}
