//! A gateway whose bot is on a Telegram of this test.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::telegram::TelegramServer;
use openclaw_testkit::{GatewaySetup, GatewayUnderTest};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::config::merge;
use crate::support::wait::until;

/// The address of a Telegram that is not there: new tokens are tried, and no test asks the real one.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:1";

pub(crate) fn open() -> Value {
    json!({"dmPolicy": "open", "allowFrom": ["*"]})
}

/// A gateway whose bot is on the server.
pub(crate) async fn bot(
    server: &TelegramServer,
    model: &ModelServer,
    section: Value,
    rest: Value,
) -> GatewayUnderTest {
    bot_setup(server, model, section, rest).start().await.unwrap()
}

/// The same, before its start.
pub(crate) fn bot_setup(
    server: &TelegramServer,
    model: &ModelServer,
    section: Value,
    rest: Value,
) -> GatewaySetup {
    let mut telegram = json!({"botToken": server.token(), "apiRoot": server.root()});
    merge(&mut telegram, section);
    let mut config = json!({
        "channels": {"telegram": telegram},
        "agents": {"defaults": {"envelopeTimezone": "utc", "envelopeElapsed": "off"}},
    });
    merge(&mut config, rest);
    gateway().fake_model(&model.v1()).config(config)
}

/// Waits until the receipts of all that was sent are stored. If the process dies before that,
/// nobody can tell whether a message arrived, and it is sent once more.
pub(crate) async fn all_sent(gateway: &GatewayUnderTest) {
    let mut client = gateway.client().await.unwrap();
    until("nothing waits for its receipt", async || {
        let status = client.request("channels.status", json!({})).await.unwrap();
        let accounts = status["channelAccounts"]["telegram"].as_array().unwrap();
        accounts.iter().all(|account| account["outboxPending"] == 0).then_some(())
    })
    .await;
}

/// Last message to the model.
pub(crate) fn last_said(request: &Captured) -> String {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.iter().rev().find(|message| message["role"] == "user").cloned().unwrap_or_default();
    match &last["content"] {
        Value::String(text) => text.clone(),
        parts => parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    }
}

pub(crate) async fn server_and_model() -> (TelegramServer, ModelServer) {
    (TelegramServer::start().await, ModelServer::answering(|_| Reply::text("here")).await)
}

/// A poll that is answered is followed by another.
pub(crate) async fn connected(server: &TelegramServer) {
    server.push(json!({}));
    server.nth_call("getUpdates", 2).await;
}

/// Config in which each paragraph is a message.
pub(crate) fn in_blocks() -> Value {
    let mut section = open();
    let coalesce = json!({"minChars": 1, "maxChars": 60, "idleMs": 10});
    merge(&mut section, json!({"blockStreaming": true, "blockStreamingCoalesce": coalesce}));
    section
}

/// Chunks of about a paragraph.
pub(crate) fn small() -> Value {
    let chunk = json!({"minChars": 20, "maxChars": 100, "breakPreference": "newline"});
    json!({"agents": {"defaults": {"blockStreamingChunk": chunk}}})
}

pub(crate) fn texts(server: &TelegramServer) -> Vec<String> {
    server.made().iter().map(|made| made["text"].as_str().unwrap_or_default().to_owned()).collect()
}
