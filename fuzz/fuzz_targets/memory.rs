//! Whatever stands in a memory file or a transcript and whatever is asked for, chunks are parts of the text in order and
//! within their limit, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_memory::chunk::{Chunking, chunks};
use openclaw_memory::fuzzing;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (tokens, overlap, bytes) = input;
    fuzzing::postings(bytes);
    let text = String::from_utf8_lossy(bytes);
    let _ = fuzzing::transcript(&text);
    assert!(fuzzing::terms(&text) <= 256);
    let chunking = Chunking { tokens: usize::from(tokens), overlap: usize::from(overlap) };
    let limit = usize::from(tokens).saturating_mul(4).max(32);
    let mut from = 0;
    for chunk in chunks(&text, chunking) {
        assert!(chunk.text.encode_utf16().count() <= limit);
        let found = text[from..].find(&chunk.text).map(|at| from + at);
        assert!(found.is_some(), "{chunk:?} is not part of the text");
        from = found.unwrap_or(from);
        assert!(chunk.start_line <= chunk.end_line);
    }
});
