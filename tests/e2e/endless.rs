//! Endless chains of an agent's work, in which each thing follows from the one before, are ended.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{send, turn};
use crate::support::session_tools::{system, tool_said};
use crate::support::subagents::lists;

/// Two sessions of which each writes to the other whenever it is written to.
fn writes_back(request: &Captured) -> Reply {
    let context = system(request);
    match () {
        () if request.ends_with_tool_result() => Reply::text("done"),
        () if context.contains("Agent-to-agent reply step:") => Reply::text("REPLY_SKIP"),
        () if context.contains("Agent-to-agent announce step:") => Reply::text("ANNOUNCE_SKIP"),
        () => {
            let to = match context.contains("Agent 2 (target) session: agent:main:side") {
                true => "main",
                false => "agent:main:side",
            };
            let args = json!({"sessionKey": to, "message": "and you?", "timeoutSeconds": 0});
            Reply::tool("call-1", "sessions_send", &args)
        }
    }
}

/// Waits until so many sends were refused.
async fn refused(model: &ModelServer, times: usize) {
    let is_refusal = |request: &&Captured| tool_said(request).contains("Not sent: ");
    loop {
        let asked = model.requests();
        if asked.iter().filter(is_refusal).count() >= times {
            return;
        }
        model.arrived(asked.len() + 1).await;
    }
}

#[tokio::test]
async fn sessions_that_write_to_each_other_for_ever_are_ended() {
    let model = ModelServer::answering(writes_back).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "begin", "r1").await;
    // The number of sub-agents survives the process.
    model.arrived(10).await;
    gateway.crash_and_restart().await.unwrap();
    refused(&model, 1).await;
    // A person begins anew.
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "again", "r2").await, "done");
    refused(&model, 2).await;
    // The first run asks twice; so does each of eight messages, which is answered and has a last word. A crash has some asked again.
    let (all, asked) = (2 * (2 + 8 * 4), model.requests().len());
    assert!(asked <= all + 10, "{asked}");
}

/// Each sub-agent is stored with the number of sub-agents that led to it, one from the end of
/// another: that ends the chain at last.
#[tokio::test]
async fn sub_agents_that_follow_from_each_other_are_counted() {
    let model = ModelServer::answering(|request| {
        let said = request.last_user_text();
        let delegates = said.contains("begin") || said.contains("A subagent task");
        match delegates && !request.ends_with_tool_result() {
            true => Reply::tool("s1", "sessions_spawn", &json!({"task": "dig"})),
            false => Reply::text("done"),
        }
    })
    .await;
    let config = json!({"agents": {"defaults": {"subagents": {"announceMode": "summary"}}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "begin", "r1").await, "done");
    let generations = |rows: &[Value]| {
        let mut counts: Vec<u64> =
            rows.iter().map(|row| row["lineage"]["children"].as_u64().unwrap_or(0)).collect();
        counts.sort_unstable();
        counts
    };
    lists(&gateway, |rows| generations(rows).ends_with(&[2])).await;
    gateway.crash_and_restart().await.unwrap();
    let rows = lists(&gateway, |rows| rows.len() >= 6).await;
    assert!(generations(&rows).starts_with(&[0, 1, 2, 3, 4]), "{rows:?}");
}
