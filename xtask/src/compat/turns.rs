//! Traces of a turn in a conversation and its row, and the part of the past that it is shown.

use std::path::Path;

use anyhow::{Context, Result};
use openclaw_testkit::GatewaySetup;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply, ScriptedUsage};
use serde_json::json;

use super::model;
use super::original::Original;
use super::report::Report;
use super::state::{transcript_of, turn};

/// A direct chat of its own.
const DIRECT: &str = "agent:main:telegram:dm:5";

pub(super) async fn check(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    memory_turn(program, original, report).await?;
    direct_history(program, original, report).await?;
    skills_snapshot(program, original, report).await
}

/// The turn that saves memory before a conversation is compacted.
async fn memory_turn(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = ModelServer::answering(|request| match request.last_user_text() {
        text if is_memory_turn(&text) => Reply::text("NO_REPLY"),
        _ => {
            Reply::text("Hello.").usage(ScriptedUsage { input: 9_000, output: 7, ..ScriptedUsage::default() })
        }
    })
    .await;
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    for text in ["first words", "second words"] {
        original.run(&gateway, &["agent", "--agent", "main", "--message", text]).await?;
    }
    let history = original.call(&gateway, "chat.history", &json!({"sessionKey": "main"})).await?.to_string();
    let made = model.requests().iter().any(|request| is_memory_turn(&request.last_user_text()));
    let shown = ["first words", "second words", "Hello."].iter().all(|text| history.contains(text));
    let hidden = !is_memory_turn(&history) && !history.contains("NO_REPLY");
    report.check("the turn that saves memory is hidden from the history", made && shown && hidden, &history);
    Ok(())
}

fn is_memory_turn(text: &str) -> bool {
    text.contains("memory flush") || text.contains("compacted: write")
}

/// `dmHistoryLimit` counts the turns before the new one.
async fn direct_history(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = ModelServer::answering(|request| Reply::text(&format!("shown {}", turns(request)))).await;
    let config = json!({"channels": {"telegram": {"enabled": false, "dmHistoryLimit": 1}}});
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).config(config).start().await?;
    let mut client = gateway.client().await?;
    turn(&mut client, DIRECT, "first", "run-1").await?;
    turn(&mut client, DIRECT, "second", "run-2").await?;
    let id = transcript_of(&gateway, DIRECT).await?.context("no direct session")?;
    let printed = original.run(&gateway, &["agent", "--session-id", &id, "--message", "third"]).await?.all();
    report.check(
        "a history limit of one shows one turn and the new one",
        printed.contains("shown 2"),
        &printed,
    );
    Ok(())
}

/// Number of messages of people in a request.
fn turns(request: &Captured) -> usize {
    request.messages().iter().filter(|message| message["role"] == "user").count()
}

async fn skills_snapshot(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    original.run(&gateway, &["agent", "--agent", "main", "--message", "hello"]).await?;
    for (method, params) in [
        ("sessions.patch", json!({"key": "main", "label": "patched"})),
        ("sessions.reset", json!({"key": "main"})),
    ] {
        let answer = original.call(&gateway, method, &params).await?;
        let kept = answer["entry"]["skillsSnapshot"]["skills"].is_array();
        report.check(&format!("the row has its skillsSnapshot after {method}"), kept, &format!("{answer:#}"));
    }
    Ok(())
}
