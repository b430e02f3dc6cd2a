//! Who is told why a run or a tool failed: the owner, in a chat of their own (spec `channels.md` §5.2).

use openclaw_testkit::model_server::{ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, group_message, private_message};
use serde_json::{Value, json};

use crate::telegram::{bot, open};

/// A model that fails, or whose tool fails before it says something or nothing: as the last such word asks for.
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
        // It is not told together with the next.
        model.arrived(n + 1).await;
        gateway.fates().await.unwrap();
    }
    server.nth_call("sendMessage", count).await;
    gateway.fates().await.unwrap();
    let said = server.calls("sendMessage");
    said.iter().map(|call| call.params["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_owner_is_told_why_a_run_failed_and_nobody_else() {
    let neutral = "⚠️ Something went wrong here, and there is no answer. Please try again later.";
    let groups = json!({"dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open", "groups": {"*": {"requireMention": false}}});
    let mine = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    let owner = told(mine, &[private_message(5, "break")], 1).await;
    let framed = owner[0].starts_with("⚠️ Agent failed before reply: 400 secret socket /run/x");
    assert!(framed && owner[0].ends_with(".\nLogs: openclaw logs --follow"), "{owner:?}");
    // Who was let in by hand where nobody is named.
    let (server, model) = (TelegramServer::start().await, model().await);
    let gateway = bot(&server, &model, json!({}), json!({})).await;
    server.push(private_message(5, "hello"));
    let asked = server.nth_call("sendMessage", 1).await.params["text"].as_str().unwrap().to_owned();
    let code = asked.split("Pairing code: ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    crate::command::openclaw(&gateway, &["pairing", "approve", "telegram", &code]).await;
    server.push(private_message(5, "break"));
    let said = server.nth_call("sendMessage", 2).await.params["text"].clone();
    assert!(said.as_str().unwrap().contains("secret socket /run/x"), "{said}");
    for (section, message) in [(open(), private_message(5, "break")), (groups, group_message(-7, 5, "break"))]
    {
        assert_eq!(told(section, &[message], 1).await, [neutral]);
    }
}

/// What a provider says is no Markdown, and nothing of it is lost.
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
async fn a_tool_that_fails_is_told_to_the_owner_alone() {
    let groups = json!({"groupPolicy": "open", "groups": {"*": {"requireMention": false}}});
    let said = |text: &str| group_message(-7, 5, text);
    let texts = told(groups, &[said("write quietly"), said("write")], 1).await;
    assert_eq!(texts, ["done"]);
    let mine = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    let texts = told(mine, &[private_message(5, "write quietly")], 1).await;
    assert!(texts[0].contains("/proc/none/secret"), "{texts:?}");
}

/// Notes of tools name files and commands.
#[tokio::test]
async fn what_tools_do_is_shown_to_the_owner_alone() {
    let mine = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    for (section, is_shown) in [(mine, true), (open(), false)] {
        let server = TelegramServer::start().await;
        let call = Reply::tool("c", "exec", &json!({"command": "echo out"}));
        let model = ModelServer::queue([call, Reply::text("ran")]).await;
        let config = json!({"agents": {"defaults": {"verboseDefault": "full"}}});
        let gateway = bot(&server, &model, section, config).await;
        server.push(private_message(5, "run it"));
        server.has_made("the answer", |made| made.iter().any(|message| message["text"] == "ran")).await;
        gateway.fates().await.unwrap();
        let said = server.made();
        let has_note = said.iter().any(|message| message["text"].as_str().unwrap().contains("echo out"));
        assert_eq!(has_note, is_shown, "{said:?}");
    }
}

#[tokio::test]
async fn the_trace_tells_that_the_model_said_nothing() {
    for (answer, silence) in [("NO_REPLY", "silent"), (" ", "empty")] {
        let server = TelegramServer::start().await;
        let model = ModelServer::answering(|_| Reply::text(answer)).await;
        let gateway = bot(&server, &model, open(), json!({})).await;
        server.push(private_message(5, "hi"));
        let event = crate::queue_modes::traced(&gateway, 11, |event| event["run"]["state"] == "ok").await;
        assert_eq!(event["run"]["silence"], silence, "{event}");
        let out = crate::command::openclaw(&gateway, &["trace", "last"]).await;
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
