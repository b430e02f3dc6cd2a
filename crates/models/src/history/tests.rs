use openclaw_protocol::message::{
    AssistantMessage, Block, MISSING_RESULT, Message, StopReason, ToolCall, ToolResultMessage, UserContent,
    UserMessage,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;

mod valid;

fn rules() -> HistoryRules<'static> {
    HistoryRules::of("openai", "openai-completions", "gpt", IdRule::Completions)
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(UserMessage::text(text, 0)))
}

fn assistant(content: Vec<Block>) -> Arc<Message> {
    Arc::new(Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }))
}

fn call(id: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: "exec".into(),
        arguments: json!({}),
        ..ToolCall::default()
    })
}

fn calling(ids: &[&str]) -> Arc<Message> {
    assistant(ids.iter().map(|id| call(id)).collect())
}

fn result(id: &str, text: &str) -> Arc<Message> {
    Arc::new(Message::ToolResult(ToolResultMessage {
        tool_call_id: id.into(),
        tool_name: "exec".into(),
        content: vec![Block::text(text)],
        ..ToolResultMessage::default()
    }))
}

#[test]
fn a_result_that_is_larger_than_ours_may_be_is_cut() {
    let huge = result("c1", &"x".repeat(2 * STORED.max));
    let out = prepare(vec![user("go"), calling(&["c1"]), huge, user("and now?")], &rules());
    let longest = out.iter().map(|message| format!("{message:?}").len()).max();
    assert!(longest.is_some_and(|longest| longest <= STORED.max + 1_000), "{longest:?}");
}

/// `A`, `U`, `R(id text)` for whole comparison.
fn outline(messages: &[Arc<Message>]) -> Vec<String> {
    messages
        .iter()
        .map(|message| match &**message {
            Message::User(user) => format!("U {}", user.content.to_text()),
            Message::Assistant(a) => {
                format!("A {}{}", a.text(), a.tool_calls().map(|c| format!("({})", c.id)).collect::<String>())
            }
            Message::ToolResult(r) => {
                let text = Message::ToolResult(r.clone());
                let text = match &text {
                    Message::ToolResult(r) => r
                        .content
                        .iter()
                        .map(|b| match b {
                            Block::Text(t) => t.text.as_str(),
                            _ => "",
                        })
                        .collect::<String>(),
                    _ => String::new(),
                };
                let text = if text == MISSING_RESULT { "synthetic" } else { &text }.to_owned();
                format!("R {} {text}", r.tool_call_id)
            }
        })
        .collect()
}

/// Vectors of spec `agent-runtime.md` §9.2.
#[test]
fn results_follow_their_calls() {
    let aborted = Arc::new(Message::Assistant(AssistantMessage {
        content: vec![call("c1")],
        stop_reason: StopReason::Aborted,
        ..AssistantMessage::default()
    }));
    let rows: Vec<(Vec<Arc<Message>>, &[&str])> = vec![
        (
            vec![calling(&["c1", "c2"]), user("u"), result("c2", "x")],
            &["A (c1)(c2)", "R c1 synthetic", "R c2 x", "U u"],
        ),
        (
            vec![calling(&["c1"]), result("c1", "first"), result("c1", "second"), user("u")],
            &["A (c1)", "R c1 first", "U u"],
        ),
        (
            vec![calling(&["c1"]), result("c1", "x"), assistant(vec![Block::text("t")]), result("c1", "dup")],
            &["A (c1)", "R c1 x", "A t"],
        ),
        (vec![user("u"), result("c9", "orphan"), assistant(vec![Block::text("t")])], &["U u", "A t"]),
        (vec![aborted, result("c1", "x")], &["A (c1)"]),
        (vec![user("u"), calling(&["c1"])], &["U u", "A (c1)", "R c1 synthetic"]),
    ];
    for (input, expect) in rows {
        assert_eq!(outline(&pairing::repair(input.clone())), expect, "{input:?}");
    }
}

/// Some servers number their calls afresh in every answer.
#[test]
fn an_id_may_come_back_in_a_later_answer() {
    let messages = vec![calling(&["c1"]), result("c1", "x"), calling(&["c1"]), result("c1", "y")];
    assert_eq!(outline(&pairing::repair(messages)), ["A (c1)", "R c1 x", "A (c1)", "R c1 y"]);
}

#[test]
fn calls_without_arguments_are_dropped() {
    let empty = Block::ToolCall(ToolCall { id: "c1".into(), name: "exec".into(), ..ToolCall::default() });
    let mut messages =
        vec![assistant(vec![empty.clone()]), user("u"), assistant(vec![Block::text("t"), empty])];
    roles::drop_calls_without_arguments(&mut messages);
    assert_eq!(outline(&messages), ["U u", "A t"]);
}

#[test]
fn blank_text_is_dropped_but_failed_answers_stay() {
    let failed = Arc::new(Message::Assistant(AssistantMessage {
        stop_reason: StopReason::Error,
        ..AssistantMessage::default()
    }));
    let mut messages = vec![
        assistant(vec![Block::text(" \n")]),
        assistant(vec![Block::text("  "), Block::text("x")]),
        failed.clone(),
    ];
    roles::drop_blank(&mut messages);
    assert_eq!(messages, [assistant(vec![Block::text("x")]), failed]);
}

