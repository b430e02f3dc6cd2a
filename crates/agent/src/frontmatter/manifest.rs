//! The part of `metadata` for this product: `{"openclaw": {…}}`.

use serde_json::{Map, Value};

use crate::requirements::Requirements;

/// The product's name, then those it had before; the first that is there counts.
const NAMES: &[&str] = &["openclaw", "moltbot", "clawdbot", "clawdis"];

/// Settings of a skill or a hook.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest(Map<String, Value>);

impl Manifest {
    pub(super) fn of(mut metadata: Map<String, Value>) -> Option<Self> {
        NAMES.iter().find_map(|name| match metadata.remove(*name) {
            Some(Value::Object(manifest)) => Some(Self(manifest)),
            _ => None,
        })
    }

    /// A text, trimmed; blank ones and other types count as missing.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// A switch; other types count as missing.
    pub fn switch(&self, key: &str) -> Option<bool> {
        self.0.get(key)?.as_bool()
    }

    /// A number; other types count as missing.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64()
    }

    /// A list of texts, or one text with commas. Blank ones are left out.
    pub fn list(&self, key: &str) -> Vec<String> {
        self.0.get(key).map(texts).unwrap_or_default()
    }

    /// The objects of a list, such as `install`.
    pub fn objects(&self, key: &str) -> Vec<Self> {
        let items = self.0.get(key).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_object).cloned().map(Self).collect()
    }

    /// `always`, `os` and `requires`.
    pub fn requirements(&self) -> Requirements {
        let requires = |key: &str| {
            self.0.get("requires").and_then(|requires| requires.get(key)).map(texts).unwrap_or_default()
        };
        Requirements {
            bins: requires("bins"),
            any_bins: requires("anyBins"),
            env: requires("env"),
            config: requires("config"),
            os: self.list("os"),
        }
    }
}

fn texts(value: &Value) -> Vec<String> {
    let one = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    match value {
        Value::String(text) => text.split(',').filter_map(one).collect(),
        Value::Array(items) => {
            let item = |item: &Value| match item {
                Value::String(text) => one(text),
                Value::Number(_) | Value::Bool(_) => one(&item.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            };
            items.iter().filter_map(item).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}
