//! Queue modes as people see them, on Telegram and at clients: which messages are answered together, which are dropped and by which rule.
//! Neither a crash nor a stop loses or repeats one.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{CallFault, TelegramServer, forum_message, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::ok;
use crate::support::conversation::{TITLE, end, message, send};
use crate::support::telegram::{bot, last_said, open, texts};
use crate::support::trace::{numbered, traced};

/// A message with an id of its own, from somebody in private.
fn from(person: i64, id: i64, text: &str) -> Value {
    numbered(private_message(person, text), id)
}

fn queue(settings: &Value) -> Value {
    json!({"messages": {"queue": settings}})
}

/// Test words that are in the last message to the model.
fn words(request: &Captured) -> Vec<String> {
    let said = last_said(request);
    let all = ["one", "two", "three", "four", "five"];
    let is_said =
        |word: &&str| said.contains(&format!("] {word}\n")) || said.contains(&format!(": {word}\n"));
    all.into_iter().filter(is_said).map(str::to_owned).collect()
}

/// Answers with the words it was told last; those with "one" once the gate is open.
async fn echo(gate: &Gate) -> ModelServer {
    let held = gate.clone();
    ModelServer::answering(move |request| {
        let words = words(request);
        let reply = Reply::text(&format!("re {}", words.join(" ")));
        if words == ["one"] { reply.after(Step::Wait(held.clone())) } else { reply }
    })
    .await
}

/// Says something and waits until it stands in its session's queue.
async fn push(server: &TelegramServer, gateway: &GatewayUnderTest, update: Value) {
    let id = update["message"]["message_id"].as_i64().unwrap();
    server.push(update);
    traced(gateway, id, |event| !event["fate"].is_null() && event["fate"] != "waiting").await;
}

/// Says "one" and waits until the model works on it.
async fn begin(server: &TelegramServer, model: &ModelServer) {
    server.push(from(5, 1, "one"));
    model.arrived(1).await;
}

/// Waits until it is known that the answer to a message was sent.
async fn is_sent(gateway: &GatewayUnderTest, id: i64) {
    traced(gateway, id, |event| event["run"]["deliveries"][0]["state"] == "sent").await;
}

/// Waits for these messages of the bot, and that no others came.
async fn seen(server: &TelegramServer, expect: &[&str]) {
    let last = (*expect.last().unwrap()).to_owned();
    server.has_made(&last, |made| made.iter().any(|made| made["text"] == last.as_str())).await;
    assert_eq!(texts(server), expect);
}

/// The same where a crash may have met a delivery: nobody can tell whether it was made.
async fn seen_but_for_repeats(server: &TelegramServer, expect: &[&str]) {
    let last = (*expect.last().unwrap()).to_owned();
    server.has_made(&last, |made| made.iter().any(|made| made["text"] == last.as_str())).await;
    let mut texts = texts(server);
    texts.dedup();
    assert_eq!(texts, expect);
}

fn asked(model: &ModelServer) -> Vec<String> {
    model.requests().iter().map(|request| words(request).join(" ")).collect()
}

#[tokio::test]
async fn what_was_said_during_a_run_is_answered_together_where_it_was_said() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let gateway = bot(&server, &model, open(), queue(&json!({"debounceMs": 1}))).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    push(&server, &gateway, from(5, 3, "three")).await;
    gate.open();
    seen(&server, &["re one", "re two three"]).await;
    let said = last_said(&model.requests()[1]);
    let start = format!("{TITLE}[Telegram Ada Lovelace (@user5) id:5 ");
    assert!(said.starts_with(&start), "{said}");
    assert!(
        said.contains("] two\n[message_id: 2]\n\n---\nQueued #2\n[Telegram")
            && said.ends_with("] three\n[message_id: 3]"),
        "{said}"
    );
    let mut deliveries = Vec::new();
    for id in [2, 3] {
        let event = traced(&gateway, id, |event| event["run"]["state"] == "ok").await;
        assert_eq!(event["fate"], "run", "{event}");
        deliveries.push(event["run"]["deliveries"].clone());
    }
    assert_eq!(deliveries[0].as_array().map(Vec::len), Some(1), "{deliveries:?}");
    assert_eq!(deliveries[0], deliveries[1], "one answer for both");
    assert_eq!(asked(&model), ["one", "two three"]);
}

