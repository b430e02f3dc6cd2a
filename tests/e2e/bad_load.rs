//! Load: many clients at once, and clients that read late or never.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::json;
use tokio::task::JoinSet;

use crate::gateway;
use crate::support::connect::tab;
use crate::support::conversation::{send, whole_answer};
use crate::support::memory::{GROWTH, resident_at_most};

const CLIENTS: usize = 500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_clients_that_come_at_once_all_hear_the_same() {
    let gateway = gateway().start().await.unwrap();
    let port = gateway.port();
    let mut coming = JoinSet::new();
    for number in 0..CLIENTS {
        coming.spawn(WsClient::connect(port, tab(number)));
    }
    let mut clients = Vec::new();
    while let Some(client) = coming.join_next().await {
        clients.push(client.unwrap().unwrap().0);
    }
    assert_eq!(clients.len(), CLIENTS);

    let mut one = gateway.client().await.unwrap();
    send(&mut one, "main", "hello", "run-1").await;
    let mut hearing = JoinSet::new();
    for mut client in clients {
        hearing.spawn(async move {
            client.event("chat", |chat| chat["runId"] == "run-1" && chat["state"] == "final").await.unwrap();
            client
        });
    }
    let heard = hearing.join_all().await;
    assert_eq!(heard.len(), CLIENTS);
    one.request("health", json!({})).await.unwrap();
}

/// Clients that do not read until the answer is whole.
const DEAF: usize = 5;
/// Pieces of an answer. Each is told with all the text before it: together about 70 MB.
const PIECES: usize = 1_200;
const PIECE: &str =
    "five words of some answer, and a half dozen more of the same kind as these are. And more yet. ";
#[tokio::test]
async fn clients_that_read_an_answer_late_cost_bounded_memory_and_get_all_of_it() {
    let model = ModelServer::answering(|_| Reply::deltas([PIECE; PIECES])).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut deaf = Vec::new();
    for _ in 0..DEAF {
        deaf.push(gateway.client().await.unwrap());
    }
    let before = resident_at_most(&gateway);
    send(&mut deaf[0], "main", "hello", "run-1").await;
    model.over(0).await;
    ended(&gateway, "run-1").await;
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < GROWTH, "the gateway grew by {grown} bytes");
    for mut client in deaf {
        whole_answer(&mut client, "run-1", &PIECE.repeat(PIECES)).await;
    }
}

/// Waits for the end of a run. A client that stayed to listen might be too slow itself.
async fn ended(gateway: &GatewayUnderTest, run: &str) {
    loop {
        let mut client = gateway.client().await.unwrap();
        let params = json!({"runId": run, "timeoutMs": 0});
        match client.call("agent.wait", params).await {
            Ok(answer) if answer.payload["status"] == "timeout" => {}
            Ok(answer) => return assert_eq!(answer.payload["status"], "ok", "{answer:?}"),
            Err(_) => {}
        }
    }
}

/// Requests of one client that come all at once; their answers are large.
const REQUESTS: usize = 64;

#[tokio::test]
async fn a_client_that_asks_for_much_at_once_costs_bounded_memory() {
    let gateway = gateway().start().await.unwrap();
    let mut asker = gateway.client().await.unwrap();
    asker.request("config.schema", json!({})).await.unwrap();
    let before = resident_at_most(&gateway);
    let mut last = String::new();
    for _ in 0..REQUESTS {
        last = asker.send("config.schema", json!({})).await.unwrap();
    }
    assert!(asker.answer(&last).await.unwrap().ok);
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < 2 * GROWTH, "the gateway grew by {grown} bytes");
}
