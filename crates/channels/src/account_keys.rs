//! Selects the parts of a configuration that belong to one account of a platform, so that they can
//! be removed. Accounts share the settings in the platform's section, except for credentials and
//! the label: those belong to the account `default`.

use openclaw_config::write::{Actor, WriteError, write};
use openclaw_config::{Loaded, normalize_account_id, value_path};
use serde_json::{Map, Value, json};

use crate::Channel;
use crate::platforms::DEFAULT_ACCOUNT;

/// The key of an account's label.
const LABEL: &str = "name";

/// Takes an account's credentials out of the file. `false`: it has none there.
///
/// # Errors
/// [`WriteError`]; the file is unchanged then.
pub fn take_credentials(
    loaded: &Loaded,
    channel: &dyn Channel,
    account: &str,
    by: Actor,
) -> Result<bool, WriteError> {
    take(loaded, channel, by, |document| without_credentials(document, channel, account))
}

/// Takes an account out of the file, with all that is its own. `false`: there is none.
///
/// # Errors
/// [`WriteError`]; the file is unchanged then.
pub fn take_account(
    loaded: &Loaded,
    channel: &dyn Channel,
    account: &str,
    by: Actor,
) -> Result<bool, WriteError> {
    take(loaded, channel, by, |document| without_account(document, channel, account))
}

fn take(
    loaded: &Loaded,
    channel: &dyn Channel,
    by: Actor,
    without: impl Fn(&Value) -> Option<Value>,
) -> Result<bool, WriteError> {
    match without(&loaded.snapshot.parsed) {
        Some(next) => write(loaded, &next, by).map(|_| true),
        None if without(&loaded.snapshot.config).is_some() => {
            Err(WriteError::included(loaded, format!("channels.{}", channel.info().id)))
        }
        None => Ok(false),
    }
}

/// The document without an account's credentials; `None` where it has none.
pub fn without_credentials(document: &Value, channel: &dyn Channel, account: &str) -> Option<Value> {
    let mut next = document.clone();
    let section = section_of(channel);
    let own = names_of(document, channel, account).into_iter().map(|name| entry(&section, name));
    let shared = (account == DEFAULT_ACCOUNT).then(|| section.clone());
    let places: Vec<Vec<String>> = own.chain(shared).collect();
    let mut any = false;
    for place in &places {
        for key in channel.info().credential_keys {
            let is_there =
                value_path::get(&next, &[place.clone(), vec![(*key).to_owned()]].concat()).is_some();
            if is_there && let Some(Value::Object(keys)) = value_path::get_mut(&mut next, place) {
                keys.shift_remove(*key);
                any = true;
            }
        }
    }
    any.then_some(next)
}

/// The document without an account; `None` where it has none of that name.
fn without_account(document: &Value, channel: &dyn Channel, account: &str) -> Option<Value> {
    let section = section_of(channel);
    let keys = value_path::get(document, &section)?.as_object()?;
    let has_accounts = keys.get("accounts").and_then(Value::as_object).is_some_and(|own| !own.is_empty());
    let mut next = document.clone();
    if !has_accounts {
        // If no account has a name, the section is the account `default`.
        return (account == DEFAULT_ACCOUNT && value_path::unset(&mut next, &section)).then_some(next);
    }
    let bare = without_credentials(document, channel, account);
    let mut any = bare.is_some();
    let mut next = bare.unwrap_or(next);
    for name in names_of(document, channel, account) {
        any |= value_path::unset(&mut next, &entry(&section, name));
    }
    if !any {
        return None;
    }
    if account == DEFAULT_ACCOUNT
        && let Some(Value::Object(keys)) = value_path::get_mut(&mut next, &section)
    {
        keys.shift_remove(LABEL);
    }
    // A switch alone is nobody's.
    if value_path::get(&next, &section) == Some(&json!({"enabled": true})) {
        value_path::unset(&mut next, &section);
    }
    Some(next)
}

fn section_of(channel: &dyn Channel) -> Vec<String> {
    ["channels", channel.info().id].map(str::to_owned).to_vec()
}

fn entry(section: &[String], name: String) -> Vec<String> {
    [section, &["accounts".to_owned(), name]].concat()
}

/// Returns the names under which an account is written in a document.
pub fn names_of(document: &Value, channel: &dyn Channel, account: &str) -> Vec<String> {
    let accounts = document.pointer(&format!("/channels/{}/accounts", channel.info().id));
    let names = accounts.and_then(Value::as_object).into_iter().flat_map(Map::keys);
    names.filter(|name| normalize_account_id(name) == account).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Numbered;

    fn telegram(section: &Value) -> Value {
        json!({"channels": {"telegram": section}})
    }

    fn left(next: Option<Value>) -> Option<Value> {
        next.map(|next| next.pointer("/channels/telegram").cloned().unwrap_or_default())
    }

    #[test]
    fn credentials_go_from_wherever_the_account_has_them() {
        let two = json!({"botToken": "1:a", "tokenFile": "/t", "name": "n", "allowFrom": [5],
                         "accounts": {"default": {}, "Work": {"botToken": "2:b", "dmPolicy": "open"}}});
        let rows = [
            (
                &two,
                "default",
                Some(json!({"name": "n", "allowFrom": [5],
                            "accounts": {"default": {}, "Work": {"botToken": "2:b", "dmPolicy": "open"}}})),
            ),
            (
                &two,
                "work",
                Some(json!({"botToken": "1:a", "tokenFile": "/t", "name": "n", "allowFrom": [5],
                            "accounts": {"default": {}, "Work": {"dmPolicy": "open"}}})),
            ),
            (&two, "other", None),
            (&json!({"botToken": "1:a"}), "default", Some(json!({}))),
            (&json!({"botToken": "1:a"}), "work", None),
            (
                &json!({"accounts": {"default": {"botToken": "1:a"}}}),
                "default",
                Some(json!({"accounts": {"default": {}}})),
            ),
        ];
        for (section, account, expect) in rows {
            let found = left(without_credentials(&telegram(section), &Numbered, account));
            assert_eq!(found, expect, "{section} {account}");
        }
    }

    #[test]
    fn an_account_goes_with_what_is_its_own() {
        let rows = [
            // Settings that another account inherits stay.
            (
                json!({"enabled": true, "botToken": "1:a", "name": "n", "allowFrom": [5],
                       "accounts": {"default": {"dmPolicy": "open"}, "work": {"botToken": "2:b"}}}),
                "default",
                Some(json!({"enabled": true, "allowFrom": [5], "accounts": {"work": {"botToken": "2:b"}}})),
            ),
            (
                json!({"enabled": true, "botToken": "1:a", "accounts": {"work": {"botToken": "2:b"}}}),
                "default",
                Some(json!({"enabled": true, "accounts": {"work": {"botToken": "2:b"}}})),
            ),
            (json!({"name": "n", "accounts": {"work": {"botToken": "2:b"}}}), "default", None),
            (json!({"enabled": true, "accounts": {"Work": {"botToken": "2:b"}}}), "work", Some(Value::Null)),
            (
                json!({"allowFrom": [5], "accounts": {"work": {"botToken": "2:b"}}}),
                "work",
                Some(json!({"allowFrom": [5]})),
            ),
            (json!({"botToken": "1:a", "allowFrom": [5], "accounts": {}}), "default", Some(Value::Null)),
            (json!({"botToken": "1:a"}), "work", None),
        ];
        for (section, account, expect) in rows {
            assert_eq!(
                left(without_account(&telegram(&section), &Numbered, account)),
                expect,
                "{section} {account}"
            );
        }
        assert_eq!(without_account(&json!({}), &Numbered, "default"), None);
    }
}
