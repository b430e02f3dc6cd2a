//! Clients that come through a proxy: where they are, and how often they may guess (decisions 25 and 26).

use openclaw_testkit::{Answer, DeviceIdentity, SocketOptions, TOKEN, WsClient};
use serde_json::json;

use crate::gateway;

/// What a device is answered that gives this token through a proxy that wrote these headers.
async fn connect(port: u16, device: u8, forwarding: &[(&str, &str)], token: &str) -> Answer {
    let headers = forwarding.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = SocketOptions { headers, ..SocketOptions::default() };
    let mut client = WsClient::open(port, &options).await.unwrap();
    let challenge = client.challenge().await.unwrap();
    let mut params = json!({
        "minProtocol": 3, "maxProtocol": 3, "auth": {"token": token},
        "client": {"id": "test", "version": "1", "platform": "linux", "mode": "test"},
    });
    params["device"] = DeviceIdentity::from_seed(device).proof(&params, challenge.ts, Some(&challenge.nonce));
    client.call("connect", params).await.unwrap()
}

#[tokio::test]
async fn a_client_behind_a_proxy_is_never_paired_as_a_local_one() {
    let trusting = json!({"gateway": {"trustedProxies": ["127.0.0.0/8"]}});
    let gateway = gateway().config(trusting).start().await.unwrap();
    assert!(connect(gateway.port(), 1, &[], TOKEN).await.ok, "a direct one is");
    for header in [
        ("X-Forwarded-For", "127.0.0.1, 203.0.113.9"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Real-IP", "127.0.0.1"),
        ("Forwarded", "for=127.0.0.1"),
    ] {
        let answer = connect(gateway.port(), 2, &[header], TOKEN).await;
        assert_eq!(answer.error["code"], "NOT_PAIRED", "{header:?} {answer:?}");
    }
}

#[tokio::test]
async fn guesses_through_a_proxy_that_nobody_listed_are_throttled() {
    let gateway = gateway().start().await.unwrap();
    let proxied = [("X-Forwarded-For", "203.0.113.9")];
    for _ in 0..10 {
        assert!(!connect(gateway.port(), 2, &proxied, "wrong").await.ok);
    }
    let refused = connect(gateway.port(), 2, &proxied, TOKEN).await;
    let text = refused.error["message"].as_str().unwrap();
    assert!(text.starts_with("unauthorized: too many failed attempts"), "{text}");
    assert!(connect(gateway.port(), 1, &[], TOKEN).await.ok, "the owner is not locked out");
}
