//! What is checked before a message is appended (spec `sessions.md` §4.6). Pure.

use openclaw_protocol::message::{
    AssistantMessage, Block, Message, StopReason, TextBlock, ToolResultMessage,
};

/// Most characters of text in one tool result.
pub const MAX_RESULT_CHARS: usize = 400_000;
/// What each text block keeps at least.
const MIN_BLOCK_CHARS: usize = 2_000;

/// Ends a text that was cut.
pub const CUT_SUFFIX: &str = "\n\n⚠️ [Content truncated during persistence — original exceeded size limit. Use offset/limit parameters or request specific sections for large content.]";

/// Text of the result that stands for one that never came.
pub const MISSING_RESULT: &str = "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair.";

/// Cuts the text of a tool result that is too long, each block in proportion, at a line's end where one is near.
pub fn cap_result(result: &mut ToolResultMessage) {
    let count = |block: &Block| match block {
        Block::Text(text) => text.text.chars().count(),
        Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => 0,
    };
    let total: usize = result.content.iter().map(count).sum();
    if total <= MAX_RESULT_CHARS {
        return;
    }
    let suffix = CUT_SUFFIX.chars().count();
    for block in &mut result.content {
        let chars = count(block);
        if let Block::Text(text) = block {
            let share = (chars as u128 * MAX_RESULT_CHARS as u128 / total as u128) as usize;
            cut(text, chars, share.saturating_sub(suffix).max(MIN_BLOCK_CHARS));
        }
    }
}

fn cut(block: &mut TextBlock, chars: usize, budget: usize) {
    if chars <= budget {
        return;
    }
    let end = block.text.char_indices().nth(budget).map_or(block.text.len(), |(at, _)| at);
    let kept = block.text.get(..end).unwrap_or_default();
    let near = kept.rfind('\n').filter(|at| *at > end - end / 5);
    let kept = near.and_then(|at| kept.get(..at)).unwrap_or(kept);
    block.text = format!("{kept}{CUT_SUFFIX}");
}

/// Drops tool calls without arguments: no tool can be called so, and providers refuse to be shown them. A message of
/// which nothing is left stays for the tokens it tells of.
pub fn drop_incomplete_calls(message: &mut AssistantMessage) {
    message.content.retain(|block| match block {
        Block::ToolCall(call) => !call.arguments.is_null(),
        Block::Text(_) | Block::Thinking(_) | Block::Image(_) | Block::Other(_) => true,
    });
}

/// A message as it may be stored.
pub fn checked(mut message: Message) -> Message {
    match &mut message {
        Message::ToolResult(result) => cap_result(result),
        Message::Assistant(answer) => drop_incomplete_calls(answer),
        Message::User(_) => {}
    }
    message
}

/// Tool calls whose results have not been appended yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PendingCalls {
    calls: Vec<(String, String)>,
}

impl PendingCalls {
    /// Whether every call has its result.
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

    fn result(texts: &[String]) -> ToolResultMessage {
        ToolResultMessage { content: texts.iter().map(Block::text).collect(), ..ToolResultMessage::default() }
    }

    fn texts(result: &ToolResultMessage) -> Vec<&str> {
        result.content.iter().map(|b| if let Block::Text(t) = b { t.text.as_str() } else { "" }).collect()
    }

    #[test]
    fn results_up_to_the_limit_stay_whole() {
        let whole = result(&["é".repeat(MAX_RESULT_CHARS - 1), "x".into()]);
        let mut capped = whole.clone();
        cap_result(&mut capped);
        assert_eq!(capped, whole);
    }

    #[test]
    fn long_results_are_cut_in_proportion() {
        let mut capped = result(&["a".repeat(600_000), "b".repeat(200_000), "c".repeat(100)]);
        cap_result(&mut capped);
        let lens: Vec<usize> = texts(&capped).iter().map(|t| t.chars().count()).collect();
        assert!(lens[0] + lens[1] <= MAX_RESULT_CHARS, "{lens:?}");
        assert!(lens[0] > 2 * lens[1], "{lens:?}");
        assert!(texts(&capped)[0].ends_with(CUT_SUFFIX) && texts(&capped)[1].ends_with(CUT_SUFFIX));
        assert_eq!(texts(&capped)[2].len(), 100);
    }

    #[test]
    fn cuts_prefer_a_line_end_that_is_near() {
        let budget = MAX_RESULT_CHARS - CUT_SUFFIX.chars().count();
        let near = format!("{}\n{}", "a".repeat(budget - 10), "b".repeat(100_000));
        let mut capped = result(&[near]);
        cap_result(&mut capped);
        assert!(texts(&capped)[0].starts_with("aa") && !texts(&capped)[0].contains('b'));
        let far = format!("a\n{}", "b".repeat(500_000));
        let mut capped = result(&[far]);
        cap_result(&mut capped);
        assert!(texts(&capped)[0].contains("bbb"));
    }

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
        let came = Message::ToolResult(ToolResultMessage { tool_call_id: "1".into(), ..result(&[]) });

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
