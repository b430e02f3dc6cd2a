//! Arguments of `/config` and `/debug`: `show [path]`, `set path=value`, `unset path`, `reset`
//! (spec `messages.md` §5). Pure.

use openclaw_config::redact;
use openclaw_config::value_path::parse_path;
use serde_json::Value;

/// Request of such a command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConfigRequest {
    /// Show the whole configuration, or the value at a path.
    Show(Option<ConfigPath>),
    Set(ConfigPath, Value),
    Unset(ConfigPath),
    Reset,
}

/// A path as it was written, and its segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigPath {
    pub(crate) text: String,
    pub(crate) segments: Vec<String>,
}

/// Reads the arguments of `/<command>`; the error is the text to answer with.
pub(crate) fn read(command: &str, arguments: &str) -> Result<ConfigRequest, String> {
    let (action, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
    let rest = rest.trim();
    match action.to_lowercase().as_str() {
        "" => Ok(ConfigRequest::Show(None)),
        "show" | "get" if rest.is_empty() => Ok(ConfigRequest::Show(None)),
        "show" | "get" => place(rest).map(|place| ConfigRequest::Show(Some(place))),
        "unset" if rest.is_empty() => Err(format!("⚠️ Usage: /{command} unset path")),
        "unset" => place(rest).map(ConfigRequest::Unset),
        "set" => {
            let usage = || format!("⚠️ Usage: /{command} set path=value");
            let (path, written) = rest.split_once('=').ok_or_else(usage)?;
            if path.trim().is_empty() || written.trim().is_empty() {
                return Err(usage());
            }
            let (path, written) = (path.trim(), written.trim());
            let is_wrong = |error| format!("⚠️ {error}\n{}", how_to_quote(command, path, written));
            Ok(ConfigRequest::Set(place(path)?, value(written).map_err(is_wrong)?))
        }
        "reset" if command == "debug" => Ok(ConfigRequest::Reset),
        _ if command == "debug" => Err("⚠️ Usage: /debug show|set|unset|reset".to_owned()),
        _ => Err("⚠️ Usage: /config show|get|set|unset".to_owned()),
    }
}

fn place(text: &str) -> Result<ConfigPath, String> {
    let segments = parse_path(text).map_err(|error| format!("⚠️ {error}"))?;
    Ok(ConfigPath { text: text.to_owned(), segments })
}

/// Reads a value as it is written: as JSON if it looks like it, else as the text itself.
fn value(text: &str) -> Result<Value, String> {
    let json = || serde_json::from_str::<Value>(text);
    match text.chars().next() {
        Some('{' | '[') => json().map_err(|error| format!("Invalid JSON: {error}")),
        Some('"') => json().map_err(|error| format!("Invalid JSON string: {error}")),
        Some('\'') => {
            let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
            inner.map(Value::from).ok_or_else(|| "Invalid string: a quote is missing".to_owned())
        }
        _ => match json() {
            Ok(value @ (Value::Null | Value::Bool(_) | Value::Number(_))) => Ok(value),
            Ok(_) | Err(_) => Ok(Value::from(text)),
        },
    }
}

/// Tells what to write instead of a value that looks like JSON, or like a text in quotes, and is
/// neither.
fn how_to_quote(command: &str, path: &str, written: &str) -> String {
    let text = Value::from(written.trim_matches(['"', '\'']));
    let text = parse_path(path).map_or(Value::Null, |segments| redacted(&segments, &text));
    let instead = code(&format!("/{command} set {path}={text}"));
    format!("A value that begins with [, {{ or a quote has to be whole JSON. For text: {instead}")
}

/// Formats `path=value` as code, so that nothing in it is Markdown.
pub(crate) fn code(text: &str) -> String {
    let text = text.replace('\n', " ");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// A value in a block of JSON.
pub(crate) fn block(value: &Value) -> String {
    format!("```json\n{}\n```", serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Returns a value without the secrets in it.
pub(crate) fn redacted(path: &[String], value: &Value) -> Value {
    let mut value = value.clone();
    redact::redact_at(path, &mut value);
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_as_they_look() {
        let rows = [
            (r#"{"a": [1]}"#, json!({"a": [1]})),
            ("[1, 2]", json!([1, 2])),
            ("true", json!(true)),
            ("null", json!(null)),
            ("-1.5", json!(-1.5)),
            ("\"true\"", json!("true")),
            ("'a b'", json!("a b")),
            ("a=b c", json!("a=b c")),
            ("1.2.3", json!("1.2.3")),
        ];
        for (text, expect) in rows {
            assert_eq!(value(text), Ok(expect), "{text}");
        }
        for text in ["{a", "\"a", "'a"] {
            assert!(value(text).is_err(), "{text}");
        }
    }

    #[test]
    fn wishes_are_read_with_their_path() {
        let place = |text: &str| ConfigPath { text: text.to_owned(), segments: parse_path(text).unwrap() };
        let rows = [
            ("", Ok(ConfigRequest::Show(None))),
            ("show", Ok(ConfigRequest::Show(None))),
            ("GET a.b[0]", Ok(ConfigRequest::Show(Some(place("a.b[0]"))))),
            ("set a.b = 1", Ok(ConfigRequest::Set(place("a.b"), json!(1)))),
            ("unset a.b", Ok(ConfigRequest::Unset(place("a.b")))),
            ("set a.b", Err("⚠️ Usage: /config set path=value")),
            ("set =1", Err("⚠️ Usage: /config set path=value")),
            ("unset", Err("⚠️ Usage: /config unset path")),
            ("set a=[\"b\", 1]", Ok(ConfigRequest::Set(place("a"), json!(["b", 1])))),
            (
                "set a.b=[x]",
                Err(
                    "⚠️ Invalid JSON: expected value at line 1 column 2\nA value that begins with [, { or a quote has to be \
                     whole JSON. For text: `/config set a.b=\"[x]\"`",
                ),
            ),
            (
                "set gateway.auth.token='abc",
                Err(
                    "⚠️ Invalid string: a quote is missing\nA value that begins with [, { or a quote has to be whole JSON. \
                     For text: `/config set gateway.auth.token=\"__OPENCLAW_REDACTED__\"`",
                ),
            ),
            (
                "set a='b",
                Err(
                    "⚠️ Invalid string: a quote is missing\nA value that begins with [, { or a quote has to be whole JSON. \
                     For text: `/config set a=\"b\"`",
                ),
            ),
            ("set a..b=1", Err("⚠️ Invalid path. Use dot notation (e.g. foo.bar).")),
            ("reset", Err("⚠️ Usage: /config show|get|set|unset")),
        ];
        for (text, expect) in rows {
            assert_eq!(read("config", text), expect.map_err(str::to_owned), "{text:?}");
        }
        assert_eq!(read("debug", "reset"), Ok(ConfigRequest::Reset));
        assert_eq!([code("a=__b__"), code("a=`\nb")], ["`a=__b__`", "`` a=` b ``"]);
    }
}