#[tokio::test]
async fn what_clients_said_during_a_run_is_asked_together_and_the_last_message_has_the_answer() {
    let gate = Gate::new();
    let model = echo(&gate).await;
    let setup = gateway().fake_model(&model.v1()).config(queue(&json!({"debounceMs": 1})));
    let gateway = setup.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "one", "r1").await;
    model.arrived(1).await;
    for (text, run) in [("two", "r2"), ("three", "r3"), ("four", "r4")] {
        send(&mut client, "main", text, run).await;
    }
    gate.open();
    assert_eq!(end(&mut client, "r1").await["message"]["content"][0]["text"], "re one");
    for run in ["r2", "r3"] {
        let taken_along = end(&mut client, run).await;
        assert_eq!((&taken_along["state"], &taken_along["message"]), (&json!("final"), &Value::Null));
    }
    assert_eq!(end(&mut client, "r4").await["message"]["content"][0]["text"], "re two three four");
    assert_eq!(asked(&model), ["one", "two three four"]);
    for run in ["r2", "r3", "r4"] {
        let waited = client.request("agent.wait", json!({"runId": run})).await.unwrap();
        assert_eq!(waited["status"], "ok", "{waited}");
    }
    let events = client.take_passed();
    let is_taken = |frame: &&Value| ["r2", "r3"].iter().any(|run| frame["payload"]["runId"] == *run);
    assert_eq!(events.iter().find(is_taken), None, "they have no other events");
}

#[tokio::test]
async fn a_client_and_a_chat_platform_are_answered_each_in_its_own_place() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let gateway = bot(&server, &model, open(), queue(&json!({"debounceMs": 1}))).await;
    let mut client = gateway.client().await.unwrap();
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    send(&mut client, "main", "three", "r3").await;
    gate.open();
    assert_eq!(end(&mut client, "r3").await["message"]["content"][0]["text"], "re three");
    seen(&server, &["re one", "re two"]).await;
    assert_eq!(asked(&model), ["one", "two", "three"]);
}

#[tokio::test]
async fn messages_of_two_places_are_answered_each_in_its_own() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let gateway = bot(&server, &model, open(), queue(&json!({"debounceMs": 1}))).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(6, 2, "two")).await;
    // People who have to wait see at once that they were heard.
    let is_shown = |calls: Vec<openclaw_testkit::telegram::BotCall>| {
        calls.iter().any(|call| call.params["chat_id"] == 6)
    };
    let mut calls = 1;
    while !is_shown(server.calls("sendChatAction")) {
        calls += 1;
        server.nth_call("sendChatAction", calls).await;
    }
    assert!(texts(&server).is_empty());
    push(&server, &gateway, from(5, 3, "three")).await;
    gate.open();
    seen(&server, &["re one", "re two", "re three"]).await;
    let to: Vec<Value> = server.made().iter().map(|made| made["chat_id"].clone()).collect();
    assert_eq!(to, [5, 6, 5]);
    assert!(!last_said(&model.requests()[1]).contains("[Queued messages"));
}

#[tokio::test]
async fn two_topics_of_a_group_wait_each_for_itself() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(move |request| {
        let words = words(request);
        let reply = Reply::text(&format!("re {}", words.join(" ")));
        if words.len() == 1 { reply.after(Step::Wait(held.clone())) } else { reply }
    })
    .await;
    let section = json!({"groupPolicy": "open", "groups": {"*": {"requireMention": false}}});
    let gateway = bot(&server, &model, section, queue(&json!({"debounceMs": 1}))).await;
    for (topic, first, id) in [(7, "one", 1), (9, "four", 4)] {
        server.push(numbered(forum_message(-100, topic, 5, first), id));
    }
    model.arrived(2).await;
    for (topic, word, id) in [(7, "two", 2), (9, "five", 5), (7, "three", 3), (9, "one", 6)] {
        push(&server, &gateway, numbered(forum_message(-100, topic, 5, word), id)).await;
    }
    gate.open();
    let both = |made: &[Value]| made.len() == 4;
    server.has_made("an answer to all", both).await;
    for (topic, texts) in [(7, ["re one", "re two three"]), (9, ["re four", "re one five"])] {
        let there: Vec<Value> =
            server.made().into_iter().filter(|made| made["message_thread_id"] == topic).collect();
        let there: Vec<&str> = there.iter().filter_map(|made| made["text"].as_str()).collect();
        assert_eq!(there, texts);
    }
}

#[tokio::test]
async fn follow_ups_are_answered_one_by_one() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let settings = queue(&json!({"mode": "steer", "byChannel": {"telegram": "followup"}, "debounceMs": 1}));
    let gateway = bot(&server, &model, open(), settings).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    push(&server, &gateway, from(5, 3, "three")).await;
    gate.open();
    seen(&server, &["re one", "re two", "re three"]).await;
    assert_eq!(asked(&model), ["one", "two", "three"]);
}

