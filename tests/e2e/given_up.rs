//! A message whose preparation ends the process each time (`docs/durability.md`, "Messages that end the process").

use std::sync::{Arc, OnceLock};

use openclaw_testkit::model_server::{ModelServer, Reply, ScriptedCall, Step};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::support::conversation::{message, send, turn};

async fn wait(client: &mut WsClient, run: &str) -> Value {
    client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap()
}

/// A provider whose key comes from a command that kills the gateway, unless there is a key.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_ends_the_process_three_times_is_given_up_and_everything_else_works() {
    let model = ModelServer::answering(|_| Reply::text("here I am")).await;
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "a-key").unwrap();
    let stuck = json!({
        "baseUrl": model.v1(), "apiKey": format!("!cat '{}' || kill -9 $PPID", key.display()), "api": "openai-completions",
        "models": [{"id": "stuck-1", "name": "Stuck"}],
    });
    let setup =
        crate::gateway().fake_model(&model.v1()).config(json!({"models": {"providers": {"stuck": stuck}}}));
    let mut gateway = setup.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let patch = json!({"key": "main", "model": "stuck/stuck-1"});
    client.request("sessions.patch", patch).await.unwrap();
    // Output of a key command is known until the gateway ends.
    gateway.crash_and_restart().await.unwrap();
    std::fs::remove_file(&key).unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "the one that kills", "run-1").await;
    gateway.exited().await.unwrap();
    let mut deaths = 1;
    // The first death counts only if the run had begun by then: two or three more, not less and not more.
    loop {
        assert!(deaths < 10, "it is never given up: {}", gateway.log());
        // The gateway may die before it listens.
        if gateway.start().await.is_ok() && is_over(&gateway).await {
            break;
        }
        gateway.exited().await.unwrap();
        deaths += 1;
    }
    assert!((3..=4).contains(&deaths), "it died {deaths} times: {}", gateway.log());
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "other", "anybody there?", "other-1").await, "here I am");
    std::fs::write(&key, "a-key").unwrap();
    gateway.crash_and_restart().await.unwrap();

    let mut client = gateway.client().await.unwrap();
    let end = wait(&mut client, "run-1").await;
    assert_eq!(end["status"], "error", "{end}");
    let told = end["error"].as_str().unwrap().to_owned();
    assert!(told.contains("given up: the gateway ended unexpectedly 3 times"), "{told}");
    let again = client.call("chat.send", message("main", "the one that kills", "run-1")).await.unwrap();
    assert_eq!((again.ok, &again.payload["summary"]), (false, &json!(told)), "{again:?}");
    gateway.logged("a message is given up").await.unwrap();
    let history = client.request("chat.history", json!({"sessionKey": "main"})).await.unwrap();
    let [.., said, answered] = history["messages"].as_array().unwrap().as_slice() else {
        panic!("{history}")
    };
    assert!(said["content"].to_string().contains("the one that kills"), "{history}");
    assert_eq!((&answered["stopReason"], &answered["errorMessage"]), (&json!("error"), &json!(told)));

    assert_eq!(turn(&mut client, "main", "and now?", "run-2").await, "here I am");
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(wait(&mut client, "run-1").await["error"], json!(told), "it stays given up");
}

/// True if the message comes to its end; otherwise the gateway dies of it.
async fn is_over(gateway: &GatewayUnderTest) -> bool {
    let Ok(mut client) = gateway.client().await else { return false };
    let end = client.request("agent.wait", json!({"runId": "run-1", "timeoutMs": 20_000})).await;
    end.is_ok_and(|end| end["status"] == "error")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_stop_in_order_cuts_short_three_times_is_answered_by_the_next_start() {
    let replies = (0..3).map(|_| Reply::never()).chain([Reply::text("at last")]);
    let model = ModelServer::queue(replies).await;
    let mut gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "patience", "run-1").await;
    for stop in 1..=3 {
        model.arrived(stop).await;
        gateway.terminate().await.unwrap();
        gateway.start().await.unwrap();
    }
    let mut client = gateway.client().await.unwrap();
    assert_eq!(wait(&mut client, "run-1").await["status"], "ok");
}

/// A model that asks for the same again is not helped by hearing that it may have happened. The second time it looks at something harmless
/// in between, the third time it stops the gateway in order.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_commands_kill_the_gateway_again_and_again_is_given_up_and_says_why() {
    let rows = [
        ("-9", false, 3, "ended unexpectedly 3 times in a row"),
        ("-9", true, 5, "ended unexpectedly 5 times"),
        ("-TERM", false, 5, "was stopped 5 times in a row"),
    ];
    for (signal, looks, deaths, times) in rows {
        let command = Arc::new(OnceLock::<String>::new());
        let told = Arc::clone(&command);
        let model = ModelServer::answering(move |request| {
            let last = request.messages().last().map(ToString::to_string).unwrap_or_default();
            let id = format!("c{}", request.messages().len());
            match request.last_user_text().contains("kill") {
                true if looks && last.contains("interrupted during this call") => {
                    Reply::tool(&id, "read", &json!({"path": "none.txt"}))
                }
                true => {
                    let call = ScriptedCall::new(&id, "exec", &json!({"command": told.get().unwrap()}));
                    Reply::steps([Step::Text(format!("try {id}")), Step::ToolCalls(vec![call])])
                }
                false => Reply::text("here I am"),
            }
        })
        .await;
        let mut gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
        command.set(crate::support::power_cut::suicide(&gateway, signal)).unwrap();
        let mut client = gateway.client().await.unwrap();
        client.request("agent", message("main", "the one that kills", "run-1")).await.unwrap();
        gateway.exited().await.unwrap();
        for _ in 1..deaths {
            // The gateway may die before it listens.
            let _ = gateway.start().await;
            gateway.exited().await.unwrap();
        }
        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        let end = wait(&mut client, "run-1").await;
        let told = end["error"].as_str().unwrap_or_default();
        assert!(told.contains(&format!("given up: the gateway {times} while")), "{end}");
        assert!(told.contains("exec"), "{end}");
        let known = client.call("agent", message("main", "the one that kills", "run-1")).await.unwrap();
        let payloads = known.payload["result"]["payloads"].as_array().unwrap();
        let said: Vec<&str> = payloads.iter().map(|payload| payload["text"].as_str().unwrap()).collect();
        let (last, before) = said.split_last().unwrap();
        assert_eq!((*last, before.len()), (told, deaths), "the notice stands behind the words: {said:?}");
        assert_eq!(model.requests().len(), if looks { 2 * deaths - 1 } else { deaths });
        assert_eq!(turn(&mut client, "main", "and now?", "run-2").await, "here I am");
        gateway.crash_and_restart().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        assert_eq!(wait(&mut client, "run-1").await["error"], json!(told), "it stays given up");
    }
}
