//! Messages that could not be sent and were given up, through the front door: they are listed, sent
//! again and thrown away by hand.

use openclaw_testkit::DEADLINE;
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{CallFault, Outage, TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::command::{has, json_of, ok, openclaw};
use crate::support::config::merge;
use crate::support::telegram::{bot, connected, open};
use crate::support::wait::until;

const BLOCKED: CallFault = CallFault::Refuse(403, "Forbidden: bot was blocked by the user");

/// The words of the messages that readers see.
fn seen(server: &TelegramServer) -> Vec<String> {
    server.made().iter().filter_map(|made| made["text"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn what_was_given_up_is_listed_sent_again_once_and_thrown_away() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    assert_eq!(ok(&gateway, &["message", "failed"]).await, "Nothing was given up.\n");
    for (to, words) in [("5", "first words"), ("6", "second words")] {
        server.fail("sendMessage", BLOCKED);
        let send = ["message", "send", "--target", to, "--message", words];
        openclaw(&gateway, &send).await.failed(&["bot was blocked by the user"]);
    }
    let listed = ok(&gateway, &["message", "failed"]).await;
    has(
        &listed,
        &[
            "by telegram default to 5, after 1 try",
            "bot was blocked by the user",
            "\"first words\"",
            "openclaw message retry <id>… (or --all that were given up)",
            "openclaw message discard <id>… (or --all that were given up)",
        ],
    );
    has(&ok(&gateway, &["status"]).await, &["default: 2 given up (openclaw message failed)"]);
    let status = ok(&gateway, &["channels", "status"]).await;
    has(&status, &["2 messages could not be sent and were given up. (Run: openclaw message failed)"]);
    let listed = json_of(&gateway, &["message", "failed", "--json"]).await;
    assert_eq!(listed["total"], 2);
    let id = |at: usize| listed["failed"][at]["id"].as_str().unwrap().to_owned();
    let (newest, oldest) = (id(0), id(1));
    assert_eq!(listed["failed"][0]["text"], "second words", "the newest first");

    // A dry run does nothing; without a name nothing is meant.
    has(&ok(&gateway, &["message", "retry", "--all", "--dry-run"]).await, &["Would send again 2."]);
    openclaw(&gateway, &["message", "retry"]).await.failed(&["Give the ids, or --all"]);
    for what in ["retry", "discard"] {
        let unknown = ["message", what, "nobody:1", "--dry-run"];
        openclaw(&gateway, &unknown).await.failed(&["Nothing is known of nobody:1."]);
    }
    assert_eq!(seen(&server), [""; 0]);

    has(
        &ok(&gateway, &["message", "retry", &oldest]).await,
        &["✅ Will be sent again, in its place in the order: ", &oldest],
    );
    server.has_made("the first words", |made| made.len() == 1).await;
    until("it is known to be sent", async || {
        let again = ok(&gateway, &["message", "retry", &oldest]).await;
        again.contains("was sent already").then_some(())
    })
    .await;
    has(&ok(&gateway, &["trace", &oldest]).await, &[": sent as "]);
    has(&ok(&gateway, &["message", "discard", &newest]).await, &["✅ Thrown away", &newest]);
    has(&ok(&gateway, &["message", "discard", &newest]).await, &[&format!("{newest} was thrown away.")]);
    for mode in [&[][..], &["--dry-run"]] {
        let again = openclaw(&gateway, &[&["message", "retry", &newest], mode].concat()).await;
        again.failed(&[&format!("{newest} was thrown away: it can't be sent any more.")]);
    }
    let again = openclaw(&gateway, &["message", "retry", &newest, "--json"]).await;
    assert!(again.code == Some(1) && again.out.contains("\"discarded\""), "{again:?}");
    openclaw(&gateway, &["message", "discard", "nobody:1"]).await.failed(&["Nothing is known of"]);
    let traced = ok(&gateway, &["trace", &newest]).await;
    has(&traced, &[": failed, thrown away by hand: ", "bot was blocked by the user"]);
    has(&ok(&gateway, &["channels", "status", "--json"]).await, &["\"outboxFailed\": 0"]);
    assert_eq!(ok(&gateway, &["message", "failed"]).await, "Nothing was given up.\n");
    assert_eq!(seen(&server), ["first words"], "pressed twice, sent once");
}

#[tokio::test]
async fn who_may_only_read_lists_and_sends_nothing_again() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    let mut client = gateway.client().await.unwrap();
    let none = client.request("message.failed", json!({})).await.unwrap();
    assert_eq!(none, json!({"failed": [], "total": 0}));
    for params in [json!({}), json!({"all": true, "ids": ["a"]})] {
        let refused = client.call("message.retry", params).await.unwrap();
        assert_eq!(refused.error["message"], "either ids or all is required");
    }
    let unknown = client.request("message.retry", json!({"ids": ["nobody:1"]})).await.unwrap();
    assert_eq!(unknown, json!({"retried": [], "others": {"nobody:1": "unknown"}}));
}

/// A wait of more than five minutes gives a message up with all of its parts; tried again they come in order, whatever dies meanwhile.
#[tokio::test]
async fn parts_that_were_given_up_together_come_back_in_order_and_survive_a_kill() {
    let long: String = (0..1500).map(|n| format!("word{n} ")).collect();
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(move |_| Reply::text(&long)).await;
    let mut gateway = bot(&server, &model, open(), json!({})).await;
    server.fail("sendMessage", CallFault::Slower(900));
    server.push(private_message(5, "tell me all"));
    let count = |listed: &serde_json::Value| listed["total"].as_u64().unwrap();
    server.nth_answer("sendMessage", 1).await;
    gateway.logged("a delivery is given up").await.unwrap();
    // Later parts wait for the chat; none of them came without the first part.
    assert_eq!(seen(&server), [""; 0]);
    let listed = until("all parts are given up", async || {
        let status = json_of(&gateway, &["channels", "status", "--json"]).await;
        let pending = &status["channelAccounts"]["telegram"][0]["outboxPending"];
        let listed = json_of(&gateway, &["message", "failed", "--json"]).await;
        (*pending == 0 && count(&listed) >= 3).then_some(listed)
    })
    .await;
    gateway.crash_and_restart().await.unwrap();
    assert_eq!(seen(&server), [""; 0], "no part comes without those before it");
    // The pause that the platform asked for is remembered: other messages for the same chat wait.
    let mut client = gateway.client().await.unwrap();
    let params = |to: &str| json!({"to": to, "message": format!("for {to}"), "idempotencyKey": to});
    client.send("send", params("5")).await.unwrap();
    assert!(client.call("send", params("6")).await.unwrap().ok);
    let waits = until("it is stored", async || {
        let found = client.request("trace", json!({"id": "send:5:1"})).await.unwrap();
        found["deliveries"].get(0).cloned()
    })
    .await;
    assert_eq!((&waits["state"], &waits["attempts"]), (&json!("pending"), &json!(0)));
    assert_eq!(seen(&server), ["for 6"]);
    let last = listed["failed"][0]["id"].as_str().unwrap().to_owned();
    let retried = json_of(&gateway, &["message", "retry", &last, "--json"]).await;
    assert_eq!(retried["retried"].as_array().unwrap().len() as u64, count(&listed));
    gateway.crash_and_restart().await.unwrap();
    // A part that was on its way at the kill may come twice.
    let is_last =
        |message: &serde_json::Value| message["text"].as_str().is_some_and(|text| text.contains("word1499"));
    let made = server.has_made("all parts", |made| made.iter().any(is_last));
    tokio::time::timeout(2 * DEADLINE, made).await.unwrap();
    let seen = seen(&server).join(" ");
    let at: Vec<usize> = [0, 500, 1000, 1499]
        .iter()
        .map(|n| seen.find(&format!("word{n} ")).or(seen.find(&format!("word{n}"))).unwrap())
        .collect();
    assert!(at.is_sorted(), "{at:?}");
}

/// The parts of an answer that were refused one by one come back together, whichever is named.
#[tokio::test]
async fn parts_that_were_refused_come_back_together_and_in_order() {
    let long: String = (0..1200).map(|n| format!("word{n} ")).collect();
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(move |_| Reply::text(&long)).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    for _ in 0..3 {
        server.fail("sendMessage", BLOCKED);
    }
    server.push(private_message(5, "tell me all"));
    let listed = until("all parts are given up", async || {
        let listed = json_of(&gateway, &["message", "failed", "--json"]).await;
        (listed["total"] == 3).then_some(listed)
    })
    .await;
    let id = |at: usize| listed["failed"][at]["id"].clone();
    let last = id(0).as_str().unwrap().to_owned();
    let retried = json_of(&gateway, &["message", "retry", &last, "--json"]).await;
    assert_eq!(retried["retried"], json!([id(2), id(1), id(0)]));
    assert_eq!((&retried["waiting"], &retried["others"]), (&json!(null), &json!({})));
    server.has_made("all parts", |made| made.len() == 3).await;
    let seen = seen(&server).join(" ");
    let at: Vec<usize> = [0, 600, 1199].iter().map(|n| seen.find(&format!("word{n}")).unwrap()).collect();
    assert!(at.is_sorted(), "{at:?}");
}

/// Messages that can't be sent yet are not called sent, and the reason for their wait is named.
#[tokio::test]
async fn what_is_tried_again_while_its_account_is_off_waits_and_says_so() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    server.fail("sendMessage", BLOCKED);
    let send = ["message", "send", "--target", "5", "--message", "later"];
    openclaw(&gateway, &send).await.failed(&["bot was blocked by the user"]);
    ok(&gateway, &["config", "set", "channels.telegram.enabled", "false"]).await;
    until("it is off", async || {
        ok(&gateway, &["channels", "status"]).await.contains("disabled").then_some(())
    })
    .await;
    let again = ok(&gateway, &["message", "retry", "--all"]).await;
    has(
        &again,
        &[
            "✅ Will be sent again, in its place in the order, as soon as its account works: ",
            "It waits for telegram account \"default\" (it is switched off): openclaw channels status",
        ],
    );
    let fix = "1 message waits until it runs. (Run: openclaw config set channels.telegram.enabled true)";
    has(&ok(&gateway, &["channels", "status"]).await, &["unsent:1", fix]);
    let traced = ok(&gateway, &["trace", again.split(": ").nth(1).unwrap().lines().next().unwrap()]).await;
    assert!(traced.contains(": pending") && !traced.contains("blocked by the user"), "{traced}");
    has(&traced, &["pending, waits for telegram account \"default\" (it is switched off)"]);
    has(&ok(&gateway, &["message", "failed"]).await, &["it waits for telegram account \"default\""]);
    ok(&gateway, &["config", "set", "channels.telegram.enabled", "true"]).await;
    server.has_made("it", |made| made.len() == 1).await;
    assert_eq!(seen(&server), ["later"]);
}

/// The account was given a name while the answer was made: what waits for the old one is told everywhere, and sent when it is there again.
#[tokio::test]
async fn an_answer_whose_account_was_renamed_waits_and_is_told_of() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| Reply::text("late").after(Step::Wait(held.clone()))).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    server.push(private_message(5, "slow"));
    model.arrived(1).await;
    let set = async |key: &str, value: &str| {
        ok(&gateway, &["config", "set", &format!("channels.telegram.{key}"), value]).await
    };
    let unset =
        async |key: &str| ok(&gateway, &["config", "unset", &format!("channels.telegram.{key}")]).await;
    set("accounts.work.botToken", &server.token()).await;
    unset("botToken").await;
    let says = async |command: &[&str], are: &[&str]| {
        until(are[0], async || {
            let said = openclaw(&gateway, command).await.out;
            are.iter().all(|one| said.contains(one)).then_some(())
        })
        .await;
    };
    says(&["channels", "status"], &["Telegram work: enabled, configured, running"]).await;
    gate.open();
    let waits = "1 message waits for telegram account \"default\", which is not configured; it is sent when it is there again";
    let remedy = "hrow away: openclaw message discard <id> (list: openclaw message failed)";
    says(&["channels", "status"], &[waits, remedy, "unsent:1"]).await;
    says(&["status"], &[waits]).await;
    says(&["status", "--json"], &["which is not configured; it is sent when it is there again", remedy])
        .await;
    says(&["message", "failed"], &["What waits and is sent by itself:", "late"]).await;
    let failed = ok(&gateway, &["message", "failed", "--json"]).await;
    let failed: Value = serde_json::from_str(&failed).unwrap();
    let id = failed["waiting"][0]["id"].as_str().unwrap();
    let why = format!(
        "❌ {id} can't be sent: telegram account \"default\" is not configured any more. Set it up again (openclaw channels add), or throw \
         the message away: openclaw message discard {id}"
    );
    openclaw(&gateway, &["message", "retry", id]).await.failed(&[&why]);
    gateway.logged(waits).await.unwrap();
    assert_eq!(seen(&server), [""; 0]);
    set("botToken", &server.token()).await;
    unset("accounts").await;
    server.has_made("it", |made| made.len() == 1).await;
    assert_eq!(seen(&server), ["late"]);
    assert!(!ok(&gateway, &["channels", "status"]).await.contains("which is not configured"));
}

