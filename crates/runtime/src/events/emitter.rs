//! Events of one run as clients see them (spec `gateway-protocol.md` §7.3, §7.4): a pure machine
//! that is told the time.

use openclaw_agent::event::{RunEnd, RunEvent, TextChange};
use openclaw_journal::api::{Audience, Broadcast, TIME_IS_UP};
use openclaw_protocol::event::{
    AgentEvent, AgentStream, AssistantText, ChatEvent, ChatState, Compaction, Lifecycle, ReplyText, ToolEvent,
};
use openclaw_protocol::message::Message;
use openclaw_protocol::{Payload, RunId, SessionKey};
use serde::Serialize;
use serde_json::Value;

use super::escaped_text::EscapedText;
use super::retry;

/// Shortest time between two `chat` deltas of a run (spec `gateway-protocol.md` §7.4).
const DELTA_EVERY_MS: i64 = 150;

/// Verbosity of a run's tool events (spec `gateway-protocol.md` §7.3). Clients that watch the
/// activity of tools hear of calls at every level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verbose {
    /// No tool events, except for clients that watch.
    #[default]
    Off,
    /// Calls without their results.
    On,
    /// Calls with their results.
    Full,
}

impl Verbose {
    /// Reads a stored or configured level; unknown text is [`Verbose::Off`].
    pub fn parse(text: &str) -> Self {
        match text.trim().to_lowercase().as_str() {
            "on" => Self::On,
            "full" => Self::Full,
            _ => Self::Off,
        }
    }
}

/// Numbers one run's events and derives its `chat` events. It lives as long as the run, so the counters go with it
/// (spec `gateway-protocol.md` KB-37).
#[derive(Debug)]
pub struct Emitter {
    run_id: RunId,
    session_key: SessionKey,
    verbose: Verbose,
    seq: u64,
    /// Text of the last assistant message.
    text: EscapedText,
    /// Number of texts so far; a text that does not continue the one before counts anew.
    texts: u64,
    last_delta: Option<i64>,
    chat: ChatStream,
    /// True if the text is sent as a `chat` while it grows.
    has_deltas: bool,
}

/// State of the run's `chat` stream. Exactly one terminal state is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChatStream {
    Open,
    Closed,
}

impl Emitter {
    /// Emitter of a run that has told nothing yet.
    pub fn new(run_id: RunId, session_key: SessionKey) -> Self {
        Self {
            run_id,
            session_key,
            verbose: Verbose::Off,
            seq: 0,
            text: EscapedText::default(),
            texts: 0,
            last_delta: None,
            chat: ChatStream::Open,
            has_deltas: true,
        }
    }

    /// Returns an emitter that sends nothing as a `chat` before the result of the answer is known.
    pub fn without_deltas(self) -> Self {
        Self { has_deltas: false, ..self }
    }

    /// Sets how much of the tool events is sent from now on.
    pub fn set_verbose(&mut self, verbose: Verbose) {
        self.verbose = verbose;
    }

    /// Returns the broadcasts for an event, in order.
    pub fn on(&mut self, now: i64, event: RunEvent) -> Vec<Broadcast> {
        match event {
            RunEvent::Started { started_at } => {
                vec![self.agent(now, AgentStream::Lifecycle(Lifecycle::Start { started_at }))]
            }
            RunEvent::Retry(notice) => {
                vec![self.agent(now, AgentStream::Lifecycle(retry::lifecycle(*notice)))]
            }
            RunEvent::Asking
            | RunEvent::Steered
            | RunEvent::Quotes(_)
            | RunEvent::Attaches(_)
            | RunEvent::Thinking(_)
            | RunEvent::TextEnds
            | RunEvent::Thought(_) => Vec::new(),
            RunEvent::Assistant(change) => self.assistant(now, &change),
            RunEvent::ToolStart { name, call_id, args } => {
                self.tool(now, ToolEvent::Start { name, tool_call_id: call_id, args })
            }
            RunEvent::ToolUpdate { name, call_id, partial } => {
                let partial_result = self.if_full(partial);
                self.tool(now, ToolEvent::Update { name, tool_call_id: call_id, partial_result })
            }
            RunEvent::ToolResult { name, call_id, meta, is_error, result } => {
                let result = self.if_full(result);
                self.tool(now, ToolEvent::Result { name, tool_call_id: call_id, meta, is_error, result })
            }
            RunEvent::CompactionStart => {
                vec![self.agent(now, AgentStream::Compaction(Compaction::Start {}))]
            }
            RunEvent::CompactionEnd { will_retry } => {
                vec![self.agent(now, AgentStream::Compaction(Compaction::End { will_retry }))]
            }
            RunEvent::Ended { ended_at, end, .. } => self.ended(now, ended_at, &end),
        }
    }

