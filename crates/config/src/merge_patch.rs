//! RFC 7396 merge patches, as `config.patch` takes them (spec `config.md` §7).

use serde_json::{Map, Value};

/// Applies a merge patch: objects merge, null removes, everything else replaces.
pub fn merge_patch(base: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *base = patch.clone();
        return;
    };
    if !base.is_object() {
        *base = Value::Object(Map::new());
    }
    let Value::Object(base) = base else { return };
    for (key, value) in patch {
        if value.is_null() {
            base.shift_remove(key);
        } else {
            merge_patch(base.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
