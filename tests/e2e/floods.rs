//! People who are heard and say more than is handed over: what is beyond a limit waits in the inbox on disk.

use openclaw_testkit::DEADLINE;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::telegram::{CallFault, TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::memory::resident_at_most;
use crate::support::telegram::{bot, last_said, open};

/// Number of messages: three times more than a desk keeps in memory.
const SAID: usize = 350;

/// A flood, of messages of so many characters, and by how many bytes the gateway may grow by it: less than it has.
const FLOOD: usize = 2_000;
const LONG: usize = 30_000;
const GROWTH: usize = 40_000_000;

fn said(from: i64, number: usize, words: &str) -> Value {
    let mut update = private_message(from, words);
    update["message"]["message_id"] = json!(1_000 + number);
    update
}

/// The numbers of what was said, in the order in which the model was told.
fn numbers(model: &ModelServer) -> Vec<usize> {
    let number = |behind: &str| behind.split('.').next()?.parse().ok();
    let told = |request| last_said(request).split("number-").skip(1).filter_map(number).collect::<Vec<_>>();
    model.requests().iter().flat_map(told).collect()
}

/// Makes files fail to come, however often they are asked for while this goes on.
fn silence(server: &TelegramServer) {
    for _ in 0..20 {
        server.fail("getFile", CallFault::Silence);
    }
}

/// The first message's file does not come, so that all behind it waits: through a kill, and with another chat beside it.
#[tokio::test]
async fn what_a_chat_says_too_fast_is_told_once_in_order_after_a_kill() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let queue = json!({
        "messages": {"queue": {"mode": "collect", "debounceMs": 0, "cap": 1_000}},
        "session": {"dmScope": "per-peer"},
    });
    let mut gateway = bot(&server, &model, open(), queue).await;
    silence(&server);
    server.add_file("late", "photos/late.jpg", &b"no picture"[..]);
    let mut first = said(5, 0, "");
    let message = first["message"].as_object_mut().unwrap();
    message.remove("text");
    message.insert("caption".to_owned(), json!("number-0."));
    let photo =
        json!([{"file_id": "late", "file_unique_id": "late", "width": 1, "height": 1, "file_size": 70}]);
    message.insert("photo".to_owned(), photo);
    server.push(first);
    server.nth_call("getFile", 1).await;
    for number in 1..SAID {
        server.push(said(5, number, &format!("number-{number}.")));
    }
    server.all_confirmed().await;
    // Another chat is not held up.
    server.push(said(6, 0, "hello"));
    server.has_made("an answer to the other chat", |made| made.iter().any(|made| made["chat_id"] == 6)).await;
    assert_eq!(numbers(&model), [0; 0]);

    gateway.kill().await.unwrap();
    server.heal();
    gateway.start().await.unwrap();
    let all = async {
        while numbers(&model).len() < SAID {
            model.arrived(model.requests().len() + 1).await;
        }
    };
    if tokio::time::timeout(4 * DEADLINE, all).await.is_err() {
        panic!("{:?}\n{}", numbers(&model), gateway.log());
    }
    assert_eq!(numbers(&model), (0..SAID).collect::<Vec<_>>());
}

/// Only part of a flood is in memory. A stop reaches what waits in the inbox, and what is said
/// after it is answered.
#[tokio::test]
async fn a_flood_is_left_in_the_inbox_and_a_stop_stops_it_there() {
    let server = TelegramServer::start().await;
    let is_last = |request: &Captured| last_said(request).contains("number-7777.");
    let model =
        ModelServer::answering(move |request| Reply::text(if is_last(request) { "last" } else { "ok" }))
            .await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    silence(&server);
    let mut first = said(5, 0, "");
    let photo =
        json!([{"file_id": "late", "file_unique_id": "late", "width": 1, "height": 1, "file_size": 70}]);
    first["message"].as_object_mut().unwrap().insert("photo".to_owned(), photo);
    server.push(first);
    server.nth_call("getFile", 1).await;
    let before = resident_at_most(&gateway);
    for number in 1..FLOOD {
        server.push(said(5, number, &format!("number-{number}. {}", "x".repeat(LONG))));
    }
    server.all_confirmed().await;
    let grown = resident_at_most(&gateway).saturating_sub(before);
    assert!(grown < GROWTH, "{} bytes of messages made the gateway grow by {grown}", FLOOD * LONG);
    server.push(said(5, FLOOD, "/stop"));
    let is_told = |made: &Value| made["text"].as_str().is_some_and(|text| text.contains("aborted"));
    let told = server.sees(|made| made.iter().any(is_told));
    if tokio::time::timeout(4 * DEADLINE, told).await.is_err() {
        panic!("{:?}\n{}", server.made(), gateway.log());
    }
    server.push(said(5, FLOOD + 1, "number-7777."));
    server.has_made("the last answer", |made| made.iter().any(|made| made["text"] == "last")).await;
    // On a slow machine the file may be given up, and the first words behind it be answered, before the stop comes.
    let answered = numbers(&model);
    assert_eq!(answered.last(), Some(&7777), "{answered:?}");
    assert!(answered.len() < FLOOD / 10, "{answered:?}");
}
