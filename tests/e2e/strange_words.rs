//! Strange words that strangers and clients may put into other people's terminals, keys and logs.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, Login, SocketOptions, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::end;

/// Clears the screen, sets the title, turns the line around, begins a line of its own.
const FOUL: &str = "a\u{1b}[2J\u{9b}31m\u{7}\u{202e}gpj\u{7f}\r\nforged";

#[track_caller]
fn assert_harmless(text: &str) {
    let foul = text.chars().find(|c| c.is_control() && *c != '\n' || matches!(c, '\u{202a}'..='\u{202e}'));
    assert_eq!(foul, None, "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("forged")), "{text}");
}

#[tokio::test]
async fn what_a_stranger_says_is_escaped_in_the_log() {
    let mut gateway = gateway().prepare().unwrap();
    let file = gateway.home().join("gateway.log");
    set_log_file(&gateway, &file);
    gateway.start().await.unwrap();
    let mut stranger = WsClient::open(gateway.port(), &SocketOptions::default()).await.unwrap();
    stranger.challenge().await.unwrap();
    let mut connect = json!({
        "minProtocol": 3, "maxProtocol": 3,
        "client": {"id": "test", "version": "1", "platform": "x", "mode": "test"},
    });
    connect[FOUL] = json!(1);
    assert!(!stranger.call("connect", connect).await.unwrap().ok);
    gateway.logged("connect refused").await.unwrap();
    gateway.logged("a\\u001b[2J\\u009b31m").await.unwrap();
    assert_harmless(&gateway.log());
    let shown = openclaw(&gateway, &["logs", "--plain", "--token", TOKEN]).await;
    assert!(shown.out.contains("connect refused"), "{shown:?}");
    assert_harmless(&shown.out);
    gateway.terminate().await.unwrap();
    assert_harmless(&std::fs::read_to_string(file).unwrap());
}

fn set_log_file(gateway: &GatewayUnderTest, file: &std::path::Path) {
    let path = gateway.state_dir().join("openclaw.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["logging"] = json!({"file": file});
    std::fs::write(path, config.to_string()).unwrap();
}

#[tokio::test]
async fn a_session_key_with_control_characters_is_refused_and_a_stored_one_is_read() {
    let mut gateway = gateway().prepare().unwrap();
    let stored = "agent:main:old\u{1b}[2j\u{202e}";
    let dir = gateway.state_dir().join("agents/main/sessions");
    std::fs::create_dir_all(&dir).unwrap();
    let row = json!({stored: {"sessionId": "5e0f2c1a-0000-4000-8000-000000000000", "updatedAt": 1_770_000_000_000_i64}});
    std::fs::write(dir.join("sessions.json"), row.to_string()).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (method, params) in [
        (
            "chat.send",
            json!({"sessionKey": format!("agent:main:{FOUL}"), "message": "x", "idempotencyKey": "k1"}),
        ),
        (
            "agent",
            json!({"sessionKey": format!("agent:main:{FOUL}"), "message": "x", "idempotencyKey": "k2"}),
        ),
        ("sessions.patch", json!({"key": format!("x{FOUL}"), "thinkingLevel": "low"})),
    ] {
        let refused = client.call(method, params).await.unwrap();
        let text = refused.error["message"].as_str().unwrap();
        assert!(text.contains("has the control character U+001B"), "{method}: {text}");
        assert_harmless(text);
    }
    let listed = client.request("sessions.list", json!({})).await.unwrap();
    let keys: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert_eq!(keys, [stored], "nothing else was made, and what was there is there");
    let shown = openclaw(&gateway, &["sessions"]).await;
    assert!(shown.out.contains("agent:main:old\\u...\\u202e"), "its key is shortened: {shown:?}");
    assert_harmless(&shown.out);
}

#[tokio::test]
async fn a_refused_request_leaves_one_line_with_method_code_and_client() {
    let gateway = gateway().start().await.unwrap();
    let login = Login::token(TOKEN).with("scopes", json!(["operator.read"]));
    let (mut reader, _) = WsClient::connect(gateway.port(), login).await.unwrap();
    let secret = "hunter2-hunter2-hunter2";
    let endless = "m".repeat(10_000);
    for (method, params) in [
        ("config.get", json!({"token": secret})),
        ("chat.history", json!({"sessionKey": "main", "limit": 0, "password": secret})),
        ("sessions.resolve", json!({"key": "nobody"})),
        (endless.as_str(), json!({})),
    ] {
        assert!(!reader.call(method, params).await.unwrap().ok, "{method}");
    }
    gateway.logged("mmm").await.unwrap();
    let log = gateway.log();
    for method in ["config.get", "chat.history", "sessions.resolve", "mmmmm"] {
        let words = format!("method={method}");
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(&words)).collect();
        assert_eq!(lines.len(), 1, "{method}:\n{log}");
        for words in ["info [ws] request refused", "code=INVALID_REQUEST", "client=test", "conn="] {
            assert!(lines[0].contains(words), "no {words} in {}", lines[0]);
        }
        assert!(lines[0].len() < 1_000, "{}", lines[0]);
    }
    assert!(!log.contains(secret), "{log}");
}

/// `JSON.stringify` writes half a character where a program cut a text within one.
#[tokio::test]
async fn half_a_character_is_left_out() {
    let model = ModelServer::answering(|_| Reply::text("heard")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let params = r#"{"sessionKey": "main", "message": "cut \ud83d here", "idempotencyKey": "r1"}"#;
    let frame = format!(r#"{{"type": "req", "id": "x", "method": "chat.send", "params": {params}}}"#);
    client.send_raw(&frame).await.unwrap();
    assert!(client.answer("x").await.unwrap().ok);
    end(&mut client, "r1").await;
    assert!(model.requests()[0].last_user_text().contains("cut  here"));
}
