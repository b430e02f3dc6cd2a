use proptest::prelude::*;

use super::*;
use crate::stream::FailureKind;

/// A header of any kind: its name, the kind's number, the value as it stands there.
pub(crate) fn raw_message(headers: &[(&str, u8, &[u8])], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, kind, value) in headers {
        head.push(u8::try_from(name.len()).unwrap());
        head.extend_from_slice(name.as_bytes());
        head.push(*kind);
        head.extend_from_slice(value);
    }
    let total = u32::try_from(PRELUDE + head.len() + payload.len() + SUM).unwrap();
    let mut out = total.to_be_bytes().to_vec();
    out.extend(u32::try_from(head.len()).unwrap().to_be_bytes());
    out.extend(crc32fast::hash(&out).to_be_bytes());
    out.extend(head);
    out.extend_from_slice(payload);
    out.extend(crc32fast::hash(&out).to_be_bytes());
    out
}

/// A message with text headers.
pub(crate) fn message_of(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let sized: Vec<(&str, Vec<u8>)> = headers
        .iter()
        .map(|(name, value)| {
            let length = u16::try_from(value.len()).unwrap().to_be_bytes();
            (*name, [&length[..], value.as_bytes()].concat())
        })
        .collect();
    let headers: Vec<(&str, u8, &[u8])> = sized.iter().map(|(n, v)| (*n, 7, v.as_slice())).collect();
    raw_message(&headers, payload.as_bytes())
}

/// An event as Bedrock sends it.
pub(crate) fn event_of(name: &str, payload: &str) -> Vec<u8> {
    let headers = [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    message_of(&headers, payload)
}

type Parsed = (Vec<SseEvent>, Result<(), ModelFailure>);

fn parse<'c>(chunks: impl IntoIterator<Item = &'c [u8]>) -> Parsed {
    let mut stream = EventStream::default();
    let mut out = VecDeque::new();
    for chunk in chunks {
        if let Err(failure) = stream.push(chunk, &mut out) {
            return (out.into(), Err(failure));
        }
    }
    (out.into(), Box::new(stream).finish().map(|_| ()))
}

fn named(name: &str, data: &str) -> SseEvent {
    SseEvent { name: Some(name.to_owned()), data: data.to_owned() }
}

/// Test vectors AWS publishes with its event stream library: no headers and no payload, a payload alone, a header of each
/// kind beside it.
#[test]
fn messages_are_read_as_aws_writes_them() {
    let empty = [0, 0, 0, 0x10, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
    assert_eq!(parse([&empty[..]]), (vec![SseEvent { name: None, data: String::new() }], Ok(())));
    let mut payload = vec![0, 0, 0, 0x1d, 0, 0, 0, 0, 0xfd, 0x52, 0x8c, 0x5a];
    payload.extend(b"{'foo':'bar'}");
    payload.extend([0xc3, 0x65, 0x39, 0x36]);
    assert_eq!(
        parse([payload.as_slice()]),
        (vec![SseEvent { name: None, data: "{'foo':'bar'}".to_owned() }], Ok(()))
    );
    let all: [(&str, u8, &[u8]); 11] = [
        ("true", 0, b""),
        ("false", 1, b""),
        ("byte", 2, &[1]),
        ("short", 3, &[1, 2]),
        ("int", 4, &[1, 2, 3, 4]),
        ("long", 5, &[0; 8]),
        ("bytes", 6, &[0, 2, 0xff, 0xfe]),
        (":event-type", 7, b"\x00\x0cmessageStart"),
        ("time", 8, &[0; 8]),
        ("uuid", 9, &[0; 16]),
        (":message-type", 7, b"\x00\x05event"),
    ];
    assert_eq!(parse([raw_message(&all, b"{}").as_slice()]), (vec![named("messageStart", "{}")], Ok(())));
}

#[test]
fn errors_have_names_of_their_own() {
    let exception = message_of(
        &[(":message-type", "exception"), (":exception-type", "throttlingException")],
        "{\"message\":\"m\"}",
    );
    let error = message_of(
        &[(":message-type", "error"), (":error-code", "InternalError"), (":error-message", "a \"b\"")],
        "",
    );
    assert_eq!(
        parse([[exception, error].concat().as_slice()]),
        (
            vec![
                named("exception throttlingException", "{\"message\":\"m\"}"),
                named("exception InternalError", "{\"message\":\"a \\\"b\\\"\"}")
            ],
            Ok(())
        )
    );
}

#[test]
fn what_is_no_event_stream_is_named() {
    let good = event_of("messageStart", "{}");
    let with = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[at] ^= byte;
        bad
    };
    let prelude = |total: u32, headers: u32| {
        let mut out = [total.to_be_bytes(), headers.to_be_bytes()].concat();
        out.extend(crc32fast::hash(&out).to_be_bytes());
        out
    };
    let rows = [
        (b"data: {\"a\":1}\n\n".to_vec(), "no event stream"),
        (with(3, 1), "no event stream"),
        (with(20, 1), "checksum is wrong"),
        (with(good.len() - 1, 1), "checksum is wrong"),
        (prelude(u32::MAX, 0), "more than 16777216 bytes"),
        (prelude(15, 0), "shorter than its parts"),
        (prelude(100, u32::MAX), "shorter than its parts"),
        (raw_message(&[("x", 10, b"")], b""), "headers are none"),
        (raw_message(&[("x", 7, &[0, 9, b'x'])], b""), "headers are none"),
        (raw_message(&[("x", 4, &[0])], b""), "headers are none"),
        (raw_message(&[(":event-type", 7, &[0, 1, 0xff])], b""), "headers are none"),
    ];
    for (bytes, words) in rows {
        let (events, result) = parse([[good.clone(), bytes].concat().as_slice()]);
        let failure = result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Transient);
        assert!(failure.message.contains(words), "{words}: {}", failure.message);
        assert_eq!(events, [named("messageStart", "{}")], "what came before is heard");
    }
}

#[test]
fn bytes_that_are_no_utf8_are_replaced() {
    let bytes = raw_message(&[(":event-type", 7, b"\0\x0cmessageStart")], b"a\xff");
    assert_eq!(parse([bytes.as_slice()]), (vec![named("messageStart", "a\u{fffd}")], Ok(())));
}

#[test]
fn no_more_than_one_message_is_held() {
    let mut stream = EventStream::default();
    let mut out = VecDeque::new();
    for _ in 0..100 {
        stream.push(&event_of("contentBlockDelta", &"x".repeat(1000)), &mut out).unwrap();
    }
    assert_eq!((out.len(), stream.held.len()), (100, 0));
}

proptest! {
    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut(
        texts in prop::collection::vec("[a-z{}\"ü]{0,20}", 0..4),
        noise in prop::collection::vec(any::<u8>(), 0..20),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut bytes: Vec<u8> = texts.iter().flat_map(|text| event_of("e", text)).collect();
        bytes.extend(noise);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in at {
            chunks.push(&bytes[from..cut]);
            from = cut;
        }
        chunks.push(&bytes[from..]);
        let whole = parse([bytes.as_slice()]);
        prop_assert!(whole.0.len() >= texts.len());
        prop_assert_eq!(&parse(chunks), &whole);
        prop_assert_eq!(&parse(bytes.chunks(1)), &whole);
    }
}
