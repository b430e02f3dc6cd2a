//! Prompt caching through everything: what a provider has cached of a session stays what it was, also across a restart.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::turn;

/// The parts of a request that a provider caches, without the marks that say how far: tools, system prompt, messages.
fn cached(request: &Captured) -> (String, Vec<String>) {
    let around = json!([request.body["tools"], request.body["system"]]).to_string();
    let unmarked = |message: &Value| {
        let mut message = message.clone();
        for part in message["content"].as_array_mut().into_iter().flatten() {
            part.as_object_mut().unwrap().shift_remove("cache_control");
        }
        message.to_string()
    };
    (around, request.messages().iter().map(unmarked).collect())
}

#[tokio::test]
async fn what_was_cached_stays_to_the_byte_also_across_a_restart() {
    let server = ModelServer::queue([
        Reply::tool("toolu_1", "write", &json!({"path": "a.txt", "content": "one\n"})),
        Reply::text("Done."),
        Reply::text("Sure."),
        Reply::text("Still."),
        Reply::text("And still."),
    ])
    .await;
    let config = json!({"agents": {"defaults": {"model": "anthropic/claude-opus-4-6"}},
        "models": {"providers": {"anthropic": {"baseUrl": server.url(), "models": []}}}});
    let setup = gateway().config(config).env("ANTHROPIC_API_KEY", "sk-ant-fake-key");
    let mut gateway = setup.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "write it", "run-1").await, "Done.");
    assert_eq!(turn(&mut client, "main", "sure? \u{2028} 🦞 \"quoted\"", "run-2").await, "Sure.");
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "still?", "run-3").await, "Still.");
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "and now?", "run-4").await, "And still.");

    let requests: Vec<_> = server.requests().iter().map(cached).collect();
    assert_eq!(requests.len(), 5);
    for pair in requests.windows(2) {
        assert_eq!(pair[0].0, pair[1].0, "tools and system prompt");
        let shared = &pair[1].1[..pair[0].1.len()];
        assert_eq!(pair[0].1, shared, "the conversation so far");
    }
    // The mark stands where the next request can find it again: at the end of what is sent.
    let last = &server.requests()[4].body;
    let messages = last["messages"].as_array().unwrap();
    let ends =
        |message: &Value| message["content"].as_array().unwrap().last().unwrap()["cache_control"].clone();
    assert_eq!(ends(messages.last().unwrap()), json!({"type": "ephemeral"}));
    assert_eq!(messages.iter().filter(|message| !ends(message).is_null()).count(), 1);
    assert_eq!(last["system"][0]["cache_control"], json!({"type": "ephemeral"}));
}
