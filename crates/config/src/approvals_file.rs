//! Check on `exec-approvals.json`: tells for whose commands its rules are not used.

use crate::Config;

/// Says for whose commands the rules of `exec-approvals.json` do not hold, in one sentence for people. `None` where they hold for all
/// agents. Elevated commands, and those of sessions with a host of their own (`/exec`), are another matter.
pub fn unheeded_approvals(config: &Config) -> Option<String> {
    let agents = config.agent_ids();
    let without: Vec<_> = agents
        .iter()
        .map(|id| (id, config.agent(id).exec))
        .filter(|(_, exec)| !exec.heeds_approvals_file())
        .collect();
    let (_, first) = without.first()?;
    let whose = if without.len() == agents.len() {
        "commands that are not elevated".to_owned()
    } else {
        let names: Vec<String> = without.iter().map(|(id, _)| id.to_string()).collect();
        format!("commands of {} that are not elevated", names.join(", "))
    };
    let held = match first.host {
        Some(host) => format!("with tools.exec.host=gateway (now: tools.exec.host={})", host.as_str()),
        None => "with tools.exec.host=gateway, or tools.exec.security or tools.exec.ask set (now: none of them is)".to_owned(),
    };
    Some(format!("The rules hold only {held}: {whose} run without them."))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn who_is_not_held_to_the_file_is_named() {
        let says = |document: Value| {
            let config: Config = serde_json::from_value(document).unwrap();
            unheeded_approvals(&config)
        };
        let unset = "The rules hold only with tools.exec.host=gateway, or tools.exec.security or tools.exec.ask set (now: none of \
                     them is): commands that are not elevated run without them.";
        assert_eq!(says(json!({})).as_deref(), Some(unset));
        let sandbox = says(json!({"tools": {"exec": {"host": "sandbox"}}})).unwrap();
        assert!(sandbox.contains("(now: tools.exec.host=sandbox)"), "{sandbox}");
        assert_eq!(says(json!({"tools": {"exec": {"host": "gateway"}}})), None);
        assert_eq!(says(json!({"tools": {"exec": {"ask": "off"}}})), None);
        let some = says(json!({"agents": {"list": [
            {"id": "main", "tools": {"exec": {"host": "gateway"}}}, {"id": "work"},
        ]}}));
        assert!(some.unwrap().contains(": commands of work that are not elevated"));
    }
}
