//! Every tool call directly followed by its results, no result without its call (spec `agent-runtime.md` §9.2 step 5).

use std::collections::{HashMap, HashSet};

use openclaw_protocol::message::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage};

/// Text of a result that was made up because history has none; OpenClaw writes and recognises the same.
pub const MISSING_RESULT: &str = "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair.";

/// Puts results right behind their calls in call order, makes up missing ones, drops orphans and repetitions. Answers
/// that failed or were aborted pass through unrepaired; their results become orphans.
pub fn repair(messages: Vec<Message>) -> Vec<Message> {
    let mut out = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(message) = rest.next() {
        match message {
            Message::ToolResult(_) => {}
            Message::User(user) => out.push(Message::User(user)),
            Message::Assistant(assistant) => {
                let calls = repaired_calls(&assistant);
                let timestamp = assistant.timestamp;
                out.push(Message::Assistant(assistant));
                if calls.is_empty() {
                    continue;
                }
                // The span up to the next assistant message: results and whatever stands between them.
                let mut results: HashMap<String, ToolResultMessage> = HashMap::new();
                let mut others = Vec::new();
                while let Some(next) = rest.next_if(|next| !matches!(next, Message::Assistant(_))) {
                    match next {
                        Message::ToolResult(result) => {
                            results.entry(result.tool_call_id.clone()).or_insert(result);
                        }
                        other => others.push(other),
                    }
                }
                for call in calls {
                    let result =
                        results.remove(&call.id).unwrap_or_else(|| made_up(&call, MISSING_RESULT, timestamp));
                    out.push(Message::ToolResult(result));
                }
                out.append(&mut others);
            }
        }
    }
    out
}

/// The calls whose results are looked for. An id may come back in a later message: some servers number their calls
/// afresh in every answer.
fn repaired_calls(message: &AssistantMessage) -> Vec<ToolCall> {
    if matches!(message.stop_reason, StopReason::Error | StopReason::Aborted) {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    message.tool_calls().filter(|call| seen.insert(call.id.clone())).cloned().collect()
}

/// An error result for a call that has none.
pub fn made_up(call: &ToolCall, text: &str, timestamp: i64) -> ToolResultMessage {
    let tool_name = if call.name.is_empty() { "unknown".to_owned() } else { call.name.clone() };
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name,
        content: vec![Block::text(text)],
        is_error: true,
        timestamp,
        ..ToolResultMessage::default()
    }
}

/// The calls of the last assistant message that have no result yet.
pub fn unanswered(messages: &[Message]) -> Vec<ToolCall> {
    let Some(at) = messages.iter().rposition(|message| matches!(message, Message::Assistant(_))) else {
        return Vec::new();
    };
    let Some((Message::Assistant(assistant), after)) = messages.get(at..).and_then(<[Message]>::split_first)
    else {
        return Vec::new();
    };
    let results: HashSet<&str> = after
        .iter()
        .filter_map(|message| match message {
            Message::ToolResult(result) => Some(result.tool_call_id.as_str()),
            Message::User(_) | Message::Assistant(_) => None,
        })
        .collect();
    repaired_calls(assistant).into_iter().filter(|call| !results.contains(call.id.as_str())).collect()
}
