//! Channels that do not work, through the front door: every command says so, says why, and says what to do.

use std::process::Stdio;

use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{CallFault, TelegramServer, group_message, private_message};
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::time::timeout;

use crate::gateway;
use crate::support::command::{Ended, has, json_of, ok, openclaw};
use crate::support::telegram::{NOWHERE, bot, connected, open};
use crate::support::wait::until;

#[tokio::test]
async fn a_channel_that_does_not_work_is_nowhere_called_ok() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    let mut client = gateway.client().await.unwrap();
    // The platform need not be asked for this.
    until("the account works", async || {
        let health = client.request("health", json!({})).await.unwrap();
        (health["channels"]["telegram"]["probe"]["ok"] == true).then_some(())
    })
    .await;
    has(&ok(&gateway, &["status"]).await, &["token config · accounts 1/1\n"]);

    ok(&gateway, &["channels", "stop", "--channel", "telegram"]).await;
    until("it is stopped", async || {
        let health = client.request("health", json!({})).await.unwrap();
        (health["channels"]["telegram"]["probe"]["error"] == "it is stopped").then_some(())
    })
    .await;
    assert!(ok(&gateway, &["health"]).await.starts_with("Telegram: failed (unknown) - it is stopped\n"));
    for words in [&["status"][..], &["status", "--deep"]] {
        has(&ok(&gateway, words).await, &["accounts 1/1 · default: stopped\n"]);
    }
    let status = json_of(&gateway, &["status", "--json"]).await;
    let expect = json!(["Telegram: configured", "  - default (token:config, not working: it is stopped)"]);
    assert_eq!(status["channelSummary"], expect);
    let fix = "- telegram default: It is stopped. (Run: openclaw channels start --channel telegram)";
    has(&ok(&gateway, &["channels", "status"]).await, &["stopped", fix]);
    // A send by a stopped account does not wait for it.
    let sent = openclaw(&gateway, &["message", "send", "--target", "5", "--message", "later"]).await;
    sent.failed(&[
        "is stored and waits for telegram account \"default\" (it is stopped)",
        "Its id: send:",
        "openclaw trace send:",
        "openclaw message failed",
    ]);
    let sent = ["message", "send", "--target", "5", "--message", "still later", "--json"];
    let sent = openclaw(&gateway, &sent).await;
    let told: Value = serde_json::from_str(&sent.out).unwrap();
    assert_eq!((sent.code, &told["error"]["code"]), (Some(1), &json!("waiting")), "{sent:?}");
    let id = told["error"]["details"]["deliveryIds"][0].as_str().unwrap();
    has(&ok(&gateway, &["trace", id]).await, &["pending, waits for telegram account \"default\""]);
    has(&ok(&gateway, &["message", "failed"]).await, &[id]);
    has(&ok(&gateway, &["message", "discard", id]).await, &["✅ Thrown away"]);

    ok(&gateway, &["channels", "start", "--channel", "telegram"]).await;
    assert_eq!(server.nth_call("sendMessage", 1).await.params["text"], "later");
    server.revoke(true);
    server.push(json!({}));
    gateway.logged("channel.state lost").await.unwrap();
    let health = ok(&gateway, &["health"]).await;
    assert!(health.starts_with("Telegram: failed (401) - "), "{health}");
    has(&ok(&gateway, &["status"]).await, &["accounts 1/1 · default: "]);
    // A gateway that refuses the command is there.
    let refused = openclaw(&gateway, &["channels", "status", "--token", "wrong"]).await;
    refused.failed(&["unauthorized"]);
    assert!(!refused.err.contains("not reachable") && !refused.out.contains("not reachable"), "{refused:?}");
}

