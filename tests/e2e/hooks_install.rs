//! `openclaw hooks install` and `update`.

use std::path::Path;

use openclaw_testkit::GatewayUnderTest;
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{Ended, openclaw};
use crate::support::files::put;

fn put_hook(dir: &Path, name: &str) {
    let metadata = json!({"openclaw": {"events": ["command:stop"]}});
    put(&dir.join("HOOK.md"), &format!("---\nname: {name}\nmetadata: {metadata}\n---\n"), 0o644);
    put(&dir.join("handler"), "#!/bin/sh\ntouch \"$0.ran\"\n", 0o755);
}

/// `hooks.internal` of the file, without times.
fn internal(gateway: &GatewayUnderTest) -> Value {
    let text = std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    let mut internal = serde_json::from_str::<Value>(&text).unwrap()["hooks"]["internal"].take();
    let records = internal.get_mut("installs").and_then(Value::as_object_mut);
    for record in records.into_iter().flat_map(|records| records.values_mut()) {
        let at = record.as_object_mut().unwrap().shift_remove("installedAt").unwrap();
        assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
    }
    internal
}

/// Runs a command with a npm that packs what lies in `registry/<name>` of the home directory, and
/// notes how it is called.
async fn with_npm(gateway: &GatewayUnderTest, args: &[&str]) -> Ended {
    let bin = gateway.home().join("bin");
    let script = "#!/bin/sh\necho \"$@\" >> \"$HOME/npm.log\"\nif [ \"$1\" = install ]; then\n  for last; do :; done\n  mkdir \"$last/node_modules\"\n  exit 0\nfi\nfor last; do :; done\nname=${last%%@*}\n[ -d \"$HOME/registry/$name\" ] || { echo \"npm error 404 $name\" >&2; exit 1; }\ntar -czf \"$5/$name-1.tgz\" -C \"$HOME/registry/$name\" package\n";
    put(&bin.join("npm"), script, 0o755);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = gateway.command();
    command.args(args).env("PATH", path);
    Ended::of(command).await
}

#[tokio::test]
async fn a_directory_is_installed_beside_a_running_gateway_and_used_at_once() {
    let mut gateway = gateway().prepare().unwrap();
    let source = gateway.home().join("src/noted");
    put_hook(&source, "noted");
    gateway.start().await.unwrap();
    let ended = openclaw(&gateway, &["hooks", "install", source.to_str().unwrap()]).await;
    assert!(ended.code == Some(0) && ended.out.starts_with("Installed hooks: noted ("), "{ended:?}");
    gateway.logged("Registered hook: noted -> command:stop").await.unwrap();
    let installed = gateway.state_dir().join("hooks/noted");
    assert_eq!(
        internal(&gateway),
        json!({
            "enabled": true,
            "entries": {"noted": {"enabled": true}},
            "installs": {"noted": {"source": "path", "sourcePath": source, "installPath": installed, "hooks": ["noted"]}},
        })
    );
    assert!(!installed.join("handler.ran").exists(), "nothing of it is run");
    let list = openclaw(&gateway, &["hooks", "list"]).await;
    assert_eq!((list.code, list.err.as_str()), (Some(0), ""), "the notes are keys that are known");
    openclaw(&gateway, &["hooks", "install", source.to_str().unwrap()])
        .await
        .failed(&["hooks/noted is there already"]);
    openclaw(&gateway, &["hooks", "install", "--link", source.to_str().unwrap()])
        .await
        .failed(&["is there already"]);
    let skipped = openclaw(&gateway, &["hooks", "update", "noted"]).await;
    assert_eq!((skipped.code, skipped.out.as_str()), (Some(0), "Skipping \"noted\" (source: path).\n"));
}

