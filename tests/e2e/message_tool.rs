//! Messages sent to chat platforms on purpose: by the `message` tool of an agent, by the command
//! line, by heartbeats and by `agent --deliver`.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::telegram::{CallFault, TelegramServer, forum_message, group_message, private_message};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::command::openclaw;
use crate::support::telegram::bot;

fn open() -> Value {
    json!({"dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open", "groups": {"*": {"requireMention": false}}})
}

/// Last result of the tool.
fn tool_said(request: &Captured) -> String {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.iter().rev().find(|message| message["role"] == "tool").cloned().unwrap_or_default();
    match &last["content"] {
        Value::String(text) => text.clone(),
        parts => parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    }
}

/// Last result of the tool, as JSON.
fn tool_result(request: &Captured) -> Value {
    let said = tool_said(request);
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// A model that calls the tool once, and then says this.
async fn calling(args: Value, then: &'static str) -> ModelServer {
    ModelServer::answering(move |request| match request.ends_with_tool_result() {
        true => Reply::text(then),
        false => Reply::tool("call-1", "message", &args),
    })
    .await
}

fn spec(request: &Captured) -> Value {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    let own = tools.into_iter().find(|tool| tool["function"]["name"] == "message");
    own.unwrap_or_else(|| panic!("the tool is not offered"))["function"].clone()
}

#[tokio::test]
async fn an_answer_by_tool_is_the_answer() {
    let server = TelegramServer::start().await;
    let args = json!({"action": "send", "message": "Here is **your** report."});
    let model = calling(args, "I have sent you the report.").await;
    let _gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(5, "report"));
    let sent = server.nth_call("sendMessage", 1).await;
    assert_eq!(
        (&sent.params["chat_id"], &sent.params["text"]),
        (&json!(5), &json!("Here is <b>your</b> report."))
    );
    model.arrived(2).await;
    let result = tool_result(&model.requests()[1]);
    assert_eq!(
        (&result["ok"], &result["channel"], &result["to"]),
        (&json!(true), &json!("telegram"), &json!("5"))
    );
    assert_eq!(result["result"], json!({"chatId": "5", "messageId": "501"}));
    server.push(private_message(5, "report"));
    server.nth_call("sendMessage", 2).await;
    model.arrived(4).await;
    let texts: Vec<Value> = server.made().iter().map(|made| made["text"].clone()).collect();
    assert_eq!(texts, [json!("Here is <b>your</b> report."), json!("Here is <b>your</b> report.")]);
    let offered = spec(&model.requests()[0]);
    assert_eq!(
        offered["description"],
        "Send, delete, and manage messages via channel plugins. Current channel (telegram) supports: delete, edit, \
         list-pins, pin, poll, react, send, thread-create, thread-reply, unpin."
    );
    let actions = &offered["parameters"]["properties"]["action"]["enum"];
    assert!(actions.as_array().unwrap().contains(&json!("broadcast")), "{actions}");
    let system = model.requests()[0].body["messages"][0]["content"].to_string();
    assert!(system.contains("### message tool") && system.contains("Inline buttons work here"), "{system}");
}

#[tokio::test]
async fn what_is_sent_elsewhere_is_no_answer_and_a_topic_is_kept() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| {
        if request.ends_with_tool_result() {
            return Reply::text("Told them.");
        }
        match request.last_user_text().contains("topic") {
            true => Reply::tool(
                "c",
                "message",
                &json!({"action": "send", "target": "-100", "message": "in the topic", "replyTo": "7"}),
            ),
            false => Reply::tool(
                "c",
                "message",
                &json!({"action": "send", "to": "9", "message": "hello nine", "silent": true}),
            ),
        }
    })
    .await;
    let _gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(5, "tell nine"));
    server.has_made("both", |made| made.len() == 2).await;
    let made = server.made();
    assert_eq!((&made[0]["chat_id"], &made[0]["disable_notification"]), (&json!(9), &json!(true)));
    assert_eq!((&made[1]["chat_id"], &made[1]["text"]), (&json!(5), &json!("Told them.")));
    server.push(forum_message(-100, 42, 5, "topic please"));
    server.has_made("the third", |made| made.len() == 3).await;
    let made = server.made();
    assert_eq!((&made[2]["chat_id"], &made[2]["message_thread_id"]), (&json!(-100), &json!(42)));
    assert_eq!(made[2]["reply_parameters"]["message_id"], 7);
}

