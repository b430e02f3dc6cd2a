//! Sub-agents: each that was accepted ends in exactly one announcement, one skip or one recorded failure.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Tally;
use super::check::{PAUSE, log_of};
use crate::{GatewayUnderTest, WsClient};

/// Report of the end of a sub-agent.
pub(super) struct ChildReport {
    run: String,
    session: String,
    status: String,
    /// True if its reader may have seen it twice.
    is_flagged: bool,
    /// True if it went to a platform, which took it.
    is_delivered: bool,
}

/// Waits until nothing is owed for any sub-agent, and reads what came of each.
pub(super) async fn told(
    gateway: &GatewayUnderTest,
    socket: &mut WsClient,
    until: Instant,
) -> Result<Vec<ChildReport>> {
    let path = gateway.state_dir().join("subagents/runs.json");
    let rows = loop {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|_| r#"{"runs": {}}"#.to_owned());
        let list: Value = serde_json::from_str(&text).context("runs.json")?;
        let rows: Vec<Value> = list["runs"].as_object().context("runs")?.values().cloned().collect();
        let owed = rows.iter().find(|row| !row["cleanupCompletedAt"].is_number());
        // A child that a run has started at its end is listed a moment later.
        let spawned = read(gateway).map(|(_, spawned)| spawned);
        let is_listed = |session: &String| rows.iter().any(|row| row["childSessionKey"] == session.as_str());
        let unlisted = spawned.as_ref().map(|all| all.iter().find(|session| !is_listed(session)));
        if owed.is_none() && matches!(unlisted, Ok(None)) {
            break rows;
        }
        if Instant::now() > until {
            if let Some(owed) = owed {
                let run = owed["runId"].as_str().unwrap_or_default();
                bail!("a sub-agent is never told of: {owed:#}\nthe log:\n{}", log_of(gateway, &[run]));
            }
            // A file that can't be read meanwhile is being written.
            bail!("{unlisted:?} was accepted and is never listed\nthe log:\n{}", log_of(gateway, &[]));
        }
        tokio::time::sleep(PAUSE).await;
    };
    let mut told = Vec::new();
    for row in rows {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let status = row["announced"]["status"].as_str().unwrap_or_default().to_owned();
        ensure!(["sent", "skipped", "failed"].contains(&status.as_str()), "no verdict: {row:#}");
        let run = text("runId");
        let deliveries = deliveries_of(socket, &format!("{run}:announce"), until).await?;
        told.push(ChildReport {
            session: text("childSessionKey"),
            status,
            is_flagged: deliveries.iter().any(|delivery| delivery["uncertain"] == true),
            is_delivered: !deliveries.is_empty()
                && deliveries.iter().all(|delivery| delivery["state"] == "sent"),
            run,
        });
    }
    Ok(told)
}

/// The deliveries of an announcement, once all are over; none where it was made by no run.
async fn deliveries_of(socket: &mut WsClient, run: &str, until: Instant) -> Result<Vec<Value>> {
    loop {
        let traced = socket.request("trace", json!({"id": run})).await?;
        let runs = traced["runs"].as_array().context("runs")?;
        ensure!(runs.len() <= 1, "{run} is {} runs: {traced:#}", runs.len());
        let deliveries: Vec<Value> =
            runs.iter().flat_map(|run| run["deliveries"].as_array().cloned().unwrap_or_default()).collect();
        let is_over = |delivery: &Value| matches!(delivery["state"].as_str(), Some("sent" | "failed"));
        if deliveries.iter().all(is_over) {
            return Ok(deliveries);
        }
        ensure!(Instant::now() < until, "{run} is never delivered: {traced:#}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Compares the report of each with what requesters and readers have of it. Reports in an agent's
/// own words can't be counted.
pub(super) fn judge(
    gateway: &GatewayUnderTest,
    made: &[Value],
    all: Vec<ChildReport>,
    tally: &mut Tally,
) -> Result<()> {
    let (noted, spawned) = read(gateway)?;
    let listed: BTreeSet<&str> = all.iter().map(|told| told.session.as_str()).collect();
    for session in &spawned {
        ensure!(listed.contains(session.as_str()), "{session} was accepted after all was told");
    }
    for told in all {
        let ChildReport { run, session, status, is_flagged, is_delivered } = told;
        let noted = noted.get(&session).copied().unwrap_or_default();
        let shown = made.iter().filter(|made| {
            let text = made["text"].as_str().unwrap_or_default();
            text.starts_with("Status: ") && text.contains(&session)
        });
        let shown = shown.count();
        let is_told_once = match (status.as_str(), noted) {
            ("sent", Noted { posted: 1, asked: 0 }) => {
                (shown >= 1 || !is_delivered) && (shown <= 1 || is_flagged)
            }
            // The agent was asked to tell it, alone or with others.
            ("sent", Noted { posted: 0, asked }) => asked <= 1 && shown == 0,
            ("skipped" | "failed", Noted { posted, asked }) => {
                posted + asked <= usize::from(status == "failed") && shown <= 1
            }
            _ => false,
        };
        if !is_told_once {
            bail!(
                "sub-agent {run} ({session}) is {status}, but noted {noted:?} and shown {shown} times (flagged {is_flagged})\n\
                 the log:\n{}",
                log_of(gateway, &[&run])
            );
        }
        *tally.children.entry(status).or_default() += 1;
    }
    Ok(())
}

/// Entries of transcripts about one sub-agent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Noted {
    /// Posted in its requester's session.
    posted: usize,
    /// Number of times that it was told to its requester's agent.
    asked: usize,
}

/// Entries of all transcripts about each sub-agent, by its session, and the sessions that tools
/// have answered with.
fn read(gateway: &GatewayUnderTest) -> Result<(BTreeMap<String, Noted>, BTreeSet<String>)> {
    let (mut noted, mut spawned) = (BTreeMap::<String, Noted>::new(), BTreeSet::new());
    for file in std::fs::read_dir(gateway.state_dir().join("agents/main/sessions"))? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !name.contains(".jsonl") || name.ends_with(".lock") {
            continue;
        }
        for line in std::fs::read_to_string(&path)?.lines() {
            let entry: Value = serde_json::from_str(line).with_context(|| format!("{name}: {line}"))?;
            let message = &entry["message"];
            let text = message["content"].to_string();
            match message["role"].as_str() {
                Some("assistant") if message["provenance"]["kind"] == "inter_session" => {
                    for session in sessions_in(&text) {
                        noted.entry(session).or_default().posted += 1;
                    }
                }
                Some("user") if text.contains("A subagent task") => {
                    for session in sessions_in(&text) {
                        noted.entry(session).or_default().asked += 1;
                    }
                }
                Some("toolResult") if message["toolName"] == "sessions_spawn" => {
                    let session = message["details"]["childSessionKey"].as_str().map(str::to_owned);
                    spawned.extend(session.filter(|_| message["details"]["status"] == "accepted"));
                }
                _ => {}
            }
        }
    }
    Ok((noted, spawned))
}

/// The sessions that lines of numbers name.
fn sessions_in(text: &str) -> Vec<String> {
    let rest = text.split("• sessionKey ").skip(1);
    rest.map(|rest| rest.split(' ').next().unwrap_or_default().to_owned()).collect()
}
