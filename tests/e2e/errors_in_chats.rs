//! Errors and notes about tools in chats: who is shown them (decision 55).

use openclaw_testkit::model_server::{Gate, ModelServer, Reply, ScriptedCall, Step};
use openclaw_testkit::telegram::{TelegramServer, group_message, private_message};
use serde_json::{Value, json};

use crate::support::config::merge;
use crate::support::telegram::{bot, open};
use crate::support::trace::traced;

/// Starts a model that fails, or whose tool fails before it says something or nothing, depending on the last word that asks for one.
async fn model() -> ModelServer {
    ModelServer::answering(|request| {
        let said = request.last_user_text();
        let words = ["break", "quietly", "write"].into_iter();
        let asked = words.max_by_key(|word| said.rfind(word).map_or(0, |at| at + 1)).unwrap();
        match asked {
            "quietly" if request.ends_with_tool_result() => Reply::text("NO_REPLY"),
            "write" if request.ends_with_tool_result() => Reply::text("done"),
            "quietly" | "write" => {
                Reply::tool("c", "write", &json!({"path": "/proc/none/secret", "content": "x"}))
            }
            _ => Reply::openai_error(400, "invalid_request_error", "secret socket /run/x"),
        }
    })
    .await
}

/// All that a chat is told of these messages, which is so much at least.
async fn told(section: Value, messages: &[Value], count: usize) -> Vec<String> {
    let (server, model) = (TelegramServer::start().await, model().await);
    let gateway = bot(&server, &model, section, json!({})).await;
    for (n, message) in messages.iter().enumerate() {
        server.push(message.clone());
        // The error is not told together with the next.
        model.arrived(n + 1).await;
        gateway.fates().await.unwrap();
    }
    server.nth_call("sendMessage", count).await;
    gateway.fates().await.unwrap();
    let said = server.calls("sendMessage");
    said.iter().map(|call| call.params["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_direct_chat_is_told_why_a_run_failed_and_a_group_in_one_line() {
    let mine = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    for section in [mine, open()] {
        let said = told(section, &[private_message(5, "break")], 1).await;
        let framed = said[0].starts_with("⚠️ Agent failed before reply: 400 secret socket /run/x");
        assert!(framed && said[0].ends_with(".\nLogs: openclaw logs --follow"), "{said:?}");
    }
    let groups = json!({"groupPolicy": "open", "groups": {"*": {"requireMention": false}}});
    let said = told(groups, &[group_message(-7, 5, "break")], 1).await;
    assert_eq!(said, ["⚠️ Agent failed before reply: 400 secret socket /run/x"]);
}

#[tokio::test]
async fn an_error_in_a_chat_shows_no_secret_and_is_short_in_a_group() {
    let server = TelegramServer::start().await;
    let words = format!("the key {} is bad {}", server.token(), "and so on ".repeat(40));
    let model = ModelServer::answering(move |_| Reply::openai_error(400, "odd", &words)).await;
    let section = json!({"dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open", "groups": {"*": {"requireMention": false}}});
    let _gateway = bot(&server, &model, section, json!({})).await;
    for (at, message) in [private_message(5, "hi"), group_message(-7, 5, "hi")].into_iter().enumerate() {
        server.push(message);
        let told = server.nth_call("sendMessage", at + 1).await.params["text"].clone();
        let told = told.as_str().unwrap();
        assert!(told.contains("is bad") && !told.contains(&server.token()), "{told}");
        let is_short = told.chars().count() <= 160 && !told.contains('\n');
        assert_eq!(is_short, at == 1, "{told}");
    }
}

/// Error texts of a provider are not read as Markdown, and nothing of them is lost.
#[tokio::test]
async fn the_words_of_a_provider_format_nothing() {
    let said = "no *such* model_name_x in [list](x) <b>\n# at `all`";
    let server = TelegramServer::start().await;
    let model =
        ModelServer::answering(move |_| Reply::openai_error(400, "invalid_request_error", said)).await;
    let mine = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    let _gateway = bot(&server, &model, mine, json!({})).await;
    server.push(private_message(5, "hi"));
    let told = server.nth_call("sendMessage", 1).await.params["text"].clone();
    let told = told.as_str().unwrap();
    for words in ["no *such* model_name_x in [list](x) &lt;b&gt;", "# at `all`"] {
        assert!(told.contains(words), "{told}");
    }
}

#[tokio::test]
async fn a_tool_that_fails_is_told_where_there_is_no_answer() {
    let groups = json!({"groupPolicy": "open", "groups": {"*": {"requireMention": false}}});
    let said = |text: &str| group_message(-7, 5, text);
    let texts = told(groups, &[said("write quietly"), said("write")], 2).await;
    assert!(
        texts[0].starts_with("⚠️") && texts[0].contains(" failed: ") && !texts[0].contains('\n'),
        "{texts:?}"
    );
    assert_eq!(texts[1..], ["done"]);
    for section in [json!({"dmPolicy": "allowlist", "allowFrom": [5]}), open()] {
        let texts = told(section, &[private_message(5, "write quietly")], 1).await;
        assert!(texts[0].contains("/proc/none/secret"), "{texts:?}");
    }
}

/// Notes of tools name files and commands: in a group its owner decides (decision 55).
#[tokio::test]
async fn what_tools_do_is_shown_in_direct_chats_and_where_the_owner_of_a_group_wants_it() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| match request.ends_with_tool_result() {
        true => Reply::text("ran"),
        false => Reply::tool("c", "exec", &json!({"command": "echo out"})),
    })
    .await;
    // A person listed by name is the owner.
    let section = json!({"dmPolicy": "open", "allowFrom": [5, "*"], "groupPolicy": "open", "groupAllowFrom": ["*"],
        "groups": {"*": {"requireMention": false}}});
    let config = json!({"agents": {"defaults": {"verboseDefault": "full"}}});
    let gateway = bot(&server, &model, section, config).await;
    let mut seen = 0;
    let mut said = async |message: Value, last: &str| {
        server.push(message);
        server
            .has_made(last, |made| {
                made.iter().skip(seen).any(|one| one["text"].as_str().unwrap().contains(last))
            })
            .await;
        gateway.fates().await.unwrap();
        let made = server.made();
        let texts =
            made[seen..].iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        seen = made.len();
        texts.join("\n")
    };
    let in_group = |from: i64, text: &str| group_message(-7, from, text);
    // A stranger in a chat that is open to all, and a group in which nobody has asked for notes.
    assert!(said(private_message(6, "run it"), "ran").await.contains("echo out"));
    assert!(!said(in_group(5, "run it"), "ran").await.contains("echo out"));
    let refused = said(in_group(6, "/verbose on"), "shown").await;
    assert!(refused.contains("Nothing is shown here") && !refused.contains("enabled"), "{refused}");
    assert!(!said(in_group(6, "run it /verbose on"), "ran").await.contains("echo out"));
    assert!(said(in_group(5, "/verbose on"), "Verbose").await.contains("enabled"));
    assert!(said(in_group(6, "run it"), "ran").await.contains("echo out"));
}