#[tokio::test]
async fn files_are_sent_and_a_refused_one_is_an_error() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| {
        if request.ends_with_tool_result() {
            return Reply::text("NO_REPLY");
        }
        let said = request.last_user_text();
        let args = match () {
            () if said.contains("mine") => json!({"action": "send", "media": "./made.txt", "caption": "made"}),
            () if said.contains("buffer") => {
                json!({"action": "send", "buffer": "aGVsbG8=", "filename": "h.txt", "contentType": "text/plain"})
            }
            () => json!({"action": "send", "media": "/etc/passwd", "message": "look"}),
        };
        Reply::tool("c", "message", &args)
    })
    .await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    std::fs::create_dir_all(gateway.state_dir().join("workspace")).unwrap();
    std::fs::write(gateway.state_dir().join("workspace/made.txt"), "made by the agent").unwrap();
    server.push(private_message(5, "mine"));
    let sent = server.nth_call("sendDocument", 1).await;
    assert_eq!(
        (&sent.params["caption"], &sent.uploads[0].content[..]),
        (&json!("made"), &b"made by the agent"[..])
    );
    server.push(private_message(5, "buffer"));
    let sent = server.nth_call("sendDocument", 2).await;
    assert_eq!((sent.uploads[0].name.as_str(), &sent.uploads[0].content[..]), ("h.txt", &b"hello"[..]));
    server.push(private_message(5, "theirs"));
    model.arrived(6).await;
    let result = tool_result(&model.requests()[5]);
    assert_eq!(result["status"], "error");
    let why =
        "Local media path is not under an allowed directory. Copy the file into the workspace and send that";
    assert_eq!(result["error"], format!("file /etc/passwd was not sent: {why}"));
    assert!(
        server.calls("sendMessage").is_empty(),
        "nothing is sent in the place of a file that was refused"
    );
}

#[tokio::test]
async fn other_actions_are_done_and_their_gates_hold() {
    let server = TelegramServer::start().await;
    let script = [
        json!({"action": "react", "emoji": "👍"}),
        json!({"action": "edit", "messageId": "501", "message": "better"}),
        json!({"action": "pin", "messageId": 501}),
        json!({"action": "poll", "pollQuestion": "Lunch?", "pollOption": ["yes", "no"], "pollMulti": true}),
        json!({"action": "send", "message": "choose", "buttons": [[{"text": "Yes", "callback_data": "y"}]]}),
        json!({"action": "sticker", "stickerId": ["f"]}),
        json!({"action": "read"}),
        json!({"action": "send", "channel": "slack", "target": "C1", "message": "hi"}),
        json!({"action": "send", "channel": "pigeon", "target": "C1", "message": "hi"}),
        json!({"action": "send", "target": "no such chat", "message": "hi"}),
        json!({"action": "send", "message": "not now", "dryRun": true}),
        json!({"action": "send", "message": "NO_REPLY"}),
        json!({"action": "broadcast", "targets": ["5", "two words"], "message": "to all"}),
        json!({"action": "delete", "messageId": "501"}),
    ];
    let calls = script.clone();
    let model = ModelServer::answering(move |request| {
        let done =
            request.body["messages"].as_array().unwrap().iter().filter(|each| each["role"] == "tool").count();
        match calls.get(done) {
            Some(args) => Reply::tool(&format!("c{done}"), "message", args),
            None => Reply::text("NO_REPLY"),
        }
    })
    .await;
    let section = json!({"dmPolicy": "open", "allowFrom": ["*"]});
    let _gateway = bot(&server, &model, section, json!({})).await;
    server.push(private_message(5, "do it all"));
    model.arrived(script.len() + 1).await;
    // Arguments that a schema refuses are answered in words.
    let result = |request: &Captured| {
        let said = tool_said(request);
        serde_json::from_str(&said).unwrap_or(Value::String(said))
    };
    let said: Vec<Value> = model.requests().iter().skip(1).map(result).collect();
    assert_eq!(said[0], json!({"ok": true, "added": "👍"}));
    assert_eq!(server.calls("setMessageReaction")[0].params["message_id"], 11, "what was just said");
    assert_eq!(server.calls("editMessageText")[0].params["text"], "better");
    assert_eq!(server.calls("pinChatMessage")[0].params["message_id"], 501);
    let poll = &server.calls("sendPoll")[0].params;
    assert_eq!((&poll["question"], &poll["allows_multiple_answers"]), (&json!("Lunch?"), &json!(true)));
    assert_eq!(said[3]["maxSelections"], 2);
    let buttons = &server.calls("sendMessage")[0].params["reply_markup"]["inline_keyboard"];
    assert_eq!(*buttons, json!([[{"text": "Yes", "callback_data": "y"}]]));
    let errors = [
        (7, "Unsupported channel: slack"),
        (8, "Unknown channel: pigeon"),
        (9, "Unknown target \"no such chat\" for Telegram. Hint: <chatId>"),
    ];
    for (at, text) in errors {
        assert_eq!(said[at]["error"], text, "{}", said[at]);
    }
    for at in [5, 6] {
        let text = said[at].as_str().unwrap();
        assert!(
            text.contains("action: must be equal to one of the allowed values"),
            "what is not there: {text}"
        );
    }
    assert_eq!((&said[10]["dryRun"], &said[10]["to"]), (&json!(true), &json!("5")));
    assert_eq!(said[11]["suppressed"], true);
    let told = &said[12]["results"];
    assert_eq!((&told[0]["ok"], &told[1]["ok"]), (&json!(true), &json!(false)));
    assert_eq!(server.calls("deleteMessage")[0].params["message_id"], 501);
    let texts: Vec<Value> =
        server.calls("sendMessage").iter().map(|call| call.params["text"].clone()).collect();
    assert_eq!(texts, ["choose", "to all"]);
}

