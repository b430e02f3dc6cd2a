//! The stub against which the golden frames were recorded (spec `gateway-protocol.md` §15).

use std::time::Duration;

use serde_json::json;

use super::captured::Captured;
use super::script::{Reply, ScriptedUsage};

/// Words of the default answer.
pub const HELLO: [&str; 5] = ["Hello", " from", " the", " fake", " model."];

/// Pace at which the stub speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Pause after each delta.
    pub delta: Duration,
    /// Pause after each of the sixty deltas of `SLOW`.
    pub slow: Duration,
}

impl Pace {
    /// Pace as recorded.
    pub const RECORDED: Self = Self { delta: Duration::from_millis(90), slow: Duration::from_millis(200) };
    /// Pace without pauses; only `SLOW` keeps them.
    pub const FAST: Self = Self { delta: Duration::ZERO, slow: Duration::from_millis(200) };
}

/// The stub's answer, by keywords in the last message of the user.
pub fn reply(request: &Captured, pace: Pace) -> Reply {
    let text = request.last_user_text();
    if text.contains("FAIL400") {
        Reply::openai_error(400, "invalid_request_error", "fake model rejected the request")
    } else if text.contains("SLOW") {
        let ticks: Vec<String> =
            (0..60).map(|n| if n == 0 { "tick0".to_owned() } else { format!(" tick{n}") }).collect();
        Reply::paced(ticks.iter().map(String::as_str), pace.slow)
    } else if text.contains("SILENT") {
        Reply::text("NO_REPLY")
    } else if text.contains("TOOL") && !request.ends_with_tool_result() {
        Reply::tool("call_fake_1", "read", &json!({"path": "NOTE.txt"}))
    } else if text.contains("BIGUSAGE") {
        hello(pace).usage(ScriptedUsage { input: 31_500, ..ScriptedUsage::default() })
    } else {
        hello(pace)
    }
}

fn hello(pace: Pace) -> Reply {
    if pace.delta.is_zero() { Reply::deltas(HELLO) } else { Reply::paced(HELLO, pace.delta) }
}