/// The deliveries of a message's answer.
fn deliveries(event: &Value) -> Vec<Value> {
    event["run"]["deliveries"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect()
}

#[tokio::test]
async fn a_steered_message_is_read_by_the_run_under_way_and_asked_once() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let gateway = bot(&server, &model, open(), queue(&json!({"mode": "steer", "debounceMs": 1}))).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    gate.open();
    let two = traced(&gateway, 2, |event| event["run"]["state"] == "ok").await;
    let one = traced(&gateway, 1, |event| event["run"]["state"] == "ok").await;
    assert_eq!(two["run"]["takenBy"], one["run"]["runId"]);
    assert_ne!(one["run"]["deliveries"], json!([]));
    assert_eq!(deliveries(&two), deliveries(&one), "the run's answer is its own");
    let is_said = |made: &Value| made["text"].as_str().unwrap().contains("re two");
    server.has_made("the answer", |made| made.iter().any(is_said)).await;
    assert_eq!(asked(&model), ["one", "two"]);
}

/// Number of answers to "two".
fn answered(made: &[Value]) -> usize {
    made.iter().map(|made| made["text"].as_str().unwrap_or_default().matches("re two").count()).sum()
}

#[tokio::test]
async fn a_message_that_is_steered_and_kept_is_read_at_once_and_asked_once_more() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let gateway =
        bot(&server, &model, open(), queue(&json!({"mode": "steer-backlog", "debounceMs": 1}))).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    gate.open();
    server.has_made("two answers", |made| answered(made) == 2).await;
    let two = traced(&gateway, 2, |event| event["run"]["state"] == "ok").await;
    let one = traced(&gateway, 1, |event| event["run"]["state"] == "ok").await;
    assert_eq!(two["run"]["takenBy"], json!(null), "its answer is that of its own run: {two:#}");
    assert_eq!(
        (&two["run"]["readBefore"], &one["run"]["readBefore"]),
        (&json!(true), &json!(null)),
        "{two:#}"
    );
    let told = crate::support::command::ok(&gateway, &["trace", "2"]).await;
    let reader = one["run"]["runId"].as_str().unwrap();
    let line = format!("the run before has read it too (steer-backlog): run {reader};");
    crate::support::command::has(&told, &[line.as_str()]);
    assert_eq!(two["run"]["readBy"], reader, "{two:#}");
    // Words of that run, which may be an answer to it too, stand behind its own answer.
    let (own, of_reader) = (deliveries(&two), deliveries(&one));
    assert!(own.len() > of_reader.len() && own.ends_with(&of_reader), "{own:?} {of_reader:?}");
    assert_eq!(asked(&model), ["one", "two", "two"]);
    assert_eq!(said(&gateway).len(), 3, "it stands in the history twice");
}

/// In a full queue what gives way is the run's that was handed it: nobody is told of it as dropped, and it is answered once.
#[tokio::test]
async fn what_gives_way_to_others_and_was_steered_is_answered_by_that_run_alone() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let settings = queue(&json!({"mode": "steer-backlog", "debounceMs": 1, "cap": 1}));
    let gateway = bot(&server, &model, open(), settings).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    push(&server, &gateway, from(5, 3, "three")).await;
    gate.open();
    let three = traced(&gateway, 3, |event| event["run"]["state"] == "ok").await;
    let two = traced(&gateway, 2, |event| event["run"]["state"] == "ok").await;
    assert_eq!(three["run"]["takenBy"], json!(null), "{three:#}");
    assert!(two["run"]["takenBy"].is_string(), "{two:#}");
    assert_eq!(gateway.fates().await.unwrap(), json!({"run": 3}));
    let told = |request: &Captured| last_said(request).contains("[Queue overflow]");
    assert!(!model.requests().iter().any(told), "nothing was dropped");
}

#[tokio::test]
async fn what_somebody_else_says_during_a_run_is_answered_to_them() {
    for mode in ["steer", "steer-backlog"] {
        let gate = Gate::new();
        let (server, model) = (TelegramServer::start().await, echo(&gate).await);
        let gateway = bot(&server, &model, open(), queue(&json!({"mode": mode, "debounceMs": 1}))).await;
        begin(&server, &model).await;
        push(&server, &gateway, from(6, 2, "two")).await;
        gate.open();
        server.has_made("both answers", |made| made.len() == 2).await;
        let said: Vec<(Value, Value)> =
            server.made().iter().map(|made| (made["chat_id"].clone(), made["text"].clone())).collect();
        assert_eq!(said, [(json!(5), json!("re one")), (json!(6), json!("re two"))], "{mode}");
    }
}

