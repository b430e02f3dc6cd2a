//! Tool arguments as models write them: JSON, usually.

use openclaw_protocol::message::ToolCall;
use serde_json::{Map, Value};

/// Name of the field that keeps arguments which are no JSON object.
const INVALID: &str = "invalidArguments";
/// Characters of such arguments that are kept.
const KEPT_CHARS: usize = 2_000;

/// Returns the beginning of arguments that were not a JSON object. Such a call must be answered with an error, not run: its
/// `arguments` are empty.
pub fn invalid_arguments(call: &ToolCall) -> Option<&str> {
    call.extra.get(INVALID)?.as_str()
}

/// Collects the pieces in which arguments arrive.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    text: String,
    /// Byte at which the latest piece begins, as long as each piece has begun with the whole previous one.
    repeating: Option<usize>,
}

impl Pieces {
    /// Returns all pieces, joined.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Adds the next piece.
    pub(crate) fn push(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let repeats = |latest: usize| self.text.get(latest..).is_some_and(|latest| piece.starts_with(latest));
        self.repeating = match self.repeating {
            None if self.text.is_empty() => Some(0),
            latest => latest.filter(|latest| repeats(*latest)).map(|_| self.text.len()),
        };
        self.text.push_str(piece);
    }

    /// Parses the arguments into the call. An empty text is an empty object. Line breaks and tabs
    /// inside strings, commas before a closing bracket, a code fence around it all and whole
    /// repetitions are forgiven; text that ends too early is not, because half a command is another
    /// command.
    pub(crate) fn fill(&self, call: &mut ToolCall) {
        let text = self.text.trim();
        let latest = self.repeating.and_then(|latest| self.text.get(latest..)).map(str::trim);
        let parsed = object(text).or_else(|| latest.and_then(object));
        if parsed.is_none() {
            let kept: String = text.chars().take(KEPT_CHARS).collect();
            call.extra.insert(INVALID.to_owned(), Value::String(kept));
        }
        call.arguments = Value::Object(parsed.unwrap_or_default());
    }
}

/// True for an object that holds something, whole.
pub(crate) fn is_filled_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok_and(|fields| !fields.is_empty())
}

/// The object that arguments are.
fn object(text: &str) -> Option<Map<String, Value>> {
    let text = unfenced(text);
    let value = one_of(text).or_else(|| one_of(&forgive(text)))?;
    match value {
        Value::Object(fields) => Some(fields),
        Value::Null => Some(Map::new()),
        // Some servers send the object as a JSON string.
        Value::String(inner) => match serde_json::from_str(&inner).ok()? {
            Value::Object(fields) => Some(fields),
            Value::Null => Some(Map::new()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the only value in a text, even if it is repeated or follows empty objects that stood for
/// it. `None` if there are several different ones.
fn one_of(text: &str) -> Option<Value> {
    let mut said: Option<Value> = None;
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let value = value.ok()?;
        said = match said {
            Some(known) if known == value || is_empty(&value) => Some(known),
            Some(known) if !is_empty(&known) => return None,
            Some(_) | None => Some(value),
        };
    }
    Some(said.unwrap_or_default())
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// The text in a Markdown code fence.
fn unfenced(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|inner| inner.strip_suffix("```"));
    inner.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, body)| body.trim())
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
        let mut pieces = Pieces::default();
        pieces.push(text);
        filled(&pieces)
    }

    fn filled(pieces: &Pieces) -> (Value, Option<String>) {
        let mut call = ToolCall::default();
        pieces.fill(&mut call);
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
    fn arguments_in_a_fence_or_said_again_are_read_once() {
        let rows: [(&[&str], Value); 9] = [
            (&["```json\n{\"a\":1}\n```"], json!({"a":1})),
            (&["```\n{\"a\":1}", "\n```"], json!({"a":1})),
            (&["{}", "{\"a\":1}"], json!({"a":1})),
            (&["{}", "{\"a\"", ":1}"], json!({"a":1})),
            (&["{\"a\":1}", "{\"a\":1}"], json!({"a":1})),
            (&["{\"a", "\":1}", "{\"a\":1}"], json!({"a":1})),
            (&["{\"a", "{\"a\":", "{\"a\":1", "{\"a\":1}"], json!({"a":1})),
            (&["{\"a\":1}", "{}"], json!({"a":1})),
            // Pieces that read as one text are one, although a piece begins with the one before it.
            (&["{\"", "{\":1}"], json!({"{":1})),
        ];
        for (said, expect) in rows {
            let mut pieces = Pieces::default();
            said.iter().for_each(|piece| pieces.push(piece));
            assert_eq!(filled(&pieces), (expect, None), "{said:?}");
        }
        for said in ["{\"a\":1}{\"b\":2}", "```json\n{\"a\":1}", "{\"a\":1}{\"a\":", "{\"a\":1} and so on"] {
            assert_eq!(parse(said), (json!({}), Some(said.to_owned())), "{said:?}");
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