#[tokio::test]
async fn a_message_of_a_tool_is_sent_once_though_the_gateway_is_killed_in_the_middle() {
    let server = TelegramServer::start().await;
    let args = json!({"action": "send", "message": "only once"});
    let model = calling(args, "Sent.").await;
    let mut gateway = bot(&server, &model, open(), json!({})).await;
    server.fail("sendMessage", CallFault::Slower(2));
    server.push(private_message(5, "send it"));
    server.nth_call("sendMessage", 1).await;
    server.all_confirmed().await;
    gateway.crash_and_restart().await.unwrap();
    model.arrived(2).await;
    let result = tool_result(&model.requests()[1]);
    assert_eq!(
        result["result"]["chatId"], "5",
        "the call is made again, and finds what it has stored: {result}"
    );
    server.has_made("it", |made| !made.is_empty()).await;
    let mut client = gateway.client().await.unwrap();
    let mut traced = client.request("trace", json!({})).await.unwrap();
    while traced["events"][0]["run"]["state"] != "ok" {
        tokio::task::yield_now().await;
        traced = client.request("trace", json!({})).await.unwrap();
    }
    let texts: Vec<Value> = server.made().iter().map(|made| made["text"].clone()).collect();
    assert_eq!(texts, ["only once"], "{traced}");
}

#[tokio::test]
async fn a_run_stays_where_the_settings_keep_it() {
    let server = TelegramServer::start().await;
    let args = json!({"action": "send", "target": "9", "message": "psst"});
    let model = calling(args, "It was refused.").await;
    let within = json!({"tools": {"message": {"crossContext": {"allowWithinProvider": false}}}});
    let _gateway = bot(&server, &model, open(), within).await;
    server.push(group_message(-100, 5, "tell nine"));
    let sent = server.nth_call("sendMessage", 1).await;
    assert_eq!((&sent.params["chat_id"], &sent.params["text"]), (&json!(-100), &json!("It was refused.")));
    let result = tool_result(&model.requests()[1]);
    assert_eq!(
        result["error"],
        "Cross-context messaging denied: action=send target=\"9\" while bound to \"-100\" (channel=telegram)."
    );
}

/// As in OpenClaw 2026.2.9: it says nothing new there.
#[tokio::test]
async fn a_reaction_is_not_held() {
    let server = TelegramServer::start().await;
    let args = json!({"action": "react", "target": "9", "messageId": "11", "emoji": "👍"});
    let model = calling(args, "Done.").await;
    let within = json!({"tools": {"message": {"crossContext": {"allowWithinProvider": false}}}});
    let _gateway = bot(&server, &model, open(), within).await;
    server.push(group_message(-100, 5, "like what nine said"));
    assert_eq!(server.nth_call("sendMessage", 1).await.params["text"], "Done.");
    let reacted = server.calls("setMessageReaction");
    assert!(
        reacted.iter().any(|call| call.params["chat_id"] == 9),
        "{:?}",
        tool_result(&model.requests()[1])
    );
}

