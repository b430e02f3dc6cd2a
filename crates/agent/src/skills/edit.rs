//! Changes the settings of a skill in `openclaw.json`.

use std::collections::BTreeMap;

use openclaw_config::write::{self, Actor, WriteError};
use openclaw_config::{InvalidConfig, Loaded, redact, value_path};
use serde_json::{Map, Value, json};

/// Changes to a skill; absent fields stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillChange {
    /// True if the skill may be used.
    pub enabled: Option<bool>,
    /// Value of its primary variable; blank removes it.
    pub api_key: Option<String>,
    /// Variables by name; a blank value removes one.
    pub env: BTreeMap<String, String>,
}

/// Reason why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The key can't stand in the file.
    #[error("\"{0}\" cannot be the key of a skill or the name of a variable")]
    Key(String),
    /// The config can't be used.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// The config can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Changes what is configured for the skill with this key, and gives all of it, without secrets. Blocking.
///
/// # Errors
/// [`UpdateError`]; the config is unchanged then.
pub fn update(
    loaded: &Loaded,
    key: &str,
    change: &SkillChange,
    actor: Actor,
) -> Result<Map<String, Value>, UpdateError> {
    loaded.config_for_reading()?;
    let path = ["skills", "entries", key].map(str::to_owned);
    let next = edited(&loaded.snapshot.parsed, &path, change)?;
    write::write(loaded, &next, actor)?;
    let mut entry = value_path::get(&next, &path).cloned().unwrap_or_default();
    redact::redact_at(&path, &mut entry);
    Ok(match entry {
        Value::Object(entry) => entry,
        _ => Map::new(),
    })
}

fn edited(document: &Value, path: &[String; 3], change: &SkillChange) -> Result<Value, UpdateError> {
    let [_, _, key] = path;
    let names = change.env.keys().map(|name| name.trim());
    if let Some(bad) = [key.trim()].into_iter().chain(names).find(|name| !may_be_key(name)) {
        return Err(UpdateError::Key(bad.to_owned()));
    }
    let at = |rest: &[&str]| -> Vec<String> {
        path.iter().cloned().chain(rest.iter().map(|part| (*part).to_owned())).collect()
    };
    let mut next = document.clone();
    if !value_path::get(&next, path).is_some_and(Value::is_object) {
        value_path::set(&mut next, path, json!({}));
    }
    if let Some(enabled) = change.enabled {
        value_path::set(&mut next, &at(&["enabled"]), json!(enabled));
    }
    let texts = change.api_key.iter().map(|value| (at(&["apiKey"]), value));
    for (place, value) in
        texts.chain(change.env.iter().map(|(name, value)| (at(&["env", name.trim()]), value)))
    {
        match value.trim() {
            "" => remove(&mut next, &place),
            value => value_path::set(&mut next, &place, json!(value)),
        }
    }
    Ok(next)
}

/// Leaves an object that becomes empty, but for that of the variables.
fn remove(document: &mut Value, place: &[String]) {
    let Some((name, above)) = place.split_last() else { return };
    let Some(Value::Object(map)) = value_path::get_mut(document, above) else { return };
    map.shift_remove(name);
    if map.is_empty() && above.last().is_some_and(|last| last == "env") {
        remove(document, above);
    }
}

/// Names with a meaning of their own in JavaScript would be lost there.
fn may_be_key(name: &str) -> bool {
    !name.is_empty() && !matches!(name, "__proto__" | "prototype" | "constructor" | "$include")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(document: &Value, change: &SkillChange, expect: &Value) {
        let path = ["skills", "entries", "a.b"].map(str::to_owned);
        let next = edited(document, &path, change).unwrap();
        assert_eq!(next["skills"]["entries"]["a.b"], *expect, "{change:?}");
        assert_eq!(next["other"], document["other"]);
    }

    #[test]
    fn what_is_given_is_set_and_what_is_blank_goes() {
        let env =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let key = |key: &str| Some(key.to_owned());
        let none = SkillChange::default();
        check(&json!({"other": 1}), &none, &json!({}));
        let all = SkillChange {
            enabled: Some(false),
            api_key: key(" k-123 "),
            env: env(&[("A", "1"), ("B", " ")]),
        };
        check(&json!({}), &all, &json!({"enabled": false, "apiKey": "k-123", "env": {"A": "1"}}));
        let full = json!({"other": 1, "skills": {"entries": {"a.b": {"enabled": false, "apiKey": "k", "env": {"A": "1"}, "config": {"x": 1}}}}});
        check(&full, &none, &full["skills"]["entries"]["a.b"]);
        let blank = SkillChange { enabled: Some(true), api_key: key(""), env: env(&[(" A ", "")]) };
        check(&full, &blank, &json!({"enabled": true, "config": {"x": 1}}));
        let last = SkillChange { api_key: key(""), ..SkillChange::default() };
        check(&json!({"skills": {"entries": {"a.b": {"apiKey": "k"}}}}), &last, &json!({}));
    }

    #[test]
    fn names_that_would_be_lost_are_refused() {
        for name in ["", " ", "__proto__", "constructor", "$include"] {
            let path = ["skills", "entries", name].map(str::to_owned);
            assert!(edited(&json!({}), &path, &SkillChange::default()).is_err(), "{name:?}");
            let change = SkillChange {
                env: BTreeMap::from([(name.to_owned(), "v".to_owned())]),
                ..SkillChange::default()
            };
            let path = ["skills", "entries", "a"].map(str::to_owned);
            assert!(edited(&json!({}), &path, &change).is_err(), "{name:?}");
        }
    }
}
