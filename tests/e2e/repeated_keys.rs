//! An idempotency key that comes again: with the same message, and with another.

use openclaw_testkit::WsClient;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::conversation::{end, message, send};

async fn refused(client: &mut WsClient, method: &str, params: Value) {
    let answer = client.call(method, params.clone()).await.unwrap();
    assert_eq!((answer.ok, &answer.error["code"]), (false, &json!("INVALID_REQUEST")), "{method} {params}");
    let text = answer.error["message"].as_str().unwrap();
    assert!(text.contains("idempotencyKey \"run-1\" was used for another message"), "{text}");
}

#[tokio::test]
async fn a_key_that_was_used_for_another_message_is_refused_and_the_same_message_is_answered_as_before() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let mut gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "hi", "run-1").await;
    assert_eq!(end(&mut client, "run-1").await["state"], "final");
    for restarted in [false, true] {
        if restarted {
            gateway.crash_and_restart().await.unwrap();
            client = gateway.client().await.unwrap();
        }
        refused(&mut client, "chat.send", message("main", "something else", "run-1")).await;
        refused(&mut client, "chat.send", message("other", "hi", "run-1")).await;
        refused(&mut client, "agent", message("main", "hi", "run-1")).await;
        let with_limit = json!({"sessionKey": "agent:main:main", "message": "hi", "idempotencyKey": "run-1", "timeoutMs": 9});
        for same in [message("main", "hi", "run-1"), with_limit] {
            let again = client.request("chat.send", same).await.unwrap();
            assert_eq!(again, json!({"runId": "run-1", "status": "ok"}));
        }
    }
    assert_eq!(model.requests().len(), 1, "nothing was run for a repeated key");
}

#[tokio::test]
async fn a_repeated_request_of_an_agent_is_the_same_whatever_its_first_run_has_changed() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    // The row has a channel once the first was run, and the transcript leads to a session.
    let asked = json!({"sessionId": "mine", "message": "hi", "channel": "slack", "idempotencyKey": "run-1"});
    client.request("agent", asked.clone()).await.unwrap();
    client.request("agent.wait", json!({"runId": "run-1", "timeoutMs": 20_000})).await.unwrap();
    let again = client.request("agent", asked).await.unwrap();
    assert_eq!((&again["runId"], &again["status"]), (&json!("run-1"), &json!("ok")));
    assert_eq!(model.requests().len(), 1);
}