#[tokio::test]
async fn an_account_is_named_in_what_to_do_and_a_gateway_that_is_away_is_told_of() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let accounts =
        json!({"accounts": {"default": {}, "work": {"botToken": "222222:AA-nobody-knows-this-token"}}});
    let mut gateway = bot(&server, &model, accounts, json!({})).await;
    gateway.logged("channel.state lost").await.unwrap();
    assert!(!gateway.log().contains("channels.telegram.accounts"), "an empty account asks for nothing");
    let status = ok(&gateway, &["channels", "status"]).await;
    has(&status, &["(Run: openclaw channels add --channel telegram --account work --token <token>)"]);
    has(&ok(&gateway, &["health"]).await, &["Telegram work: failed (404) - "]);
    gateway.terminate().await.unwrap();
    has(&ok(&gateway, &["status"]).await, &["UNKNOWN", "no gateway to ask how it works"]);
}

#[tokio::test]
async fn what_is_refused_for_real_is_refused_by_a_dry_run() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let mut gateway = bot(&server, &model, open(), json!({})).await;
    let thread = "\"abc\" is no id of a Telegram topic: that is a number, such as 42";
    let message = "\"abc\" is no id of a Telegram message: that is a number, such as 501";
    let at = ["--target", "5"];
    let rows: [(&[&str], &str); 8] = [
        (&["send", "-m", "x", "--thread-id", "abc"], thread),
        (&["send", "-m", "x", "--reply-to", "abc"], message),
        (&["send", "--media", "/nowhere/at/all.png"], "/nowhere/at/all.png was not sent: "),
        (&["send", "-m", "x", "--account", "nobody"], "unknown account \"nobody\""),
        (&["sticker", "send", "--sticker-id", "f"], "Telegram sticker is disabled; set channels.telegram."),
        (&["react", "--message-id", "7", "--emoji", "🥑"], "Telegram has no reaction 🥑"),
        (&["pin", "--message-id", "abc"], "--message-id is required, as a number"),
        (&["delete", "--message-id", "abc"], "--message-id is required, as a number"),
    ];
    let count = server.calls("sendMessage").len();
    for (words, text) in rows {
        for mode in [&["--dry-run"][..], &[]] {
            openclaw(&gateway, &[&["message"], words, &at, mode].concat()).await.failed(&[text]);
        }
    }
    assert_eq!(server.calls("sendMessage").len(), count);
    // Other clients hear the same.
    let mut client = gateway.client().await.unwrap();
    for (key, value, text) in [("threadId", "abc", thread), ("replyTo", "abc", message)] {
        let params = json!({"to": "5", "message": "x", key: value, "idempotencyKey": key});
        let refused = client.call("send", params).await.unwrap();
        assert!(!refused.ok, "{refused:?}");
        assert_eq!(refused.error["message"], format!("invalid send params: {key} {text}"));
    }
    let react = ["message", "react", "--target", "5", "--message-id", "7", "--emoji", "👍", "--dry-run"];
    assert_eq!(
        ok(&gateway, &react).await,
        "Would do react with message 7 in telegram:5 via Telegram. Nothing was done.\n"
    );
    assert_eq!(server.calls("setMessageReaction").len(), 0);
    gateway.terminate().await.unwrap();
    let alone = openclaw(&gateway, &react).await;
    assert_eq!(alone.code, Some(0), "{alone:?}");
    has(&alone.err, &["No gateway was asked"]);
}

#[tokio::test]
async fn an_account_that_is_not_there_is_named_with_those_there_are() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let section =
        json!({"accounts": {"default": {}, "work": {"botToken": "222222:AA-nobody-knows-this-token"}}});
    let gateway = bot(&server, &model, section, json!({})).await;
    let names = "unknown account \"nobody\" (known: default, work)";
    let rows: [&[&str]; 8] = [
        &["channels", "start", "--channel", "telegram"],
        &["channels", "stop", "--channel", "telegram"],
        &["channels", "logout", "--channel", "telegram"],
        &["channels", "capabilities", "--channel", "telegram"],
        &["channels", "resolve", "@ada", "--channel", "telegram"],
        &["message", "failed"],
        &["message", "retry", "--all", "--channel", "telegram"],
        &["message", "discard", "send:1:1"],
    ];
    for words in rows {
        openclaw(&gateway, &[words, &["--account", "nobody"]].concat()).await.failed(&[names]);
    }
    openclaw(&gateway, &["message", "failed", "--channel", "pigeon"])
        .await
        .failed(&["Unknown channel: pigeon"]);
    ok(&gateway, &["message", "failed", "--account", "Work"]).await;
    ok(&gateway, &["channels", "stop", "--channel", "telegram", "--account", "work"]).await;
}

