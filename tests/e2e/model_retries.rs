//! Model servers that do not answer at once: whoever asked sees why nothing comes, and what is tried.

use std::sync::atomic::{AtomicUsize, Ordering};

use openclaw_testkit::model_server::{ModelServer, Reply, Step};
use openclaw_testkit::{GatewaySetup, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::send;

/// The key of provider `fake`, which the server's error repeats.
const KEY: &str = "fake-key";

fn overloaded() -> Reply {
    Reply::openai_error(500, "server_error", &format!("no room for {KEY}")).header("retry-after-ms", "1")
}

/// A server that breaks down at the first two requests of `every` so many.
async fn shaky(first: fn() -> Reply, every: usize) -> ModelServer {
    let asked = AtomicUsize::new(0);
    ModelServer::answering(move |_| match asked.fetch_add(1, Ordering::Relaxed) % every {
        0 => first(),
        1 => overloaded(),
        _ => Reply::text("well again"),
    })
    .await
}

/// The `agent` events of a run, up to its last one, and its last `chat` event.
async fn run(client: &mut WsClient, id: &str) -> Vec<Value> {
    send(client, "main", "hello", id).await;
    let is_last = |payload: &Value| payload["runId"] == id && payload["state"] == "final";
    let last = client.event("chat", is_last).await.unwrap();
    let passed = client.take_passed().into_iter();
    let own = passed.filter(|frame| frame["event"] == "agent" && frame["payload"]["runId"] == id);
    own.map(|frame| frame["payload"].clone()).chain([last]).collect()
}

fn phases(events: &[Value]) -> Vec<String> {
    let name = |event: &Value| {
        let data = &event["data"];
        let what = data["phase"].as_str().or(event["stream"].as_str()).or(event["state"].as_str());
        what.unwrap_or_default().to_owned()
    };
    let mut names: Vec<String> = events.iter().map(name).collect();
    names.dedup();
    names
}

/// Waits two seconds, as a person would have to.
#[tokio::test]
async fn clients_hear_of_each_further_try_before_it_is_made_and_of_none_where_there_is_none() {
    let model = shaky(|| Reply::steps([Step::Cut]), 4).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();

    let events = run(&mut client, "r1").await;
    assert_eq!(phases(&events), ["start", "retry", "assistant", "end", "final"], "{events:?}");
    let seen: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(seen.is_sorted(), "{seen:?}");
    let told: Vec<&Value> =
        events.iter().map(|event| &event["data"]).filter(|d| d["phase"] == "retry").collect();
    let [first, second] = told[..] else { panic!("{told:?}") };
    let facts = |data: &Value| {
        ["provider", "model", "attempt", "maxAttempts", "delayMs", "reason"].map(|name| data[name].clone())
    };
    let expect = |attempt: u32, delay: u32| {
        [json!("fake"), json!("fake-1"), json!(attempt), json!(4), json!(delay), json!("unavailable")]
    };
    assert_eq!((facts(first), facts(second)), (expect(2, 2_000), expect(3, 1)));
    let text = first["text"].as_str().unwrap();
    assert!(text.starts_with("fake/fake-1 does not answer ("), "{text}");
    assert!(text.ends_with("); trying again in 2 s (2 of 4)"), "{text}");
    assert!(second["error"].as_str().unwrap().contains("no room for"), "{second}");
    assert!(!second.to_string().contains(KEY), "{second}");

    let events = run(&mut client, "r2").await;
    assert_eq!(phases(&events), ["start", "assistant", "end", "final"], "{events:?}");
}

/// A gateway with a dead model, then a living one.
fn with_fallback(model: &ModelServer) -> GatewaySetup {
    let dead = json!({"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "apiKey": "key",
        "models": [{"id": "m", "name": "M"}]});
    gateway().fake_model(&model.v1()).config(json!({
        "agents": {"defaults": {"model": {"primary": "dead/m", "fallbacks": ["fake/fake-1"]}}},
        "models": {"providers": {"dead": dead}},
    }))
}

/// Waits two seconds.
#[tokio::test]
async fn clients_hear_that_another_model_is_asked() {
    let model = ModelServer::queue([Reply::text("from the other")]).await;
    let gateway = with_fallback(&model).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let events = run(&mut client, "r1").await;
    assert_eq!(phases(&events), ["start", "retry", "fallback", "assistant", "end", "final"], "{events:?}");
    let data = |phase: &str| &events.iter().find(|event| event["data"]["phase"] == phase).unwrap()["data"];
    let refused = "dead/m does not answer (connection refused by 127.0.0.1:1; is the server running?)";
    assert_eq!(data("retry")["text"], format!("{refused}; trying again in 2 s (2 of 2)"));
    let fallback = data("fallback");
    assert_eq!(fallback["text"], format!("{refused}; asking fake/fake-1"));
    let names = ["fromProvider", "fromModel", "toProvider", "toModel"].map(|name| fallback[name].clone());
    assert_eq!(names, ["dead", "m", "fake", "fake-1"].map(|name| json!(name)));
}

#[tokio::test]
async fn the_command_line_tells_each_further_try_on_stderr_and_the_answer_alone_on_stdout() {
    let model = shaky(overloaded, 3).await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let args = ["agent", "--agent", "main", "-m", "hello"];
    let local = openclaw(&gateway, &[&args[..], &["--local"]].concat()).await;
    gateway.start().await.unwrap();
    let remote = openclaw(&gateway, &args).await;
    let json = openclaw(&gateway, &[&args[..], &["--json"]].concat()).await;
    for ended in [&local, &remote, &json] {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = ended.err.lines().filter(|line| line.starts_with("fake/fake-1 does not answer ("));
        let ends: Vec<&str> = told.filter_map(|line| line.rsplit_once("; ")).map(|(_, end)| end).collect();
        assert_eq!(ends, ["trying again in 1 s (2 of 4)", "trying again in 1 s (3 of 4)"], "{ended:?}");
        assert!(!ended.err.contains(KEY), "{ended:?}");
    }
    assert_eq!((local.out.as_str(), remote.out.as_str()), ("well again\n", "well again\n"));
    let answer: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(answer["result"]["payloads"][0]["text"], "well again", "{answer}");
}
