//! Strange things from Telegram, and to it: none of them is lost or doubled, none ends the program, and the next ordinary message is answered.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{CallFault, TelegramServer, forum_message, private_message, visible};
use serde_json::{Value, json};

use crate::support::telegram::{all_sent, bot};

async fn open(server: &TelegramServer, model: &ModelServer) -> GatewayUnderTest {
    let section = json!({"dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open", "groups": {"*": {"requireMention": false}}});
    bot(server, model, section, json!({"session": {"dmScope": "per-channel-peer"}})).await
}

fn numbered(from: i64, message: i64, words: &str) -> Value {
    let mut update = private_message(from, words);
    update["message"]["message_id"] = json!(message);
    update
}

fn to(server: &TelegramServer, chat: i64) -> Vec<String> {
    server.made().iter().filter(|made| made["chat_id"] == json!(chat)).map(visible).collect()
}

#[tokio::test]
async fn what_is_brought_again_in_another_order_after_a_day_is_answered_once() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| {
        let said = request.last_user_text();
        let word =
            said.split_whitespace().find(|word| word.starts_with("say-")).unwrap_or("nothing").to_owned();
        Reply::text(&word)
    })
    .await;
    let mut gateway = open(&server, &model).await;
    let updates: Vec<Value> = (0..5)
        .map(|n| {
            let mut update = numbered(100 + n, 40 + n, &format!("say-{n} please"));
            update["update_id"] = json!(server.push(update.clone()));
            update
        })
        .collect();
    server.nth_answer("sendMessage", 5).await;
    server.all_confirmed().await;
    for update in updates.iter().rev() {
        server.push_again(update.clone());
    }
    server.push(numbered(200, 60, "say-after"));
    server.nth_answer("sendMessage", 6).await;
    all_sent(&gateway).await;
    gateway.kill().await.unwrap();
    // A day later nobody knows any more how far it was read. The file is written a moment later: it may not be there yet.
    let _ = std::fs::remove_file(gateway.state_dir().join("telegram/update-offset-default.json"));
    for update in &updates {
        server.push_again(update.clone());
    }
    gateway.start().await.unwrap();
    server.push(numbered(201, 61, "say-last"));
    server.has_made("the last answer", |made| made.iter().any(|made| made["chat_id"] == 201)).await;
    for n in 0..5 {
        assert_eq!(to(&server, 100 + n), [format!("say-{n}")]);
    }
    assert_eq!(gateway.fates().await.unwrap(), json!({"run": 7}), "each event has one fate");
}

#[tokio::test]
async fn updates_of_unknown_kinds_and_shapes_are_passed_over() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let gateway = open(&server, &model).await;
    let strange = [
        json!({}),
        json!({"future_kind": {"chat": {"id": 5}}}),
        json!({"message": 5}),
        json!({"message": {}}),
        json!({"message": {"message_id": "x", "chat": {"id": "y"}, "text": ["z"]}}),
        json!({"message": {"message_id": 1, "chat": {"id": 5, "type": "private"}, "text": "nobody said it"}}),
        json!({"callback_query": {"id": 7}}),
        json!({"message_reaction": {"chat": {}, "new_reaction": {}}}),
        json!({"my_chat_member": {"chat": {"id": -100}, "new_chat_member": {"status": "kicked"}}}),
        json!({"poll": {"id": "1"}}),
    ];
    strange.into_iter().for_each(|update| {
        server.push(update);
    });
    // A kind that grows, a megabyte of it.
    let mut large = numbered(101, 41, "large");
    large["message"]["from_the_future"] = json!({"filler": "x".repeat(1 << 20)});
    server.push(large);
    server
        .has_made("an answer to the large one", |made| made.iter().any(|made| made["chat_id"] == json!(101)))
        .await;
    assert_eq!(to(&server, 101), ["ok"]);
    server.all_confirmed().await;
    let mut client = gateway.client().await.unwrap();
    let status = client.request("channels.status", json!({})).await.unwrap();
    assert_eq!(status["channelAccounts"]["telegram"][0]["connected"], json!(true));
}

