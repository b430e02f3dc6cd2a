//! `session.mainKey`: the main session under another name, in a new directory and in one that was used without it
//! (`docs/sessions.md`).

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{history, turn};
use crate::support::session_rows::{row, rows, write_rows, write_transcript};

const REMEMBERED: &str = "The owner's cat is called Mitzi.";

/// Answers with whether it was shown `MEMORY.md`.
async fn model() -> ModelServer {
    ModelServer::answering(|request| {
        Reply::text(if request.body.to_string().contains("Mitzi") { "I remember." } else { "Who are you?" })
    })
    .await
}

async fn prepared(model: &ModelServer, session: Value) -> GatewayUnderTest {
    let gateway = gateway().fake_model(&model.v1()).config(json!({"session": session})).prepare().unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("MEMORY.md"), REMEMBERED).unwrap();
    gateway
}

/// Names the main session in the config file of a gateway that does not run.
fn name_main(gateway: &GatewayUnderTest, main_key: &str) {
    let path = gateway.state_dir().join("openclaw.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["session"]["mainKey"] = json!(main_key);
    std::fs::write(path, config.to_string()).unwrap();
}

async fn listed(client: &mut WsClient) -> Vec<(String, String)> {
    let list = client.request("sessions.list", json!({})).await.unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let mut rows: Vec<_> = list["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (text(row, "key"), text(row, "sessionId")))
        .collect();
    rows.sort();
    rows
}

fn keys(rows: &[(String, String)]) -> Vec<&str> {
    rows.iter().map(|(key, _)| key.as_str()).collect()
}

#[tokio::test]
async fn the_main_session_has_the_configured_name_on_every_surface() {
    let model = model().await;
    let mut gateway = prepared(&model, json!({"mainKey": "Work"})).await;
    gateway.start().await.unwrap();
    let (mut client, hello) = WsClient::connect(gateway.port(), Login::token(TOKEN)).await.unwrap();
    let defaults = &hello["snapshot"]["sessionDefaults"];
    assert_eq!(
        (&defaults["mainKey"], &defaults["mainSessionKey"]),
        (&json!("work"), &json!("agent:main:work"))
    );
    assert_eq!(client.request("agents.list", json!({})).await.unwrap()["mainKey"], "work");

    // All spellings are one conversation, and the owner's own: it is shown the memory.
    for (number, name) in ["main", "WORK", "agent:main:main", "agent:main:work"].into_iter().enumerate() {
        assert_eq!(turn(&mut client, name, "hello", &format!("r{number}")).await, "I remember.", "{name}");
    }
    let agent = json!({"message": "hello", "agentId": "main", "idempotencyKey": "r-agent"});
    client.request("agent", agent).await.unwrap();
    client.request("agent.wait", json!({"runId": "r-agent"})).await.unwrap();
    assert_eq!(turn(&mut client, "side", "hello", "r-side").await, "Who are you?");
    assert_eq!(history(&mut client, "main").await.len(), 10);
    let before = listed(&mut client).await;
    assert_eq!(keys(&before), ["agent:main:side", "agent:main:work"]);

    let resolved = client.request("sessions.resolve", json!({"key": "main"})).await.unwrap();
    assert_eq!(resolved["key"], "agent:main:work");
    let preview = client.request("sessions.preview", json!({"keys": ["main"]})).await.unwrap();
    assert_eq!(preview["previews"][0]["status"], "ok", "{preview}");
    let refused = client.call("sessions.delete", json!({"key": "agent:main:main"})).await.unwrap();
    assert_eq!(refused.error["message"], "Cannot delete the main session (agent:main:work).");
    assert_eq!(
        client.request("sessions.reset", json!({"key": "main"})).await.unwrap()["key"],
        "agent:main:work"
    );
    let after = listed(&mut client).await;
    assert_eq!((keys(&after), after[1] == before[1]), (vec!["agent:main:side", "agent:main:work"], false));

    drop(client);
    gateway.terminate().await.unwrap();
    let rows = rows(&gateway);
    assert_eq!(rows.as_object().unwrap().keys().collect::<Vec<_>>(), ["agent:main:work", "agent:main:side"]);
}

/// Decision 47: OpenClaw 2026.2.9 ignores the key, so that its main session stands under `main`.
#[tokio::test]
async fn who_comes_from_openclaw_keeps_the_conversation_and_can_go_back() {
    let model = model().await;
    let mut gateway = prepared(&model, json!({"mainKey": "work"})).await;
    write_rows(&gateway, &json!({"agent:main:main": row("s-main", 1_770_000_000_000)}));
    write_transcript(&gateway, "s-main", "from before");
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(history(&mut client, "main").await, ["user: from before"]);
    assert_eq!(listed(&mut client).await, [("agent:main:work".to_owned(), "s-main".to_owned())]);
    client.request("sessions.patch", json!({"key": "work", "label": "mine"})).await.unwrap();
    drop(client);
    gateway.terminate().await.unwrap();
    // OpenClaw finds it again there.
    let kept = rows(&gateway);
    assert_eq!(
        (kept.as_object().unwrap().len(), &kept["agent:main:main"]["sessionId"]),
        (1, &json!("s-main"))
    );
    assert_eq!(kept["agent:main:main"]["label"], "mine");

    // With a row under the configured name that one counts, however old, and the other one stays in the file.
    let mut both = kept.clone();
    both["agent:main:work"] = row("s-work", 1_760_000_000_000);
    write_rows(&gateway, &both);
    write_transcript(&gateway, "s-work", "at work");
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(history(&mut client, "main").await, ["user: at work"]);
    assert_eq!(listed(&mut client).await, [("agent:main:work".to_owned(), "s-work".to_owned())]);
    drop(client);
    gateway.terminate().await.unwrap();
    assert_eq!(rows(&gateway)["agent:main:main"], kept["agent:main:main"]);
}

/// Messages accepted for the main session are answered in it, also when it has got another name
/// meanwhile.
#[tokio::test]
async fn a_message_accepted_under_the_old_name_is_answered_under_the_new_one() {
    let model = ModelServer::queue([Reply::text("one"), Reply::never(), Reply::text("two")]).await;
    let mut gateway = prepared(&model, json!({})).await;
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "first", "r1").await;
    crate::support::conversation::send(&mut client, "main", "second", "r2").await;
    model.arrived(2).await;
    gateway.kill().await.unwrap();
    name_main(&gateway, "work");
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    client.request("agent.wait", json!({"runId": "r2"})).await.unwrap();
    let told = history(&mut client, "work").await;
    assert_eq!(told, ["user: first", "assistant: one", "user: second", "assistant: two"]);
    assert_eq!(keys(&listed(&mut client).await), ["agent:main:work"]);
}
