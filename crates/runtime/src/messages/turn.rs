//! Record of what one run has sent by the `message` tool. Its answer is shaped by it: words that
//! were sent are not repeated, and tool and answer together quote a message at most once.

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_agent::ReplyPayload;
use openclaw_channels::Address;
use openclaw_delivery::reply::sent_by_tool::{SentByTool, SentTo};
use openclaw_delivery::reply::threading::Quoted;
use openclaw_journal::rights::Rights;
use openclaw_protocol::message::{Message, ToolResultMessage};
use openclaw_protocol::{RunId, SessionKey};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::actions;

/// The tool.
pub const TOOL: &str = "message";

/// The conversation that a run answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Address of the conversation.
    pub address: Address,
    /// The message that is answered.
    pub message_id: Option<String>,
}

/// A run and what it has sent.
#[derive(Debug)]
pub struct MessageTurn {
    /// The run.
    pub run_id: RunId,
    /// Session of the run.
    pub session_key: SessionKey,
    /// Conversation that it answers; `None` if that is a client of the gateway.
    pub bound: Option<Bound>,
    /// True if targets have to be named, because the conversation of such a run is unknown.
    pub needs_target: bool,
    /// Rights of the run.
    pub rights: Rights,
    /// Messages that were quoted.
    pub quoted: Quoted,
    state: Mutex<MessageTurnState>,
    /// Blocks of the run, while somebody sends them.
    blocks: watch::Sender<Option<Flushed>>,
}

/// Calls under way before which all words are in the outbox.
#[derive(Debug, Default)]
struct Flushed(Vec<String>);

/// Record for the messages of a run.
#[derive(Debug, Default)]
struct MessageTurnState {
    /// Message of the run, then those that were steered into it, in their order.
    messages: Vec<AnsweredMessage>,
    /// Number of times each call was made, by the prefix of its id.
    calls: HashMap<String, u32>,
}

/// A message that the run answers.
#[derive(Debug, Default)]
struct AnsweredMessage {
    /// Run that the message would have by itself, or has after a crash.
    run_id: Option<RunId>,
    /// Texts and files that were sent for it.
    sent: SentByTool,
}

impl MessageTurn {
    /// Returns the record of a run that has sent nothing yet.
    pub fn new(
        run_id: RunId,
        session_key: SessionKey,
        bound: Option<Bound>,
        needs_target: bool,
        rights: Rights,
    ) -> Arc<Self> {
        let own = AnsweredMessage { run_id: Some(run_id.clone()), ..AnsweredMessage::default() };
        let state = Mutex::new(MessageTurnState { messages: vec![own], ..MessageTurnState::default() });
        let quoted = Quoted::default();
        let blocks = watch::Sender::new(None);
        Arc::new(Self { run_id, session_key, bound, needs_target, rights, quoted, state, blocks })
    }

    /// Announces that the run's words are sent in blocks from now on, by the owner of this guard.
    /// Messages of the tool wait for earlier blocks.
    pub fn sends_blocks(self: &Arc<Self>) -> SendsBlocks {
        self.blocks.send_replace(Some(Flushed::default()));
        SendsBlocks(Arc::clone(self))
    }

    /// Waits until all words before a call are in the outbox.
    pub async fn said_before(&self, call_id: &str) {
        let is_out = |blocks: &Option<Flushed>| {
            blocks.as_ref().is_none_or(|Flushed(calls)| calls.iter().any(|call| call == call_id))
        };
        // The sender is here.
        let _ = self.blocks.subscribe().wait_for(is_out).await;
    }

    /// Notes a steered message: everything sent from now on is for it. Without an id it is a copy
    /// of a message, which has a run of its own later.
    pub fn steered(&self, run_id: Option<RunId>) {
        self.state.lock().messages.push(AnsweredMessage { run_id, ..AnsweredMessage::default() });
    }

    /// Returns the id of what a call sends: the same when a crash cut the call short and it is made
    /// again, also by the run that its message has then. Models do not promise that the ids of
    /// their calls differ.
    pub fn delivery_id(&self, call_id: &str, args: &Value) -> String {
        let mut state = self.state.lock();
        let id = state.call(call_id, args);
        let count = state.calls.entry(id.clone()).or_default();
        let again = if *count == 0 { String::new() } else { format!("+{count}") };
        *count += 1;
        id + &again
    }

    /// Returns the runs that the messages would have by themselves: ids of what is sent for them
    /// begin with these.
    pub fn runs(&self) -> Vec<RunId> {
        self.state.lock().messages.iter().filter_map(|heard| heard.run_id.clone()).collect()
    }

    /// Returns the number of messages that were steered in.
    pub fn steered_in(&self) -> usize {
        self.state.lock().messages.len().saturating_sub(1)
    }

