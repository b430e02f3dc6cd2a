//! A client that does not read loses what may be lost, then its connection, and nobody else's time
//! (`gw-slow-consumer`, spec `gateway-protocol.md` §7).

use openclaw_testkit::{Received, WsClient};
use serde_json::{Value, json};

use crate::gateway;

/// Each presence event holds all notes so far: together more than any socket buffer takes.
const NOTES: usize = 40;
const NOTE_BYTES: usize = 60_000;

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go_and_the_others_miss_nothing() {
    let gateway = gateway().start().await.unwrap();
    let mut fast = gateway.client().await.unwrap();
    let mut slow = gateway.client().await.unwrap();

    for number in 0..NOTES {
        let text = format!("{number} {}", "x".repeat(NOTE_BYTES));
        fast.request("system-event", json!({"text": text})).await.unwrap();
        let begin = format!("{number} ");
        fast.event("presence", |payload| mentions(payload, &begin)).await.unwrap();
    }
    // The end of a run may not be lost, so whoever can't be told is let go.
    let run = json!({"sessionKey": "main", "message": "hello", "idempotencyKey": "run-1"});
    fast.request("chat.send", run).await.unwrap();
    fast.event("chat", |payload| payload["state"] == "final").await.unwrap();

    let (presence, end) = everything(&mut slow).await;
    assert_eq!(end, Received::Closed { code: 1008, reason: "slow consumer".into() });
    assert!(presence < NOTES, "{presence} of {NOTES} notes were kept for a client that does not read");
}

fn mentions(presence: &Value, begin: &str) -> bool {
    let entries = presence["presence"].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["text"].as_str()).any(|text| text.starts_with(begin))
}

/// Reads to the end. Gives the number of presence events and how it ended.
async fn everything(client: &mut WsClient) -> (usize, Received) {
    let mut presence = 0;
    loop {
        match client.receive().await.unwrap() {
            Received::Frame(frame) if frame["event"] == "presence" => presence += 1,
            Received::Frame(_) => {}
            end @ Received::Closed { .. } => return (presence, end),
        }
    }
}
