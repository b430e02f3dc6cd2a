//! Directives as people write them, on Telegram and at a client: settings alone, hints among words (spec `messages.md` §4, `queue.md` §5,
//! `streaming.md` §6, §7).

use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, group_message, private_message};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::support::conversation::{end, history, send, turn};
use crate::support::telegram::{all_sent, bot};

/// A model that thinks.
fn thinker() -> Value {
    json!([{
        "id": "fake-1", "name": "Fake One", "reasoning": true, "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 32000, "maxTokens": 4096,
    }])
}

fn thinking_model(model: &ModelServer) -> Value {
    let provider =
        json!({"baseUrl": model.v1(), "apiKey": "k", "api": "openai-completions", "models": thinker()});
    json!({"models": {"providers": {"fake": provider}}})
}

fn only_five() -> Value {
    json!({"dmPolicy": "allowlist", "allowFrom": [5], "groupPolicy": "open", "groups": {"*": {"requireMention": true}}})
}

/// Thinking effort in each request to the model.
fn efforts(model: &ModelServer) -> Vec<Value> {
    model.requests().iter().map(|request| request.body["reasoning_effort"].clone()).collect()
}

async fn row(gateway: &GatewayUnderTest) -> Value {
    let mut client = gateway.client().await.unwrap();
    client.request("sessions.list", json!({})).await.unwrap()["sessions"][0].clone()
}

fn texts(server: &TelegramServer) -> Vec<String> {
    let sent = server.calls("sendMessage");
    sent.iter().map(|call| call.params["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn settings_are_kept_and_hints_are_for_one_run() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("done")).await;
    let gateway = bot(&server, &model, only_five(), thinking_model(&model)).await;
    let mut sent = 0;
    let rows = [
        ("/think", "Current thinking level: low.\nOptions: off, minimal, low, medium, high."),
        ("/t high", "Thinking level set to high."),
        ("/think: off", "Thinking disabled."),
        ("/think xyz", "Unrecognized thinking level \"xyz\". Valid levels: off, minimal, low, medium, high."),
        ("/verbose off", "⚙️ Verbose logging disabled."),
        ("/reasoning", "Current reasoning level: off.\nOptions: on, off, stream."),
        (
            "/reason stream",
            "⚙️ Reasoning stream is set, but shows nothing here: drafts are shown in private Telegram chats with topics.",
        ),
        ("/reasoning off", "⚙️ Reasoning visibility disabled."),
        (
            "/queue",
            "Current queue settings: mode=collect, debounce=1000ms, cap=20, drop=summarize.\nOptions: modes steer, \
             followup, collect, steer+backlog, interrupt; debounce:&lt;ms|s|m&gt;, cap:&lt;n&gt;, drop:old|new|summarize.",
        ),
        (
            "/queue bogus",
            "Unrecognized queue mode \"bogus\". Valid modes: steer, followup, collect, steer+backlog, interrupt.",
        ),
        // Several, all or nothing.
        (
            "/think high /queue steer cap:3",
            "Thinking level set to high. ⚙️ Queue mode set to steer. ⚙️ Queue cap set to 3.",
        ),
        (
            "/v on /think xyz",
            "Unrecognized thinking level \"xyz\". Valid levels: off, minimal, low, medium, high.",
        ),
    ];
    for (text, answer) in rows {
        server.push(private_message(5, text));
        sent += 1;
        assert_eq!(server.nth_call("sendMessage", sent).await.params["text"], answer, "{text}");
    }
    assert!(model.requests().is_empty(), "no model is called");
    let kept = row(&gateway).await;
    assert_eq!(kept["thinkingLevel"], "high");
    assert_eq!(kept["verboseLevel"], "off", "of a message with a mistake nothing is kept");
    server.push(private_message(5, "/queue"));
    sent += 1;
    let queue = server.nth_call("sendMessage", sent).await.params["text"].to_string();
    assert!(queue.contains("mode=steer, debounce=1000ms, cap=3, drop=summarize."), "{queue}");
    for text in ["hello", "please /think:minimal be brief", "and now", "/think about it"] {
        server.push(private_message(5, text));
        sent += 1;
        server.nth_answer("sendMessage", sent).await;
    }
    assert_eq!(efforts(&model), ["high", "minimal", "high", "high"], "a hint is for its own run");
    let said = |n: usize| model.requests()[n].last_user_text();
    assert!(said(1).contains("please be brief") && !said(1).contains("/think"), "{}", said(1));
    assert!(said(3).contains("/think about it"), "a word that is no level stays: {}", said(3));
    assert_eq!(row(&gateway).await["thinkingLevel"], "high");
}

#[tokio::test]
async fn who_may_not_give_commands_has_no_directives() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("done")).await;
    let section = json!({"dmPolicy": "open", "allowFrom": ["*"]});
    let mut config = thinking_model(&model);
    config["commands"] = json!({"ownerAllowFrom": ["telegram:7"]});
    let gateway = bot(&server, &model, section, config).await;
    server.push(private_message(5, "/think high"));
    server.push(private_message(5, "do /think high it"));
    server.nth_answer("sendMessage", 1).await;
    assert_eq!(texts(&server), ["done"], "nothing is said to a directive of a stranger");
    assert_eq!(efforts(&model), ["low"]);
    assert!(model.requests()[0].last_user_text().contains("do it"));
    assert_eq!(row(&gateway).await["thinkingLevel"], Value::Null);
    server.push(private_message(7, "/think high"));
    assert_eq!(server.nth_call("sendMessage", 2).await.params["text"], "Thinking level set to high.");
}

