//! A client that may only write gives no command that changes the gateway or how commands are guarded: not alone, not among words, and
//! not by `agent` (spec `gateway-protocol.md` §6.10, `messages.md` §4, §5).

use std::path::Path;

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::TelegramServer;
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::connect::with_scopes;
use crate::support::conversation::{end, message, send, turn};
use crate::support::telegram::{bot_setup, open};

/// Everything that the commands need is switched on: only the scopes are in the way.
fn switched_on() -> Value {
    json!({
        "commands": {"bash": true, "config": true, "debug": true, "restart": true},
        "tools": {"elevated": {"allowFrom": {"webchat": ["*"]}}},
    })
}

/// Files that tell of a change, with what is in them.
fn state(gateway: &GatewayUnderTest) -> Vec<Option<String>> {
    let dir = gateway.state_dir();
    let text = |path: &Path| std::fs::read_to_string(dir.join(path)).ok();
    ["openclaw.json", "credentials/telegram-allowFrom.json", "exec-approvals.json", "workspace/made"]
        .map(|path| text(Path::new(path)))
        .to_vec()
}

/// Settings of the session: how commands are guarded, and how much it thinks.
async fn settings(client: &mut WsClient) -> (String, String, Value) {
    let run = || uuid::Uuid::new_v4().to_string();
    let first = |card: String| card.lines().next().unwrap_or_default().to_owned();
    let exec = first(turn(client, "main", "/exec", &run()).await);
    let elevated = first(turn(client, "main", "/elevated", &run()).await);
    let listed = client.request("sessions.list", json!({})).await.unwrap();
    (exec, elevated, listed["sessions"][0]["thinkingLevel"].clone())
}

/// A client that may administer the gateway can read every file of its machine anyway; one that may
/// only write can send what an agent may send.
#[tokio::test]
async fn a_client_that_may_only_write_sends_no_file_of_the_machine() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    // Files of the directory for temporary files may be sent. The gateway has one of its own, beside the file that is none.
    let place = tempfile::tempdir().unwrap();
    let temp = place.path().join("tmp");
    let outside = place.path().join("kept.toml");
    std::fs::create_dir(&temp).unwrap();
    std::fs::write(&outside, "kept = true").unwrap();
    let setup = bot_setup(&server, &model, open(), json!({}));
    let gateway = setup.env("TMPDIR", temp.display().to_string()).start().await.unwrap();
    let inside = gateway.state_dir().join("workspace/shown.txt");
    std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
    std::fs::write(&inside, "to be shown").unwrap();
    std::os::unix::fs::symlink(&outside, inside.with_file_name("link.txt")).unwrap();
    let mut client = with_scopes(&gateway, &["operator.read", "operator.write"]).await;
    let mut sent = 0;
    let mut params = |path: &Path| {
        sent += 1;
        let (path, key) = (path.display().to_string(), format!("key-{sent}"));
        let action = json!({"to": "5", "media": path, "message": "see"});
        [
            ("send", json!({"to": "5", "message": "see", "mediaUrl": path, "idempotencyKey": key})),
            (
                "message.action",
                json!({"channel": "telegram", "action": "send", "params": action, "idempotencyKey": format!("{key}-a")}),
            ),
        ]
    };
    let credentials = gateway.state_dir().join("openclaw.json");
    let refused: [&Path; 5] = [
        &outside,
        Path::new("/etc/passwd"),
        &credentials,
        &inside.with_file_name("../openclaw.json"),
        &inside.with_file_name("link.txt"),
    ];
    for path in refused {
        for (method, params) in params(path) {
            let answer = client.call(method, params).await.unwrap();
            let text = answer.error["message"].as_str().unwrap_or_default();
            assert!(
                text.contains("not under an allowed directory"),
                "{method} {}: {answer:?}",
                path.display()
            );
        }
    }
    for (method, params) in params(&inside) {
        let answer = client.call(method, params).await.unwrap();
        assert!(answer.ok, "{method}: {answer:?}");
    }
    assert_eq!(server.calls("sendDocument").len(), 2);

    // The owner's command line.
    let send = ["message", "send", "--target", "5", "--media", outside.to_str().unwrap()];
    crate::support::command::ok(&gateway, &send).await;
    let uploads = server.nth_call("sendDocument", 3).await.uploads;
    assert_eq!(uploads[0].content, std::fs::read(&outside).unwrap());
}

