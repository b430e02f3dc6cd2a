//! Messages said while the gateway was down, through the front door: they are marked, their
//! commands are not obeyed, and nothing is lost in silence.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, group_message, private_message};
use serde_json::{Value, json};

use crate::support::command::{has, json_of, ok};
use crate::support::telegram::{bot, last_said, open};
use crate::support::trace::traced;
use crate::support::wait::until;

const HOUR: i64 = 3600;

/// Said so many seconds ago, with this id.
fn ago(mut update: Value, seconds: i64, id: i64) -> Value {
    let date = update["message"]["date"].as_i64().unwrap();
    update["message"]["date"] = json!(date - seconds);
    update["message"]["message_id"] = json!(id);
    update
}

#[tokio::test]
async fn words_are_marked_and_commands_are_not_obeyed() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("good morning")).await;
    let commands = json!({"commands": {"restart": true}});
    let gateway = bot(&server, &model, open(), commands).await;
    server.push(ago(private_message(5, "are you there?"), 3 * HOUR, 21));
    server.has_made("an answer", |made| made.iter().any(|made| made["text"] == "good morning")).await;
    let said = last_said(&model.requests()[0]);
    assert!(said.contains("(received while offline) are you there?"), "{said}");
    for (at, command) in ["/new", "/stop", "/restart"].into_iter().enumerate() {
        let at = i64::try_from(at).unwrap();
        server.push(ago(private_message(5, command), 3 * HOUR, 30 + at));
        let told = format!("{command} was sent 3 hours ago, while I was offline, and was not carried out");
        server
            .has_made("what was not done", |made| {
                made.iter().any(|made| made["text"].as_str().is_some_and(|text| text.contains(&told)))
            })
            .await;
    }
    server.push(private_message(5, "and now?"));
    server
        .has_made("two answers", |made| {
            made.iter().filter(|made| made["text"] == "good morning").count() == 2
        })
        .await;
    let requests = model.requests();
    let last = requests.last().unwrap();
    assert!(!last_said(last).contains("received while offline"));
    assert!(
        last.body.to_string().contains("are you there?"),
        "/new was not obeyed: the conversation goes on"
    );
    has(&ok(&gateway, &["trace", "21"]).await, &["received while offline", "became a message for the agent"]);
    has(&ok(&gateway, &["trace", "30"]).await, &["the gateway answered it by itself: late-command", "said"]);
}

#[tokio::test]
async fn what_is_older_than_a_day_is_told_with_the_next_message() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("yes")).await;
    let mut section = open();
    section["groupPolicy"] = json!("open");
    section["groups"] = json!({"-100": {"requireMention": false}});
    let mut gateway = bot(&server, &model, section, json!({})).await;
    server.push(ago(private_message(5, "buy milk"), 30 * HOUR, 21));
    server.push(ago(private_message(5, "and bread"), 29 * HOUR, 22));
    server.push(ago(group_message(-100, 5, "old news"), 29 * HOUR, 23));
    let old = |text: &str| text.contains("I was offline for more than a day");
    server
        .has_made("the notice", |made| made.iter().any(|made| made["text"].as_str().is_some_and(old)))
        .await;
    until("all is decided", async || {
        let status = json_of(&gateway, &["channels", "status", "--json"]).await;
        let inbound = &status["channelAccounts"]["telegram"][0]["inbound"];
        (inbound["noted"] == 3).then_some(())
    })
    .await;
    has(&ok(&gateway, &["trace", "21"]).await, &["it waits as context", "received while offline"]);
    gateway.crash_and_restart().await.unwrap();
    server.push(private_message(5, "what did I want?"));
    server.has_made("an answer", |made| made.iter().any(|made| made["text"] == "yes")).await;
    let said = last_said(&model.requests()[0]);
    has(
        &said,
        &["[Chat messages since your last reply - for context]", "buy milk", "and bread", "what did I want?"],
    );
    let notices = server.made().iter().filter(|made| made["text"].as_str().is_some_and(old)).count();
    assert_eq!(notices, 1, "said once, in the private chat");
    has(&ok(&gateway, &["trace", "21"]).await, &["it was told with the message of run"]);
}

