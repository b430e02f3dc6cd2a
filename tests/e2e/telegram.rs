//! Telegram through the real program: a bot on a fake Bot API server, a model that echoes.

use std::time::Duration;

use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{CallFault, TelegramServer, button, group_message, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::run;
use crate::support::config::merge;
use crate::support::telegram::{NOWHERE, bot, last_said, open};

/// Pause between two words of a slow answer.
const PACE: Duration = Duration::from_millis(400);

/// The words of it, without what stands around them.
fn words(request: &Captured) -> String {
    let said = last_said(request);
    let words = said.split("] ").nth(1).unwrap_or_default();
    words.split('\n').next().unwrap_or_default().to_owned()
}

/// Text that an agent was told, without the times in it.
pub(crate) fn undated(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(" id:") {
        let (before, behind) = rest.split_at(at + " id:".len());
        let (Some(space), Some(end)) = (behind.find(' '), behind.find(']')) else { break };
        shown.push_str(before);
        if space < end {
            shown.push_str(&behind[..space]);
            shown.push_str(" …");
        } else {
            shown.push_str(&behind[..end]);
        }
        rest = &behind[end..];
    }
    shown + rest
}

#[tokio::test]
async fn a_private_message_is_answered_where_it_was_said() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model =
        ModelServer::answering(move |_| Reply::text("Hello **Ada**.").after(Step::Wait(held.clone()))).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(5, "hi"));
    // Typing is shown while the model thinks.
    server.nth_call("sendChatAction", 1).await;
    gate.open();
    let sent = server.nth_call("sendMessage", 1).await;
    assert_eq!((&sent.params["chat_id"], &sent.params["text"]), (&json!(5), &json!("Hello <b>Ada</b>.")));
    model.arrived(1).await;
    let request = &model.requests()[0];
    assert_eq!(undated(&last_said(request)), "[Telegram Ada Lovelace (@user5) id:5 …] hi\n[message_id: 11]");
    let mut client = gateway.client().await.unwrap();
    let sessions = client.request("sessions.list", json!({})).await.unwrap();
    let row = &sessions["sessions"][0];
    assert_eq!(row["key"], "agent:main:main");
    assert_eq!(
        row["deliveryContext"],
        json!({"channel": "telegram", "to": "telegram:5", "accountId": "default"})
    );
}

#[tokio::test]
async fn strangers_are_given_a_code_and_whoever_is_let_in_is_answered() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("welcome")).await;
    let gateway = bot(&server, &model, json!({}), json!({})).await;
    server.push(private_message(5, "hi"));
    let told = server.nth_call("sendMessage", 1).await.params["text"].as_str().unwrap().to_owned();
    let code = told.split("Pairing code: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    assert!(told.starts_with("OpenClaw: access not configured.\n\nYour Telegram user id: 5\n"), "{told}");
    server.push(private_message(5, "hello?"));
    server.all_confirmed().await;
    let store = gateway.state_dir().join("credentials/telegram-pairing.json");
    let kept: Value = serde_json::from_slice(&std::fs::read(&store).unwrap()).unwrap();
    assert_eq!((&kept["requests"][0]["code"], &kept["requests"][0]["id"]), (&json!(code), &json!("5")));
    std::fs::write(
        gateway.state_dir().join("credentials/telegram-allowFrom.json"),
        r#"{"version":1,"allowFrom":["5"]}"#,
    )
    .unwrap();
    server.push(private_message(5, "and now?"));
    let sent = server.nth_call("sendMessage", 2).await;
    assert_eq!(sent.params["text"], "welcome");
    assert_eq!(model.requests().len(), 1, "who is not let in is not heard");
}

#[tokio::test]
async fn a_group_is_answered_when_it_speaks_to_the_bot_and_told_what_was_said_before() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("yes")).await;
    let section = json!({"groupPolicy": "open", "groups": {"-100": {"systemPrompt": "Be brief."}}});
    let _gateway = bot(&server, &model, section, json!({})).await;
    server.push(group_message(-100, 5, "lunch at noon"));
    server.push(group_message(-200, 5, "@fake_test_bot who are you?"));
    let mut asked = group_message(-100, 6, "@fake_test_bot agreed?");
    asked["message"]["entities"] = json!([{"type": "mention", "offset": 0, "length": 14}]);
    server.push(asked);
    let sent = server.nth_call("sendMessage", 1).await;
    assert_eq!((&sent.params["chat_id"], &sent.params["text"]), (&json!(-100), &json!("yes")));
    let request = &model.requests()[0];
    assert_eq!(
        undated(&last_said(request)),
        "[Chat messages since your last reply - for context]\n\
         [Telegram Team id:-100 …] Ada Lovelace (5): lunch at noon\n\n\
         [Current message - respond to this]\n\
         [Telegram Team id:-100 …] Ada Lovelace (6): @fake_test_bot agreed?\n[message_id: 13]"
    );
    let system = request.body["messages"][0]["content"].to_string();
    assert!(system.contains("inside the Telegram group") && system.contains("Be brief."), "{system}");
}

