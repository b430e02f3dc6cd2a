//! Input nested deeper than any stack: from a client, a model, and in files.

use std::io::Write as _;

use openclaw_testkit::model_server::{ModelServer, Reply, ScriptedCall};
use openclaw_testkit::{GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::json;

use crate::support::conversation::{end, send, transcript_path, turn};

const DEEP: usize = 100_000;

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

/// The same process, and it answers.
async fn lives(gateway: &GatewayUnderTest, pid: u32) {
    assert_eq!(gateway.pid(), Some(pid));
    gateway.client().await.unwrap().request("health", json!({})).await.unwrap();
}

#[tokio::test]
async fn no_frame_of_a_client_is_nested_too_deep_for_the_gateway() {
    let gateway = crate::gateway().start().await.unwrap();
    let pid = gateway.pid().unwrap();
    // The smaller ones are read where the connection is, the bigger ones on a thread of their own.
    for depth in [1_000, DEEP / 2, DEEP] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = nested(open, close, depth);
            for frame in [
                deep.clone(),
                format!(r#"{{"type":"req","id":"1","method":"chat.send","params":{deep}}}"#),
                format!(r#"{{"type":"req","id":"1","method":"agent","params":{{"message":{deep}}}}}"#),
            ] {
                let mut client = gateway.client().await.unwrap();
                // The gateway answers or closes, depending on how much of it could be read.
                let _ = client.send_raw(&frame).await;
                lives(&gateway, pid).await;
                let mut stranger = WsClient::open(gateway.port(), &Default::default()).await.unwrap();
                let _ = stranger.send_raw(&frame).await;
            }
        }
    }
    lives(&gateway, pid).await;
}

#[tokio::test]
async fn words_of_a_person_with_deep_brackets_are_words() {
    let model = ModelServer::answering(|_| Reply::text("odd")).await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
    let (mut client, _) = WsClient::connect(gateway.port(), Login::token(TOKEN)).await.unwrap();
    for (n, text) in
        ["[".repeat(DEEP), format!("/model {}", "[".repeat(DEEP)), "a: ".repeat(DEEP)].into_iter().enumerate()
    {
        send(&mut client, "main", &text, &format!("run-{n}")).await;
        let end = end(&mut client, &format!("run-{n}")).await;
        assert!(end["state"] == "final" || end["state"] == "error", "{}", end["state"]);
    }
    lives(&gateway, gateway.pid().unwrap()).await;
}

#[tokio::test]
async fn no_answer_of_a_model_is_nested_too_deep_for_the_gateway() {
    let arguments = |text: String| {
        Reply::tools([ScriptedCall { id: "call-1".to_owned(), name: "read".to_owned(), arguments: text }])
    };
    let chunk = format!("data: {}\n\ndata: [DONE]\n\n", nested("{\"choices\":[", "]}", DEEP));
    let deep = nested("{\"path\":", "}", DEEP);
    let model = ModelServer::queue([
        arguments(deep.clone()),
        Reply::text("after deep arguments"),
        arguments("[".repeat(DEEP)),
        Reply::text("after torn arguments"),
        Reply::plain(200, "text/event-stream", chunk),
    ])
    .await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
    let pid = gateway.pid().unwrap();
    let mut client = gateway.client().await.unwrap();
    for run in ["run-1", "run-2", "run-3"] {
        send(&mut client, "main", "call something", run).await;
        let end = end(&mut client, run).await;
        assert!(end["state"] == "final" || end["state"] == "error", "{}", end["state"]);
        lives(&gateway, pid).await;
    }
}

#[tokio::test]
async fn no_file_is_nested_too_deep_for_the_gateway() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let mut gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hi", "run-1").await;
    let path = transcript_path(&gateway, "main").await;
    gateway.terminate().await.unwrap();
    let mut transcript = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    writeln!(transcript, "{}", nested("{\"message\":", "}", DEEP)).unwrap();
    gateway.start().await.unwrap();
    let pid = gateway.pid().unwrap();
    let mut client = gateway.client().await.unwrap();
    client.request("chat.history", json!({"sessionKey": "main"})).await.unwrap();
    assert_eq!(turn(&mut client, "main", "again", "run-2").await, "hello");

    let config = gateway.state_dir().join("openclaw.json");
    let sound = std::fs::read(&config).unwrap();
    std::fs::write(&config, nested("[", "]", DEEP)).unwrap();
    gateway.logged("nested deeper than").await.unwrap();
    lives(&gateway, pid).await;
    std::fs::write(&config, sound).unwrap();
}