#[tokio::test]
async fn the_trace_tells_that_the_model_said_nothing() {
    let groups = json!({"groupPolicy": "open", "groups": {"*": {"requireMention": false}}});
    let rows = [
        ("NO_REPLY", "silent", open(), private_message(5, "hi")),
        (" ", "empty", groups, group_message(-7, 5, "hi")),
    ];
    for (answer, silence, section, message) in rows {
        let server = TelegramServer::start().await;
        let model = ModelServer::answering(|_| Reply::text(answer)).await;
        let gateway = bot(&server, &model, section, json!({})).await;
        server.push(message);
        let event = crate::support::trace::traced(&gateway, 11, |event| event["run"]["state"] == "ok").await;
        assert_eq!(event["run"]["silence"], silence, "{event}");
        let out = crate::support::command::openclaw(&gateway, &["trace", "last"]).await;
        assert!(
            format!("{out:?}").contains("say nothing") || format!("{out:?}").contains("said nothing"),
            "{out:?}"
        );
        assert!(server.calls("sendMessage").is_empty());
    }
}

/// JavaScript cuts texts between the halves of a character.
#[tokio::test]
async fn a_character_that_comes_in_two_halves_arrives_whole() {
    let server = TelegramServer::start().await;
    let chunk = |text: &str| {
        format!(r#"data: {{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#) + "\n\n"
    };
    let model = ModelServer::answering(move |_| {
        let halves = chunk(r"well done \ud83d") + &chunk(r"\ude00");
        Reply::steps([Step::Raw(halves.into_bytes()), Step::Text("!".to_owned())])
    })
    .await;
    let _gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(5, "hi"));
    assert_eq!(server.nth_call("sendMessage", 1).await.params["text"], "well done 😀!");
}