/// Works on "one" with a tool or without, and on "two" beside it, and dies when the model is asked with both.
async fn dies_with_a_steered_message(
    mode: &str,
    first: fn() -> Reply,
) -> (TelegramServer, ModelServer, GatewayUnderTest) {
    let gates = [Gate::new(), Gate::new()];
    let held = gates.clone();
    let model = ModelServer::answering(move |request| match words(request).join(" ").as_str() {
        "one" => first().after(Step::Wait(held[0].clone())),
        words => Reply::text(&format!("re {words}")).after(Step::Wait(held[1].clone())),
    })
    .await;
    let server = TelegramServer::start().await;
    let mut gateway = bot(&server, &model, open(), queue(&json!({"mode": mode, "debounceMs": 1}))).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    gates[0].open();
    model.arrived(2).await;
    gateway.kill().await.unwrap();
    gates[1].open();
    gateway.start().await.unwrap();
    for id in [1, 2] {
        traced(&gateway, id, |event| event["run"]["state"] == "ok").await;
    }
    server.has_made("the answer", |made| answered(made) > 0).await;
    (server, model, gateway)
}

fn calls() -> Reply {
    Reply::tool("call-1", "read", &json!({"path": "no-such-file"}))
}

#[tokio::test]
async fn a_crash_with_a_steered_message_in_the_run_says_the_answer_once() {
    let (server, _model, gateway) = dies_with_a_steered_message("steer", calls).await;
    let (one, two) = (traced(&gateway, 1, |_| true).await, traced(&gateway, 2, |_| true).await);
    assert_eq!(two["run"]["takenBy"], one["run"]["runId"], "{two:#}");
    assert_eq!(texts(&server), ["re two"], "both are answered in one");
}

#[tokio::test]
async fn a_crash_with_a_kept_message_in_the_run_answers_it_by_both_runs() {
    let (server, _model, gateway) = dies_with_a_steered_message("steer-backlog", calls).await;
    server.has_made("two answers", |made| answered(made) == 2).await;
    let two = traced(&gateway, 2, |_| true).await;
    assert_eq!(two["run"]["takenBy"], json!(null), "{two:#}");
    assert_eq!(texts(&server), ["re two", "re two"], "each run says its answer once");
}

#[tokio::test]
async fn a_crash_behind_the_first_answer_of_a_run_says_the_second_too() {
    for mode in ["steer", "steer-backlog"] {
        let (server, _model, gateway) = dies_with_a_steered_message(mode, || Reply::text("re one")).await;
        assert_eq!(texts(&server), ["re one", "re two"], "{mode}");
        let two = traced(&gateway, 2, |_| true).await;
        assert_eq!(two["run"]["takenBy"], json!(null), "{mode}: it ran by itself: {two:#}");
        let of_reader = usize::from(mode == "steer-backlog");
        assert_eq!(deliveries(&two).len(), 1 + of_reader, "{mode}: {two:#}");
    }
}

/// The second time each paragraph is a message, and the answer to the second message has begun when it is stopped.
#[tokio::test]
async fn a_stop_leaves_the_answer_to_the_message_before_the_one_that_is_stopped() {
    for in_blocks in [false, true] {
        let gates = [Gate::new(), Gate::new()];
        let held = gates.clone();
        let model = ModelServer::answering(move |request| match words(request).join(" ").as_str() {
            "one" => Reply::text("re one").after(Step::Wait(held[0].clone())),
            _ => Reply::steps([Step::Text("the beginning".to_owned()), Step::Wait(held[1].clone())]),
        })
        .await;
        let server = TelegramServer::start().await;
        let mut section = open();
        if in_blocks {
            section["blockStreaming"] = json!(true);
        }
        let gateway = bot(&server, &model, section, queue(&json!({"mode": "steer", "debounceMs": 1}))).await;
        begin(&server, &model).await;
        push(&server, &gateway, from(5, 2, "two")).await;
        gates[0].open();
        model.arrived(2).await;
        server.push(from(5, 3, "/stop"));
        let both = |made: &[Value]| {
            ["re one", "⚙️ Agent was aborted."]
                .iter()
                .all(|text| made.iter().any(|made| made["text"] == *text))
        };
        server.has_made("the answer, and that it was stopped", both).await;
        for (id, state) in [(1, "ok"), (2, "aborted")] {
            traced(&gateway, id, |event| event["run"]["state"] == state).await;
        }
        assert_eq!(texts(&server).len(), 2, "{:?}", texts(&server));
    }
}

#[tokio::test]
async fn an_interrupting_message_takes_the_place_of_the_run_and_of_what_waits() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let gateway = bot(&server, &model, open(), queue(&json!({"mode": "interrupt"}))).await;
    begin(&server, &model).await;
    server.push(from(5, 2, "two"));
    // A message that was stopped was said all the same.
    seen(&server, &["re one two"]).await;
    let one = traced(&gateway, 1, |event| event["run"]["state"] == "aborted").await;
    assert_eq!(one["run"]["error"], "interrupt");
    assert_eq!(asked(&model), ["one", "one two"]);
}

