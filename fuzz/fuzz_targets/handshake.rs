//! Whatever the first frame and the headers of a socket are: nobody is let in without the token, and nothing panics.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use openclaw_gateway::fuzzing::{Stranger, handshake};

const TOKEN: &str = "the-token-of-this-gateway";

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    is_remote: bool,
    host: Option<&'a str>,
    origin: Option<&'a str>,
    forwarded_for: Option<&'a str>,
    /// Whether the frame is what follows, or a `connect` with what follows as its params.
    is_whole: bool,
    frame: &'a str,
}

fuzz_target!(|input: Input<'_>| {
    let Input { is_remote, host, origin, forwarded_for, is_whole, frame } = input;
    let connect = format!(r#"{{"type":"req","id":"1","method":"connect","params":{frame}}}"#);
    let frame = if is_whole { frame } else { &connect };
    if handshake(TOKEN, &Stranger { is_remote, host, origin, forwarded_for, frame }) {
        let read: serde_json::Value = serde_json::from_str(frame).expect("who is let in has sent JSON");
        assert_eq!(read["params"]["auth"]["token"], TOKEN);
    }
});
