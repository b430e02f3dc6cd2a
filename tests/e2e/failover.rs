//! Credentials and models that fail: another one answers, what failed rests also after a restart, and the log says what was
//! decided.

use std::collections::BTreeMap;

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{end, history, send, turn};

const LIMITED: &str = "key-of-the-limited";

fn key_of(request: &Captured) -> &str {
    request.header("authorization").unwrap().strip_prefix("Bearer ").unwrap()
}

/// A server where one key has reached its limit.
async fn server() -> ModelServer {
    ModelServer::answering(|request| match key_of(request) {
        LIMITED => Reply::openai_error(429, "rate_limit_exceeded", "slow down").header("retry-after", "3600"),
        other => Reply::text(&format!("from {other}")),
    })
    .await
}

fn provider(server: &ModelServer) -> Value {
    json!({"baseUrl": server.v1(), "api": "openai-completions", "apiKey": "key-of-two",
        "models": [{"id": "m", "name": "M"}]})
}

/// A gateway whose provider `one` has these profiles, and falls back to `two/m`.
fn gateway_with(server: &ModelServer, profiles: &[(&str, &str)]) -> GatewayUnderTest {
    let prepared = prepared(server, &["two/m"]);
    write_profiles(&prepared, profiles);
    prepared
}

fn prepared(server: &ModelServer, fallbacks: &[&str]) -> GatewayUnderTest {
    let config = json!({
        "agents": {"defaults": {"model": {"primary": "one/m", "fallbacks": fallbacks}}},
        "models": {"providers": {"one": provider(server), "two": provider(server)}}});
    gateway().config(config).prepare().unwrap()
}

/// The profiles of provider `one`, none of which is in cooldown.
fn write_profiles(prepared: &GatewayUnderTest, profiles: &[(&str, &str)]) {
    let keys: BTreeMap<_, _> = profiles
        .iter()
        .map(|(id, key)| (*id, json!({"type": "api_key", "provider": "one", "key": key})))
        .collect();
    let dir = prepared.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&dir).unwrap();
    let file = json!({"version": 1, "profiles": keys, "order": {"one": profiles.iter().map(|(id, _)| id).collect::<Vec<_>>()}});
    std::fs::write(dir.join("auth-profiles.json"), file.to_string()).unwrap();
}

fn stats(gateway: &GatewayUnderTest) -> Value {
    let path = gateway.state_dir().join("agents/main/agent/auth-profiles.json");
    serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_profile_gives_way_and_still_rests_after_a_restart() {
    let server = server().await;
    let mut gateway = gateway_with(&server, &[("one:a", LIMITED), ("one:b", "key-of-b")]);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "r1").await, "from key-of-b");
    assert_eq!(turn(&mut client, "main", "again", "r2").await, "from key-of-b");
    gateway.logged("one/m [one:a] failed (rate_limit); next: one/m [one:b]").await.unwrap();

    drop(client);
    assert!(gateway.terminate().await.unwrap().success());
    let written = stats(&gateway);
    assert_eq!(written["usageStats"]["one:a"]["failureCounts"], json!({"rate_limit": 1}));
    assert_eq!(written["lastGood"], json!({"one": "one:b"}));

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "other", "hello", "r3").await, "from key-of-b");
    let requests = server.requests();
    let asked: Vec<&str> = requests.iter().map(key_of).collect();
    assert_eq!(asked, [LIMITED, "key-of-b", "key-of-b", "key-of-b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_no_profile_is_left_the_fallback_answers_and_the_session_says_so() {
    let server = server().await;
    let mut gateway = gateway_with(&server, &[("one:a", LIMITED)]);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "r1").await, "from key-of-two");
    assert_eq!(turn(&mut client, "main", "again", "r2").await, "from key-of-two");
    gateway.logged("Provider one is in cooldown (all profiles unavailable)").await.unwrap();
    let sessions = gateway.state_dir().join("agents/main/sessions/sessions.json");
    drop(client);
    gateway.terminate().await.unwrap();
    let rows: Value = serde_json::from_slice(&std::fs::read(sessions).unwrap()).unwrap();
    assert_eq!(rows["agent:main:main"]["modelProvider"], "two");
}

