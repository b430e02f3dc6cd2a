//! `session.scope: "global"`: the one session of everybody is `main` to all who are told of it. Also what a sub-agent's row adds up.

use std::path::Path;

use anyhow::Result;
use openclaw_testkit::GatewaySetup;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply, ScriptedUsage};
use serde_json::{Value, json};

use super::client::OwnClient;
use super::original::Original;
use super::report::Report;

/// Message that has a sub-agent started, and its task.
const DELEGATE: &str = "please delegate";
const TASK: &str = "dig a hole";

pub(super) async fn check(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = ModelServer::answering(reply).await;
    let config = json!({"session": {"scope": "global"}});
    let mut gateway = GatewaySetup::new(program).fake_model(&model.v1()).config(config).start().await?;
    let mut client = OwnClient::open(original, &gateway)?;
    client.hello().await?;
    client.say("main", DELEGATE, "run-1").await?;
    client.end("run-1").await?;
    client.end(":announce").await?;
    client.say("main", "/status", "run-2").await?;
    let card = client.end("run-2").await?["message"].to_string();
    report.check("the status card calls the shared session main", card.contains("Session: main •"), &card);

    let children = client.request("sessions.list", json!({"spawnedBy": "main"})).await?;
    let child = children["sessions"][0].clone();
    report.check("a sub-agent was spawned by main", child["spawnedBy"] == "main", &format!("{children:#}"));
    let history = client.request("chat.history", json!({"sessionKey": child["key"]})).await?;
    let by_main = history["messages"][0]["provenance"]["sourceSessionKey"] == "main";
    report.check("its task came from main", by_main, &format!("{history:#}"));

    gateway.terminate().await?;
    let listed = original.json(&gateway, &["sessions", "--json"]).await?;
    let mut rows = listed["sessions"].as_array().into_iter().flatten();
    let row = rows.find(|row| row["key"] == child["key"]).cloned().unwrap_or_default();
    let added = (&row["inputTokens"], &row["outputTokens"]) == (&Value::from(750), &Value::from(25));
    report.check("a sub-agent's row counts its run and its announcement", added, &format!("{row:#}"));
    Ok(())
}

/// Hands a task to a sub-agent, whose run and announcement use different numbers of tokens.
fn reply(request: &Captured) -> Reply {
    let said = request.last_user_text();
    let system = request.messages().first().map(|message| message["content"].to_string()).unwrap_or_default();
    let used = |input, output| ScriptedUsage { input, output, ..ScriptedUsage::default() };
    match () {
        () if request.ends_with_tool_result() => Reply::text("delegated"),
        () if said.contains(DELEGATE) => Reply::tool("call-1", "sessions_spawn", &json!({"task": TASK})),
        () if system.contains("Sub-agent announce step") => {
            Reply::text("The hole is dug.").usage(used(50, 5))
        }
        () => Reply::text("dug").usage(used(700, 20)),
    }
}
