//! Every tool call directly followed by its results, no result without its call (spec `agent-runtime.md` §9.2 step 5).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use openclaw_protocol::message::{
    AssistantMessage, Block, MISSING_RESULT, Message, StopReason, ToolCall, ToolResultMessage,
};

/// Puts results right behind their calls in call order, makes up missing ones, drops orphans and repetitions of both. Answers
/// that failed or were aborted pass through unrepaired; their results become orphans.
pub(super) fn repair(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let mut out = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(mut message) = rest.next() {
        drop_repeated_calls(&mut message);
        let Message::Assistant(assistant) = &*message else {
            if matches!(*message, Message::User(_)) {
                out.push(message);
            }
            continue;
        };
        // The span up to the next assistant message: results and whatever stands between them.
        let mut results: HashMap<String, Arc<Message>> = HashMap::new();
        let mut others = Vec::new();
        while let Some(next) = rest.next_if(|next| !matches!(**next, Message::Assistant(_))) {
            match &*next {
                Message::ToolResult(result) => {
                    results.entry(result.tool_call_id.clone()).or_insert(next);
                }
                Message::User(_) | Message::Assistant(_) => others.push(next),
            }
        }
        let answers = calls_to_answer(assistant).map(|call| {
            let missing = || Message::ToolResult(result_for(call, MISSING_RESULT, assistant.timestamp));
            results.remove(&call.id).unwrap_or_else(|| Arc::new(missing()))
        });
        let answers: Vec<Arc<Message>> = answers.collect();
        out.push(message);
        out.extend(answers);
        out.append(&mut others);
    }
    out
}

/// Drops calls with the id of another one in the same answer: they have one result between them, and providers want one for each.
fn drop_repeated_calls(message: &mut Arc<Message>) {
    let Message::Assistant(answer) = &**message else { return };
    let is_repeated =
        |(at, call): (usize, &ToolCall)| answer.tool_calls().take(at).any(|before| before.id == call.id);
    if answer.tool_calls().enumerate().any(is_repeated)
        && let Message::Assistant(answer) = Arc::make_mut(message)
    {
        let mut seen = HashSet::new();
        answer
            .content
            .retain(|block| !matches!(block, Block::ToolCall(call) if !seen.insert(call.id.clone())));
    }
}

/// Returns true if an answer failed or was aborted. No provider is shown such an answer: half of
/// one would be continued as if it had been meant.
pub(super) fn has_failed(answer: &AssistantMessage) -> bool {
    matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
}

/// The calls that must have a result, each id once. An id may come back in a later message: some servers number their
/// calls afresh in every answer.
fn calls_to_answer(message: &AssistantMessage) -> impl Iterator<Item = &ToolCall> {
    let mut seen = HashSet::new();
    let is_whole = !has_failed(message);
    message.tool_calls().filter(move |call| is_whole && seen.insert(call.id.as_str()))
}

/// An error result, for a call that has none of its own.
pub fn result_for(call: &ToolCall, text: &str, timestamp: i64) -> ToolResultMessage {
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
pub fn unanswered(messages: &[Arc<Message>]) -> Vec<ToolCall> {
    let mut results: HashSet<&str> = HashSet::new();
    for message in messages.iter().rev() {
        match &**message {
            Message::ToolResult(result) => {
                results.insert(&result.tool_call_id);
            }
            Message::User(_) => {}
            Message::Assistant(assistant) => {
                let open = calls_to_answer(assistant).filter(|call| !results.contains(call.id.as_str()));
                return open.cloned().collect();
            }
        }
    }
    Vec::new()
}
