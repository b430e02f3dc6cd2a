//! Notifications that OpenClaw's own client gets on its connection: with `hello-ok`, of who is
//! present, and of messages that wait.

use std::path::Path;

use anyhow::Result;
use openclaw_testkit::GatewaySetup;
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use serde_json::{Value, json};

use super::client::{INSTANCE, OwnClient};
use super::model;
use super::original::Original;
use super::report::Report;

/// First parts of the names of events that 2.9 announces and this version never sends.
const NEVER_SENT: &[&str] = &["cron", "node", "talk", "voicewake"];

/// The report of a companion app.
const BEACON: &str = "Node: Mac (192.0.2.7) · app 1.2.3 · last input 12s ago · mode ui · reason launch";

pub(super) async fn check(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    greeted(program, original, report).await?;
    queued(program, original, report).await
}

async fn greeted(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let model = model().await;
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    let mut client = OwnClient::open(original, &gateway)?;
    let hello = client.hello().await?;
    let events = hello["features"]["events"].as_array().into_iter().flatten();
    let events: Vec<&str> = events.filter_map(Value::as_str).collect();
    let is_sent = |name: &&str| !NEVER_SENT.contains(&name.split('.').next().unwrap_or_default());
    let honest = events.contains(&"chat") && events.iter().all(is_sent) && hello["canvasHostUrl"].is_null();
    report.check("OpenClaw's client is promised only what is there", honest, &format!("{hello:#}"));

    client.request("system-event", json!({"text": BEACON, "instanceId": INSTANCE})).await?;
    let present = original.json(&gateway, &["system", "presence", "--json"]).await?;
    let rows = present.as_array().into_iter().flatten();
    let of_client: Vec<&Value> =
        rows.filter(|row| row["deviceId"].is_string() || row["instanceId"] == INSTANCE).collect();
    let one = matches!(of_client[..], [row] if row["instanceId"] == INSTANCE && row["text"] == BEACON);
    report.check(
        "a client with a device and its beacon are one row of presence",
        one,
        &format!("{present:#}"),
    );
    Ok(())
}

async fn queued(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |request| {
        let said = request.last_user_text();
        let reply = Reply::text(&format!("You said: {said}"));
        if said.contains("one") { reply.after(Step::Wait(held.clone())) } else { reply }
    })
    .await;
    let queue = json!({"messages": {"queue": {"debounceMs": 1}}});
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).config(queue).start().await?;
    let mut client = OwnClient::open(original, &gateway)?;
    client.hello().await?;
    client.say("main", "one", "run-1").await?;
    model.arrived(1).await;
    for (text, run) in [("two", "run-2"), ("three", "run-3"), ("four", "run-4")] {
        client.say("main", text, run).await?;
    }
    gate.open();
    client.end("run-1").await?;
    let mut ends = Vec::new();
    for run in ["run-2", "run-3", "run-4"] {
        ends.push(client.end(run).await?);
    }
    let is_empty = |end: &Value| end["state"] == "final" && end["message"].is_null();
    let collected = match &ends[..] {
        [second, third, fourth] => {
            let answer = fourth["message"]["content"][0]["text"].as_str().unwrap_or_default();
            let all = ["two", "three", "four"].iter().all(|word| answer.contains(word));
            is_empty(second) && is_empty(third) && all
        }
        _ => false,
    };
    let what = "messages that waited are answered together, the last with the answer and the others with an empty final";
    report.check(what, collected && model.requests().len() == 2, &format!("{ends:#?}"));
    Ok(())
}