    /// Returns the events for a run that is being stopped from outside: clients hear it at once,
    /// and no more `chat` events of the run. Empty if its `chat` stream is closed already.
    pub fn aborted(&mut self, reason: &str) -> Vec<Broadcast> {
        self.close(encoded(&self.stopped(self.seq + 1, reason))).into_iter().collect()
    }

    /// The message went into another run: its own `chat` stream ends at once and empty (decision 7).
    pub fn absorbed(&mut self) -> Vec<Broadcast> {
        self.answered(None)
    }

    /// The gateway answered by itself: that is all clients hear (spec `gateway-protocol.md` §6.4). Who may not ask hears that
    /// it is over.
    pub fn answered(&mut self, said: Option<&Message>) -> Vec<Broadcast> {
        self.close(encoded(&self.chat(self.seq + 1, ChatState::Final, said))).into_iter().collect()
    }

    /// Returns the events for a run that was stopped before it began: it has an end without a start
    /// (spec `agent-runtime.md` §1.2).
    pub fn stopped_early(&mut self, now: i64, ended_at: i64, reason: &str) -> Vec<Broadcast> {
        let chat = self.aborted(reason);
        chat.into_iter().chain([self.last_lifecycle(now, ended_at, &RunEnd::Aborted)]).collect()
    }

    /// Refuses a message that asks for something impossible, before a run has begun.
    pub fn refused(&mut self, message: &str) -> Vec<Broadcast> {
        self.close(encoded(&self.failed(self.seq + 1, message))).into_iter().collect()
    }

    fn assistant(&mut self, now: i64, change: &TextChange) -> Vec<Broadcast> {
        let delta = match change {
            TextChange::Begins(text) | TextChange::Corrected(text) => {
                self.texts += 1;
                self.text.replace(text);
                if matches!(change, TextChange::Begins(_)) { text } else { "" }
            }
            TextChange::Grows(delta) => {
                self.text.append(delta);
                delta
            }
        };
        let growing = Some(self.texts);
        let said = AssistantText { text: "".into(), delta: delta.into() };
        let event = self.numbered(now, AgentStream::Assistant(said));
        let agent = self.broadcast("agent", self.text.put_into(&event));
        let mut out = vec![Broadcast { growing, ..agent }];
        let due = self.last_delta.is_none_or(|last| now - last >= DELTA_EVERY_MS);
        if self.chat == ChatStream::Open && self.has_deltas && due {
            self.last_delta = Some(now);
            let delta = self.broadcast("chat", self.reply(self.seq, ChatState::Delta, now));
            out.push(Broadcast { droppable: true, growing, ..delta });
        }
        out
    }

    /// A `chat` event with the text so far.
    fn reply(&self, seq: u64, state: ChatState, now: i64) -> Payload {
        self.text.put_into(&self.chat(seq, state, Some(ReplyText::new("", now))))
    }

    /// Returns the outcome if clients asked for everything, else `None`.
    fn if_full(&self, outcome: Value) -> Option<Value> {
        (self.verbose == Verbose::Full).then_some(outcome)
    }

    /// Returns the broadcasts for a tool event, which has a number even if nobody gets it.
    fn tool(&mut self, now: i64, event: ToolEvent) -> Vec<Broadcast> {
        let audience = match self.verbose {
            Verbose::Off => Audience::ToolWatchers,
            Verbose::On | Verbose::Full => Audience::ToolListeners,
        };
        vec![Broadcast { audience, ..self.agent(now, AgentStream::Tool(event)) }]
    }

    /// Returns the events at the end of a run of which only this text is worth a `chat` event;
    /// without a text there is none.
    pub fn ended_with(
        &mut self,
        now: i64,
        ended_at: i64,
        end: &RunEnd,
        said: Option<&str>,
    ) -> Vec<Broadcast> {
        let last = self.last_lifecycle(now, ended_at, end);
        let said = said.map(|text| self.chat(self.seq, ChatState::Final, Some(ReplyText::new(text, now))));
        let chat = said.and_then(|event| self.close(encoded(&event)));
        self.chat = ChatStream::Closed;
        std::iter::once(last).chain(chat).collect()
    }

    /// Returns the events at the end of a run that was stopped behind an answer, which is its end.
    pub fn ended_with_answer(&mut self, now: i64, ended_at: i64, answer: &str) -> Vec<Broadcast> {
        self.text.replace(answer);
        self.ended(now, ended_at, &RunEnd::Completed)
    }