/// Pages of a proxy, a sign-in or a wrong address.
#[tokio::test]
async fn what_is_no_models_answer_makes_the_fallback_answer() {
    type Answers = fn() -> Reply;
    let strange: [(&str, Answers); 6] = [
        ("a web page", || Reply::html(200, "Sign in")),
        ("a redirect", || Reply::plain(302, "text/plain", "").header("location", "http://elsewhere/")),
        ("another method", || Reply::plain(405, "text/plain", "no")),
        // Decision 61: the model is gone, and its credential is as good as before.
        ("no such model", || {
            Reply::openai_error(404, "invalid_request_error", "The model `m` does not exist")
        }),
        ("a model that is gone", || Reply::openai_error(410, "gone", "This model has been retired")),
        ("a model that is not found", || Reply::openai_error(400, "model_not_found", "Model not found: m")),
    ];
    for (what, reply) in strange {
        let server = ModelServer::answering(move |request| match key_of(request) {
            LIMITED => reply(),
            other => Reply::text(&format!("from {other}")),
        })
        .await;
        let mut gateway = gateway_with(&server, &[("one:a", LIMITED)]);
        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        assert_eq!(turn(&mut client, "main", "hello", "r1").await, "from key-of-two", "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_gateway_remembers_who_is_in_cooldown() {
    let server = server().await;
    let mut gateway = gateway_with(&server, &[("one:a", LIMITED)]);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "r1").await, "from key-of-two");
    // Written before the next turn ends: failures do not wait for company.
    assert_eq!(turn(&mut client, "main", "again", "r2").await, "from key-of-two");
    drop(client);
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "and again", "r3").await, "from key-of-two");
    let limited = server.requests().iter().filter(|request| key_of(request) == LIMITED).count();
    assert_eq!(limited, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_while_everybody_is_in_cooldown_stays_in_the_conversation() {
    let server = server().await;
    let mut gateway = prepared(&server, &[]);
    write_profiles(&gateway, &[("one:a", LIMITED)]);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "hello", "r1").await;
    assert_eq!(end(&mut client, "r1").await["state"], "error", "the provider refuses it");

    // The provider is not asked for these. The second begins a conversation, the third goes on with
    // it.
    let mut told = Vec::new();
    for (run, text) in [("r2", "are you there?"), ("r3", "/new remember the milk"), ("r4", "and the eggs")] {
        send(&mut client, "main", text, run).await;
        let end = end(&mut client, run).await;
        assert_eq!(end["state"], "error", "{end}");
        told.push(end["errorMessage"].as_str().unwrap().to_owned());
        let last = if run == "r2" { "user: are you there?" } else { "user: remember the milk" };
        assert!(history(&mut client, "main").await.contains(&last.to_owned()), "{run}");
    }
    assert!(told[0].contains("in cooldown"), "{told:?}");
    let kept = client.request("chat.history", json!({"sessionKey": "main"})).await.unwrap();
    let kept: Vec<_> = kept["messages"].as_array().unwrap().iter().map(said).collect();
    let expected = ["remember the milk", told[1].as_str(), "and the eggs", told[2].as_str()];
    assert_eq!(kept, expected);
    assert_eq!(server.requests().len(), 1);

    drop(client);
    gateway.kill().await.unwrap();
    write_profiles(&gateway, &[("one:b", "key-of-b")]);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let waited = client.request("agent.wait", json!({"runId": "r4", "timeoutMs": 0})).await.unwrap();
    assert_eq!((&waited["status"], &waited["error"]), (&json!("error"), &json!(told[2])), "{waited}");
    assert_eq!(turn(&mut client, "main", "what shall I buy?", "r5").await, "from key-of-b");
    let asked = server.requests().last().unwrap().body.to_string();
    let places = ["remember the milk", "and the eggs", "what shall I buy?"].map(|text| asked.find(text));
    assert!(places[0].is_some() && places.is_sorted(), "{places:?} {asked}");
    assert!(!asked.contains("/new") && !asked.contains("are you there?"), "{asked}");
}

/// Text of a message in a history, or the reason why there is no answer.
fn said(message: &Value) -> String {
    let said = if message["stopReason"] == "error" {
        &message["errorMessage"]
    } else {
        &message["content"][0]["text"]
    };
    said.as_str().unwrap_or_default().to_owned()
}