#[tokio::test]
async fn who_adds_a_bot_is_told_who_may_write_and_which_secret_is_missing() {
    let gateway = gateway().env("OPENCLAW_TELEGRAM_API_ROOT", NOWHERE).prepare().unwrap();
    let add = async |account: &str, more: &[&str]| {
        let token = format!("222222:AA-a-token-of-{account}");
        let words = ["channels", "add", "--channel", "telegram", "--token", &token];
        openclaw(&gateway, &[&words[..], &["--account", account], more].concat()).await
    };
    let set = async |key: &str, value: &str| {
        ok(&gateway, &["config", "set", &format!("channels.telegram.{key}"), value]).await;
    };
    let url = ["--webhook-url", "https://bot.example.org/hook"];
    let secret = "openclaw config set channels.telegram.webhookSecret <secret>";
    add("hooked", &url).await.failed(&["channels.telegram.webhookSecret is not set", secret]);
    set("webhookSecret", "a-secret-of-a-test").await;
    let added = add("hooked", &url).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    has(&added.out, &["Who may write to it: openclaw pairing list telegram"]);
    let rows = [
        (
            r#"{"dmPolicy": "allowlist", "allowFrom": [5]}"#,
            "those in its allowFrom (dmPolicy \"allowlist\").",
        ),
        (
            r#"{"dmPolicy": "open", "allowFrom": ["*"]}"#,
            "Everybody may write to it (\"*\" in its allowFrom).",
        ),
        (r#"{"dmPolicy": "disabled"}"#, "Nobody may write to it in private (dmPolicy \"disabled\")."),
    ];
    for (account, expect) in rows {
        set("accounts.other", account).await;
        let added = add("other", &[]).await;
        has(&added.out, &[expect]);
        assert!(!added.out.contains("pairing"), "{added:?}");
    }
    // An account keeps the settings that it has already.
    let change = ["channels", "add", "--channel", "telegram", "--account", "other"];
    let changed = ok(&gateway, &[&change[..], &url].concat()).await;
    has(&changed, &["Changed Telegram account \"other\"."]);
    openclaw(&gateway, &change).await.failed(&["Give one of --token, --token-file and --use-env"]);
    let text = std::fs::read(gateway.state_dir().join("openclaw.json")).unwrap();
    let file: Value = serde_json::from_slice(&text).unwrap();
    let other = &file["channels"]["telegram"]["accounts"]["other"];
    let expect = ("222222:AA-a-token-of-other", "https://bot.example.org/hook");
    assert_eq!((&other["botToken"], &other["webhookUrl"]), (&json!(expect.0), &json!(expect.1)));
    // A bot is one account's.
    let token = ["--token", "222222:AA-a-token-of-other"];
    let again = ["channels", "add", "--channel", "telegram", "--account", "third"];
    openclaw(&gateway, &[&again[..], &token].concat()).await.failed(&[
        "Telegram account \"other\" has this token already, and only one of them could receive",
        "openclaw channels remove --channel telegram --account other --delete",
    ]);
    ok(&gateway, &[&change[..], &token].concat()).await;
}

#[tokio::test]
async fn long_names_of_who_waits_leave_the_columns_as_they_are() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, json!({}), json!({})).await;
    let mut message = private_message(5, "hi");
    message["message"]["from"]["username"] = json!("a_name_of_more_than_22_letters");
    server.push(message);
    server.push(private_message(6, "hi"));
    server.nth_call("sendMessage", 2).await;
    let out = ok(&gateway, &["pairing", "list", "telegram"]).await;
    let at = |line: &str, word: &str| line.find(word).unwrap_or_else(|| panic!("no {word}: {out}"));
    let lines: Vec<&str> = out.lines().take(3).collect();
    let heading = lines[0];
    for line in &lines[1..] {
        assert_eq!(at(heading, "Account"), at(line, "default"), "{out}");
        assert_eq!(at(heading, "Asked"), at(line, "20"), "{out}");
    }
}

