//! Whatever events Bedrock's stream holds, rightly framed, the answer ends in exactly one message, and in the same one
//! wherever the bytes are cut. (Wrongly framed bytes are the `answer` target's.)
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use openclaw_models::catalog::{Catalog, ModelSpec};
use openclaw_models::replay::replay;
use openclaw_models::{ModelEvent, ModelRef, ModelSettings};

static MODEL: LazyLock<ModelSpec> = LazyLock::new(|| {
    let model = ModelRef::new("amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0");
    Catalog::new(&ModelSettings::default()).lookup(&model).expect("an open provider")
});

/// Header blocks of the events there are, and one that comes as it likes.
const EVENTS: [(&str, &str); 8] = [
    (":event-type", "messageStart"),
    (":event-type", "contentBlockStart"),
    (":event-type", "contentBlockDelta"),
    (":event-type", "contentBlockStop"),
    (":event-type", "messageStop"),
    (":event-type", "metadata"),
    (":message-type", "exception"),
    (":message-type", "error"),
];

/// Messages with the kind of each, bytes of an answer, and where these are cut.
type Input = (Vec<(u8, Vec<u8>)>, Vec<u8>, usize);

fuzz_target!(|input: Input| {
    let (events, odd_headers, at) = input;
    let mut bytes = Vec::new();
    for (which, payload) in &events {
        bytes.extend(match EVENTS.get(usize::from(which % 9)) {
            Some((name, value)) => message(&header(name, value), payload),
            None => message(&odd_headers, payload),
        });
    }
    let (head, tail) = bytes.split_at(at.min(bytes.len()));
    let whole = replay(&MODEL, 0, [bytes.as_slice()]).expect("a protocol with a client");
    let ends = whole.iter().filter(|event| matches!(event, ModelEvent::Done { .. })).count();
    assert_eq!(ends, 1);
    assert_eq!(replay(&MODEL, 0, [head, tail]), Some(whole));
});

fn header(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![name.len() as u8];
    out.extend(name.as_bytes());
    out.push(7);
    out.extend((value.len() as u16).to_be_bytes());
    out.extend(value.as_bytes());
    out
}

fn message(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = (headers.len() + payload.len() + 16) as u32;
    let mut out = [total, headers.len() as u32].map(u32::to_be_bytes).concat();
    out.extend(crc32(&out).to_be_bytes());
    out.extend(headers);
    out.extend(payload);
    out.extend(crc32(&out).to_be_bytes());
    out
}

/// The sum of the gzip format, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(
            sum ^ u32::from(*byte),
            |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 },
        )
    })
}
