//! Requests that a client sends without waiting for answers act in the order in which they were sent.
//!
//! `OPENCLAW_TEST_PAIRS` sets how many pairs of each kind there are.

use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{end, message, said_history};

/// Unless `OPENCLAW_TEST_PAIRS` says otherwise.
const PAIRS: usize = 25;

fn pairs() -> usize {
    std::env::var("OPENCLAW_TEST_PAIRS").ok().map_or(PAIRS, |text| text.parse().expect("a number"))
}

/// Returns a config without debounce, so that messages that waited start at once.
fn at_once() -> Value {
    json!({"messages": {"queue": {"debounceMs": 0}}})
}

/// Starts a model that answers every message except those with the word `old`.
async fn model() -> ModelServer {
    let reply = |text: &str| if text.contains("old") { Reply::never() } else { Reply::text("well") };
    ModelServer::answering(move |request| reply(&request.last_user_text())).await.forgetful()
}

#[tokio::test]
async fn two_messages_run_in_the_order_in_which_they_were_sent() {
    let model = model().await;
    let gateway = gateway().fake_model(&model.v1()).config(at_once()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (first, second) in [("chat.send", "chat.send"), ("agent", "agent"), ("agent", "chat.send")] {
        for pair in 0..pairs() {
            let session = format!("{first}-{second}-{pair}");
            let runs = [format!("{session}-1"), format!("{session}-2")];
            client.send(first, message(&session, "one", &runs[0])).await.unwrap();
            client.send(second, message(&session, "two", &runs[1])).await.unwrap();
            for run in &runs {
                end(&mut client, run).await;
            }
            let expected = ["user: one", "assistant: well", "user: two", "assistant: well"];
            assert_eq!(said_history(&mut client, &session).await, expected, "{session}");
            client.take_passed();
        }
    }
}

#[tokio::test]
async fn a_stop_reaches_the_message_it_was_sent_behind() {
    let model = model().await;
    let gateway = gateway().fake_model(&model.v1()).config(at_once()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for pair in 0..pairs() {
        let session = format!("stopped-{pair}");
        let run = format!("run-{pair}");
        client.send("chat.send", message(&session, "old", &run)).await.unwrap();
        let stop = match pair % 2 {
            0 => client.send("chat.abort", json!({"sessionKey": session})).await.unwrap(),
            _ => client.send("chat.send", message(&session, "/stop", &format!("stop-{pair}"))).await.unwrap(),
        };
        let stopped = client.answer(&stop).await.unwrap();
        assert_eq!(stopped.payload["runIds"], json!([run]), "{session}: {stopped:?}");
        client.take_passed();
    }
}

#[tokio::test]
async fn a_stop_behind_new_leaves_a_new_conversation() {
    let reply = |text: &str| if text.contains("next") { Reply::text("well") } else { Reply::never() };
    let model = ModelServer::answering(move |request| reply(&request.last_user_text())).await.forgetful();
    let gateway = gateway().fake_model(&model.v1()).config(at_once()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for pair in 0..pairs() {
        let session = format!("renewed-{pair}");
        let name = |what: &str| format!("{what}-{pair}");
        client.send("chat.send", message(&session, "old", &name("old"))).await.unwrap();
        // With nothing behind it there is nothing to keep of it.
        let (begins, kept) = [("/new words", Some("user: words")), ("/new", None)][pair / 2 % 2];
        client.send("chat.send", message(&session, begins, &name("new"))).await.unwrap();
        let stop = match pair % 2 {
            0 => client.send("chat.abort", json!({"sessionKey": session})).await.unwrap(),
            _ => client.send("chat.send", message(&session, "/stop", &name("stop"))).await.unwrap(),
        };
        client.send("chat.send", message(&session, "next", &name("next"))).await.unwrap();
        let stopped = client.answer(&stop).await.unwrap();
        assert!(stopped.payload["runIds"].to_string().contains(&name("new")), "{session}: {stopped:?}");
        end(&mut client, &name("next")).await;
        let mut history = said_history(&mut client, &session).await;
        // The run of `/new` may have begun before it was stopped: then the instruction to greet is
        // there. Behind what was stopped stands an empty answer.
        history.retain(|line| line != "user: /new" && line != "assistant: ");
        let expected: Vec<_> = kept.into_iter().chain(["user: next", "assistant: well"]).collect();
        assert_eq!(history, expected, "{session}");
        client.take_passed();
    }
}

#[tokio::test]
async fn a_reset_or_deletion_comes_between_what_was_sent_before_and_behind_it() {
    let model = model().await;
    let gateway = gateway().fake_model(&model.v1()).config(at_once()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for pair in 0..pairs() {
        let session = format!("changed-{pair}");
        let method = ["sessions.reset", "sessions.delete"][pair % 2];
        let (old, new) = (format!("old-{pair}"), format!("new-{pair}"));
        client.send("chat.send", message(&session, "old", &old)).await.unwrap();
        let change = client.send(method, json!({"key": session})).await.unwrap();
        client.send("chat.send", message(&session, "new", &new)).await.unwrap();
        let changed = client.answer(&change).await.unwrap();
        assert!(changed.ok, "{method}: {changed:?}");
        end(&mut client, &new).await;
        let expected = ["user: new", "assistant: well"];
        assert_eq!(said_history(&mut client, &session).await, expected, "{method}");
        client.take_passed();
    }
}

#[tokio::test]
async fn words_behind_a_sessions_first_message_come_after_it() {
    let model = model().await;
    let gateway = gateway().fake_model(&model.v1()).config(at_once()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for pair in 0..pairs() {
        let session = format!("first-{pair}");
        client.send("chat.send", message(&session, "old", &format!("run-{pair}"))).await.unwrap();
        client.request("chat.inject", json!({"sessionKey": session, "message": "a note"})).await.unwrap();
        assert_eq!(
            said_history(&mut client, &session).await,
            ["user: old", "assistant: a note"],
            "{session}"
        );
        client.request("chat.abort", json!({"sessionKey": session})).await.unwrap();
        client.take_passed();
    }
}

#[tokio::test]
async fn words_that_are_sent_at_once_beside_a_run_keep_their_order() {
    let model = model().await;
    let gateway = gateway().fake_model(&model.v1()).config(at_once()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for pair in 0..pairs() {
        let session = format!("noted-{pair}");
        client.send("chat.send", message(&session, "old", &format!("run-{pair}"))).await.unwrap();
        let notes: Vec<String> = (0..8).map(|n| format!("note {n}")).collect();
        let mut asked = Vec::new();
        for note in &notes {
            let params = json!({"sessionKey": session, "message": note});
            asked.push(client.send("chat.inject", params).await.unwrap());
        }
        for id in &asked {
            assert!(client.answer(id).await.unwrap().ok);
        }
        let mut history = said_history(&mut client, &session).await;
        history.retain(|line| line.contains("note "));
        let expected: Vec<String> = notes.iter().map(|note| format!("assistant: {note}")).collect();
        assert_eq!(history, expected, "{session}");
        client.request("chat.abort", json!({"sessionKey": session})).await.unwrap();
        client.take_passed();
    }
}

#[tokio::test]
async fn a_command_behind_what_begins_anew_is_answered_in_the_new_conversation() {
    let model = model().await;
    let gateway = gateway().fake_model(&model.v1()).config(at_once()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for pair in 0..pairs() {
        let session = format!("commanded-{pair}");
        let (old, new, asked) = (format!("old-{pair}"), format!("new-{pair}"), format!("asked-{pair}"));
        client.send("chat.send", message(&session, "old", &old)).await.unwrap();
        let begun = match pair % 2 {
            0 => client.send("sessions.reset", json!({"key": session})).await.unwrap(),
            _ => client.send("chat.send", message(&session, "/new words", &new)).await.unwrap(),
        };
        client.send("chat.send", message(&session, "/model", &asked)).await.unwrap();
        assert!(client.answer(&begun).await.unwrap().ok, "{session}");
        end(&mut client, &asked).await;
        // It is in the history once it is closed; so is what comes behind it.
        client.send("chat.send", message(&session, "more", &format!("more-{pair}"))).await.unwrap();
        end(&mut client, &format!("more-{pair}")).await;
        let history = said_history(&mut client, &session).await;
        assert!(
            history.iter().any(|line| line.starts_with("assistant: Current: ")),
            "{session}: {history:?}"
        );
        assert!(!history.contains(&"user: old".to_owned()), "{session}: {history:?}");
        client.take_passed();
    }
}
