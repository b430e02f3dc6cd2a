//! Listeners to what is said in conversations (decision 46).

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{Login, TOKEN, WsClient};
use serde_json::json;

use crate::gateway;
use crate::support::conversation::turn;

#[tokio::test]
async fn who_may_only_approve_or_pair_hears_no_conversation() {
    let model = ModelServer::answering(|_| Reply::text("between us")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let with = |scope: &str| Login::token(TOKEN).with("scopes", json!([scope]));
    let mut deaf = Vec::new();
    for scope in ["operator.approvals", "operator.pairing"] {
        deaf.push(WsClient::connect(gateway.port(), with(scope)).await.unwrap().0);
    }
    let (mut reader, _) = WsClient::connect(gateway.port(), with("operator.read")).await.unwrap();
    let (mut writer, _) = WsClient::connect(gateway.port(), with("operator.write")).await.unwrap();
    assert_eq!(turn(&mut writer, "main", "hello", "run-1").await, "between us");
    reader.event("chat", |chat| chat["state"] == "final").await.unwrap();

    for client in &mut deaf {
        // Events sent before the answer have arrived with it.
        client.call("health", json!({})).await.unwrap();
        let heard = client.take_passed();
        let of_conversation = |name: &str| name == "chat" || name == "agent";
        assert!(!heard.iter().any(|frame| frame["event"].as_str().is_some_and(of_conversation)), "{heard:?}");
    }
}