#[tokio::test]
async fn a_new_conversation_ends_the_run_of_the_old_one() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let section = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    let gateway = bot(&server, &model, section, queue(&json!({"debounceMs": 60_000}))).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    server.push(from(5, 3, "/new three\n"));
    server.has_made("the answer", |made| made.iter().any(|made| made["text"] == "re three")).await;
    for id in [1, 2] {
        traced(&gateway, id, |event| event["run"]["state"] == "aborted").await;
    }
    assert_eq!(asked(&model), ["one", "three"]);
}

#[tokio::test]
async fn a_full_queue_drops_by_its_rule_and_says_so() {
    let rows: [(&str, &str, &[&str], i64, &str); 4] = [
        ("new", "followup", &["one", "two", "three"], 4, "queue-cap-new"),
        ("old", "followup", &["one", "three", "four"], 2, "queue-cap-old"),
        ("summarize", "followup", &["one", "", "three", "four"], 2, "queue-cap-summarized"),
        ("summarize", "collect", &["one", "three four"], 2, "queue-cap-summarized"),
    ];
    for (drop, mode, expect, dropped, rule) in rows {
        let gate = Gate::new();
        let (server, model) = (TelegramServer::start().await, echo(&gate).await);
        let settings = queue(&json!({"mode": mode, "debounceMs": 1, "cap": 2, "drop": drop}));
        let gateway = bot(&server, &model, open(), settings).await;
        begin(&server, &model).await;
        for (id, word) in [(2, "two"), (3, "three"), (4, "four")] {
            push(&server, &gateway, from(5, id, word)).await;
        }
        let event = traced(&gateway, dropped, |event| event["fate"] == "dropped").await;
        assert_eq!(event["reason"], rule, "{drop} {mode}");
        gate.open();
        model.arrived(expect.len()).await;
        let answers: Vec<String> =
            expect.iter().map(|words| format!("re {words}").trim_end().to_owned()).collect();
        let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
        seen(&server, &answers).await;
        assert_eq!(asked(&model), expect, "{drop} {mode}");
        let told = "[Queue overflow] Dropped 1 message due to cap.\nSummary:\n- two";
        let is_told = |request: &Captured| last_said(request).contains(told);
        let summaries = model.requests().iter().filter(|request| is_told(request)).count();
        assert_eq!(summaries, usize::from(drop == "summarize"), "{drop} {mode}");
        assert_eq!(gateway.fates().await.unwrap(), json!({"dropped": 1, "run": 3}), "{drop} {mode}");
    }
}

#[tokio::test]
async fn a_client_is_told_that_its_message_was_dropped() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| Reply::text("done").after(Step::Wait(held.clone()))).await;
    let config = queue(&json!({"cap": 1, "drop": "new"}));
    let gateway = crate::gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for run in ["r1", "r2", "r3"] {
        client.request("chat.send", message("main", "hi", run)).await.unwrap();
        if run == "r1" {
            model.arrived(1).await;
        }
    }
    let told = client.event("chat", |payload| payload["runId"] == "r3").await.unwrap();
    assert_eq!(told["state"], "error");
    let why = told["errorMessage"].as_str().unwrap();
    assert!(why.contains("queue-cap-new") && why.contains("Send it again later"), "{why}");
    let waited = client.request("agent.wait", json!({"runId": "r3", "timeoutMs": 20_000})).await.unwrap();
    assert_eq!(waited["status"], "error");
    gate.open();
    for run in ["r1", "r2"] {
        let waited = client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap();
        assert_eq!(waited["status"], "ok", "{run}");
    }
}

/// A message of a client of which the agent is told in a summary has one end, that it was dropped, also where
/// a crash comes before the summary; its trace says so. In the second row nothing is left but the summary.
#[tokio::test]
async fn a_message_of_a_client_that_is_summarised_ends_as_dropped_alone() {
    for (mode, crashes) in [("collect", false), ("collect", true), ("followup", false), ("followup", true)] {
        let gate = Gate::new();
        let held = gate.clone();
        let model =
            ModelServer::answering(move |_| Reply::text("done").after(Step::Wait(held.clone()))).await;
        let config = queue(&json!({"mode": mode, "debounceMs": 1, "cap": 1, "drop": "summarize"}));
        let mut gateway = crate::gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        for run in ["r1", "r2", "r3"] {
            client.request("chat.send", message("main", run, run)).await.unwrap();
            if run == "r1" {
                model.arrived(1).await;
            }
        }
        let told = end(&mut client, "r2").await;
        assert_eq!(told["state"], "error", "{told}");
        let traced = client.request("trace", json!({"id": "r2"})).await.unwrap()["runs"][0].clone();
        assert_eq!((&traced["dropped"], &traced["state"]), (&json!(true), &json!("error")), "{traced:#}");
        if crashes {
            gateway.crash_and_restart().await.unwrap();
            client = gateway.client().await.unwrap();
        }
        gate.open();
        for (run, status) in [("r1", "ok"), ("r3", "ok"), ("r2", "error")] {
            let wait = json!({"runId": run, "timeoutMs": 20_000});
            let ended = client.request("agent.wait", wait).await.unwrap();
            assert_eq!(ended["status"], status, "{mode}, crash: {crashes}, {run}: {ended}");
        }
        let runs = if mode == "collect" { 2 } else { 3 };
        model.arrived(runs + usize::from(crashes)).await;
        let summary = "[Queue overflow] Dropped 1 message due to cap.\nSummary:\n- r2";
        let told = model.requests().iter().filter(|request| last_said(request).contains(summary)).count();
        assert_eq!(told, 1, "{mode}, crash: {crashes}");
        gateway.crash_and_restart().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        let ended = client.request("agent.wait", json!({"runId": "r2"})).await.unwrap();
        assert_eq!(ended["status"], "error", "{mode}, crash: {crashes}: {ended}");
        let traced = ok(&gateway, &["trace", "r2"]).await;
        assert!(
            traced.contains("dropped by a full queue") && traced.contains("queue-cap-summarized"),
            "{traced}"
        );
        assert!(!traced.contains("whose answer is its answer"), "{traced}");
    }
}

