//! A crowd that nobody has let in, writing all at once.

use std::fs;

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::memory::resident_at_most;
use crate::support::telegram::bot;

/// People who write, with one message each.
const STRANGERS: i64 = 4_000;
/// Memory that the gateway may need more than before, in bytes: what they say is 17 MB, and was
/// kept in 70.
const GROWTH: usize = 30_000_000;

/// Pairing requests can't be noted: another program has locked the file. The messages of a crowd
/// are decided about all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_strangers_takes_no_memory_and_keeps_nobody_waiting() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("welcome")).await;
    let gateway = bot(&server, &model, json!({"allowFrom": [5]}), json!({})).await;
    server.push(private_message(5, "hi"));
    server.nth_call("sendMessage", 1).await;
    let lock = gateway.state_dir().join("credentials/telegram-pairing.json.lock");
    fs::create_dir_all(&lock).unwrap();
    let before = resident_at_most(&gateway);
    let words = "let me in ".repeat(400);
    for stranger in 0..STRANGERS {
        server.push(private_message(1_000 + stranger, &words));
    }
    server.push(private_message(5, "still there?"));
    server
        .has_made("an answer for the owner", |made| {
            made.iter().filter(|one| one["text"] == "welcome").count() == 2
        })
        .await;
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < GROWTH, "{STRANGERS} strangers made the gateway grow by {grown} bytes");
    let mut client = gateway.client().await.unwrap();
    let counted = client.request("channels.status", json!({})).await.unwrap();
    let inbound = &counted["channelAccounts"]["telegram"][0]["inbound"];
    assert!(inbound["waiting"].as_u64().unwrap() <= 3, "those who are about to be noted: {inbound}");
    sums_up(inbound);

    fs::remove_dir_all(&lock).unwrap();
    gateway.fates().await.unwrap();
    let counted = client.request("channels.status", json!({})).await.unwrap();
    let inbound = &counted["channelAccounts"]["telegram"][0]["inbound"];
    assert_eq!((&inbound["waiting"], &inbound["run"]), (&json!(0), &json!(2)), "{inbound}");
    sums_up(inbound);
    let codes = server.made().iter().filter(|one| one["text"] != "welcome" && one["chat_id"] != 5).count();
    assert!(codes <= 3, "{codes} people were given a code");
}

/// Checks that each of them has one fate.
fn sums_up(inbound: &Value) {
    let count = |name: &str| inbound[name].as_i64().unwrap();
    let fates = ["waiting", "run", "noted", "handled", "dropped"].map(count);
    assert_eq!(fates.iter().sum::<i64>(), STRANGERS + 2, "{inbound}");
    assert_eq!(count("received"), STRANGERS + 2, "{inbound}");
    assert!(inbound["droppedBy"]["dm-policy"].as_i64().unwrap() >= STRANGERS - 3, "{inbound}");
}
