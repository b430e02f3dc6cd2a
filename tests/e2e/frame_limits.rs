//! Size limits of frames (spec `gateway-protocol.md` KB-4, decision 13).

use openclaw_testkit::{Login, SocketOptions, TOKEN, WsClient};
use serde_json::json;

use crate::gateway;

const TOO_BIG: u16 = 1009;

#[tokio::test]
async fn a_stranger_may_say_64_kib() {
    let gateway = gateway().start().await.unwrap();
    let mut client = WsClient::open(gateway.port(), &SocketOptions::default()).await.unwrap();
    client.challenge().await.unwrap();
    // The gateway may be gone before all of it is sent.
    let _ = client.send_raw(&"x".repeat(65 * 1024)).await;
    let (code, _) = client.closed().await.unwrap();
    assert!([TOO_BIG, 1006].contains(&code), "closed with {code}");
}

#[tokio::test]
async fn a_client_may_say_25_mib_and_no_more() {
    let gateway = gateway().start().await.unwrap();
    let (mut client, hello) = WsClient::connect(gateway.port(), Login::token(TOKEN)).await.unwrap();
    let limit = usize::try_from(hello["policy"]["maxPayload"].as_u64().unwrap()).unwrap();
    assert_eq!(limit, 25 * 1024 * 1024);

    // Frames for which the reference closes are ordinary requests
    // (`gw-connect-fail-payload-too-big`).
    let answer = client.call("config.get", json!({"x": "x".repeat(600_000)})).await.unwrap();
    assert_eq!(answer.error["code"], "INVALID_REQUEST");

    let _ = client.send_raw(&"x".repeat(limit + 1)).await;
    let (code, _) = client.closed().await.unwrap();
    assert!([TOO_BIG, 1006].contains(&code), "closed with {code}");
    // Other clients did not notice.
    gateway.client().await.unwrap().request("health", json!({})).await.unwrap();
}
