//! Settings of `approvals.exec` by which nobody is asked: they name what is not there.

use openclaw_protocol::AgentId;
use regex::Regex;
use serde_json::Value;

use super::whole::is_channel;
use crate::Issue;
use crate::mention_pattern::regex_fault;
use crate::value_path::items;

const KEY: &str = "approvals.exec";

/// The warnings of a valid document.
pub(super) fn check(document: &Value) -> Vec<Issue> {
    let Some(exec) =
        document.pointer("/approvals/exec").filter(|exec| exec.get("enabled") != Some(&false.into()))
    else {
        return Vec::new();
    };
    let texts = |key: &str| -> Vec<(usize, String)> {
        let texts = items(exec.get(key)).enumerate();
        texts.filter_map(|(at, text)| Some((at, text.as_str()?.to_owned()))).collect()
    };
    let mut found = Vec::new();
    let mut warn = |key: String, text: String| found.push(Issue::new(format!("{KEY}.{key}"), text));
    let mode = exec.get("mode").and_then(Value::as_str).unwrap_or("session");
    if matches!(mode, "targets" | "both") && items(exec.get("targets")).next().is_none() {
        warn(
            "mode".to_owned(),
            format!("is \"{mode}\", but approvals.exec.targets names nobody who could be asked"),
        );
    }
    for (at, target) in items(exec.get("targets")).enumerate() {
        if let Some(channel) = target.get("channel").and_then(Value::as_str)
            && !is_channel(channel.trim())
        {
            warn(
                format!("targets.{at}.channel"),
                format!("unknown channel \"{channel}\": nobody is asked there"),
            );
        }
    }
    for (at, pattern) in texts("sessionFilter") {
        if let Err(error) = Regex::new(&pattern) {
            let why = regex_fault(&error);
            let text = format!(
                "\"{pattern}\" is no regular expression ({why}) and counts only as part of a session key"
            );
            warn(format!("sessionFilter.{at}"), text);
        }
    }
    let known = agent_ids(document);
    for (at, agent) in texts("agentFilter") {
        if !known.contains(&agent) {
            let text = format!(
                "there is no agent \"{agent}\" (there is: {}): nobody is asked about it",
                known.join(", ")
            );
            warn(format!("agentFilter.{at}"), text);
        }
    }
    found
}

/// The agents that there are, as runs are named by.
pub(super) fn agent_ids(document: &Value) -> Vec<String> {
    let named = items(document.pointer("/agents/list")).filter_map(|entry| entry.get("id")?.as_str());
    let mut ids: Vec<String> = named.map(|id| AgentId::normalize(id).to_string()).collect();
    if ids.is_empty() {
        ids.push(AgentId::default().to_string());
    }
    ids
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_asks_nobody_is_said() {
        let rows = [
            (json!({"enabled": true}), vec![]),
            (json!({"enabled": true, "mode": "targets"}), vec!["approvals.exec.mode"]),
            (json!({"enabled": true, "mode": "both", "targets": []}), vec!["approvals.exec.mode"]),
            (json!({"enabled": false, "mode": "both", "agentFilter": ["x"]}), vec![]),
            (
                json!({
                    "enabled": true, "mode": "both", "agentFilter": ["main", "mian"], "sessionFilter": ["telegram:", "(", "^agent:.*$"],
                    "targets": [{"channel": "telegram", "to": "1"}, {"channel": "telegrm", "to": "1"}],
                }),
                vec![
                    "approvals.exec.targets.1.channel",
                    "approvals.exec.sessionFilter.1",
                    "approvals.exec.agentFilter.1",
                ],
            ),
        ];
        for (exec, keys) in rows {
            let found = check(&json!({"approvals": {"exec": exec.clone()}}));
            let found: Vec<_> = found.into_iter().map(|issue| issue.path).collect();
            assert_eq!(found, keys, "{exec}");
        }
        let listed = json!({"agents": {"list": [{"id": "Work"}]}, "approvals": {"exec": {"agentFilter": ["work", "main"]}}});
        let found = check(&listed);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].line().contains("there is no agent \"main\" (there is: work)"), "{found:?}");
    }
}
