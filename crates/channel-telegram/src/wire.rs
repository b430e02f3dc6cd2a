//! Reading JSON of which nothing is sure: what is missing, or of another type than it should be, is not there.

use serde_json::Value;

/// A key that is missing.
static NOTHING: Value = Value::Null;

/// Looks into a value.
pub(super) trait Wire {
    /// Returns the value of a key; null if there is none.
    fn at(&self, key: &str) -> &Value;
    /// A text that is not empty.
    fn text(&self, key: &str) -> Option<&str>;
    /// A whole number.
    fn int(&self, key: &str) -> Option<i64>;
    /// A number.
    fn number(&self, key: &str) -> Option<f64>;
    /// Returns true if the value of a key is true.
    fn flag(&self, key: &str) -> bool;
    /// The members of an array.
    fn list(&self, key: &str) -> &[Value];
    /// An object.
    fn object(&self, key: &str) -> Option<&Value>;
}

impl Wire for Value {
    fn at(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&NOTHING)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.at(key).as_str().filter(|text| !text.is_empty())
    }

    fn int(&self, key: &str) -> Option<i64> {
        self.at(key).as_i64()
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.at(key).as_f64().filter(|number| number.is_finite())
    }

    fn flag(&self, key: &str) -> bool {
        self.at(key) == &Value::Bool(true)
    }

    fn list(&self, key: &str) -> &[Value] {
        self.at(key).as_array().map_or(&[], Vec::as_slice)
    }

    fn object(&self, key: &str) -> Option<&Value> {
        Some(self.at(key)).filter(|value| value.is_object())
    }
}
