//! Rules on the sections of platforms in the configuration (spec `config.md` §4.3).

use serde_json::Value;

use crate::Issue;
use crate::document_rule::{DocumentPlace, has_text, lets_all_in};
use crate::value_path::{items, join};

/// The channel id in `channels.<id>…`.
fn channel_of(path: &str) -> &str {
    path.split('.').nth(1).unwrap_or_default()
}

/// An open door has to be stated twice, so that it is never an accident: as the policy, and in the list of senders. `list` is the one in
/// force. A policy that an account takes from above is looked at by `check::who_is_heard`: such a file is valid in OpenClaw 2026.2.9.
fn open_door(
    policy: &str,
    text: String,
    value: &Value,
    list: Option<&Value>,
    place: &DocumentPlace<'_>,
    out: &mut Vec<Issue>,
) {
    let is_open = value.get(policy).and_then(Value::as_str) == Some("open");
    if is_open && !items(list).any(lets_all_in) {
        out.push(Issue::new(join(&place.path, "allowFrom"), text));
    }
}

/// Rule of the section of a platform with the policy of private chats in it.
pub(super) fn dm_policy(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    open_door("dmPolicy", dm_policy_text(place), value, value.get("allowFrom"), place, out);
}

/// The same of an account.
pub(super) fn account_dm_policy(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    open_door("dmPolicy", dm_policy_text(place), value, list_of_account(value, place), place, out);
}

fn dm_policy_text(place: &DocumentPlace<'_>) -> String {
    let section = format!("channels.{}", channel_of(&place.path));
    format!("{section}.dmPolicy=\"open\" requires {section}.allowFrom to include \"*\"")
}

/// The same of an account of WhatsApp.
pub(super) fn whatsapp_account(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    let text =
        "channels.whatsapp.accounts.*.dmPolicy=\"open\" requires allowFrom to include \"*\"".to_owned();
    open_door("dmPolicy", text, value, list_of_account(value, place), place, out);
}

/// Allowlist of the account, or else that of its channel.
fn list_of_account<'a>(account: &'a Value, place: &DocumentPlace<'a>) -> Option<&'a Value> {
    let of_channel = || place.root.get("channels")?.get(channel_of(&place.path))?.get("allowFrom");
    account.get("allowFrom").filter(|list| !list.is_null()).or_else(of_channel)
}

/// The same of the object that has the policy where a section has one.
pub(super) fn nested_dm_policy(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    let section = format!("channels.{}.dm", channel_of(&place.path));
    let text = format!("{section}.policy=\"open\" requires {section}.allowFrom to include \"*\"");
    open_door("policy", text, value, value.get("allowFrom"), place, out);
}

/// Rule of Slack's section: requests that Slack makes need a secret.
pub(super) fn slack_http(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    let is_http = |section: &Value| section.get("mode").and_then(Value::as_str) == Some("http");
    let has_secret = |section: &Value| has_text(section, "signingSecret");
    if is_http(value) && !has_secret(value) {
        out.push(Issue::new(
            join(&place.path, "signingSecret"),
            "channels.slack.mode=\"http\" requires channels.slack.signingSecret",
        ));
    }
    for (id, account) in value.get("accounts").and_then(Value::as_object).into_iter().flatten() {
        let is_enabled = account.get("enabled") != Some(&Value::Bool(false));
        if is_enabled && is_http(account) && !has_secret(account) && !has_secret(value) {
            out.push(Issue::new(
                join(&place.path, &format!("accounts.{id}.signingSecret")),
                "channels.slack.accounts.*.mode=\"http\" requires channels.slack.signingSecret or channels.slack.accounts.*.signingSecret",
            ));
        }
    }
}
