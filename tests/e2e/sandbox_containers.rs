//! Runs in containers, through the real program. `docker` is a script here: it keeps one container in a file, and runs commands on the
//! host, but not as children of the client, as the real one does.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::{end, send, turn};
use crate::support::processes::{until, with_argument};

const DOCKER: &str = r#"#!/bin/sh
dir=$(dirname "$0")
[ -f "$dir/refusal" ] && { cat "$dir/refusal" >&2; exit 1; }
echo "$*" >> "$dir/calls"
case "$1" in
  inspect)
    [ -f "$dir/made" ] || { echo "Error: No such object: $4" >&2; exit 1; }
    case "$3" in *Running*) echo true;; *) cat "$dir/made";; esac;;
  create)
    for word in "$@"; do case "$word" in openclaw.configHash=*) echo "${word#*=}" > "$dir/made";; esac; done;;
  rm) rm -f "$dir/made";;
  exec)
    shift
    while :; do case "$1" in
      -i|-t) shift;; -w) shift 2;; -e) export "$2"; shift 2;; *) break;;
    esac; done
    shift
    setsid "$@" & wait $!;;
esac
"#;

struct Docker(tempfile::TempDir);

impl Docker {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("docker");
        std::fs::write(&program, DOCKER).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(dir)
    }

    fn gateway(&self, model: &ModelServer, sandbox: &Value) -> GatewaySetup {
        let mut settings = json!({"mode": "all", "backend": "docker"});
        settings.as_object_mut().unwrap().extend(sandbox.as_object().unwrap().clone());
        let config = json!({"agents": {"defaults": {"sandbox": settings}}});
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.0.path().display());
        gateway().fake_model(&model.v1()).config(config).env("PATH", path)
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.0.path().join("calls")).unwrap_or_default()
    }
}

/// Last tool result in the last request.
fn last_result(model: &ModelServer) -> String {
    let said = |request: &Captured| {
        let tools = request.messages().iter().rfind(|message| message["role"] == "tool").cloned();
        tools.and_then(|message| Some(message["content"].as_str()?.to_owned()))
    };
    model.requests().last().and_then(said).unwrap_or_default()
}

#[tokio::test]
async fn a_killed_command_ends_inside_too() {
    let docker = Docker::new();
    // No other process sleeps for so long.
    let word = |number: u32| format!("{}.{number}", 900_000_000 + std::process::id());
    let sleep = |number: u32| format!("(exec sleep {}) & wait", word(number));
    let exec = |id: &str, args: Value| Reply::tool(id, "exec", &args);
    let model = ModelServer::queue([
        exec("c1", json!({"command": sleep(1), "timeout": 1})),
        Reply::text("timed out"),
        exec("c2", json!({"command": sleep(2)})),
        exec("c3", json!({"command": sleep(3), "background": true})),
        Reply::text("in the background"),
    ])
    .await;
    let mut gateway = docker.gateway(&model, &json!({})).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "go", "run-1").await, "timed out");
    let said = last_result(&model);
    assert!(said.contains("timed out") && with_argument(&word(1)) == 0, "{said}");
    send(&mut client, "main", "go", "run-2").await;
    until("the second command", || with_argument(&word(2)) == 1).await;
    client.request("chat.abort", json!({"sessionKey": "main", "runId": "run-2"})).await.unwrap();
    until("its end", || with_argument(&word(2)) == 0).await;
    assert_eq!(turn(&mut client, "main", "go", "run-3").await, "in the background");
    until("the third command", || with_argument(&word(3)) == 1).await;
    gateway.kill().await.unwrap();
    until("its end", || with_argument(&word(3)) == 0).await;
}

fn registry(gateway: &GatewayUnderTest, name: &str) -> PathBuf {
    gateway.state_dir().join("sandbox").join(name)
}