    /// Returns the runs that the messages behind one would have, by [`ReplyPayload::said_to`].
    pub fn runs_behind(&self, said_to: usize) -> Vec<RunId> {
        self.state.lock().messages.iter().skip(said_to + 1).filter_map(|heard| heard.run_id.clone()).collect()
    }

    /// Returns the run that an answer to a message belongs to, by [`ReplyPayload::said_to`].
    pub fn run_of(&self, said_to: usize) -> RunId {
        self.state.lock().run_of(said_to).unwrap_or(&self.run_id).clone()
    }

    /// Records a message that was sent; the text is empty if it had files alone.
    pub fn sent(&self, text: &str, to: &Address) {
        if let Some(heard) = self.state.lock().messages.last_mut() {
            heard.sent.add(text, sent_to(to));
        }
    }

    /// True if the tool has answered in the run's own conversation.
    #[cfg(test)]
    pub fn has_answered(&self) -> bool {
        let Some(bound) = &self.bound else { return false };
        let to = sent_to(&bound.address);
        self.state.lock().messages.iter().any(|heard| heard.sent.has_sent_to(&to))
    }

    /// Returns the part of an answer's payload that is still to be said, for a block or one of the
    /// last payloads: text and files that tools have sent for the message that it answers are left
    /// out.
    pub fn left_of(&self, payload: ReplyPayload) -> Option<ReplyPayload> {
        let state = self.state.lock();
        match (&self.bound, state.messages.get(payload.said_to)) {
            (Some(bound), Some(heard)) => heard.sent.left_of(payload, &sent_to(&bound.address)),
            _ => Some(payload),
        }
    }

    /// Returns the parts of the last payloads that are still to be said.
    pub fn remaining(&self, finals: Vec<ReplyPayload>) -> Vec<ReplyPayload> {
        finals.into_iter().filter_map(|payload| self.left_of(payload)).collect()
    }

    /// Restores the record of an earlier process in this run: the transcript since the run's own
    /// message, and the runs of the messages that were steered in.
    pub fn remember(&self, own: &[Arc<Message>], steered: &[Option<RunId>]) {
        let heard = own.iter().filter(|message| matches!(***message, Message::User(_))).count();
        // A summary may have taken the place of the first ones.
        let mut steered = steered.iter().skip(steered.len().saturating_sub(heard));
        let mut asked: HashMap<&str, &Value> = HashMap::new();
        for message in own {
            match &**message {
                Message::Assistant(said) => {
                    asked.extend(said.tool_calls().map(|call| (call.id.as_str(), &call.arguments)));
                }
                Message::ToolResult(result) => {
                    let Some(args) = asked.remove(result.tool_call_id.as_str()) else { continue };
                    // A later call that looks the same is another one.
                    self.delivery_id(&result.tool_call_id, args);
                    if result.tool_name == TOOL {
                        reached(args, result).iter().for_each(|to| self.sent(written(args), to));
                    }
                }
                Message::User(_) => self.steered(steered.next().cloned().flatten()),
            }
        }
    }
}

/// Guard held while somebody sends the blocks of a run.
#[derive(Debug)]
pub struct SendsBlocks(Arc<MessageTurn>);

impl SendsBlocks {
    /// Notes that all words before a call are in the outbox.
    pub fn flushed(&self, call_id: String) {
        self.change(|calls| calls.push(call_id));
    }

    /// Notes that a call is over.
    pub fn called(&self, call_id: &str) {
        self.change(|calls| calls.retain(|call| call != call_id));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<String>)) {
        self.0.blocks.send_modify(|blocks| {
            if let Some(Flushed(calls)) = blocks {
                change(calls);
            }
        });
    }
}

impl Drop for SendsBlocks {
    fn drop(&mut self) {
        self.0.blocks.send_replace(None);
    }
}

impl MessageTurnState {
    /// Returns the prefix of a call's ids: the run of the message that it is made for, and a digest
    /// of what is asked. A copy has no run of its own.
    fn call(&self, call_id: &str, args: &Value) -> String {
        let mut digest = Sha256::new();
        digest.update(call_id.as_bytes());
        digest.update([0]);
        digest.update(args.to_string().as_bytes());
        let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{}:t{digest}", self.run_of(self.messages.len()).map_or("", RunId::as_str))
    }

    /// The run of a message; of a copy, that of the one before.
    fn run_of(&self, said_to: usize) -> Option<&RunId> {
        self.messages.iter().take(said_to + 1).rev().find_map(|heard| heard.run_id.as_ref())
    }
}

/// Returns the text that a call sends; empty if it sends files alone.
fn written(args: &Value) -> &str {
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    text("message").or_else(|| text("caption")).unwrap_or_default()
}

/// Returns the conversations that a call has sent words or files to.
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