#[tokio::test]
async fn a_group_hears_directives_of_its_members_and_sees_no_tools() {
    let server = TelegramServer::start().await;
    let call = || Reply::tool("c1", "exec", &json!({"command": "echo out"}));
    let model = ModelServer::queue([call(), Reply::text("ran")]).await;
    let section =
        json!({"groupPolicy": "open", "groupAllowFrom": [5], "groups": {"*": {"requireMention": true}}});
    let _gateway = bot(&server, &model, section, json!({})).await;
    server.push(group_message(-100, 5, "/elevated full"));
    server.push(group_message(-100, 5, "/verbose full"));
    let told = server.nth_call("sendMessage", 1).await.params["text"].clone();
    assert!(told.as_str().unwrap().ends_with("Nothing is shown here."), "{told}");
    let mut asked = group_message(-100, 5, "@fake_test_bot run it");
    asked["message"]["entities"] = json!([{"type": "mention", "offset": 0, "length": 14}]);
    server.push(asked);
    server.nth_answer("sendMessage", 2).await;
    let last = texts(&server).pop().unwrap();
    assert_eq!((texts(&server).len(), last.as_str()), (2, "ran"), "its owner has not switched it on");
}

#[tokio::test]
async fn tools_are_seen_at_work_before_the_answer() {
    let server = TelegramServer::start().await;
    let call = |id: &str| Reply::tool(id, "exec", &json!({"command": "echo out"}));
    let model = ModelServer::queue([call("c1"), Reply::text("ran"), call("c2"), Reply::text("again")]).await;
    let gateway = bot(&server, &model, only_five(), json!({})).await;
    server.push(private_message(5, "/v full"));
    server.nth_answer("sendMessage", 1).await;
    server.push(private_message(5, "run it"));
    server.nth_answer("sendMessage", 4).await;
    let full = [
        "🛠️ Exec: <code>echo out</code>",
        "🛠️ Exec: <code>echo out</code>\n\n<pre><code class=\"language-txt\">out\n</code></pre>",
        "ran",
    ];
    assert_eq!(texts(&server)[1..], full);
    server.push(private_message(5, "once more /verbose on"));
    server.nth_answer("sendMessage", 6).await;
    assert_eq!(texts(&server)[4..], ["🛠️ Exec: <code>echo out</code>", "again"]);
    assert_eq!(row(&gateway).await["verboseLevel"], "full");
}

#[tokio::test]
async fn a_new_conversation_is_told_where_everything_is() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let config = json!({"agents": {"defaults": {"verboseDefault": "on"}}});
    let _gateway = bot(&server, &model, only_five(), config).await;
    server.push(private_message(5, "hello"));
    server.nth_answer("sendMessage", 2).await;
    let texts = texts(&server);
    assert!(texts[0].starts_with("🧭 New session: "), "{texts:?}");
    assert_eq!(texts[1], "hi");
}