#[tokio::test]
async fn an_answer_that_meets_a_platform_that_is_down_waits_and_is_not_given_up() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    server.goes_down(Outage::BadGateway).await;
    // The poll that is held is answered; the next one meets the outage.
    server.push(json!({}));
    gateway.logged("can't be received from").await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (to, words) in [("5", "a"), ("6", "b"), ("7", "c")] {
        let params = json!({"to": to, "message": words, "idempotencyKey": words});
        client.send("send", params).await.unwrap();
    }
    let health = until("they wait", async || {
        let status = json_of(&gateway, &["channels", "status", "--json"]).await;
        let account = status["channelAccounts"]["telegram"][0].clone();
        (account["outboxPending"] == 3).then_some(account)
    })
    .await;
    assert_eq!(health["outboxFailed"], 0);
    gateway.logged("a delivery is tried again").await.unwrap();
    server.comes_back();
    // The account asks again after half a minute at most, and hears at once that the platform is back.
    let is_seen = |made: &[serde_json::Value]| {
        ["a", "b", "c"].iter().all(|words| made.iter().any(|message| message["text"] == *words))
    };
    let sees = server.sees(is_seen);
    tokio::time::timeout(3 * DEADLINE, sees).await.unwrap_or_else(|_| panic!("{}", gateway.log()));
    assert_eq!(server.made().len(), 3, "each once");
}