/// `errorPolicy` and `silentErrorReplies`: a group whose people want to hear of nothing, a chat that is told the same error once.
#[tokio::test]
async fn errors_are_told_as_often_and_as_loudly_as_is_wanted() {
    let (server, model) = (TelegramServer::start().await, model().await);
    let group = json!({"requireMention": false, "errorPolicy": "silent", "allowFrom": ["*"]});
    let section = json!({
        "dmPolicy": "allowlist", "allowFrom": [5], "groupPolicy": "open", "groups": {"-7": group},
        "errorPolicy": "once", "silentErrorReplies": true,
    });
    let gateway = bot(&server, &model, section, json!({})).await;
    let mut asked = 0;
    // The first error, the same once more, what is none, another one.
    for message in [
        group_message(-7, 5, "break"),
        private_message(5, "break"),
        private_message(5, "break"),
        private_message(5, "write"),
        private_message(5, "quietly"),
        private_message(5, "break"),
    ] {
        let calls = if message["message"]["text"] == "break" { 1 } else { 2 };
        server.push(message);
        asked += calls;
        model.arrived(asked).await;
        gateway.fates().await.unwrap();
    }
    server.nth_call("sendMessage", 3).await;
    gateway.fates().await.unwrap();
    let said = server.calls("sendMessage");
    let seen: Vec<_> = said
        .iter()
        .map(|call| {
            let text = call.params["text"].as_str().unwrap();
            let what = ["Agent failed before reply", "done", "Write: /proc/none"]
                .into_iter()
                .find(|what| text.contains(what));
            (
                call.params["chat_id"].clone(),
                what.unwrap_or(text),
                call.params["disable_notification"] == true,
            )
        })
        .collect();
    let chat = || json!(5);
    assert_eq!(
        seen,
        [
            (chat(), "Agent failed before reply", true),
            (chat(), "done", false),
            (chat(), "Write: /proc/none", true)
        ]
    );
}

/// A run that has spoken before its model fails says so in this order, and not that it failed before
/// its reply, also where its words went out as a block, or where a start finds its model gone.
#[tokio::test]
async fn words_before_an_error_are_told_before_it() {
    for how in ["live", "blocks", "a start", "a start, blocks"] {
        let (server, gate) = (TelegramServer::start().await, Gate::new());
        let held = gate.clone();
        let dies = how.starts_with("a start");
        let model = ModelServer::answering(move |request| match request.ends_with_tool_result() {
            true if dies => Reply::text("never").after(Step::Wait(held.clone())),
            true => Reply::openai_error(400, "invalid_request_error", "no more"),
            false => Reply::steps([
                Step::Text("Let me have a look.".to_owned()),
                Step::ToolCalls(vec![ScriptedCall::new("c1", "exec", &json!({"command": "true"}))]),
            ]),
        })
        .await;
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("key");
        std::fs::write(&key, "a-key").unwrap();
        let keyed = json!({
            "baseUrl": model.v1(), "apiKey": format!("!cat '{}'", key.display()), "api": "openai-completions",
            "models": [{"id": "keyed-1", "name": "Keyed"}],
        });
        let config = json!({
            "models": {"providers": {"keyed": keyed}}, "agents": {"defaults": {"model": {"primary": "keyed/keyed-1"}}},
        });
        let mut section = open();
        merge(&mut section, json!({"blockStreaming": how.ends_with("blocks")}));
        let mut gateway = bot(&server, &model, section, config).await;
        server.push(private_message(5, "look"));
        model.arrived(2).await;
        if dies {
            if how.ends_with("blocks") {
                traced(&gateway, 11, |event| event["run"]["deliveries"][0]["state"] == "sent").await;
            }
            gateway.kill().await.unwrap();
            std::fs::remove_file(&key).unwrap();
            gateway.start().await.unwrap();
        }
        traced(&gateway, 11, |event| event["run"]["deliveries"][1]["state"] == "sent").await;
        let said: Vec<String> =
            server.made().iter().map(|made| made["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!((said.len(), said[0].trim()), (2, "Let me have a look."), "{how}: {said:?}");
        let why = if dies { "key" } else { "no more" };
        assert!(said[1].contains(why) && !said[1].contains("failed before reply"), "{how}: {said:?}");
        gate.open();
    }
}
