//! The block read as YAML 1.2 with its core schema; every value becomes text.
//!
//! The parser tells events; the values are built here, so that neither nesting nor aliases of aliases take more than a
//! bounded amount of memory.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Deeper nesting is not read.
const MAX_DEPTH: usize = 32;
/// Largest number of values that are read, repeated ones counted again.
const MAX_VALUES: usize = 10_000;
/// Limit on the bytes of text, repeated ones counted again.
const MAX_TEXT: usize = 256 * 1024;

/// The keys of the mapping with their values as text. `None` when it is no YAML, or no mapping.
pub(super) fn read(block: &str) -> Option<Vec<(String, String)>> {
    let Value::Object(map) = Builder::default().build(block)? else { return None };
    let text = |(key, value): (String, Value)| {
        let key = key.trim();
        if key.is_empty() { None } else { Some((key.to_owned(), to_text(value)?)) }
    };
    Some(map.into_iter().filter_map(text).collect())
}

/// Converts a value to text: `None` for null, JSON for compounds.
fn to_text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}

/// A compound whose end has not come.
struct OpenCompound {
    anchor: usize,
    kind: CompoundKind,
}

enum CompoundKind {
    Sequence(Vec<Value>),
    /// Mapping so far, with the key whose value has not come.
    Mapping(Map<String, Value>, Option<String>),
}

#[derive(Default)]
struct Builder {
    open: Vec<OpenCompound>,
    anchors: HashMap<usize, Value>,
    root: Option<Value>,
    values: usize,
    text: usize,
}

impl Builder {
    fn build(mut self, block: &str) -> Option<Value> {
        for event in Parser::new_from_str(block) {
            let (event, _) = event.ok()?;
            match event {
                Event::Scalar(text, style, anchor, tag) => {
                    let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                    let value = match style {
                        ScalarStyle::Plain if !is_text => plain(&text),
                        _ => Value::String(text.into_owned()),
                    };
                    self.add(anchor, value)?;
                }
                Event::Alias(anchor) => {
                    let value = self.anchors.get(&anchor)?.clone();
                    self.add(0, value)?;
                }
                Event::SequenceStart(anchor, _) => self.begin(anchor, CompoundKind::Sequence(Vec::new()))?,
                Event::MappingStart(anchor, _) => {
                    self.begin(anchor, CompoundKind::Mapping(Map::new(), None))?
                }
                Event::SequenceEnd | Event::MappingEnd => self.end()?,
                Event::Nothing
                | Event::StreamStart
                | Event::StreamEnd
                | Event::DocumentStart(_)
                | Event::DocumentEnd => {}
            }
        }
        self.root
    }

    fn begin(&mut self, anchor: usize, kind: CompoundKind) -> Option<()> {
        let is_deep = self.open.len() >= MAX_DEPTH;
        self.open.push(OpenCompound { anchor, kind });
        (!is_deep).then_some(())
    }

    fn end(&mut self) -> Option<()> {
        let OpenCompound { anchor, kind } = self.open.pop()?;
        let value = match kind {
            CompoundKind::Sequence(items) => Value::Array(items),
            CompoundKind::Mapping(map, None) => Value::Object(map),
            CompoundKind::Mapping(_, Some(_)) => return None,
        };
        self.put(anchor, value)
    }

    /// A value that was not counted yet.
    fn add(&mut self, anchor: usize, value: Value) -> Option<()> {
        self.count(&value)?;
        self.put(anchor, value)
    }

    fn count(&mut self, value: &Value) -> Option<()> {
        self.values += 1;
        match value {
            Value::String(text) => self.text += text.len(),
            Value::Array(items) => items.iter().try_for_each(|each| self.count(each))?,
            Value::Object(map) => map.iter().try_for_each(|(key, each)| {
                self.text += key.len();
                self.count(each)
            })?,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        (self.values <= MAX_VALUES && self.text <= MAX_TEXT).then_some(())
    }

    fn put(&mut self, anchor: usize, value: Value) -> Option<()> {
        if anchor != 0 {
            // A kept copy is a copy too.
            self.count(&value)?;
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut().map(|open| &mut open.kind) {
            None if self.root.is_some() => return None,
            None => self.root = Some(value),
            Some(CompoundKind::Sequence(items)) => items.push(value),
            Some(CompoundKind::Mapping(map, key)) => match key.take() {
                None => *key = Some(to_text(value).unwrap_or_default()),
                // The library that OpenClaw uses refuses equal keys.
                Some(name) if map.contains_key(&name) => return None,
                Some(name) => {
                    map.insert(name, value);
                }
            },
        }
        Some(())
    }
}

/// Parses an unquoted scalar by the rules of YAML's core schema.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        && text.bytes().any(|c| c.is_ascii_digit())
        && text.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'+' | b'-' | b'.' | b'e' | b'E'));
    let value: f64 = if is_number { text.parse().ok()? } else { return None };
    // JavaScript's numbers: whole ones are written without a fraction, and exact up to 2^53.
    match text.parse::<i64>() {
        Ok(whole) if whole.unsigned_abs() <= 1 << 53 => Some(whole.into()),
        _ if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 => Some((value as i64).into()),
        _ => Number::from_f64(value),
    }
}