/// The run of a summary that a start takes up again tells no second end of the dropped message that
/// leads it, and a stop names only what it has ended: the answer has a stream of its own.
#[tokio::test]
async fn a_summary_that_is_taken_up_again_tells_no_end_of_a_dropped_message() {
    for (crashes, stops) in [(true, false), (true, true), (false, true)] {
        let (first, second) = (Gate::new(), Gate::new());
        let (of_first, of_summary) = (first.clone(), second.clone());
        let model = ModelServer::answering(move |request| {
            let gate = if last_said(request).contains("[Queue overflow]") { &of_summary } else { &of_first };
            Reply::text("done").after(Step::Wait(gate.clone()))
        })
        .await;
        let config = queue(&json!({"mode": "followup", "debounceMs": 1, "cap": 1, "drop": "summarize"}));
        let mut gateway = crate::gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        for run in ["r1", "r2", "r3", "r4"] {
            send(&mut client, "main", run, run).await;
            if run == "r1" {
                model.arrived(1).await;
            }
        }
        for run in ["r2", "r3"] {
            assert_eq!(end(&mut client, run).await["state"], "error", "{run}");
        }
        first.open();
        model.arrived(2).await;
        assert_eq!(end(&mut client, "r1").await["state"], "final");
        client.take_passed();
        if crashes {
            gateway.crash_and_restart().await.unwrap();
            client = gateway.client().await.unwrap();
            model.arrived(3).await;
        }
        if stops {
            let stopped = client.request("chat.abort", json!({"sessionKey": "main"})).await.unwrap();
            assert_eq!(stopped["aborted"], true, "{stopped}");
            let told = stopped["runIds"].as_array().unwrap();
            assert!(told.contains(&json!("r4")) && !told.contains(&json!("r3")), "{stopped}");
            assert_eq!(told.len(), 2, "the stream of the summary is named: {stopped}");
        }
        second.open();
        let last = end(&mut client, "r4").await;
        assert_eq!(last["state"], if stops { "aborted" } else { "final" }, "crash: {crashes}: {last}");
        let told = json!({"runId": "r3", "timeoutMs": 20_000});
        let told = client.request("agent.wait", told).await.unwrap();
        assert!(told["error"].as_str().unwrap().contains("queue-cap-summarized"), "{told}");
        let of_dropped = |frame: &Value| ["r2", "r3"].iter().any(|run| frame["payload"]["runId"] == *run);
        let mut passed = client.take_passed();
        passed.retain(of_dropped);
        assert_eq!(passed, [Value::Null; 0], "crash: {crashes}, stop: {stops}");
    }
}

