//! One run's events as clients see them (spec `gateway-protocol.md` §7.3, §7.4): a pure machine, told the time.

use openclaw_agent::event::{RunEnd, RunEvent};
use openclaw_protocol::RunId;
use openclaw_protocol::message::Message;
use serde_json::{Map, Value, json};

use crate::api::{Audience, Broadcast};

/// A `chat` delta is sent at most this often per run (spec `gateway-protocol.md` §7.4).
const DELTA_EVERY_MS: i64 = 150;

/// How much of a run's tool events is sent (spec `gateway-protocol.md` §7.3). Clients that watch the activity of tools
/// hear of calls at every level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Verbose {
    /// Nothing, except to those who watch.
    #[default]
    Off,
    /// That there were calls, not what came of them.
    On,
    /// Everything.
    Full,
}

impl Verbose {
    /// Reads a stored or configured level; unknown text is [`Verbose::Off`].
    pub(crate) fn parse(text: &str) -> Self {
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
pub(crate) struct Emitter {
    run_id: RunId,
    session_key: String,
    verbose: Verbose,
    seq: u64,
    /// Text of the last assistant message, once any was streamed.
    text: Option<String>,
    last_delta: Option<i64>,
    chat: Chat,
}

/// Where the run's `chat` stream is. Exactly one terminal state is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chat {
    Open,
    Closed,
}

impl Emitter {
    pub(crate) fn new(run_id: RunId, session_key: String) -> Self {
        Self {
            run_id,
            session_key,
            verbose: Verbose::Off,
            seq: 0,
            text: None,
            last_delta: None,
            chat: Chat::Open,
        }
    }

    /// Sets how much of the tool events is sent from now on.
    pub(crate) fn set_verbose(&mut self, verbose: Verbose) {
        self.verbose = verbose;
    }

    /// What clients hear of an event, in order.
    pub(crate) fn on(&mut self, now: i64, event: RunEvent) -> Vec<Broadcast> {
        match event {
            RunEvent::Started { started_at } => {
                vec![self.agent(now, "lifecycle", json!({"phase": "start", "startedAt": started_at}))]
            }
            RunEvent::Asking => Vec::new(),
            RunEvent::Assistant { text, delta } => self.assistant(now, text, &delta),
            RunEvent::ToolStart { name, call_id, args } => self.tool(
                now,
                json!({"phase": "start", "name": name, "toolCallId": call_id, "args": args}),
                None,
            ),
            RunEvent::ToolUpdate { name, call_id, partial } => self.tool(
                now,
                json!({"phase": "update", "name": name, "toolCallId": call_id}),
                Some(("partialResult", partial)),
            ),
            RunEvent::ToolResult { name, call_id, meta, is_error, result } => {
                let mut data = json!({"phase": "result", "name": name, "toolCallId": call_id});
                if let Some(meta) = meta {
                    insert(&mut data, "meta", json!(meta));
                }
                insert(&mut data, "isError", json!(is_error));
                self.tool(now, data, Some(("result", result)))
            }
            RunEvent::CompactionStart => vec![self.agent(now, "compaction", json!({"phase": "start"}))],
            RunEvent::CompactionEnd { will_retry } => {
                vec![self.agent(now, "compaction", json!({"phase": "end", "willRetry": will_retry}))]
            }
            RunEvent::Ended { ended_at, end, .. } => self.ended(now, ended_at, &end),
        }
    }

    /// The run is being stopped from outside: clients hear it at once, and no more `chat` events of it. Nothing when its
    /// `chat` stream is closed already.
    pub(crate) fn aborted(&mut self, reason: &str) -> Vec<Broadcast> {
        let seq = self.seq + 1;
        self.close(seq, "aborted", &[("stopReason", json!(reason))]).into_iter().collect()
    }

    /// The message went into another run: its own `chat` stream ends at once and empty (decision 7).
    pub(crate) fn absorbed(&mut self) -> Vec<Broadcast> {
        let seq = self.seq + 1;
        self.close(seq, "final", &[]).into_iter().collect()
    }

    /// The gateway answered by itself: that is all clients hear (spec `gateway-protocol.md` §6.4). Who may not ask hears that
    /// it is over.
    pub(crate) fn answered(&mut self, said: Option<&Message>) -> Vec<Broadcast> {
        let seq = self.seq + 1;
        let message = said.map(|said| ("message", serde_json::to_value(said).unwrap_or_default()));
        self.close(seq, "final", message.as_slice()).into_iter().collect()
    }

    /// The run failed before it began.
    pub(crate) fn failed_early(&mut self, message: &str) -> Vec<Broadcast> {
        let seq = self.seq + 1;
        self.close(seq, "error", &[("errorMessage", json!(message))]).into_iter().collect()
    }

