//! A stream cut anywhere gives the same events as the whole.
#![no_main]

use std::collections::VecDeque;

use libfuzzer_sys::fuzz_target;
use openclaw_models::sse::{SseEvent, SseParser};

const CAP: usize = 1 << 16;

fn events(pieces: &[&[u8]]) -> Option<Vec<SseEvent>> {
    let mut parser = SseParser::with_cap(CAP);
    let mut out = VecDeque::new();
    for piece in pieces {
        parser.push(piece, &mut out).ok()?;
    }
    out.extend(parser.finish().ok()?);
    Some(out.into())
}

fuzz_target!(|input: (Vec<u8>, usize)| {
    let (bytes, at) = input;
    let (head, tail) = bytes.split_at(at.min(bytes.len()));
    assert_eq!(events(&[&bytes]), events(&[head, tail]));
});
