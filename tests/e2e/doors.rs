//! Refused at the door: strange agents, endless keys, pages of other sites, paths that are no page.

use openclaw_testkit::{Login, SocketOptions, TOKEN, WsClient};
use serde_json::json;

use crate::gateway;
use crate::support::http::{ask, get};

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
    for path in ["/__openclaw__/canvas/", "/v1/models", "/metrics", "/assets/../../etc/passwd"] {
        assert_eq!(status(gateway.port(), path).await, 404, "{path}");
    }
    for path in ["/", "/chat", "/healthz"] {
        assert_eq!(status(gateway.port(), path).await, 200, "{path}");
    }
}

#[tokio::test]
async fn endpoints_that_are_not_there_say_so_and_health_is_no_page() {
    let gateway = gateway().start().await.unwrap();
    let said = async |method: &str, path: &str| {
        let answer = ask(gateway.port(), method, path).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("application/json"), "{method} {path}: {answer}");
        let status: u16 = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str::<serde_json::Value>(body).unwrap())
    };
    for path in ["/v1/chat/completions", "/v1/responses", "/hooks/wake", "/hooks/agent"] {
        for method in ["POST", "GET"] {
            let (status, told) = said(method, path).await;
            assert_eq!((status, &told["error"]["type"]), (501, &json!("not_implemented")), "{method} {path}");
        }
    }
    assert_eq!(said("GET", "/health").await, (200, json!({"ok": true, "status": "live"})));
    assert!(ask(gateway.port(), "POST", "/v1/models").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn a_page_that_somebody_else_built_is_served_from_its_directory() {
    let mut gateway = gateway().prepare().unwrap();
    let root = gateway.home().join("control-ui");
    std::fs::create_dir_all(root.join("assets")).unwrap();
    std::fs::write(root.join("index.html"), "<head><title>Theirs</title></head>").unwrap();
    std::fs::write(root.join("assets/index.js"), "theirs();".repeat(100_000)).unwrap();
    std::fs::write(gateway.home().join("secret.js"), "secret").unwrap();
    std::os::unix::fs::symlink(gateway.home().join("secret.js"), root.join("assets/out.js")).unwrap();
    let path = gateway.state_dir().join("openclaw.json");
    let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["gateway"]["controlUi"] = json!({"root": "~/control-ui", "basePath": "/ui"});
    std::fs::write(&path, config.to_string()).unwrap();
    gateway.start().await.unwrap();
    for path in ["/ui/", "/ui/sessions", "/ui/index.html"] {
        let page = get(gateway.port(), path).await;
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("Theirs"), "{path} {page}");
        assert!(page.contains("__OPENCLAW_CONTROL_UI_BASE_PATH__=\"/ui\""), "{page}");
    }
    let script = get(gateway.port(), "/ui/assets/index.js").await;
    assert!(script.contains("text/javascript") && script.ends_with("theirs();"), "{} bytes", script.len());
    assert!(script.len() > 900_000);
    for path in ["/ui/assets/out.js", "/ui/assets/missing.js", "/ui/assets/../../secret.js"] {
        let answer = get(gateway.port(), path).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path} {answer}");
    }
    assert!(!get(gateway.port(), "/ui/../secret.js").await.contains("secret"), "it is the page");
    assert!(!gateway.log().contains("controlUi.root"), "nothing to warn of:\n{}", gateway.log());
    std::fs::remove_file(root.join("index.html")).unwrap();
    assert!(get(gateway.port(), "/ui/").await.starts_with("HTTP/1.1 503"));
}

async fn status(port: u16, path: &str) -> u16 {
    get(port, path).await.split_whitespace().nth(1).unwrap().parse().unwrap()
}