#[tokio::test]
async fn thoughts_come_before_the_answer_or_as_a_draft() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let think = |text: &str| {
        Reply::steps([Step::Thinking("Because\nit helps".to_owned()), Step::Text(text.to_owned())])
    };
    let waiting = Reply::steps([
        Step::Thinking("Because".to_owned()),
        Step::Wait(gate.clone()),
        Step::Text("Streamed".to_owned()),
    ]);
    let model = ModelServer::queue([think("Shown"), think("Hidden"), waiting]).await;
    let gateway = bot(&server, &model, only_five(), thinking_model(&model)).await;
    server.push(private_message(5, "/reasoning on"));
    server.nth_answer("sendMessage", 1).await;
    server.push(private_message(5, "why?"));
    server.nth_answer("sendMessage", 3).await;
    server.push(private_message(5, "and /reasoning hide this"));
    server.nth_answer("sendMessage", 4).await;
    let expect = [
        "⚙️ Reasoning visibility enabled.",
        "Reasoning:\n<i>Because</i>\n<i>it helps</i>",
        "Shown",
        "Hidden",
    ];
    assert_eq!(texts(&server), expect);
    assert_eq!(row(&gateway).await["reasoningLevel"], "on");
    let mut update = private_message(5, "once more /reasoning stream");
    update["message"]["message_thread_id"] = json!(9);
    update["message"]["is_topic_message"] = json!(true);
    server.push(update);
    let draft = server.nth_call("sendMessageDraft", 1).await;
    assert_eq!(draft.params["text"], "Reasoning:\n_Because_");
    gate.open();
    server.nth_answer("sendMessage", 5).await;
    assert_eq!(texts(&server)[4], "Streamed");
}

#[tokio::test]
async fn a_client_sets_and_hints_alike() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let gateway =
        crate::gateway().fake_model(&model.v1()).config(thinking_model(&model)).start().await.unwrap();
    let mut client: WsClient = gateway.client().await.unwrap();
    assert_eq!(
        turn(&mut client, "main", "/t medium /v on", "c1").await,
        "Thinking level set to medium. ⚙️ Verbose logging enabled."
    );
    let xhigh = turn(&mut client, "main", "/think x-high", "c2").await;
    assert!(xhigh.starts_with("Thinking level \"xhigh\" is only supported for openai/gpt-5.2, "), "{xhigh}");
    assert_eq!(
        turn(&mut client, "main", "/queue collect debounce:2s", "c3").await,
        "⚙️ Queue mode set to collect. ⚙️ Queue debounce set to 2000ms."
    );
    let elevated = turn(&mut client, "main", "/elevated full", "c4").await;
    assert!(elevated.contains("elevated is not available right now"), "{elevated}");
    assert_eq!(turn(&mut client, "main", "hi /think high there", "r1").await, "hello");
    assert_eq!(turn(&mut client, "main", "hi", "r2").await, "hello");
    assert_eq!(efforts(&model), ["high", "medium"]);
    send(&mut client, "main", "now /think xhigh please", "r3").await;
    let refused = end(&mut client, "r3").await;
    assert_eq!(refused["state"], "error", "{refused}");
    assert!(
        refused["errorMessage"].as_str().unwrap().contains("\"xhigh\" is only supported for"),
        "{refused}"
    );
    let kept = history(&mut client, "main").await;
    assert_eq!(kept.iter().filter(|line| line.contains("Thinking level set to")).count(), 1, "{kept:?}");
}

#[tokio::test]
async fn a_command_among_words_is_answered_at_once_and_once() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = Reply::steps([Step::Wait(gate.clone()), Step::Text("late".to_owned())]);
    let model = ModelServer::queue([held, Reply::text("fine"), Reply::text("done")]).await;
    let mut gateway = bot(&server, &model, only_five(), json!({})).await;
    server.push(private_message(5, "hey /status what is up"));
    let card = server.nth_call("sendMessage", 1).await.params["text"].to_string();
    assert!(card.contains("🦞 OpenClaw"), "{card}");
    model.arrived(1).await;
    let said = model.requests()[0].last_user_text();
    assert!(said.contains("hey what is up"), "{said}");
    all_sent(&gateway).await;
    gateway.crash_and_restart().await.unwrap();
    server.nth_answer("sendMessage", 2).await;
    gate.open();
    let cards = texts(&server).iter().filter(|text| text.contains("🦞 OpenClaw")).count();
    assert_eq!((cards, texts(&server)[1].as_str()), (1, "fine"), "{:?}", texts(&server));
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "side", "and /id here", "r1").await;
    let told = client
        .event("chat", |payload| payload["runId"].as_str().is_some_and(|id| id.starts_with("inject-")))
        .await
        .unwrap();
    assert!(told["message"]["content"][0]["text"].as_str().unwrap().starts_with("🧭 Identity"), "{told}");
    assert_eq!(end(&mut client, "r1").await["message"]["content"][0]["text"], "done");
    let kept = history(&mut client, "side").await;
    assert_eq!(kept.iter().filter(|line| line.contains("🧭 Identity")).count(), 1, "{kept:?}");
    assert!(model.requests()[2].last_user_text().contains("and here"));
}
