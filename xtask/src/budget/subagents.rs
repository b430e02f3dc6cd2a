//! What it takes to start very many sub-agents at once.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use openclaw_testkit::GatewaySetup;
use openclaw_testkit::model_server::{ModelServer, Reply, ScriptedCall};
use serde_json::{Value, json};

use super::Row;

/// Sub-agents that one answer of the model starts.
const CHILDREN: usize = 1_000;
/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// When the model asked for the children, and when it was told that all are accepted.
#[derive(Debug, Default)]
struct Times {
    asked: Option<Instant>,
    told: Option<Instant>,
    accepted: usize,
}

pub(super) async fn rows(program: &Path) -> Result<Vec<Row>> {
    let times = Arc::new(Mutex::new(Times::default()));
    let noted = Arc::clone(&times);
    let model = ModelServer::answering(move |request| {
        let mut times = noted.lock().unwrap_or_else(PoisonError::into_inner);
        if !request.last_user_text().contains("delegate") {
            return Reply::text("done");
        }
        if !request.ends_with_tool_result() {
            times.asked = Some(Instant::now());
            let task = |n| {
                ScriptedCall::new(&format!("c{n}"), "sessions_spawn", &json!({"task": format!("task {n}")}))
            };
            return Reply::tools((0..CHILDREN).map(task));
        }
        times.told = Some(Instant::now());
        times.accepted = request.body.to_string().matches("accepted").count();
        Reply::text("all are at work")
    });
    let model = model.await.forgetful();
    let config = json!({"agents": {"defaults": {"subagents": {"announceMode": "raw", "maxConcurrent": 8}}}});
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).config(config).start().await?;
    let mut client = gateway.client().await?;
    let params = json!({"sessionKey": "main", "message": "delegate", "idempotencyKey": "r1"});
    client.request("chat.send", params).await?;
    client.event("chat", |event| event["runId"] == "r1" && event["state"] == "final").await?;
    drop(client);
    let (asked, told) = {
        let times = times.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(times.accepted >= CHILDREN, "only {} sub-agents were accepted", times.accepted);
        (times.asked.context("nothing was asked")?, times.told.context("nothing was told")?)
    };
    let path = gateway.state_dir().join("subagents/runs.json");
    while over(&path) < CHILDREN {
        ensure!(asked.elapsed() < PATIENCE, "only {} sub-agents are told of", over(&path));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(vec![
        Row::limited(
            "1,000 sub-agents accepted, 8 at work",
            "ms",
            (told - asked).as_secs_f64() * 1e3,
            1_000.0,
        ),
        Row::shown("the same until all are told of", "ms", asked.elapsed().as_secs_f64() * 1e3),
    ])
}

/// How many of the list nothing is owed for.
fn over(path: &Path) -> usize {
    let list: Value =
        std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let rows = list["runs"].as_object().into_iter().flat_map(serde_json::Map::values);
    rows.filter(|row| row["cleanupCompletedAt"].is_number()).count()
}
