//! A message that is steered into a run which uses tools: each message has its own answer, by words or by the `message` tool, once, whether
//! the gateway goes on, is stopped, or dies.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, ScriptedCall, Step};
use openclaw_testkit::telegram::{CallFault, TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::telegram::{bot, last_said, open, texts};
use crate::support::trace::{numbered, traced};

const ONE_BY_TOOL: &str = "answer to one, by tool";
const TWO_BY_TOOL: &str = "answer to two, by tool";
const ONE: &str = "answer to one, in words";
const TWO: &str = "answer to two, in words";

fn send(text: &str) -> Value {
    json!({"action": "send", "message": text})
}

fn call(id: &str, name: &str, args: &Value) -> Step {
    Step::ToolCalls(vec![ScriptedCall::new(id, name, args)])
}

fn read(id: &str) -> Step {
    call(id, "read", &json!({"path": "no-such-file"}))
}

/// Waits for as many messages of the bot, and says which they are.
async fn sent(server: &TelegramServer, count: usize) -> Vec<String> {
    server.has_made("all answers", |made| made.len() >= count).await;
    texts(server)
}

/// Stage of the run: the last message it was told, and the number of tool results it has had since.
fn stage(request: &Captured) -> (&'static str, usize) {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let results = messages.iter().rev().take_while(|message| message["role"] != "user");
    let results = results.filter(|message| message["role"] == "tool").count();
    (if last_said(request).contains("two") { "two" } else { "one" }, results)
}

async fn gateway(server: &TelegramServer, model: &ModelServer, blocks: bool, mode: &str) -> GatewayUnderTest {
    let mut section = open();
    section["blockStreaming"] = json!(blocks);
    bot(server, model, section, json!({"messages": {"queue": {"mode": mode, "debounceMs": 1}}})).await
}

/// Says a word in private, and waits until it is in its session's queue.
async fn say(server: &TelegramServer, gateway: &GatewayUnderTest, id: i64, word: &str) {
    server.push(numbered(private_message(5, word), id));
    traced(gateway, id, |event| event["fate"] == "run").await;
}

async fn both_have_ended(gateway: &GatewayUnderTest) {
    for id in [1, 2] {
        traced(gateway, id, |event| event["run"]["state"] == "ok").await;
    }
}

#[tokio::test]
async fn an_answer_by_tool_is_none_to_the_message_that_was_steered_in_behind_it() {
    for blocks in [false, true] {
        let (server, gate) = (TelegramServer::start().await, Gate::new());
        let held = gate.clone();
        let model = ModelServer::answering(move |request| match stage(request) {
            ("one", 0) => Reply::steps([call("c1", "message", &send(ONE_BY_TOOL))]),
            ("one", 1) => Reply::steps([read("c2")]).after(Step::Wait(held.clone())),
            ("two", _) => Reply::text(TWO),
            _ => Reply::text("all done"),
        })
        .await;
        let gateway = gateway(&server, &model, blocks, "steer").await;
        say(&server, &gateway, 1, "one").await;
        model.arrived(2).await;
        say(&server, &gateway, 2, "two").await;
        gate.open();
        both_have_ended(&gateway).await;
        assert_eq!(sent(&server, 2).await, [ONE_BY_TOOL, TWO], "blocks: {blocks}");
    }
}

#[tokio::test]
async fn an_answer_in_words_is_told_where_the_next_message_is_answered_by_tool() {
    for blocks in [false, true] {
        let (server, gate) = (TelegramServer::start().await, Gate::new());
        let held = gate.clone();
        let model = ModelServer::answering(move |request| match stage(request) {
            ("one", _) => Reply::text(ONE).after(Step::Wait(held.clone())),
            ("two", 0) => Reply::steps([call("c1", "message", &send(TWO_BY_TOOL))]),
            _ => Reply::text("NO_REPLY"),
        })
        .await;
        let gateway = gateway(&server, &model, blocks, "steer").await;
        say(&server, &gateway, 1, "one").await;
        model.arrived(1).await;
        say(&server, &gateway, 2, "two").await;
        gate.open();
        both_have_ended(&gateway).await;
        let mut texts = sent(&server, 2).await;
        if !blocks {
            // The words come with the end of the run.
            texts.reverse();
        }
        assert_eq!(texts, [ONE, TWO_BY_TOOL], "blocks: {blocks}");
    }
}

/// Two messages may have the same answer.
#[tokio::test]
async fn the_same_words_are_said_to_each_message() {
    for blocks in [false, true] {
        let (server, gate) = (TelegramServer::start().await, Gate::new());
        let held = gate.clone();
        let model =
            ModelServer::answering(move |_| Reply::text("the same answer").after(Step::Wait(held.clone())))
                .await;
        let gateway = gateway(&server, &model, blocks, "steer").await;
        say(&server, &gateway, 1, "one").await;
        model.arrived(1).await;
        say(&server, &gateway, 2, "two").await;
        gate.open();
        both_have_ended(&gateway).await;
        assert_eq!(sent(&server, 2).await, ["the same answer"; 2], "blocks: {blocks}");
    }
}

/// End of a gateway.
#[derive(Debug, Clone, Copy)]
enum End {
    Killed,
    Stopped,
}

/// Words of the model, or what it sends, before a call; then a message is steered in, and the gateway ends while the model is asked with it.
#[tokio::test]
async fn what_was_said_before_a_call_outlives_a_stop_behind_a_steered_message() {
    for end in [End::Killed, End::Stopped] {
        for by_tool in [false, true] {
            let (server, gates) = (TelegramServer::start().await, [Gate::new(), Gate::new()]);
            let held = gates.clone();
            let model = ModelServer::answering(move |request| match (stage(request), by_tool) {
                (("one", 0), false) => {
                    Reply::steps([Step::Text(ONE.to_owned()), Step::Wait(held[0].clone()), read("c1")])
                }
                (("one", 0), true) => Reply::steps([call("c0", "message", &send(ONE_BY_TOOL))]),
                (("one", 1), true) => Reply::steps([Step::Wait(held[0].clone()), read("c1")]),
                (("two", _), _) => Reply::text(TWO).after(Step::Wait(held[1].clone())),
                _ => Reply::text("all done"),
            })
            .await;
            let mut gateway = gateway(&server, &model, false, "steer").await;
            say(&server, &gateway, 1, "one").await;
            let before = if by_tool { 2 } else { 1 };
            model.arrived(before).await;
            say(&server, &gateway, 2, "two").await;
            gates[0].open();
            model.arrived(before + 1).await;
            match end {
                End::Killed => gateway.kill().await.unwrap(),
                End::Stopped => drop(gateway.terminate().await.unwrap()),
            }
            gates[1].open();
            gateway.start().await.unwrap();
            both_have_ended(&gateway).await;
            let first = if by_tool { ONE_BY_TOOL } else { ONE };
            assert_eq!(sent(&server, 2).await, [first, TWO], "{end:?}, by tool: {by_tool}");
            let two = traced(&gateway, 2, |_| true).await;
            let one = traced(&gateway, 1, |_| true).await;
            assert_eq!(two["run"]["takenBy"], one["run"]["runId"], "{two:#}");
        }
    }
}

/// The platform was asked for what a call sends as the gateway died, and nobody knows what it did: the call is made again, by the run that
/// was under way or by the message's own, as the same delivery.
#[tokio::test]
async fn a_call_for_a_steered_message_is_one_delivery_in_both_processes() {
    for is_answered_before in [true, false] {
        let (server, gate) = (TelegramServer::start().await, Gate::new());
        let held = gate.clone();
        let model = ModelServer::answering(move |request| match (stage(request), is_answered_before) {
            (("one", 0), true) => Reply::text(ONE).after(Step::Wait(held.clone())),
            (("one", 0), false) => Reply::steps([read("c0")]).after(Step::Wait(held.clone())),
            (("two", 0), _) => Reply::steps([call("c1", "message", &send(TWO_BY_TOOL))]),
            _ => Reply::text("NO_REPLY"),
        })
        .await;
        let mut gateway = gateway(&server, &model, false, "steer").await;
        say(&server, &gateway, 1, "one").await;
        model.arrived(1).await;
        say(&server, &gateway, 2, "two").await;
        server.fail("sendMessage", CallFault::Silence);
        gate.open();
        server.nth_call("sendMessage", 1).await;
        gateway.kill().await.unwrap();
        gateway.start().await.unwrap();
        both_have_ended(&gateway).await;
        let expect: &[&str] = if is_answered_before { &[ONE, TWO_BY_TOOL] } else { &[TWO_BY_TOOL] };
        let mut texts = sent(&server, expect.len()).await;
        texts.sort();
        assert_eq!(texts, expect, "answered before: {is_answered_before}");
        let two = traced(&gateway, 2, |event| event["run"]["deliveries"][0]["state"] == "sent").await;
        let flagged = two["run"]["deliveries"][0]["uncertain"].clone();
        assert_eq!(flagged, json!(true), "nobody knows what the first try did: {two:#}");
    }
}

/// Spec `streaming.md` §5: text precedes what tools send.
#[tokio::test]
async fn what_a_tool_sends_comes_behind_the_blocks_before_it() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| match stage(request) {
        (_, 0) => Reply::steps([
            Step::Text("these words come first".to_owned()),
            call("c1", "message", &send("this comes second")),
        ]),
        _ => Reply::text("NO_REPLY"),
    })
    .await;
    let gateway = gateway(&server, &model, true, "collect").await;
    for round in 1..=5 {
        say(&server, &gateway, round, "one").await;
        traced(&gateway, round, |event| event["run"]["state"] == "ok").await;
        let texts = sent(&server, 2 * usize::try_from(round).unwrap()).await;
        let last = texts.rchunks(2).next().unwrap();
        assert_eq!(last, ["these words come first", "this comes second"], "round {round}");
    }
}
