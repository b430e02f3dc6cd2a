use std::sync::Arc;

use openclaw_protocol::message::AssistantMessage;
use proptest::prelude::*;

use super::*;
use crate::bedrock::tests::event_of;
use crate::replay::replay;
use crate::sse::MAX_EVENT_BYTES;

fn answer(spec: &ModelSpec) -> AnswerReader {
    let decoder = crate::protocols::protocol(&spec.api).expect("a protocol with a client").decoder();
    AnswerReader::new(Arc::new(spec.clone()), decoder, 7)
}

/// The events of a body that arrives in these chunks.
fn receive<'c>(spec: &ModelSpec, chunks: impl IntoIterator<Item = &'c [u8]>) -> Vec<ModelEvent> {
    replay(spec, 7, chunks).expect("a protocol with a client")
}

/// The events of a body, and that they are the same wherever it is cut.
pub(crate) fn check_stream(spec: &ModelSpec, body: &str) -> Vec<ModelEvent> {
    check_bytes(spec, body.as_bytes())
}

/// Checks a body of bytes that may not be text, in the same way.
pub(crate) fn check_bytes(spec: &ModelSpec, bytes: &[u8]) -> Vec<ModelEvent> {
    let whole = receive(spec, [bytes]);
    for cut in 0..=bytes.len() {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(receive(spec, [a, b]), whole, "cut at {cut}");
    }
    assert_eq!(receive(spec, bytes.chunks(1)), whole, "byte by byte");
    assert_eq!(whole.iter().filter(|event| matches!(event, ModelEvent::Done { .. })).count(), 1);
    whole
}

/// The message that ends the events.
pub(crate) fn message_of(events: &[ModelEvent]) -> AssistantMessage {
    match events.last() {
        Some(ModelEvent::Done { message, .. }) => message.clone(),
        other => panic!("no end: {other:?}"),
    }
}

/// The failure that ends the events.
pub(crate) fn failure_of(events: &[ModelEvent]) -> ModelFailure {
    match events.last() {
        Some(ModelEvent::Done { failure: Some(failure), message }) => {
            assert_eq!(message.stop_reason, StopReason::Error);
            assert_eq!(message.error_message.as_deref(), Some(failure.message.as_str()));
            failure.clone()
        }
        other => panic!("no failure: {other:?}"),
    }
}

/// The protocols whose streams are server-sent events.
const APIS: [&str; 5] = [
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "openai-codex-responses",
    "google-generative-ai",
];
/// Protocol whose streams are AWS's binary messages.
const BINARY_API: &str = "bedrock-converse-stream";

#[test]
fn what_is_no_answer_is_named() {
    let rows: [(&[u8], FailureKind, &str); 8] = [
        (b"", FailureKind::Transient, "an empty answer"),
        (b" \r\n ", FailureKind::Transient, "an empty answer"),
        (
            b"<html><title>Just a\n moment...</title>",
            FailureKind::Gone,
            "a web page titled \"Just a moment...\"",
        ),
        (b"<p>", FailureKind::Gone, "a web page instead"),
        (b"data: {nonsense}\n\n", FailureKind::Transient, "{nonsense}"),
        (b"data: \xff\xfe\n\n", FailureKind::Transient, "\u{fffd}"),
        (b"{\"a\":\xff}", FailureKind::Transient, "\u{fffd}"),
        (b"{\"hello\":1}", FailureKind::Transient, "{\"hello\":1}"),
    ];
    for api in APIS {
        let spec = ModelSpec::sample("p", "m", api);
        for (body, kind, text) in rows {
            let failure = failure_of(&receive(&spec, [body]));
            assert_eq!(failure.kind, kind, "{api} {}", failure.message);
            assert!(failure.message.contains(text), "{api} {}", failure.message);
        }
        let hung_up = failure_of(&receive(&spec, [b": comment\n\n".as_slice()]));
        assert!(hung_up.message.contains("hung up"), "{}", hung_up.message);
    }
    let spec = ModelSpec::sample("p", "m", BINARY_API);
    for (body, kind, text) in rows {
        // Less than a prelude may still become one.
        let text = match body.starts_with(b"data") {
            true if body.len() < 12 => "hung up",
            true => "no event stream of AWS",
            false => text,
        };
        let failure = failure_of(&receive(&spec, [body]));
        assert!(failure.kind == kind && failure.message.contains(text), "{}", failure.message);
    }
}

#[test]
fn events_without_blank_lines_between_them_are_told_apart() {
    let spec = ModelSpec::sample("p", "m", "openai-completions");
    let said = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n");
    let body = format!("{}{}data: [DONE]\n", said("DONE-"), said("OK"));
    assert_eq!(message_of(&check_stream(&spec, &body)).text(), "DONE-OK");
    // An event may have several lines.
    let pretty =
        "data: {\"choices\": [\ndata: {\"delta\": {\"content\": \"DONE-OK\"}}\ndata: ]}\n\ndata: [DONE]\n\n";
    assert_eq!(message_of(&check_stream(&spec, pretty)).text(), "DONE-OK");
}