#[tokio::test]
async fn who_waits_for_a_platform_is_told_so_at_once() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    server.fail("sendMessage", CallFault::Slower(3));
    let mut command = gateway.command();
    command.args(["message", "send", "--target", "5", "--message", "x"]);
    command.env("OPENCLAW_GATEWAY_PORT", gateway.port().to_string());
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(line, "Waiting for Telegram (account \"default\")…");
    assert!(timeout(DEADLINE, child.wait()).await.unwrap().unwrap().success());
}

#[tokio::test]
async fn what_was_given_up_and_what_was_sent_by_hand_can_be_traced() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    server.fail("sendMessage", CallFault::Refuse(403, "Forbidden: bot was blocked by the user"));
    let send = ["message", "send", "--target", "5", "--message", "x"];
    openclaw(&gateway, &send).await.failed(&["bot was blocked by the user"]);
    // A newer message that is no trouble.
    server.push(private_message(6, "hello"));
    server.nth_answer("sendMessage", 2).await;
    let status = ok(&gateway, &["channels", "status"]).await;
    has(&status, &["1 message could not be sent and was given up. (Run: openclaw message failed)"]);
    let listed = json_of(&gateway, &["message", "failed", "--json"]).await;
    let id = listed["failed"][0]["id"].as_str().unwrap();
    let traced = ok(&gateway, &["trace", id]).await;
    has(&traced, &["sent on purpose", "by telegram default to 5", ": failed", "blocked by the user"]);
    has(&ok(&gateway, &["channels", "logs", "--channel", "telegram"]).await, &["a delivery is given up"]);

    let sent = json_of(&gateway, &[&send[..], &["--json"]].concat()).await;
    let id = sent["payload"]["messageId"].as_str().unwrap().to_owned();
    has(&ok(&gateway, &["trace", &id]).await, &["sent on purpose", &format!(": sent as {id}")]);
    // The answer to an event is traced to the event.
    let answers = json_of(&gateway, &["trace", "last", "--json"]).await;
    let event = answers["events"][0]["eventId"].as_str().unwrap();
    let answer = answers["events"][0]["run"]["deliveries"][0]["messageIds"][0].as_str().unwrap();
    has(&ok(&gateway, &["trace", answer]).await, &[event, "became a message for the agent"]);
}

