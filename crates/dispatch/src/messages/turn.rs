//! What one run has sent by the `message` tool. Its answer is shaped by it: what was said is not said again, and what is quoted once is
//! quoted once by tool and answer together.

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_agent::ReplyPayload;
use openclaw_channels::Address;
use openclaw_protocol::message::{Message, ToolResultMessage};
use openclaw_protocol::{RunId, SessionKey};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::reply::sent_by_tool::{SentByTool, SentTo};
use crate::reply::threading::Quoted;

/// The tool.
pub(crate) const TOOL: &str = "message";

/// The conversation that a run answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Where.
    pub(crate) address: Address,
    /// The message that is answered.
    pub(crate) message_id: Option<String>,
}

/// One run and what it has sent.
#[derive(Debug)]
pub(crate) struct MessageTurn {
    pub(crate) run_id: RunId,
    pub(crate) session_key: SessionKey,
    /// The conversation it answers; `None` where that is a client of the gateway.
    pub(crate) bound: Option<Bound>,
    /// Whether targets have to be named: nobody knows where such a run was asked for.
    pub(crate) needs_target: bool,
    /// What was quoted.
    pub(crate) quoted: Quoted,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sent: SentByTool,
    /// How often each call was made, by its digest.
    calls: HashMap<String, u32>,
}

impl MessageTurn {
    pub(crate) fn new(
        run_id: RunId,
        session_key: SessionKey,
        bound: Option<Bound>,
        needs_target: bool,
    ) -> Arc<Self> {
        let (quoted, state) = (Quoted::default(), Mutex::default());
        Arc::new(Self { run_id, session_key, bound, needs_target, quoted, state })
    }

    /// The id of what a call sends, the same when a crash cut it short and it is made again. Models do not promise that their ids differ.
    pub(crate) fn delivery_id(&self, call_id: &str, args: &Value) -> String {
        let mut digest = Sha256::new();
        digest.update(call_id.as_bytes());
        digest.update([0]);
        digest.update(args.to_string().as_bytes());
        let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let mut state = self.state.lock();
        let count = state.calls.entry(digest.clone()).or_default();
        let again = if *count == 0 { String::new() } else { format!("+{count}") };
        *count += 1;
        format!("{}:t{digest}{again}", self.run_id)
    }

    /// A text was sent.
    pub(crate) fn sent(&self, text: &str, to: &Address) {
        if !text.trim().is_empty() {
            self.state.lock().sent.add(text, sent_to(to));
        }
    }

    /// Whether the tool has answered in the run's own conversation.
    pub(crate) fn has_answered(&self) -> bool {
        let Some(bound) = &self.bound else { return false };
        self.state.lock().sent.has_sent_to(&sent_to(&bound.address))
    }

    /// What of the final payloads is still to be said.
    pub(crate) fn remaining(&self, finals: Vec<ReplyPayload>) -> Vec<ReplyPayload> {
        match &self.bound {
            Some(bound) => self.state.lock().sent.remaining(finals, &sent_to(&bound.address)),
            None => finals,
        }
    }

    /// Takes in what an earlier process has sent in this run, from what the transcript tells since the message that is answered.
    pub(crate) fn remember(&self, context: &[Arc<Message>]) {
        let start = context.iter().rposition(|message| matches!(**message, Message::User(_)));
        let turn = context.get(start.map_or(0, |at| at + 1)..).unwrap_or_default();
        let mut asked: HashMap<&str, &Value> = HashMap::new();
        for message in turn {
            match &**message {
                Message::Assistant(said) => {
                    let calls = said.tool_calls().filter(|call| call.name == TOOL);
                    asked.extend(calls.map(|call| (call.id.as_str(), &call.arguments)));
                }
                Message::ToolResult(result) if result.tool_name == TOOL => {
                    let told = asked.get(result.tool_call_id.as_str()).and_then(|args| told(args, result));
                    if let Some((text, to)) = told {
                        self.sent(&text, &to);
                    }
                }
                Message::User(_) | Message::ToolResult(_) => {}
            }
        }
    }
}

/// The text of a send that succeeded, and where it went.
fn told(args: &Value, result: &ToolResultMessage) -> Option<(String, Address)> {
    let details = result.details.as_ref().filter(|details| details.get("ok") == Some(&Value::Bool(true)))?;
    details.get("result")?;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let said = text(args, "message").or_else(|| text(args, "caption"))?;
    let address = Address {
        channel: text(details, "channel")?,
        account: text(details, "accountId").unwrap_or_default(),
        target: text(details, "to")?,
        thread: None,
    };
    Some((said, address))
}

fn sent_to(address: &Address) -> SentTo {
    SentTo {
        channel: address.channel.clone(),
        account: Some(address.account.clone()).filter(|account| !account.is_empty()),
        target: address.target.clone(),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{AssistantMessage, Block, ToolCall, UserMessage};
    use serde_json::json;

    use super::*;

    fn address(target: &str) -> Address {
        Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: target.to_owned(),
            thread: None,
        }
    }

    fn turn() -> Arc<MessageTurn> {
        let bound = Bound { address: address("5"), message_id: Some("11".to_owned()) };
        let key = SessionKey::parse("agent:main:main").unwrap();
        MessageTurn::new(RunId::new("run"), key, Some(bound), false)
    }

    #[test]
    fn a_call_has_one_id_also_in_another_process() {
        let (one, two) = (turn(), turn());
        let args = json!({"action": "send", "message": "hi"});
        let id = one.delivery_id("c1", &args);
        assert!(id.starts_with("run:t") && id.len() == "run:t".len() + 16, "{id}");
        assert_eq!(two.delivery_id("c1", &args), id);
        assert_ne!(two.delivery_id("c2", &args), id);
        assert_ne!(two.delivery_id("c1", &json!({"action": "send", "message": "ho"})), id);
        assert_eq!(one.delivery_id("c1", &args), format!("{id}+1"), "a model that gives all calls one id");
    }

    #[test]
    fn the_answer_is_not_said_twice_also_after_a_crash() {
        let text = |text: &str| ReplyPayload { text: text.to_owned(), ..ReplyPayload::default() };
        let live = turn();
        live.sent("Here is your report, Ada.", &address("9"));
        assert!(!live.has_answered());
        assert_eq!(live.remaining(vec![text("Done.")]), [text("Done.")]);
        live.sent("Here is your report, Ada.", &address("5"));
        assert!(live.has_answered());
        assert_eq!(live.remaining(vec![text("Done.")]), []);

        let call = ToolCall {
            id: "c1".into(),
            name: TOOL.into(),
            arguments: json!({"action": "send", "message": "Here is your report."}),
            ..ToolCall::default()
        };
        let asked = AssistantMessage { content: vec![Block::ToolCall(call)], ..AssistantMessage::default() };
        let result = |details: Value| ToolResultMessage {
            tool_call_id: "c1".into(),
            tool_name: TOOL.into(),
            details: Some(details),
            ..ToolResultMessage::default()
        };
        let sent = json!({"ok": true, "channel": "telegram", "accountId": "default", "to": "5", "result": {"messageId": "1"}});
        let failed = json!({"status": "error", "tool": "message", "error": "chat not found"});
        for (details, answered) in [(sent, true), (failed, false)] {
            let context: Vec<Arc<Message>> = vec![
                Arc::new(Message::User(UserMessage::text("go", 1))),
                Arc::new(Message::Assistant(asked.clone())),
                Arc::new(Message::ToolResult(result(details))),
            ];
            let resumed = turn();
            resumed.remember(&context);
            assert_eq!(resumed.has_answered(), answered);
        }
    }
}
