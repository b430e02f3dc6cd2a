//! Whatever Telegram pushes, it is read or left, and what is read can be stored and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_channel_telegram::events_of;
use openclaw_channels::Inbound;

fuzz_target!(|bytes: &[u8]| {
    let Ok(update) = serde_json::from_slice(bytes) else { return };
    for event in events_of(&update, "default", (7000, Some("our_bot")), 1) {
        let text = serde_json::to_string(&event).expect("what was read can be stored");
        let again: Inbound = serde_json::from_str(&text).expect("what was stored can be read");
        assert_eq!(again.native_id, event.native_id);
    }
});
