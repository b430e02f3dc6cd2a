//! The TUI of OpenClaw 2026.2.9, which must not get the end of a run in the same read as its acknowledgement.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{Login, Received, TOKEN, WsClient};
use serde_json::json;

use crate::support::conversation::{message, turn};

/// Login as in the TUI's `connect`.
fn tui() -> Login {
    let client = json!({"id": "gateway-client", "displayName": "openclaw-tui", "version": "2026.2.9", "platform": "linux",
        "mode": "ui", "instanceId": "tui-1"});
    Login::token(TOKEN).with("client", client).with("caps", json!(["tool-events"]))
}

#[tokio::test]
async fn the_tui_hears_the_acknowledgement_of_a_command_first_and_its_end_after_it() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
    let (mut client, _) = WsClient::connect(gateway.port(), tui()).await.unwrap();
    let id = client.send("chat.send", message("main", "/models", "run-1")).await.unwrap();
    let mut heard = Vec::new();
    while heard.len() < 2 {
        let Received::Frame(frame) = client.receive().await.unwrap() else {
            panic!("closed after {heard:?}")
        };
        if frame["id"] == id.as_str() {
            heard.push("acknowledged".to_owned());
        }
        if frame["event"] == "chat" {
            heard.push(frame["payload"]["state"].to_string());
        }
    }
    assert_eq!(heard, ["acknowledged", "\"final\""]);
    assert_eq!(turn(&mut client, "main", "hi", "run-2").await, "hello");
}