#[tokio::test]
async fn a_group_in_which_nobody_is_heard_is_told_of_once() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let section = json!({"groupPolicy": "open", "groups": {"-1001": {"requireMention": false}}});
    let gateway = bot(&server, &model, section, json!({})).await;
    server.push(group_message(-1002, 5, "anybody there?"));
    server.push(group_message(-1002, 5, "anybody?"));
    server.push(group_message(-1001, 5, "and here?"));
    server.nth_answer("sendMessage", 1).await;
    gateway.logged("nobody is heard in a group").await.unwrap();
    assert_eq!(gateway.log().matches("nobody is heard in a group").count(), 1, "{}", gateway.log());
    let status = ok(&gateway, &["channels", "status"]).await;
    has(&status, &["Nobody is heard in group -1002", "(List it in channels.telegram.groups)"]);
    assert!(!status.contains("-1001"), "{status}");
    has(&ok(&gateway, &["doctor"]).await, &["Nobody is heard in group -1002"]);
    // Looked at again where the configuration is another, though the group says nothing more.
    let told = async |is_told: bool| {
        until("the group is told of, or is not", async || {
            if is_told {
                // A message that comes before the new settings is heard.
                server.push(group_message(-1002, 5, "and now?"));
            }
            let status = ok(&gateway, &["channels", "status"]).await;
            (status.contains("Nobody is heard in group -1002") == is_told).then_some(())
        })
        .await;
    };
    let set = async |key: &str, value: &str| {
        ok(&gateway, &["config", "set", &format!("channels.telegram.{key}"), value]).await;
    };
    set("groups", r#"{"*": {"requireMention": true}}"#).await;
    told(false).await;
    set("groups", r#"{"-1001": {"requireMention": true}}"#).await;
    told(true).await;
    set("groupPolicy", "disabled").await;
    told(false).await;
}

/// Settings that belong to an account alone go with it, and those that others inherit from above
/// stay.
#[tokio::test]
async fn the_account_default_goes_with_its_token() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let mut gateway = bot(&server, &model, json!({"allowFrom": [5]}), json!({})).await;
    let section = |gateway: &GatewayUnderTest| -> Value {
        let text = std::fs::read(gateway.state_dir().join("openclaw.json")).unwrap();
        let file: Value = serde_json::from_slice(&text).unwrap();
        file["channels"]["telegram"].clone()
    };
    let telegram = |words: &[&'static str]| {
        [&["channels"][..], &words[..1], &["--channel", "telegram"], &words[1..]].concat()
    };
    let work = "222222:AA-nobody-knows-this-token";
    ok(&gateway, &telegram(&["add", "--account", "work", "--token", work])).await;
    assert_eq!(section(&gateway)["botToken"], json!(server.token()));
    let out = ok(&gateway, &telegram(&["logout", "--account", "default"])).await;
    assert_eq!(out, "Cleared the token.\n");
    let left = section(&gateway);
    assert_eq!((&left["botToken"], &left["allowFrom"]), (&Value::Null, &json!([5])), "{left}");
    assert_eq!(left["accounts"]["work"]["botToken"], work);

    // Of two tokens for one account the newer one counts, wherever the older stood.
    std::fs::write(gateway.home().join("tok.txt"), "333333:AA-a-token-in-a-file").unwrap();
    let mut add = gateway.command();
    add.current_dir(gateway.home());
    add.args(telegram(&["add", "--account", "default", "--token-file", "tok.txt", "--name", "Mine"]));
    let added = Ended::of(add).await;
    let path = gateway.home().canonicalize().unwrap().join("tok.txt").display().to_string();
    assert_eq!(added.code, Some(0), "{added:?}");
    has(&added.out, &[&format!("Its token is read from {path} at each start.")]);
    assert_eq!(section(&gateway)["accounts"]["default"]["tokenFile"], path);
    let mut add = gateway.command();
    add.env("TELEGRAM_BOT_TOKEN", "444444:AA-a-token-of-the-environment");
    add.args(telegram(&["add", "--account", "default", "--use-env"]));
    let added = Ended::of(add).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    has(&added.out, &["Changed Telegram account \"default\".", "TELEGRAM_BOT_TOKEN counts"]);
    assert_eq!(section(&gateway)["accounts"]["default"]["tokenFile"], Value::Null);

    gateway.terminate().await.unwrap();
    ok(&gateway, &telegram(&["remove", "--account", "default", "--delete"])).await;
    ok(&gateway, &telegram(&["remove", "--account", "work", "--delete"])).await;
    let left = section(&gateway);
    assert!(left.get("botToken").is_none() && left.get("accounts").is_none(), "{left}");
}

