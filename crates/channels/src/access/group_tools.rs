//! Tool policies of groups: `groups.<id>.tools` and `toolsBySender` (spec `channels.md` §2.4). People are matched by the ids and names in
//! [`ListedPerson`], never by what they call themselves.

use openclaw_config::settings::ToolPolicy;
use serde_json::{Map, Value};

use super::listed::{ListedPerson, is_same};
use super::settings::{AccessSettings, GroupSettings};

/// Caller whose rules apply in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice<'a> {
    /// A sender who has spoken there.
    Of(ListedPerson<'a>),
    /// No sender, only the group as such: the request comes from elsewhere.
    Nobodys,
    /// The tools of everybody together: nobody asks, and anybody may have been the cause.
    Anybodys,
}

/// Returns the tool policies of a group. All of them apply; one that can't be read lets no tool through.
pub fn policies_in(
    settings: &AccessSettings,
    channel: &str,
    group: &str,
    voice: Voice<'_>,
) -> Vec<ToolPolicy> {
    let groups = &settings.groups;
    // Session keys have ids in lower case.
    let own = groups.iter().find(|(id, _)| id.eq_ignore_ascii_case(group)).map(|(_, group)| group);
    let mut levels = own.into_iter().chain(groups.get("*"));
    let found: Vec<&Value> = match voice {
        Voice::Of(listed) => levels
            .find_map(|group| written(group, |rules| rule_of(rules, listed, channel)))
            .into_iter()
            .collect(),
        Voice::Nobodys => {
            levels.find_map(|group| written(group, |rules| rules.get("*"))).into_iter().collect()
        }
        Voice::Anybodys => everybodys(levels),
    };
    found.into_iter().map(|policy| read(group, policy)).collect()
}

fn read(group: &str, policy: &Value) -> ToolPolicy {
    serde_json::from_value(policy.clone()).unwrap_or_else(|error| {
        tracing::error!(group, %error, "the tools of a group can't be read: it has none");
        nothing()
    })
}

/// Returns a policy that lets no tool through.
pub fn nothing() -> ToolPolicy {
    ToolPolicy { deny: Some(vec!["*".to_owned()]), ..ToolPolicy::default() }
}

fn rules(group: &GroupSettings) -> Option<&Map<String, Value>> {
    group.tools_by_sender.as_ref()?.as_object()
}

fn written<'a>(
    group: &'a GroupSettings,
    own: impl FnOnce(&'a Map<String, Value>) -> Option<&'a Value>,
) -> Option<&'a Value> {
    rules(group).and_then(own).or(group.tools.as_ref()).filter(|value| !value.is_null())
}

/// Returns the rule for a sender, else the rule for everybody else.
fn rule_of<'a>(rules: &'a Map<String, Value>, listed: ListedPerson<'_>, channel: &str) -> Option<&'a Value> {
    let rule = |known: &str| rules.iter().find(|(key, _)| is_same(key, known, channel)).map(|(_, rule)| rule);
    listed.known_by().find_map(rule).or_else(|| rules.get("*"))
}

/// Returns every rule that applies to somebody in the group. Rules of the next level count too,
/// unless this level has a rule for everybody.
fn everybodys<'a>(levels: impl Iterator<Item = &'a GroupSettings>) -> Vec<&'a Value> {
    let is_set = |value: &&Value| !value.is_null();
    let mut found = Vec::new();
    for group in levels {
        found.extend(rules(group).into_iter().flatten().map(|(_, rule)| rule).filter(is_set));
        let has_default = rules(group).is_some_and(|rules| rules.contains_key("*"));
        let shared = group.tools.as_ref().filter(|_| !has_default).filter(is_set);
        found.extend(shared);
        if has_default || shared.is_some() {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Sender;

    fn settings() -> AccessSettings {
        serde_json::from_value(json!({"groups": {
            "-1": {"toolsBySender": {"@Ada": {"allow": ["by name"]}, "7": {"allow": ["by id"]}, "+1555": {"allow": ["by phone"]}}, "tools": {"allow": ["of group"]}},
            "-2": {},
            "-3": {"tools": 5},
            "*": {"tools": {"allow": ["of any"]}, "toolsBySender": {"*": {"allow": ["of anybody"]}}},
        }}))
        .unwrap()
    }

    fn named(name: &str) -> ToolPolicy {
        ToolPolicy { allow: Some(vec![name.to_owned()]), ..ToolPolicy::default() }
    }

    #[test]
    fn the_sender_goes_before_the_group_and_the_group_before_any_other() {
        let sender = |id: &str, phone: Option<&str>| Sender {
            id: id.to_owned(),
            phone: phone.map(str::to_owned),
            // Anybody may call themselves what somebody else is known by.
            username: Some("ada".to_owned()),
            name: Some("7".to_owned()),
            ..Sender::default()
        };
        let (ada, none) = (["@ada".to_owned()], []);
        /// The group, who speaks there, the names that the account looked up for them, and whose policy holds.
        type Row<'a> = (&'a str, Option<Sender>, &'a [String], Option<&'a str>);
        let rows: [Row<'_>; 9] = [
            ("-1", Some(sender("7", None)), &none, Some("by id")),
            ("-1", Some(sender("8", None)), &ada, Some("by name")),
            ("-1", Some(sender("7", None)), &ada, Some("by id")),
            ("-1", Some(sender("8", Some("+1555"))), &none, Some("by phone")),
            ("-1", Some(sender("8", None)), &none, Some("of group")),
            ("-1", None, &none, Some("of group")),
            ("-2", Some(sender("7", None)), &none, Some("of anybody")),
            ("-9", None, &none, Some("of anybody")),
            ("-3", None, &none, None),
        ];
        for (group, sender, names, expect) in rows {
            let voice = match &sender {
                Some(sender) => Voice::Of(ListedPerson { sender, names }),
                None => Voice::Nobodys,
            };
            let found = policies_in(&settings(), "telegram", group, voice);
            assert_eq!(found, [expect.map_or_else(nothing, named)], "{group} {sender:?}");
        }
        assert_eq!(policies_in(&AccessSettings::default(), "telegram", "-1", Voice::Nobodys), []);
    }

    #[test]
    fn where_anybody_may_have_been_the_cause_the_rules_of_all_of_them_hold() {
        for (group, expect) in [
            ("-1", &["by phone", "by id", "by name", "of group"][..]),
            ("-2", &["of anybody"]),
            ("-9", &["of anybody"]),
        ] {
            let mut found = policies_in(&settings(), "telegram", group, Voice::Anybodys);
            let mut expect: Vec<ToolPolicy> = expect.iter().map(|name| named(name)).collect();
            found.sort();
            expect.sort();
            assert_eq!(found, expect, "{group}");
        }
    }
}
