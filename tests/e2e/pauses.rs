//! The pauses between the blocks of an answer, and what is shown to whoever waits.

use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, ScriptedCall, ScriptedUsage, Step};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::config::merge;
use crate::support::telegram::{bot, last_said, open};
use crate::support::trace::{numbered, traced};

const BLOCKS: [&str; 3] = [
    "The first of them is here, look.",
    "And here is another one, as nice as that.",
    "That was all there is, I think.",
];
const NOTE: &str = "Note: the user stopped the run before this message.";
const STOPPED: &str = "⚙️ Agent was aborted.";

/// Config in which each paragraph is a message, with this pause before it. Only one run at a time.
fn with_pauses(ms: u64) -> (Value, Value) {
    let mut section = open();
    let coalesce = json!({"minChars": 1, "maxChars": 60, "idleMs": 10});
    merge(&mut section, json!({"blockStreaming": true, "blockStreamingCoalesce": coalesce}));
    let rest = json!({"agents": {"defaults": {
        "blockStreamingChunk": {"minChars": 20, "maxChars": 100, "breakPreference": "newline"},
        "humanDelay": {"mode": "custom", "minMs": ms, "maxMs": ms},
        "maxConcurrent": 1,
        "typingIntervalSeconds": 1,
    }}});
    (section, rest)
}

/// Longer than any test.
const ENDLESS: u64 = 500_000;

fn texts_to(server: &TelegramServer, chat: i64) -> Vec<String> {
    let to_them = server.made().into_iter().filter(|made| made["chat_id"] == chat);
    to_them.map(|made| made["text"].as_str().unwrap_or_default().trim().to_owned()).collect()
}

async fn said_to(server: &TelegramServer, chat: i64, text: &str) {
    let is_it = |made: &Value| {
        made["chat_id"] == chat && made["text"].as_str().is_some_and(|said| said.contains(text))
    };
    server.has_made(text, |made| made.iter().any(is_it)).await;
}

/// Number of typing signals shown in a chat.
fn shown_in(server: &TelegramServer, chat: i64) -> usize {
    server.calls("sendChatAction").iter().filter(|call| call.params["chat_id"] == chat).count()
}

/// Waits until it was shown so often.
async fn is_shown(server: &TelegramServer, chat: i64, times: usize) {
    let mut calls = server.calls("sendChatAction").len();
    while shown_in(server, chat) < times {
        calls += 1;
        server.nth_call("sendChatAction", calls).await;
    }
}

fn deliveries(event: &Value) -> Vec<Value> {
    event["run"]["deliveries"].as_array().cloned().unwrap_or_default()
}

/// Numbers of an answer's deliveries that were sent, and that were taken back.
fn sent_and_taken_back(event: &Value) -> (usize, usize) {
    let all = deliveries(event);
    let sent = all.iter().filter(|one| one["state"] == "sent").count();
    (sent, all.iter().filter(|one| one["discarded"] == true).count())
}

/// Spec `streaming.md` §4.
#[tokio::test]
async fn a_pause_holds_nobody_up() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| match last_said(request).contains("tell me") {
        true => Reply::deltas(BLOCKS.join("\n\n").split_inclusive(' ')),
        false => Reply::text("yes"),
    })
    .await;
    let (section, rest) = with_pauses(ENDLESS);
    let gateway = bot(&server, &model, section, rest).await;
    server.push(private_message(5, "tell me"));
    said_to(&server, 5, BLOCKS[0]).await;
    let event = traced(&gateway, 11, |event| event["run"]["state"] == "ok").await;
    assert_eq!(sent_and_taken_back(&event), (1, 0), "the run is over: {event}");
    let shown = shown_in(&server, 5);
    is_shown(&server, 5, shown + 2).await;
    // Neither their session nor the only place is held.
    server.push(numbered(private_message(6, "hello"), 12));
    said_to(&server, 6, "yes").await;
}

/// A stop behind the end of a run takes nothing back of its answer, which clients know whole.
#[tokio::test]
async fn an_answer_that_is_whole_is_sent_whole_although_somebody_says_stop() {
    for by in ["stop", "chat.abort"] {
        let server = TelegramServer::start().await;
        let model = ModelServer::answering(|_| Reply::deltas(BLOCKS.join("\n\n").split_inclusive(' '))).await;
        let (section, rest) = with_pauses(2_000);
        let gateway = bot(&server, &model, section, rest).await;
        server.push(private_message(5, "tell me"));
        traced(&gateway, 11, |event| event["run"]["state"] == "ok").await;
        if by == "stop" {
            server.push(numbered(private_message(5, "stop"), 12));
        } else {
            let mut client = gateway.client().await.unwrap();
            let stopped = client.request("chat.abort", json!({"sessionKey": "main"})).await.unwrap();
            assert_eq!((&stopped["aborted"], &stopped["runIds"]), (&json!(false), &json!([])), "{stopped}");
        }
        traced(&gateway, 11, |event| sent_and_taken_back(event) == (3, 0)).await;
        let mut expect = BLOCKS.to_vec();
        if by == "stop" {
            said_to(&server, 5, STOPPED).await;
            expect.push(STOPPED);
        }
        assert_eq!(texts_to(&server, 5), expect);
    }
}