/// A message that was steered in behind a whole answer is at its tools when the gateway dies: it is resumed
/// before the messages that waited, told of in a summary or not, and no call is made twice.
#[tokio::test]
async fn a_steered_message_at_its_tools_is_resumed_before_what_waits() {
    for drop in ["summarize", "old"] {
        let (first, second) = (Gate::new(), Gate::new());
        let (of_first, of_second) = (first.clone(), second.clone());
        let model = ModelServer::answering(move |request| {
            let words = words(request);
            let done = Reply::text(&format!("re {}", words.join(" ")));
            match words.first().map(String::as_str) {
                Some("one") => done.after(Step::Wait(of_first.clone())),
                Some("two") if request.ends_with_tool_result() => done.after(Step::Wait(of_second.clone())),
                Some("two") => Reply::tool("c1", "exec", &json!({"command": "echo effect >> effects.txt"})),
                _ => done,
            }
        })
        .await;
        let server = TelegramServer::start().await;
        let settings = queue(&json!({"mode": "steer", "debounceMs": 1, "cap": 1, "drop": drop}));
        let mut gateway = bot(&server, &model, open(), settings).await;
        let mut client = gateway.client().await.unwrap();
        send(&mut client, "main", "one", "r1").await;
        model.arrived(1).await;
        send(&mut client, "main", "two", "r2").await;
        end(&mut client, "r2").await;
        first.open();
        model.arrived(3).await;
        for (id, word) in [(3, "three"), (4, "four"), (5, "five")] {
            push(&server, &gateway, from(5, id, word)).await;
        }
        traced(&gateway, 4, |event| event["fate"] == "dropped").await;
        gateway.crash_and_restart().await.unwrap();
        model.arrived(4).await;
        second.open();
        let mut client = gateway.client().await.unwrap();
        for run in ["r1", "r2"] {
            let ended =
                client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap();
            assert_eq!(ended["status"], "ok", "{drop}, {run}: {ended}");
        }
        let expect: &[&str] = if drop == "summarize" { &["re ", "re five"] } else { &["re five"] };
        server.has_made("re five", |made| made.iter().any(|made| made["text"] == "re five")).await;
        let expect: Vec<&str> = expect.iter().map(|text| text.trim_end()).collect();
        assert_eq!(texts(&server), expect, "{drop}");
        let expect: &[&str] = if drop == "summarize" { &["", "five"] } else { &["five"] };
        assert_eq!(asked(&model), [&["one", "two", "two", "two"], expect].concat(), "{drop}");
        let effects = std::fs::read_to_string(gateway.state_dir().join("workspace/effects.txt")).unwrap();
        assert_eq!(effects, "effect\n", "{drop}");
    }
}

/// A message that was dropped counts as new under its own key, in the same process and after a crash;
/// one that was answered does not.
#[tokio::test]
async fn a_dropped_message_is_taken_again_under_its_key() {
    for (drop, dropped) in [("old", "r2"), ("new", "r3")] {
        let gate = Gate::new();
        let held = gate.clone();
        let model =
            ModelServer::answering(move |_| Reply::text("done").after(Step::Wait(held.clone()))).await;
        let config = queue(&json!({"mode": "followup", "debounceMs": 1, "cap": 1, "drop": drop}));
        let mut gateway = crate::gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        for run in ["r1", "r2", "r3"] {
            client.request("chat.send", message("main", run, run)).await.unwrap();
            if run == "r1" {
                model.arrived(1).await;
            }
        }
        let told = client.event("chat", |payload| payload["runId"] == dropped).await.unwrap();
        assert_eq!(told["state"], "error", "{drop}");
        gate.open();
        let wait = json!({"runId": if dropped == "r2" { "r3" } else { "r2" }, "timeoutMs": 20_000});
        assert_eq!(client.request("agent.wait", wait).await.unwrap()["status"], "ok", "{drop}");
        gateway.crash_and_restart().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        for expect in ["started", "ok"] {
            let sent = client.request("chat.send", message("main", dropped, dropped)).await.unwrap();
            assert_eq!(sent["status"], expect, "{drop}");
            let wait = json!({"runId": dropped, "timeoutMs": 20_000});
            assert_eq!(client.request("agent.wait", wait).await.unwrap()["status"], "ok", "{drop}");
        }
        let said: Vec<String> = model.requests().iter().map(last_said).collect();
        assert_eq!(said.iter().filter(|said| said.contains(dropped)).count(), 1, "{drop}: {said:?}");
    }
}

/// Messages of people in all transcripts.
fn said(gateway: &GatewayUnderTest) -> Vec<String> {
    let dir = gateway.state_dir().join("agents/main/sessions");
    let mut said = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let entry: Value = serde_json::from_str(line).unwrap();
            if entry["message"]["role"] == "user" {
                said.push(entry["message"]["content"][0]["text"].as_str().unwrap().to_owned());
            }
        }
    }
    said
}

/// Both are in one message of the history, once.
fn stand_together_once(gateway: &GatewayUnderTest) {
    let said = said(gateway);
    for word in ["two", "three"] {
        let with = said.iter().filter(|said| said.contains(&format!("] {word}\n"))).count();
        assert_eq!(with, 1, "{word} in {said:#?}");
    }
    assert!(
        said.iter()
            .any(|said| said.starts_with(TITLE) && said.contains("] two\n") && said.contains("] three\n"))
    );
}

#[tokio::test]
async fn a_crash_while_it_is_waited_for_quiet_loses_nothing() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let mut gateway = bot(&server, &model, open(), queue(&json!({"debounceMs": 3_000}))).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    push(&server, &gateway, from(5, 3, "three")).await;
    gate.open();
    seen(&server, &["re one"]).await;
    is_sent(&gateway, 1).await;
    gateway.crash_and_restart().await.unwrap();
    seen(&server, &["re one", "re two three"]).await;
    assert_eq!(asked(&model), ["one", "two three"]);
    stand_together_once(&gateway);
}

