//! A config file that is too large, wrong deep inside, or changed under a running gateway.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, TOKEN};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::turn;

/// Largest config file that is read.
const MOST: usize = 10 * 1024 * 1024;

/// A valid config of exactly this many bytes.
fn config_of(bytes: usize) -> String {
    let config = |filler: &str| {
        json!({
            "gateway": {"mode": "local", "auth": {"mode": "token", "token": TOKEN}},
            "env": {"vars": {"FILLER": filler}},
        })
        .to_string()
    };
    config(&"x".repeat(bytes - config("").len()))
}

fn write_config(gateway: &GatewayUnderTest, text: &str) {
    std::fs::write(gateway.state_dir().join("openclaw.json"), text).unwrap();
}

#[tokio::test]
async fn a_config_of_10_mib_is_read_and_a_larger_one_refused_by_size() {
    let mut gateway = gateway().prepare().unwrap();
    write_config(&gateway, &config_of(MOST + 1));
    let refused = openclaw(&gateway, &["gateway", "run", "--port", "0"]).await;
    refused.failed(&["openclaw.json", "config file is too large: 10485761 bytes (at most 10485760)"]);

    write_config(&gateway, &config_of(MOST));
    gateway.start().await.unwrap();
    gateway.client().await.unwrap().request("health", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_wrong_type_deep_inside_is_named_by_its_path() {
    let model = json!({"id": "fake-1", "name": "Fake One", "contextWindow": "lots"});
    let provider = json!({"baseUrl": "http://127.0.0.1:1/v1", "models": [model]});
    let gateway = gateway()
        .config(json!({
            "models": {"providers": {"fake": provider}},
            "agents": {"defaults": {"heartbeat": {"every": 5}}},
        }))
        .prepare()
        .unwrap();
    let refused = openclaw(&gateway, &["gateway", "run", "--port", "0"]).await;
    refused.failed(&[
        "Config invalid",
        "~/.openclaw/openclaw.json",
        "models.providers.fake.models.0.contextWindow: Invalid input: expected number, received string",
        "agents.defaults.heartbeat.every: Invalid input: expected string, received number",
    ]);
    assert!(!refused.err.contains(TOKEN), "{}", refused.err);
    assert!(!gateway.state_dir().join("gateway.sqlite").exists(), "a refused start left files behind");
}

/// OpenClaw 2026.2.9 leaves the sections of most plugins to the plugin.
#[tokio::test]
async fn sections_that_openclaw_does_not_check_are_taken_and_stay_as_they_are() {
    let sections = json!({
        "mattermost": {"botToken": "x", "future": true, "dmHistoryLimit": "all"},
        "nextcloud-talk": {"baseUrl": 5},
        "feishu": 7,
    });
    let gateway = gateway()
        .config(json!({
            "channels": sections,
            "plugins": {"allow": [""], "slots": {"memory": ""}},
            "agents": {"defaults": {"heartbeat": {"every": ""}}},
        }))
        .start()
        .await
        .unwrap();
    let mut client = gateway.client().await.unwrap();
    let shown = client.request("config.get", json!({})).await.unwrap();
    assert_eq!(shown["valid"], true, "{}", issues(&shown));
    assert_eq!(shown["config"]["channels"]["nextcloud-talk"], sections["nextcloud-talk"]);
    let set = openclaw(&gateway, &["config", "set", "ui.assistant.name", "Ada"]).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    let file = std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!((&file["channels"], &file["ui"]["assistant"]["name"]), (&sections, &json!("Ada")));
}

#[tokio::test]
async fn a_gateway_goes_on_when_its_config_is_broken_and_says_so() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let path = gateway.state_dir().join("openclaw.json");
    let good = std::fs::read_to_string(&path).unwrap();

    for (bad, issue) in [
        (&good[..good.len() / 2], "JSON5 parse failed"),
        ("{gateway: {port: true}}", "gateway.port"),
        ("", "JSON5 parse failed"),
    ] {
        write_config(&gateway, bad);
        let shown = client.request("config.get", json!({})).await.unwrap();
        assert_eq!((&shown["exists"], &shown["valid"]), (&json!(true), &json!(false)), "{bad}");
        assert!(issues(&shown).contains(issue), "{shown}");
        assert_eq!(turn(&mut client, "main", "still there?", issue_run(bad)).await, "here");
        let health = openclaw(&gateway, &["gateway", "run", "--port", "0"]).await;
        health.failed(&["Config invalid", issue]);
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "", "somebody wrote the broken file");

    // Repaired, the next start takes it.
    write_config(&gateway, &good);
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "and now?", "run-last").await, "here");
}

fn issues(snapshot: &Value) -> String {
    let issues = snapshot["issues"].as_array().into_iter().flatten();
    issues.map(|issue| format!("{}: {}\n", issue["path"], issue["message"])).collect()
}

/// A run id of its own for each broken text.
fn issue_run(bad: &str) -> &'static str {
    match bad.len() {
        0 => "run-empty",
        1..=30 => "run-typed",
        _ => "run-cut",
    }
}
