//! A platform that is down for a while, and a gateway that is started anew meanwhile.

use openclaw_testkit::DEADLINE;
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{CallFault, Outage, TelegramServer, private_message};
use serde_json::json;

use crate::support::command::{has, ok};
use crate::support::telegram::{bot, open};

/// People whose answers are on their way together.
const PEOPLE: i64 = 6;

/// Backoff from a platform belongs to the process that found it down: the next process asks it
/// again at once. Tries that failed together are no reason to leave it alone for longer.
#[tokio::test]
async fn answers_that_met_an_outage_together_come_as_soon_as_the_next_start() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| Reply::text("hi").after(Step::Wait(held.clone()))).await;
    let config =
        json!({"session": {"dmScope": "per-peer"}, "agents": {"defaults": {"maxConcurrent": PEOPLE}}});
    let mut gateway = bot(&server, &model, open(), config).await;
    for person in 0..PEOPLE {
        server.push(private_message(100 + person, "hello"));
    }
    let asked = model.arrived(PEOPLE.try_into().unwrap());
    tokio::time::timeout(DEADLINE, asked).await.unwrap_or_else(|_| panic!("{}", gateway.log()));
    server.goes_down(Outage::BadGateway).await;
    gate.open();
    gateway.logged("the platform is down: what is to be sent waits").await.unwrap();
    gateway.kill().await.unwrap();
    server.comes_back();
    gateway.start().await.unwrap();
    let all = server.sees(|made| made.len() >= usize::try_from(PEOPLE).unwrap());
    tokio::time::timeout(DEADLINE, all).await.unwrap_or_else(|_| panic!("{}", gateway.log()));
}

/// Chats that fail always say nothing about the others: their owner is answered, whoever of them is asked whether the platform is back.
#[tokio::test]
async fn two_chats_that_always_fail_keep_no_other_from_its_answers() {
    const DEAD: [i64; 2] = [9, 10];
    for fault in [CallFault::Refuse(500, "Internal Server Error"), CallFault::Drop] {
        let server = TelegramServer::start().await;
        let model = ModelServer::answering(|_| Reply::text("hi")).await;
        let config = json!({"session": {"dmScope": "per-peer"}});
        let gateway = bot(&server, &model, open(), config).await;
        for chat in DEAD {
            server.fail_chat(chat, fault.clone());
            server.push(private_message(chat, "hello"));
        }
        gateway.logged("the platform is down: what is to be sent waits").await.unwrap();
        let status = ok(&gateway, &["channels", "status"]).await;
        has(
            &status,
            &["Telegram has taken no message since ", ": 2 messages wait and are sent by themselves."],
        );
        for answers in 1..=3 {
            server.push(private_message(5, "hello"));
            let answered = server.sees(|made| made.len() >= answers);
            let answered = tokio::time::timeout(DEADLINE, answered).await;
            answered.unwrap_or_else(|_| panic!("{fault:?}, answer {answers}\n{}", gateway.log()));
        }
    }
}