#[tokio::test]
async fn a_stored_token_stays_where_the_new_source_has_none() {
    let gateway = gateway().env("OPENCLAW_TELEGRAM_API_ROOT", NOWHERE).prepare().unwrap();
    let file = || std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    let add = async |more: &[&str]| {
        openclaw(&gateway, &[&["channels", "add", "--channel", "telegram"], more].concat()).await
    };
    let nowhere = "The token file /no/such can't be read: No such file or directory";
    add(&["--token-file", "/no/such"]).await.failed(&[nowhere]);
    let added = add(&["--token", "222222:AA-a-token-of-a-test"]).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    has(&added.out, &["Added Telegram account \"default\"."]);
    let before = file();
    add(&["--use-env"]).await.failed(&[
        "TELEGRAM_BOT_TOKEN is not set here, and Telegram account \"default\" has a token in the configuration: nothing was changed",
        "`openclaw channels logout --channel telegram --account default`",
    ]);
    add(&["--token-file", "/no/such"]).await.failed(&[nowhere]);
    let empty = gateway.home().join("empty");
    std::fs::write(&empty, "\n").unwrap();
    add(&["--token-file", empty.to_str().unwrap()]).await.failed(&["There is no bot token in"]);
    assert_eq!(file(), before);
    let same = add(&["--token", "222222:AA-a-token-of-a-test"]).await;
    has(&same.out, &["Changed Telegram account \"default\".", "Its token is the same as before."]);
    // It can't be asked about, and is stored.
    let other = add(&["--token", "333333:AA-a-token-of-a-test"]).await;
    has(&other.out, &["Changed Telegram account \"default\".", "Its former token was replaced."]);
    has(&other.err, &["could not be asked"]);
    assert!(file().contains("333333:"), "{}", file());
}

#[tokio::test]
async fn an_account_whose_token_cannot_be_read_here_gets_a_name_all_the_same() {
    let accounts = json!({"channels": {"telegram": {"accounts": {"work": {"tokenFile": "/no/such"}}}}});
    let gateway = gateway().config(accounts).prepare().unwrap();
    let add = ["channels", "add", "--channel", "telegram", "--name", "Mine"];
    let work = openclaw(&gateway, &[&add[..], &["--account", "work"]].concat()).await;
    assert_eq!(work.code, Some(0), "{work:?}");
    has(&work.out, &["Changed Telegram account \"work\"."]);
    has(&work.err, &["can't be started: the token file /no/such"]);
    let text = std::fs::read(gateway.state_dir().join("openclaw.json")).unwrap();
    let file: Value = serde_json::from_slice(&text).unwrap();
    let work = &file["channels"]["telegram"]["accounts"]["work"];
    assert_eq!((&work["name"], &work["tokenFile"]), (&json!("Mine"), &json!("/no/such")));
    // One that there is not needs a token.
    openclaw(&gateway, &[&add[..], &["--account", "other"]].concat()).await.failed(&["Give one of --token"]);

    // Keys that were set before, and no account.
    let other = json!({"channels": {"telegram": {"webhookSecret": "a-secret-of-a-test"}}});
    let other = crate::gateway().config(other).prepare().unwrap();
    openclaw(&other, &add).await.failed(&["Give one of --token"]);
    ok(&other, &["channels", "add", "--channel", "telegram", "--use-env"]).await;
    let named = openclaw(&other, &add).await;
    has(&named.out, &["Changed Telegram account \"default\"."]);
    has(&named.err, &["can't be started: Telegram bot token missing"]);
}

/// The doctor tells what `channels status` sends people to it for.
#[tokio::test]
async fn the_doctor_tells_what_the_status_warns_of() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let token = server.token();
    let accounts = json!({
        "a": {"botToken": token}, "b": {"botToken": token}, "c": {"botToken": "4:AA-a-token", "apiRoot": "nonsense"},
        "d": {"tokenFile": "/nowhere/token"}, "e": {"botToken": "5:AA-nobody-knows-it"},
    });
    let mut gateway = bot(&server, &model, json!({"accounts": accounts}), json!({})).await;
    let lines = [
        "channels.telegram.apiRoot must be an https address",
        "(Run: openclaw config set channels.telegram.accounts.c.apiRoot <address>)",
        "the token file /nowhere/token of Telegram account \"d\"",
    ];
    let lost = ["another account has the same bot token", "telegram e: ", "makes a new one."];
    until("all of them have tried", async || {
        let status = ok(&gateway, &["channels", "status"]).await;
        lost.iter().all(|line| status.contains(line)).then_some(())
    })
    .await;
    let told = openclaw(&gateway, &["doctor"]).await.out;
    has(&told, &lines);
    has(&told, &lost);
    gateway.terminate().await.unwrap();
    let told = openclaw(&gateway, &["doctor"]).await.out;
    has(&told, &lines);
    has(&told, &["telegram a, b: they have the same bot token, and only one of them can receive"]);
    let unsent =
        openclaw(&gateway, &["message", "send", "--target", "5", "--message", "x", "--account", "d"]).await;
    assert_ne!(unsent.code, Some(0));
}

