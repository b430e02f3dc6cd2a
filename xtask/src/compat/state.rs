//! The state directory of a gateway under test, and turns of conversations in it.

use std::path::PathBuf;

use anyhow::Result;
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

pub(super) fn sessions_dir(gateway: &GatewayUnderTest) -> PathBuf {
    gateway.state_dir().join("agents/main/sessions")
}

/// The rows in the file.
pub(super) fn rows(gateway: &GatewayUnderTest) -> Result<Value> {
    Ok(serde_json::from_slice(&std::fs::read(sessions_dir(gateway).join("sessions.json"))?)?)
}

/// The transcript that the gateway knows a session by.
pub(super) async fn transcript_of(gateway: &GatewayUnderTest, key: &str) -> Result<Option<String>> {
    let listed = gateway.client().await?.request("sessions.list", json!({})).await?;
    Ok(listed_row(&listed, key)["sessionId"].as_str().map(str::to_owned))
}

/// The row of a key in an answer to `sessions.list`; null where it is not listed.
pub(super) fn listed_row(listed: &Value, key: &str) -> Value {
    let mut rows = listed["sessions"].as_array().into_iter().flatten();
    rows.find(|row| row["key"] == key).cloned().unwrap_or_default()
}

/// Says something in a session and waits for the answer.
pub(super) async fn turn(client: &mut WsClient, key: &str, text: &str, run: &str) -> Result<()> {
    let message = json!({"sessionKey": key, "message": text, "idempotencyKey": run});
    client.request("chat.send", message).await?;
    client.event("chat", |event| event["runId"] == run && event["state"] == "final").await?;
    Ok(())
}
