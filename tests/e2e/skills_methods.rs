//! `skills.*`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use openclaw_testkit::{DeviceIdentity, GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::skills::{own, write};

/// Puts a program that notes how it is called into a directory of its own.
fn fake_program(dir: &Path, name: &str, script: &str) {
    std::fs::create_dir_all(dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn config_file(gateway: &GatewayUnderTest) -> Value {
    let text = std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn the_status_tells_everything_of_each_skill() {
    let mut gateway =
        gateway().config(json!({"agents": {"list": [{"id": "main"}, {"id": "work"}]}})).prepare().unwrap();
    let settings = "homepage: https://example.com\nmetadata: {\"openclaw\":{\"emoji\":\"🐙\",\"skillKey\":\"k\",\"primaryEnv\":\"K\",\"requires\":{\"bins\":[\"sh\",\"no-such-program\"],\"config\":[\"gateway.auth.token\",\"channels.discord.token\"]},\"install\":[{\"id\":\"npm\",\"kind\":\"node\",\"package\":\"x\",\"bins\":[\"no-such-program\"]}]}}";
    write(&own(&gateway), "demo", settings);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let status = client.request("skills.status", json!({})).await.unwrap();
    let dir = own(&gateway).join("demo");
    let needs = |bins: Value, config: Value| json!({"bins": bins, "anyBins": [], "env": [], "config": config, "os": []});
    let expect = json!({
        "workspaceDir": gateway.state_dir().join("workspace"),
        "managedSkillsDir": gateway.state_dir().join("skills"),
        "skills": [{
            "name": "demo", "description": "About demo", "source": "openclaw-workspace", "bundled": false,
            "filePath": dir.join("SKILL.md"), "baseDir": dir, "skillKey": "k", "primaryEnv": "K", "emoji": "🐙",
            "homepage": "https://example.com", "always": false, "disabled": false, "blockedByAllowlist": false,
            "eligible": false,
            "requirements": needs(json!(["sh", "no-such-program"]), json!(["gateway.auth.token", "channels.discord.token"])),
            "missing": needs(json!(["no-such-program"]), json!(["channels.discord.token"])),
            "configChecks": [
                {"path": "gateway.auth.token", "satisfied": true},
                {"path": "channels.discord.token", "satisfied": false},
            ],
            "install": [{"id": "npm", "kind": "node", "label": "Install x (npm)", "bins": ["no-such-program"]}],
        }],
    });
    assert_eq!(status.to_string(), expect.to_string());
    assert!(!status.to_string().contains(TOKEN), "what is configured is not told");
    let work = client.request("skills.status", json!({"agentId": "Work"})).await.unwrap();
    assert_eq!(work["skills"], json!([]));
    let ghost = client.request("skills.status", json!({"agentId": "ghost"})).await.unwrap_err();
    assert!(ghost.to_string().contains("unknown agent id"), "{ghost}");

    let refused = client.request("skills.bins", json!({})).await.unwrap_err();
    assert!(refused.to_string().contains("unauthorized role: operator"), "{refused}");
    let login = Login::node(TOKEN, DeviceIdentity::from_seed(1));
    let (mut node, _) = WsClient::connect(gateway.port(), login).await.unwrap();
    let bins = node.request("skills.bins", json!({})).await.unwrap();
    assert_eq!(bins, json!({"bins": ["no-such-program", "sh"]}));
}

#[tokio::test]
async fn an_update_is_written_and_echoed_without_secrets() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    // As recorded in `gw-misc`, but for the secrets (KB-19).
    let params =
        json!({"skillKey": "golden-skill", "enabled": false, "apiKey": "k-123", "env": {"A": "1", "B": " "}});
    let updated = client.request("skills.update", params).await.unwrap();
    let hidden = "__OPENCLAW_REDACTED__";
    let expect = json!({"ok": true, "skillKey": "golden-skill",
        "config": {"enabled": false, "apiKey": hidden, "env": {"A": hidden}}});
    assert_eq!(updated, expect);
    let written = json!({"enabled": false, "apiKey": "k-123", "env": {"A": "1"}});
    assert_eq!(config_file(&gateway)["skills"]["entries"]["golden-skill"], written);
    let blank = json!({"skillKey": "golden-skill", "apiKey": "", "env": {"A": ""}});
    client.request("skills.update", blank).await.unwrap();
    assert_eq!(config_file(&gateway)["skills"]["entries"]["golden-skill"], json!({"enabled": false}));
    let echoed = json!({"skillKey": "golden-skill", "apiKey": hidden});
    let refused = client.request("skills.update", echoed).await.unwrap_err().to_string();
    assert!(refused.contains("redacted"), "{refused}");
    for params in [
        json!({}),
        json!({"skillKey": ""}),
        json!({"skillKey": "x", "more": 1}),
        json!({"skillKey": "__proto__"}),
    ] {
        assert!(client.request("skills.update", params.clone()).await.is_err(), "{params}");
    }
}

#[tokio::test]
async fn what_a_skill_needs_is_installed_by_the_configured_program() {
    let bin = tempfile::tempdir().unwrap();
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());
    let mut gateway = gateway()
        .env("PATH", path)
        .config(json!({"skills": {"install": {"nodeManager": "pnpm"}}}))
        .prepare()
        .unwrap();
    let settings = "metadata: {\"openclaw\":{\"requires\":{\"bins\":[\"brought\"]},\"install\":[{\"id\":\"npm\",\"kind\":\"node\",\"package\":\"@a/b\",\"bins\":[\"brought\"]},{\"id\":\"evil\",\"kind\":\"node\",\"package\":\"--registry=http://evil\"},{\"id\":\"go\",\"kind\":\"go\",\"module\":\"x.y/z@latest\"},{\"id\":\"file\",\"kind\":\"download\",\"url\":\"http://example.com/x.zip\"}]}}";
    write(&own(&gateway), "demo", settings);
    let brought = bin.path().join("brought");
    let script = format!("echo \"$@\"; printf '#!/bin/sh\\n' > {0}; chmod +x {0}", brought.display());
    fake_program(bin.path(), "pnpm", &script);
    fake_program(bin.path(), "go", "echo gone wrong >&2; exit 4");
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let eligible = async |client: &mut WsClient| {
        client.request("skills.status", json!({})).await.unwrap()["skills"][0]["eligible"].clone()
    };
    assert_eq!(eligible(&mut client).await, false);
    let params = |id: &str| json!({"name": "demo", "installId": id, "timeoutMs": 20_000});
    let done = client.request("skills.install", params("npm")).await.unwrap();
    let expect = json!({"ok": true, "message": "Installed", "stdout": "add -g --ignore-scripts @a/b", "stderr": "", "code": 0});
    assert_eq!(done, expect);
    assert_eq!(eligible(&mut client).await, true);

    let rows = [
        (params("go"), "Install failed (exit 4): gone wrong"),
        (
            params("evil"),
            "the skill's installer names \"--registry=http://evil\", which is not the plain name of a package",
        ),
        (params("file"), "\"http://example.com/x.zip\" is not an https address"),
        (params("none"), "Installer not found: none"),
        (json!({"name": "ghost", "installId": "x"}), "Skill not found: ghost"),
    ];
    for (params, expect) in rows {
        let answer = client.call("skills.install", params).await.unwrap();
        let error = json!({"code": "UNAVAILABLE", "message": expect});
        assert_eq!((answer.ok, &answer.error), (false, &error));
        assert_eq!((&answer.payload["ok"], &answer.payload["message"]), (&json!(false), &json!(expect)));
    }
}