fn merged(mut messages: Vec<Arc<Message>>, rules: HistoryRules<'_>) -> Vec<Arc<Message>> {
    roles::merge(&mut messages, &rules);
    messages
}

#[test]
fn consecutive_users_are_merged() {
    let at = |content, timestamp| {
        Arc::new(Message::User(UserMessage { content, timestamp, ..UserMessage::default() }))
    };
    let s1 = || at(UserContent::Text("s1".into()), 1);
    let t2 = || at(UserContent::Blocks(vec![Block::text("t2")]), 2);
    let blocks = merged(vec![s1(), t2(), assistant(vec![])], HistoryRules { join: Join::Blocks, ..rules() });
    assert_eq!(
        blocks,
        [at(UserContent::Blocks(vec![Block::text("s1"), Block::text("t2")]), 2), assistant(vec![])]
    );
    let line = merged(vec![s1(), t2()], rules());
    assert_eq!(line, [at(UserContent::Blocks(vec![Block::text("s1\n\nt2")]), 2)]);
}

#[test]
fn consecutive_assistants_are_merged_where_the_model_wants_it() {
    let two = || vec![assistant(vec![Block::text("x")]), assistant(vec![Block::text("y")])];
    let together = merged(two(), HistoryRules { merge_assistants: true, ..rules() });
    assert_eq!(together, [assistant(vec![Block::text("x"), Block::text("y")])]);
    assert_eq!(merged(two(), rules()), two());
}

/// Otherwise the request would be part of the next message, and carried out for whoever wrote that.
#[test]
fn a_request_that_failed_is_closed_before_the_next_message() {
    let failed = |stop_reason| {
        Arc::new(Message::Assistant(AssistantMessage { stop_reason, ..AssistantMessage::default() }))
    };
    let (error, stopped) = (|| failed(StopReason::Error), || failed(StopReason::Aborted));
    let done = || assistant(vec![Block::text("done")]);
    let closed = "A [openclaw] The request above ended without an answer and is closed. \
        It is not carried out any more, unless it is asked for again.";
    let rows: [(_, &[&str]); 6] = [
        (vec![user("a"), error(), user("b")], &["U a", closed, "U b"]),
        (vec![user("a"), stopped(), user("b")], &["U a\n\nb"]),
        (vec![user("a"), stopped(), error(), user("b")], &["U a", closed, "U b"]),
        (
            vec![user("a"), assistant(vec![call("c1")]), result("c1", "x"), error(), user("b")],
            &["U a", "A (c1)", "R c1 x", closed, "U b"],
        ),
        // Tried again within its turn, or just now.
        (vec![user("a"), error(), done(), user("b")], &["U a", "A done", "U b"]),
        (vec![user("a"), error()], &["U a"]),
    ];
    for (messages, expect) in rows {
        assert_eq!(outline(&prepare(messages, &rules())), expect);
    }
}

fn any_message() -> impl Strategy<Value = Arc<Message>> {
    let id = prop_oneof![Just("c1"), Just("c2"), Just("c3")];
    prop_oneof![
        Just(user("u")),
        proptest::collection::vec(id.clone(), 0..3).prop_map(|ids| {
            let mut blocks = vec![Block::text("t")];
            blocks.extend(ids.into_iter().map(call));
            assistant(blocks)
        }),
        proptest::collection::vec(id.clone(), 1..3).prop_map(|ids| Arc::new(Message::Assistant(
            AssistantMessage {
                content: ids.into_iter().map(call).collect(),
                stop_reason: StopReason::Aborted,
                ..AssistantMessage::default()
            }
        ))),
        id.prop_map(|id| result(id, "x")),
    ]
}

/// Returns true if every result directly follows the call it answers, and nothing else stands
/// between a call and its results.
fn well_paired(messages: &[Arc<Message>]) -> bool {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match &**message {
            Message::ToolResult(result) => match open.iter().position(|id| *id == result.tool_call_id) {
                Some(at) => {
                    open.remove(at);
                }
                None => return false,
            },
            Message::User(_) => {
                if !open.is_empty() {
                    return false;
                }
            }
            Message::Assistant(a) => {
                if !open.is_empty() {
                    return false;
                }
                if !matches!(a.stop_reason, StopReason::Error | StopReason::Aborted) {
                    let mut ids: Vec<String> = a.tool_calls().map(|c| c.id.clone()).collect();
                    ids.sort();
                    ids.dedup();
                    open = ids;
                }
            }
        }
    }
    open.is_empty()
}

proptest! {
    #[test]
    fn pairing_never_parts_a_call_from_its_result(messages in proptest::collection::vec(any_message(), 0..14)) {
        let out = pairing::repair(messages.clone());
        prop_assert!(well_paired(&out), "{:?}", outline(&out));
        let users = |m: &[Arc<Message>]| m.iter().filter(|m| matches!(***m, Message::User(_))).count();
        prop_assert_eq!(users(&out), users(&messages), "no user text is lost");
        prop_assert_eq!(pairing::repair(out.clone()), out, "repairing twice changes nothing");
    }
}
