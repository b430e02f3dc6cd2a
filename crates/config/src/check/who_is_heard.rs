//! Policies and lists of chat platforms that let in other people than they seem to, or nobody (spec `channels.md` §1.2). Each is a warning:
//! such a file is valid, and OpenClaw 2026.2.9 takes it as it is.

use serde_json::{Map, Value};

use super::rules::places;
use crate::Issue;
use crate::document_rule::lets_all_in;
use crate::registry::{self, ChannelInfo, PeopleLists, PolicyPlace};
use crate::value_path::{items, join};

/// A list of people of all platforms. Those of one are those that say so.
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
    for platform in registry::CHANNELS {
        found.extend(platform.people.iter().flat_map(|people| unmatched(document, platform, people)));
    }
    found
}

/// Warnings on entries that can match nobody, in all lists of a platform's people.
fn unmatched(document: &Value, platform: &ChannelInfo, people: &PeopleLists) -> Vec<Issue> {
    let id = platform.id;
    let of_section = people.lists.iter().map(|list| platform.path_of(&format!("{list}.*")));
    let of_accounts = people.lists.iter().map(|list| platform.path_of(&format!("accounts.*.{list}.*")));
    let elevated = ["tools", "agents.list.*.tools"].map(|tools| format!("{tools}.elevated.allowFrom.{id}.*"));
    let patterns: Vec<String> = of_section.chain(of_accounts).chain(elevated).collect();
    let own = patterns.iter().flat_map(|pattern| places(document, pattern));
    let says_so = |entry: &Value| {
        let entry = entry.as_str().map(str::trim);
        entry.is_some_and(|entry| platform.bare_entry(entry) != entry)
    };
    let owners = places(document, OWNERS).into_iter().filter(|(_, entry)| says_so(entry));
    own.chain(owners).filter_map(|(path, entry)| nobody(people, path, entry)).collect()
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

/// Warning on an entry that can match nobody.
fn nobody(people: &PeopleLists, path: String, entry: &Value) -> Option<Issue> {
    let text = match entry {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(Issue::new(path, (people.fault)(&text)?))
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
