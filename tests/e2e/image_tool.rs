//! The `image` tool, through the real program: what is asked of the image model, and what is refused before it is asked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::config::merge;
use crate::support::conversation::{results, transcript_path, turn, well_formed};
use crate::support::pictures::black;

const SEEN: &str = "A black rectangle.";

/// Models of the provider: the run's own, one that sees, one that sees and fails, one that does not see.
fn models(more: Value) -> Value {
    let model = |id: &str, input: &[&str]| json!({"id": id, "name": id, "input": input, "contextWindow": 32000, "maxTokens": 4096});
    let both = &["text", "image"];
    let all =
        [model("fake-1", &["text"]), model("eyes", both), model("broken", both), model("blind", &["text"])];
    let mut config = json!({"models": {"providers": {"fake": {"models": all}}}});
    merge(&mut config, more);
    config
}

/// A model that calls the tool with each of these, and then is done; image models answer by their names.
async fn calling(calls: Vec<Value>) -> ModelServer {
    ModelServer::answering(move |request| match request.body["model"].as_str() {
        Some("eyes") => Reply::text(SEEN),
        Some("broken") => Reply::openai_error(400, "invalid_request_error", "no eyes today"),
        _ => match calls.get(results(request).len()) {
            Some(args) => Reply::tool(&format!("c{}", results(request).len()), "image", args),
            None => Reply::text("done"),
        },
    })
    .await
}

fn failed(error: &str) -> String {
    serde_json::to_string_pretty(&json!({"status": "error", "tool": "image", "error": error})).unwrap()
}

/// The requests that went to a model.
fn asked(model: &ModelServer, id: &str) -> Vec<Captured> {
    model.requests().into_iter().filter(|request| request.body["model"] == id).collect()
}

#[tokio::test]
async fn a_picture_is_looked_at_wherever_it_is() {
    let picture = black(30, 20);
    let data = format!("data:image/png;base64,{}", STANDARD.encode(&picture));
    let calls = vec![
        json!({"image": "a.png", "prompt": "Which colour?"}),
        json!({"image": data}),
        json!({"image": "http://127.0.0.1:1/a.png"}),
        json!({"image": "http://localhost/a.png"}),
        json!({"image": "ftp://example.org/a.png"}),
        json!({"image": "a.pdf"}),
        json!({"image": "none.png"}),
        json!({"image": "a.png", "model": "fake/broken"}),
        json!({"image": "a.png", "model": "fake/blind"}),
    ];
    let model = calling(calls).await;
    let gateway = gateway().fake_model(&model.v1()).config(models(json!({}))).start().await.unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("a.png"), &picture).unwrap();
    std::fs::write(workspace.join("a.pdf"), "%PDF-1.7").unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "look", "run-1").await, "done");

    let own = asked(&model, "fake-1");
    assert!(own[0].tool_names().contains(&"image".to_owned()), "{:?}", own[0].tool_names());
    let expect = [
        SEEN.to_owned(),
        SEEN.to_owned(),
        failed("Blocked: private/internal IP address"),
        failed("Blocked hostname: localhost"),
        "Unsupported image reference: ftp://example.org/a.png. Use a file path, a file:// URL, a data: URL, or an http(s) URL."
            .to_owned(),
        failed("Unsupported media type: document (PDF). PNG, JPEG, GIF and WebP images can be looked at."),
        failed("File not found: none.png"),
    ];
    let told = results(own.last().unwrap());
    assert_eq!(told[..expect.len()], expect);
    assert!(
        told[7].contains("Image model failed (fake/broken): ") && told[7].contains("no eyes today"),
        "{}",
        told[7]
    );
    assert_eq!(told[8], failed("Model does not support images: fake/blind"));

    let [first, second] = asked(&model, "eyes").try_into().unwrap_or_else(|all| panic!("{all:?}"));
    assert_eq!(first.body["max_tokens"].as_u64().or(first.body["max_completion_tokens"].as_u64()), Some(512));
    assert!(first.body["tools"].as_array().is_none_or(Vec::is_empty), "{}", first.body);
    for (request, prompt) in [(first, "Which colour?"), (second, "Describe the image.")] {
        let message = request.messages().last().unwrap().to_string();
        assert!(
            message.contains(prompt) && message.contains(&STANDARD.encode(&picture)),
            "{prompt}: {message}"
        );
    }
}

#[tokio::test]
async fn the_next_image_model_is_asked_where_one_fails() {
    let model = calling(vec![json!({"image": "a.png"})]).await;
    let choice = json!({"agents": {"defaults": {"imageModel": {"primary": "fake/broken", "fallbacks": ["fake/blind", "fake/eyes"]}}}});
    let gateway = gateway().fake_model(&model.v1()).config(models(choice)).start().await.unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("a.png"), black(30, 20)).unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "look", "run-1").await, "done");
    assert_eq!(results(asked(&model, "fake-1").last().unwrap()), [SEEN]);

    let entries = well_formed(&transcript_path(&gateway, "main").await);
    let result = entries.iter().find(|entry| entry["message"]["role"] == "toolResult").unwrap();
    let details = &result["message"]["details"];
    assert_eq!((&details["model"], &details["image"]), (&json!("fake/eyes"), &json!("a.png")));
    let attempts = details["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{details}");
    assert_eq!((&attempts[0]["provider"], &attempts[0]["model"]), (&json!("fake"), &json!("broken")));
    assert_eq!(attempts[1]["error"], "Model does not support images: fake/blind");
}

#[tokio::test]
async fn without_a_model_that_sees_the_tool_is_not_offered() {
    let model = ModelServer::answering(|_| Reply::text("done")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "look", "run-1").await;
    assert!(!model.requests()[0].tool_names().contains(&"image".to_owned()));
}

#[tokio::test]
async fn in_a_sandbox_only_its_own_pictures_are_looked_at() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.png");
    std::fs::write(&secret, black(30, 20)).unwrap();
    let calls = vec![
        json!({"image": "https://example.org/a.png"}),
        json!({"image": secret}),
        json!({"image": "a.png"}),
        json!({"image": "/workspace/a.png"}),
    ];
    let model = calling(calls).await;
    let sandbox = json!({"agents": {"defaults": {"sandbox": {"backend": "local", "mode": "all", "workspaceAccess": "rw"}}}});
    let gateway = gateway().fake_model(&model.v1()).config(models(sandbox)).start().await.unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("a.png"), black(30, 20)).unwrap();
    let mut client = gateway.client().await.unwrap();
    if !crate::support::sandbox::works(&gateway, &turn(&mut client, "main", "look", "run-1").await) {
        return;
    }
    let told = results(asked(&model, "fake-1").last().unwrap());
    assert_eq!(told[0], failed("Sandboxed image tool does not allow remote URLs."));
    assert!(told[1].contains("Path escapes sandbox root ("), "{}", told[1]);
    assert_eq!(told[2..], [SEEN, SEEN]);
    assert_eq!(asked(&model, "eyes").len(), 2);
}
