//! Sub-agents, and the list of them on disk.

use std::time::{Duration, Instant};

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

/// Time that something which is not announced may take.
pub(crate) const PATIENCE: Duration = openclaw_testkit::DEADLINE;

/// Arguments with which the requester's model calls the tool.
type Arguments = Value;

/// A model whose main agent starts a child when it is told to "delegate", and whose children do as `child` says.
pub(crate) async fn delegating(
    arguments: Arguments,
    child: impl Fn(&Captured) -> Reply + Send + Sync + 'static,
) -> ModelServer {
    ModelServer::answering(move |request| {
        let said = request.last_user_text();
        match () {
            () if said.contains("delegate") && !request.ends_with_tool_result() => {
                Reply::tool("s1", "sessions_spawn", &arguments)
            }
            () if said.contains("delegate") => Reply::text("It is being done."),
            () => child(request),
        }
    })
    .await
}

pub(crate) fn is_child(request: &Captured) -> bool {
    request.body.to_string().contains("# Subagent Context")
}

/// The rows of the list on disk.
pub(crate) fn listed(gateway: &GatewayUnderTest) -> Vec<Value> {
    let text = std::fs::read_to_string(gateway.state_dir().join("subagents/runs.json")).unwrap_or_default();
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    document["runs"].as_object().map(|runs| runs.values().cloned().collect()).unwrap_or_default()
}

/// Waits until the list on disk is as it should be.
pub(crate) async fn lists(gateway: &GatewayUnderTest, pleases: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let rows = listed(gateway);
        if pleases(&rows) {
            return rows;
        }
        assert!(begun.elapsed() < PATIENCE, "{}\n{}", json!(rows), gateway.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn are_over(rows: &[Value]) -> bool {
    !rows.is_empty() && rows.iter().all(|row| row["cleanupCompletedAt"].is_number())
}

/// The next thing that a session is told by itself.
pub(crate) async fn announced(client: &mut WsClient) -> String {
    let is_one = |payload: &Value| {
        payload["state"] == "final" && payload["runId"].as_str().is_some_and(|id| id.ends_with(":announce"))
    };
    let event = client.event("chat", is_one).await.unwrap();
    event["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Waits until what is told of each child was accepted, whatever it waits for now.
pub(crate) async fn announces_are_accepted(client: &mut WsClient, rows: &[Value]) {
    let begun = Instant::now();
    for row in rows {
        let id = format!("{}:announce", row["runId"].as_str().unwrap());
        loop {
            let traced = client.request("trace", json!({"id": id})).await.unwrap();
            if traced["runs"].as_array().is_some_and(|runs| !runs.is_empty()) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{traced}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