const EXEC: &str = "⚠️ /exec needs a client with the scope operator.approvals.";
const ELEVATED: &str = "⚠️ /elevated needs a client with the scope operator.approvals.";

fn for_administrators(name: &str) -> String {
    format!("⚠️ /{name} needs a client with the scope operator.admin.")
}

/// Commands, what a client is told that may only write, and how the answer begins where it may.
fn commands(id: &str) -> Vec<(String, String, &'static str)> {
    let rows: [(&str, String, &str); 17] = [
        ("/exec security=full ask=off", EXEC.to_owned(), "⚙️ Exec defaults set (security=full, ask=off)."),
        ("/exec host=gateway", EXEC.to_owned(), "⚙️ Exec defaults set (host=gateway)."),
        ("/exec reset", EXEC.to_owned(), "⚙️ Exec defaults are those of the configuration again."),
        ("/elevated full", ELEVATED.to_owned(), "⚙️ Elevated mode set to full (auto-approve)."),
        ("/elev off", ELEVATED.to_owned(), "⚙️ Elevated mode disabled."),
        (
            "/think off /exec security=full",
            EXEC.to_owned(),
            "Thinking disabled. ⚙️ Exec defaults set (security=full).",
        ),
        (
            "/exec ask=off /elevated full",
            format!("{ELEVATED} {EXEC}"),
            "⚙️ Elevated mode set to full (auto-approve).",
        ),
        ("/config show", for_administrators("config"), "⚙️ Config (raw):"),
        (
            "/config set messages.responsePrefix=\"x\"",
            for_administrators("config"),
            "⚙️ Config updated: `messages.responsePrefix=\"x\"`",
        ),
        (
            "/config unset messages.responsePrefix",
            for_administrators("config"),
            "⚙️ Config updated: `messages.responsePrefix` removed.",
        ),
        (
            "/debug set tools.exec.security=full",
            for_administrators("debug"),
            "⚙️ Debug override set: `tools.exec.security=\"full\"`",
        ),
        ("/debug reset", for_administrators("debug"), "⚙️ Debug overrides cleared; using config on disk."),
        ("/allowlist add dm channel=telegram 66", for_administrators("allowlist"), "✅ DM allowlist added"),
        ("/bash touch made", for_administrators("bash"), "⚙️ bash: touch made\nExit: 0"),
        ("!id -u", for_administrators("bash"), "⚙️ bash: id -u\nExit: 0"),
        ("! id -u", for_administrators("bash"), "⚙️ bash: id -u\nExit: 0"),
        (
            "/approve ID allow-once",
            "❌ /approve requires operator.approvals for gateway clients.".to_owned(),
            "✅ Exec approval allow-once submitted for ",
        ),
    ];
    rows.into_iter().map(|(text, refused, done)| (text.replace("ID", id), refused, done)).collect()
}

