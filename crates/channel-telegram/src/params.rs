//! Parameters of the Bot API's methods.

use serde_json::{Value, json};

/// A chat as the API takes it: a number, or a name.
pub(super) fn chat_id(chat: &str) -> Value {
    chat.parse::<i64>().map_or_else(|_| json!(chat), |id| json!(id))
}

/// Sets a parameter.
pub(super) fn set(params: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(map) = params.as_object_mut() {
        map.insert(key.to_owned(), value.into());
    }
}