#[tokio::test]
async fn the_command_line_does_what_agents_do() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    let rows: [(&[&str], &str); 11] = [
        (&["send", "--target", "5", "--message", "hi"], "✅ Sent via Telegram. Message ID: 501 (chat 5)\n"),
        (
            &[
                "send",
                "-t",
                "-100:topic:7",
                "-m",
                "b",
                "--buttons",
                "[[{\"text\":\"A\",\"callback_data\":\"a\"}]]",
            ],
            "✅ Sent via Telegram. Message ID: 502 (chat -100)\n",
        ),
        (
            &["poll", "--target", "5", "--poll-question", "Q?", "--poll-option", "a", "--poll-option", "b"],
            "✅ Poll sent via Telegram. Message ID: 503 (chat 5)\n",
        ),
        (&["react", "--target", "5", "--message-id", "501", "--emoji", "👍"], "✅ Reaction added: 👍\n"),
        (
            &["edit", "--target", "5", "--message-id", "501", "-m", "ho"],
            "✅ Edited via Telegram. Message ID: 501\n",
        ),
        (&["pin", "--target", "-100", "--message-id", "4"], "✅ Pinned via Telegram. Message ID: 4\n"),
        (&["pins", "--target", "-100"], "4  pinned words\n"),
        (
            &["thread", "create", "--target", "-100", "--thread-name", "Plans"],
            "✅ Thread \"Plans\" made via Telegram. Thread ID: 77\n",
        ),
        (
            &["thread", "reply", "--target", "-100:topic:77", "--message", "in it"],
            "✅ Sent via Telegram. Message ID: 504 (chat -100)\n",
        ),
        (&["delete", "--target", "5", "--message-id", "501"], "✅ Deleted via Telegram.\n"),
        (&["broadcast", "--targets", "5", "6", "--message", "all"], "✅ Sent to 2 of 2 targets.\n"),
    ];
    for (words, expect) in rows {
        let ended = openclaw(&gateway, &[&["message"], words].concat()).await;
        assert_eq!((ended.code, ended.out.as_str()), (Some(0), expect), "{words:?} {ended:?}");
    }
    let sent = &server.calls("sendMessage")[1].params;
    assert_eq!(sent["reply_markup"]["inline_keyboard"], json!([[{"text": "A", "callback_data": "a"}]]));
    assert_eq!((&sent["chat_id"], &sent["message_thread_id"]), (&json!(-100), &json!(7)));
    let count = server.all_calls().len();
    // As OpenClaw 2026.2.9 prints it.
    let dry = [
        "message",
        "send",
        "--channel",
        "telegram",
        "--target",
        "@chan",
        "--message",
        "hi",
        "--dry-run",
        "--json",
    ];
    let told: Value = serde_json::from_str(&openclaw(&gateway, &dry).await.out).unwrap();
    let payload = json!({"channel": "telegram", "to": "telegram:@chan", "via": "direct", "mediaUrl": null, "dryRun": true});
    let expect = json!({"action": "send", "channel": "telegram", "dryRun": true, "handledBy": "core", "payload": payload});
    assert_eq!(told, expect);
    let dry = [
        "message",
        "broadcast",
        "--channel",
        "telegram",
        "--targets",
        "@a",
        "--targets",
        "x y",
        "-m",
        "x",
        "--dry-run",
        "--json",
    ];
    let told = openclaw(&gateway, &dry).await;
    let told: Value = serde_json::from_str(&told.out).unwrap_or_else(|error| panic!("{error} {told:?}"));
    assert_eq!(
        (&told["dryRun"], &told["payload"]["results"][0]["result"]["dryRun"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(told["payload"]["results"][1]["ok"], false);
    assert_eq!(server.all_calls().len(), count, "nothing was done");
    let refused: [(&[&str], &str); 6] = [
        (&["send", "--channel", "telegram"], "error: required option '-t, --target <dest>' not specified"),
        (&["send", "--channel", "pigeon", "--target", "1", "-m", "x"], "Error: Unknown channel: pigeon"),
        (
            &["send", "--target", "two words", "-m", "x"],
            "Error: Unknown target \"two words\" for Telegram. Hint: <chatId>",
        ),
        (&["send", "--target", "5"], "Give --message, --media, or both"),
        (
            &["sticker", "send", "--target", "5", "--sticker-id", "f"],
            "Telegram sticker is disabled; set channels.telegram.actions.sticker to true to enable it.",
        ),
        (
            &["ban", "--channel", "telegram", "--user-id", "5"],
            "Message action ban not supported for channel telegram.",
        ),
    ];
    for (words, text) in refused {
        openclaw(&gateway, &[&["message"], words].concat()).await.failed(&[text]);
    }
    let target = ["message", "send", "--target", "two words", "-m", "x"];
    openclaw(&gateway, &target).await.failed(&["-1001234567890:topic:42 (a topic of it), @channel"]);
}

#[tokio::test]
async fn an_answer_to_a_program_is_delivered_where_it_is_wanted() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("the answer")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    let ask = |more: &'static [&'static str]| {
        let gateway = &gateway;
        async move {
            openclaw(gateway, &[&["agent", "--agent", "main", "--message", "hello"], more].concat()).await
        }
    };
    let nowhere = ask(&["--deliver"]).await;
    nowhere.failed(&["was not delivered", "Delivering to Telegram requires target <chatId>"]);
    assert_eq!(nowhere.out, "the answer\n");
    server.push(private_message(5, "hi"));
    server.has_made("an answer", |made| made.len() == 1).await;
    let ended = ask(&["--deliver"]).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let ended =
        ask(&["--deliver", "--reply-channel", "telegram", "--reply-to", "telegram:-100:topic:4"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let made = server.made();
    let places: Vec<_> =
        made.iter().map(|made| (made["chat_id"].clone(), made["message_thread_id"].clone())).collect();
    assert_eq!(places, [(json!(5), json!(null)), (json!(5), json!(null)), (json!(-100), json!(4))]);
    ask(&["--deliver", "--reply-to", "two words"])
        .await
        .failed(&["Unknown target \"two words\" for Telegram"]);
    ask(&["--deliver", "--reply-channel", "slack", "--reply-to", "C1"])
        .await
        .failed(&["cannot deliver to slack"]);
    // OpenClaw's own command names WhatsApp where its user names nothing. Refused, it would make the run by itself.
    let unused = ask(&["--deliver", "--channel", "whatsapp"]).await;
    unused.failed(&["was not delivered", "cannot deliver to whatsapp"]);
    assert_eq!(unused.out, "the answer\n");
    let webchat = ask(&["--deliver", "--channel", "webchat", "--json"]).await;
    let told: Value = serde_json::from_str(&webchat.out).unwrap();
    assert_eq!((webchat.code, &told["status"]), (Some(1), &json!("ok")));
    assert_eq!(
        told["deliveryError"],
        "Delivering to WebChat is not supported via `openclaw agent`; use WhatsApp/Telegram or run with --deliver=false."
    );
    server.fail("sendMessage", CallFault::Refuse(403, "Forbidden: bot was blocked by the user"));
    ask(&["--deliver"]).await.failed(&["The reply was not delivered to telegram", "blocked by the user"]);
    assert_eq!(server.made().len(), 3);
    let mut gateway = gateway;
    gateway.terminate().await.unwrap();
    let alone = openclaw(&gateway, &["agent", "--agent", "main", "--message", "hello", "--deliver"]).await;
    alone.failed(&["gateway"]);
    assert_eq!(alone.out, "", "nothing is asked whose answer can't be delivered");
}

#[tokio::test]
async fn a_heartbeat_tells_a_chat_what_needs_attention_and_once() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| {
        let said = request.last_user_text();
        match () {
            () if said.contains("quiet") => Reply::text("HEARTBEAT_OK"),
            () if said.contains("Read HEARTBEAT.md") => Reply::text("The door is open."),
            () => Reply::text("sure"),
        }
    })
    .await;
    let section = json!({"dmPolicy": "open", "allowFrom": ["*"], "heartbeat": {"showOk": true}});
    let beating = json!({"agents": {"defaults": {"heartbeat": {"every": "24h"}}}});
    let gateway = bot(&server, &model, section, beating).await;
    let mut client = gateway.client().await.unwrap();
    let texts = |made: &[Value]| {
        made.iter().map(|made| made["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let rows = [
        // Before anybody wrote there is nowhere to tell it.
        ("the door rang", "skipped", json!("no-target"), json!(null)),
        ("the door rang", "sent", json!("wake"), json!("5")),
        ("the door rang again", "skipped", json!("duplicate"), json!("5")),
        ("all is quiet", "ok-token", json!("wake"), json!("5")),
    ];
    for (at, (text, status, reason, to)) in rows.into_iter().enumerate() {
        if at == 1 {
            server.push(private_message(5, "hi"));
            server.has_made("the answer", |made| texts(made) == ["sure"]).await;
        }
        client.request("wake", json!({"mode": "now", "text": text})).await.unwrap();
        let event = client.event("heartbeat", |_| true).await.unwrap();
        assert_eq!(
            (&event["status"], &event["reason"], &event["to"]),
            (&json!(status), &reason, &to),
            "{event}"
        );
    }
    server.has_made("the acknowledgement", |made| made.len() == 3).await;
    assert_eq!(texts(&server.made()), ["sure", "The door is open.", "HEARTBEAT_OK"]);
    assert!(server.made().iter().all(|made| made["chat_id"] == 5));
}

#[tokio::test]
async fn what_is_sent_by_hand_is_known_to_the_session_that_answers_there() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("sure")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(5, "hi"));
    server.has_made("the answer", |made| made.len() == 1).await;
    let mut client = gateway.client().await.unwrap();
    let send =
        json!({"to": "5", "message": "Dinner is at eight.", "channel": "telegram", "idempotencyKey": "k1"});
    for _ in 0..2 {
        let sent = client.request("send", send.clone()).await.unwrap();
        assert_eq!((&sent["messageId"], &sent["chatId"]), (&json!("502"), &json!("5")));
    }
    let mut other_chat = send.clone();
    other_chat["to"] = json!("6");
    let mut other_words = send.clone();
    other_words["message"] = json!("Dinner is at nine.");
    let poll = json!({"to": "5", "question": "Lunch?", "options": ["a", "b"], "channel": "telegram", "idempotencyKey": "k1"});
    for (method, params) in [("send", other_chat), ("send", other_words), ("poll", poll)] {
        let refused = client.call(method, params).await.unwrap();
        assert_eq!((refused.ok, &refused.error["code"]), (false, &json!("INVALID_REQUEST")), "{method}");
        let text = refused.error["message"].as_str().unwrap();
        assert!(text.contains("idempotencyKey \"k1\" was used for something else"), "{text}");
    }
    assert_eq!(server.made().len(), 2, "nothing else was sent");
    server.push(private_message(5, "when?"));
    model.arrived(2).await;
    let messages = model.requests()[1].body["messages"].to_string();
    assert_eq!(messages.matches("Dinner is at eight.").count(), 1, "{messages}");
}

