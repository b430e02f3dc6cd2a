//! Whatever stands in a memory file or a transcript and whatever is asked for: chunks are parts of the text in order and
//! within their limit, and without overlap nothing of it is lost; SQLite understands each query that is made of words; each
//! line of a rendered transcript is somebody's and has its place in the file. Nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_memory::chunk::{Chunking, chunks};
use openclaw_memory::fuzzing;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (tokens, overlap, bytes) = input;
    fuzzing::postings(bytes);
    let text = String::from_utf8_lossy(bytes);
    let (said, lines) = fuzzing::transcript(&text);
    assert_eq!(if said.is_empty() { 0 } else { said.split('\n').count() }, lines.len());
    assert!(
        said.is_empty()
            || said.split('\n').all(|line| line.starts_with("User: ") || line.starts_with("Assistant: "))
    );
    assert!(lines.is_sorted_by(|one, next| one < next));
    assert!(fuzzing::terms(&text) <= 256);
    assert!(fuzzing::keyword_query(&text), "{text:?}");
    let chunking = Chunking { tokens: usize::from(tokens), overlap: usize::from(overlap) };
    let limit = usize::from(tokens).saturating_mul(4).max(32);
    let mut from = 0;
    let made = chunks(&text, chunking);
    if overlap == 0 {
        let made: String = made.iter().flat_map(|chunk| chunk.text.split('\n')).collect();
        assert_eq!(made, text.split('\n').collect::<String>());
    }
    for chunk in made {
        assert!(chunk.text.encode_utf16().count() <= limit);
        let found = text[from..].find(&chunk.text).map(|at| from + at);
        assert!(found.is_some(), "{chunk:?} is not part of the text");
        from = found.unwrap_or(from);
        assert!(chunk.start_line <= chunk.end_line);
    }
});
