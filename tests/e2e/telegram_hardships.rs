//! A network and a platform at their worst: sockets that are dead without anybody's having said so, messages of a megabyte,
//! storms of refusals with a time to wait, a group that moves while its answer is on the way.

use std::time::{Duration, Instant};

use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{CallFault, TelegramServer, group_message, private_message};
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::support::telegram::{bot, connected, last_said, open};
use crate::support::trace::numbered;
use crate::support::wait::until;

/// Waits until readers see as many messages; longer than a wait that the platform asks for, or than a poll that is dead.
async fn seen(server: &TelegramServer, count: usize, gateway: &GatewayUnderTest) -> Vec<(i64, String)> {
    let all = server.sees(|made| made.len() >= count);
    if tokio::time::timeout(4 * DEADLINE, all).await.is_err() {
        panic!("{:?}\n{}", server.made(), gateway.log());
    }
    let shown = |made: &Value| Some((made["chat_id"].as_i64()?, made["text"].as_str()?.to_owned()));
    server.made().iter().filter_map(shown).collect()
}

/// Nothing ever comes on the connection of a poll, and it does not end.
#[tokio::test]
async fn a_dead_socket_loses_and_doubles_nothing() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    // The poll under way is answered by what is said first; the next one is dead.
    server.fail("getUpdates", CallFault::Silence);
    server.push(private_message(5, "one"));
    let polls = server.calls("getUpdates").len();
    server.nth_call("getUpdates", polls + 1).await;
    server.push(private_message(6, "two"));
    let mut found = seen(&server, 2, &gateway).await;
    found.sort();
    assert_eq!(found, [(5, "here".to_owned()), (6, "here".to_owned())]);
    assert!(!server.has_faults());
    gateway.logged("nothing came within 45 s").await.unwrap();
    assert_eq!(model.requests().len(), 2);
}

/// All of them come in one answer.
#[tokio::test]
async fn updates_of_a_megabyte_each_are_all_heard() {
    const PEOPLE: i64 = 8;
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| {
        let said = last_said(request);
        let end = said.split(" end-").nth(1).unwrap_or_default();
        Reply::text(&format!("end-{}", end.split_whitespace().next().unwrap_or_default()))
    })
    .await
    .forgetful();
    let per_peer = json!({"session": {"dmScope": "per-peer"}});
    let gateway =
        bot(&server, &model, json!({"enabled": false, "dmPolicy": "open", "allowFrom": ["*"]}), per_peer);
    let gateway = gateway.await;
    for person in 0..PEOPLE {
        let mut update = private_message(100 + person, "short");
        update["message"]["text"] = json!(format!("{} end-{person}", "x".repeat(1_000_000)));
        server.push(update);
    }
    crate::support::command::ok(&gateway, &["config", "set", "channels.telegram.enabled", "true"]).await;
    let mut found = seen(&server, usize::try_from(PEOPLE).unwrap(), &gateway).await;
    found.sort();
    let expect: Vec<(i64, String)> =
        (0..PEOPLE).map(|person| (100 + person, format!("end-{person}"))).collect();
    assert_eq!(found, expect);
    server.all_confirmed().await;
}

/// The platform asks some to come again later, one of them after half a minute: nobody asks earlier, all come in order and once, and no
/// chat waits for another's time.
#[tokio::test]
async fn a_storm_of_refusals_is_waited_out_in_order() {
    const HALF_A_MINUTE: u64 = 30;
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    let mut client = gateway.client().await.unwrap();
    let mut send = async |to: i64, words: &str| {
        let params = json!({"to": to.to_string(), "message": words, "idempotencyKey": words});
        client.send("send", params).await.unwrap();
        let id = format!("send:{words}:1");
        until("it is stored", async || {
            let found = client.request("trace", json!({"id": id})).await.unwrap();
            found["deliveries"].get(0).cloned()
        })
        .await;
    };
    server.fail("sendMessage", CallFault::Slower(HALF_A_MINUTE));
    // Before the refusal: what is measured from here is never less than what the gateway waited.
    let asked = Instant::now();
    send(5, "a1").await;
    server.nth_answer("sendMessage", 1).await;
    for words in ["a2", "a3"] {
        send(5, words).await;
    }
    for seconds in [1, 2, 1, 2, 1] {
        server.fail("sendMessage", CallFault::Slower(seconds));
    }
    for (to, words) in [(6, "b1"), (7, "c1"), (6, "b2"), (7, "c2")] {
        send(to, words).await;
    }
    let others = seen(&server, 4, &gateway).await;
    assert!(others.iter().all(|(to, _)| *to != 5), "{others:?}");
    let found = seen(&server, 7, &gateway).await;
    assert!(asked.elapsed() >= Duration::from_secs(HALF_A_MINUTE), "{found:?}");
    let of = |chat: i64| -> Vec<&str> {
        found.iter().filter(|(to, _)| *to == chat).map(|(_, words)| words.as_str()).collect()
    };
    assert_eq!((of(5), of(6), of(7)), (vec!["a1", "a2", "a3"], vec!["b1", "b2"], vec!["c1", "c2"]));
    assert!(!server.has_faults(), "each refusal was met");
}

/// A poster to a webhook goes away before the answer, and posts again until there is one.
#[tokio::test]
async fn a_webhook_whose_poster_hangs_up_loses_and_doubles_nothing() {
    const PEOPLE: i64 = 40;
    const SECRET: &str = "a-secret-of-the-test";
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let reserved = openclaw_testkit::ReservedPort::any().unwrap();
    let port = reserved.number().unwrap();
    let mut section = open();
    section["webhookUrl"] = json!(format!("http://127.0.0.1:{port}/telegram-webhook"));
    section["webhookSecret"] = json!(SECRET);
    section["webhookPort"] = json!(port);
    let gateway = bot(&server, &model, section, json!({"session": {"dmScope": "per-peer"}})).await;
    server.nth_answer("setWebhook", 1).await;
    for person in 0..PEOPLE {
        let mut update = numbered(private_message(100 + person, "hello"), 40);
        update["update_id"] = json!(9_000 + person);
        let body = update.to_string();
        let request = format!(
            "POST /telegram-webhook HTTP/1.1\r\nHost: localhost\r\nX-Telegram-Bot-Api-Secret-Token: {SECRET}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut poster = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        poster.write_all(request.as_bytes()).await.unwrap();
        drop(poster);
        assert_eq!(server.push_to_webhook(update).await, 200);
    }
    let mut found: Vec<i64> = seen(&server, usize::try_from(PEOPLE).unwrap(), &gateway)
        .await
        .into_iter()
        .map(|(to, _)| to)
        .collect();
    found.sort_unstable();
    assert_eq!(found, (100..100 + PEOPLE).collect::<Vec<_>>());
    assert_eq!(gateway.fates().await.unwrap(), json!({"run": PEOPLE}));
}

/// The platform refuses the old id and names the new one.
#[tokio::test]
async fn an_answer_to_a_group_that_has_moved_meanwhile_follows_it() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| Reply::text("here").after(Step::Wait(held.clone()))).await;
    let section = json!({"groupPolicy": "open", "groups": {"-5": {"requireMention": false}}});
    let gateway = bot(&server, &model, section, json!({})).await;
    server.push(group_message(-5, 5, "hello"));
    model.arrived(1).await;
    server.move_group(-5, -1005);
    gate.open();
    assert_eq!(seen(&server, 1, &gateway).await, [(-1005, "here".to_owned())]);
}
