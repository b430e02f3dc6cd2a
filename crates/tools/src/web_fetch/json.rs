//! Indents JSON, a line for each value. It is written as it is read, and no more of it than is given: values in memory and
//! indentation are many times the size of a document that is made of small values.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::stop::StopSignal;

/// Greatest depth of nested arrays and objects. Deeper ones are easier to read as they came.
const DEEPEST: usize = 128;
/// Bytes that are read between two looks at the stop.
const STEP: usize = 16 * 1024;

/// JSON text with line breaks, or its beginning.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Indented {
    pub(super) text: String,
    /// True if it ended at a bound.
    pub(super) is_cut: bool,
}

/// Indents JSON. Ends with the first value after `most` bytes. `None` if it is no JSON or nested too deeply.
pub(super) fn indented(json: &str, most: usize, stop: &StopSignal) -> Option<Indented> {
    serde_json::from_str::<IgnoredAny>(json).ok()?;
    let mut rest = json;
    let mut writer = JsonWriter::default();
    let mut next_look = json.len();
    while let Some(first) = rest.bytes().next() {
        if rest.len() <= next_look {
            if stop.is_over() {
                break;
            }
            next_look = rest.len().saturating_sub(STEP);
        }
        if writer.text.len() > most {
            break;
        }
        let (token, after) = rest.split_at_checked(token_length(rest))?;
        rest = after;
        match first {
            b'{' | b'[' => writer.open(first),
            b'}' | b']' => writer.close(first),
            b',' => writer.comma(),
            b':' => writer.text.push_str(": "),
            b'"' => writer.value(&unescaped(token)),
            first if first.is_ascii_whitespace() => {}
            _ => writer.value(token),
        }
        if writer.depth > DEEPEST {
            return None;
        }
    }
    Some(Indented { text: writer.text, is_cut: !rest.is_empty() })
}

/// Length of the first token of valid JSON, or of the white space before it.
fn token_length(json: &str) -> usize {
    let bytes = json.as_bytes();
    let until = |ends: fn(&u8) -> bool| bytes.iter().position(ends).unwrap_or(bytes.len());
    match bytes.first() {
        Some(b'"') => {
            let mut at = 1;
            while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
                at += found;
                if bytes.get(at) == Some(&b'"') {
                    return at + 1;
                }
                at += 2;
            }
            bytes.len()
        }
        Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => 1,
        Some(first) if first.is_ascii_whitespace() => until(|byte| !byte.is_ascii_whitespace()),
        _ => until(|byte| matches!(byte, b'}' | b']' | b',') || byte.is_ascii_whitespace()),
    }
}

/// Token of a string with its characters instead of their escapes. Lone surrogates stay escaped.
fn unescaped(string: &str) -> Cow<'_, str> {
    if !string.contains('\\') {
        return Cow::Borrowed(string);
    }
    let read = serde_json::from_str::<String>(string);
    read.and_then(|read| serde_json::to_string(&read)).map_or(Cow::Borrowed(string), Cow::Owned)
}

#[derive(Debug, Default)]
struct JsonWriter {
    text: String,
    depth: usize,
    /// True if the innermost array or object has nothing in it yet.
    is_empty: bool,
}

impl JsonWriter {
    fn open(&mut self, bracket: u8) {
        self.begin();
        self.text.push(char::from(bracket));
        self.depth += 1;
        self.is_empty = true;
    }

    fn close(&mut self, bracket: u8) {
        self.depth = self.depth.saturating_sub(1);
        if !self.is_empty {
            self.line();
        }
        self.is_empty = false;
        self.text.push(char::from(bracket));
    }

    fn comma(&mut self) {
        self.text.push(',');
        self.line();
    }

    fn value(&mut self, value: &str) {
        self.begin();
        self.text.push_str(value);
    }

    /// Begins a line before the first value of an array or object. Commas do before the others.
    fn begin(&mut self) {
        if self.is_empty {
            self.line();
        }
        self.is_empty = false;
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }
}

#[cfg(test)]
mod tests;
