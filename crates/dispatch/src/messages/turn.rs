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

use super::actions;
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

    /// Something was sent; the text is empty where that was files alone.
    pub(crate) fn sent(&self, text: &str, to: &Address) {
        self.state.lock().sent.add(text, sent_to(to));
    }

    /// Whether the tool has answered in the run's own conversation.
    #[cfg(test)]
    pub(crate) fn has_answered(&self) -> bool {
        let Some(bound) = &self.bound else { return false };
        self.state.lock().sent.has_sent_to(&sent_to(&bound.address))
    }

    /// What of an answer's payload is still to be said, a block or one of the last.
    pub(crate) fn left_of(&self, payload: ReplyPayload) -> Option<ReplyPayload> {
        match &self.bound {
            Some(bound) => self.state.lock().sent.left_of(payload, &sent_to(&bound.address)),
            None => Some(payload),
        }
    }

    /// What of the last payloads is still to be said.
    pub(crate) fn remaining(&self, finals: Vec<ReplyPayload>) -> Vec<ReplyPayload> {
        finals.into_iter().filter_map(|payload| self.left_of(payload)).collect()
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
                    let Some(args) = asked.get(result.tool_call_id.as_str()) else { continue };
                    for to in reached(args, result) {
                        self.sent(written(args), &to);
                    }
                }
                Message::User(_) | Message::ToolResult(_) => {}
            }
        }
    }
}

/// The text that a call sends; empty where it sends files alone.
fn written(args: &Value) -> &str {
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    text("message").or_else(|| text("caption")).unwrap_or_default()
}

/// The conversations that a call has sent words or files to.
fn reached(args: &Value, result: &ToolResultMessage) -> Vec<Address> {
    let name = args.get("action").and_then(Value::as_str).unwrap_or_default();
    let Some(details) = &result.details else { return Vec::new() };
    let sends: Vec<&Value> = match actions::find(name).map(|action| action.name) {
        Some("send" | "sendAttachment" | "reply" | "thread-reply") => vec![details],
        // The first words in a thread.
        Some("thread-create") => details.get("message").into_iter().collect(),
        Some(actions::BROADCAST) => {
            let results = details.get("results").and_then(Value::as_array);
            results.into_iter().flatten().filter_map(|one| one.get("result")).collect()
        }
        Some(_) | None => Vec::new(),
    };
    sends.into_iter().filter_map(reached_by).collect()
}

/// Where one message arrived, or waits to be sent.
fn reached_by(send: &Value) -> Option<Address> {
    let text = |key: &str| send.get(key).and_then(Value::as_str).map(str::to_owned);
    if send.get("ok") != Some(&Value::Bool(true)) || send.get("result").is_none() {
        return None;
    }
    Some(Address {
        channel: text("channel")?,
        account: text("accountId").unwrap_or_default(),
        target: text("to")?,
        thread: None,
    })
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
    fn the_answer_is_not_said_twice() {
        let text = |text: &str| ReplyPayload { text: text.to_owned(), ..ReplyPayload::default() };
        let live = turn();
        live.sent("Here is your report, Ada.", &address("9"));
        assert!(!live.has_answered());
        assert_eq!(live.remaining(vec![text("Done.")]), [text("Done.")]);
        live.sent("Here is your report, Ada.", &address("5"));
        assert!(live.has_answered());
        assert_eq!(live.remaining(vec![text("Done.")]), []);
    }

    #[test]
    fn a_tool_that_failed_is_not_told_below_an_answer_that_a_tool_gave() {
        let failed = ReplyPayload { is_error: true, is_fallback: true, ..ReplyPayload::default() };
        let error = ReplyPayload { is_error: true, ..ReplyPayload::default() };
        let turn = turn();
        assert_eq!(turn.remaining(vec![failed.clone(), error.clone()]), [failed.clone(), error.clone()]);
        turn.sent("", &address("9"));
        assert_eq!(turn.remaining(vec![failed.clone()]), std::slice::from_ref(&failed));
        turn.sent("", &address("5"));
        assert_eq!(turn.remaining(vec![failed, error.clone()]), [error]);
    }

    /// A start after a crash reads what was sent from the transcript.
    #[test]
    fn what_was_sent_before_a_crash_is_the_answer_with_words_or_without() {
        let sent = json!({"ok": true, "channel": "telegram", "accountId": "default", "to": "5", "result": {"messageId": "1"}});
        let elsewhere = json!({"ok": true, "channel": "telegram", "to": "9", "result": {"messageId": "1"}});
        let failed = json!({"status": "error", "tool": "message", "error": "chat not found"});
        let kept_silent = json!({"ok": true, "suppressed": true});
        let send = |more: Value| {
            let mut args = json!({"action": "send"});
            args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            args
        };
        let words = || send(json!({"message": "Here is your report."}));
        let broadcast = |result: &Value| json!({"results": [{"ok": false, "error": "no"}, {"ok": true, "result": result}]});
        let rows = [
            (words(), sent.clone(), true),
            (words(), failed, false),
            (words(), elsewhere.clone(), false),
            (send(json!({"media": "./report.pdf"})), sent.clone(), true),
            (send(json!({"message": "NO_REPLY"})), kept_silent, false),
            (json!({"action": "broadcast", "message": "Lunch"}), broadcast(&sent), true),
            (json!({"action": "broadcast", "media": "./menu.png"}), broadcast(&elsewhere), false),
            (
                json!({"action": "thread-create", "message": "First"}),
                json!({"threadId": "3", "message": sent}),
                true,
            ),
            (json!({"action": "edit", "message": "Better"}), sent, false),
        ];
        for (args, details, answered) in rows {
            let call = ToolCall {
                id: "c1".into(),
                name: TOOL.into(),
                arguments: args.clone(),
                ..ToolCall::default()
            };
            let asked =
                AssistantMessage { content: vec![Block::ToolCall(call)], ..AssistantMessage::default() };
            let result = ToolResultMessage {
                tool_call_id: "c1".into(),
                tool_name: TOOL.into(),
                details: Some(details),
                ..ToolResultMessage::default()
            };
            let context: Vec<Arc<Message>> = vec![
                Arc::new(Message::User(UserMessage::text("go", 1))),
                Arc::new(Message::Assistant(asked)),
                Arc::new(Message::ToolResult(result)),
            ];
            let resumed = turn();
            resumed.remember(&context);
            assert_eq!(resumed.has_answered(), answered, "{args}");
        }
    }
}
