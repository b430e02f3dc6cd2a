//! Access on Telegram: who is heard, who is told so, and what buttons and names do there.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{
    CallFault, TelegramServer, button, forum_message, group_message, private_message,
};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::run;
use crate::support::telegram::{bot, last_said};
use crate::support::wait::until;

/// A command as it comes from the menu.
fn chosen(mut update: Value) -> Value {
    let length = update["message"]["text"].as_str().unwrap().split(' ').next().unwrap().len();
    update["message"]["entities"] = json!([{"type": "bot_command", "offset": 0, "length": length}]);
    update
}

/// A pressed button in a group.
fn group_button(group: i64, from: i64, data: &str) -> Value {
    let mut update = button(from, 42, data);
    update["callback_query"]["message"]["chat"] = json!({"id": group, "type": "supergroup", "title": "Team"});
    update
}

/// The texts that were sent to a chat.
fn told(server: &TelegramServer, chat: i64) -> Vec<String> {
    let to = |made: &&Value| made["chat_id"] == chat;
    server.made().iter().filter(to).map(|made| made["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn buttons_are_shown_and_pressed_where_the_settings_say_and_by_who_is_listed() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("read")).await;
    let section = json!({"allowFrom": [5], "groupPolicy": "open", "groups": {"*": {}}});
    let gateway = bot(&server, &model, section, json!({})).await;
    // By default: everywhere, by who is listed.
    server.push(private_message(5, "/models"));
    let shown = server.nth_call("sendMessage", 1).await.params;
    assert_eq!(shown["text"], "Select a provider:");
    assert!(shown["reply_markup"]["inline_keyboard"].is_array(), "{shown}");
    // Other people may speak in the group, but press nothing.
    server.push(group_button(-100, 9, "one"));
    server.nth_call("answerCallbackQuery", 1).await;
    server.push(group_button(-100, 5, "two"));
    model.arrived(1).await;
    server.nth_call("answerCallbackQuery", 2).await;
    assert!(last_said(&model.requests()[0]).contains("two"), "{}", last_said(&model.requests()[0]));
    server.nth_call("sendMessage", 2).await;
    assert_eq!(model.requests().len(), 1, "the other press was not heard");
    let traced = until("a refused press in the trace", async || {
        let (_, out, _) = run(&gateway, &["trace", "42", "--json"]).await;
        out.contains("inline-buttons").then_some(out)
    })
    .await;
    assert!(traced.contains("inline-buttons"), "{traced}");
}

#[tokio::test]
async fn without_buttons_lists_are_words_and_old_buttons_do_nothing() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let section = json!({"allowFrom": [5], "capabilities": {"inlineButtons": "group"}});
    let _gateway = bot(&server, &model, section, json!({})).await;
    server.push(private_message(5, "/models"));
    let shown = server.nth_call("sendMessage", 1).await.params;
    assert!(shown["text"].as_str().unwrap().starts_with("Providers:"), "{shown}");
    assert!(shown["reply_markup"].is_null(), "{shown}");
    server.push(private_message(5, "/think"));
    let shown = server.nth_call("sendMessage", 2).await.params;
    assert!(shown["reply_markup"].is_null(), "{shown}");
    // An old button does nothing, and stops turning.
    server.push(button(5, 42, "mdl_prov"));
    server.nth_call("answerCallbackQuery", 1).await;
    server.push(private_message(5, "hello"));
    server.nth_call("sendMessage", 3).await;
    assert_eq!(server.calls("editMessageText").len(), 0);
}

#[tokio::test]
async fn the_owner_is_told_once_who_asks_to_be_let_in() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("welcome")).await;
    let gateway = bot(&server, &model, json!({"allowFrom": [5, 6]}), json!({})).await;
    server.push(private_message(7, "hi"));
    server.push(private_message(7, "hello?"));
    server.has_made("both are told", |made| made.len() == 2).await;
    let code = told(&server, 7)[0].split("Pairing code: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let expect = format!(
        "🔑 Ada Lovelace (@user7, id 7) asks to be let in on Telegram.\n\nTo let them in:\nopenclaw pairing approve telegram \
         {code}\n\nOtherwise nothing has to be done: the code is good for an hour."
    );
    assert_eq!(told(&server, 5), [expect]);
    let kept = gateway.state_dir().join("credentials/telegram-pairing.json");
    let kept: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
    assert_eq!(
        kept["requests"][0]["meta"],
        json!({"firstName": "Ada", "lastName": "Lovelace", "username": "user7"})
    );
    let (_, list, _) = run(&gateway, &["pairing", "list", "telegram"]).await;
    assert!(list.contains("@user7"), "{list}");
    // As many as may wait are told of, and no more.
    for from in 8..12 {
        server.push(private_message(from, "hi"));
    }
    server.push(private_message(5, "still there?"));
    server.has_made("an answer for the owner", |made| made.iter().any(|one| one["text"] == "welcome")).await;
    server
        .has_made("the last of them", |made| {
            made.iter().filter(|one| one["text"].as_str().unwrap().starts_with("🔑")).count() == 3
        })
        .await;
    assert_eq!(told(&server, 6), Vec::<String>::new(), "one owner is told");
}