/// Answers every request with these bytes.
async fn web(content: &'static [u8]) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len());
            let _ = stream.write_all(&[answer.as_bytes(), content].concat()).await;
        }
    });
    port
}

#[tokio::test]
async fn a_file_of_the_net_is_sent_as_a_file_and_one_that_is_not_there_is_told_of() {
    let server = TelegramServer::start().await;
    let port = web(b"from the net").await;
    let model = ModelServer::answering(move |request| {
        let address = match request.last_user_text().contains("inside") {
            true => "http://127.0.0.2:1/secret.txt?token=x".to_owned(),
            false => format!("http://127.0.0.1:{port}/a/report.txt"),
        };
        Reply::text(&format!("here\nMEDIA:{address}"))
    })
    .await;
    let allowed = json!({"messages": {"mediaAllowHosts": [format!("127.0.0.1:{port}")]}});
    let _gateway = bot(&server, &model, open(), allowed).await;
    server.push(private_message(5, "the report"));
    let sent = server.nth_call("sendDocument", 1).await;
    assert_eq!(
        (&sent.params["caption"], &sent.uploads[0].content[..]),
        (&json!("here"), &b"from the net"[..])
    );
    assert_eq!(sent.uploads[0].name, "report.txt");
    server.push(private_message(5, "inside please"));
    let sent = server.nth_call("sendMessage", 1).await;
    let text = sent.params["text"].as_str().unwrap();
    assert!(text.starts_with("here\n(file ") && !text.contains("token"), "{text}");
    assert!(text.ends_with(" was not sent: Blocked: private/internal IP address)"), "{text}");
}