/// Half a surrogate, and more than is read of one answer.
#[tokio::test]
async fn updates_that_cannot_be_read_are_passed_over_one_by_one() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let gateway = open(&server, &model).await;
    server.push(numbered(101, 41, "before"));
    server.push_raw(|id| format!(r#"{{"update_id":{id},"message":{{"text":"\ud800"}}}}"#));
    server.push_raw(|id| format!(r#"{{"update_id":{id},"message":{{"text":"{}"}}}}"#, "x".repeat(17 << 20)));
    server.push(numbered(102, 42, "behind"));
    server.nth_answer("sendMessage", 2).await;
    assert_eq!((to(&server, 101), to(&server, 102)), (vec!["ok".to_owned()], vec!["ok".to_owned()]));
    server.all_confirmed().await;
    gateway.logged("is passed over").await.unwrap();
}

#[tokio::test]
async fn strange_words_reach_the_agent_as_they_are() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let _gateway = open(&server, &model).await;
    let marks = |words: &str, entities: Value| {
        let mut update = private_message(0, words);
        update["message"]["entities"] = entities;
        update
    };
    let mentions: Vec<Value> =
        (0..10_000).map(|at| json!({"type": "mention", "offset": at * 3, "length": 2})).collect();
    let rows = [
        ("emoji", "😀".repeat(40_000), private_message(0, &"😀".repeat(40_000))),
        (
            "right to left",
            "\u{202e}drow \u{200f}abc\u{2067}".to_owned(),
            private_message(0, "\u{202e}drow \u{200f}abc\u{2067}"),
        ),
        (
            "offsets beyond, negative, and inside a surrogate pair",
            "a😀b".to_owned(),
            marks(
                "a😀b",
                json!([
                    {"type": "text_link", "offset": 2, "length": 1, "url": "https://example.com"},
                    {"type": "bold", "offset": -5, "length": 3},
                    {"type": "mention", "offset": 1, "length": 900_000_000_000_i64},
                    {"type": "text_link", "offset": 9_000, "length": -1, "url": "https://example.com"},
                    {"type": 5}, "x", null,
                ]),
            ),
        ),
        (
            "mentions",
            "@a ".repeat(10_000).trim().to_owned(),
            marks(&"@a ".repeat(10_000), Value::Array(mentions)),
        ),
    ];
    for (at, (what, words, mut update)) in rows.into_iter().enumerate() {
        let from = 300 + at as i64;
        update["message"]["chat"]["id"] = json!(from);
        update["message"]["from"]["id"] = json!(from);
        server.push(update);
        server.nth_answer("sendMessage", at + 1).await;
        assert_eq!(to(&server, from), ["ok"], "{what}");
        let said = model.requests()[at].last_user_text();
        let tail: String = words.chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
        assert!(said.contains(&tail), "{what}: {}", said.chars().rev().take(200).collect::<String>());
    }
    // A message without words gets a notice, and no model is asked.
    server.push(numbered(400, 70, " \n\t "));
    server.nth_answer("sendMessage", 5).await;
    assert_eq!(
        to(&server, 400),
        ["I didn't receive any text in your message. Please resend or add a caption."]
    );
    assert_eq!(model.requests().len(), 4);
}

#[tokio::test]
async fn five_hundred_fences_within_each_other_are_sent_and_read_well() {
    let server = TelegramServer::start().await;
    let fences: String = (0..500).map(|depth| format!("{}\n", "`".repeat(3 + depth % 40))).collect();
    let told = format!("before\n{fences}behind");
    let model = ModelServer::answering(move |_| Reply::text(&told)).await;
    let _gateway = open(&server, &model).await;
    server.push(numbered(101, 41, "go"));
    server
        .has_made("the end of the answer", |made| {
            made.iter().any(|made| made["text"].as_str().is_some_and(|text| text.contains("behind")))
        })
        .await;
    assert!(to(&server, 101)[0].starts_with("before"));
}

/// Messages are cut by their length as they are sent: words that are much longer as HTML arrive in few
/// messages.
#[tokio::test]
async fn words_that_are_much_longer_as_html_arrive_in_few_messages_and_whole() {
    const LIMIT: usize = 4096;
    let links = |n: usize| format!("[w{n}](https://a.example/{}/{n}) ", "long".repeat(20));
    let texts = [
        (0..200).map(links).collect::<String>(),
        format!("```\n{}```", "if (a < b && c > d) { e & f }\n".repeat(300)),
        (0..1500).map(|n| format!("`<{n}>` ")).collect::<String>(),
    ];
    for text in texts {
        let server = TelegramServer::start().await;
        let told = format!("{text}\n\nthe end");
        let model = ModelServer::answering(move |_| Reply::text(&told)).await;
        let gateway = open(&server, &model).await;
        server.push(numbered(101, 41, "go"));
        server
            .has_made("the end of the answer", |made| {
                made.iter().any(|made| visible(made).trim_end().ends_with("the end"))
            })
            .await;
        all_sent(&gateway).await;
        let calls = server.calls("sendMessage");
        let sent: Vec<&str> = calls.iter().map(|call| call.params["text"].as_str().unwrap()).collect();
        let (_, full) = sent.split_last().unwrap();
        assert!(!full.is_empty(), "{sent:?}");
        for html in full {
            let length = html.encode_utf16().count();
            assert!((LIMIT / 2..=LIMIT).contains(&length), "{length} of {}: {html}", sent.len());
        }
    }
}

#[tokio::test]
async fn links_and_pictures_in_a_table_keep_their_address() {
    let server = TelegramServer::start().await;
    let table = "| a | b |\n|---|---|\n| [docs](https://a.example/x) | ![cat](https://a.example/c.png) |";
    let model = ModelServer::answering(move |_| Reply::text(table)).await;
    let _gateway = open(&server, &model).await;
    server.push(numbered(101, 41, "go"));
    server.nth_answer("sendMessage", 1).await;
    let sent = server.calls("sendMessage")[0].params["text"].as_str().unwrap().to_owned();
    assert!(sent.contains("https://a.example/x") && sent.contains("https://a.example/c.png"), "{sent}");
}

/// Every way out of a topic stays in it, errors and the gateway's own words too.
#[tokio::test]
async fn a_topic_is_never_left() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| match request.last_user_text() {
        said if said.contains("fail") => Reply::openai_error(400, "invalid_request_error", "no such thing"),
        said if said.contains("file") => Reply::text("MEDIA:./made.txt\nhere it is"),
        _ => Reply::text("words"),
    })
    .await;
    let gateway = open(&server, &model).await;
    std::fs::create_dir_all(gateway.state_dir().join("workspace")).unwrap();
    std::fs::write(gateway.state_dir().join("workspace/made.txt"), "made").unwrap();
    server.fail("sendMessage", CallFault::Refuse(400, "Bad Request: can't parse entities: by the test"));
    for (at, words) in ["words", "file", "fail", "   "].into_iter().enumerate() {
        let mut update = forum_message(-100, 42, 5, words);
        update["message"]["message_id"] = json!(50 + at);
        server.push(update);
        server.has_made("an answer", |made| made.len() > at).await;
    }
    for call in server.all_calls() {
        if call.params.get("chat_id").is_some() {
            assert_eq!(call.params["message_thread_id"], json!(42), "{} {}", call.method, call.params);
        }
    }
}
