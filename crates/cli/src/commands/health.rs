//! `openclaw health` (spec `cli.md` §3.2).

use openclaw_protocol::Call as _;
use openclaw_protocol::params::health::{AgentHealth, Health, HealthSnapshot};
use serde_json::{Value, json};

use crate::args::{HealthArgs, TargetArgs};
use crate::client::{self, AwaitedResponse, DEFAULT_TIMEOUT, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

pub(super) fn run(args: &HealthArgs, context: &CliContext) -> CommandResult {
    let health = ask(context, &args.target, json!({ "probe": true }))?;
    if args.json {
        output::json(&health);
    } else {
        print(health)?;
    }
    Ok(0)
}

/// Health snapshot from the gateway.
pub(super) fn ask(context: &CliContext, target: &TargetArgs, params: Value) -> Result<Value, CommandFailure> {
    let timeout = client::timeout_of(target.timeout.as_deref(), DEFAULT_TIMEOUT)?;
    let flags = TargetFlags::from(target);
    client::block_on(client::call(context, &flags, Health::NAME, params, AwaitedResponse::First, timeout))
}

/// Prints it for people.
pub(super) fn print(health: Value) -> Result<(), CommandFailure> {
    text(&client::read::<Health>(health, "health")?).iter().for_each(|line| output::row(line));
    Ok(())
}

fn text(health: &HealthSnapshot) -> Vec<String> {
    let mut lines: Vec<String> =
        health.channel_order.iter().flat_map(|id| channel_lines(health, id)).collect();
    let name = |agent: &AgentHealth| {
        format!("{}{}", agent.agent_id, if agent.is_default { " (default)" } else { "" })
    };
    let names: Vec<String> = health.agents.iter().map(name).collect();
    lines.push(format!("Agents: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") }));
    if let Some(AgentHealth { agent_id, heartbeat, sessions, .. }) =
        health.agents.iter().find(|agent| agent.is_default)
    {
        let every = heartbeat.every_ms.map_or("disabled", |_| &heartbeat.every);
        lines.push(format!("Heartbeat interval: {every} ({agent_id})"));
        lines.push(format!("Session store ({agent_id}): {} ({} entries)", sessions.path, sessions.count));
        lines.extend(
            sessions.recent.iter().map(|row| {
                format!("- {} ({})", row.key, row.age.map_or("no activity".to_owned(), output::age))
            }),
        );
    }
    if health.draining {
        lines.push(
            "Restarting: it waits for runs to end; messages are taken, and answered after that.".to_owned(),
        );
    }
    lines.extend(health.absent_features.iter().map(|absent| absent.message.clone()));
    lines.extend(health.unmet_protections.iter().map(|unmet| format!("Refused: {}", unmet.message)));
    lines
}

/// A line for the platform, which tells of its default account, and one for each other account that does not work.
fn channel_lines(health: &HealthSnapshot, id: &str) -> Vec<String> {
    let Some(channel) = health.channels.get(id) else { return Vec::new() };
    let label = health.channel_labels.get(id).and_then(Value::as_str).unwrap_or(id);
    let accounts = channel.get("accounts").and_then(Value::as_object);
    let others = accounts.into_iter().flatten().filter(|(name, account)| {
        let is_bad = account.pointer("/probe/ok") == Some(&Value::Bool(false));
        is_bad && channel.get("accountId").and_then(Value::as_str) != Some(name.as_str())
    });
    let others = others.map(|(name, account)| format!("{label} {name}: {}", state(account)));
    std::iter::once(format!("{label}: {}", state(channel))).chain(others).collect()
}

/// Status of an account, in words.
fn state(account: &Value) -> String {
    let text = |pointer: &str| account.pointer(pointer).and_then(Value::as_str);
    let is = |key: &str| account.get(key) == Some(&Value::Bool(true));
    match account.pointer("/probe/ok") {
        Some(Value::Bool(true)) => {
            let name = text("/probe/bot/username").map(|name| format!(" (@{name})"));
            format!("ok{}", name.unwrap_or_default())
        }
        _ if account.get("enabled") == Some(&Value::Bool(false)) => {
            text("/lastError").map_or_else(|| "disabled".to_owned(), |why| format!("disabled: {why}"))
        }
        Some(_) => {
            let status = account.pointer("/probe/status").and_then(Value::as_u64);
            let status = status.map_or("unknown".to_owned(), |status| status.to_string());
            format!("failed ({status}) - {}", text("/probe/error").unwrap_or("no answer"))
        }
        None if account.get("linked").is_some() => {
            if is("linked") { "linked" } else { "not linked" }.to_owned()
        }
        None => if is("configured") { "configured" } else { "not configured" }.to_owned(),
    }
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
        assert_eq!(text(&serde_json::from_value(health.clone()).unwrap()), expect);
    }
}
