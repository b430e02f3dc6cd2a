use openclaw_models::history::{HistoryRules, IdRule, prepare};
use openclaw_protocol::message::{
    AssistantMessage, Block, StopReason, ToolCall, ToolResultMessage, UserMessage,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;

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

/// Vectors of spec `agent-runtime.md` §9.5.
#[test]
fn the_last_turns_are_kept_whole() {
    let turn = |n: u32| {
        vec![user(&format!("u{n}")), calling(&["c"]), result("c", "x"), assistant(vec![Block::text("a")])]
    };
    let all: Vec<Arc<Message>> = (1..=3).flat_map(turn).collect();
    let keep_past =
        |messages: Vec<Arc<Message>>, n, own| bounded(&Arc::new(messages), NonZeroU32::new(n), own).to_vec();
    let keep = |messages, n| keep_past(messages, n, 1);
    assert_eq!(keep(all.clone(), 1), (2..=3).flat_map(turn).collect::<Vec<_>>());
    assert_eq!(keep(all.clone(), 2), all);
    assert_eq!(keep(all.clone(), 9), all);
    // A message steered into a run removes nothing of the past.
    assert_eq!(keep_past(all.clone(), 1, 2), all);
    let provenance = Provenance {
        kind: ProvenanceKind::InternalSystem,
        source_session_key: None,
        source_channel: None,
        source_tool: None,
    };
    let flush = UserMessage { provenance: Some(provenance), ..UserMessage::text("save", 0) };
    let with_flush = [turn(1), turn(2), vec![Arc::new(Message::User(flush))], turn(3)].concat();
    assert_eq!(keep(with_flush.clone(), 1), with_flush[4..]);
    let summary = user(&format!("{}\n\n<summary>s</summary>", SUMMARY_START));
    let mut with_summary = vec![summary.clone()];
    with_summary.extend(all);
    assert_eq!(keep(with_summary, 1), [vec![summary], turn(2), turn(3)].concat());
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

proptest! {
    #[test]
    fn limits_never_part_a_call_from_its_result(messages in proptest::collection::vec(any_message(), 0..14), limit in 1u32..5) {
        let rules = HistoryRules::of("anthropic", "anthropic-messages", "claude", IdRule::Anthropic);
        let out = prepare(bounded(&Arc::new(messages), NonZeroU32::new(limit), 1).to_vec(), &rules);
        for pair in out.windows(2) {
            if matches!(*pair[1], Message::ToolResult(_)) {
                prop_assert!(!matches!(*pair[0], Message::User(_)));
            }
        }
        prop_assert!(!matches!(out.first().map(Arc::as_ref), Some(Message::ToolResult(_))));
    }
}
