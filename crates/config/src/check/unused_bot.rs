//! A bot whose token stands in the channel's own keys while only other accounts have names: it is off, as in OpenClaw 2026.2.9, whose own
//! `channels add` leaves it behind so (spec `channels.md` §1.3, §1.4).

use serde_json::Value;

use crate::document_rule::has_text;
use crate::registry::{self, ChannelInfo};
use crate::value_path::items;
use crate::{Issue, normalize_account_id};

/// The account that has the channel's own token.
const DEFAULT: &str = "default";

/// The warnings of a valid document.
pub(super) fn check(document: &Value) -> Vec<Issue> {
    registry::built_channels().filter_map(|platform| unused(document, platform)).collect()
}

fn unused(document: &Value, platform: &ChannelInfo) -> Option<Issue> {
    let id = platform.id;
    let section = document.get("channels")?.get(id)?;
    let mut named = section.get("accounts").and_then(Value::as_object)?.keys().peekable();
    let is_default = |account: &str| normalize_account_id(account) == DEFAULT;
    let is_bound =
        items(document.get("bindings")).filter_map(|binding| binding.get("match")).any(|matches| {
            let text = |key: &str| matches.get(key).and_then(Value::as_str).unwrap_or_default();
            text("channel").trim().eq_ignore_ascii_case(id)
                && text("accountId").trim().eq_ignore_ascii_case(DEFAULT)
        });
    let is_off = section.get("enabled") == Some(&Value::Bool(false));
    if is_off || is_bound || named.peek().is_none() || named.any(|account| is_default(account)) {
        return None;
    }
    let key = platform.credential_keys.iter().find(|key| has_text(section, key))?;
    let told = format!(
        "the bot with this token is off, because channels.{id}.accounts names others only; to switch it on: openclaw \
         config set channels.{id}.accounts.{DEFAULT} '{{}}'; if it is not wanted: openclaw config unset channels.{id}.{key}"
    );
    Some(Issue::new(format!("channels.{id}.{key}"), told))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bot_that_no_account_is_for_is_told_of() {
        let bound = json!([{"agentId": "main", "match": {"channel": "telegram", "accountId": "default"}}]);
        let rows: [(Value, Value, &[&str]); 9] = [
            (json!({"botToken": "1:t"}), json!([]), &[]),
            (json!({"botToken": "1:t", "accounts": {}}), json!([]), &[]),
            (json!({"botToken": "1:t", "accounts": {"b": {}}}), json!([]), &["channels.telegram.botToken"]),
            (json!({"tokenFile": "/t", "accounts": {"b": {}}}), json!([]), &["channels.telegram.tokenFile"]),
            (json!({"botToken": " ", "accounts": {"b": {}}}), json!([]), &[]),
            (json!({"accounts": {"b": {"botToken": "1:t"}}}), json!([]), &[]),
            (json!({"botToken": "1:t", "accounts": {"b": {}, "Default": {}}}), json!([]), &[]),
            (json!({"botToken": "1:t", "enabled": false, "accounts": {"b": {}}}), json!([]), &[]),
            (json!({"botToken": "1:t", "accounts": {"b": {}}}), bound, &[]),
        ];
        for (telegram, bindings, expect) in rows {
            let found = check(&json!({"channels": {"telegram": telegram}, "bindings": bindings}));
            let paths: Vec<String> = found.into_iter().map(|issue| issue.path).collect();
            assert_eq!(paths, expect, "{telegram}");
        }
    }
}
