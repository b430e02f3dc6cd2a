use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::answer::tests::{check_stream, message_of};
use crate::bedrock::tests::event_of;
use crate::model_spec::ModelSpec;
use crate::replay::replay;
use crate::stream::ModelEvent;

#[derive(Deserialize, Debug, PartialEq, Default)]
struct Fields {
    #[serde(default, deserialize_with = "text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "id")]
    id: Option<String>,
    #[serde(default, deserialize_with = "count")]
    count: Option<u64>,
    #[serde(default, deserialize_with = "flag")]
    flag: Option<bool>,
    #[serde(default, deserialize_with = "json_text")]
    json: Option<String>,
    #[serde(default, deserialize_with = "error")]
    error: Option<Value>,
    #[serde(default, deserialize_with = "objects")]
    objects: Vec<Map<String, Value>>,
    #[serde(default, deserialize_with = "first")]
    first: Option<Map<String, Value>>,
}

fn fields(text: &str) -> Fields {
    frame(text, "no frame").unwrap()
}

#[test]
fn what_is_of_the_right_type_is_read() {
    let read = fields(
        r#"{"text":"a\"b","id":7,"count":"12","flag":true,"json":{"a":1},"error":"no","objects":[1,{},[2]],"first":[null,{"a":1}]}"#,
    );
    let expect = Fields {
        text: Some("a\"b".to_owned()),
        id: Some("7".to_owned()),
        count: Some(12),
        flag: Some(true),
        json: Some("{\"a\":1}".to_owned()),
        error: Some(json!("no")),
        objects: vec![Map::new()],
        first: Some(json!({"a": 1}).as_object().unwrap().clone()),
    };
    assert_eq!(read, expect);
}

#[test]
fn counts_are_read_however_they_are_written() {
    let rows = [
        ("12", Some(12)),
        ("12.0", Some(12)),
        ("12.9", Some(12)),
        ("1e3", Some(1000)),
        ("\"12\"", Some(12)),
        ("\"12.5\"", Some(12)),
        ("-1", None),
        ("1e999", None),
        ("\"inf\"", None),
        ("\"NaN\"", None),
        ("null", None),
        ("[5]", None),
        ("{}", None),
        ("true", None),
    ];
    for (written, expect) in rows {
        assert_eq!(fields(&format!("{{\"count\":{written}}}")).count, expect, "{written}");
    }
}

#[test]
fn no_data_and_other_json_are_empty_frames_and_everything_else_is_none() {
    for nothing in ["", " \n", "null", "[]", "[1,{}]", "7", "\"ping\"", "true"] {
        assert_eq!(fields(nothing), Fields::default(), "{nothing}");
    }
    for none in ["{", "{nonsense}", "ping", "[1", "{\"text\":\"a\"} {"] {
        let failure = frame::<Fields>(none, "no frame").unwrap_err();
        assert!(failure.message.contains("no frame"), "{}", failure.message);
    }
}

#[test]
fn an_error_that_says_nothing_is_none() {
    for nothing in ["null", "{}", "[]", "\"\"", "\" \"", "false", "0"] {
        assert_eq!(fields(&format!("{{\"error\":{nothing}}}")).error, None, "{nothing}");
    }
    for error in ["{\"message\":\"x\"}", "\"x\"", "true"] {
        assert!(fields(&format!("{{\"error\":{error}}}")).error.is_some(), "{error}");
    }
}

/// An answer in one protocol, and the paths in it that its text needs.
struct Sample {
    api: &'static str,
    frames: Vec<Value>,
    needed: &'static [&'static str],
}

const TEXT: &str = "the words";

/// Returns one answer of each protocol, with every field that has a type in our code.
fn samples() -> Vec<Sample> {
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "cached_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 1}, "prompt_cache_hit_tokens": 1,
        "completion_tokens_details": {"reasoning_tokens": 1}});
    let responses_end = json!({"status": "completed", "output": [], "usage": {"input_tokens": 1, "output_tokens": 2,
        "input_tokens_details": {"cached_tokens": 1}}, "error": null, "incomplete_details": null, "service_tier": "flex"});
    vec![
        Sample {
            api: "openai-completions",
            frames: vec![
                json!({"id": "1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": TEXT, "reasoning": null,
                    "reasoning_content": "", "reasoning_text": "", "reasoning_details": [], "tool_calls": [],
                    "function_call": null, "refusal": null}, "message": null, "finish_reason": null, "usage": null}],
                    "usage": null, "model": "m"}),
                json!({"choices": [{"delta": {}, "finish_reason": null}]}),
                json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage}),
                json!({"choices": [], "usage": usage}),
            ],
            needed: &["/0/choices", "/0/choices/0", "/0/choices/0/delta", "/0/choices/0/delta/content"],
        },
        Sample {
            api: "anthropic-messages",
            frames: vec![
                json!({"type": "message_start", "message": {"type": "message", "content": [], "stop_reason": null,
                    "usage": {"input_tokens": 1, "output_tokens": 1, "cache_read_input_tokens": 1,
                        "cache_creation_input_tokens": 1}}}),
                json!({"type": "ping"}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
                json!({"type": "message_stop"}),
            ],
            needed: &["/3/type", "/3/delta", "/3/delta/text", "/6/type"],
        },
        Sample {
            api: "openai-responses",
            frames: vec![
                json!({"type": "response.created", "response": {"id": "r"}, "sequence_number": 0}),
                json!({"type": "response.output_item.added", "output_index": 0,
                    "item": {"type": "message", "id": "msg_1", "call_id": null, "name": null, "content": [], "summary": []}}),
                json!({"type": "response.output_text.delta", "output_index": 0, "delta": TEXT}),
                json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "id": "msg_1",
                    "content": [{"type": "output_text", "text": TEXT}]}}),
                json!({"type": "response.completed", "response": responses_end}),
            ],
            needed: &["/2/type", "/2/delta", "/4/type", "/1/item/type"],
        },
        Sample {
            api: "google-generative-ai",
            frames: vec![
                json!({"candidates": [{"content": {"role": "model", "parts": [{"text": TEXT, "thought": false,
                    "thoughtSignature": "", "functionCall": null}]}, "finishMessage": ""}],
                    "usageMetadata": {"promptTokenCount": 1}}),
                json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "promptFeedback": {"blockReason": null},
                    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "thoughtsTokenCount": 1,
                        "cachedContentTokenCount": 1}}),
            ],
            needed: &[
                "/0/candidates",
                "/0/candidates/0",
                "/0/candidates/0/content",
                "/0/candidates/0/content/parts",
                "/0/candidates/0/content/parts/0",
                "/0/candidates/0/content/parts/0/text",
                "/1/candidates",
                "/1/candidates/0",
                "/1/candidates/0/finishReason",
            ],
        },
    ]
}

