//! A machine whose clock is wrong: what is late is judged by the platform's clock, and the owner is told.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::command::{has, ok};
use crate::support::telegram::{bot, open};
use crate::support::wait::until;

const MINUTE: i64 = 60;
const LATE: &str = "while I was offline, and was not carried out";

/// A command that was given so many seconds ago, by the platform's clock.
fn command(server: &TelegramServer, seconds_ago: i64, id: i64) -> Value {
    let mut update = private_message(5, "/whoami");
    update["message"]["date"] = json!(server.now() - seconds_ago);
    update["message"]["message_id"] = json!(id);
    update
}

/// Says it, and gives what is answered.
async fn answer(server: &TelegramServer, update: Value) -> String {
    let before = server.calls("sendMessage").len();
    server.push(update);
    server.nth_call("sendMessage", before + 1).await.params["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_clock_that_is_ahead_makes_no_command_late_and_the_owner_is_told() {
    const WRONG: &str = "This machine's clock is 12 minutes ahead of Telegram's";
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    server.set_clock_ahead(-12 * MINUTE);
    let gateway = bot(&server, &model, open(), json!({})).await;
    gateway.logged(WRONG).await.unwrap();
    let said = answer(&server, command(&server, 0, 21)).await;
    assert!(!said.contains(LATE), "{said}");
    // An old message is late all the same, and its age is measured by the right clock.
    let said = answer(&server, command(&server, 10 * MINUTE, 22)).await;
    assert!(said.contains("was sent 10 minutes ago") && said.contains(LATE), "{said}");
    for page in [&["channels", "status"][..], &["doctor"]] {
        has(&ok(&gateway, page).await, &[WRONG, "timedatectl set-ntp true"]);
    }
    assert_eq!(gateway.log().matches(WRONG).count(), 1, "{}", gateway.log());

    // The clock is set right.
    server.set_clock_ahead(0);
    // Three answers say so: two messages take that many.
    for id in [23, 24] {
        let said = answer(&server, command(&server, 0, id)).await;
        assert!(!said.contains(LATE), "{said}");
    }
    gateway.logged("this machine's clock agrees with Telegram's again").await.unwrap();
    until("nothing is wrong", async || {
        (!ok(&gateway, &["channels", "status"]).await.contains("clock")).then_some(())
    })
    .await;
}

/// By the machine's own clock it comes from the future.
#[tokio::test]
async fn a_clock_that_is_behind_makes_no_old_command_fresh() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    server.set_clock_ahead(10 * MINUTE);
    let gateway = bot(&server, &model, open(), json!({})).await;
    let said = answer(&server, command(&server, 8 * MINUTE, 21)).await;
    assert!(said.contains("was sent 8 minutes ago") && said.contains(LATE), "{said}");
    let said = answer(&server, command(&server, 0, 22)).await;
    assert!(!said.contains(LATE), "{said}");
    let status = ok(&gateway, &["channels", "status"]).await;
    has(&status, &["This machine's clock is 10 minutes behind Telegram's"]);
}

/// On either side of the line beyond which a difference counts.
#[tokio::test]
async fn a_clock_that_is_wrong_by_about_a_minute_is_told_of_once() {
    const WRONG: &str = "This machine's clock is 1 minute behind Telegram's";
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    server.set_clock_ahead(MINUTE + 5);
    let gateway = bot(&server, &model, open(), json!({})).await;
    gateway.logged(WRONG).await.unwrap();
    for (first, ahead) in [(21, MINUTE - 10), (31, MINUTE + 5), (41, MINUTE - 10), (51, MINUTE + 5)] {
        server.set_clock_ahead(ahead);
        for id in first..first + 4 {
            answer(&server, command(&server, 0, id)).await;
        }
    }
    let log = gateway.log();
    assert_eq!(log.matches(WRONG).count(), 1, "{log}");
    assert!(!log.contains("this machine's clock agrees"), "{log}");
}
