//! Unknown names in tool policies. Their list holds all the same: tools that it does not name are
//! not allowed, and tools that it was meant to deny are not denied (decision 70). So the names are
//! reported wherever the owner looks.

use std::fmt;

use openclaw_agent::tool_policy::is_known;
use openclaw_config::nearest;
use openclaw_config::settings::Config;
use openclaw_tools::CATALOGUE;
use openclaw_tools::sandbox::is_denied_by_default;
use serde_json::Value;

/// Sections in which policies stand.
const SECTIONS: [&str; 4] = ["tools", "agents", "channels", "gateway"];
/// Name of the key whose object is a policy; the other keys hold one policy for each member, by
/// model or by sender.
const POLICY: &str = "tools";
const POLICIES: [&str; 2] = ["byProvider", "toolsBySender"];

/// A list of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyList {
    Allow,
    AlsoAllow,
    Deny,
}

const LISTS: [(&str, PolicyList); 3] =
    [("allow", PolicyList::Allow), ("alsoAllow", PolicyList::AlsoAllow), ("deny", PolicyList::Deny)];

/// A name that stands for no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// The path of its list in the config.
    path: String,
    list: PolicyList,
    name: String,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, list, name } = self;
        let effect = match list {
            PolicyList::Allow | PolicyList::AlsoAllow => "it allows nothing",
            PolicyList::Deny => "it denies nothing",
        };
        write!(f, "{path} names \"{name}\", which is no tool or group of tools: {effect}.")?;
        match nearest(name, CATALOGUE.facts().map(|facts| facts.name)) {
            Some(meant) => write!(f, " Did you mean \"{meant}\"?"),
            None => Ok(()),
        }
    }
}

/// The unknown names of every policy: for all agents or one, by model, by group, by sender, of sandboxes and of sub-agents.
pub fn unknown_names(config: &Config) -> Vec<UnknownName> {
    let mut found = Vec::new();
    for section in SECTIONS {
        if let Some(value) = config.document().get(section) {
            look(value, section, section, &mut found);
        }
    }
    found
}

/// Searches a value whose path ends with `key`, and everything below it.
fn look(value: &Value, path: &str, key: &str, found: &mut Vec<UnknownName>) {
    if key == POLICY {
        of_policy(value, path, found);
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let path = format!("{path}.{name}");
                if POLICIES.contains(&key) {
                    of_policy(member, &path, found);
                }
                look(member, &path, name, found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                look(item, &format!("{path}.{at}"), "", found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn of_policy(policy: &Value, path: &str, found: &mut Vec<UnknownName>) {
    for (key, list) in LISTS {
        let entries =
            policy.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let names = entries.map(str::trim).filter(|name| !name.is_empty());
        let unknown = names.filter(|name| !is_known(&CATALOGUE, name) && !is_denied_by_default(name));
        found.extend(unknown.map(|name| UnknownName {
            path: format!("{path}.{key}"),
            list,
            name: name.to_owned(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_names_are_found_at_every_level() {
        let lists = json!({"allow": ["read", "reed"], "deny": ["exce", "group:fs"]});
        let mut tools = lists.clone();
        tools["alsoAllow"] = json!(["my-plugin"]);
        tools.as_object_mut().unwrap().remove("allow");
        tools["byProvider"] = json!({"openai/gpt-5.2": lists});
        tools["sandbox"] = json!({"tools": {"deny": ["browzer", "telegram"]}});
        tools["subagents"] = json!({"tools": lists});
        tools["agentToAgent"] = json!({"allow": ["work"]});
        let document = json!({
            "tools": tools,
            "agents": {"list": [{"id": "work", "tools": {"allow": ["no_such_tool"]}}]},
            "channels": {"telegram": {
                "groups": {"-1": {"tools": {"deny": ["exce"]}, "toolsBySender": {"id:7": {"allow": ["reed"]}}}},
                "accounts": {"second": {"groups": {"*": {"tools": {"allow": ["reed"]}}}}},
            }},
        });
        let environment = Environment::new([("HOME", "/nonexistent")], "/");
        let config = Config::from_json5(&document.to_string(), &environment).unwrap();
        let mut told: Vec<String> = unknown_names(&config).iter().map(ToString::to_string).collect();
        told.sort();
        let allows = |path: &str, name: &str| {
            format!("{path} names \"{name}\", which is no tool or group of tools: it allows nothing.")
        };
        let denies = |path: &str, name: &str| {
            format!("{path} names \"{name}\", which is no tool or group of tools: it denies nothing.")
        };
        let read = " Did you mean \"read\"?";
        let exec = " Did you mean \"exec\"?";
        let mut expect = vec![
            allows("agents.list.0.tools.allow", "no_such_tool"),
            allows("channels.telegram.accounts.second.groups.*.tools.allow", "reed") + read,
            denies("channels.telegram.groups.-1.tools.deny", "exce") + exec,
            allows("channels.telegram.groups.-1.toolsBySender.id:7.allow", "reed") + read,
            allows("tools.alsoAllow", "my-plugin"),
            allows("tools.byProvider.openai/gpt-5.2.allow", "reed") + read,
            denies("tools.byProvider.openai/gpt-5.2.deny", "exce") + exec,
            denies("tools.deny", "exce") + exec,
            denies("tools.sandbox.tools.deny", "browzer") + " Did you mean \"browser\"?",
            allows("tools.subagents.tools.allow", "reed") + read,
            denies("tools.subagents.tools.deny", "exce") + exec,
        ];
        expect.sort();
        assert_eq!(told, expect);
    }
}