async fn waiting_approval(client: &mut WsClient) -> String {
    let request = json!({"command": "touch asked", "timeoutMs": 120_000});
    client.send("exec.approval.request", request).await.unwrap();
    let asked = client.event("exec.approval.requested", |_| true).await.unwrap();
    asked["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn who_may_only_write_gives_no_command_that_changes_the_gateway() {
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let gateway = gateway().fake_model(&model.v1()).config(switched_on()).start().await.unwrap();
    let mut owner = gateway.client().await.unwrap();
    assert_eq!(turn(&mut owner, "main", "hello", "first").await, "from the model");
    let id = waiting_approval(&mut owner).await;
    let mut writer = with_scopes(&gateway, &["operator.write", "operator.read"]).await;
    // Commands that only show something change nothing, and answer everybody.
    let set_before = settings(&mut writer).await;
    assert_eq!(
        set_before.0,
        "Current exec defaults: host=(unset), security=(unset), ask=(unset), node=(unset)."
    );
    assert_eq!((set_before.1.as_str(), &set_before.2), ("Current elevated level: on.", &Value::Null));
    let (before, asked) = (state(&gateway), model.requests().len());
    let pid = gateway.pid();

    let mut rows = commands(&id);
    rows.push(("/restart".to_owned(), for_administrators("restart"), ""));
    for (n, (text, refused, _)) in rows.iter().enumerate() {
        assert_eq!(turn(&mut writer, "main", text, &format!("alone-{n}")).await, *refused, "{text}");
    }
    // Among words: a hint for one run.
    for (n, (text, refused)) in [
        ("please /exec security=full ask=off and go on", EXEC),
        ("now /elevated full do it", ELEVATED),
        ("hey /think:high /exec host=gateway go", EXEC),
        ("line\n/elev full\nline", ELEVATED),
    ]
    .into_iter()
    .enumerate()
    {
        let run = format!("among-{n}");
        send(&mut writer, "main", text, &run).await;
        let ended = end(&mut writer, &run).await;
        assert_eq!(
            (&ended["state"], &ended["errorMessage"]),
            (&json!("error"), &json!(refused)),
            "{text}: {ended}"
        );
    }
    assert_eq!(model.requests().len(), asked, "no model was asked");
    // Other commands are no commands among words: they are the agent's to read.
    for (n, text) in [
        "please /config set a=b",
        "note !id",
        "do /restart now",
        "so /approve x allow-once",
        "and /debug reset",
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(turn(&mut writer, "main", text, &format!("words-{n}")).await, "from the model", "{text}");
        assert!(model.requests().last().unwrap().last_user_text().contains(text), "{text}");
    }
    // By `agent` all of it is words.
    for (n, (text, ..)) in rows.iter().enumerate() {
        let run = format!("agent-{n}");
        let request = writer.send("agent", message("agent:main:main", text, &run)).await.unwrap();
        let accepted = writer.answer(&request).await.unwrap();
        assert_eq!(accepted.payload["status"], "accepted", "{text}");
        let ended = writer.answer(&request).await.unwrap();
        assert_eq!(ended.payload["result"]["payloads"][0]["text"], "from the model", "{text}: {ended:?}");
        assert!(model.requests().last().unwrap().last_user_text().contains(text.as_str()), "{text}");
    }

    assert_eq!(state(&gateway), before);
    assert_eq!(settings(&mut owner).await, set_before);
    let overrides = turn(&mut owner, "main", "/debug show", "debug").await;
    assert_eq!(overrides, "⚙️ Debug overrides: (none)");
    assert_eq!(
        turn(&mut owner, "main", &format!("/approve {id} deny"), "deny").await,
        format!("✅ Exec approval deny submitted for {id}.")
    );
    assert_eq!(gateway.pid(), pid);
    assert!(!gateway.log().contains("SIGUSR1"), "{}", gateway.log());
}

#[tokio::test]
async fn who_has_the_scopes_gives_them() {
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let gateway = gateway().fake_model(&model.v1()).config(switched_on()).start().await.unwrap();
    let mut owner = gateway.client().await.unwrap();
    assert_eq!(turn(&mut owner, "main", "hello", "first").await, "from the model");
    let id = waiting_approval(&mut owner).await;
    let mut approver =
        with_scopes(&gateway, &["operator.write", "operator.read", "operator.approvals"]).await;
    let mut administrator = with_scopes(&gateway, &["operator.admin"]).await;
    for (n, (text, refused, done)) in commands(&id).into_iter().enumerate() {
        let is_for_administrators = refused.contains("operator.admin");
        let run = format!("approver-{n}");
        let said = turn(&mut approver, "main", &text, &run).await;
        if is_for_administrators {
            assert_eq!(said, refused, "{text}");
        } else {
            assert!(said.starts_with(done), "{text}: {said}");
        }
        if !text.starts_with("/approve") {
            let said = turn(&mut administrator, "main", &text, &format!("administrator-{n}")).await;
            assert!(said.starts_with(done), "{text}: {said}");
        }
    }
    let kept = settings(&mut approver).await;
    assert_eq!(kept.0, "Current exec defaults: host=(unset), security=full, ask=off, node=(unset).");
    assert_eq!((kept.1.as_str(), &kept.2), ("Current elevated level: full.", &json!("off")));
    assert!(gateway.state_dir().join("workspace/made").exists());
    // Among words, with what it is for.
    for client in [&mut approver, &mut administrator] {
        let run = format!("among-{}", model.requests().len());
        let said = turn(client, "main", "please /exec security=deny and go on", &run).await;
        assert_eq!(said, "from the model");
        assert!(model.requests().last().unwrap().last_user_text().contains("please and go on"));
    }
    let restarts = turn(&mut administrator, "main", "/restart", "restart").await;
    assert!(restarts.starts_with("⚙️ Restarting OpenClaw in-process"), "{restarts}");
}
