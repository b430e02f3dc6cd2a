//! A stored message that can be read is written as a message that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_protocol::message::Message;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = serde_json::from_slice::<Message>(bytes) {
        let text = serde_json::to_string(&message).expect("a message is JSON");
        assert_eq!(serde_json::from_str::<Message>(&text).expect("our own JSON"), message);
    }
});
