//! Runs in a sandbox, through the real program: what the model is offered and told, and what becomes of its calls.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::{end, results, send, turn};
use crate::support::sandbox::works;

/// The session tools that a sandbox has.
const SESSIONS: &str = "sessions_list sessions_history sessions_send sessions_spawn session_status";

fn local(settings: &Value) -> Value {
    let mut sandbox = json!({"backend": "local"});
    sandbox.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    json!({"agents": {"defaults": {"sandbox": sandbox}}})
}

fn offered(request: &Captured) -> String {
    let tools = request.body["tools"].as_array().unwrap().iter();
    tools.filter_map(|tool| tool["function"]["name"].as_str()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn commands_and_files_of_a_run_are_held() {
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("s"), "CANARY").unwrap();
    let outside = secret.path().join("s").display().to_string();
    let model = ModelServer::queue([
        Reply::tool(
            "c1",
            "exec",
            &json!({"command": format!("pwd; id -un; cat {outside}; echo made > made.txt")}),
        ),
        Reply::tool("c2", "read", &json!({"path": "/workspace/made.txt"})),
        Reply::tool("c3", "read", &json!({"path": outside})),
        Reply::tool("c4", "write", &json!({"path": secret.path().join("t"), "content": "x"})),
        Reply::tool("c5", "exec", &json!({"command": "env; grep -c . AGENTS.md > /dev/null && echo seeded"})),
        Reply::text("done"),
    ])
    .await;
    // The very first run of a new workspace: its files are written, and copied.
    let templates = json!({"agents": {"defaults": {"skipBootstrap": false}}});
    let gateway = gateway().fake_model(&model.v1()).config(local(&json!({"mode": "all"}))).config(templates);
    let gateway = gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "go", "run-1").await;
    let ended = end(&mut client, "run-1").await;
    if model.requests().is_empty() {
        assert!(!works(&gateway, &ended.to_string()));
        return;
    }
    let requests = model.requests();
    assert_eq!(offered(&requests[0]), format!("read edit write exec process {SESSIONS}"));
    let prompt = requests[0].messages()[0].to_string();
    assert!(
        prompt.contains("Your tools run in a sandbox.") && prompt.contains("Sandbox workspace: /workspace"),
        "{prompt}"
    );
    let said = results(requests.last().unwrap());
    assert!(said[0].starts_with("/workspace\nsandbox\n") && said[0].contains("No such file"), "{}", said[0]);
    assert!(said[1].starts_with("made"), "{}", said[1]);
    assert!(said[2].contains("Path escapes sandbox root"), "{}", said[2]);
    assert!(said[3].contains("Path escapes sandbox root"), "{}", said[3]);
    assert!(said[4].ends_with("seeded") && said[4].contains("HOME=/workspace"), "{}", said[4]);
    assert!(!said[4].contains("OPENCLAW"), "{}", said[4]);
    assert!(!said.concat().contains("CANARY") && !secret.path().join("t").exists());

    let listed = openclaw(&gateway, &["sandbox", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(
        (&listed["containers"][0]["sessionKey"], &listed["containers"][0]["image"]),
        (&json!("agent:main"), &json!("local"))
    );
    openclaw(&gateway, &["sandbox", "recreate"])
        .await
        .failed(&["Please specify --all, --session <key>, or --agent <id>"]);
    let removed = openclaw(&gateway, &["sandbox", "recreate", "--all", "--force"]).await;
    assert!(removed.out.contains("Removed 1."), "{removed:?}");
    let listed: Value =
        serde_json::from_str(&openclaw(&gateway, &["sandbox", "list", "--json"]).await.out).unwrap();
    assert_eq!(listed, json!({"containers": [], "browsers": []}));
}

#[tokio::test]
async fn the_main_session_is_free_where_others_are_held() {
    let call = |id: &str| Reply::tool(id, "exec", &json!({"command": "id -un"}));
    let model = ModelServer::queue([call("c1"), Reply::text("done"), call("c2"), Reply::text("done")]).await;
    let gateway = gateway()
        .fake_model(&model.v1())
        .config(local(&json!({"mode": "non-main", "workspaceAccess": "ro"})))
        .start()
        .await
        .unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "go", "run-1").await, "done");
    send(&mut client, "agent:main:side", "go", "run-2").await;
    let ended = end(&mut client, "run-2").await;
    let requests = model.requests();
    if requests.len() < 4 {
        assert!(!works(&gateway, &ended.to_string()));
        return;
    }
    assert_ne!(results(&requests[1]), ["sandbox"]);
    assert_eq!(results(&requests[3]), ["sandbox"]);
    // A read-only workspace is not written to by tools.
    assert_eq!(offered(&requests[2]), format!("read exec process {SESSIONS}"));
}

#[tokio::test]
async fn a_run_without_the_sandbox_it_needs_does_not_begin() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let config = json!({"agents": {"defaults": {"sandbox": {"mode": "all", "backend": "podman"}}}, "env": {"vars": {"PATH": "/nowhere"}}});
    let gateway =
        gateway().fake_model(&model.v1()).config(config).env("PATH", "/nowhere").start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "hello", "run-1").await;
    let ended = end(&mut client, "run-1").await;
    assert_eq!(ended["state"], "error", "{ended}");
    let words = "podman is not installed or not on PATH. Install it, or set agents.defaults.sandbox.backend to \"local\"";
    assert!(ended["errorMessage"].as_str().unwrap().contains(words), "{ended}");
    assert_eq!(model.requests().len(), 0, "the model was asked");
}

#[tokio::test]
async fn explain_says_what_holds() {
    let gateway = gateway().config(local(&json!({"mode": "non-main"}))).prepare().unwrap();
    let explained = async |args: &[&str]| {
        let said = openclaw(&gateway, &[&["sandbox", "explain", "--json"], args].concat()).await;
        serde_json::from_str::<Value>(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    };
    let main = explained(&[]).await;
    assert_eq!(
        (&main["sessionKey"], &main["sandbox"]["sessionIsSandboxed"]),
        (&json!("agent:main:main"), &json!(false))
    );
    let recorded: Value = serde_json::from_str(include_str!("../golden/sandbox-explain.json")).unwrap();
    for key in ["docsUrl", "elevated", "fixIt", "agentId", "mainSessionKey"] {
        assert_eq!(main[key], recorded[key], "{key}");
    }
    assert_eq!(main["sandbox"]["tools"], recorded["sandbox"]["tools"]);
    let side = explained(&["--session", "agent:main:side"]).await;
    assert_eq!(side["sandbox"]["sessionIsSandboxed"], true);
    let said = openclaw(&gateway, &["sandbox", "explain"]).await.out;
    assert!(said.contains("Mode: non-main\nBackend: local\nBackend in use: local\n"), "{said}");
    // Containers come first where no backend is named.
    let programs = tempfile::tempdir().unwrap();
    std::fs::write(programs.path().join("podman"), "").unwrap();
    for (path, expect) in [(programs.path().to_str().unwrap(), "podman"), ("/nowhere", "local")] {
        let config = json!({"agents": {"defaults": {"sandbox": {"mode": "non-main"}}}});
        let gateway = self::gateway().config(config).env("PATH", path).prepare().unwrap();
        let said = openclaw(&gateway, &["sandbox", "explain"]).await.out;
        assert!(said.contains(&format!("Backend: auto\nBackend in use: {expect}\n")), "{said}");
    }
}