    fn assistant(&mut self, now: i64, text: String, delta: &str) -> Vec<Broadcast> {
        let mut out = vec![self.agent(now, "assistant", json!({"text": text, "delta": delta}))];
        let due = self.last_delta.is_none_or(|last| now - last >= DELTA_EVERY_MS);
        if self.chat == Chat::Open && due {
            self.last_delta = Some(now);
            let message = assistant_message(now, &text);
            out.push(self.chat(self.seq, "delta", &[("message", message)], Loss::Allowed));
        }
        self.text = Some(text);
        out
    }

    /// Tool events count even where nobody gets them.
    fn tool(&mut self, now: i64, mut data: Value, outcome: Option<(&str, Value)>) -> Vec<Broadcast> {
        if let (Verbose::Full, Some((key, value))) = (self.verbose, outcome) {
            insert(&mut data, key, value);
        }
        let audience = match self.verbose {
            Verbose::Off => Audience::ToolWatchers,
            Verbose::On | Verbose::Full => Audience::ToolListeners,
        };
        vec![Broadcast { audience, ..self.agent(now, "tool", data) }]
    }

    fn ended(&mut self, now: i64, ended_at: i64, end: &RunEnd) -> Vec<Broadcast> {
        let data = match end {
            RunEnd::Completed => json!({"phase": "end", "endedAt": ended_at}),
            RunEnd::Aborted | RunEnd::TimedOut => {
                json!({"phase": "end", "endedAt": ended_at, "aborted": true})
            }
            RunEnd::Failed(error) => json!({"phase": "error", "error": error, "endedAt": ended_at}),
        };
        let mut out = vec![self.agent(now, "lifecycle", data)];
        let seq = self.seq;
        let last = match end {
            RunEnd::Completed => {
                let message = self.text.take().filter(|text| !text.is_empty());
                let message = message.map(|text| ("message", assistant_message(now, &text)));
                self.close(seq, "final", message.as_slice())
            }
            RunEnd::Aborted => self.close(seq, "aborted", &[("stopReason", json!("stop"))]),
            RunEnd::TimedOut => self.close(seq, "aborted", &[("stopReason", json!("timeout"))]),
            RunEnd::Failed(error) => self.close(seq, "error", &[("errorMessage", json!(error))]),
        };
        out.extend(last);
        out
    }

    fn close(&mut self, seq: u64, state: &str, fields: &[(&str, Value)]) -> Option<Broadcast> {
        if self.chat == Chat::Closed {
            return None;
        }
        self.chat = Chat::Closed;
        Some(self.chat(seq, state, fields, Loss::Forbidden))
    }

    fn agent(&mut self, now: i64, stream: &str, data: Value) -> Broadcast {
        self.seq += 1;
        let mut payload = json!({"runId": self.run_id, "stream": stream});
        insert(&mut payload, "data", data);
        insert(&mut payload, "sessionKey", json!(self.session_key));
        insert(&mut payload, "seq", json!(self.seq));
        insert(&mut payload, "ts", json!(now));
        self.broadcast("agent", payload, Loss::Forbidden)
    }

    fn chat(&self, seq: u64, state: &str, fields: &[(&str, Value)], loss: Loss) -> Broadcast {
        let payload = chat_payload(&self.run_id, &self.session_key, seq, state, fields);
        self.broadcast("chat", payload, loss)
    }

    fn broadcast(&self, name: &'static str, payload: Value, loss: Loss) -> Broadcast {
        Broadcast {
            name,
            payload,
            run_id: self.run_id.clone(),
            session_key: self.session_key.clone(),
            audience: Audience::All,
            droppable: loss == Loss::Allowed,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    Allowed,
    Forbidden,
}

/// The `chat` final of `chat.inject` (spec `gateway-protocol.md` §6.4): run id `inject-<entry id>`, `seq` 0, and the
/// message with its model fields.
pub(crate) fn injected(session_key: &str, entry_id: &str, message: &Message) -> Broadcast {
    let run_id = RunId::new(format!("inject-{entry_id}"));
    let message = serde_json::to_value(message).unwrap_or_default();
    let payload = chat_payload(&run_id, session_key, 0, "final", &[("message", message)]);
    Broadcast {
        name: "chat",
        payload,
        run_id,
        session_key: session_key.to_owned(),
        audience: Audience::All,
        droppable: false,
    }
}

fn chat_payload(run_id: &RunId, session_key: &str, seq: u64, state: &str, fields: &[(&str, Value)]) -> Value {
    let mut payload = json!({"runId": run_id, "sessionKey": session_key, "seq": seq, "state": state});
    for (key, value) in fields {
        insert(&mut payload, key, value.clone());
    }
    payload
}

fn assistant_message(now: i64, text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": now})
}

fn insert(object: &mut Value, key: &str, value: Value) {
    let fields: Option<&mut Map<String, Value>> = object.as_object_mut();
    if let Some(fields) = fields {
        fields.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