#[tokio::test]
async fn what_was_brought_before_a_crash_is_answered_once() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| Reply::text(&format!("re {}", words(request)))).await;
    let rest = json!({"messages": {"queue": {"mode": "followup"}}});
    let mut gateway = bot(&server, &model, open(), rest).await;
    server.fail("sendMessage", CallFault::Slower(1));
    server.push(private_message(5, "one"));
    server.all_confirmed().await;
    gateway.crash_and_restart().await.unwrap();
    let mut second = private_message(5, "two");
    second["message"]["message_id"] = json!(12);
    server.push(second);
    server.nth_answer("sendMessage", 3).await;
    let texts: Vec<Value> =
        server.calls("sendMessage").iter().map(|call| call.params["text"].clone()).collect();
    assert_eq!(texts, ["re one", "re one", "re two"], "the first was refused");
}

#[tokio::test]
async fn a_stop_and_a_command_are_answered_by_the_gateway() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::never()).await;
    let section = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    let _gateway = bot(&server, &model, section, json!({})).await;
    server.push(private_message(5, "go on for ever"));
    model.arrived(1).await;
    server.push(private_message(5, "/models"));
    let listed = server.nth_call("sendMessage", 1).await;
    assert_eq!(listed.params["text"], "Select a provider:", "{listed:?}");
    server.push(private_message(5, "stop"));
    let stopped = server.nth_call("sendMessage", 2).await;
    assert_eq!(stopped.params["text"], "⚙️ Agent was aborted.");
    server.push(button(5, 11, "pressed"));
    model.arrived(2).await;
    assert!(last_said(&model.requests()[1]).contains("pressed"));
}

/// The channel's own token is the account `default` only while no other is named.
#[tokio::test]
async fn a_second_bot_leaves_the_first_at_work() {
    let server = TelegramServer::start().await;
    let env = ("OPENCLAW_TELEGRAM_API_ROOT", server.root());
    let gateway = gateway().env(env.0, env.1).start().await.unwrap();
    let add = ["channels", "add", "--channel", "telegram", "--token"];
    let first = server.token();
    let (exit, out, err) = run(&gateway, &[&add[..], &[&first]].concat()).await;
    assert_eq!(exit, 0, "{out}{err}");
    let second = [&add[..], &["222222:AA-another-token-of-a-test", "--account", "second"]].concat();
    let (exit, out, err) = run(&gateway, &second).await;
    assert!(exit == 0 && out.contains("is called \"default\" from now on"), "{out}{err}");
    let (_, list, err) = run(&gateway, &["channels", "list"]).await;
    for account in ["default", "second"] {
        let line = format!("- Telegram {account}: configured, token=config, enabled");
        assert!(list.contains(&line), "{list}{err}");
    }
}

/// The token is in the environment: it is the account `default` before a second bot is added, and
/// after.
#[tokio::test]
async fn a_second_bot_leaves_one_of_the_environment_at_work() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let gateway = gateway()
        .fake_model(&model.v1())
        .env("OPENCLAW_TELEGRAM_API_ROOT", server.root())
        .env("TELEGRAM_BOT_TOKEN", server.token())
        .start()
        .await
        .unwrap();
    let add = ["channels", "add", "--channel", "telegram", "--account", "second", "--token"];
    let (exit, out, err) = run(&gateway, &[&add[..], &["222222:AA-another-token-of-a-test"]].concat()).await;
    assert!(exit == 0 && out.contains("is called \"default\" from now on"), "{out}{err}");
    let (_, list, err) = run(&gateway, &["channels", "list"]).await;
    for line in
        ["- Telegram default: configured, token=env, enabled", "- Telegram second: configured, token=config"]
    {
        assert!(list.contains(line), "{list}{err}");
    }
    server.push(private_message(5, "hi"));
    assert!(server.nth_call("sendMessage", 1).await.params["text"].to_string().contains("Pairing code"));
}

