//! Frames larger than the reference takes (spec `gateway-protocol.md` KB-4); the limits themselves are in
//! `frame_limits`.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{SocketOptions, WsClient};

use crate::gateway;
use crate::support::conversation::turn;

/// Size above the reference's 512 KiB.
const BYTES: usize = 600_000;

#[tokio::test]
async fn a_message_of_600_kb_reaches_the_model_whole() {
    let model =
        ModelServer::answering(|request| Reply::text(&request.last_user_text().len().to_string())).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let text = "x".repeat(BYTES);
    let answer = turn(&mut client, "main", &text, "run-1").await;
    assert!(answer.parse::<usize>().unwrap() >= BYTES, "{answer}");
    assert!(model.requests()[0].last_user_text().contains(&text));
}

#[tokio::test]
async fn a_stranger_with_600_kb_is_let_go_and_the_others_stay() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let mut stranger = WsClient::open(gateway.port(), &SocketOptions::default()).await.unwrap();
    stranger.challenge().await.unwrap();
    // The gateway may be gone before all of it is sent.
    let _ = stranger.send_raw(&"x".repeat(BYTES)).await;
    let (code, _) = stranger.closed().await.unwrap();
    assert!([1009, 1006].contains(&code), "closed with {code}");
    client.request("health", serde_json::json!({})).await.unwrap();
}
