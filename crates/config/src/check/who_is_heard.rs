//! Policies and lists of chat platforms that let in other people than they seem to, or nobody (spec `channels.md` §1.2). Each is a warning:
//! such a file is valid, and OpenClaw 2026.2.9 takes it as it is.

use serde_json::{Map, Value};

use super::rules::{lets_all_in, places};
use super::schema::join;
use crate::Issue;
use crate::registry::{self, ChannelInfo, PolicyPlace};
use crate::value_path::items;

/// Lists of Telegram's people.
const TELEGRAM_LISTS: &[&str] = &[
    "channels.telegram.allowFrom.*",
    "channels.telegram.groupAllowFrom.*",
    "channels.telegram.groups.*.allowFrom.*",
    "channels.telegram.groups.*.topics.*.allowFrom.*",
    "channels.telegram.accounts.*.allowFrom.*",
    "channels.telegram.accounts.*.groupAllowFrom.*",
    "channels.telegram.accounts.*.groups.*.allowFrom.*",
    "channels.telegram.accounts.*.groups.*.topics.*.allowFrom.*",
    "tools.elevated.allowFrom.telegram.*",
    "agents.list.*.tools.elevated.allowFrom.telegram.*",
];
/// A list of people of all platforms. Telegram's are those that say so.
const OWNERS: &str = "commands.ownerAllowFrom.*";
/// The warnings of a valid document.
pub(super) fn check(document: &Value) -> Vec<Issue> {
    let mut found = Vec::new();
    for platform in registry::CHANNELS {
        let section = document.pointer(&format!("/channels/{}", platform.id)).and_then(Value::as_object);
        for issue in section.into_iter().flat_map(|section| private_chats(platform, section)) {
            // Accounts that say nothing themselves share what their platform says.
            if !found.contains(&issue) {
                found.push(issue);
            }
        }
    }
    for pattern in TELEGRAM_LISTS {
        found.extend(places(document, pattern).into_iter().filter_map(|(path, entry)| nobody(path, entry)));
    }
    let owners = places(document, OWNERS).into_iter();
    let owners = owners.filter(|(_, entry)| {
        entry.as_str().is_some_and(|text| without_prefixes(text) != text.trim().to_lowercase())
    });
    found.extend(owners.filter_map(|(path, entry)| nobody(path, entry)));
    found
}

/// Warnings on who is heard in private chats, by the policy of each account.
fn private_chats(platform: &ChannelInfo, section: &Map<String, Value>) -> Vec<Issue> {
    let nested = match platform.private_policy {
        PolicyPlace::Unchecked => return Vec::new(),
        PolicyPlace::Section => None,
        PolicyPlace::Within(key) => Some(key),
    };
    let base = format!("channels.{}", platform.id);
    if is_off(section) {
        return Vec::new();
    }
    let all = Layer::of(section, nested, &base);
    let accounts: Vec<_> = section.get("accounts").and_then(Value::as_object).into_iter().flatten().collect();
    if accounts.is_empty() {
        return EffectiveAccess::over(None, &all).warnings(platform);
    }
    let accounts = accounts.into_iter().filter_map(|(id, keys)| Some((id, keys.as_object()?)));
    let accounts = accounts.filter(|(_, keys)| !is_off(keys));
    accounts
        .flat_map(|(id, keys)| {
            let own = Layer::of(keys, nested, &format!("{base}.accounts.{id}"));
            EffectiveAccess::over(Some(&own), &all).warnings(platform)
        })
        .collect()
}

fn is_off(section: &Map<String, Value>) -> bool {
    section.get("enabled") == Some(&Value::Bool(false))
}

/// Settings of one section, without inherited ones.
struct Layer<'a> {
    /// Path of the object with both keys.
    path: String,
    policy: Option<&'a str>,
    list: Option<&'a Value>,
    /// The key of the policy.
    policy_key: &'static str,
}

impl<'a> Layer<'a> {
    fn of(section: &'a Map<String, Value>, nested: Option<&str>, path: &str) -> Self {
        let (keys, path, policy_key) = match nested {
            Some(key) => (section.get(key).and_then(Value::as_object), join(path, key), "policy"),
            None => (Some(section), path.to_owned(), "dmPolicy"),
        };
        let value = |key: &str| keys.and_then(|keys| keys.get(key)).filter(|value| !value.is_null());
        let policy = value(policy_key).and_then(Value::as_str);
        Self { path, policy, list: value("allowFrom"), policy_key }
    }
}

