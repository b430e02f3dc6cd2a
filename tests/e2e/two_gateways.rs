//! Two gateways, each with its own state, that poll with one token: Telegram ends the poll of one with the other's.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::json;

use crate::channel_troubles::{has, ok};
use crate::telegram::{bot, last_said, open};
use crate::telegram_groups::until;

const REMEDY: &str = "Another program receives with the same bot token";
/// Words that are said while both poll.
const WORDS: i64 = 5;

/// How often readers saw the answer to a word.
fn answers(server: &TelegramServer, word: i64) -> usize {
    server.made().iter().filter(|made| made["text"] == json!(format!("heard word-{word}."))).count()
}

/// A gateway that has lost a poll pauses for up to half a minute.
async fn answered(server: &TelegramServer, words: i64, gateways: &[&GatewayUnderTest]) {
    let most = usize::try_from(words).unwrap();
    let all = server.sees(|made| made.len() >= most);
    if tokio::time::timeout(3 * DEADLINE, all).await.is_err() {
        let logs: Vec<String> = gateways.iter().map(|gateway| gateway.log()).collect();
        panic!("{:?}\n{}", server.made(), logs.join("\n====\n"));
    }
}

#[tokio::test]
async fn two_gateways_with_one_token_answer_once_and_say_what_is_wrong() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| {
        let said = last_said(request);
        let word = said.split("word-").nth(1).unwrap_or_default().split('.').next().unwrap_or_default();
        Reply::text(&format!("heard word-{word}."))
    })
    .await;
    let mut first = bot(&server, &model, open(), json!({})).await;
    server.nth_call("getUpdates", 1).await;
    let second = bot(&server, &model, open(), json!({})).await;
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
        answered(&server, word + 1, &[&first, &second]).await;
    }
    assert!(first.terminate().await.unwrap().success());
    // The other goes on by itself.
    say(WORDS);
    answered(&server, WORDS + 1, &[&second]).await;
    let found = (0..=WORDS).map(|word| answers(&server, word)).collect::<Vec<_>>();
    assert!(found.iter().all(|count| *count == 1), "{found:?}");
    assert_eq!(server.made().len(), found.len(), "{:?}", server.made());
    until("nothing is wrong", async || {
        let status = ok(&second, &["channels", "status"]).await;
        (status.contains("running") && !status.contains(REMEDY)).then_some(())
    })
    .await;
}
