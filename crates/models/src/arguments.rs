//! Tool arguments as models write them: JSON, usually.

use openclaw_protocol::message::ToolCall;
use serde_json::{Map, Value};

/// Name of the field that keeps arguments which are no JSON object.
const INVALID: &str = "invalidArguments";
/// Characters of such arguments that are kept.
const KEPT_CHARS: usize = 2_000;

/// Arguments that were no JSON object, as far as kept. Such a call must be answered with an error, not run: its
/// `arguments` are empty.
pub fn invalid_arguments(call: &ToolCall) -> Option<&str> {
    call.extra.get(INVALID)?.as_str()
}

/// Parses collected arguments into the call. Nothing at all is an empty object. Line breaks and tabs inside strings and
/// commas before a closing bracket are forgiven; text that ends too early is not, because half a command is another command.
pub(crate) fn fill(call: &mut ToolCall, text: &str) {
    let text = text.trim();
    if text.is_empty() {
        call.arguments = Value::Object(Map::new());
        return;
    }
    let parsed = serde_json::from_str::<Value>(text)
        .ok()
        .or_else(|| serde_json::from_str::<Value>(&forgive(text)).ok())
        // Some servers send the object as a JSON string.
        .and_then(|value| match value {
            Value::String(inner) => serde_json::from_str(&inner).ok(),
            other => Some(other),
        });
    match parsed {
        Some(Value::Object(fields)) => call.arguments = Value::Object(fields),
        Some(Value::Null) => call.arguments = Value::Object(Map::new()),
        Some(_) | None => {
            call.arguments = Value::Object(Map::new());
            let kept: String = text.chars().take(KEPT_CHARS).collect();
            call.extra.insert(INVALID.to_owned(), Value::String(kept));
        }
    }
}

/// Escapes bare control characters inside strings and drops trailing commas.
fn forgive(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                other => out.push(other),
            }
            continue;
        }
        in_string = c == '"';
        if c == ',' {
            let mut rest = chars.clone().skip_while(|c| c.is_whitespace());
            if matches!(rest.next(), Some('}' | ']')) {
                continue;
            }
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> (Value, Option<String>) {
        let mut call = ToolCall::default();
        fill(&mut call, text);
        let invalid = invalid_arguments(&call).map(str::to_owned);
        (call.arguments, invalid)
    }

    #[test]
    fn complete_arguments_are_read_leniently() {
        let rows = [
            (r#"{"a":1}"#, json!({"a":1})),
            ("", json!({})),
            ("  \n", json!({})),
            ("null", json!({})),
            ("{\"a\":\"x\ny\tz\"}", json!({"a":"x\ny\tz"})),
            (r#"{"a":[1,2,],}"#, json!({"a":[1,2]})),
            (r#"{"a":",}"}"#, json!({"a":",}"})),
            (r#""{\"a\":1}""#, json!({"a":1})),
            (r#"{"a":"q\"}"}"#, json!({"a":"q\"}"})),
        ];
        for (text, expect) in rows {
            assert_eq!(parse(text), (expect, None), "{text:?}");
        }
    }

    #[test]
    fn arguments_that_end_too_early_are_kept_aside_and_never_completed() {
        for text in [r#"{"command":"rm -rf /tmp/x"#, r#"{"a":1"#, "[1,2]", "7", "\"x\"", "{a:1}"] {
            assert_eq!(parse(text), (json!({}), Some(text.to_owned())), "{text:?}");
        }
        let long = format!("{{\"a\":\"{}", "ü".repeat(5000));
        assert_eq!(parse(&long).1.unwrap().chars().count(), KEPT_CHARS);
    }

    proptest! {
        #[test]
        fn a_cut_object_never_passes_as_whole(text in "[a-z\"\\\\,{}\\[\\] \n]{0,30}", cut in 0usize..60) {
            let whole = json!({"command": text, "n": [1, {"x": text}]}).to_string();
            let cut = cut.min(whole.len() - 1);
            if cut > 0 && whole.is_char_boundary(cut) {
                prop_assert!(parse(&whole[..cut]).1.is_some());
            }
            prop_assert_eq!(parse(&whole).1, None);
        }
    }
}
