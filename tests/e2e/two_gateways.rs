//! Two gateways, each with its own state, that poll with one token: Telegram ends the poll of one with the other's.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::{Value, json};

use crate::support::command::{has, ok};
use crate::support::telegram::{bot, last_said, open};
use crate::support::wait::until;

const REMEDY: &str = "Another program receives with the same bot token";
/// Words that are said while both poll.
const WORDS: i64 = 5;

/// Number of times that readers saw the answer of one of the gateways to a word.
fn answers(server: &TelegramServer, gateway: &str, word: i64) -> usize {
    let text = json!(format!("{gateway} heard word-{word}."));
    server.made().iter().filter(|made| made["text"] == text).count()
}

/// Waits until a word is answered by either gateway. One that has lost a poll pauses for up to half a minute.
async fn answered(server: &TelegramServer, word: i64, gateways: &[&GatewayUnderTest]) {
    let end = format!(" heard word-{word}.");
    let is_said = |made: &Value| made["text"].as_str().is_some_and(|text| text.ends_with(&end));
    let said = server.sees(|made| made.iter().any(is_said));
    if tokio::time::timeout(3 * DEADLINE, said).await.is_err() {
        let logs: Vec<String> = gateways.iter().map(|gateway| gateway.log()).collect();
        panic!("{:?}\n{}", server.made(), logs.join("\n====\n"));
    }
}

async fn model(name: &'static str) -> ModelServer {
    ModelServer::answering(move |request| {
        let said = last_said(request);
        let word = said.split("word-").nth(1).unwrap_or_default().split('.').next().unwrap_or_default();
        Reply::text(&format!("{name} heard word-{word}."))
    })
    .await
}

// An event that one has been given and not confirmed yet is given to the other as well: Telegram alone could prevent that.
#[tokio::test]
async fn two_gateways_with_one_token_answer_everything_none_twice_and_say_what_is_wrong() {
    let server = TelegramServer::start().await;
    let (one, two) = (model("one").await, model("two").await);
    let mut first = bot(&server, &one, open(), json!({})).await;
    server.nth_call("getUpdates", 1).await;
    let second = bot(&server, &two, open(), json!({})).await;
    for gateway in [&first, &second] {
        gateway.logged(REMEDY).await.unwrap();
        has(
            &ok(gateway, &["channels", "status"]).await,
            &["disconnected", "Telegram 409: ", REMEDY, "/revoke"],
        );
        let probed = ok(gateway, &["channels", "status", "--probe"]).await;
        has(&probed, &["Telegram 409: ", REMEDY, "/revoke"]);
    }
    let say = |word: i64| {
        let mut update = private_message(5, &format!("word-{word}."));
        update["message"]["message_id"] = json!(20 + word);
        server.push(update);
    };
    for word in 0..WORDS {
        say(word);
        answered(&server, word, &[&first, &second]).await;
    }
    assert!(first.terminate().await.unwrap().success());
    // The other goes on by itself.
    say(WORDS);
    answered(&server, WORDS, &[&second]).await;
    for gateway in ["one", "two"] {
        let found = (0..=WORDS).map(|word| answers(&server, gateway, word)).collect::<Vec<_>>();
        assert!(found.iter().all(|count| *count <= 1), "{gateway}: {found:?}");
    }
    until("nothing is wrong", async || {
        let status = ok(&second, &["channels", "status"]).await;
        (status.contains("running") && !status.contains(REMEDY)).then_some(())
    })
    .await;
}
