//! The send policy of sessions (spec `sessions.md`, `sendPolicy`) and the tools by which they talk.

use openclaw_testkit::model_server::{Gate, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, forum_message};
use serde_json::json;

use crate::support::conversation::turn;
use crate::support::session_tools::Both;
use crate::support::sessions_send::{TOPIC, call, model, step, with_topic};

#[tokio::test]
async fn nothing_is_said_to_a_session_that_may_not_send() {
    let by_rule = json!({"session": {"sendPolicy": {"rules": [{"action": "deny", "match": {"keyPrefix": "agent:main:side"}}]}}});
    for (config, is_patched) in [(by_rule, false), (json!({}), true)] {
        let mut both = Both::start(config).await;
        if is_patched {
            let denied = json!({"key": "agent:main:side", "sendPolicy": "deny"});
            both.client.request("sessions.patch", denied).await.unwrap();
        }
        let told =
            both.both("sessions_send", json!({"sessionKey": "agent:main:side", "message": "ping"})).await;
        let expect = json!({"status": "error", "error": "send blocked by session policy", "sessionKey": "agent:main:side"});
        assert_eq!(told, expect);
        let told =
            both.both("sessions_send", json!({"sessionKey": "agent:main:desk", "message": "ping"})).await;
        assert_eq!(told["status"], "ok", "{told}");
    }
}

/// The policy changes while two sessions talk. (Once the last word is asked for, what holds is what held then, as for any message that was
/// accepted.)
#[tokio::test]
async fn the_last_word_of_a_talk_is_not_said_where_nothing_may_be_sent() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = TelegramServer::start().await;
    let model = model(move |step, _| match step {
        "turn 1" => Some(Reply::text("REPLY_SKIP").after(Step::Wait(held.clone()))),
        "announce" => Some(Reply::text("The talk is over, all is well.")),
        _ => None,
    })
    .await;
    let gateway = with_topic(&model, &server).await;
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", &call("ping", TOPIC, 20), "r").await;
    loop {
        let seen = model.requests();
        if seen.iter().any(|request| step(request) == "turn 1") {
            break;
        }
        model.arrived(seen.len() + 1).await;
    }
    let policy = |word: &str| json!({"key": TOPIC, "sendPolicy": word});
    client.request("sessions.patch", policy("deny")).await.unwrap();
    gate.open();
    gateway.logged("a talk between sessions ends early").await.unwrap();
    let steps: Vec<String> = model.requests().iter().map(step).collect();
    assert!(!steps.contains(&"announce".to_owned()), "{steps:?}");
    // Messages said to the same place later would come after it.
    client.request("sessions.patch", policy("allow")).await.unwrap();
    server.push(forum_message(-100, 42, 5, "and now?"));
    server.has_made("the next answer", |made| made.len() == 2).await;
    assert_eq!(server.made()[1]["text"], "hello");
}