#[test]
fn an_answer_over_its_cap_ends_with_an_error() {
    let spec = ModelSpec::sample("p", "m", "openai-completions");
    let delta = "x".repeat(1024 * 1024);
    let chunk = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{delta}\"}}}}]}}\n\n");
    let found = receive(&spec, std::iter::repeat_n(chunk.as_bytes(), 40));
    assert!(failure_of(&found).message.contains("larger than 32 MiB"));
    assert_eq!(message_of(&found).text().len(), 32 * 1024 * 1024);
}

#[test]
fn a_delta_of_fifty_megabytes_is_refused_before_it_is_kept() {
    let deltas = [
        ("anthropic-messages", r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":""#),
        ("openai-completions", r#"{"choices":[{"delta":{"content":""#),
        ("openai-responses", r#"{"type":"response.output_text.delta","output_index":0,"delta":""#),
        ("google-generative-ai", r#"{"candidates":[{"content":{"parts":[{"text":""#),
    ];
    let piece = [b'x'; 65_536];
    for (api, begin) in deltas {
        let mut answer = answer(&ModelSpec::sample("p", "m", api));
        answer.push(format!("data: {begin}").as_bytes());
        let taken = (0..50 * 16).take_while(|_| {
            answer.push(&piece);
            !answer.has_ended()
        });
        assert_eq!(
            taken.count(),
            MAX_EVENT_BYTES / piece.len() - 1,
            "{api}: no more than one event's worth is held"
        );
        let events: Vec<_> = std::iter::from_fn(|| answer.next_event()).collect();
        assert!(failure_of(&events).message.contains("an event of more than"), "{api}");
    }
    // AWS's messages say their length first.
    let mut announced = [50 * 1024 * 1024_u32, 0].map(u32::to_be_bytes).concat();
    announced.extend(crc32fast::hash(&announced).to_be_bytes());
    let failure = failure_of(&receive(&ModelSpec::sample("p", "m", BINARY_API), [announced.as_slice()]));
    assert!(failure.message.contains("an event of more than"), "{}", failure.message);
}

/// The stream of an answer of one text that comes in these pieces, written as they stand in JSON.
fn text_in(api: &str, pieces: &[&str]) -> Vec<u8> {
    type Event = fn(&str) -> String;
    let (delta, ends): (Event, &[&str]) = match api {
        "anthropic-messages" => (
            |text| {
                format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
                )
            },
            &[r#"{"type":"message_stop"}"#],
        ),
        "openai-completions" => (
            |text| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#),
            &[r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, "[DONE]"],
        ),
        "openai-responses" | "openai-codex-responses" => (
            |text| format!(r#"{{"type":"response.output_text.delta","output_index":0,"delta":"{text}"}}"#),
            &[r#"{"type":"response.completed","response":{}}"#],
        ),
        "google-generative-ai" => (
            |text| format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#),
            &[r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{}}"#],
        ),
        _ => {
            let delta = |text: &&str| format!(r#"{{"contentBlockIndex":0,"delta":{{"text":"{text}"}}}}"#);
            let mut body = event_of("messageStart", r#"{"role":"assistant"}"#);
            body.extend(pieces.iter().flat_map(|text| event_of("contentBlockDelta", &delta(text))));
            body.extend(event_of("messageStop", r#"{"stopReason":"end_turn"}"#));
            body.extend(event_of("metadata", r#"{"usage":{}}"#));
            return body;
        }
    };
    let events = pieces.iter().map(|text| delta(text)).chain(ends.iter().map(ToString::to_string));
    events.map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
}

fn said(events: &[ModelEvent]) -> Vec<&str> {
    let said = events.iter().filter_map(|event| match event {
        ModelEvent::TextDelta { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    said.collect()
}

/// JavaScript cuts texts between the halves of a character; Rust's JSON refuses such a half. On every reader the other half is waited for.
#[test]
fn halves_of_a_character_in_two_events_are_that_character() {
    let rows: &[(&[&str], &[&str])] = &[
        (&[r"a\ud83d", r"\ude00b"], &["a", "😀b"]),
        (&[r"\ud83d", r"\ude00\ud83d", r"\ude01"], &["😀", "😁"]),
        (&[r"a\ud83d", "b"], &["a", "\u{fffd}b"]),
        (&["a", r"\ude00b"], &["a", "\u{fffd}b"]),
        // At the end, and in the middle of a piece, it stays alone.
        (&[r"a\ud83d"], &["a", "\u{fffd}"]),
        (&[r"a\ud83dc"], &["a\u{fffd}c"]),
        (&[r"a\ud83d\ude00b"], &["a😀b"]),
    ];
    for api in APIS.into_iter().chain([BINARY_API]) {
        let spec = ModelSpec::sample("p", "m", api);
        for (pieces, told) in rows {
            let events = check_bytes(&spec, &text_in(api, pieces));
            assert_eq!(said(&events), *told, "{api} {pieces:?}");
            assert_eq!(message_of(&events).text(), told.concat(), "{api} {pieces:?}");
        }
    }
    let document = r#"{"choices":[{"message":{"content":"a\ud83d"},"finish_reason":"stop"}]}"#;
    let events = check_stream(&ModelSpec::sample("p", "m", "openai-completions"), document);
    assert_eq!(message_of(&events).text(), "a\u{fffd}");
}

/// Each block waits for its own: what another one says in between does not end a character.
#[test]
fn a_half_is_waited_for_by_its_block_alone() {
    let delta = |index: u64, text: &str| {
        format!(
            "data: {{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"text\":\"{text}\",\"thinking\":\"{text}\",\"partial_json\":\"{text}\"}}}}\n\n"
        )
    };
    let start = |index: u64, block: &str| {
        format!("data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{block}}}\n\n")
    };
    let body = [
        start(0, r#"{"type":"thinking"}"#),
        start(1, r#"{"type":"text"}"#),
        start(2, r#"{"type":"tool_use","id":"c","name":"n"}"#),
        delta(2, r#"{\"a\":\"\ud83d"#),
        delta(0, r"\ud83d"),
        delta(1, r"\ud83d"),
        delta(0, r"\ude00"),
        delta(2, r#"\ude02\"}"#),
        delta(1, r"\ude01"),
        "data: {\"type\":\"message_stop\"}\n\n".to_owned(),
    ];
    let spec = ModelSpec::sample("p", "m", "anthropic-messages");
    let message = message_of(&check_stream(&spec, &body.concat()));
    assert_eq!(message.text(), "😁");
    let thinking = message.content.iter().find_map(|block| match block {
        openclaw_protocol::message::Block::Thinking(thinking) => Some(thinking.thinking.as_str()),
        _ => None,
    });
    assert_eq!(thinking, Some("😀"));
    assert_eq!(message.tool_calls().next().unwrap().arguments, serde_json::json!({"a": "😂"}));
}

#[test]
fn an_aborted_answer_keeps_what_was_said() {
    let spec = ModelSpec::sample("p", "m", "openai-completions");
    let mut answer = answer(&spec);
    answer.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n");
    answer.abort();
    // Nothing after the end counts.
    answer.push(b"data: {\"choices\":[{\"delta\":{\"content\":\" more\"}}]}\n\n");
    answer.eof();
    let events: Vec<_> = std::iter::from_fn(|| answer.next_event()).collect();
    let Some(ModelEvent::Done { message, failure: None }) = events.last() else { panic!("{events:?}") };
    assert_eq!((message.text().as_str(), message.stop_reason), ("half", StopReason::Aborted));
}

proptest! {
    #[test]
    fn any_bytes_end_in_exactly_one_message(
        bytes in prop::collection::vec(prop_oneof![
            Just(b"data: ".to_vec()), Just(b"\n\n".to_vec()), Just(b"{\"type\":\"content_block_delta\",\"delta\":{}}".to_vec()),
            Just(b"{\"choices\":[{\"delta\":{\"tool_calls\":[{}]}}]}".to_vec()), Just(b"[DONE]".to_vec()),
            Just(b"{\"type\":\"message_stop\"}".to_vec()),
            Just(b"{\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\"}}".to_vec()),
            Just(b"{\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{\"}".to_vec()),
            Just(b"{\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"reasoning\",\"summary\":[]}}".to_vec()),
            Just(b"{\"type\":\"response.completed\",\"response\":{}}".to_vec()),
            Just(b"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"thoughtSignature\":\"b\"},{\"functionCall\":{}}]}}]}".to_vec()),
            Just(b"{\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{}}".to_vec()),
            Just(event_of("contentBlockStart", "{\"start\":{\"toolUse\":{}}}")),
            Just(event_of("contentBlockDelta", "{\"delta\":{\"text\":\"a\",\"toolUse\":{\"input\":\"{\"},\"reasoningContent\":{\"signature\":\"s\"}}}")),
            Just(event_of("messageStop", "{\"stopReason\":\"end_turn\"}")), Just(event_of("metadata", "{\"usage\":{}}")), prop::collection::vec(any::<u8>(), 0..8)], 0..12),
        api in prop::sample::select([&APIS[..], &[BINARY_API]].concat()))
    {
        let spec = ModelSpec::sample("p", "m", api);
        let whole = bytes.concat();
        let events = receive(&spec, bytes.iter().map(Vec::as_slice));
        prop_assert_eq!(events.iter().filter(|e| matches!(e, ModelEvent::Done { .. })).count(), 1);
        let ended = matches!(events.last(), Some(ModelEvent::Done { .. }));
        prop_assert!(ended);
        prop_assert_eq!(receive(&spec, [whole.as_slice()]), events);
    }
}
