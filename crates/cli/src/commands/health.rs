//! `openclaw health` (spec `cli.md` §3.2).

use serde_json::{Value, json};

use crate::args::HealthArgs;
use crate::client::{self, DEFAULT_TIMEOUT, TargetFlags, Wait};
use crate::context::Context;
use crate::failure::Outcome;
use crate::output;

pub(super) fn run(args: &HealthArgs, context: &Context) -> Outcome {
    let timeout = client::timeout_of(args.target.timeout.as_deref(), DEFAULT_TIMEOUT)?;
    let flags = TargetFlags::from(&args.target);
    let health = client::block_on(client::call(
        context,
        &flags,
        "health",
        json!({ "probe": true }),
        Wait::First,
        timeout,
    ))?;
    if args.json {
        output::json(&health);
    } else {
        text(&health).iter().for_each(|line| output::line(line));
    }
    Ok(0)
}

/// The snapshot for people.
pub(super) fn text(health: &Value) -> Vec<String> {
    let list = |pointer: &str| health.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut lines: Vec<String> =
        list("/channelOrder").iter().filter_map(|id| channel_line(health, id.as_str()?)).collect();
    let agents = list("/agents");
    let names: Vec<String> = agents
        .iter()
        .filter_map(|agent| {
            let id = agent.get("agentId")?.as_str()?;
            let default = if agent.get("isDefault") == Some(&Value::Bool(true)) { " (default)" } else { "" };
            Some(format!("{id}{default}"))
        })
        .collect();
    lines.push(format!("Agents: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") }));
    let default = agents.iter().find(|agent| agent.get("isDefault") == Some(&Value::Bool(true)));
    if let Some(agent) = default {
        let id = agent.get("agentId").and_then(Value::as_str).unwrap_or_default();
        let enabled = agent.pointer("/heartbeat/everyMs").is_some_and(Value::is_number);
        let every = agent.pointer("/heartbeat/every").and_then(Value::as_str).filter(|_| enabled);
        lines.push(format!("Heartbeat interval: {} ({id})", every.unwrap_or("disabled")));
        lines.extend(sessions_lines(agent, id));
    }
    lines.extend(
        list("/unmetProtections")
            .iter()
            .filter_map(|unmet| Some(format!("Refused: {}", unmet.get("message")?.as_str()?))),
    );
    lines
}

fn channel_line(health: &Value, id: &str) -> Option<String> {
    let channel = health.pointer("/channels")?.get(id)?;
    let label = health.get("channelLabels").and_then(|labels| labels.get(id)?.as_str()).unwrap_or(id);
    let text = |pointer: &str| channel.pointer(pointer).and_then(Value::as_str);
    let is = |key: &str| channel.get(key) == Some(&Value::Bool(true));
    let state = match channel.pointer("/probe/ok") {
        Some(Value::Bool(true)) => "ok".to_owned(),
        Some(_) => format!("failed (unknown) - {}", text("/probe/error").unwrap_or("no answer")),
        None if channel.get("linked").is_some() => {
            if is("linked") { "linked" } else { "not linked" }.to_owned()
        }
        None => if is("configured") { "configured" } else { "not configured" }.to_owned(),
    };
    Some(format!("{label}: {state}"))
}

fn sessions_lines(agent: &Value, id: &str) -> Vec<String> {
    let Some(sessions) = agent.get("sessions") else { return Vec::new() };
    let path = sessions.get("path").and_then(Value::as_str).unwrap_or_default();
    let count = sessions.get("count").and_then(Value::as_u64).unwrap_or_default();
    let recent = sessions.get("recent").and_then(Value::as_array).into_iter().flatten();
    let mut lines = vec![format!("Session store ({id}): {path} ({count} entries)")];
    lines.extend(recent.filter_map(|row| {
        let age = row.get("age").and_then(Value::as_i64).map_or("no activity".to_owned(), output::age);
        Some(format!("- {} ({age})", row.get("key")?.as_str()?))
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_snapshot_reads_as_recorded() {
        let runs: Value = serde_json::from_str(include_str!("../../tests/golden/cli-health.json")).unwrap();
        let run = |argv: Value| runs.as_array().unwrap().iter().find(|run| run["argv"] == argv).unwrap();
        let health = &run(json!(["openclaw", "health", "--json"]))["stdoutJson"];
        let expect = run(json!(["openclaw", "health"]))["stdout"].as_array().unwrap();
        let expect: Vec<&str> =
            expect.iter().map(|line| line.as_str().unwrap()).filter(|line| !line.is_empty()).collect();
        assert_eq!(text(health), expect);
    }
}
