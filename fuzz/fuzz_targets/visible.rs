//! Whatever a model writes, wherever it is cut: what is shown of a part is how the whole begins, and what is read of it twice is read once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_agent::text::directive::parse;
use openclaw_agent::text::heartbeat::{Answering, strip as strip_heartbeat};
use openclaw_agent::text::silent::{is_silent, may_become_token};
use openclaw_agent::text::tags::{TagRules, strip};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[cut, flags], text)) = bytes.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let cut = text.floor_char_boundary(usize::from(cut) * text.len() / 255);
    let rules = |complete| TagRules { final_only: flags & 1 == 1, complete };
    let part = strip(&text[..cut], rules(false));
    let whole = strip(text, rules(false));
    assert!(whole.visible.starts_with(&part.visible));
    let ended = strip(text, rules(true));
    assert!(ended.visible.len() + ended.thinking.len() <= text.len());
    let said = parse(&ended.visible);
    assert!(said.text.len() <= ended.visible.len());
    if is_silent(text) {
        assert!(may_become_token(&text[..cut]));
    }
    for answering in [Answering::Message, Answering::Heartbeat { ack_max_chars: usize::from(flags) }] {
        let beat = strip_heartbeat(text, answering);
        assert!(beat.shown.is_none_or(|shown| shown == beat.rest));
    }
});