/// Returns the address at which one message arrived, or waits to be sent.
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
        MessageTurn::new(RunId::new("run"), key, Some(bound), false, Rights::ALL)
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

    /// Checks that a message sent for one message is no answer to another that the run hears.
    #[test]
    fn each_message_of_a_run_has_its_own_answer() {
        let to = |said_to: usize, text: &str| ReplyPayload {
            text: text.to_owned(),
            said_to,
            ..ReplyPayload::default()
        };
        let turn = turn();
        turn.sent("Here is your report, Ada.", &address("5"));
        turn.steered(Some(RunId::new("second")));
        assert_eq!(turn.remaining(vec![to(0, "Done."), to(1, "It is noon.")]), [to(1, "It is noon.")]);
        turn.sent("It is noon, Ben.", &address("5"));
        assert_eq!(turn.remaining(vec![to(0, "Done."), to(1, "It is noon.")]), []);
        let late = self::turn();
        late.steered(None);
        late.sent("It is noon, Ben.", &address("5"));
        assert_eq!(late.remaining(vec![to(0, "Done."), to(1, "It is noon.")]), [to(0, "Done.")]);
    }

    /// Whichever run makes a call after a crash: that which was under way, or the message's own.
    #[test]
    fn a_call_is_known_by_the_message_that_it_is_made_for() {
        let args = json!({"action": "send", "message": "hi"});
        let call = || {
            Block::ToolCall(ToolCall {
                id: "c1".into(),
                name: TOOL.into(),
                arguments: args.clone(),
                ..ToolCall::default()
            })
        };
        let said = |content: Vec<Block>| {
            Arc::new(Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }))
        };
        let user = || Arc::new(Message::User(UserMessage::text("more", 2)));
        let answered = ToolResultMessage {
            tool_call_id: "c1".into(),
            tool_name: TOOL.into(),
            ..ToolResultMessage::default()
        };
        let answered = Arc::new(Message::ToolResult(answered));
        let second = Some(RunId::new("second"));
        let live = turn();
        let first_id = live.delivery_id("c1", &args);
        live.steered(second.clone());
        let id = live.delivery_id("c1", &args);
        let again = live.delivery_id("c1", &args);
        live.steered(None);
        let for_copy = live.delivery_id("c1", &args);
        assert_eq!(
            [0, 1, 2, 9].map(|at| live.run_of(at)),
            ["run", "second", "second", "second"].map(RunId::new)
        );
        assert_eq!(live.runs(), ["run", "second"].map(RunId::new));
        assert!(first_id.starts_with("run:t") && id.starts_with("second:t"), "{first_id} {id}");
        assert_eq!(
            [again, for_copy],
            [format!("{id}+1"), format!("{id}+2")],
            "a copy has a run of its own later"
        );
        // The run goes on.
        let resumed = turn();
        resumed.remember(
            &[said(vec![call()]), Arc::clone(&answered), user(), said(vec![call()])],
            std::slice::from_ref(&second),
        );
        assert_eq!(resumed.delivery_id("c1", &args), id, "the open call");
        let resumed = turn();
        let own = [user(), said(vec![call()]), Arc::clone(&answered), said(vec![call()])];
        resumed.remember(&own, std::slice::from_ref(&second));
        assert_eq!(resumed.delivery_id("c1", &args), format!("{id}+1"), "another call that looks the same");
        // A summary has taken the place of what came before.
        let resumed = turn();
        resumed.remember(&[user(), said(vec![call()])], &[Some(RunId::new("gone")), second]);
        assert_eq!(resumed.delivery_id("c1", &args), id);
        // The message goes on by itself.
        let own =
            MessageTurn::new(RunId::new("second"), turn().session_key.clone(), None, false, Rights::ALL);
        own.remember(&[said(vec![call()])], &[]);
        assert_eq!(own.delivery_id("c1", &args), id);
    }

    #[tokio::test]
    async fn a_call_waits_for_the_blocks_before_it() {
        let turn = turn();
        turn.said_before("c1").await;
        let blocks = turn.sends_blocks();
        blocks.flushed("c0".to_owned());
        let mut waiting = Box::pin(turn.said_before("c1"));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        blocks.flushed("c1".to_owned());
        waiting.await;
        blocks.called("c1");
        let mut waiting = Box::pin(turn.said_before("c1"));
        assert!(futures_util::poll!(&mut waiting).is_pending(), "another call of this id");
        drop(blocks);
        waiting.await;
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

    /// Checks that a start after a crash reads from the transcript what was sent.
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
            let context: Vec<Arc<Message>> =
                vec![Arc::new(Message::Assistant(asked)), Arc::new(Message::ToolResult(result))];
            let resumed = turn();
            resumed.remember(&context, &[]);
            assert_eq!(resumed.has_answered(), answered, "{args}");
        }
    }
}
