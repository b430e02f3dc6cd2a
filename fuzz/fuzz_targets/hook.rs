//! Whatever a `HOOK.md` says and whatever a handler prints, it is read or refused within bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_agent::frontmatter::MarkdownDocument;
use openclaw_agent::hooks::answer::{
    EventAnswer, PersistAnswer, SendingAnswer, StartAnswer, ToolCallAnswer, read,
};
use openclaw_agent::hooks::hook_file::HookFile;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(document) = MarkdownDocument::parse(text) {
            assert!(document.body.len() <= text.len());
            let _ = document.frontmatter.manifest();
        }
        if let Ok(hook) = HookFile::parse(text, "directory") {
            assert!(!hook.events.is_empty() && hook.name.chars().count() <= 128);
        }
    }
    let _ = read::<EventAnswer>(bytes).map(EventAnswer::bounded);
    let _ = read::<StartAnswer>(bytes);
    let _ = read::<ToolCallAnswer>(bytes);
    let _ = read::<SendingAnswer>(bytes);
    let _ = read::<PersistAnswer>(bytes);
});