/// Every path in a document.
fn paths(value: &Value, at: &str, out: &mut Vec<String>) {
    let mut go = |name: &str, value: &Value| {
        let path = format!("{at}/{name}");
        paths(value, &path, out);
        out.push(path);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| go(name, value)),
        Value::Array(list) => list.iter().enumerate().for_each(|(at, value)| go(&at.to_string(), value)),
        _ => {}
    }
}

fn stream(frames: &Value) -> String {
    let frames = frames.as_array().unwrap().iter().map(|frame| format!("data: {frame}\n\n"));
    frames.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

/// The text of an answer whose field at `path` holds `odd`.
fn said(sample: &Sample, path: &str, odd: &Value) -> String {
    let mut frames = Value::Array(sample.frames.clone());
    *frames.pointer_mut(path).unwrap() = odd.clone();
    let spec = ModelSpec::sample("p", "m", sample.api);
    let body = stream(&frames);
    let events = replay(&spec, 7, [body.as_bytes()]).unwrap();
    match events.last() {
        Some(ModelEvent::Done { failure: None, message }) => message.text(),
        other => format!("failed: {other:?}"),
    }
}

/// Generates values for fields that nobody needs. Filled errors, and a provider's reasons for not answering, are needed.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9 ]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,5}", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// True for a field that means what it holds: words, an error, another item.
fn is_meant(path: &str, odd: &Value) -> bool {
    const WORDS: [&str; 5] = ["content", "text", "refusal", "blockReason", "status"];
    match path.rsplit('/').next().unwrap_or_default() {
        "error" => true,
        "thought" => odd.is_boolean(),
        "output_index" => odd.is_number() || odd.is_string(),
        name => odd.is_string() && WORDS.contains(&name),
    }
}

proptest! {
    /// The law: whatever stands in a field that the text does not need, the text is there, and the answer is good.
    #[test]
    fn any_json_in_a_field_nobody_needs_never_loses_the_text(odd in anything(), which in any::<prop::sample::Index>()) {
        for sample in samples() {
            let mut all = Vec::new();
            paths(&Value::Array(sample.frames.clone()), "", &mut all);
            all.retain(|path| !sample.needed.contains(&path.as_str()) && path.matches('/').count() > 1);
            let path = which.get(&all);
            if !is_meant(path, &odd) {
                prop_assert_eq!(said(&sample, path, &odd), TEXT, "{} {} {}", sample.api, path, odd);
            }
        }
    }
}

#[test]
fn the_text_is_there_where_nothing_is_odd() {
    for sample in samples() {
        let spec = ModelSpec::sample("p", "m", sample.api);
        let found = check_stream(&spec, &stream(&Value::Array(sample.frames)));
        assert_eq!(message_of(&found).text(), TEXT, "{}", sample.api);
    }
}

/// Bedrock's frames are binary, so that its odd fields have rows.
#[test]
fn odd_fields_of_bedrock_lose_no_text() {
    let odd = [
        Value::Null,
        json!(true),
        json!(-1),
        json!("x"),
        json!([]),
        json!({}),
        json!([{"a": 1}]),
        json!(1.5),
    ];
    let spec = ModelSpec::sample("amazon-bedrock", "m", "bedrock-converse-stream");
    for odd in odd {
        let frames = [
            ("messageStart", json!({"role": odd})),
            ("contentBlockStart", json!({"contentBlockIndex": odd, "start": odd})),
            (
                "contentBlockDelta",
                json!({"contentBlockIndex": odd,
                "delta": {"text": TEXT, "toolUse": odd, "reasoningContent": odd}}),
            ),
            ("contentBlockStop", json!({"contentBlockIndex": odd})),
            ("messageStop", json!({"stopReason": "end_turn", "additionalModelResponseFields": odd})),
            ("metadata", json!({"usage": odd, "metrics": odd})),
            (
                "metadata",
                json!({"usage": {"inputTokens": odd, "outputTokens": odd, "cacheReadInputTokens": odd,
                "cacheWriteInputTokens": odd}}),
            ),
        ];
        let bytes: Vec<u8> =
            frames.iter().flat_map(|(name, frame)| event_of(name, &frame.to_string())).collect();
        let events = replay(&spec, 7, [bytes.as_slice()]).unwrap();
        let Some(ModelEvent::Done { failure, message }) = events.last() else { panic!("no end") };
        assert_eq!((failure, message.text().as_str()), (&None, TEXT), "{odd}");
    }
}