/// A message of several parts of which one is refused: who sent it hears which arrived, and sending it again by its key sends nothing.
#[tokio::test]
async fn a_part_that_is_refused_in_the_middle_is_no_success() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    let long: String = (0..1200).map(|n| format!("word{n} ")).collect();
    // The first part arrives; the second is refused.
    server.fail("sendMessage", CallFault::Pass);
    server.fail("sendMessage", BLOCKED);
    let mut client = gateway.client().await.unwrap();
    let params = json!({"to": "5", "message": long, "idempotencyKey": "once"});
    let first = client.call("send", params.clone()).await.unwrap();
    assert!(!first.ok, "{first:?}");
    assert_eq!(first.error["code"], "UNAVAILABLE");
    let message = first.error["message"].as_str().unwrap();
    has(
        message,
        &["Error: 1 of 3 parts was not sent: ", "bot was blocked by the user", "2 arrived (message "],
    );
    let details = &first.error["details"];
    assert_eq!(
        (&details["messageIds"], &details["sent"], &details["waiting"]),
        (&json!(["501", "502"]), &json!(2), &json!(0))
    );
    has(&details["failed"].to_string(), &["bot was blocked by the user"]);
    let again = client.call("send", params).await.unwrap();
    assert_eq!(again.error, first.error, "the same answer");
    assert_eq!(server.calls("sendMessage").len(), 3, "nothing is sent twice");

    // The command says so too, and what is missing can be sent.
    server.fail("sendMessage", CallFault::Pass);
    server.fail("sendMessage", BLOCKED);
    let send = ["message", "send", "--target", "6", "--message", &long];
    openclaw(&gateway, &send).await.failed(&["1 of 3 parts was not sent", "do not send those again"]);
    let retried = json_of(&gateway, &["message", "retry", "send:once:2", "--json"]).await;
    assert_eq!(retried["retried"], json!(["send:once:2"]));
    let sees = server.sees(|made| made.len() == 5);
    tokio::time::timeout(DEADLINE, sees).await.unwrap();
}