#[tokio::test]
async fn what_is_not_there_is_not_removed_and_webchat_is_not_added() {
    let gateway = gateway().env("OPENCLAW_TELEGRAM_API_ROOT", NOWHERE).start().await.unwrap();
    let run = async |words: &[&str]| {
        Ended::of({
            let mut command = gateway.command();
            command.args(words);
            command
        })
        .await
    };
    let remove = ["channels", "remove", "--channel", "telegram", "--delete"];
    run(&remove)
        .await
        .failed(&["telegram has no account \"default\" in the configuration; nothing was changed."]);
    run(&["channels", "add", "--channel", "webchat"])
        .await
        .failed(&["WebChat has no accounts: the gateway serves it by itself."]);
    let add = ["channels", "add", "--channel", "telegram", "--token", "222222:AA-a-token-of-a-test"];
    assert_eq!(run(&[&add[..], &["--account", "work"]].concat()).await.code, Some(0));
    // The section has an account, and it is another.
    run(&remove).await.failed(&["telegram has no account \"default\""]);
    let work = run(&[&remove[..], &["--account", "work"]].concat()).await;
    assert_eq!((work.code, work.out.as_str()), (Some(0), "Deleted Telegram account \"work\".\n"), "{work:?}");
}

#[tokio::test]
async fn commands_in_a_chat_name_what_was_written() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let _gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(5, "/model gtp-5"));
    let told = server.nth_call("sendMessage", 1).await.params["text"].clone();
    assert!(told.as_str().unwrap().starts_with("Model \"gtp-5\" is not allowed."), "{told}");
    server.push(private_message(5, "/context json"));
    let told = server.nth_call("sendMessage", 2).await.params["text"].clone();
    assert!(told.as_str().unwrap().starts_with("<pre><code class=\"language-json\">{"), "{told}");
}

#[tokio::test]
async fn an_interrupt_at_a_question_ends_with_a_word() {
    let gateway = gateway().prepare().unwrap();
    let pty = openpty(None, None).unwrap();
    let mut command = gateway.command();
    command.args(["channels", "add"]).stdin(Stdio::from(pty.slave)).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut screen = child.stderr.take().unwrap();
    let mut printed = String::new();
    while !printed.contains("Channel (telegram) [telegram]: ") {
        let mut bytes = [0_u8; 256];
        let count = timeout(DEADLINE, screen.read(&mut bytes)).await.unwrap().unwrap();
        assert!(count > 0, "{printed}");
        printed.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let mut rest = String::new();
    timeout(DEADLINE, screen.read_to_string(&mut rest)).await.unwrap().unwrap();
    assert_eq!(rest, "\nCancelled.\n");
    assert_eq!(timeout(DEADLINE, child.wait()).await.unwrap().unwrap().code(), Some(130));
}

/// The agent knows then what nobody has read.
#[tokio::test]
async fn a_session_is_told_of_what_a_platform_refused() {
    let (server, model) =
        (TelegramServer::start().await, ModelServer::answering(|_| Reply::text("hello")).await);
    let gateway = bot(&server, &model, open(), json!({})).await;
    server.fail("sendMessage", CallFault::Refuse(403, "Forbidden: bot was blocked by the user"));
    server.push(private_message(5, "hi"));
    gateway.logged("a delivery is given up").await.unwrap();
    server.push(private_message(5, "are you there?"));
    server.nth_answer("sendMessage", 2).await;
    let said = crate::support::telegram::last_said(&model.requests()[1]);
    assert!(said.contains("What was said to telegram 5 was not delivered: "), "{said}");
    assert!(said.contains("bot was blocked by the user"), "{said}");
}
