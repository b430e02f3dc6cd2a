//! Merges the answers of several handlers (spec `agent-runtime.md` §8.4). Values in, values out.

use openclaw_protocol::message::Message;
use serde_json::Value;

use super::answer::{PersistAnswer, SendingAnswer, StartAnswer, ToolCallAnswer};

/// Text for the model when a call was refused without a reason.
pub const BLOCKED: &str = "Tool call blocked by plugin hook";

/// Changes to a run that begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartChanges {
    /// Text that replaces the system prompt: the last handler's.
    pub system_prompt: Option<String>,
    /// Text before the prompt: that of every handler, in their order, with a blank line between
    /// them.
    pub prepend_context: Option<String>,
}

impl StartChanges {
    /// Takes the next handler's answer.
    pub fn take(&mut self, answer: StartAnswer) {
        self.system_prompt = answer.system_prompt.or(self.system_prompt.take());
        self.prepend_context = match (self.prepend_context.take(), answer.prepend_context) {
            (Some(before), Some(more)) => Some(format!("{before}\n\n{more}")),
            (before, more) => before.or(more),
        };
    }
}

/// A call on its way past the handlers.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallGate {
    /// The arguments as they are by now.
    pub params: Value,
    /// Reason of the refusal. No later handler allows it again.
    pub blocked: Option<String>,
}

impl ToolCallGate {
    /// A call that nobody has looked at.
    pub fn new(params: Value) -> Self {
        Self { params, blocked: None }
    }

    /// Takes the next handler's answer.
    pub fn take(&mut self, answer: ToolCallAnswer) {
        if let (Value::Object(params), Some(changed)) = (&mut self.params, answer.params) {
            params.extend(changed);
        }
        if answer.block == Some(true) && self.blocked.is_none() {
            let reason = answer.block_reason.filter(|reason| !reason.trim().is_empty());
            self.blocked = Some(reason.unwrap_or_else(|| BLOCKED.to_owned()));
        }
    }
}

/// A message on its way past the handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendingGate {
    /// Text of the message after all changes so far.
    pub content: String,
    /// True if the message is not sent; the last handler that sets the field decides.
    pub cancelled: bool,
}

impl SendingGate {
    /// A message that nobody has looked at.
    pub fn new(content: String) -> Self {
        Self { content, cancelled: false }
    }

    /// Takes the next handler's answer.
    pub fn take(&mut self, answer: SendingAnswer) {
        if let Some(content) = answer.content {
            self.content = content;
        }
        self.cancelled = answer.cancel.unwrap_or(self.cancelled);
    }
}

/// Reason why a changed result is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadResult {
    /// The answer is not a valid tool result.
    #[error("its message is no tool result: {0}")]
    Shape(String),
    /// The result answers another call, which would corrupt the transcript.
    #[error("its message is the result of another call")]
    OtherCall,
}

/// A tool's result as a handler leaves it; `None` where it says nothing of it.
///
/// # Errors
/// [`BadResult`]; the result stays as it was.
pub fn persisted(before: &Message, answer: PersistAnswer) -> Result<Option<Message>, BadResult> {
    let Some(value) = answer.message else { return Ok(None) };
    let message: Message =
        serde_json::from_value(value).map_err(|error| BadResult::Shape(error.to_string()))?;
    match (before, &message) {
        (Message::ToolResult(before), Message::ToolResult(after)) => {
            let is_same = before.tool_call_id == after.tool_call_id && before.tool_name == after.tool_name;
            if is_same { Ok(Some(message)) } else { Err(BadResult::OtherCall) }
        }
        _ => Err(BadResult::Shape("it has another role".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{Block, ToolResultMessage};
    use serde_json::json;

    use super::*;

    fn start(answers: &[Value]) -> StartChanges {
        let mut changes = StartChanges::default();
        for answer in answers {
            changes.take(serde_json::from_value(answer.clone()).unwrap());
        }
        changes
    }

    /// Vectors of the specification; a handler that throws gives no answer.
    #[test]
    fn context_is_joined_and_the_last_system_prompt_wins() {
        let both = start(&[json!({"prependContext": "a"}), json!({"prependContext": "b"})]);
        assert_eq!(both.prepend_context.as_deref(), Some("a\n\nb"));
        let last = start(&[json!({"systemPrompt": "x"}), json!({"systemPrompt": "y"}), json!({})]);
        assert_eq!(last.system_prompt.as_deref(), Some("y"));
        assert_eq!(start(&[json!({"prependContext": "b"})]).prepend_context.as_deref(), Some("b"));
    }

    fn call(answers: &[Value]) -> (Value, Option<String>) {
        let mut gate = ToolCallGate::new(json!({"command": "ls", "timeout": 5}));
        for answer in answers {
            gate.take(serde_json::from_value(answer.clone()).unwrap());
        }
        (gate.params, gate.blocked)
    }

    #[test]
    fn a_refusal_stays_and_changed_arguments_are_passed_on() {
        let rows = [
            (vec![], json!({"command": "ls", "timeout": 5}), None),
            (
                vec![json!({"params": {"command": "pwd"}}), json!({"params": {"timeout": 6, "cwd": "/"}})],
                json!({"command": "pwd", "timeout": 6, "cwd": "/"}),
                None,
            ),
            (vec![json!({"block": true})], json!({"command": "ls", "timeout": 5}), Some(BLOCKED)),
            (
                vec![
                    json!({"block": true, "blockReason": "no"}),
                    json!({"block": false}),
                    json!({"block": true, "blockReason": "yes"}),
                ],
                json!({"command": "ls", "timeout": 5}),
                Some("no"),
            ),
            (
                vec![json!({"block": false, "blockReason": "no"})],
                json!({"command": "ls", "timeout": 5}),
                None,
            ),
        ];
        for (answers, params, blocked) in rows {
            assert_eq!(call(&answers), (params, blocked.map(str::to_owned)), "{answers:?}");
        }
    }

    #[test]
    fn the_last_word_on_a_message_counts() {
        let mut gate = SendingGate::new("a".into());
        for (answer, content, cancelled) in [
            (json!({}), "a", false),
            (json!({"content": "b", "cancel": true}), "b", true),
            (json!({"content": ""}), "", true),
            (json!({"cancel": false}), "", false),
        ] {
            gate.take(serde_json::from_value(answer).unwrap());
            assert_eq!((gate.content.as_str(), gate.cancelled), (content, cancelled));
        }
    }

    #[test]
    fn a_changed_result_is_a_result_of_the_same_call() {
        let of = |call: &str, text: &str| {
            Message::ToolResult(ToolResultMessage {
                tool_call_id: call.into(),
                tool_name: "exec".into(),
                content: vec![Block::text(text)],
                ..ToolResultMessage::default()
            })
        };
        let answered = |message: Option<Value>| persisted(&of("c1", "long"), PersistAnswer { message });
        let value = |message: &Message| serde_json::to_value(message).ok();
        assert_eq!(answered(None), Ok(None));
        assert_eq!(answered(value(&of("c1", "short"))), Ok(Some(of("c1", "short"))));
        assert_eq!(answered(value(&of("c2", "short"))), Err(BadResult::OtherCall));
        for bad in [json!({"role": "user", "content": "x"}), json!("text"), json!({})] {
            assert!(matches!(answered(Some(bad.clone())), Err(BadResult::Shape(_))), "{bad}");
        }
    }
}