/// The token is in the gateway's environment alone, so that the command can't know of it.
#[tokio::test]
async fn who_adds_a_second_bot_is_told_how_to_keep_one_that_cannot_be_seen() {
    let gateway = gateway().env("OPENCLAW_TELEGRAM_API_ROOT", NOWHERE).prepare().unwrap();
    let add = ["channels", "add", "--channel", "telegram"];
    let (exit, _, err) = run(&gateway, &[&add[..], &["--use-env"]].concat()).await;
    assert!(exit == 0 && err.contains("TELEGRAM_BOT_TOKEN is not set here"), "{err}");
    let second = ["--account", "second", "--token", "222222:AA-a-token-of-a-test"];
    let (exit, _, err) = run(&gateway, &[&add[..], &second].concat()).await;
    let keep = "openclaw config set channels.telegram.accounts.default '{}'";
    assert!(exit == 0 && err.contains("started with TELEGRAM_BOT_TOKEN") && err.contains(keep), "{err}");
    let keep = ["config", "set", "channels.telegram.accounts.default", "{}"];
    let (exit, _, err) = run(&gateway, &keep).await;
    assert_eq!(exit, 0, "{err}");
    let mut list = gateway.command();
    let list = list.args(["channels", "list"]).env("TELEGRAM_BOT_TOKEN", "333333:AA-a-token-of-a-test");
    let list = String::from_utf8(list.output().await.unwrap().stdout).unwrap();
    assert!(list.contains("- Telegram default: configured, token=env, enabled"), "{list}");
}

#[tokio::test]
async fn a_new_user_adds_a_bot_pairs_sends_and_traces() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("welcome")).await;
    let env = ("OPENCLAW_TELEGRAM_API_ROOT", server.root());
    let gateway = gateway().fake_model(&model.v1()).env(env.0, env.1).start().await.unwrap();
    let (exit, out, err) = run(&gateway, &["channels", "list"]).await;
    assert!(exit == 0 && out.contains("Add one: openclaw channels add"), "{out}{err}");
    let (exit, _, err) =
        run(&gateway, &["channels", "add", "--channel", "telegram", "--token", "nonsense"]).await;
    assert!(exit != 0 && err.contains("not a bot token"), "{err}");
    let (exit, out, err) =
        run(&gateway, &["channels", "add", "--channel", "telegram", "--token", &server.token()]).await;
    assert!(exit == 0 && !out.contains(&server.token()), "{out}{err}");
    server.push(private_message(5, "hi"));
    let told = server.nth_call("sendMessage", 1).await.params["text"].as_str().unwrap().to_owned();
    let code = told.split("Pairing code: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let (_, out, _) = run(&gateway, &["pairing", "list", "telegram"]).await;
    assert!(out.contains(&code) && out.contains("@user5"), "{out}");
    let (exit, out, err) = run(&gateway, &["pairing", "approve", "telegram", &code, "--notify"]).await;
    assert!(exit == 0 && err.is_empty(), "{out}{err}");
    assert_eq!(
        server.nth_call("sendMessage", 2).await.params["text"],
        "✅ OpenClaw access approved. Send a message to start chatting."
    );
    server.push(private_message(5, "hello again"));
    assert_eq!(server.nth_call("sendMessage", 3).await.params["text"], "welcome");
    server.nth_answer("sendMessage", 3).await;
    let (_, out, _) = run(&gateway, &["channels", "status", "--probe"]).await;
    assert!(out.contains("running, connected, mode:polling, token:config, dm:pairing, works"), "{out}");
    let sent =
        ["message", "send", "--channel", "telegram", "--target", "5", "--message", "by hand", "--json"];
    let (exit, out, err) = run(&gateway, &sent).await;
    let sent: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{exit} {error} {out}{err}"));
    assert_eq!((&sent["action"], &sent["payload"]["chatId"]), (&json!("send"), &json!("5")));
    assert_eq!(server.nth_call("sendMessage", 4).await.params["text"], "by hand");
    let (exit, out, err) = run(&gateway, &["trace", "last"]).await;
    assert!(
        exit == 0 && out.contains("became a message for the agent") && out.contains(": sent as "),
        "{out}{err}"
    );
    let fates = gateway.fates().await.unwrap();
    assert_eq!(fates, json!({"handled": 1, "run": 1}), "every event has one fate");
    let (_, out, _) = run(&gateway, &["trace", "last", "--json"]).await;
    let traced: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(traced["tally"], fates);
    let (exit, _, err) = run(&gateway, &["trace", "4711"]).await;
    assert!(exit != 0 && err.contains("Nothing is remembered of 4711"), "{err}");
    let (exit, out, err) = run(&gateway, &["channels", "logout", "--channel", "telegram"]).await;
    assert!(exit == 0 && out.contains("Cleared the token"), "{out}{err}");
    let (_, out, _) = run(&gateway, &["channels", "status"]).await;
    assert!(out.contains("not configured, stopped"), "{out}");
}