    fn last_lifecycle(&mut self, now: i64, ended_at: i64, end: &RunEnd) -> Broadcast {
        let lifecycle = match end {
            RunEnd::Completed => Lifecycle::End { ended_at, aborted: None },
            RunEnd::Aborted => Lifecycle::End { ended_at, aborted: Some(true) },
            RunEnd::TimedOut => Lifecycle::Error { error: TIME_IS_UP.to_owned(), ended_at },
            RunEnd::Failed(error) => Lifecycle::Error { error: error.clone(), ended_at },
        };
        Broadcast { ends_run: true, ..self.agent(now, AgentStream::Lifecycle(lifecycle)) }
    }

    fn ended(&mut self, now: i64, ended_at: i64, end: &RunEnd) -> Vec<Broadcast> {
        let last = self.last_lifecycle(now, ended_at, end);
        let seq = self.seq;
        let chat = match end {
            RunEnd::Completed if self.text.is_empty() => encoded(&self.wordless(seq, ChatState::Final)),
            RunEnd::Completed => self.reply(seq, ChatState::Final, now),
            RunEnd::Aborted => encoded(&self.stopped(seq, "stop")),
            RunEnd::TimedOut => encoded(&self.failed(seq, TIME_IS_UP)),
            RunEnd::Failed(error) => encoded(&self.failed(seq, error)),
        };
        std::iter::once(last).chain(self.close(chat)).collect()
    }

    fn stopped(&self, seq: u64, reason: &str) -> ChatEvent {
        ChatEvent { stop_reason: Some(reason.to_owned()), ..self.wordless(seq, ChatState::Aborted) }
    }

    fn failed(&self, seq: u64, error: &str) -> ChatEvent {
        ChatEvent { error_message: Some(error.to_owned()), ..self.wordless(seq, ChatState::Error) }
    }

    /// A `chat` event without a message.
    fn wordless(&self, seq: u64, state: ChatState) -> ChatEvent {
        self.chat(seq, state, None)
    }

    fn chat<M>(&self, seq: u64, state: ChatState, message: Option<M>) -> ChatEvent<M> {
        chat_event(&self.run_id, &self.session_key, seq, state, message)
    }

    /// Closes the `chat` stream with this event, unless it has ended.
    fn close(&mut self, last: Payload) -> Option<Broadcast> {
        let was = std::mem::replace(&mut self.chat, ChatStream::Closed);
        (was == ChatStream::Open).then(|| self.broadcast("chat", last))
    }

    fn agent(&mut self, now: i64, stream: AgentStream<'_>) -> Broadcast {
        let event = self.numbered(now, stream);
        self.broadcast("agent", encoded(&event))
    }

    fn numbered<'a>(&mut self, now: i64, stream: AgentStream<'a>) -> AgentEvent<'a> {
        self.seq += 1;
        AgentEvent {
            run_id: self.run_id.clone(),
            stream,
            session_key: Some(self.session_key.clone()),
            seq: self.seq,
            ts: now,
        }
    }

    fn broadcast(&self, name: &'static str, payload: Payload) -> Broadcast {
        broadcast(name, payload, self.run_id.clone(), self.session_key.clone())
    }
}

/// The `chat` final of `chat.inject` (spec `gateway-protocol.md` §6.4): run id `inject-<entry id>`, `seq` 0, and the
/// message with its model fields.
pub fn injected(session_key: &SessionKey, entry_id: &str, message: &Message) -> Broadcast {
    let run_id = RunId::new(format!("inject-{entry_id}"));
    let event = encoded(&chat_event(&run_id, session_key, 0, ChatState::Final, Some(message)));
    broadcast("chat", event, run_id, session_key.clone())
}

fn chat_event<M>(
    run_id: &RunId,
    session_key: &SessionKey,
    seq: u64,
    state: ChatState,
    message: Option<M>,
) -> ChatEvent<M> {
    ChatEvent {
        run_id: run_id.clone(),
        session_key: session_key.clone(),
        seq,
        state,
        message,
        error_message: None,
        stop_reason: None,
    }
}

fn broadcast(name: &'static str, payload: Payload, run_id: RunId, session_key: SessionKey) -> Broadcast {
    Broadcast {
        name,
        payload,
        run_id,
        session_key,
        audience: Audience::All,
        droppable: false,
        ends_run: false,
        growing: None,
    }
}

/// Encodes the event once, for all subscribers.
fn encoded<E: Serialize>(event: &E) -> Payload {
    // These types always have a JSON form; `null` stands for the impossible case.
    Payload::of(event).unwrap_or_else(|_| Value::Null.into())
}

#[cfg(test)]
mod tests;