#[tokio::test]
async fn names_in_lists_are_looked_up_once_and_their_ids_count() {
    let server = TelegramServer::start().await;
    server.add_chat(json!({"id": 7, "type": "private", "username": "ada_l", "first_name": "Ada"}));
    let model = ModelServer::answering(|_| Reply::text("welcome")).await;
    server.fail("getChat", CallFault::Refuse(500, "Internal Server Error"));
    let section = json!({"dmPolicy": "allowlist", "allowFrom": ["@Ada_L", "nobody_here"]});
    let gateway = bot(&server, &model, section, json!({})).await;
    let (_, status) = until("the names are known", async || {
        let (_, out, _) = run(&gateway, &["channels", "status"]).await;
        out.contains("@nobody_here").then_some(((), out))
    })
    .await;
    assert!(status.contains("matches nobody"), "{status}");
    // The person behind the name is heard, whatever they are called now; one who merely uses the
    // name is not.
    let mut renamed = private_message(8, "let me in");
    renamed["message"]["from"]["username"] = json!("ada_l");
    server.push(renamed);
    server.push(private_message(7, "hi"));
    let sent = server.nth_call("sendMessage", 1).await.params;
    assert_eq!((&sent["chat_id"], &sent["text"]), (&json!(7), &json!("welcome")));
    assert_eq!(model.requests().len(), 1);
    let (_, doctor, _) = run(&gateway, &["doctor"]).await;
    assert!(doctor.contains("Nobody is known by @nobody_here"), "{doctor}");
}

#[tokio::test]
async fn a_file_that_is_too_large_is_told_to_who_sent_it_once() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("seen")).await;
    let section = json!({"allowFrom": [5], "dmPolicy": "allowlist", "mediaMaxMb": 1});
    let gateway = bot(&server, &model, section, json!({})).await;
    let large = |from: i64, message: i64, album: Option<&str>| {
        let mut update = private_message(from, "");
        let message_of = update["message"].as_object_mut().unwrap();
        message_of.remove("text");
        message_of.insert("message_id".to_owned(), json!(message));
        let file =
            json!({"file_id": "f", "file_unique_id": "f", "file_name": "a.zip", "file_size": 3_000_000});
        message_of.insert("document".to_owned(), file);
        if let Some(album) = album {
            message_of.insert("media_group_id".to_owned(), json!(album));
        }
        update
    };
    server.push(large(9, 20, None));
    server.push(large(5, 21, Some("a")));
    server.push(large(5, 22, Some("a")));
    server.has_made("the word and the answer", |made| made.iter().any(|one| one["text"] == "seen")).await;
    let warned: Vec<Value> = server.made().iter().filter(|one| one["text"] != "seen").cloned().collect();
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert_eq!(
        (&warned[0]["chat_id"], &warned[0]["text"], &warned[0]["reply_parameters"]["message_id"]),
        (&json!(5), &json!("⚠️ File too large. Maximum size is 1MB."), &json!(21))
    );
    assert!(
        last_said(&model.requests()[0]).contains("not downloaded"),
        "{}",
        last_said(&model.requests()[0])
    );
    let traced = crate::support::trace::traced(&gateway, 21, |event| event["run"]["state"] == "ok").await;
    let answer = &traced["answers"][0];
    assert!(answer["id"].as_str().is_some_and(|id| id.starts_with("too-large:")), "{traced:#}");
    assert_eq!(answer["messageIds"], json!(["501"]));
    let status = crate::support::command::json_of(&gateway, &["status", "--json"]).await;
    let counts = &status["inbound"]["telegram"]["default"];
    assert_eq!((&counts["received"], &counts["dropped"]), (&json!(3), &json!(1)), "{status:#}");
    assert_eq!(counts["droppedBy"], json!({"dm-policy": 1}));
}