/// A run that is over is cut short like one under way by whatever takes its place (spec `queue.md` §3).
#[tokio::test]
async fn what_takes_the_place_of_an_answer_takes_back_what_is_left_of_it() {
    for by in ["/new", "interrupt", "sessions.reset"] {
        let server = TelegramServer::start().await;
        let model = ModelServer::answering(|request| match last_said(request).contains("tell me") {
            true => Reply::deltas(BLOCKS.join("\n\n").split_inclusive(' ')),
            false => Reply::text("yes"),
        })
        .await;
        let (section, mut rest) = with_pauses(ENDLESS);
        if by == "interrupt" {
            merge(&mut rest, json!({"messages": {"queue": {"mode": "interrupt"}}}));
        }
        let gateway = bot(&server, &model, section, rest).await;
        server.push(private_message(5, "tell me"));
        said_to(&server, 5, BLOCKS[0]).await;
        traced(&gateway, 11, |event| event["run"]["state"] == "ok").await;
        let next = match by {
            "/new" => "/new",
            "interrupt" => "no, something else",
            _ => {
                let mut client = gateway.client().await.unwrap();
                client.request("sessions.reset", json!({"key": "main"})).await.unwrap();
                "hello again"
            }
        };
        server.push(numbered(private_message(5, next), 12));
        said_to(&server, 5, "yes").await;
        traced(&gateway, 11, |event| sent_and_taken_back(event) == (1, 2)).await;
        let texts = texts_to(&server, 5);
        assert!(!texts.iter().any(|text| BLOCKS[1..].contains(&text.as_str())), "{by}: {texts:?}");
        let asked = model.requests();
        assert!(!last_said(asked.last().unwrap()).contains(NOTE), "{by}: nobody has stopped it");
    }
}

#[tokio::test]
async fn a_run_that_is_stopped_says_none_of_its_blocks_that_pause() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| {
        let answer = BLOCKS.join("\n\n");
        let words: Vec<Step> = answer.split_inclusive(' ').map(|word| Step::Text(word.to_owned())).collect();
        // In the middle of the last one.
        let (begin, end) = words.split_at(words.len() - 2);
        Reply::steps(begin.iter().cloned().chain([Step::Wait(held.clone())]).chain(end.iter().cloned()))
    })
    .await;
    let (section, rest) = with_pauses(ENDLESS);
    let gateway = bot(&server, &model, section, rest).await;
    server.push(private_message(5, "tell me"));
    traced(&gateway, 11, |event| deliveries(event).len() == 2 && sent_and_taken_back(event).0 == 1).await;
    server.push(numbered(private_message(5, "stop"), 12));
    said_to(&server, 5, STOPPED).await;
    traced(&gateway, 11, |event| sent_and_taken_back(event) == (1, 1)).await;
    assert_eq!(texts_to(&server, 5), [BLOCKS[0], STOPPED]);
}

#[tokio::test]
async fn what_pauses_is_sent_once_and_in_order_also_after_a_crash() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::deltas(BLOCKS.join("\n\n").split_inclusive(' '))).await;
    let (section, rest) = with_pauses(2_000);
    let mut gateway = bot(&server, &model, section, rest).await;
    server.push(private_message(5, "tell me"));
    // If the process dies before a receipt is stored, nobody can tell whether the message arrived.
    traced(&gateway, 11, |event| event["run"]["state"] == "ok" && sent_and_taken_back(event).0 > 0).await;
    gateway.kill().await.unwrap();
    gateway.start().await.unwrap();
    traced(&gateway, 11, |event| sent_and_taken_back(event) == (3, 0)).await;
    assert_eq!(texts_to(&server, 5), BLOCKS);
    assert_eq!(model.requests().len(), 1);
}

/// Spec `streaming.md` §1.
#[tokio::test]
async fn a_text_goes_out_at_its_end_while_the_arguments_of_a_call_are_written() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| {
        let call = ScriptedCall {
            id: "c1".to_owned(),
            name: "read".to_owned(),
            arguments: json!({"path": "a-long-name.txt"}).to_string(),
        };
        let text = Step::Text("I will look that up.".to_owned());
        Reply::steps([text, Step::HalfToolCall(call), Step::Wait(held.clone())])
    })
    .await;
    let mut section = open();
    merge(&mut section, json!({"blockStreaming": true, "chunkMode": "newline"}));
    let gateway = bot(&server, &model, section, json!({})).await;
    server.push(private_message(5, "look"));
    said_to(&server, 5, "I will look that up.").await;
    let event = traced(&gateway, 11, |event| sent_and_taken_back(event).0 == 1).await;
    assert_ne!(event["run"]["state"], "ok", "it is under way: {event}");
    gate.open();
}