/// Settings in effect for an account.
struct EffectiveAccess<'a> {
    /// Path of what decides it.
    path: &'a str,
    policy_key: &'static str,
    policy: &'a str,
    list: Option<&'a Value>,
}

impl<'a> EffectiveAccess<'a> {
    fn over(own: Option<&'a Layer<'a>>, all: &'a Layer<'a>) -> Self {
        let says = own.filter(|own| own.policy.is_some() || own.list.is_some());
        Self {
            path: &says.unwrap_or(all).path,
            policy_key: all.policy_key,
            policy: own.and_then(|own| own.policy).or(all.policy).unwrap_or("pairing"),
            list: own.and_then(|own| own.list).or(all.list),
        }
    }

    fn warnings(&self, platform: &ChannelInfo) -> Vec<Issue> {
        let Self { path, policy_key, policy, list } = self;
        let text = match *policy {
            "allowlist" if items(*list).next().is_none() && !platform.hears_own_number => format!(
                "{policy_key}=\"allowlist\" and an allowFrom that names nobody: in private nobody is heard but who was let in \
                 by a pairing code before; name who is to be heard, or use {policy_key}=\"pairing\""
            ),
            "open" if !items(*list).any(lets_all_in) => format!(
                "{policy_key}=\"open\" lets in nobody but who is in this list, because \"*\" is not: put it in if everybody is meant, \
                 or say {policy_key}=\"allowlist\""
            ),
            "pairing" if items(*list).any(lets_all_in) => format!(
                "\"*\" lets everybody in, so that {policy_key}=\"pairing\" does nothing; take it out, or say \
                 {policy_key}=\"open\" if everybody is meant"
            ),
            _ => return Vec::new(),
        };
        vec![Issue::new(join(path, "allowFrom"), text)]
    }
}

/// The ids of channels and supergroups, which may write in their own names, are not above this; those of other groups are.
const HIGHEST_SPEAKING_CHAT: i64 = -1_000_000_000_000;