/// The number received is the sum over all outcomes, and drops are counted by their reasons.
#[tokio::test]
async fn what_became_of_everything_is_counted() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("yes")).await;
    let section = json!({"dmPolicy": "allowlist", "allowFrom": ["5"], "groupPolicy": "allowlist"});
    let gateway = bot(&server, &model, section, json!({})).await;
    server.push(private_message(5, "hello"));
    server.push(private_message(6, "let me in"));
    server.push(group_message(-1, 7, "anybody?"));
    server.push(json!({"message": {"message_id": 9, "text": "from nowhere"}}));
    server.push_again(private_message(5, "never numbered"));
    server.nth_answer("sendMessage", 1).await;
    let inbound = until("all is decided", async || {
        let status = json_of(&gateway, &["channels", "status", "--json"]).await;
        let inbound = status["channelAccounts"]["telegram"][0]["inbound"].clone();
        (inbound["dropped"].as_u64() >= Some(4) && inbound["waiting"] == 0).then_some(inbound)
    })
    .await;
    let count = |key: &str| inbound[key].as_u64().unwrap();
    let sum: u64 = ["waiting", "run", "noted", "handled", "dropped"].iter().map(|key| count(key)).sum();
    assert_eq!(count("received"), sum, "{inbound}");
    let by = &inbound["droppedBy"];
    assert_eq!((&by["dm-policy"], &by["group-policy"]), (&json!(1), &json!(1)), "{inbound}");
    assert_eq!(by["unreadable"], 2, "{inbound}");
    let health = json_of(&gateway, &["health", "--json"]).await;
    assert_eq!(health["channels"]["telegram"]["accounts"]["default"]["inbound"]["droppedBy"], *by);
}

#[tokio::test]
async fn a_cut_text_goes_on_with_the_next_message_id_alone() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("read")).await;
    let _gateway = bot(&server, &model, open(), json!({"messages": {"queue": {"mode": "followup"}}})).await;
    let long = "long ".repeat(820);
    server.push(ago(private_message(5, &long), 0, 40));
    server.push(ago(private_message(5, "something else"), 0, 42));
    server.has_made("two answers", |made| made.len() == 2).await;
    server.push(ago(private_message(5, &long), 0, 50));
    server.push(ago(private_message(5, "its end"), 0, 51));
    server.has_made("the third", |made| made.len() == 3).await;
    let requests = model.requests();
    let said: Vec<String> = requests.iter().map(last_said).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[1].contains("something else") && !said[1].contains("long long"), "{}", said[1]);
    assert!(said[2].contains("long its end"), "{}", said[2]);
}

fn texts(made: &[Value]) -> Vec<&str> {
    made.iter().filter_map(|made| made["text"].as_str()).collect()
}

#[tokio::test]
async fn words_around_late_commands_are_answered_without_them() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let queue = json!({"messages": {"queue": {"mode": "followup"}}});
    let gateway = bot(&server, &model, json!({"dmPolicy": "allowlist", "allowFrom": [5]}), queue).await;
    // Message, the directive in it that is not carried out, and the text that the agent reads.
    let rows = [
        ("/model fake/other tell me a joke", "/model", "was", "tell me a joke"),
        ("tell me another /model fake/other please", "/model", "was", "tell me another please"),
        ("/queue interrupt please", "/queue", "was", "please"),
        ("/status and /think high tell me more", "/think, /status", "were", "and tell me more"),
        ("/new talk about x", "/new", "was", "talk about x"),
    ];
    for (at, (said, commands, was, words)) in rows.into_iter().enumerate() {
        let id = 21 + i64::try_from(at).unwrap();
        server.push(ago(private_message(5, said), HOUR, id));
        server.has_made("an answer", |made| made.len() == 2 * (at + 1)).await;
        let made = server.made();
        let told = format!(
            "⚙️ {commands} {was} sent 60 minutes ago, while I was offline, and {was} not carried out. I answer the rest."
        );
        let texts = texts(&made);
        assert!(texts.iter().any(|text| text.starts_with(&told)), "{said}: {texts:?}");
        let requests = model.requests();
        assert_eq!(requests.len(), at + 1, "{said}");
        let read = last_said(&requests[at]);
        has(&read, &[&format!("(received while offline) {words}\n")]);
        assert!(requests[at].body["model"] == requests[0].body["model"], "{said}: another model was asked");
        let traced = traced(&gateway, id, |event| event["run"]["state"] == "ok").await;
        assert_eq!(traced["answers"].as_array().map(Vec::len), Some(1), "{traced}");
    }
    let last = model.requests().pop().unwrap();
    assert!(
        last.body.to_string().contains("tell me a joke"),
        "/new was not obeyed: the conversation goes on"
    );
    // Nothing but commands.
    server.push(ago(private_message(5, "/think high /verbose on"), HOUR, 40));
    server.has_made("what was not done", |made| made.len() == 2 * rows.len() + 1).await;
    let made = server.made();
    let told = "⚙️ /think, /verbose were sent 60 minutes ago, while I was offline, and were not carried out. Send them again";
    assert!(texts(&made).last().unwrap().starts_with(told), "{made:?}");
    assert_eq!(model.requests().len(), rows.len());
}