/// Spec `streaming.md` §10.
#[tokio::test]
async fn the_last_draft_is_all_of_the_answer_and_comes_before_it() {
    for mode in ["partial", "block"] {
        let server = TelegramServer::start().await;
        let answer = "A sentence that goes on for some time. And one more of them, and then the end of it.";
        let model = ModelServer::answering(|_| Reply::deltas(answer.split_inclusive(' '))).await;
        let mut section = open();
        let chunk = json!({"minChars": 10, "maxChars": 30, "breakPreference": "sentence"});
        merge(&mut section, json!({"streamMode": mode, "draftChunk": chunk}));
        let _gateway = bot(&server, &model, section, json!({})).await;
        let mut update = private_message(5, "tell me");
        update["message"]["message_thread_id"] = json!(9);
        update["message"]["is_topic_message"] = json!(true);
        server.push(update);
        server.nth_answer("sendMessage", 1).await;
        let drafts = server.calls("sendMessageDraft");
        let said: Vec<&str> = drafts.iter().filter_map(|draft| draft.params["text"].as_str()).collect();
        assert_eq!(said.last(), Some(&answer), "{mode}: {said:?}");
        assert!(said.iter().all(|draft| answer.starts_with(draft)), "{mode}: {said:?}");
        let order: Vec<String> = server.all_calls().into_iter().map(|call| call.method).collect();
        let at = |method: &str| order.iter().rposition(|made| made == method).unwrap();
        assert!(at("sendMessageDraft") < at("sendMessage"), "{order:?}");
    }
}

/// Config with one run at a time, and a session for each person.
fn one_place() -> Value {
    json!({
        "session": {"dmScope": "per-peer"},
        "messages": {"queue": {"mode": "followup", "debounceMs": 0}},
        "agents": {"defaults": {"maxConcurrent": 1, "typingIntervalSeconds": 1}},
    })
}

/// Spec `queue.md` §1: concurrency is applied on reload, long waits are told; seeds: it is shown that somebody writes.
#[tokio::test]
async fn whoever_waits_sees_it_and_hears_of_it_and_a_new_place_is_there_at_once() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |request| {
        let reply = Reply::text("done");
        if last_said(request).contains("one") { reply.after(Step::Wait(held.clone())) } else { reply }
    })
    .await;
    let gateway = bot(&server, &model, open(), one_place()).await;
    for (person, id) in [(5, 1), (6, 2)] {
        server.push(numbered(private_message(person, "/verbose on"), id));
        said_to(&server, person, "Verbose logging enabled").await;
    }
    assert_eq!(shown_in(&server, 6), 0);
    server.push(numbered(private_message(5, "one"), 3));
    model.arrived(1).await;
    server.push(numbered(private_message(5, "behind it"), 4));
    traced(&gateway, 4, |event| event["run"]["state"] == "waiting" || event["fate"] == "run").await;
    server.push(numbered(private_message(6, "without a place"), 5));
    // Once a second: by the last time it has waited for long enough to be told.
    is_shown(&server, 6, 4).await;
    assert_eq!(model.requests().len(), 1);
    let path = gateway.state_dir().join("openclaw.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["agents"]["defaults"]["maxConcurrent"] = json!(2);
    std::fs::write(&path, config.to_string()).unwrap();
    model.arrived(2).await;
    said_to(&server, 6, " s for a free place in lane main.").await;
    gateway.logged("lane wait exceeded: lane=main waitedMs=").await.unwrap();
    gate.open();
    said_to(&server, 5, " s behind another run of this session.").await;
    gateway.logged("lane wait exceeded: lane=session:agent:main:").await.unwrap();
}

fn is_flush(request: &Captured) -> bool {
    last_said(request).contains("Before the conversation is compacted")
}

#[tokio::test]
async fn somebody_writes_while_memory_is_saved_and_a_stop_then_is_noted() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |request| match is_flush(request) {
        true => Reply::text("NO_REPLY").after(Step::Wait(held.clone())),
        false => Reply::text("yes").usage(ScriptedUsage { input: 9_000, ..ScriptedUsage::default() }),
    })
    .await;
    let gateway = bot(&server, &model, open(), one_place()).await;
    server.push(numbered(private_message(5, "hello"), 1));
    traced(&gateway, 1, |event| sent_and_taken_back(event).0 == 1).await;
    let shown = shown_in(&server, 5);
    server.push(numbered(private_message(5, "drop the tables"), 2));
    model.arrived(2).await;
    assert!(is_flush(&model.requests()[1]), "{:?}", last_said(&model.requests()[1]));
    is_shown(&server, 5, shown + 3).await;
    server.push(numbered(private_message(5, "stop"), 3));
    said_to(&server, 5, STOPPED).await;
    gate.open();
    server.push(numbered(private_message(5, "more"), 4));
    traced(&gateway, 4, |event| event["run"]["state"] == "ok").await;
    let asked = model.requests();
    let last = last_said(asked.last().unwrap());
    assert!(last.contains(NOTE) && last.contains("more"), "{last}");
}
