//! Checks of a message before it is appended (spec `sessions.md` §4.6). Pure.

use std::sync::Arc;

use openclaw_protocol::message::cap::STORED;
use openclaw_protocol::message::{
    AssistantMessage, Block, MISSING_RESULT, Message, StopReason, ToolResultMessage,
};

/// Drops tool calls without arguments: no tool can be called so, and providers refuse to be shown them. A message of
/// which nothing is left stays for the tokens it tells of.
pub fn drop_incomplete_calls(message: &mut AssistantMessage) {
    message.content.retain(|block| match block {
        Block::ToolCall(call) => !call.arguments.is_null(),
        Block::Text(_) | Block::Thinking(_) | Block::Image(_) | Block::Other(_) => true,
    });
}

/// A message as it may be stored.
pub fn checked(mut message: Arc<Message>) -> Arc<Message> {
    let is_fit = match &*message {
        Message::ToolResult(result) => STORED.fits(result),
        Message::Assistant(answer) => answer.tool_calls().all(|call| !call.arguments.is_null()),
        Message::User(_) => true,
    };
    if !is_fit {
        match Arc::make_mut(&mut message) {
            Message::ToolResult(result) => drop(STORED.apply(result)),
            Message::Assistant(answer) => drop_incomplete_calls(answer),
            Message::User(_) => {}
        }
    }
    message
}

/// Tool calls whose results have not been appended yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PendingCalls {
    calls: Vec<(String, String)>,
}

impl PendingCalls {
    /// True if every call has its result.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Ids and tool names of the calls without a result.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.calls.iter().map(|(id, name)| (id.as_str(), name.as_str()))
    }

    /// The results that must be appended before `next`: those that no longer can come.
    pub fn before(&mut self, next: &Message, now: i64) -> Vec<Message> {
        match next {
            Message::ToolResult(_) => Vec::new(),
            Message::User(_) | Message::Assistant(_) => self.close(now),
        }
    }

    /// Results for everything that is missing, and nothing is pending any more.
    pub fn close(&mut self, now: i64) -> Vec<Message> {
        self.calls.drain(..).map(|(id, name)| missing_result(id, name, now)).collect()
    }

    /// Takes note of a message that was appended.
    pub fn after(&mut self, message: &Message) {
        match message {
            Message::ToolResult(result) => self.calls.retain(|(id, _)| *id != result.tool_call_id),
            // Calls of a failed or stopped answer are never run (spec §4.6).
            Message::Assistant(answer)
                if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) => {}
            Message::Assistant(answer) => {
                self.calls.extend(answer.tool_calls().map(|call| (call.id.clone(), call.name.clone())));
            }
            Message::User(_) => {}
        }
    }
}

fn missing_result(tool_call_id: String, tool_name: String, timestamp: i64) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id,
        tool_name,
        content: vec![Block::text(MISSING_RESULT)],
        is_error: true,
        timestamp,
        ..ToolResultMessage::default()
    })
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{ToolCall, UserMessage};
    use serde_json::json;

    use super::*;

    fn call(id: &str, arguments: serde_json::Value) -> Block {
        Block::ToolCall(ToolCall { id: id.into(), name: "exec".into(), arguments, ..ToolCall::default() })
    }

    #[test]
    fn calls_without_arguments_are_dropped() {
        let mut message = AssistantMessage {
            content: vec![call("a", json!(null)), call("b", json!({}))],
            ..AssistantMessage::default()
        };
        drop_incomplete_calls(&mut message);
        assert_eq!(message.content, [call("b", json!({}))]);
    }

    #[test]
    fn missing_results_are_made_before_the_next_message() {
        let answer = |stop_reason| {
            let content = vec![call("1", json!({})), call("2", json!({}))];
            Message::Assistant(AssistantMessage { content, stop_reason, ..AssistantMessage::default() })
        };
        let user = Message::User(UserMessage::text("x", 1));
        let came = Message::ToolResult(ToolResultMessage {
            tool_call_id: "1".into(),
            ..ToolResultMessage::default()
        });

        let mut pending = PendingCalls::default();
        pending.after(&answer(StopReason::ToolUse));
        assert_eq!(pending.before(&came, 5), []);
        pending.after(&came);
        assert_eq!(pending.before(&user, 5), [missing_result("2".into(), "exec".into(), 5)]);
        assert!(pending.is_empty());

        pending.after(&answer(StopReason::Aborted));
        assert_eq!(pending.before(&user, 5), []);
    }
}
