//! Identity of a Telegram update: its bot, whatever the account is called, and its subject, since
//! numbers begin anew.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::command::{has, ok};
use crate::support::telegram::{all_sent, bot, open};
use crate::support::trace::numbered;
use crate::support::wait::until;

/// The number that the first update of a server has.
const FIRST: i64 = 1000;

/// The events that have the first number, the newest first, once `is_so` says that they are as they should be.
async fn events(gateway: &GatewayUnderTest, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let mut client = gateway.client().await.unwrap();
    until("the events are as they should be", async || {
        let traced = client.request("trace", json!({"id": format!("update:{FIRST}")})).await.unwrap();
        let events = traced["events"].as_array().unwrap().clone();
        is_so(&events).then_some(events)
    })
    .await
}

fn are_answered(events: &[Value], count: usize) -> bool {
    events.len() == count && events.iter().all(|event| event["run"]["state"] == "ok")
}

/// The new bot's updates have the numbers of the bot before, and are of the same message ids.
#[tokio::test]
async fn another_bot_in_the_same_account_is_heard() {
    let (first, second) = (TelegramServer::start().await, TelegramServer::start_for(7001).await);
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let gateway = bot(&first, &model, open(), json!({})).await;
    first.push(private_message(5, "to the first"));
    first.nth_answer("sendMessage", 1).await;
    events(&gateway, |events| are_answered(events, 1)).await;
    let section = json!({
        "botToken": second.token(), "apiRoot": second.root(), "dmPolicy": "open", "allowFrom": ["*"],
    });
    ok(&gateway, &["config", "set", "channels.telegram", &section.to_string()]).await;
    second.push(private_message(5, "to the second"));
    second.nth_answer("sendMessage", 1).await;
    second.push(numbered(private_message(5, "/stop"), 12));
    second.nth_answer("sendMessage", 2).await;
    let found = events(&gateway, |events| are_answered(events, 2)).await;
    assert!(
        found.iter().all(|event| event["accountId"] == "default" && event["messageId"] == "11"),
        "{found:?}"
    );
    assert_ne!(found[0]["run"]["runId"], found[1]["run"]["runId"]);
    assert_eq!(gateway.fates().await.unwrap(), json!({"run": 2, "handled": 1}));
    // Messages of the gateway itself are found by the event that they answer.
    let stopped = ok(&gateway, &["trace", &format!("update:{}", FIRST + 1)]).await;
    has(&stopped, &["arrival:7001:message:5:12: sent as "]);
}

/// The request that confirms the last update did not get through before the account was given another name.
#[tokio::test]
async fn a_renamed_account_answers_nothing_once_more() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(5, "hello"));
    server.nth_answer("sendMessage", 1).await;
    let first = events(&gateway, |events| are_answered(events, 1)).await;
    let section = json!({
        "accounts": {"work": {"botToken": server.token()}},
        "apiRoot": server.root(), "dmPolicy": "open", "allowFrom": ["*"],
    });
    ok(&gateway, &["config", "set", "channels.telegram", &section.to_string()]).await;
    until("it works under its new name", async || {
        let status = ok(&gateway, &["channels", "status"]).await;
        status.contains("Telegram work: enabled, configured, running").then_some(())
    })
    .await;
    server.push_again({
        let mut again = private_message(5, "hello");
        again["update_id"] = json!(FIRST);
        again["message"]["date"] = json!(first[0]["saidAt"].as_i64().unwrap() / 1000);
        again
    });
    events(&gateway, |events| events[0]["repeats"] == 1).await;
    server.push(numbered(private_message(5, "are you there?"), 12));
    server.nth_answer("sendMessage", 2).await;
    assert_eq!(events(&gateway, |_| true).await.len(), 1);
    assert_eq!(gateway.fates().await.unwrap(), json!({"run": 2}));
    assert_eq!(model.requests().len(), 2);
}

/// As after a week without updates.
#[tokio::test]
async fn a_number_that_is_given_once_more_is_another_update() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let mut gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(5, "before"));
    server.nth_answer("sendMessage", 1).await;
    server.all_confirmed().await;
    events(&gateway, |events| are_answered(events, 1)).await;
    gateway.terminate().await.unwrap();
    // After six days it counts no more.
    std::fs::remove_file(gateway.state_dir().join("telegram/update-offset-default.json")).unwrap();
    gateway.start().await.unwrap();
    server.push_numbered(FIRST, numbered(private_message(5, "anew"), 12));
    server.nth_answer("sendMessage", 2).await;
    let found = events(&gateway, |events| are_answered(events, 2)).await;
    assert_eq!((&found[0]["messageId"], &found[1]["messageId"]), (&json!("12"), &json!("11")));
    assert_eq!(gateway.fates().await.unwrap(), json!({"run": 2}));
}

/// A channel may bring the same message once more as another event, also behind a restart.
#[tokio::test]
async fn a_message_that_comes_as_another_event_is_answered_once() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let mut gateway = bot(&server, &model, open(), json!({})).await;
    let message = numbered(private_message(5, "hello"), 40);
    server.push(message.clone());
    server.nth_answer("sendMessage", 1).await;
    server.push(message.clone());
    server.push(numbered(private_message(5, "and this"), 41));
    server.nth_answer("sendMessage", 2).await;
    all_sent(&gateway).await;
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    server.push(message);
    // Another chat has numbers of its own.
    server.push(numbered(private_message(6, "hello"), 40));
    server.nth_answer("sendMessage", 3).await;
    server.all_confirmed().await;
    assert_eq!(gateway.fates().await.unwrap(), json!({"run": 3}));
    assert_eq!(model.requests().len(), 3);
}
