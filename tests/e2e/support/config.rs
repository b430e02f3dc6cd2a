//! Configurations: pieces of them, and the file.

use openclaw_testkit::GatewayUnderTest;
use serde_json::{Value, json};

pub(crate) fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// Config in which each message has a run of its own, also one that comes while the last run is
/// being closed.
pub(crate) fn one_by_one() -> Value {
    json!({"messages": {"queue": {"mode": "followup", "debounceMs": 0}}})
}

pub(crate) fn config(gateway: &GatewayUnderTest) -> Value {
    serde_json::from_str(&std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap())
        .unwrap()
}