/// Messages that waited for us come all at once, however far apart they were said.
#[tokio::test]
async fn what_was_said_hours_apart_is_not_one_message() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let settings = json!({"messages": {"inbound": {"debounceMs": 400}, "queue": {"mode": "followup"}}});
    let _gateway = bot(&server, &model, open(), settings).await;
    // Nothing else runs meanwhile: they are brought together.
    server.push(ago(private_message(5, "book the table for 8"), 4 * HOUR, 21));
    server.push(ago(private_message(5, "by the window"), 4 * HOUR - 1, 22));
    server.push(ago(private_message(5, "what is the weather?"), 2 * HOUR, 23));
    server.push(ago(private_message(5, "are you back?"), 2, 24));
    server.has_made("three answers", |made| made.len() == 3).await;
    let said: Vec<String> = model.requests().iter().map(last_said).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    has(&said[0], &["(received while offline) book the table for 8\nby the window\n"]);
    has(&said[1], &["(received while offline) what is the weather?\n"]);
    has(&said[2], &["] are you back?\n"]);
}

#[tokio::test]
async fn context_tells_of_pictures_and_of_the_words_below_them() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("nice")).await;
    let section = json!({"dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open", "groups": {"*": {}}});
    let gateway = bot(&server, &model, section, json!({})).await;
    let photo = |mut update: Value, caption: &str| {
        let message = update["message"].as_object_mut().unwrap();
        message.remove("text");
        message.insert("caption".to_owned(), json!(caption));
        let file = json!({"file_id": "p", "file_unique_id": "u", "width": 1, "height": 1, "file_size": 70});
        message.insert("photo".to_owned(), json!([file]));
        update
    };
    server.push(ago(photo(private_message(5, ""), "my lunch"), 30 * HOUR, 21));
    server.push(ago(photo(group_message(-100, 5, ""), "our lunch"), 0, 22));
    for id in [21, 22] {
        traced(&gateway, id, |event| event["fate"] == "noted").await;
    }
    server.push(ago(private_message(5, "is it good?"), 0, 23));
    traced(&gateway, 23, |event| event["run"]["state"] == "ok").await;
    has(&last_said(&model.requests()[0]), &["<media:image> my lunch\n", "is it good?"]);
    let mut asked = ago(group_message(-100, 5, "@fake_test_bot is it?"), 0, 24);
    asked["message"]["entities"] = json!([{"type": "mention", "offset": 0, "length": 14}]);
    server.push(asked);
    traced(&gateway, 24, |event| event["run"]["state"] == "ok").await;
    has(&last_said(&model.requests()[1]), &["<media:image> our lunch\n", "is it?"]);
}

#[tokio::test]
async fn the_trace_says_why_nothing_came_of_a_command() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let section =
        json!({"dmPolicy": "open", "allowFrom": ["*", 5], "capabilities": {"inlineButtons": "all"}});
    let gateway =
        bot(&server, &model, section, json!({"commands": {"ownerAllowFrom": ["telegram:5"]}})).await;
    server.push(ago(private_message(9, "/think high"), 0, 21));
    server.push(ago(private_message(9, "/think high /verbose on"), HOUR, 22));
    for id in [21, 22] {
        let event = traced(&gateway, id, |event| event["fate"] == "dropped").await;
        assert_eq!(event["reason"], "command-unauthorised", "{event}");
        has(
            &ok(&gateway, &["trace", &id.to_string()]).await,
            &["a command of somebody who may give none there"],
        );
    }
    server.push(ago(private_message(9, "hi"), 0, 24));
    traced(&gateway, 24, |event| event["run"]["state"] == "ok").await;
    assert_eq!((server.made().len(), model.requests().len()), (1, 1), "{:?}", server.made());
}
