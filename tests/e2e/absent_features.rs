//! A directory of OpenClaw that uses what this version does not have: each feature is told once, by name, and no command talks of what it
//! is not about.

use openclaw_testkit::GatewayUnderTest;
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{has, json_of, ok, openclaw};

fn used_before() -> GatewayUnderTest {
    let gateway = gateway()
        .config(json!({
            "channels": {"discord": {"token": "x"}},
            "plugins": {"entries": {"voice-call": {"enabled": true}, "discord": {"enabled": true}}},
        }))
        .prepare()
        .unwrap();
    let jobs = json!({"version": 1, "jobs": [{"id": "j1", "name": "Morning brief", "enabled": true, "schedule": {"kind": "every", "everyMs": 1}}]});
    let nodes = json!({"n1": {"nodeId": "n1", "displayName": "Kitchen", "token": "t"}});
    for (dir, file, content) in [("cron", "jobs.json", jobs), ("nodes", "paired.json", nodes)] {
        let dir = gateway.state_dir().join(dir);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join(file), content.to_string()).unwrap();
    }
    gateway
}

const CRON: &str = "This version runs no scheduled jobs; they stay in the file: Morning brief.";
const CHANNELS: &str = "This version does not have these channels: nobody's message comes in there, and nothing is sent: Discord.";
const PLUGINS: &str = "This version loads no plugins: voice-call.";
const NODES: &str = "This version sends no commands to nodes: Kitchen.";

#[tokio::test]
async fn features_of_an_existing_directory_that_will_not_work_are_told_once_everywhere() {
    let mut gateway = used_before();
    gateway.start().await.unwrap();
    for told in [CRON, CHANNELS, PLUGINS, NODES] {
        gateway.logged(told).await.unwrap();
        assert_eq!(gateway.log().matches(told).count(), 1, "{}", gateway.log());
    }
    assert!(!gateway.log().contains("not supported yet: channels"), "{}", gateway.log());
    for page in [&["status"][..], &["doctor"], &["health"]] {
        let out = ok(&gateway, page).await;
        has(&out, &[CRON, CHANNELS, PLUGINS, NODES]);
        for told in [CRON, NODES] {
            assert_eq!(out.matches(told).count(), 1, "{page:?}: {out}");
        }
    }
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["feature"].as_str().unwrap().to_owned()).collect()
    };
    for page in [&["status", "--json"][..], &["health", "--json"]] {
        let document = json_of(&gateway, page).await;
        assert_eq!(names(&document["absentFeatures"]), ["channels", "cron", "plugins", "nodes"], "{page:?}");
    }
}

/// OpenClaw knows a plugin by its place in `extensions`.
#[tokio::test]
async fn the_settings_of_an_installed_plugin_stop_nothing() {
    let on = json!({"plugins": {"entries": {"mine": {"enabled": true}}}});
    let mut gateway = gateway().config(on).prepare().unwrap();
    openclaw(&gateway, &["config", "set", "ui.seamColor", "#ff4500"])
        .await
        .failed(&["plugin not found: mine"]);
    std::fs::create_dir_all(gateway.state_dir().join("extensions/mine")).unwrap();
    gateway.start().await.unwrap();
    gateway.logged("This version loads no plugins: mine").await.unwrap();
    ok(&gateway, &["config", "set", "ui.seamColor", "#ff4500"]).await;
}

/// `plugins.entries.telegram.enabled: false` is a warning of the configuration.
#[tokio::test]
async fn a_warning_stands_before_commands_that_are_about_it_alone() {
    let off = json!({"plugins": {"entries": {"telegram": {"enabled": false}}}, "channels": {"telegram": {"botToken": "1:TEST-token-x"}}});
    let gateway = gateway().config(off).prepare().unwrap();
    const CAUSE: &str = "plugins.entries.telegram.enabled";
    let silent = [
        &["agents", "list"][..],
        &["skills", "list"],
        &["hooks", "list"],
        &["models", "status"],
        &["models", "list"],
        &["sessions"],
        &["tools", "explain"],
    ];
    for command in silent {
        let ended = openclaw(&gateway, command).await;
        assert!(ended.code == Some(0) && !ended.err.contains(CAUSE), "{command:?}: {ended:?}");
    }
    let status = openclaw(&gateway, &["status"]).await;
    assert_eq!(status.err.matches(&format!("config warning: {CAUSE}: ")).count(), 1, "{status:?}");
    has(&ok(&gateway, &["doctor"]).await, &[CAUSE]);
    has(&ok(&gateway, &["channels", "list"]).await, &[CAUSE]);
}
