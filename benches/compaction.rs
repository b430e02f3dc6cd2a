//! What is decided about a long conversation before a model call: pruning old tool results, and planning a compaction.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't run stops")]

use std::sync::Arc;

use divan::Bencher;
use openclaw_agent::compaction::{Budget, CompactionSettings, Range, Urgency, plan};
use openclaw_agent::pruning::{PruneSettings, Pruned, PruningWindow};
use openclaw_protocol::message::{
    AssistantMessage, Block, Message, ToolCall, ToolResultMessage, UserMessage,
};
use openclaw_sessions::transcript::{Body, Entry, EntryId, StoredMessage, View};
use serde_json::json;

fn main() {
    divan::main();
}

/// The budget is 5 ms for 2,000 entries; it is to grow with their number.
const ENTRIES: [usize; 2] = [2_000, 20_000];

/// Turns of four entries: a person, a call, its result, an answer.
fn conversation(entries: usize) -> Vec<Arc<Message>> {
    let message = |at: usize| match at % 4 {
        0 => Message::User(UserMessage::text("What does the log say? ".repeat(8), 0)),
        1 => {
            let call = ToolCall {
                id: format!("call_{at}"),
                name: "exec".to_owned(),
                arguments: json!({"command": "tail -n 20 /var/log/syslog"}),
                ..ToolCall::default()
            };
            let content = vec![Block::ToolCall(call)];
            Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() })
        }
        2 => Message::ToolResult(ToolResultMessage {
            tool_call_id: format!("call_{}", at - 1),
            tool_name: "exec".to_owned(),
            content: vec![Block::text("Feb  9 10:00:00 host systemd[1]: Started something.\n".repeat(40))],
            timestamp: i64::try_from(at).unwrap(),
            ..ToolResultMessage::default()
        }),
        _ => {
            let content = vec![Block::text("Nothing of note: services were started. ".repeat(10))];
            Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() })
        }
    };
    (0..entries).map(|at| Arc::new(message(at))).collect()
}

fn entry(at: usize, message: Arc<Message>) -> Arc<Entry> {
    Arc::new(Entry {
        id: EntryId::new(format!("{at:08x}")),
        parent_id: None,
        timestamp: "2026-02-09T10:00:00.000Z".to_owned(),
        body: Body::Message(StoredMessage::Known(message)),
        extra: serde_json::Map::new(),
    })
}

#[divan::bench(args = ENTRIES)]
fn prune(bencher: Bencher<'_, '_>, entries: usize) {
    let config = json!({"mode": "cache-ttl", "ttl": "0s", "softTrim": {"maxChars": 2_000, "headChars": 500, "tailChars": 500}});
    let settings = PruneSettings::of(&serde_json::from_value(config).unwrap()).unwrap();
    let messages = Arc::new(conversation(entries));
    bencher.bench_local(|| {
        let mut pruned = Pruned::default();
        pruned.answered(0);
        pruned.view(&messages, &settings, PruningWindow { tokens: 200_000, now: 1 })
    });
}

/// The path of nearly every call: the provider still has the prompt, and nothing is pruned.
#[divan::bench(args = ENTRIES)]
fn prune_nothing(bencher: Bencher<'_, '_>, entries: usize) {
    let config = json!({"mode": "cache-ttl"});
    let settings = PruneSettings::of(&serde_json::from_value(config).unwrap()).unwrap();
    let messages = Arc::new(conversation(entries));
    let mut pruned = Pruned::default();
    pruned.answered(0);
    bencher.bench_local(|| pruned.view(&messages, &settings, PruningWindow { tokens: 200_000, now: 1 }));
}

#[divan::bench(args = ENTRIES)]
fn plan_a_compaction(bencher: Bencher<'_, '_>, entries: usize) {
    let later =
        conversation(entries).into_iter().enumerate().map(|(at, message)| entry(at, message)).collect();
    let view = View { later, ..View::default() };
    let budget = Budget::new(&CompactionSettings::default(), 200_000);
    bencher.bench_local(|| plan(&Range::of(&view), &budget, Urgency::CanWait).unwrap());
}
