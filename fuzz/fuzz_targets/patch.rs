//! Whatever a model calls a patch is read or refused; whatever is read is applied or refused, and what was text stays text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_tools::apply_patch::apply::update;
use openclaw_tools::apply_patch::parse::{Hunk, parse};

fuzz_target!(|input: (&[u8], &str)| {
    let (file, text) = input;
    // Alone, few inputs would have the marks.
    let framed = format!("*** Begin Patch\n*** Update File: a\n{text}\n*** End Patch");
    for patch in [text, framed.as_str()] {
        let Ok(hunks) = parse(patch) else { continue };
        assert!(!hunks.is_empty());
        for hunk in &hunks {
            let Hunk::Update { path, chunks, .. } = hunk else { continue };
            let Ok(after) = update(file, chunks, path) else { continue };
            assert!(std::str::from_utf8(&after).is_ok());
            let bare = after.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&after);
            assert!(bare.is_empty() || bare.ends_with(b"\n"));
        }
    }
});
