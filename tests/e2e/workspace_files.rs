//! Files of the workspace go to the model and to clients: nothing outside of it does, and none can hang or fill the gateway.

use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::gateway;
use crate::support::conversation::turn;

fn workspace(gateway: &GatewayUnderTest) -> std::path::PathBuf {
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    workspace
}

#[tokio::test]
async fn a_linked_private_key_does_not_reach_the_provider() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let key = gateway.home().join("id_ed25519");
    std::fs::write(&key, "PRIVATE KEY").unwrap();
    let workspace = workspace(&gateway);
    for name in ["SOUL.md", "MEMORY.md"] {
        symlink(&key, workspace.join(name)).unwrap();
    }
    symlink("/dev/zero", workspace.join("USER.md")).unwrap();
    std::fs::write(workspace.join("notes.md"), "the rules").unwrap();
    symlink("notes.md", workspace.join("AGENTS.md")).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "here");

    let request = model.requests()[0].body.to_string();
    assert!(!request.contains("PRIVATE KEY"), "the key was sent");
    for name in ["SOUL.md", "MEMORY.md", "USER.md"] {
        let marker = format!("/{name} (left out: it is a link that leads to no file of the workspace)");
        assert!(request.contains(&marker), "no \"{marker}\" in {request}");
    }
    assert!(request.contains("the rules"), "a link within the workspace was not followed");
    gateway.logged("it is a link that leads to no file of the workspace").await.unwrap();
    let params = json!({"agentId": "main", "name": "SOUL.md"});
    let refused = client.call("agents.files.get", params).await.unwrap();
    assert!(!refused.ok && refused.error["message"].as_str().unwrap().contains("link out of the workspace"));
}

#[tokio::test]
async fn a_long_file_is_cut_in_the_prompt_and_the_log_says_so() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let config = json!({"agents": {"defaults": {"bootstrapMaxChars": 200}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(config).prepare().unwrap();
    let content = format!("{}{}\n", "a".repeat(600), "b".repeat(600));
    std::fs::write(workspace(&gateway).join("TOOLS.md"), content).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "here");

    let requests = model.requests();
    let prompt = requests[0].messages()[0]["content"].as_str().unwrap();
    let shown = format!(
        "## TOOLS.md\n{}\n\n[...truncated, read TOOLS.md for full content...]\n\
         \u{2026}(truncated TOOLS.md: kept 140+40 chars of 1200)\u{2026}\n\n{}\n## ",
        "a".repeat(140),
        "b".repeat(40)
    );
    assert!(prompt.contains(&shown), "{prompt}");
    let warning =
        "workspace bootstrap file TOOLS.md is 1200 chars (limit 200); truncating in injected context";
    gateway.logged(warning).await.unwrap();
}

#[tokio::test]
async fn a_pipe_or_a_huge_file_in_the_workspace_hangs_neither_reader_nor_run_nor_stop() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let workspace = workspace(&gateway);
    for name in ["SOUL.md", "IDENTITY.md"] {
        mkfifo(&workspace.join(name), Mode::S_IRWXU).unwrap();
    }
    // Nothing but a hole: no disk is needed for it, all memory would be.
    std::fs::File::create(workspace.join("TOOLS.md")).unwrap().set_len(1 << 40).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let params = json!({"agentId": "main", "name": "SOUL.md"});
    let refused = client.call("agents.files.get", params).await.unwrap();
    assert!(
        !refused.ok && refused.error["message"].as_str().unwrap().contains("not a regular file"),
        "{refused:?}"
    );
    client.request("agent.identity.get", json!({})).await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "here");
    assert!(model.requests()[0].body.to_string().contains("only the first 2097152 bytes of TOOLS.md"));
    assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_blocked_thread() {
    let mut gateway = gateway().start().await.unwrap();
    // The list of paired devices is read when a device connects, and a pipe keeps its reader waiting.
    let devices = gateway.state_dir().join("devices");
    std::fs::create_dir_all(&devices).unwrap();
    let pipe = devices.join("paired.json");
    let _ = std::fs::remove_file(&pipe);
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let (tell, opened) = oneshot::channel();
    // Opening ends when the other side opens as well. A thread of its own: the test could not end without it otherwise.
    std::thread::spawn(move || tell.send(std::fs::OpenOptions::new().write(true).open(pipe)));
    let port = gateway.port().to_string();
    let device = gateway.command().arg("health").env("OPENCLAW_GATEWAY_PORT", port).spawn().unwrap();
    let writer = timeout(DEADLINE, opened).await.expect("nobody reads the list of devices").unwrap().unwrap();
    assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
    drop((writer, device));
}

#[tokio::test]
async fn a_workspace_in_disorder_is_told_of_and_stops_nobody() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let mut gateway = gateway()
        .fake_model(&model.v1())
        .config(json!({"agents": {"defaults": {"skipBootstrap": false}}}))
        .prepare()
        .unwrap();
    let workspace = workspace(&gateway);
    std::fs::create_dir(workspace.join("AGENTS.md")).unwrap();
    std::fs::write(workspace.join("SOUL.md"), b"kind \xff\xfe soul").unwrap();
    std::fs::write(workspace.join("TOOLS.md"), vec![b'x'; 50 << 20]).unwrap();
    for name in ["USER.md", "MEMORY.md"] {
        symlink(name, workspace.join(name)).unwrap();
    }
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "here");
    let prompt = |at: usize| model.requests()[at].body["messages"][0]["content"].as_str().unwrap().to_owned();
    let first = prompt(0);
    for words in [
        "/AGENTS.md (left out: it is not a regular file)",
        "kind \u{fffd}\u{fffd} soul",
        "(truncated TOOLS.md: kept 14000+4000 chars of",
        "only the first 2097152 bytes of TOOLS.md",
        "/USER.md (left out: it is a link",
        // Missing files were written, but the ritual is for a workspace that is new.
        "# IDENTITY.md - Who am I?",
    ] {
        assert!(first.contains(words), "no \"{words}\" in {}", &first[..first.len().min(6_000)]);
    }
    assert!(!first.contains("BOOTSTRAP.md"), "nobody misses what was not to be made");
    assert!(first.len() < 60_000, "{}", first.len());
    assert!(workspace.join("AGENTS.md").is_dir() && !workspace.join("BOOTSTRAP.md").exists());
    // The workspace goes away while the gateway runs, and is made anew.
    std::fs::remove_dir_all(&workspace).unwrap();
    assert_eq!(turn(&mut client, "main", "are you there?", "run-2").await, "here");
    assert!(prompt(1).contains("# BOOTSTRAP.md - First conversation"));
    assert!(prompt(1).contains("Reminder: commit your changes in this workspace after edits."));
    // The owner ends the ritual: it does not come back.
    std::fs::remove_file(workspace.join("BOOTSTRAP.md")).unwrap();
    assert_eq!(turn(&mut client, "main", "and now?", "run-3").await, "here");
    // The template of AGENTS.md names it.
    let third = prompt(2).replacen("If `BOOTSTRAP.md` is here", "", 1);
    assert!(!third.contains("Reminder: commit your changes") && !third.contains("BOOTSTRAP.md"));
    assert!(!workspace.join("BOOTSTRAP.md").exists());
}