/// Waiting messages are traced with the reason for their wait; after a retry by hand, the old
/// reason is gone.
#[tokio::test]
async fn a_trace_tells_what_a_message_waits_for() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    let mut client = gateway.client().await.unwrap();
    let params = |words: &str| json!({"to": "5", "message": words, "idempotencyKey": words});
    server.fail("sendMessage", BLOCKED);
    assert!(!client.call("send", params("a")).await.unwrap().ok);
    server.fail("sendMessage", CallFault::Slower(200));
    client.send("send", params("b")).await.unwrap();
    gateway.logged("a delivery is tried again").await.unwrap();
    client.send("send", params("c")).await.unwrap();
    let traced = async |id: &str, is: &str| {
        until(is, async || {
            let ended = openclaw(&gateway, &["trace", id]).await;
            ended.out.contains(is).then_some(ended.out)
        })
        .await
    };
    // The try of this one did not count.
    let b = traced("send:b:1", ", next try not before ").await;
    has(&b, &["delivery send:b:1: pending, next try", "Too Many Requests"]);
    has(&traced("send:c:1", "waits behind").await, &["delivery send:c:1: pending, waits behind send:b:1"]);
    ok(&gateway, &["message", "retry", "send:a:1"]).await;
    let a = traced("send:a:1", ": pending").await;
    assert!(!a.contains("blocked by the user"), "{a}");
    has(&traced("send:c:1", "waits behind send:a:1").await, &["pending"]);
}

