//! `openclaw setup`: the workspace of a newcomer, and that the ritual of its first run does not come back.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::Value;

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::turn;

/// Output of `openclaw setup`, with `~` for the home directory as in the recording
/// (`cli-lifecycle.json`).
async fn setup(gateway: &GatewayUnderTest, args: &[&str]) -> Vec<String> {
    let ended = openclaw(gateway, &[&["setup"][..], args].concat()).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.out.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_workspace_is_made_once_and_its_ritual_ends_for_good() {
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let (state, home) = (gateway.state_dir(), gateway.home().display().to_string());
    let short = |path: &str| state.join(path).display().to_string().replace(&home, "~");
    let (config, sessions) = (short("openclaw.json"), short("agents/main/sessions"));
    let kept = std::fs::read_to_string(state.join("openclaw.json")).unwrap();
    let mut kept: Value = serde_json::from_str(&kept).unwrap();
    kept["agents"]["defaults"]["skipBootstrap"] = false.into();
    std::fs::remove_file(state.join("openclaw.json")).unwrap();
    let workspace = state.join("workspace");
    let told = setup(&gateway, &[]).await;
    let places = [format!("Workspace OK: {}", short("workspace")), format!("Sessions OK: {sessions}")];
    assert_eq!(told[..3], [&[format!("Wrote {config}")][..], &places[..]].concat());
    for name in ["AGENTS", "SOUL", "TOOLS", "IDENTITY", "USER", "HEARTBEAT", "BOOTSTRAP"] {
        assert!(workspace.join(name).with_extension("md").is_file(), "{name}");
    }
    assert!(!workspace.join("BOOT.md").exists() && !workspace.join("MEMORY.md").exists());
    let has_git = std::process::Command::new("git").arg("--version").output().is_ok();
    assert_eq!(workspace.join(".git").is_dir(), has_git);

    // Done: neither the command nor a run begins it again, and nothing of a person's is written over.
    std::fs::write(workspace.join("SOUL.md"), "mine").unwrap();
    std::fs::remove_file(workspace.join("BOOTSTRAP.md")).unwrap();
    std::fs::remove_file(workspace.join("USER.md")).unwrap();
    assert_eq!(
        setup(&gateway, &[]).await[..3],
        [&[format!("Config OK: {config}")][..], &places[..]].concat()
    );
    assert!(workspace.join("USER.md").is_file(), "what is missing comes back");
    std::fs::write(state.join("openclaw.json"), kept.to_string()).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "ok");
    assert_eq!(std::fs::read_to_string(workspace.join("SOUL.md")).unwrap(), "mine");
    assert!(!workspace.join("BOOTSTRAP.md").exists());

    let other = state.join("w2");
    let told = setup(&gateway, &["--workspace", other.to_str().unwrap()]).await;
    assert_eq!(
        told[..2],
        [
            format!("Updated {config} (set agents.defaults.workspace)"),
            format!("Workspace OK: {}", short("w2"))
        ]
    );
    assert!(other.join("BOOTSTRAP.md").is_file());
}