fn names(file: &Path) -> Vec<String> {
    let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let entries = document["entries"].as_array().unwrap().iter();
    entries.map(|entry| entry["containerName"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn idle_and_old_sandboxes_are_removed_with_the_next_run() {
    let docker = Docker::new();
    let model = ModelServer::queue([Reply::text("here")]).await;
    let mut gateway =
        docker.gateway(&model, &json!({"prune": {"idleHours": 2, "maxAgeDays": 5}})).prepare().unwrap();
    const HOUR: i64 = 3_600_000;
    let now = i64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let entry = |name: &str, age: i64, idle: i64| {
        json!({"containerName": name, "sessionKey": format!("agent:{name}"), "image": "i",
            "createdAtMs": now - age * HOUR, "lastUsedAtMs": now - idle * HOUR})
    };
    let entries = json!({"entries": [entry("idle", 9, 3), entry("old", 121, 1), entry("busy", 119, 1)]});
    std::fs::create_dir_all(gateway.state_dir().join("sandbox")).unwrap();
    for file in ["containers.json", "local.json"] {
        std::fs::write(registry(&gateway, file), entries.to_string()).unwrap();
    }
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "here");
    let left = names(&registry(&gateway, "containers.json"));
    assert!(
        left.len() == 2 && left[0] == "busy" && left[1].starts_with("openclaw-sbx-agent-main"),
        "{left:?}"
    );
    assert_eq!(names(&registry(&gateway, "local.json")), ["busy"]);
    let removed: Vec<String> =
        docker.calls().lines().filter(|call| call.starts_with("rm")).map(str::to_owned).collect();
    assert_eq!(removed, ["rm -f idle", "rm -f old"]);
}

#[tokio::test]
async fn a_tool_that_the_sandbox_lacks_is_explained() {
    let docker = Docker::new();
    let write = Reply::tool("c2", "write", &json!({"path": "a", "content": "x"}));
    let fly = Reply::tool("c3", "fly", &json!({}));
    let exec = Reply::tool("c1", "exec", &json!({"command": "id"}));
    let model = ModelServer::queue([exec, write, fly, Reply::text("done")]).await;
    let policy = json!({"tools": {"sandbox": {"tools": {"deny": ["group:runtime"]}}}});
    let gateway =
        docker.gateway(&model, &json!({"workspaceAccess": "ro"})).config(policy).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "go", "run-1").await, "done");
    let requests = model.requests();
    let messages = requests.last().unwrap().messages().to_vec();
    let said: Vec<String> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        said[0],
        "Tool \"exec\" blocked by sandbox tool policy (mode=all).\nSession: agent:main:main\nReason: deny list\nFix:\n\
         - agents.defaults.sandbox.mode=off (disable sandbox)\n- Remove \"exec\" from tools.sandbox.tools.deny.\n\
         - See: openclaw sandbox explain --session agent:main:main"
    );
    assert!(
        said[1].starts_with("Tool \"write\" is not available: this sandbox may only read"),
        "{}",
        said[1]
    );
    assert_eq!(said[2], "Tool fly not found");
}

#[tokio::test]
async fn the_prompt_has_the_files_as_the_sandbox_has_them() {
    let docker = Docker::new();
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let gateway = docker.gateway(&model, &json!({})).prepare().unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("AGENTS.md"), "HOST RULES").unwrap();
    std::fs::write(workspace.join("MEMORY.md"), "HOST MEMORY").unwrap();
    let mut gateway = gateway;
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "one", "run-1").await;
    let first = model.requests().last().unwrap().messages()[0].to_string();
    assert!(first.contains("HOST RULES") && !first.contains("HOST MEMORY"), "{first}");
    assert!(first.contains("[MISSING] Expected at: /workspace/SOUL.md"), "{first}");
    let boxes: Vec<_> = std::fs::read_dir(gateway.state_dir().join("sandboxes")).unwrap().flatten().collect();
    assert_eq!(boxes.len(), 1);
    std::fs::write(boxes[0].path().join("AGENTS.md"), "BOX RULES").unwrap();
    std::fs::write(boxes[0].path().join("MEMORY.md"), "BOX MEMORY").unwrap();
    turn(&mut client, "main", "two", "run-2").await;
    let second = model.requests().last().unwrap().messages()[0].to_string();
    assert!(
        second.contains("BOX RULES") && second.contains("BOX MEMORY") && !second.contains("HOST"),
        "{second}"
    );
    assert_eq!(std::fs::read_to_string(workspace.join("AGENTS.md")).unwrap(), "HOST RULES");
}

