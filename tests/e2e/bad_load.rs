//! Many clients at once, and clients that never read.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::json;
use tokio::task::JoinSet;

use crate::conversation::send;
use crate::gateway;

const CLIENTS: usize = 500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_clients_that_come_at_once_all_hear_the_same() {
    let gateway = gateway().start().await.unwrap();
    let port = gateway.port();
    let mut coming = JoinSet::new();
    for _ in 0..CLIENTS {
        coming.spawn(WsClient::connect(port, Login::token(TOKEN)));
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
            client.event("chat", |chat| chat["runId"] == "run-1" && chat["state"] == "final").await
        });
    }
    let mut heard = 0;
    while let Some(event) = hearing.join_next().await {
        event.unwrap().unwrap();
        heard += 1;
    }
    assert_eq!(heard, CLIENTS);
    // All are gone by now, and the gateway has noticed or will.
    one.request("health", json!({})).await.unwrap();
}

/// Clients that never read.
const DEAF: usize = 20;
/// Pieces of an answer. Each is told with all the text before it: together more than 100 MB.
const PIECES: usize = 2_000;
const PIECE: &str =
    "five words of some answer, and a half dozen more of the same kind as these are. And more yet. ";
/// What the gateway may need for all of it.
const GROWTH: usize = 50_000_000;

#[tokio::test]
async fn clients_that_never_read_an_answer_cost_bounded_memory() {
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
        assert_eq!(client.closed().await.unwrap(), (1008, "slow consumer".to_owned()));
    }
}

/// Waits for the end of a run, reading all the while.
async fn ended(gateway: &GatewayUnderTest, run: &str) {
    let mut client = gateway.client().await.unwrap();
    let wait = client.request("agent.wait", json!({"runId": run})).await.unwrap();
    assert_eq!(wait["status"], "ok", "{wait}");
}

/// Requests of a client that never reads the answers, each of more than 100 kB.
const REQUESTS: usize = 2_000;

#[tokio::test]
async fn a_client_that_asks_and_never_reads_is_let_go() {
    let gateway = gateway().start().await.unwrap();
    let mut asker = gateway.client().await.unwrap();
    let size = asker.request("config.schema", json!({})).await.unwrap().to_string().len();
    assert!(size * REQUESTS > 4 * GROWTH, "{size} bytes are too few to show anything");
    let before = resident_at_most(&gateway);
    for _ in 0..REQUESTS {
        if asker.send("config.schema", json!({})).await.is_err() {
            break;
        }
    }
    let (code, _) = asker.closed().await.unwrap();
    assert!([1008, 1006].contains(&code), "closed with {code}");
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < 2 * GROWTH, "the gateway grew by {grown} bytes");
    gateway.client().await.unwrap().request("health", json!({})).await.unwrap();
}

/// The most memory the process has had so far, in bytes.
fn resident_at_most(gateway: &GatewayUnderTest) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