/// A failing chat alone says nothing about the platform, so that the account is not called down:
/// its owner is told of the chat.
#[tokio::test]
async fn a_chat_whose_sends_fail_for_long_is_warned_of() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    // A failed send is tried again only after minutes.
    let mut section = open();
    merge(&mut section, json!({"retry": {"attempts": 3, "minDelayMs": 600_000, "maxDelayMs": 600_000}}));
    let gateway = bot(&server, &model, section, json!({})).await;
    connected(&server).await;
    let mut client = gateway.client().await.unwrap();
    let params = |to: &str, id: &str| json!({"to": to, "message": "hello", "idempotencyKey": id});
    server.fail_chat(5, CallFault::Refuse(500, "Internal Server Error"));
    for id in ["a", "b"] {
        client.send("send", params("5", id)).await.unwrap();
    }
    assert!(client.call("send", params("6", "c")).await.unwrap().ok, "the other chat works");
    let status = until("it is told", async || {
        let status = ok(&gateway, &["channels", "status"]).await;
        status.contains("2 messages wait for 5").then_some(status)
    })
    .await;
    let warning = [
        "- telegram default: 2 messages wait for 5, the first since 20",
        "Internal Server Error",
        "See: openclaw trace send:a:1; try it now: openclaw message retry send:a:1; \
         throw it away: openclaw message discard send:a:1",
    ];
    has(&status, &warning);
    assert_eq!(status.matches("wait for 5").count(), 1, "{status}");
    has(&openclaw(&gateway, &["doctor"]).await.out, &["2 messages wait for 5, the first since 20"]);
    has(
        &ok(&gateway, &["status"]).await,
        &["default: sends to 1 chat keep failing (openclaw channels status)"],
    );
    // The advice helps.
    for id in ["send:a:1", "send:b:1"] {
        ok(&gateway, &["message", "discard", id]).await;
    }
    let status = ok(&gateway, &["channels", "status"]).await;
    assert!(!status.contains("wait for 5"), "{status}");
}

