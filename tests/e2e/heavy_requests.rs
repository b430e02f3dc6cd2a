//! Clients that ask for much: their requests wait for each other, and nobody else is held up.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use openclaw_testkit::many_sessions::{self, Skills};
use openclaw_testkit::{Login, SocketOptions, TOKEN, WsClient, long_sessions};
use serde_json::json;
use tokio::task::JoinSet;

use crate::gateway;
use crate::support::conversation::turn;
use crate::support::http::get;
use crate::support::memory::resident_at_most;
use crate::support::wait::until;

const MIB: usize = 1024 * 1024;

fn reader() -> Login {
    Login::token(TOKEN).with("scopes", json!(["operator.read"]))
}

/// Checks that health checks are answered at once. The quickest of some counts, since other programs may hold this test up.
async fn healthz_answers_at_once(port: u16) {
    let mut quickest = Duration::MAX;
    for _ in 0..10 {
        let begun = Instant::now();
        assert!(get(port, "/healthz").await.contains("200 OK"));
        quickest = quickest.min(begun.elapsed());
    }
    assert!(quickest < Duration::from_millis(100), "{quickest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_asks_for_the_cost_again_and_again_costs_the_memory_of_one() {
    const SESSIONS: usize = 10_000;
    const REQUESTS: usize = 1_000;
    let mut gateway = gateway().prepare().unwrap();
    many_sessions::write(&gateway.state_dir(), SESSIONS, Skills::Some).unwrap();
    gateway.start().await.unwrap();
    let (mut asker, _) = WsClient::connect(gateway.port(), reader()).await.unwrap();
    // Since the oldest of the rows.
    let days = json!({"days": 3_650});
    asker.request("usage.cost", days.clone()).await.unwrap();
    let before = resident_at_most(&gateway);
    let mut ids = Vec::new();
    for _ in 0..REQUESTS {
        ids.push(asker.send("usage.cost", days.clone()).await.unwrap());
    }
    for id in &ids[..10] {
        assert!(asker.answer(id).await.unwrap().ok);
    }
    healthz_answers_at_once(gateway.port()).await;
    // Another client's light requests wait for nothing, heavy ones for one of the others.
    let mut other = gateway.client().await.unwrap();
    other.request("health", json!({})).await.unwrap();
    other.request("sessions.list", json!({"limit": 1})).await.unwrap();
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < 60 * MIB, "the gateway grew by {} MiB", grown / MIB);
}

/// Receive buffer of the system for a client that does not read, in bytes.
const RECEIVE_BUFFER: u32 = 4_096;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_never_read_their_small_answers_share_bounded_memory_and_are_cut_off() {
    const CLIENTS: usize = 12;
    const REQUESTS: usize = 300;
    let gateway = gateway().start().await.unwrap();
    let mut other = gateway.client().await.unwrap();
    let listed = other.request("models.list", json!({})).await.unwrap().to_string().len();
    assert!(
        (30_000..120_000).contains(&listed),
        "{listed}: their answers would exceed the bound, each is small"
    );
    let before = resident_at_most(&gateway);
    let socket = SocketOptions { receive_buffer: Some(RECEIVE_BUFFER), ..SocketOptions::default() };
    let mut deaf = Vec::new();
    for _ in 0..CLIENTS {
        let (mut client, _) = WsClient::connect_with(gateway.port(), reader(), &socket).await.unwrap();
        for _ in 0..REQUESTS {
            client.send("models.list", json!({})).await.unwrap();
        }
        deaf.push(client);
    }
    turn(&mut other, "main", "hello", "run-1").await;
    // The connections end though nobody reads: some at once, the others after their patience.
    until("all of them were cut off", async || {
        (gateway.log().matches("disconnected").count() >= CLIENTS).then_some(())
    })
    .await;
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < 90 * MIB, "the gateway grew by {} MiB", grown / MIB);
    turn(&mut other, "main", "hello", "run-2").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_clients_that_ask_for_a_long_history_at_once_cost_bounded_memory_and_all_get_it() {
    const CLIENTS: usize = 10;
    const MESSAGES: usize = 54;
    let mut gateway = gateway().prepare().unwrap();
    long_sessions::write(&gateway.state_dir(), 1, 2).unwrap();
    let path = long_sessions::transcript(&gateway.state_dir(), 0);
    let mut text = fs::read_to_string(&path).unwrap();
    for n in 0..MESSAGES {
        let words = "x".repeat(MIB - 1_024);
        let message = json!({"role": "user", "content": [{"type": "text", "text": words}], "timestamp": n});
        let parent = if n == 0 { "00000001".to_owned() } else { format!("big{:05x}", n - 1) };
        let line =
            json!({"type": "message", "id": format!("big{n:05x}"), "parentId": parent, "message": message});
        writeln!(text, "{line}").unwrap();
    }
    fs::write(&path, text).unwrap();
    gateway.start().await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(WsClient::connect(gateway.port(), reader()).await.unwrap().0);
    }
    let before = resident_at_most(&gateway);
    let mut asking = JoinSet::new();
    for mut client in clients {
        asking.spawn(async move {
            let params = json!({"sessionKey": long_sessions::key(0), "limit": 1_000});
            let history = client.request("chat.history", params).await.unwrap();
            history["messages"].as_array().unwrap().len()
        });
    }
    healthz_answers_at_once(gateway.port()).await;
    assert_eq!(asking.join_all().await, [6; CLIENTS], "6 MiB are shown");
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < 100 * MIB, "the gateway grew by {} MiB", grown / MIB);
}