#[tokio::test]
async fn a_command_of_the_menu_that_may_not_be_given_is_refused_in_words() {
    const REFUSED: &str = "You are not authorized to use this command.";
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("yes")).await;
    let section = json!({
        "dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open", "groupAllowFrom": [5], "groups": {"-100": {}},
    });
    let owner = json!({"commands": {"ownerAllowFrom": ["telegram:5"]}});
    let gateway = bot(&server, &model, section, owner).await;
    server.push(chosen(private_message(9, "/status")));
    assert_eq!(server.nth_call("sendMessage", 1).await.params["text"], REFUSED);
    let is_told = |event: &Value| event["answers"][0]["state"] == "sent";
    let traced = crate::support::trace::traced(&gateway, 11, is_told).await;
    assert!(traced["answers"][0]["id"].as_str().unwrap().starts_with("refused:"), "{traced:#}");
    server.push(chosen(group_message(-100, 9, "/think high")));
    let sent = server.nth_call("sendMessage", 2).await.params;
    assert_eq!((&sent["chat_id"], &sent["text"]), (&json!(-100), &json!(REFUSED)));
    // Commands that no menu offers, and those of a group that is not heard, stay unanswered.
    server.push(chosen(private_message(9, "/compact")));
    server.push(chosen(group_message(-200, 9, "/status")));
    server.push(private_message(5, "hello"));
    assert_eq!(server.nth_call("sendMessage", 3).await.params["text"], "yes");
    assert_eq!(told(&server, -200), Vec::<String>::new());
    assert_eq!(told(&server, 9), [REFUSED]);
}

/// Spec `channels.md` §7.5.
#[tokio::test]
async fn whom_a_list_names_hears_why_a_command_of_the_menu_is_not_heard() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("yes")).await;
    let off = json!({"enabled": false});
    let section = json!({
        "allowFrom": [5], "groups": {"-100": off, "-300": {"topics": {"7": off}}, "-400": {"groupPolicy": "disabled"}},
    });
    let gateway = bot(&server, &model, section, json!({})).await;
    let rows = [
        (group_message(-100, 5, "/status"), -100, "This group is disabled."),
        (forum_message(-300, 7, 5, "/status"), -300, "This topic is disabled."),
        (group_message(-400, 5, "/status"), -400, "Telegram group commands are disabled."),
        (group_message(-200, 5, "/status"), -200, "This group is not allowed."),
    ];
    for (at, (update, chat, expect)) in rows.into_iter().enumerate() {
        // Strangers hear nothing, and nobody hears something for words.
        let mut of_stranger = chosen(update.clone());
        of_stranger["message"]["from"]["id"] = json!(9);
        server.push(of_stranger);
        server.push(update.clone());
        server.push(chosen(update));
        let sent = server.nth_call("sendMessage", at + 1).await.params;
        assert_eq!((&sent["chat_id"], &sent["text"]), (&json!(chat), &json!(expect)));
        assert_eq!(sent["message_thread_id"], if chat == -300 { json!(7) } else { Value::Null });
    }
    server.push(private_message(5, "hello"));
    assert_eq!(server.nth_call("sendMessage", 5).await.params["text"], "yes");
    let tally = gateway.fates().await.unwrap();
    assert_eq!((&tally["handled"], &tally["dropped"]), (&json!(4), &json!(8)), "{tally:?}");
}

#[tokio::test]
async fn the_doctor_warns_of_settings_that_do_other_than_they_seem_to() {
    let telegram = json!({"botToken": "1:t", "dmPolicy": "allowlist", "groupAllowFrom": ["Ada L"]});
    let gateway = gateway().config(json!({"channels": {"telegram": telegram}})).prepare().unwrap();
    let output = gateway.command().arg("doctor").output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for words in [
        "channels.telegram.allowFrom: dmPolicy=\"allowlist\" and an allowFrom that names nobody",
        "channels.telegram.groupAllowFrom.0: \"Ada L\" can match nobody on Telegram",
    ] {
        assert!(said.contains(words), "{words}\n{said}");
    }
}

/// An old key, which is read as the one that took its place.
#[tokio::test]
async fn what_is_said_of_mentions_for_a_whole_account_is_said_of_its_groups() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("read")).await;
    let _gateway =
        bot(&server, &model, json!({"groupPolicy": "open", "requireMention": false}), json!({})).await;
    server.push(group_message(-100, 9, "nobody is spoken to"));
    assert_eq!(server.nth_call("sendMessage", 1).await.params["text"], "read");
}

/// Words that are passed on are somebody else's.
#[tokio::test]
async fn what_the_owner_forwards_is_no_command() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| Reply::text(&request.last_user_text())).await;
    let mine = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    let gateway = bot(&server, &model, mine, json!({})).await;
    for (at, text) in ["/whoami", "/new", "stop", "look at /status please"].into_iter().enumerate() {
        let mut forwarded = private_message(5, text);
        let eve = json!({"type": "user", "date": 1, "sender_user": {"id": 9, "is_bot": false, "first_name": "Eve"}});
        forwarded["message"]["forward_origin"] = eve;
        server.push(forwarded);
        let said = server.nth_call("sendMessage", at + 1).await.params["text"].as_str().unwrap().to_owned();
        assert!(said.contains("Forwarded from Eve") && said.contains(text), "{said}");
        gateway.fates().await.unwrap();
    }
    server.push(private_message(5, "/whoami"));
    let said = server.nth_call("sendMessage", 5).await.params["text"].as_str().unwrap().to_owned();
    assert!(!said.contains("Forwarded"), "{said}");
}
