//! Texts that people on a platform get, and those that they do not: notices, prefixes, what a tool
//! has said already, silent tokens.

use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, group_message, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::config::merge;
use crate::support::conversation::{transcript_path, turn};
use crate::support::hooks::Heard;
use crate::support::telegram::bot;
use crate::support::trace::traced;

fn owners() -> Value {
    json!({"dmPolicy": "allowlist", "allowFrom": [5]})
}

/// Config in which each of two paragraphs of some length is a message.
fn in_blocks() -> (Value, Value) {
    let mut section = owners();
    let coalesce = json!({"minChars": 1, "maxChars": 60, "idleMs": 10});
    merge(&mut section, json!({"blockStreaming": true, "blockStreamingCoalesce": coalesce}));
    let chunk = json!({"minChars": 20, "maxChars": 100, "breakPreference": "newline"});
    (section, json!({"agents": {"defaults": {"blockStreamingChunk": chunk}}}))
}

/// Recipient and text of each message.
fn told(server: &TelegramServer) -> Vec<(i64, String)> {
    let one = |made: &Value| {
        let text = made["text"].as_str().or(made["caption"].as_str()).unwrap_or_default();
        (made["chat_id"].as_i64().unwrap_or_default(), text.trim().to_owned())
    };
    server.made().iter().map(one).collect()
}

#[tokio::test]
async fn a_command_on_a_platform_is_answered_and_told_of_as_what_it_is() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("Hello.")).await;
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::at(dir.path().join("heard"));
    let note = format!("given=$(cat); printf '%s\\n' \"$given\" > {}", heard.path().display());
    let commands = json!([{"event": "message_received", "command": ["sh", "-c", note]}]);
    let rest = json!({
        "messages": {"responsePrefix": "[{model}]"},
        "hooks": {"internal": {"enabled": true, "commands": commands}},
        "agents": {"list": [{"id": "main", "default": true, "name": "Clerk"}]},
    });
    let mut gateway = bot(&server, &model, owners(), rest).await;
    let rows: [(&str, &[&str]); 4] = [
        ("/new", &["[fake-1] ✅ New session started · model: fake/fake-1", "[fake-1] Hello."]),
        ("/whoami", &["[fake-1] 🧭 Identity"]),
        ("what now? /whoami", &["[fake-1] 🧭 Identity", "[fake-1] Hello."]),
        ("stop", &["⚙️ Agent was aborted."]),
    ];
    let mut before = 0;
    for (said, expect) in rows {
        server.push(private_message(5, said));
        let count = before + expect.len();
        server.has_made(said, |made| made.len() == count).await;
        let mut answers: Vec<String> = told(&server).drain(before..).map(|(_, text)| text).collect();
        before = count;
        answers.iter_mut().for_each(|text| text.truncate(text.find('\n').unwrap_or(text.len())));
        assert_eq!(answers, expect, "{said}");
        let received = heard.next().await;
        let payload = &received["payload"];
        assert_eq!((&payload["from"], &payload["content"]), (&json!("5"), &json!(said)), "{received}");
    }
    assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
    let log = std::fs::read_to_string(gateway.state_dir().join("logs/commands.log")).unwrap();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        json!([line["action"], line["source"], line["senderId"]])
    };
    let lines: Vec<Value> = log.lines().map(line).collect();
    assert_eq!(lines, [json!(["new", "telegram", "5"]), json!(["stop", "telegram", "5"])]);
}

#[tokio::test]
async fn a_new_session_is_told_of_once_also_after_a_crash() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| Reply::text("Hello.").after(Step::Wait(held.clone()))).await;
    let mut gateway = bot(&server, &model, owners(), json!({})).await;
    server.push(private_message(5, "/new"));
    // If the process dies before the receipt is stored, nobody can tell whether the message
    // arrived.
    traced(&gateway, 11, |event| {
        let deliveries = event["run"]["deliveries"].as_array();
        deliveries.is_some_and(|all| all.len() == 1 && all[0]["state"] == "sent")
    })
    .await;
    model.arrived(1).await;
    gateway.kill().await.unwrap();
    gate.open();
    gateway.start().await.unwrap();
    server.has_made("the greeting", |made| made.iter().any(|made| made["text"] == "Hello.")).await;
    let notice = "✅ New session started · model: fake/fake-1".to_owned();
    assert_eq!(told(&server), [(5, notice), (5, "Hello.".to_owned())]);
}