/// The message that holds up its conversation is listed, tried at once, and thrown away for good;
/// those behind it go on.
#[tokio::test]
async fn what_waits_is_listed_tried_now_and_thrown_away() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    // A failed send is tried again only after minutes.
    let mut section = open();
    merge(&mut section, json!({"retry": {"attempts": 3, "minDelayMs": 600_000, "maxDelayMs": 600_000}}));
    let mut gateway = bot(&server, &model, section, json!({})).await;
    connected(&server).await;
    let mut client = gateway.client().await.unwrap();
    let params = |words: &str| json!({"to": "5", "message": words, "idempotencyKey": words});
    let tried_again = async |count: usize| {
        until("it waits", async || {
            let is = |line: &&str| line.contains("a delivery is tried again");
            (gateway.log().lines().filter(is).count() >= count).then_some(())
        })
        .await;
    };
    server.fail("sendMessage", CallFault::Refuse(500, "Internal Server Error"));
    client.send("send", params("a")).await.unwrap();
    tried_again(1).await;
    client.send("send", params("b")).await.unwrap();
    let listed = until("both wait", async || {
        let listed = ok(&gateway, &["message", "failed"]).await;
        listed.contains("send:b:1").then_some(listed)
    })
    .await;
    has(
        &listed,
        &[
            "Nothing was given up.\n\nWhat waits and is sent by itself:\nsend:a:1\n",
            "next try not before ",
            "Internal Server Error",
            "  \"a\"\n",
            "it waits behind send:a:1",
            "openclaw message discard <id>…",
        ],
    );
    let json = json_of(&gateway, &["message", "failed", "--json"]).await;
    assert_eq!((&json["total"], &json["waitingTotal"]), (&json!(0), &json!(2)));
    assert_eq!(json["waiting"][1]["waitsBehind"], "send:a:1");
    // Everything that was given up is not what waits.
    ok(&gateway, &["message", "discard", "--all"]).await;
    let would = ok(&gateway, &["message", "discard", "send:a:1", "--dry-run"]).await;
    has(&would, &["Would throw away 1. Nothing was done."]);

    // Tried at once, it meets the same.
    server.fail("sendMessage", CallFault::Refuse(500, "Internal Server Error"));
    let now = ok(&gateway, &["message", "retry", "send:a:1"]).await;
    has(&now, &["✅ Will be tried now, in its place in the order: send:a:1"]);
    tried_again(2).await;
    has(&ok(&gateway, &["message", "discard", "send:a:1"]).await, &["✅ Thrown away: send:a:1"]);
    server.has_made("what stood behind it", |made| made.len() == 1).await;
    assert_eq!(seen(&server), ["b"]);
    has(&ok(&gateway, &["trace", "send:a:1"]).await, &[": failed, 2 tries, thrown away by hand: "]);
    gateway.crash_and_restart().await.unwrap();
    connected(&server).await;
    has(&ok(&gateway, &["message", "discard", "send:a:1"]).await, &["send:a:1 was thrown away."]);
    assert_eq!(seen(&server), ["b"]);
}

/// While the platform is down one request at a time asks how it does. A try that a person asks for
/// does not wait for the next time.
#[tokio::test]
async fn all_that_a_person_wants_tried_are_tried_during_an_outage() {
    const CHATS: [i64; 5] = [11, 12, 13, 14, 15];
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    let mut client = gateway.client().await.unwrap();
    for chat in CHATS {
        server.fail_chat(chat, CallFault::Refuse(500, "Internal Server Error"));
        let params = json!({"to": chat.to_string(), "message": "hi", "idempotencyKey": chat.to_string()});
        client.send("send", params).await.unwrap();
    }
    gateway.logged("the platform is down: what is to be sent waits").await.unwrap();
    let ids = CHATS.map(|chat| format!("send:{chat}:1"));
    until("all wait", async || {
        let listed = ok(&gateway, &["message", "failed"]).await;
        ids.iter().all(|id| listed.contains(id)).then_some(())
    })
    .await;
    let before = server.calls("sendMessage").len();
    let command: Vec<&str> = ["message", "retry"].into_iter().chain(ids.iter().map(String::as_str)).collect();
    ok(&gateway, &command).await;
    until("each of them is tried", async || {
        let tried: Vec<_> =
            server.calls("sendMessage").drain(before..).map(|call| call.params["chat_id"].clone()).collect();
        CHATS.iter().all(|chat| tried.contains(&json!(chat))).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_command_is_traced_as_what_it_is() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(5, "/help"));
    let is_over =
        |event: &serde_json::Value| event["run"]["state"] == "ok" && event["run"]["command"] == true;
    crate::support::trace::traced(&gateway, 11, is_over).await;
    let told = ok(&gateway, &["trace", "11"]).await;
    has(&told, &["  a command, which the gateway answers by itself", "answer "]);
    assert!(!told.contains("became a message for the agent"), "{told}");
    server.push(crate::support::trace::numbered(private_message(5, "hello"), 12));
    crate::support::trace::traced(&gateway, 12, |event| event["run"]["state"] == "ok").await;
    has(&ok(&gateway, &["trace", "12"]).await, &["became a message for the agent"]);
}