#[tokio::test]
async fn a_linked_directory_is_used_where_it_is() {
    let gateway = gateway().prepare().unwrap();
    let (one, pack) = (gateway.home().join("src/one"), gateway.home().join("src/pack"));
    put_hook(&one, "one");
    put_hook(&pack.join("deep/a"), "packed");
    let package = json!({"name": "@acme/several", "version": "0.1.0", "openclaw": {"hooks": ["./deep/a"]}});
    put(&pack.join("package.json"), &package.to_string(), 0o644);
    for path in [&one, &pack] {
        let ended = openclaw(&gateway, &["hooks", "install", "-l", path.to_str().unwrap()]).await;
        assert!(ended.code == Some(0) && ended.out.starts_with("Linked hook path: "), "{ended:?}");
    }
    let found = internal(&gateway);
    assert_eq!(found["load"], json!({"extraDirs": [one, pack]}));
    assert_eq!(found["installs"]["several"]["version"], "0.1.0");
    let check = openclaw(&gateway, &["hooks", "check", "--json"]).await;
    let check: Value = serde_json::from_str(&check.out).unwrap();
    for name in ["one", "packed"] {
        assert!(check["hooks"]["eligible"].as_array().unwrap().contains(&json!(name)), "{check}");
    }
    assert!(!gateway.state_dir().join("hooks/one").exists());
    openclaw(&gateway, &["hooks", "install", "-l", "hooks-of-npm"])
        .await
        .failed(&["`--link` requires a local path"]);
}

#[tokio::test]
async fn packages_come_from_npm_without_its_scripts_and_are_updated() {
    let gateway = gateway().prepare().unwrap();
    let registry = gateway.home().join("registry/pack/package");
    let release = |version: &str| {
        let needs = json!({"left-pad": "1"});
        let package =
            json!({"name": "pack", "version": version, "dependencies": needs, "openclaw": {"hooks": ["h"]}});
        put_hook(&registry.join("h"), "h");
        put(&registry.join("package.json"), &package.to_string(), 0o644);
    };
    release("1.0.0");
    let ended = with_npm(&gateway, &["hooks", "install", "pack@latest"]).await;
    assert!(ended.code == Some(0) && ended.out.contains("Installed hooks: h ("), "{ended:?}");
    let installed = gateway.state_dir().join("hooks/pack");
    let record = |version: &str| json!({"source": "npm", "spec": "pack@latest", "installPath": installed, "version": version, "hooks": ["h"]});
    assert_eq!(internal(&gateway)["installs"], json!({"pack": record("1.0.0")}));
    assert!(installed.join("node_modules").is_dir());

    let said = async |args: &[&str]| with_npm(&gateway, &[&["hooks", "update"][..], args].concat()).await;
    assert_eq!(said(&["pack", "--dry-run"]).await.out, "pack is up to date (1.0.0).\n");
    release("1.1.0");
    assert_eq!(said(&["--all", "--dry-run"]).await.out, "Would update pack: 1.0.0 \u{2192} 1.1.0.\n");
    assert_eq!(internal(&gateway)["installs"], json!({"pack": record("1.0.0")}));
    // Settings that a person made stay.
    openclaw(&gateway, &["hooks", "disable", "h"]).await;
    let updated = said(&["--all"]).await;
    assert!(updated.out.starts_with("Updated pack: 1.0.0 \u{2192} 1.1.0.\n"), "{updated:?}");
    assert_eq!(internal(&gateway)["installs"], json!({"pack": record("1.1.0")}));
    assert_eq!(internal(&gateway)["entries"]["h"], json!({"enabled": false}));

    let calls = std::fs::read_to_string(gateway.home().join("npm.log")).unwrap();
    assert_eq!(calls.lines().count(), 6, "{calls}");
    assert!(calls.lines().all(|call| call.contains(" --ignore-scripts ")), "{calls}");
    let left: Vec<_> =
        std::fs::read_dir(gateway.state_dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".hooks-")), "{left:?}");

    // A package that can't be had leaves the installed one in place.
    std::fs::remove_dir_all(gateway.home().join("registry/pack")).unwrap();
    said(&["pack"]).await.failed(&["Failed to update pack: ", "npm error 404 pack"]);
    assert!(installed.join("h/handler").exists());
    with_npm(&gateway, &["hooks", "install", "git+https://example.com/x.git"])
        .await
        .failed(&["neither a path that is there nor the name of an npm package"]);
    with_npm(&gateway, &["hooks", "install", "./gone"]).await.failed(&["Path not found: "]);
    with_npm(&gateway, &["hooks", "update", "nobody"]).await.failed(&["No install record for \"nobody\"."]);
}
