//! What does not get in: strange agents, endless keys, pages of other sites, paths that are no page.

use openclaw_testkit::{Login, SocketOptions, TOKEN, WsClient};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::gateway;

#[tokio::test]
async fn a_message_to_an_unknown_agent_is_refused_and_makes_none() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (method, params) in [
        ("chat.send", json!({"sessionKey": "agent:ghost:main", "message": "boo", "idempotencyKey": "g1"})),
        ("agent", json!({"sessionKey": "agent:ghost:main", "message": "boo", "idempotencyKey": "g2"})),
        ("sessions.patch", json!({"key": "agent:ghost:main", "thinkingLevel": "low"})),
    ] {
        let refused = client.call(method, params).await.unwrap();
        assert_eq!(refused.error["message"], format!("invalid {method} params: unknown agent id \"ghost\""));
    }
    assert!(!gateway.state_dir().join("agents/ghost").exists());
}

#[tokio::test]
async fn a_number_that_is_too_large_is_refused_in_words_of_the_protocol() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let refused = client.call("agent.wait", json!({"runId": "r", "timeoutMs": 1e308})).await.unwrap();
    let text = "invalid agent.wait params: 1e+308 must be a whole number from 0 to 18446744073709551615";
    assert_eq!(refused.error["message"], text);
}

#[tokio::test]
async fn an_idempotency_key_has_an_end() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let key = "k".repeat(257);
    let params = json!({"sessionKey": "main", "message": "x", "idempotencyKey": key});
    let refused = client.call("chat.send", params).await.unwrap();
    let text = "invalid chat.send params: at /idempotencyKey: must NOT have more than 256 characters";
    assert_eq!(refused.error["message"], text);
}

#[tokio::test]
async fn a_page_of_another_site_is_refused_whatever_it_calls_itself() {
    let gateway = gateway().start().await.unwrap();
    let headers = vec![("Origin".to_owned(), "https://evil.example".to_owned())];
    let options = SocketOptions { headers, ..SocketOptions::default() };
    let mut page = WsClient::open(gateway.port(), &options).await.unwrap();
    page.challenge().await.unwrap();
    let connect = json!({
        "minProtocol": 3, "maxProtocol": 3, "auth": {"token": TOKEN},
        "client": {"id": "cli", "version": "1", "platform": "web", "mode": "cli"},
    });
    let refused = page.call("connect", connect).await.unwrap();
    assert!(refused.error["message"].as_str().unwrap().starts_with("origin not allowed"), "{refused:?}");

    // The same without an origin is no page.
    WsClient::connect(gateway.port(), Login::token(TOKEN)).await.unwrap();
}

#[tokio::test]
async fn paths_of_other_endpoints_are_not_the_page() {
    let gateway = gateway().start().await.unwrap();
    for path in ["/__openclaw__/canvas/", "/v1/models", "/metrics", "/hooks/wake", "/assets/../../etc/passwd"]
    {
        assert_eq!(status(gateway.port(), path).await, 404, "{path}");
    }
    for path in ["/", "/chat", "/healthz"] {
        assert_eq!(status(gateway.port(), path).await, 200, "{path}");
    }
}

async fn status(port: u16, path: &str) -> u16 {
    get(port, path).await.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What a path answers with, head and all.
pub(crate) async fn get(port: u16, path: &str) -> String {
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}
