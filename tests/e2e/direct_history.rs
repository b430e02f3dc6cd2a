//! Limits on the part of a direct chat that its model is shown.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::config::merge;
use crate::support::telegram::{bot, last_said, open};

/// Returns the messages of people that a request contains.
fn said(request: &Captured) -> Vec<&'static str> {
    let messages = request.body["messages"].as_array().unwrap().iter();
    let users: Vec<&Value> = messages.filter(|message| message["role"] == "user").collect();
    let shows = |word: &&str| users.iter().any(|user| user.to_string().contains(&format!("] {word}")));
    ["first", "second", "third", "fourth"].into_iter().filter(shows).collect()
}

#[tokio::test]
async fn a_limit_counts_the_turns_before_the_new_message() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| {
        Reply::text(&format!("re {}", last_said(request).split_whitespace().last().unwrap_or_default()))
    })
    .await;
    let mut section = open();
    merge(&mut section, json!({"dmHistoryLimit": 1, "dms": {"6": {"historyLimit": 2}}}));
    let _gateway = bot(&server, &model, section, json!({"session": {"dmScope": "per-channel-peer"}})).await;
    let shown_of_one = ["first", "first second", "second third", "third fourth"];
    let shown_of_two = ["first", "first second", "first second third", "second third fourth"];
    let mut answers = 0;
    for (person, shown) in [(5, shown_of_one), (6, shown_of_two)] {
        for (word, expect) in ["first", "second", "third", "fourth"].into_iter().zip(shown) {
            server.push(private_message(person, word));
            answers += 1;
            server.has_made("the next answer", |made| made.len() == answers).await;
            assert_eq!(said(model.requests().last().unwrap()).join(" "), expect, "{person} {word}");
        }
    }
}
