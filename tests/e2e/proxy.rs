//! Proxies of the environment carry what goes to the world, and nothing else.

use openclaw_testkit::DEADLINE;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::gateway;
use crate::support::conversation::{failure, send, turn};

/// A host that no resolver knows: what reaches the server went through the proxy.
const ELSEWHERE: &str = "http://models.invalid/v1";

#[tokio::test]
async fn a_model_elsewhere_is_asked_through_the_proxy() {
    let proxy = ModelServer::answering(|_| Reply::text("through the proxy")).await;
    let gateway = gateway().fake_model(ELSEWHERE).env("HTTP_PROXY", proxy.url()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "through the proxy");
    assert_eq!(proxy.requests()[0].path, format!("{ELSEWHERE}/chat/completions"));
}

#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel_to_a_model_behind_tls() {
    let (plain, proxy) = (ModelServer::queue([]).await, TcpListener::bind("127.0.0.1:0").await.unwrap());
    let at = format!("http://{}", proxy.local_addr().unwrap());
    let setup = gateway().fake_model("https://models.invalid/v1").env("HTTP_PROXY", plain.url());
    let gateway = setup.env("HTTPS_PROXY", at).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "hello", "run-1").await;
    let (stream, _) = timeout(DEADLINE, proxy.accept()).await.unwrap().unwrap();
    let line = timeout(DEADLINE, BufReader::new(stream).lines().next_line()).await.unwrap().unwrap();
    assert_eq!(line.as_deref(), Some("CONNECT models.invalid:443 HTTP/1.1"));
    assert_eq!(plain.requests().len(), 0);
}

#[tokio::test]
async fn a_model_on_this_machine_is_asked_directly() {
    let (proxy, model) =
        (ModelServer::queue([]).await, ModelServer::answering(|_| Reply::text("directly")).await);
    let setup =
        gateway().fake_model(&model.v1()).env("HTTP_PROXY", proxy.url()).env("http_proxy", proxy.url());
    let gateway = setup.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "directly");
    assert_eq!(proxy.requests().len(), 0);
}

/// The host does not resolve, so that the call fails; its four tries wait 2, 4 and 8 seconds.
#[tokio::test]
async fn hosts_that_no_proxy_is_for_are_asked_directly() {
    let proxy = ModelServer::queue([]).await;
    let setup =
        gateway().fake_model(ELSEWHERE).env("HTTP_PROXY", proxy.url()).env("NO_PROXY", "models.invalid");
    let gateway =
        setup.config(json!({"agents": {"defaults": {"timeoutSeconds": 60}}})).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "hello", "run-1").await;
    let text = failure(&mut client, "main", "hello", "run-1").await;
    assert!(text.contains("cannot connect to models.invalid:80"), "{text}");
    assert_eq!(proxy.requests().len(), 0);
}
