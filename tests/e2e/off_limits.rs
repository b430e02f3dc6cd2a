//! The gateway's own state and configuration, which no tool reaches and no message carries away.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::{results, turn};
use crate::support::sandbox::works;
use crate::support::telegram::{bot, open};

const REFUSED: &str = "which tools do not touch";
/// Refusals of tools in a sandbox, which never follow a link.
const REFUSED_IN_SANDBOX: [&str; 3] = [REFUSED, "Path escapes sandbox root", "Symlink not allowed"];

type Calls = Arc<OnceLock<Vec<(&'static str, Value)>>>;

/// Starts a model that makes the calls one after the other, and then says that it is done. The calls are set once the gateway has its
/// directory.
async fn calling(calls: &Calls) -> ModelServer {
    let calls = Arc::clone(calls);
    ModelServer::answering(move |request| {
        let done = results(request).len();
        match calls.get().unwrap().get(done) {
            Some((tool, args)) => Reply::tool(&format!("c{done}"), tool, args),
            None => Reply::text("done"),
        }
    })
    .await
}

/// Returns the names by which somebody could try to reach files of the state. `to_home` leads from the workspace to the home.
fn names(home: &Path, to_home: &str) -> Vec<String> {
    symlink(home.join(".openclaw"), home.join("link")).unwrap();
    let state = home.join(".openclaw").display().to_string();
    vec![
        format!("{state}/openclaw.json"),
        "~/.openclaw/openclaw.json".to_owned(),
        format!("{to_home}/.openclaw/openclaw.json"),
        format!("{to_home}/link/openclaw.json"),
        format!("@{to_home}/.openclaw/workspace/../openclaw.json"),
        format!("/proc/self/root{state}/openclaw.json"),
        format!("{state}/exec-approvals.json"),
    ]
}

/// The calls that try to read and to change a file, and to make one beside it.
fn attempts(path: &str) -> [(&'static str, Value); 4] {
    [
        ("read", json!({"path": path})),
        ("write", json!({"path": path, "content": "{}"})),
        ("write", json!({"path": format!("{path}.d/new"), "content": "{}"})),
        ("edit", json!({"path": path, "oldText": "{", "newText": "{ "})),
    ]
}

/// Lets a gateway with these settings try everything, and checks that nothing came of it.
async fn check(defaults: Value, to_home: &str, refused: &[&str]) -> GatewayUnderTest {
    let calls = Calls::default();
    let model = calling(&calls).await;
    let is_held = defaults["sandbox"].is_object();
    let config = json!({"agents": {"defaults": defaults}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let attempts: Vec<_> = names(gateway.home(), to_home).iter().flat_map(|name| attempts(name)).collect();
    let count = attempts.len();
    calls.set(attempts).unwrap();
    let read = || std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    let before = read();
    let mut client = gateway.client().await.unwrap();
    let answer = turn(&mut client, "main", "go", "run-1").await;
    if is_held && !works(&gateway, &answer) {
        return gateway;
    }
    assert_eq!(answer, "done");
    let told = results(&model.requests().pop().unwrap());
    assert_eq!(told.len(), count);
    for (result, (tool, args)) in told.iter().zip(calls.get().unwrap()) {
        assert!(refused.iter().any(|why| result.contains(why)), "{tool} {args}: {result}");
    }
    assert_eq!(read(), before);
    assert!(!gateway.state_dir().join("openclaw.json.d").exists());
    gateway
}

#[tokio::test]
async fn file_tools_do_not_reach_the_state_below_their_workspace_and_the_owner_is_told() {
    let gateway = check(json!({"workspace": "~"}), ".", &[REFUSED]).await;
    let says = "holds the state directory";
    gateway.logged(says).await.unwrap();
    for command in [["status", "--json"], ["doctor", "--json"]] {
        let told = openclaw(&gateway, &command).await;
        assert!(told.out.contains(says), "{told:?}");
    }
}

#[tokio::test]
async fn nor_from_a_workspace_elsewhere_or_in_a_sandbox() {
    check(json!({"workspace": "~/ws"}), "..", &[REFUSED]).await;
    check(json!({}), "../..", &[REFUSED]).await;
    let sandbox = json!({"mode": "all", "backend": "local", "workspaceAccess": "rw"});
    check(json!({"workspace": "~", "sandbox": sandbox}), ".", &REFUSED_IN_SANDBOX).await;
}

#[tokio::test]
async fn what_is_shown_of_the_state_is_read_and_the_workspace_in_it_is_written() {
    let calls = Calls::default();
    let model = calling(&calls).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    for (path, text) in [("media/inbound/a.txt", "came with a message"), ("skills/s/SKILL.md", "how to")] {
        let path = gateway.state_dir().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let tried = vec![
        ("read", json!({"path": "~/.openclaw/media/inbound/a.txt"})),
        ("read", json!({"path": "~/.openclaw/skills/s/SKILL.md"})),
        ("write", json!({"path": "~/.openclaw/skills/s/SKILL.md", "content": "x"})),
        ("write", json!({"path": "notes/a.txt", "content": "own"})),
        ("read", json!({"path": "~/.openclaw/workspace/notes/a.txt"})),
    ];
    calls.set(tried).unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "go", "run-1").await, "done");
    let told = results(&model.requests().pop().unwrap());
    let expect =
        ["came with a message", "how to", REFUSED, "Successfully wrote 3 bytes to notes/a.txt", "own"];
    for (result, expect) in told.iter().zip(expect) {
        assert!(result.contains(expect), "{expect}: {result}");
    }
    assert_eq!(told.len(), expect.len());
}

#[tokio::test]
async fn no_message_carries_the_state_away() {
    let server = TelegramServer::start().await;
    let calls = Calls::default();
    let model = calling(&calls).await;
    let gateway = bot(&server, &model, open(), json!({"agents": {"defaults": {"workspace": "~"}}})).await;
    std::fs::hard_link(gateway.state_dir().join("openclaw.json"), gateway.home().join("copy.json")).unwrap();
    std::fs::write(gateway.home().join("fine.txt"), "fine").unwrap();
    let send = |path: &str| ("message", json!({"action": "send", "message": "here", "media": path}));
    let mut tried: Vec<_> = names(gateway.home(), ".").iter().map(|name| send(name)).collect();
    tried.extend([send("copy.json"), send("fine.txt")]);
    calls.set(tried).unwrap();
    server.push(private_message(5, "go"));
    server.nth_call("sendDocument", 1).await;
    model.arrived(calls.get().unwrap().len() + 1).await;
    let told = results(&model.requests().pop().unwrap());
    let (last, refused) = told.split_last().unwrap();
    assert!(last.contains("\"ok\":true") || last.contains("\"ok\": true"), "{last}");
    for result in refused {
        assert!(
            result.contains("Local media path is not under an allowed directory")
                || result.contains("No such file"),
            "{result}"
        );
    }
}