/// `responsePrefix: "auto"` is the name in the agent's identity, and not what lists call it.
#[tokio::test]
async fn an_agent_without_an_identity_has_no_prefix_and_knows_its_group() {
    for (identity, expect) in [(json!({}), "here"), (json!({"name": "Molly"}), "[Molly] here")] {
        let server = TelegramServer::start().await;
        let model = ModelServer::answering(|_| Reply::text("here")).await;
        let rest = json!({
            "messages": {"responsePrefix": "auto"},
            "agents": {"list": [{"id": "main", "default": true, "name": "Clerk", "identity": identity}]},
        });
        let section = json!({"groupPolicy": "open", "groups": {"*": {"requireMention": false, "systemPrompt": "Be brief."}}});
        let _gateway = bot(&server, &model, section, rest).await;
        server.push(group_message(-100, 5, "hello"));
        server.has_made("an answer", |made| made.len() == 1).await;
        assert_eq!(told(&server), [(-100, expect.to_owned())]);
        let system = model.requests()[0].body["messages"][0]["content"].to_string();
        let intro = r#"You are replying inside the Telegram group \"Team\". Activation: always-on"#;
        assert!(system.contains(intro), "{system}");
        assert!(system.contains(r"\n\nBe brief."), "{system}");
    }
}

#[tokio::test]
async fn what_a_tool_has_sent_is_the_answer_also_as_a_file_alone() {
    let server = TelegramServer::start().await;
    let file =
        json!({"action": "send", "buffer": "aGVsbG8=", "filename": "h.txt", "contentType": "text/plain"});
    let words = json!({"action": "send", "message": "Here is what I found."});
    let model = ModelServer::answering(move |request| {
        let made = request.messages().iter().rev().take_while(|message| message["role"] != "user").count();
        match (request.last_user_text(), made) {
            (said, 0) if said.contains("a file") => Reply::tool("c1", "message", &file),
            (said, 0) if said.contains("look") => Reply::tool("c1", "read", &json!({"path": "nowhere.txt"})),
            (said, 2) if said.contains("look and tell") => Reply::tool("c2", "message", &words),
            (said, _) if said.contains("look") => Reply::text("NO_REPLY"),
            (said, _) if said.contains("a file") => Reply::text("I have sent you the file."),
            _ => Reply::text("done"),
        }
    })
    .await;
    let _gateway = bot(&server, &model, owners(), json!({})).await;
    let rows: [(&str, &[&str]); 4] = [
        ("a file please", &[""]),
        ("look and tell", &["Here is what I found."]),
        ("look", &["⚠️ Read"]),
        ("and now", &["done"]),
    ];
    let mut before = 0;
    for (said, expect) in rows {
        server.push(private_message(5, said));
        let count = before + expect.len();
        server.has_made(said, |made| made.len() >= count).await;
        let answers: Vec<String> = told(&server).drain(before..).map(|(_, text)| text).collect();
        before = count;
        assert_eq!(answers.len(), expect.len(), "{said}: {answers:?}");
        assert!(answers.iter().zip(expect).all(|(text, expect)| text.starts_with(expect)), "{answers:?}");
    }
}

#[tokio::test]
async fn a_token_on_a_line_of_its_own_is_for_nobody() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| {
        let said = request.last_user_text();
        match () {
            () if said.contains("behind") => Reply::deltas(["Sure, here", " it is.", "\n\nNO_", "REPLY"]),
            () if said.contains("before") => Reply::deltas(["NO_REPLY", "\n\nSure, here", " it is."]),
            () => Reply::text("Answer with:\n```\nNO_REPLY\n```"),
        }
    })
    .await;
    let (section, rest) = in_blocks();
    for section in [owners(), section] {
        let before = server.made().len();
        let gateway = bot(&server, &model, section, rest.clone()).await;
        for (at, said) in ["behind", "before"].into_iter().enumerate() {
            server.push(private_message(5, said));
            server.has_made(said, |made| made.len() == before + at + 1).await;
            assert_eq!(told(&server)[before + at].1, "Sure, here it is.", "{said}");
        }
        server.push(private_message(5, "how"));
        server.has_made("code", |made| made.len() == before + 3).await;
        assert!(told(&server)[before + 2].1.contains("NO_REPLY"));
        drop(gateway);
    }
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for said in ["behind", "before"] {
        assert_eq!(turn(&mut client, "main", said, said).await, "Sure, here it is.");
    }
    let kept = std::fs::read_to_string(transcript_path(&gateway, "main").await).unwrap();
    assert!(kept.contains(r"Sure, here it is.\n\nNO_REPLY"), "{kept}");
}

#[tokio::test]
async fn what_a_tool_said_elsewhere_is_not_a_block_here() {
    let server = TelegramServer::start().await;
    let (first, second) =
        ("The meeting is at noon in the large room.", "That is what I told nine, and they will come.");
    let args = json!({"action": "send", "target": "9", "message": first});
    let whole = format!("{first}\n\n{second}");
    let model = ModelServer::answering(move |request| match request.ends_with_tool_result() {
        true => Reply::deltas(whole.split_inclusive(' ')),
        false => Reply::tool("c", "message", &args),
    })
    .await;
    let (section, rest) = in_blocks();
    let _gateway = bot(&server, &model, section, rest).await;
    server.push(private_message(5, "tell nine"));
    server.has_made("the rest", |made| made.iter().any(|made| made["text"] == second)).await;
    assert_eq!(told(&server), [(9, first.to_owned()), (5, second.to_owned())]);
}
