//! A JSON5 reader that keeps the place of every value in the text.
//!
//! Three things need more than a parser for values: the error texts that OpenClaw's users know (they name a character, a
//! line and a column), edits that leave comments and order alone, and a bound on nesting. Numbers become integers where
//! JavaScript would print them as such.

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Number, Value};

/// Deeper nesting than any config needs; bounds the recursion.
const MAX_DEPTH: usize = 100;

/// A parsed value with its place in the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Json5Node {
    /// Byte range of the value.
    pub(crate) span: Range<usize>,
    /// The value.
    pub(crate) kind: NodeKind,
}

/// Content of a [`Json5Node`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeKind {
    /// `null`, a boolean, a number or a string.
    Scalar(Value),
    /// `[…]`
    Array(Vec<Json5Node>),
    /// `{…}`
    Object(Vec<Member>),
}

/// `key: value`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    /// The key, unquoted.
    pub(crate) key: String,
    /// Byte range of the key as written.
    pub(crate) key_span: Range<usize>,
    /// The value.
    pub(crate) value: Json5Node,
}

impl Json5Node {
    /// The plain value. The last of several equal keys counts, at the place of the first. A key
    /// `__proto__` is left out: the objects of JavaScript have none, so that OpenClaw drops it
    /// wherever it stands.
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            NodeKind::Scalar(value) => value.clone(),
            NodeKind::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            NodeKind::Object(members) => {
                let mut map = Map::new();
                for member in members.iter().filter(|member| member.key != "__proto__") {
                    map.insert(member.key.clone(), member.value.to_value());
                }
                Value::Object(map)
            }
        }
    }
}

/// Error for a text that is not JSON5. Displays as the reference's parser does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    found: Option<char>,
    too_deep: bool,
    /// 1-based line.
    pub line: usize,
    /// 1-based column, in characters.
    pub column: usize,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, .. } = self;
        match self.found {
            _ if self.too_deep => {
                write!(f, "JSON5: nested deeper than {MAX_DEPTH} levels at {line}:{column}")
            }
            Some(c) => write!(f, "JSON5: invalid character '{}' at {line}:{column}", ShownChar(c)),
            None => write!(f, "JSON5: invalid end of input at {line}:{column}"),
        }
    }
}

impl std::error::Error for SyntaxError {}

struct ShownChar(char);

impl fmt::Display for ShownChar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            '\'' => f.write_str("\\'"),
            '"' => f.write_str("\\\""),
            '\\' => f.write_str("\\\\"),
            '\n' => f.write_str("\\n"),
            '\r' => f.write_str("\\r"),
            '\t' => f.write_str("\\t"),
            '\u{8}' => f.write_str("\\b"),
            '\u{c}' => f.write_str("\\f"),
            '\u{b}' => f.write_str("\\v"),
            '\0' => f.write_str("\\0"),
            c if c < ' ' => write!(f, "\\x{:02x}", u32::from(c)),
            c => write!(f, "{c}"),
        }
    }
}

/// Parses a whole text.
pub(crate) fn parse(text: &str) -> Result<Json5Node, SyntaxError> {
    let mut reader = Json5Reader { text, at: 0, depth: 0 };
    reader.skip_space()?;
    let node = reader.value()?;
    reader.skip_space()?;
    if reader.peek().is_some() { Err(reader.unexpected()) } else { Ok(node) }
}

/// Parses a text to a plain value.
///
/// # Errors
/// [`SyntaxError`] with the place.
pub fn parse_value(text: &str) -> Result<Value, SyntaxError> {
    parse(text).map(|node| node.to_value())
}

