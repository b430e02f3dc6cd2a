use std::time::Duration;

use openclaw_channels::{
    ActionError, Activity, Content, FetchError, FormattedText, MediaKind, MediaRef, MenuCommand,
    OutgoingPart, Part, Pressers, RateTurn, Receipt, SendAttempt, SendError,
};
use openclaw_testkit::telegram::{CallFault, Outage};
use serde_json::{Map, Value, json};

use super::*;

const FIRST: SendAttempt = SendAttempt { number: 1, late: false, may_repeat: false };

fn part(content: Content) -> Part {
    Part { content, reply_to: None, quote: None, silent: false, buttons: Vec::new(), extra: Map::new() }
}

fn text(plain: &str, formatted: Option<&str>) -> Part {
    part(Content::Text(FormattedText { plain: plain.to_owned(), formatted: formatted.map(str::to_owned) }))
}

impl Scene {
    async fn send_to(&self, target: &str, thread: Option<&str>, part: &Part) -> Result<Receipt, SendError> {
        let address = self.address(target, thread);
        self.bot.send(OutgoingPart { id: "run:0", address: &address, part }, FIRST).await
    }

    fn sent(&self) -> Vec<String> {
        let calls = self.server.calls("sendMessage");
        calls.iter().map(|call| call.params["text"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn a_text_is_sent_once_with_its_markup() {
    let scene = Scene::with("linkPreview: false,").await;
    let receipt = scene.send_to("5", None, &text("a < b", Some("a &lt; b"))).await.unwrap();
    assert_eq!(receipt.message_ids, ["501"]);
    let expect = json!({"chat_id": 5, "text": "a &lt; b", "parse_mode": "HTML", "link_preview_options": {"is_disabled": true}});
    assert_eq!(scene.server.calls("sendMessage")[0].params, expect);
}

#[tokio::test]
async fn markup_that_is_refused_is_left_out() {
    let scene = Scene::new().await;
    scene.send_to("5", None, &text("a < b", Some("a <b> b"))).await.unwrap();
    assert_eq!(scene.sent(), ["a <b> b", "a < b"]);
}

#[tokio::test]
async fn what_is_too_long_is_sent_in_pieces() {
    let scene = Scene::new().await;
    let long = "word ".repeat(1000);
    let receipt = scene.send_to("5", None, &text(&long, None)).await.unwrap();
    assert_eq!(receipt.message_ids.len(), 3);
    assert_eq!(scene.sent()[1..].concat(), long);
}

#[tokio::test]
async fn failures_say_whether_it_may_have_been_sent() {
    let unanswered = |error: &SendError| matches!(error, SendError::Uncertain { .. });
    let down = |error: &SendError| matches!(error, SendError::Down { .. });
    let slower = |error: &SendError| matches!(error, SendError::Retry { after: Some(after), .. } if *after == Duration::from_secs(3));
    let done = |error: &SendError| matches!(error, SendError::Final { .. });
    let not_ready = |error: &SendError| *error == SendError::NotReady;
    type Is = fn(&SendError) -> bool;
    let rows: [(CallFault, Is); 8] = [
        (CallFault::Drop, unanswered),
        (CallFault::CutOff, unanswered),
        (CallFault::Garbage(200, "not json"), unanswered),
        (CallFault::Refuse(500, "Internal Server Error"), down),
        (CallFault::Refuse(502, "Bad Gateway"), unanswered),
        (CallFault::Slower(3), slower),
        (CallFault::Refuse(403, "Forbidden: bot was blocked by the user"), done),
        (CallFault::Refuse(401, "Unauthorized"), not_ready),
    ];
    for (fault, is_so) in rows {
        let scene = Scene::new().await;
        scene.server.fail("sendMessage", fault.clone());
        let error = scene.send_to("5", None, &text("hi", None)).await.unwrap_err();
        assert!(is_so(&error), "{fault:?}: {error:?}");
        assert_eq!(scene.sent().len(), 1, "one request: {fault:?}");
        assert!(!format!("{error:?}").contains("TEST-token"), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_was_not_told() {
    let scene = Scene::new().await;
    scene.server.goes_down(Outage::Refuses).await;
    let error = scene.send_to("5", None, &text("hi", None)).await.unwrap_err();
    assert!(matches!(error, SendError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_chat_that_is_to_wait_waits_and_others_do_not() {
    let scene = Scene::new().await;
    scene.server.fail("sendMessage", CallFault::Slower(60));
    let hi = text("hi", None);
    scene.send_to("5", None, &hi).await.unwrap_err();
    let turn = scene.bot.turn(&scene.address("5", None));
    assert!(matches!(turn, RateTurn::After(wait) if wait > Duration::from_secs(50)), "{turn:?}");
    assert_eq!(scene.bot.turn(&scene.address("6", None)), RateTurn::Now);
    scene.send_to("6", None, &hi).await.unwrap();
    assert_eq!(scene.sent().len(), 2, "nothing was sent to the chat that waits");
    scene.bot.show_activity(&scene.address("5", None), Activity::Typing).await.unwrap();
    assert_eq!(scene.server.calls("sendChatAction").len(), 0);
}

#[tokio::test]
async fn a_group_that_moved_is_followed() {
    let scene = Scene::new().await;
    scene.server.move_group(-5, -1005);
    scene.send_to("-5", None, &text("one", None)).await.unwrap();
    scene.send_to("-5", None, &text("two", None)).await.unwrap();
    let chats: Vec<Value> =
        scene.server.calls("sendMessage").iter().map(|call| call.params["chat_id"].clone()).collect();
    assert_eq!(chats, [json!(-5), json!(-1005), json!(-1005)]);
}

#[tokio::test]
async fn a_message_that_moved_waits_for_its_new_chat() {
    let scene = Scene::new().await;
    scene.server.move_group(-5, -1005);
    let before = std::time::Instant::now();
    // The new chat has had its three messages of these three seconds.
    for _ in 0..3 {
        assert_eq!(scene.bot.turn(&scene.address("-1005", None)), RateTurn::Now);
    }
    scene.send_to("-5", None, &text("one", None)).await.unwrap();
    assert!(before.elapsed() > Duration::from_secs(2), "it was sent out of turn");
}

#[tokio::test]
async fn an_edit_keeps_the_buttons_that_it_does_not_speak_of() {
    let scene = Scene::new().await;
    let button = openclaw_channels::Button { text: "b".to_owned(), data: "d".to_owned() };
    let part = Part { buttons: vec![vec![button]], ..text("pick", None) };
    let sent = scene.send_to("5", None, &part).await.unwrap().message_ids;
    let edit = async |more: Value| {
        let mut params = json!({"to": "5", "messageId": sent[0], "message": "new"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        scene.bot.act("edit", &params).await.unwrap();
        scene.server.calls("editMessageText").last().unwrap().params.get("reply_markup").cloned()
    };
    let kept = json!({"inline_keyboard": [[{"text": "b", "callback_data": "d"}]]});
    assert_eq!(edit(json!({})).await, Some(kept.clone()));
    assert_eq!(edit(json!({"buttons": null})).await, Some(kept));
    let other = json!([[{"text": "c", "callback_data": "e"}]]);
    assert_eq!(edit(json!({"buttons": other})).await, Some(json!({"inline_keyboard": other})));
    assert_eq!(edit(json!({})).await, Some(json!({"inline_keyboard": other})));
    assert_eq!(edit(json!({"buttons": []})).await, Some(json!({"inline_keyboard": []})));
    assert_eq!(edit(json!({})).await, None, "nothing is left to keep");
}

#[tokio::test]
async fn what_is_said_in_a_topic_that_is_gone_is_said_without_it() {
    let scene = Scene::new().await;
    scene.server.delete_thread(42);
    scene.send_to("-100", Some("42"), &text("hi", None)).await.unwrap();
    let calls = scene.server.calls("sendMessage");
    let threads: Vec<Option<&Value>> =
        calls.iter().map(|call| call.params.get("message_thread_id")).collect();
    assert_eq!(threads, [Some(&json!(42)), None]);
    // A closed topic still exists.
    scene.server.fail("sendMessage", CallFault::Refuse(400, "Bad Request: TOPIC_CLOSED"));
    let error = scene.send_to("-100", Some("43"), &text("hi", None)).await.unwrap_err();
    assert!(matches!(&error, SendError::Final { reason } if reason.contains("TOPIC_CLOSED")), "{error:?}");
    scene.send_to("-100", Some("1"), &text("general", None)).await.unwrap();
    let at = scene.address("-100", Some("1"));
    scene.bot.show_activity(&at, Activity::Uploading(MediaKind::Voice)).await.unwrap();
    let call = &scene.server.calls("sendChatAction")[0].params;
    assert_eq!(*call, json!({"chat_id": -100, "action": "record_voice", "message_thread_id": 1}));
}

#[tokio::test]
async fn files_are_uploaded_and_go_as_documents_where_they_are_no_pictures() {
    let scene = Scene::new().await;
    let path = scene.dir.path().join("a.png");
    std::fs::write(&path, b"not really").unwrap();
    let file = part(Content::Media {
        path,
        sent_as: MediaKind::Image,
        mime: "image/png".to_owned(),
        name: "pic \"1\".png".to_owned(),
        caption: Some(FormattedText::plain("look")),
    });
    scene.server.fail("sendPhoto", CallFault::Refuse(400, "Bad Request: PHOTO_INVALID_DIMENSIONS"));
    scene.send_to("5", None, &file).await.unwrap();
    let call = &scene.server.calls("sendDocument")[0];
    assert_eq!((&call.params["caption"], &call.params["chat_id"]), (&json!("look"), &json!(5)));
    let upload = &call.uploads[0];
    assert_eq!(
        (upload.field.as_str(), upload.name.as_str(), upload.mime.as_str()),
        ("document", "pic 1.png", "image/png")
    );
    assert_eq!(&upload.content[..], b"not really");
}

#[tokio::test]
async fn it_is_shown_that_a_file_is_on_its_way() {
    let scene = Scene::new().await;
    let path = scene.dir.path().join("a.bin");
    std::fs::write(&path, b"a file").unwrap();
    let file = |sent_as: MediaKind| {
        let (mime, name) = ("application/octet-stream".to_owned(), "a.bin".to_owned());
        part(Content::Media { path: path.clone(), sent_as, mime, name, caption: None })
    };
    let rows = [
        (MediaKind::Image, "sendPhoto", "upload_photo"),
        (MediaKind::Video, "sendVideo", "upload_video"),
        (MediaKind::Document, "sendDocument", "upload_document"),
        (MediaKind::Audio, "sendAudio", "upload_document"),
        (MediaKind::Voice, "sendVoice", "record_voice"),
    ];
    for (at, (kind, method, action)) in rows.into_iter().enumerate() {
        scene.server.fail(method, CallFault::Silence);
        let file = file(kind);
        // The server has the file, and does not answer.
        let on_its_way = async {
            scene.server.nth_call(method, 1).await;
            scene.server.nth_call("sendChatAction", at + 1).await.params
        };
        let shown = tokio::select! {
            sent = scene.send_to("-100", Some("42"), &file) => panic!("the file is on its way: {sent:?}"),
            shown = on_its_way => shown,
        };
        assert_eq!(shown, json!({"chat_id": -100, "action": action, "message_thread_id": 42}), "{method}");
    }
    // A failed activity delays nothing.
    for fault in [CallFault::Silence, CallFault::Refuse(400, "Bad Request: chat not found")] {
        scene.server.fail("sendChatAction", fault);
        scene.send_to("-100", Some("42"), &file(MediaKind::Document)).await.unwrap();
    }
    // A text shows none. It goes to another chat: the activity of the last file may come after that file.
    scene.send_to("-200", None, &text("no file", None)).await.unwrap();
    let shown = scene.server.calls("sendChatAction");
    assert!(shown.iter().all(|call| call.params["chat_id"] == json!(-100)), "{shown:?}");
}

#[tokio::test]
async fn drafts_are_for_private_chats_with_topics() {
    let scene = Scene::new().await;
    scene.bot.draft(&scene.address("5", Some("9")), 0, "so far").await.unwrap();
    let expect = json!({"chat_id": 5, "draft_id": 1, "text": "so far", "message_thread_id": 9});
    assert_eq!(scene.server.calls("sendMessageDraft")[0].params, expect);
    for (target, thread) in [("5", None), ("-100", Some("9"))] {
        let refused = scene.bot.draft(&scene.address(target, thread), 1, "x").await;
        assert!(matches!(refused, Err(SendError::Final { .. })), "{target}");
    }
}

#[tokio::test]
async fn actions_are_done_where_the_settings_allow() {
    let scene = Scene::new().await;
    let act = |action: &'static str, params: Value| {
        let bot = Arc::clone(&scene.bot);
        async move { bot.act(action, &params).await }
    };
    let react = json!({"to": "tg:5", "messageId": "42", "emoji": "👍"});
    assert_eq!(act("react", react.clone()).await, Ok(json!({"ok": true, "added": "👍"})));
    let call = &scene.server.calls("setMessageReaction")[0].params;
    assert_eq!(
        *call,
        json!({"chat_id": 5, "message_id": 42, "reaction": [{"type": "emoji", "emoji": "👍"}]})
    );
    let removed = json!({"target": "5", "messageId": 42, "emoji": ""});
    assert_eq!(act("react", removed).await, Ok(json!({"ok": true, "removed": true})));
    let deleted = json!({"to": 5, "messageId": 42});
    assert_eq!(act("delete", deleted).await, Ok(json!({"ok": true, "deleted": true})));
    let edited = json!({"to": "5", "messageId": 42, "message": "new", "buttons": []});
    act("edit", edited).await.unwrap();
    let call = &scene.server.calls("editMessageText")[0].params;
    assert_eq!(call["reply_markup"], json!({"inline_keyboard": []}));
    let refusals = [
        ("react", json!({"to": "5", "messageId": 42, "emoji": "🦀"}), "Telegram has no reaction 🦀"),
        ("react", json!({"to": "5", "emoji": "👍"}), "messageId is required"),
        ("react", json!({"messageId": 42, "emoji": "👍"}), "Action requires a target."),
        ("sticker", json!({"to": "5", "fileId": "x"}), "Telegram sticker is disabled"),
        ("pin", json!({"to": "5"}), "messageId is required"),
        ("thread-create", json!({"to": "-100"}), "threadName is required"),
        ("ban", json!({"to": "5"}), "Action ban is not supported."),
    ];
    for (action, params, words) in refusals {
        let error = act(action, params).await.unwrap_err().to_string();
        assert!(error.contains(words), "{action}: {error}");
    }
    let all = "delete edit list-pins pin poll react send thread-create thread-reply unpin";
    assert_eq!(scene.bot.actions().join(" "), all);
    let off = Scene::with(
        "reactionLevel: 'off', actions: {sticker: true, pins: false, poll: false, createForumTopic: false},",
    )
    .await;
    assert_eq!(off.bot.actions().join(" "), "delete edit send sticker sticker-search thread-reply");
    let mute = Scene::with("actions: {sendMessage: false},").await;
    let text =
        "Telegram sendMessage is disabled; set channels.telegram.actions.sendMessage to true to enable it.";
    for action in ["send", "poll", "thread-reply"] {
        assert_eq!(mute.bot.permits(action).unwrap_err().to_string(), text);
    }
    let refused = off.bot.act("react", &react).await.unwrap_err();
    assert!(
        matches!(&refused, ActionError::Invalid(text) if text.contains("reactionLevel=\"off\"")),
        "{refused}"
    );
    off.bot.act("acknowledge", &react).await.unwrap();
}

#[tokio::test]
async fn messages_are_pinned_and_topics_made() {
    let scene = Scene::new().await;
    let act = |action: &'static str, params: Value| {
        let bot = Arc::clone(&scene.bot);
        async move { bot.act(action, &params).await.unwrap() }
    };
    let at = json!({"to": "-100", "messageId": "42"});
    assert_eq!(act("pin", at.clone()).await, json!({"ok": true, "pinned": true, "messageId": "42"}));
    let pins = act("list-pins", json!({"to": "-100"})).await;
    assert_eq!(
        (&pins["pins"][0]["messageId"], &pins["pins"][0]["text"]),
        (&json!("42"), &json!("pinned words"))
    );
    assert_eq!(act("unpin", at).await, json!({"ok": true, "unpinned": true}));
    act("unpin", json!({"to": "-100"})).await;
    let unpinned: Vec<Value> =
        scene.server.calls("unpinChatMessage").into_iter().map(|call| call.params).collect();
    assert_eq!(unpinned, [json!({"chat_id": -100, "message_id": 42}), json!({"chat_id": -100})]);
    let made = act("thread-create", json!({"to": "-100", "threadName": " Plans "})).await;
    assert_eq!(made, json!({"ok": true, "threadId": "77", "threadName": "Plans", "chatId": "-100"}));
}

#[tokio::test]
async fn stickers_are_parts_of_their_own() {
    let scene = Scene::new().await;
    let sticker =
        Part { reply_to: Some("9".to_owned()), ..part(Content::Sticker { id: "file-1".to_owned() }) };
    let receipt = scene.send_to("-100", Some("7"), &sticker).await.unwrap();
    assert_eq!(receipt.message_ids, ["501"]);
    let params = &scene.server.calls("sendSticker")[0].params;
    assert_eq!(
        *params,
        json!({"chat_id": -100, "message_thread_id": 7, "sticker": "file-1",
               "reply_parameters": {"message_id": 9, "allow_sending_without_reply": true}})
    );
}

#[tokio::test]
async fn buttons_are_shown_where_the_settings_allow() {
    let rows = [
        ("", Ok(()), Ok(())),
        ("capabilities: {inlineButtons: 'off'},", Err("are disabled"), Err("are disabled")),
        ("capabilities: {inlineButtons: 'dm'},", Ok(()), Err("limited to DMs")),
        ("capabilities: {inlineButtons: 'group'},", Err("limited to groups"), Ok(())),
        ("capabilities: ['inlineButtons'],", Ok(()), Ok(())),
    ];
    for (section, private, group) in rows {
        let scene = Scene::with(section).await;
        for (target, expect) in [("5", private), ("-100", group)] {
            let found =
                scene.bot.permits_buttons(&scene.address(target, None)).map_err(|error| error.to_string());
            match expect {
                Ok(()) => assert_eq!(found, Ok(()), "{section} {target}"),
                Err(words) => assert!(found.unwrap_err().contains(words), "{section} {target}"),
            }
        }
    }
}

#[tokio::test]
async fn buttons_are_pressed_where_they_are_shown_and_by_who_is_listed_alone() {
    let rows = [
        ("", Some(Pressers::Listed), Some(Pressers::Listed)),
        ("capabilities: {inlineButtons: 'all'},", Some(Pressers::Heard), Some(Pressers::Heard)),
        ("capabilities: {inlineButtons: 'dm'},", Some(Pressers::Heard), None),
        ("capabilities: {inlineButtons: 'group'},", None, Some(Pressers::Heard)),
        ("capabilities: {inlineButtons: 'off'},", None, None),
    ];
    for (section, private, group) in rows {
        let scene = Scene::with(section).await;
        for (target, expect) in [("5", private), ("-100", group)] {
            let found = scene.bot.pressers(&scene.address(target, None));
            assert_eq!(found.ok(), expect, "{section} {target}");
        }
    }
}

#[tokio::test]
async fn files_are_fetched_within_limits() {
    let scene = Scene::new().await;
    scene.server.add_file("f1", "photos/file_1.jpg", vec![0xff, 0xd8, 0xff, 0xe0, 1, 2, 3]);
    scene.server.add_file("f2", "../../etc/passwd", vec![1]);
    scene.server.add_file("big", "documents/big.bin", vec![0_u8; 2000]);
    let to = scene.dir.path().join("media");
    std::fs::create_dir(&to).unwrap();
    let media = |handle: &str, size: Option<u64>| MediaRef {
        kind: MediaKind::Document,
        handle: handle.to_owned(),
        mime: None,
        name: None,
        size,
        description: None,
    };
    let fetched = scene.bot.fetch(&media("f1", None), &to, 1000).await.unwrap();
    assert_eq!((fetched.mime.as_str(), fetched.size), ("image/jpeg", 7));
    assert!(fetched.path.starts_with(&to) && fetched.path.extension().is_some_and(|ending| ending == "jpg"));
    let too_large = FetchError::TooLarge { size: 2000, limit: 1000 };
    assert_eq!(scene.bot.fetch(&media("big", None), &to, 1000).await, Err(too_large));
    let told = FetchError::TooLarge { size: 9_000_000, limit: 5 * 1024 * 1024 };
    assert_eq!(scene.bot.fetch(&media("f1", Some(9_000_000)), &to, u64::MAX).await, Err(told));
    assert_eq!(scene.bot.fetch(&media("none", None), &to, 1000).await, Err(FetchError::Gone));
    assert!(matches!(scene.bot.fetch(&media("f2", None), &to, 1000).await, Err(FetchError::Failed(_))));
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 1, "nothing is left of the others");
}

#[tokio::test]
async fn a_probe_says_who_the_bot_is() {
    let scene = Scene::new().await;
    let probe = scene.bot.probe(Duration::from_secs(10)).await;
    assert_eq!((probe.ok, probe.status), (true, Some(200)));
    assert_eq!(probe.details["bot"]["username"], "fake_test_bot");
    assert_eq!(probe.details["webhook"]["hasCustomCert"], false);
    scene.server.revoke(true);
    let probe = scene.bot.probe(Duration::from_secs(10)).await;
    assert_eq!((probe.ok, probe.status), (false, Some(401)));
}

#[tokio::test]
async fn the_menu_has_the_commands_of_the_owner_too() {
    let scene = Scene::with("customCommands: [{command: 'mine', description: 'M'}],").await;
    let status = MenuCommand {
        name: "status".to_owned(),
        description: "Shows the status".to_owned(),
        is_skill: false,
    };
    scene.bot.offer_commands(&[status]).await.unwrap();
    let commands = &scene.server.calls("setMyCommands")[0].params["commands"];
    assert_eq!(
        *commands,
        json!([{"command": "status", "description": "Shows the status"}, {"command": "mine", "description": "M"}])
    );
    let empty = Scene::new().await;
    empty.bot.offer_commands(&[]).await.unwrap();
    assert_eq!(empty.server.calls("deleteMyCommands").len(), 3);
}

/// Spec `channels.md` §5.4: what does the same a second time is called again, whatever became of the first call.
#[tokio::test]
async fn a_call_that_may_be_repeated_is_until_it_is_done() {
    const SOON: &str = "retry: {minDelayMs: 1, jitter: 0},";
    let react = || ("react", "setMessageReaction", json!({"to": "5", "messageId": 42, "emoji": "👍"}));
    let pin = || ("pin", "pinChatMessage", json!({"to": "5", "messageId": 42}));
    let unpin = || ("unpin", "unpinChatMessage", json!({"to": "5", "messageId": 42}));
    let newest = || ("unpin", "unpinChatMessage", json!({"to": "5"}));
    let delete = || ("delete", "deleteMessage", json!({"to": "5", "messageId": 42}));
    let edit = || ("edit", "editMessageText", json!({"to": "5", "messageId": 42, "message": "new"}));
    let topic = || ("thread-create", "createForumTopic", json!({"to": "-100", "threadName": "t"}));
    let gone = CallFault::Refuse(400, "Bad Request: message to delete not found");
    let unmodified = CallFault::Refuse(400, "Bad Request: message is not modified");
    let denied = CallFault::Refuse(400, "Bad Request: not enough rights");
    let rows = [
        (react(), vec![CallFault::Drop], 2, true),
        (react(), vec![CallFault::DoneAndDropped], 2, true),
        (react(), vec![CallFault::CutOff], 2, true),
        (
            react(),
            vec![CallFault::Refuse(502, "Bad Gateway"), CallFault::Refuse(504, "Gateway Timeout")],
            3,
            true,
        ),
        (react(), vec![CallFault::Garbage(200, "<html>")], 2, true),
        (react(), vec![CallFault::Refuse(500, "Internal Server Error")], 2, true),
        (react(), vec![CallFault::Slower(0)], 2, true),
        (react(), vec![CallFault::Drop, CallFault::Drop, CallFault::Drop], 3, false),
        (react(), vec![denied], 1, false),
        // The caller of an action does not wait so long.
        (react(), vec![CallFault::Slower(600)], 1, false),
        (edit(), vec![CallFault::DoneAndDropped, unmodified], 2, true),
        (delete(), vec![CallFault::Drop, gone.clone()], 2, true),
        (delete(), vec![gone], 1, false),
        (pin(), vec![CallFault::Drop], 2, true),
        (unpin(), vec![CallFault::Drop], 2, true),
        // The next pin would go.
        (newest(), vec![CallFault::Drop], 1, false),
        (newest(), vec![CallFault::Refuse(500, "Internal Server Error")], 2, true),
        (topic(), vec![CallFault::Drop], 1, false),
        (topic(), vec![CallFault::Refuse(502, "Bad Gateway")], 1, false),
        (topic(), vec![CallFault::Slower(0)], 2, true),
    ];
    for ((action, method, params), faults, calls, is_done) in rows {
        let scene = Scene::with(&format!("{SOON} reactionLevel: 'minimal',")).await;
        let said = format!("{action} {faults:?}");
        for fault in faults {
            scene.server.fail(method, fault);
        }
        let done = scene.bot.act(action, &params).await;
        assert_eq!(done.is_ok(), is_done, "{said}: {done:?}");
        assert_eq!(scene.server.calls(method).len(), calls, "{said}");
    }
}

/// Calls that bring no data are repeated too; the address of a file is requested in the same way.
#[tokio::test]
async fn a_call_that_brings_nothing_is_made_again() {
    let scene = Scene::with("timeoutSeconds: 1, retry: {minDelayMs: 1, jitter: 0},").await;
    scene.server.fail("setMessageReaction", CallFault::Silence);
    let react = json!({"to": "5", "messageId": 42, "emoji": "👍"});
    assert_eq!(scene.bot.act("acknowledge", &react).await, Ok(json!({"ok": true, "added": "👍"})));
    assert_eq!(scene.server.calls("setMessageReaction").len(), 2);
    scene.server.add_file("f1", "photos/file_1.jpg", vec![0xff, 0xd8, 0xff, 0xe0, 1, 2, 3]);
    scene.server.fail("getFile", CallFault::Drop);
    let media = MediaRef {
        kind: MediaKind::Document,
        handle: "f1".to_owned(),
        mime: None,
        name: None,
        size: None,
        description: None,
    };
    assert_eq!(scene.bot.fetch(&media, scene.dir.path(), 1000).await.unwrap().size, 7);
}

#[tokio::test]
async fn an_upload_has_the_time_that_is_set_or_that_its_bytes_need() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("film.mp4");
    std::fs::File::create(&path).unwrap().set_len(40_000_000).unwrap();
    let media = |path: &std::path::Path| {
        part(Content::Media {
            path: path.to_owned(),
            sent_as: MediaKind::Video,
            mime: "video/mp4".to_owned(),
            name: "film.mp4".to_owned(),
            caption: None,
        })
    };
    let rows =
        [("", 30, 500, 520), ("timeoutSeconds: 900,", 900, 900, 900), ("timeoutSeconds: 60,", 60, 120, 520)];
    for (settings, text_limit, small, large) in rows {
        let scene = Scene::with(settings).await;
        let limit = |part: &Part| scene.bot.request_limit(part).as_secs();
        assert_eq!(limit(&text("hi", None)), text_limit, "{settings}");
        assert_eq!(limit(&media(&dir.path().join("none.mp4"))), small, "{settings}");
        assert_eq!(limit(&media(&path)), large, "{settings}");
    }
}
