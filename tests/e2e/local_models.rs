//! First start without a model, on a machine where a program for local models runs.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::conversation::turn;

/// Address at which nothing listens.
const NOBODY: &str = "http://127.0.0.1:9";

async fn ollama() -> ModelServer {
    let lists = |request: &Captured| {
        let body = match request.path.as_str() {
            "/api/tags" => json!({"models": [{"name": "llama3.2:latest"}]}),
            "/api/show" => {
                json!({"capabilities": ["completion", "tools"], "model_info": {"llama.context_length": 65_536}})
            }
            _ => return None,
        };
        Some(Reply::plain(200, "application/json", body.to_string()))
    };
    ModelServer::queue([Reply::text("from this machine"), Reply::text("again")]).await.listing(lists)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_this_machine_answers_when_nothing_is_connected_and_is_listed() {
    let server = ollama().await;
    let places = format!("ollama={},lmstudio={NOBODY},llamacpp={NOBODY},vllm={NOBODY}", server.url());
    let gateway = crate::gateway().env("OPENCLAW_LOCAL_MODELS", places).start().await.unwrap();
    gateway.logged("agent model: offline/guide").await.unwrap();
    assert!(server.requests().is_empty(), "a start asks nobody");
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "from this machine");
    gateway.logged("no model is configured: ollama/llama3.2:latest answers").await.unwrap();
    let called =
        server.requests().into_iter().find(|request| request.path == "/v1/chat/completions").unwrap();
    assert_eq!((&called.body["model"], called.header("authorization")), (&json!("llama3.2:latest"), None));

    let listed = client.request("models.list", json!({})).await.unwrap();
    let models = listed["models"].as_array().unwrap();
    let found = models.iter().find(|model| model["provider"] == "ollama").unwrap();
    let expect = json!({"id": "llama3.2:latest", "name": "llama3.2:latest", "provider": "ollama", "contextWindow": 65_536,
        "reasoning": false, "input": ["text"]});
    assert_eq!(*found, expect);
    let sessions = client.request("sessions.list", json!({})).await.unwrap();
    assert_eq!(sessions["defaults"]["model"], "llama3.2:latest");
    assert!(!gateway.state_dir().join("agents/main/agent/models.json").exists(), "nobody connected it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_writes_models_json_without_a_secret_and_reads_what_it_adds() {
    let server = ModelServer::queue([Reply::text("one"), Reply::text("two")]).await;
    let mut gateway = crate::gateway().fake_model(&server.v1()).prepare().unwrap();
    let agent_dir = gateway.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&agent_dir).unwrap();
    let path = agent_dir.join("models.json");
    let theirs = json!({"providers": {"theirs": {"baseUrl": server.v1(), "apiKey": "their-key", "api": "openai-completions",
        "models": [{"id": "m", "contextWindow": 40_000}]}}});
    std::fs::write(&path, theirs.to_string()).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let listed = client.request("models.list", json!({})).await.unwrap();
    let keys: Vec<String> = listed["models"]
        .as_array()
        .unwrap()
        .iter()
        .take(2)
        .map(|m| format!("{}/{}", m["provider"].as_str().unwrap(), m["id"].as_str().unwrap()))
        .collect();
    assert_eq!(keys, ["fake/fake-1", "theirs/m"]);
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "one");
    let patch = json!({"key": "main", "model": "theirs/m"});
    client.request("sessions.patch", patch).await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-2").await, "two");
    assert_eq!(server.requests()[1].header("authorization"), Some("Bearer their-key"));
    gateway.terminate().await.unwrap();
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(written["providers"]["theirs"], theirs["providers"]["theirs"]);
    assert_eq!(written["providers"]["fake"]["apiKey"], "openclaw-ref:config");
}

/// A power cut may leave either.
#[tokio::test]
async fn a_models_json_that_is_empty_or_cut_short_is_made_anew() {
    for (left, is_kept) in [("", false), ("{\"providers\": {", true)] {
        let server = ModelServer::answering(|_| Reply::text("hi")).await;
        let mut gateway = crate::gateway().fake_model(&server.v1()).prepare().unwrap();
        let dir = gateway.state_dir().join("agents/main/agent");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("models.json"), left).unwrap();
        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "hi", "{left:?}");
        gateway.terminate().await.unwrap();
        let text = std::fs::read_to_string(dir.join("models.json")).unwrap();
        let written: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"));
        assert_eq!(written["providers"]["fake"]["apiKey"], "openclaw-ref:config", "{left:?}");
        let mut names = std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().file_name());
        let was_kept = names.any(|name| name.to_string_lossy().starts_with("models.json.damaged-"));
        assert_eq!(was_kept, is_kept, "{left:?}");
    }
}
