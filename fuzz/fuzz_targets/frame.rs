//! An inbound frame is read or refused, never a panic; a method's params likewise.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_protocol::frame::{Inbound, parse_inbound};
use openclaw_protocol::method;

fuzz_target!(|text: &str| {
    if let Inbound::Request(request) = parse_inbound(text)
        && let Some(method) = method::find(&request.method)
        && let Ok(params) = request.params()
    {
        let _ = method.check(&params);
    }
});
