//! Keys of a file that no version of the schema knows: the file can't be used until they are gone.

use serde_json::Value;

use crate::check::structure;
use crate::{legacy, value_path};

/// The paths of the keys in the file's document that are known neither now nor as keys of older versions.
pub fn unknown_keys(document: &Value) -> Vec<Vec<String>> {
    // A key that is moved on load is judged by where it goes; what is found there can't be taken out of the file.
    let moved = legacy::migrate(document).map(|(moved, _)| moved);
    let unknown = structure::unknown_keys(moved.as_ref().unwrap_or(document)).into_iter();
    unknown.filter(|path| path != &["$include"] && value_path::get(document, path).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::value_path::path_text;

    #[test]
    fn unknown_keys_are_found_wherever_they_stand() {
        let document = json!({
            "aliases": {"1": "x"},
            "agents": {
                "defaults": {"thinking": "low", "models": {"openai/gpt-5.2": {"alias": "g", "speed": 1}}},
                "list": [{"id": "main", "colour": "red"}, {"id": "b"}],
            },
            "channels": {"telegram": {"botTokn": "t", "accounts": {"a": {"nope": 1}}}},
            "telegram": {"botToken": "old"},
            "gateway": {"port": 1},
        });
        let mut found: Vec<String> = unknown_keys(&document).iter().map(|path| path_text(path)).collect();
        found.sort();
        let expect = [
            r#"agents.defaults.models["openai/gpt-5.2"].speed"#,
            "agents.defaults.thinking",
            "agents.list.0.colour",
            "aliases",
            "channels.telegram.accounts.a.nope",
            "channels.telegram.botTokn",
        ];
        assert_eq!(found, expect);
        assert_eq!(unknown_keys(&json!({"gateway": {"port": 1}})), Vec::<Vec<String>>::new());
    }
}