#[tokio::test]
async fn a_refusal_says_what_to_do() {
    let docker = Docker::new();
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let gateway = docker.gateway(&model, &json!({"docker": {"setupCommand": "echo no network >&2; exit 7"}}));
    let gateway = gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let local = "set agents.defaults.sandbox.backend to \"local\"";
    for (run, words, told) in [
        (
            "run-1",
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            ["there is no sandbox for it: docker is installed, but its daemon does not answer", local],
        ),
        (
            "run-2",
            "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
            ["the gateway's user may not use docker", "usermod -aG docker"],
        ),
        ("run-3", "", ["setupCommand failed: no network", "tried again with the next message"]),
        ("run-4", "", ["setupCommand failed: no network", "tried again with the next message"]),
    ] {
        let refusal = docker.0.path().join("refusal");
        match words {
            "" => drop(std::fs::remove_file(&refusal)),
            words => std::fs::write(&refusal, words).unwrap(),
        }
        send(&mut client, "main", "hello", run).await;
        let ended = end(&mut client, run).await;
        assert_eq!(ended["state"], "error", "{ended}");
        let said = ended["errorMessage"].as_str().unwrap();
        assert!(told.iter().all(|told| said.contains(told)), "{run}: {said}");
    }
    assert_eq!(model.requests().len(), 0, "the model was asked");
    // A container whose setup failed is not left behind.
    assert_eq!(docker.calls().lines().filter(|call| call.starts_with("rm -f")).count(), 2);
}

#[tokio::test]
async fn who_looks_is_told_that_no_sandbox_can_be_had() {
    let docker = Docker::new();
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let refusal = docker.0.path().join("refusal");
    let pages = [&["doctor", "--check"][..], &["status"], &["sandbox", "explain"]];
    for (mode, runs) in
        [("all", "Runs of main do"), ("non-main", "Runs of main outside of the main session do")]
    {
        std::fs::write(&refusal, "Cannot connect to the Docker daemon at unix:///x.").unwrap();
        let gateway = docker.gateway(&model, &json!({"mode": mode})).prepare().unwrap();
        for page in pages {
            let said = openclaw(&gateway, page).await;
            let why = "docker is installed, but its daemon does not answer";
            assert!(said.out.contains(why) && !said.out.contains("State is in order"), "{said:?}");
            let is_explained = page[0] == "sandbox";
            assert!(is_explained || said.out.contains(runs), "{said:?}");
            assert_eq!(said.code, Some(i32::from(page[0] == "doctor")), "{said:?}");
        }
        std::fs::remove_file(&refusal).unwrap();
        for page in pages {
            let said = openclaw(&gateway, page).await;
            assert!(
                !said.out.contains("docker is installed") && !said.out.contains("no sandbox"),
                "{said:?}"
            );
        }
    }
    // Without a sandbox nothing is asked.
    std::fs::write(&refusal, "Cannot connect to the Docker daemon at unix:///x.").unwrap();
    let gateway = docker.gateway(&model, &json!({"mode": "off"})).prepare().unwrap();
    for page in pages {
        let said = openclaw(&gateway, page).await;
        assert!(!said.out.contains("docker is installed"), "{said:?}");
    }
}

#[tokio::test]
async fn a_backend_that_does_not_exist_is_a_mistake_of_the_config() {
    let config = json!({"agents": {"defaults": {"sandbox": {"mode": "all", "backend": "bubblewrap"}}}});
    let gateway = gateway().config(config).prepare().unwrap();
    let said = openclaw(&gateway, &["sandbox", "explain"]).await;
    let all = format!("{}{}", said.out, said.err);
    assert!(all.contains("agents.defaults.sandbox.backend"), "{all}");
    assert!(["auto", "local", "docker", "podman"].iter().all(|name| all.contains(name)), "{all}");
}