/// An entry of a list of Telegram that can match nobody, now or after names were looked up.
fn nobody(path: String, entry: &Value) -> Option<Issue> {
    let text = match entry {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let why = match id_of(&text) {
        _ if text.is_empty() => "an empty entry can match nobody".to_owned(),
        Some(id) if (HIGHEST_SPEAKING_CHAT + 1..0).contains(&id) => {
            format!(
                "\"{text}\" is the id of a group, and can match nobody in a list of people; groups stand in groups"
            )
        }
        _ if is_telegram_entry(&text) => return None,
        _ => format!("\"{text}\" can match nobody on Telegram"),
    };
    let told = format!(
        "{why}; write the numeric id of the person (it stands in openclaw pairing list telegram, and in the answer to /whoami)"
    );
    Some(Issue::new(path, told))
}

fn id_of(text: &str) -> Option<i64> {
    without_prefixes(text).parse().ok()
}

/// Entry in lower case, without the name of the platform.
fn without_prefixes(text: &str) -> String {
    let lower = text.trim().to_lowercase();
    let mut rest = lower.as_str();
    while let Some(behind) = rest.strip_prefix("telegram:").or_else(|| rest.strip_prefix("tg:")) {
        rest = behind.trim_start();
    }
    rest.to_owned()
}

/// `*`, a number, or what can be the name of a person or a chat.
fn is_telegram_entry(text: &str) -> bool {
    let rest = without_prefixes(text);
    let rest = rest.as_str();
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    if !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()) {
        return digits.parse::<i64>().is_ok_and(|id| id != 0);
    }
    let name = rest.strip_prefix('@').unwrap_or(rest);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    rest == "*" || is_name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(document: &Value) -> Vec<String> {
        check(document).into_iter().map(|issue| issue.path).collect()
    }

    #[test]
    fn policies_that_do_other_than_they_say_are_told() {
        let rows: [(Value, &[&str]); 17] = [
            (json!({"telegram": {}}), &[]),
            (json!({"telegram": {"dmPolicy": "allowlist", "allowFrom": [5]}}), &[]),
            (json!({"telegram": {"dmPolicy": "allowlist"}}), &["channels.telegram.allowFrom"]),
            (
                json!({"telegram": {"dmPolicy": "allowlist", "allowFrom": []}}),
                &["channels.telegram.allowFrom"],
            ),
            (json!({"telegram": {"dmPolicy": "allowlist", "enabled": false}}), &[]),
            (json!({"telegram": {"allowFrom": ["*"]}}), &["channels.telegram.allowFrom"]),
            (
                json!({"telegram": {"dmPolicy": "pairing", "allowFrom": [5, " * "]}}),
                &["channels.telegram.allowFrom"],
            ),
            (json!({"telegram": {"dmPolicy": "open", "allowFrom": ["*"]}}), &[]),
            (json!({"telegram": {"dmPolicy": "disabled"}}), &[]),
            // WhatsApp's list is the own number where it names nobody.
            (json!({"whatsapp": {"dmPolicy": "allowlist"}}), &[]),
            (json!({"slack": {"dm": {"policy": "allowlist"}}}), &["channels.slack.dm.allowFrom"]),
            // Accounts take what they do not say from above, and are told of where they say it.
            (
                json!({"telegram": {"dmPolicy": "allowlist", "accounts": {"a": {}, "b": {}, "c": {"allowFrom": [5]}}}}),
                &["channels.telegram.allowFrom"],
            ),
            (
                json!({"telegram": {"allowFrom": [5], "accounts": {"a": {"dmPolicy": "allowlist"}, "b": {"allowFrom": ["*"]}}}}),
                &["channels.telegram.accounts.b.allowFrom"],
            ),
            (json!({"telegram": {"dmPolicy": "allowlist", "accounts": {"a": {"enabled": false}}}}), &[]),
            // An account whose own list is narrower than the door that it takes from above.
            (
                json!({"telegram": {"dmPolicy": "open", "allowFrom": ["*"], "accounts": {"a": {}, "b": {"allowFrom": [5]}}}}),
                &["channels.telegram.accounts.b.allowFrom"],
            ),
            (
                json!({"telegram": {"dmPolicy": "open", "allowFrom": ["*"], "accounts": {"b": {"allowFrom": []}}}}),
                &["channels.telegram.accounts.b.allowFrom"],
            ),
            (json!({"telegram": {"allowFrom": ["*"], "accounts": {"b": {"dmPolicy": "open"}}}}), &[]),
        ];
        for (channels, expect) in rows {
            assert_eq!(paths(&json!({"channels": channels})), expect, "{channels}");
        }
    }

    #[test]
    fn what_can_match_nobody_on_telegram_is_told() {
        for entry in ["5", "-1001234567890", "tg:5", "Telegram: @ada", "@ada_l", "ada", "*"] {
            let document = json!({"channels": {"telegram": {"groupAllowFrom": [entry]}}});
            assert!(paths(&document).is_empty(), "{entry:?}");
        }
        for entry in [
            "Ada Lovelace",
            "+4366012345",
            "@",
            "0",
            "https://t.me/ada",
            "ada@example.org",
            "99999999999999999999",
            "",
            "-5",
            "tg:-100123",
        ]
        .map(Value::from)
        .into_iter()
        .chain([json!(777.5), json!(-5), json!(0), json!(1e30)])
        {
            let document = json!({"channels": {"telegram": {"allowFrom": [5, entry]}}});
            assert_eq!(paths(&document), ["channels.telegram.allowFrom.1"], "{entry:?}");
        }
        for entry in [json!(5), json!(-1_001_234_567_890_i64), json!(null)] {
            let document = json!({"channels": {"telegram": {"groupAllowFrom": [entry]}}});
            assert!(paths(&document).is_empty(), "{entry:?}");
        }
        let elsewhere = json!({
            "commands": {"ownerAllowFrom": ["telegram:@ada", "tg:Ada Lovelace", "Ada Lovelace", "discord:a b"]},
            "tools": {"elevated": {"allowFrom": {"telegram": ["Ada L", 7], "discord": ["a b"]}}},
        });
        assert_eq!(paths(&elsewhere), ["tools.elevated.allowFrom.telegram.0", "commands.ownerAllowFrom.1"]);
        let lists = json!({"-1": {"allowFrom": ["a b"], "topics": {"2": {"allowFrom": ["c d"]}}}});
        assert_eq!(
            paths(&json!({"channels": {"telegram": {"accounts": {"w": {"groups": lists}}}}})),
            [
                "channels.telegram.accounts.w.groups.-1.allowFrom.0",
                "channels.telegram.accounts.w.groups.-1.topics.2.allowFrom.0",
            ]
        );
    }
}
