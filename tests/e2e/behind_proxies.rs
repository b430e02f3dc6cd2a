//! Clients that come through a proxy: where they are, who they are, and how often they may guess (decisions 25 and 26).

use openclaw_testkit::{DeviceIdentity, Login, SocketOptions, TOKEN, WsAnswer, WsClient};
use serde_json::json;

use crate::gateway;

/// A way through a proxy that wrote these headers.
fn through(forwarding: &[(&str, &str)]) -> SocketOptions {
    let headers = forwarding.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    SocketOptions { headers, ..SocketOptions::default() }
}

/// Answer to a device that gives this token through a proxy that wrote these headers.
async fn connect(port: u16, device: u8, forwarding: &[(&str, &str)], token: &str) -> WsAnswer {
    let mut client = WsClient::open(port, &through(forwarding)).await.unwrap();
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

#[tokio::test]
async fn the_token_alone_lets_nobody_in_through_a_proxy() {
    let trusting = json!({"gateway": {"trustedProxies": ["127.0.0.0/8"]}});
    for config in [json!({}), trusting] {
        let gateway = gateway().config(config).start().await.unwrap();
        for header in [
            ("X-Forwarded-For", "203.0.113.9"),
            ("X-Forwarded-For", "127.0.0.1"),
            ("X-Real-IP", "203.0.113.9"),
            ("X-Forwarded-Proto", "https"),
            ("Via", "1.1 proxy"),
        ] {
            let proxied = through(&[header]);
            let refused = WsClient::connect_with(gateway.port(), Login::token(TOKEN), &proxied).await;
            let text = refused.err().unwrap().to_string();
            assert!(text.contains("device identity required"), "{header:?} {text}");
        }
        gateway.client().await.unwrap().request("health", json!({})).await.unwrap();
    }
}

/// A proxy on this host that adds no header passes on the name that the public knows.
#[tokio::test]
async fn the_token_alone_lets_nobody_in_under_a_name_that_is_not_this_hosts() {
    let gateway = gateway().start().await.unwrap();
    let port = gateway.port();
    for host in ["gw.example.com", "localhost.example.com", "203.0.113.9:18789", "gw.example.com:443"] {
        let proxied = through(&[("Host", host)]);
        let refused = WsClient::connect_with(port, Login::token(TOKEN), &proxied).await;
        let text = refused.err().unwrap().to_string();
        assert!(text.contains("device identity required"), "{host} {text}");
        let answer = connect(port, 2, &[("Host", host)], TOKEN).await;
        assert_eq!(answer.error["code"], "NOT_PAIRED", "{host} {answer:?}");
    }
    let name = nix::unistd::gethostname().unwrap().into_string().unwrap();
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1:18789", "127.0.1.1", "[::1]:1", name.as_str()] {
        let near = through(&[("Host", host)]);
        let admitted = WsClient::connect_with(port, Login::token(TOKEN), &near).await;
        assert!(admitted.is_ok(), "{host} {:?}", admitted.err());
    }
}

#[tokio::test]
async fn a_node_is_let_in_with_a_device_and_something_it_can_do() {
    let gateway = gateway().start().await.unwrap();
    let device = || DeviceIdentity::from_seed(1);
    let bare = || Login::token(TOKEN).with("role", json!("node"));
    let rows = [
        (bare(), "device identity required"),
        (bare().with("caps", json!(["system"])), "device identity required"),
        (bare().device(device()), "a node must declare caps, commands or permissions"),
        (
            bare().device(device()).with("caps", json!([])),
            "a node must declare caps, commands or permissions",
        ),
    ];
    for (login, expect) in rows {
        let refused = WsClient::connect(gateway.port(), login).await.err().unwrap().to_string();
        assert!(refused.contains(expect), "{refused}");
    }
    // As OpenClaw's own headless node.
    let declared = json!(["system.run", "system.which"]);
    let (_, hello) =
        WsClient::connect(gateway.port(), Login::node(TOKEN, device()).with("commands", declared))
            .await
            .unwrap();
    assert_eq!(hello["auth"]["role"], "node");
}
