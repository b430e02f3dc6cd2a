//! Which tools an agent has in a group: `groups.<id>.tools` and `toolsBySender` (spec `channels.md` §2.4).

use openclaw_config::settings::ToolPolicy;
use serde_json::Value;

use super::settings::{AccessSettings, Group};
use crate::Sender;

/// What the settings of a group say of tools. A policy that can't be read lets none through.
pub fn policy_in(settings: &AccessSettings, group: &str, sender: Option<&Sender>) -> Option<ToolPolicy> {
    let groups = &settings.groups;
    // Session keys have ids in lower case.
    let own = groups.iter().find(|(id, _)| id.eq_ignore_ascii_case(group)).map(|(_, group)| group);
    let any = groups.get("*");
    let found = own.into_iter().chain(any).find_map(|group| written(group, sender))?;
    Some(serde_json::from_value(found.clone()).unwrap_or_else(|error| {
        tracing::error!(group, %error, "the tools of a group can't be read: it has none");
        nothing()
    }))
}

/// Lets no tool through.
pub fn nothing() -> ToolPolicy {
    ToolPolicy { deny: Some(vec!["*".to_owned()]), ..ToolPolicy::default() }
}

fn written<'a>(group: &'a Group, sender: Option<&Sender>) -> Option<&'a Value> {
    let is_set = |value: &&Value| !value.is_null();
    by_sender(group, sender).or(group.tools.as_ref()).filter(is_set)
}

/// The id goes before names, which can be given up and taken by somebody else.
fn by_sender<'a>(group: &'a Group, sender: Option<&Sender>) -> Option<&'a Value> {
    let rules = group.tools_by_sender.as_ref()?.as_object()?;
    let rule = |wanted: &str| {
        let plain = |key: &str| key.trim().trim_start_matches('@').to_lowercase();
        rules.iter().find(|(key, _)| plain(key) == plain(wanted)).map(|(_, rule)| rule)
    };
    let names = sender.into_iter().flat_map(|sender| {
        [Some(&sender.id), sender.phone.as_ref(), sender.username.as_ref(), sender.name.as_ref()]
    });
    let named = names.flatten().filter(|name| !name.is_empty() && *name != "*").find_map(|name| rule(name));
    named.or_else(|| rules.get("*"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_sender_goes_before_the_group_and_the_group_before_any_other() {
        let settings: AccessSettings = serde_json::from_value(json!({"groups": {
            "-1": {"toolsBySender": {"@Ada": {"allow": ["by name"]}, "7": {"allow": ["by id"]}, "+1555": {"allow": ["by phone"]}}, "tools": {"allow": ["of group"]}},
            "-2": {},
            "-3": {"tools": 5},
            "*": {"tools": {"allow": ["of any"]}, "toolsBySender": {"*": {"allow": ["of anybody"]}}},
        }}))
        .unwrap();
        let sender = |id: &str, username: Option<&str>, phone: Option<&str>| Sender {
            id: id.to_owned(),
            username: username.map(str::to_owned),
            phone: phone.map(str::to_owned),
            ..Sender::default()
        };
        let rows = [
            ("-1", Some(sender("7", Some("ada"), None)), Some("by id")),
            ("-1", Some(sender("8", Some("ada"), None)), Some("by name")),
            ("-1", Some(sender("8", None, Some("+1555"))), Some("by phone")),
            ("-1", Some(sender("8", None, None)), Some("of group")),
            ("-1", None, Some("of group")),
            ("-2", Some(sender("7", None, None)), Some("of anybody")),
            ("-9", None, Some("of anybody")),
            ("-3", None, None),
        ];
        for (group, sender, expect) in rows {
            let found = policy_in(&settings, group, sender.as_ref()).unwrap();
            let expect = expect.map_or_else(nothing, |name| ToolPolicy {
                allow: Some(vec![name.to_owned()]),
                ..ToolPolicy::default()
            });
            assert_eq!(found, expect, "{group} {sender:?}");
        }
        assert_eq!(policy_in(&AccessSettings::default(), "-1", None), None);
    }
}
