//! Accounts of chat platforms: how their names are compared, and which section is whose.

use openclaw_protocol::AgentId;
use serde_json::{Map, Value};

/// Account without a name of its own.
const DEFAULT_ACCOUNT: &str = "default";

/// Returns the id of an account, however its name is written: `My Bot!` is `my-bot`. A blank name is
/// `default`.
pub fn normalize_account_id(text: &str) -> String {
    let name = text.trim();
    if name.is_empty() {
        return DEFAULT_ACCOUNT.to_owned();
    }
    let id = AgentId::normalize(name);
    // `normalize` falls back to `main` for text without a usable character; for accounts that fallback is `default`.
    let is_usable =
        name.to_lowercase().chars().any(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_usable { id.as_str().to_owned() } else { DEFAULT_ACCOUNT.to_owned() }
}

/// Returns the name and the value of an account's own section. Of several names that are the same
/// account, the first in the file counts.
pub fn account_section<'a>(
    document: &'a Value,
    channel: &str,
    account: &str,
) -> Option<(&'a str, &'a Value)> {
    let accounts = document.get("channels")?.get(channel)?.get("accounts")?.as_object()?;
    let id = normalize_account_id(account);
    accounts
        .iter()
        .find(|(name, _)| normalize_account_id(name) == id)
        .map(|(name, keys)| (name.as_str(), keys))
}

/// Returns the keys that are in force for an account: its own over those of its platform, but for
/// `null`, which says nothing. The other accounts are left out.
pub fn account_keys(document: &Value, channel: &str, account: &str) -> Map<String, Value> {
    let section = document.get("channels").and_then(|channels| channels.get(channel));
    let own = account_section(document, channel, account).and_then(|(_, keys)| keys.as_object());
    let layers = section.and_then(Value::as_object).into_iter().chain(own).flatten();
    let says = layers.filter(|(key, value)| key.as_str() != "accounts" && !value.is_null());
    says.map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Rules of `sessions.md` §1.2.
    #[test]
    fn account_segments_fall_back_to_default() {
        let (long, cut) = ("a".repeat(70), "a".repeat(64));
        let rows = [
            // `channels.md` §1.3.
            ("", "default"),
            ("  ", "default"),
            ("Work", "work"),
            ("a.b", "a-b"),
            ("My Bot!", "my-bot"),
            ("café", "caf"),
            ("Tasks Bot", "tasks-bot"),
            ("@@", "default"),
            ("--", "default"),
            ("main", "main"),
            ("Main", "main"),
            ("--x--", "x"),
            ("_x", "_x"),
            ("Ünï", "n"),
            (&long, &cut),
        ];
        for (input, expect) in rows {
            assert_eq!(normalize_account_id(input), expect, "{input:?}");
        }
    }

    #[test]
    fn of_two_names_of_one_account_the_first_in_the_file_counts() {
        let document: Value = serde_json::from_str(
            r#"{"channels": {"telegram": {"name": "all", "dmPolicy": "open", "accounts": {
                "my-bot": {"name": "first", "dmPolicy": null}, "My Bot": {"name": "second"}}}}}"#,
        )
        .unwrap();
        for id in ["my-bot", " MY BOT ", "My Bot"] {
            let keys = account_keys(&document, "telegram", id);
            assert_eq!(Value::Object(keys), json!({"name": "first", "dmPolicy": "open"}), "{id}");
            assert_eq!(account_section(&document, "telegram", id).unwrap().0, "my-bot");
        }
        assert_eq!(account_section(&document, "telegram", "other"), None);
        assert_eq!(account_keys(&document, "slack", "my-bot"), Map::new());
    }
}