#[tokio::test]
async fn a_message_that_comes_while_it_is_waited_for_quiet_is_answered_with_the_others() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let gateway = bot(&server, &model, open(), queue(&json!({"debounceMs": 3_000}))).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    gate.open();
    seen(&server, &["re one"]).await;
    push(&server, &gateway, from(5, 3, "three")).await;
    seen(&server, &["re one", "re two three"]).await;
}

/// A gateway whose model answers two messages together only once the second gate is open.
async fn working_on_both(gates: &[Gate; 2]) -> (TelegramServer, ModelServer, GatewayUnderTest) {
    let held = gates.clone();
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(move |request| {
        let words = words(request);
        let gate = if words == ["one"] { held[0].clone() } else { held[1].clone() };
        Reply::text(&format!("re {}", words.join(" "))).after(Step::Wait(gate))
    })
    .await;
    let section = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    let gateway = bot(&server, &model, section, queue(&json!({"debounceMs": 1}))).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    push(&server, &gateway, from(5, 3, "three")).await;
    gates[0].open();
    model.arrived(2).await;
    is_sent(&gateway, 1).await;
    (server, model, gateway)
}

#[tokio::test]
async fn a_crash_while_they_are_worked_on_asks_them_again_together() {
    let gates = [Gate::new(), Gate::new()];
    let (server, model, mut gateway) = working_on_both(&gates).await;
    gateway.kill().await.unwrap();
    gates[1].open();
    gateway.start().await.unwrap();
    seen(&server, &["re one", "re two three"]).await;
    assert_eq!(asked(&model), ["one", "two three", "two three"]);
    for id in [2, 3] {
        traced(&gateway, id, |event| event["run"]["state"] == "ok").await;
    }
    stand_together_once(&gateway);
}

#[tokio::test]
async fn a_crash_after_their_answer_is_stored_sends_it_once() {
    let gates = [Gate::new(), Gate::new()];
    let (server, model, mut gateway) = working_on_both(&gates).await;
    server.fail("sendMessage", CallFault::Slower(2));
    gates[1].open();
    traced(&gateway, 3, |event| event["run"]["state"] == "ok").await;
    traced(&gateway, 2, |event| event["run"]["state"] == "ok").await;
    gateway.crash_and_restart().await.unwrap();
    seen(&server, &["re one", "re two three"]).await;
    server.all_confirmed().await;
    assert_eq!(asked(&model), ["one", "two three"]);
    stand_together_once(&gateway);
}

#[tokio::test]
async fn a_stop_ends_all_that_are_worked_on_together() {
    let gates = [Gate::new(), Gate::new()];
    let (server, model, mut gateway) = working_on_both(&gates).await;
    server.push(from(5, 4, "stop"));
    seen(&server, &["re one", "⚙️ Agent was aborted."]).await;
    for id in [2, 3] {
        let event = traced(&gateway, id, |event| event["run"]["state"] == "aborted").await;
        assert_eq!(event["run"]["error"], "stop");
    }
    gates[1].open();
    gateway.crash_and_restart().await.unwrap();
    server.push(from(5, 5, "four"));
    seen_but_for_repeats(&server, &["re one", "⚙️ Agent was aborted.", "re two three four"]).await;
    assert_eq!(asked(&model), ["one", "two three", "two three four"]);
    stand_together_once(&gateway);
}

#[tokio::test]
async fn a_stop_ends_what_waits_for_quiet() {
    let gate = Gate::new();
    let (server, model) = (TelegramServer::start().await, echo(&gate).await);
    let section = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    let mut gateway = bot(&server, &model, section, queue(&json!({"debounceMs": 60_000}))).await;
    begin(&server, &model).await;
    push(&server, &gateway, from(5, 2, "two")).await;
    push(&server, &gateway, from(5, 3, "three")).await;
    gate.open();
    seen(&server, &["re one"]).await;
    server.push(from(5, 4, "stop"));
    seen(&server, &["re one", "⚙️ Agent was aborted."]).await;
    for id in [2, 3] {
        traced(&gateway, id, |event| event["run"]["state"] == "aborted").await;
    }
    gateway.crash_and_restart().await.unwrap();
    for id in [2, 3] {
        traced(&gateway, id, |event| event["run"]["state"] == "aborted").await;
    }
    server.push(from(5, 5, "four"));
    seen_but_for_repeats(&server, &["re one", "⚙️ Agent was aborted.", "re two three four"]).await;
    assert_eq!(asked(&model), ["one", "two three four"]);
}
