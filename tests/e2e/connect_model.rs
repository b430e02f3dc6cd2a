//! A model is connected and nobody chose one: what answers is what the command line names.

use openclaw_testkit::GatewaySetup;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::command::openclaw;
use crate::support::conversation::turn;

/// Has a turn, and checks that the command line and the gateway name the model that answered.
async fn check(setup: GatewaySetup, server: &ModelServer, model: &str, window: u64) {
    let gateway = setup.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let answer = turn(&mut client, "main", "hello", "run-1").await;
    assert_eq!(answer, "here I am");
    let (_, id) = model.split_once('/').unwrap();
    assert_eq!(server.requests()[0].body["model"], json!(id));

    let models = openclaw(&gateway, &["models", "status", "--plain"]).await;
    assert_eq!(models.out.trim(), model, "{models:?}");
    let status = openclaw(&gateway, &["status", "--json"]).await;
    let status: Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(status["sessions"]["defaults"], json!({ "model": id, "contextTokens": window }));
    let sessions = openclaw(&gateway, &["sessions"]).await;
    assert!(sessions.out.contains(id), "{sessions:?}");
    gateway.logged(&format!("agent model: {model}")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_in_the_configuration_answers_without_a_chosen_model() {
    let server = ModelServer::queue([Reply::text("here I am")]).await;
    let nobody_chose = json!({"agents": {"defaults": {"model": null}}});
    let setup = crate::gateway().fake_model(&server.v1()).config(nobody_chose);
    check(setup, &server, "fake/fake-1", 32_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_environment_answers_without_a_chosen_model() {
    let server = ModelServer::queue([Reply::text("here I am")]).await;
    let elsewhere = json!({"models": {"providers": {"openai": {"baseUrl": server.v1(), "models": []}}}});
    let setup = crate::gateway().config(elsewhere).env("OPENAI_API_KEY", "sk-fake-key");
    check(setup, &server, "openai/gpt-5.2", 400_000).await;
}
