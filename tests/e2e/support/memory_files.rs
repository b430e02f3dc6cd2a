//! Memory of a gateway under test: notes are written, and found by the tool.

use std::path::PathBuf;

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::ModelServer;
use serde_json::{Value, json};

use super::tools_invoke::invoke;

/// The workspace of the main agent.
pub(crate) fn workspace(gateway: &GatewayUnderTest) -> PathBuf {
    gateway.state_dir().join("workspace")
}

/// Writes a file of the workspace.
pub(crate) fn note(gateway: &GatewayUnderTest, path: &str, text: &str) {
    let file = workspace(gateway).join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// Returns the details of a tool's result, or its error.
pub(crate) async fn tool(gateway: &GatewayUnderTest, name: &str, session: &str, args: Value) -> Value {
    let asked = json!({"tool": name, "args": args, "sessionKey": session});
    let (_, answer) = invoke(gateway.port(), &asked).await;
    match answer["result"]["details"].clone() {
        Value::Null => answer["error"].clone(),
        details => {
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), details);
            details
        }
    }
}

/// Returns the answer of `memory_search` in the main session.
pub(crate) async fn found(gateway: &GatewayUnderTest, query: &str) -> Value {
    tool(gateway, "memory_search", "main", json!({"query": query})).await
}

/// Returns the paths of an answer's hits.
#[track_caller]
pub(crate) fn paths(found: &Value) -> Vec<String> {
    let results = found["results"].as_array().unwrap_or_else(|| panic!("{found}"));
    results.iter().map(|hit| hit["path"].as_str().unwrap().to_owned()).collect()
}

/// Configuration of memory whose texts the scripted model server embeds.
pub(crate) fn with_embeddings(model: &ModelServer) -> Value {
    json!({"agents": {"defaults": {"memorySearch": {
        "provider": "openai", "model": "emb-1", "remote": {"baseUrl": model.v1(), "apiKey": "k"},
    }}}})
}
