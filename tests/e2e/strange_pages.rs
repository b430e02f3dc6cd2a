//! Pages in a browser that are not ours, and a gateway that would ask nobody for a secret (decision 45).

use openclaw_testkit::{SocketOptions, TOKEN, WsClient};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::gateway;
use crate::support::command::openclaw;

#[tokio::test]
async fn a_gateway_without_a_secret_does_not_start() {
    let gateway = gateway().config(json!({"gateway": {"auth": {"mode": "none"}}})).prepare().unwrap();
    let refused = openclaw(&gateway, &["gateway", "run", "--port", "0"]).await;
    refused.failed(&["Config invalid", "gateway.auth.mode: Invalid input"]);
    let refused = openclaw(&gateway, &["gateway", "run", "--port", "0", "--auth", "none"]).await;
    refused.failed(&["Invalid --auth"]);
}

/// Refusal of a page that has the token and addresses the gateway like this; `None` when it comes
/// in.
async fn refusal(port: u16, origin: &str, host: &str) -> Option<String> {
    let headers = vec![("Origin".to_owned(), origin.to_owned()), ("Host".to_owned(), host.to_owned())];
    let options = SocketOptions { headers, ..SocketOptions::default() };
    let mut page = WsClient::open(port, &options).await.unwrap();
    page.challenge().await.unwrap();
    let connect = json!({
        "minProtocol": 3, "maxProtocol": 3, "auth": {"token": TOKEN},
        "client": {"id": "test", "version": "1", "platform": "web", "mode": "test"},
    });
    let answer = page.call("connect", connect).await.unwrap();
    (!answer.ok).then(|| answer.error["message"].as_str().unwrap().to_owned())
}

/// The owner of a name points it at this host once the page is loaded: to the browser both are one site.
#[tokio::test]
async fn a_page_whose_name_was_pointed_at_this_host_stays_outside() {
    let listed = json!({"gateway": {"controlUi": {"allowedOrigins": ["https://ui.example.com"]}}});
    let gateway = gateway().config(listed).start().await.unwrap();
    let port = gateway.port();
    for name in [format!("evil.example:{port}"), "localhost.evil.example".to_owned(), "10.9.8.7".to_owned()] {
        let refused = refusal(port, &format!("http://{name}"), &name).await;
        assert!(refused.is_some_and(|text| text.starts_with("origin not allowed")), "{name}");
    }
    for name in [format!("127.0.0.1:{port}"), format!("LOCALHOST:{port}")] {
        assert_eq!(refusal(port, &format!("http://{name}"), &name).await, None, "{name}");
    }
    assert_eq!(refusal(port, "https://ui.example.com", "localhost").await, None);
    // The page may ask, but comes through a proxy.
    let refused = refusal(port, "https://ui.example.com", "ui.example.com").await;
    assert_eq!(refused.as_deref(), Some("device identity required"));
}

#[tokio::test]
async fn a_page_gets_no_answer_under_a_name_that_is_not_the_gateways() {
    let gateway = gateway().start().await.unwrap();
    let port = gateway.port();
    let page = "Origin: http://evil.example\r\n";
    let rows = [
        ("/healthz", "Host: evil.example\r\n", page, 403),
        ("/", "Host: evil.example\r\n", page, 403),
        ("/", "Host: localhost\r\nHost: evil.example\r\n", page, 403),
        ("/", "", page, 403),
        ("/", "Host: localhost\r\n", page, 200),
        ("/", "Host: [::1]:1\r\n", page, 200),
        // Programs send no origin.
        ("/healthz", "Host: evil.example\r\n", "", 200),
        ("/healthz", "", "", 200),
    ];
    for (path, host, origin, expect) in rows {
        let request = format!("GET {path} HTTP/1.1\r\n{host}{origin}Connection: close\r\n\r\n");
        let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        let status: u16 = answer.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert_eq!(status, expect, "{request}");
    }
}