struct Json5Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Json5Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, expected: char) -> bool {
        let hit = self.peek() == Some(expected);
        if hit {
            self.at += expected.len_utf8();
        }
        hit
    }

    /// An error at the next character.
    fn unexpected(&self) -> SyntaxError {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        SyntaxError {
            found: self.peek(),
            too_deep: false,
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    }

    fn skip_space(&mut self) -> Result<(), SyntaxError> {
        while let Some(c) = self.peek() {
            if c.is_whitespace() || c == '\u{feff}' {
                self.next();
            } else if c == '/' {
                self.comment()?;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn comment(&mut self) -> Result<(), SyntaxError> {
        self.next();
        match self.peek() {
            Some('/') => {
                let line_end = self.rest().find(['\n', '\r', '\u{2028}', '\u{2029}']);
                self.at += line_end.unwrap_or(self.rest().len());
                Ok(())
            }
            Some('*') => {
                let body = self.rest().get(1..).unwrap_or_default();
                match body.find("*/") {
                    Some(end) => {
                        self.at += 1 + end + 2;
                        Ok(())
                    }
                    None => {
                        self.at = self.text.len();
                        Err(self.unexpected())
                    }
                }
            }
            Some(_) | None => Err(self.unexpected()),
        }
    }

    fn value(&mut self) -> Result<Json5Node, SyntaxError> {
        let start = self.at;
        let kind = match self.peek() {
            Some('{') => self.nested(Self::object)?,
            Some('[') => self.nested(Self::array)?,
            Some('"' | '\'') => NodeKind::Scalar(Value::String(self.string()?)),
            Some('n') => self.literal("null", Value::Null)?,
            Some('t') => self.literal("true", Value::Bool(true))?,
            Some('f') => self.literal("false", Value::Bool(false))?,
            Some(c) if c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'I' | 'N') => self.number()?,
            Some(_) | None => return Err(self.unexpected()),
        };
        Ok(Json5Node { span: start..self.at, kind })
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<NodeKind, SyntaxError>,
    ) -> Result<NodeKind, SyntaxError> {
        if self.depth >= MAX_DEPTH {
            return Err(SyntaxError { too_deep: true, ..self.unexpected() });
        }
        self.depth += 1;
        self.next();
        let kind = read(self);
        self.depth -= 1;
        kind
    }

    fn array(&mut self) -> Result<NodeKind, SyntaxError> {
        let mut items = Vec::new();
        loop {
            self.skip_space()?;
            if self.eat(']') {
                return Ok(NodeKind::Array(items));
            }
            items.push(self.value()?);
            self.skip_space()?;
            if !self.eat(',') && self.peek() != Some(']') {
                return Err(self.unexpected());
            }
        }
    }

    fn object(&mut self) -> Result<NodeKind, SyntaxError> {
        let mut members = Vec::new();
        loop {
            self.skip_space()?;
            if self.eat('}') {
                return Ok(NodeKind::Object(members));
            }
            let key_start = self.at;
            let key = match self.peek() {
                Some('"' | '\'') => self.string()?,
                _ => self.identifier()?,
            };
            let key_span = key_start..self.at;
            self.skip_space()?;
            if !self.eat(':') {
                return Err(self.unexpected());
            }
            self.skip_space()?;
            members.push(Member { key, key_span, value: self.value()? });
            self.skip_space()?;
            if !self.eat(',') && self.peek() != Some('}') {
                return Err(self.unexpected());
            }
        }
    }

    fn identifier(&mut self) -> Result<String, SyntaxError> {
        let mut name = String::new();
        loop {
            match self.peek() {
                Some('\\') => {
                    self.next();
                    if !self.eat('u') {
                        return Err(self.unexpected());
                    }
                    name.push(self.unicode_escape()?);
                }
                Some(c) if is_identifier_start(c) || (!name.is_empty() && is_identifier_part(c)) => {
                    name.push(c);
                    self.next();
                }
                _ if name.is_empty() => return Err(self.unexpected()),
                _ => return Ok(name),
            }
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<NodeKind, SyntaxError> {
        for expected in word.chars() {
            if !self.eat(expected) {
                return Err(self.unexpected());
            }
        }
        Ok(NodeKind::Scalar(value))
    }

    fn number(&mut self) -> Result<NodeKind, SyntaxError> {
        let negative = match self.peek() {
            Some('-') => {
                self.next();
                true
            }
            Some('+') => {
                self.next();
                false
            }
            _ => false,
        };
        let sign = if negative { -1.0 } else { 1.0 };
        let magnitude = match self.peek() {
            Some('I') => {
                self.literal("Infinity", Value::Null)?;
                f64::INFINITY
            }
            Some('N') => {
                self.literal("NaN", Value::Null)?;
                f64::NAN
            }
            Some('0') if matches!(self.rest().get(1..2), Some("x" | "X")) => self.hexadecimal()?,
            _ => self.decimal()?,
        };
        Ok(NodeKind::Scalar(number_value(sign * magnitude)))
    }

    fn hexadecimal(&mut self) -> Result<f64, SyntaxError> {
        self.at += 2;
        let mut value = 0.0;
        let start = self.at;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) {
            value = value * 16.0 + f64::from(digit);
            self.next();
        }
        if self.at == start { Err(self.unexpected()) } else { Ok(value) }
    }

    fn decimal(&mut self) -> Result<f64, SyntaxError> {
        let start = self.at;
        if self.eat('0') {
            if self.peek().is_some_and(|c| c.is_ascii_digit()) {
                return Err(self.unexpected());
            }
        } else {
            self.digits();
        }
        let has_whole = self.at > start;
        if self.eat('.') {
            let fraction = self.digits();
            if !has_whole && fraction == 0 {
                return Err(self.unexpected());
            }
        } else if !has_whole {
            return Err(self.unexpected());
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.next();
            if matches!(self.peek(), Some('+' | '-')) {
                self.next();
            }
            if self.digits() == 0 {
                return Err(self.unexpected());
            }
        }
        // Rust reads what JSON5 writes, except for a lone leading or trailing dot, which it also reads.
        self.text.get(start..self.at).and_then(|text| text.parse().ok()).ok_or_else(|| self.unexpected())
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.next();
        }
        self.at - start
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let quote = self.next();
        let mut out = String::new();
        loop {
            match self.peek() {
                None | Some('\n' | '\r') => return Err(self.unexpected()),
                c if c == quote => {
                    self.next();
                    return Ok(out);
                }
                Some('\\') => {
                    self.next();
                    if let Some(c) = self.escape()? {
                        out.push(c);
                    }
                }
                Some(c) => {
                    out.push(c);
                    self.next();
                }
            }
        }
    }

    /// Reads the part of an escape after the backslash; `None` is a continued line.
    fn escape(&mut self) -> Result<Option<char>, SyntaxError> {
        let plain = match self.peek() {
            None | Some('1'..='9') => return Err(self.unexpected()),
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('0') => {
                self.next();
                return if self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    Err(self.unexpected())
                } else {
                    Ok(Some('\0'))
                };
            }
            Some('x') => {
                self.next();
                let code = self.hex_digits(2)?;
                return Ok(char::from_u32(code));
            }
            Some('u') => {
                self.next();
                return self.unicode_escape().map(Some);
            }
            Some('\n' | '\u{2028}' | '\u{2029}') => {
                self.next();
                return Ok(None);
            }
            Some('\r') => {
                self.next();
                self.eat('\n');
                return Ok(None);
            }
            Some(c) => c,
        };
        self.next();
        Ok(Some(plain))
    }

    /// The digits after `\u`, with the second half of a pair where one follows. A lone half becomes U+FFFD.
    fn unicode_escape(&mut self) -> Result<char, SyntaxError> {
        let first = self.hex_digits(4)?;
        if !(0xD800..0xDC00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let mark = self.at;
        if self.eat('\\') && self.eat('u') {
            let second = self.hex_digits(4)?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        self.at = mark;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex_digits(&mut self, count: usize) -> Result<u32, SyntaxError> {
        let mut value = 0;
        for _ in 0..count {
            match self.peek().and_then(|c| c.to_digit(16)) {
                Some(digit) => value = value * 16 + digit,
                None => return Err(self.unexpected()),
            }
            self.next();
        }
        Ok(value)
    }
}

fn is_identifier_start(c: char) -> bool {
    c == '$' || c == '_' || c.is_alphabetic()
}

fn is_identifier_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{200c}' | '\u{200d}')
}

/// Largest integer that JavaScript holds exactly.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// Integral values become integers; what JSON can't hold becomes null, as in `JSON.stringify`.
#[expect(clippy::cast_possible_truncation, reason = "checked to be integral and in range")]
fn number_value(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= MAX_SAFE {
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn json5_texts_are_read_as_javascript_does() {
        let rows = [
            ("{ /* c */ a: 1, 'b': [1,], // x\n \"c\": null, }", json!({"a": 1, "b": [1], "c": null})),
            ("[+1, -2.5, .5, 5., 0x1F, 1e3, 1.0]", json!([1, -2.5, 0.5, 5, 31, 1000, 1])),
            ("[Infinity, -Infinity, NaN, -0]", json!([null, null, null, 0])),
            (
                r"'a\'b\x41\u00e4\ud83d\ude00\ud800\
c\q'",
                json!("a'bAä😀\u{fffd}cq"),
            ),
            ("{$a_1: {ünï: true}}", json!({"$a_1": {"ünï": true}})),
            ("{a:1,b:2,a:3}", json!({"a": 3, "b": 2})),
            ("\u{feff}\u{a0}{}", json!({})),
        ];
        for (text, expect) in rows {
            assert_eq!(parse_value(text), Ok(expect), "{text}");
        }
    }

    #[test]
    fn errors_name_character_line_and_column() {
        let rows = [
            ("", "JSON5: invalid end of input at 1:1"),
            ("{ a: }", "JSON5: invalid character '}' at 1:6"),
            ("{ gateway: {", "JSON5: invalid end of input at 1:13"),
            ("{\n  ä: 01 }", "JSON5: invalid character '1' at 2:7"),
            ("{} x", "JSON5: invalid character 'x' at 1:4"),
            ("'a\nb'", "JSON5: invalid character '\\n' at 1:3"),
            ("/* open", "JSON5: invalid end of input at 1:8"),
            ("{a 1}", "JSON5: invalid character '1' at 1:4"),
        ];
        for (text, expect) in rows {
            assert_eq!(parse_value(text).map_err(|e| e.to_string()), Err(expect.to_owned()), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_stack_overflow() {
        let text = "[".repeat(1_000_000);
        assert_eq!(
            parse_value(&text).map_err(|e| e.to_string()),
            Err("JSON5: nested deeper than 100 levels at 1:101".to_owned())
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn almost_json5_never_panics(text in "[\\[\\]{}:,'\"\\\\/*\n aux0-9.+eINT-]{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn spans_hold_the_text_of_their_value(number in any::<i32>(), word in "[a-z]{1,8}") {
            let text = format!("{{ {word}: [{number}], }}");
            let root = parse(&text).unwrap();
            let NodeKind::Object(members) = &root.kind else { panic!("object") };
            prop_assert_eq!(&text[members[0].key_span.clone()], &word);
            prop_assert_eq!(&text[members[0].value.span.clone()], &format!("[{number}]"));
        }
    }
}