#[tokio::test]
async fn a_draft_grows_in_a_private_chat_with_topics() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::paced(["Some ", "words ", "come ", "late."], PACE)).await;
    let _gateway = bot(&server, &model, open(), json!({})).await;
    let mut update = private_message(5, "hi");
    update["message"]["message_thread_id"] = json!(9);
    update["message"]["is_topic_message"] = json!(true);
    server.push(update);
    let draft = server.nth_call("sendMessageDraft", 1).await;
    assert_eq!((&draft.params["message_thread_id"], &draft.params["draft_id"]), (&json!(9), &json!(11)));
    let text = draft.params["text"].as_str().unwrap();
    assert!("Some words come late.".starts_with(text.trim_end()), "{text}");
    let sent = server.nth_call("sendMessage", 1).await;
    assert_eq!(
        (&sent.params["text"], &sent.params["message_thread_id"]),
        (&json!("Some words come late."), &json!(9))
    );
}

#[tokio::test]
async fn a_file_that_comes_is_shown_and_one_that_does_not_is_named() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("MEDIA:./made.txt\nhere")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    let png: &[u8] = &[
        0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0,
        0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, b'I', b'D', b'A', b'T', 0x78, 0x9c,
        0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x56, 0xc7, 0x2f, 0x0d, 0, 0, 0, 0, b'I', b'E',
        b'N', b'D', 0xae, 0x42, 0x60, 0x82,
    ];
    server.add_file("photo-1", "photos/one.png", png);
    std::fs::create_dir_all(gateway.state_dir().join("workspace")).unwrap();
    std::fs::write(gateway.state_dir().join("workspace/made.txt"), "made by the agent").unwrap();
    let mut update = private_message(5, "");
    update["message"].as_object_mut().unwrap().remove("text");
    update["message"]["photo"] =
        json!([{"file_id": "photo-1", "file_unique_id": "u", "width": 1, "height": 1, "file_size": 70}]);
    update["message"]["caption"] = json!("look");
    server.push(update);
    let sent = server.nth_call("sendDocument", 1).await;
    assert_eq!(
        (&sent.params["caption"], &sent.uploads[0].content[..]),
        (&json!("here"), &b"made by the agent"[..])
    );
    let said = last_said(&model.requests()[0]);
    assert!(
        said.starts_with("[media attached: ") && said.contains("(image/png)]") && said.contains("] look"),
        "{said}"
    );
    let mut update = private_message(5, "");
    update["message"].as_object_mut().unwrap().remove("text");
    update["message"]["document"] =
        json!({"file_id": "gone", "file_unique_id": "g", "file_name": "a.pdf", "file_size": 9});
    server.push(update);
    model.arrived(2).await;
    let said = last_said(&model.requests()[1]);
    assert!(said.contains("<media:document> \"a.pdf\" (not downloaded: "), "{said}");
}

/// Fetched one after the other, the third file would be asked for only after a minute.
#[tokio::test]
async fn a_file_that_does_not_come_keeps_no_other_waiting() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let _gateway = bot(&server, &model, open(), json!({})).await;
    for name in ["one", "two", "three"] {
        server.fail("getFile", CallFault::Silence);
        let mut update = private_message(5, "");
        let message = update["message"].as_object_mut().unwrap();
        message.remove("text");
        let file = json!({"file_id": name, "file_unique_id": name, "width": 1, "height": 1, "file_size": 70});
        message.insert("photo".to_owned(), json!([file]));
        message.insert("media_group_id".to_owned(), json!("album"));
        server.push(update);
    }
    let mut asked = Vec::new();
    for n in 1..=3 {
        asked.push(server.nth_call("getFile", n).await.params["file_id"].clone());
    }
    asked.sort_by_key(ToString::to_string);
    assert_eq!(asked, ["one", "three", "two"]);
}

#[tokio::test]
async fn a_run_that_fails_is_told_also_where_blocks_are_sent() {
    let server = TelegramServer::start().await;
    let model =
        ModelServer::answering(|_| Reply::openai_error(400, "invalid_request_error", "no such thing")).await;
    let mut section = open();
    merge(&mut section, json!({"blockStreaming": true, "allowFrom": ["*", 5]}));
    let _gateway = bot(&server, &model, section, json!({})).await;
    server.push(private_message(5, "hi"));
    let sent = server.nth_call("sendMessage", 1).await;
    let text = sent.params["text"].as_str().unwrap();
    assert!(text.contains("no such thing"), "{text}");
}
