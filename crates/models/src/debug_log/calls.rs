//! The lines about one model's calls, in the form OpenClaw 2026.2.9 gives them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use openclaw_protocol::message::{AssistantMessage, Block, Message};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::file::{LogFile, MAX_LINE};
use crate::model_spec::ModelSpec;
use crate::provider_key::ProviderKey;
use crate::request::ModelRequest;
use crate::stream::ModelEvent;
use openclaw_config::clock::now_ms;

/// Bytes of a payload that is written whole; what surrounds it in a line takes the rest.
const MAX_PAYLOAD: usize = MAX_LINE / 2;

/// Selection of the logs that are written, and their detail.
#[derive(Debug)]
pub(super) struct LogParts {
    pub(super) payloads: Option<LogFile>,
    pub(super) stream: Option<LogFile>,
    pub(super) trace: Option<LogFile>,
    pub(super) with_messages: bool,
    pub(super) with_system: bool,
}

/// Writes about the calls of one model.
#[derive(Debug)]
pub(crate) struct CallLog {
    provider: String,
    model: String,
    api: String,
    parts: LogParts,
    sequence: AtomicU64,
}

impl CallLog {
    pub(super) fn new(spec: &ModelSpec, parts: LogParts) -> Self {
        Self {
            provider: spec.provider().to_owned(),
            model: spec.id().to_owned(),
            api: spec.api.as_str().to_owned(),
            parts,
            sequence: AtomicU64::new(0),
        }
    }

    /// Logs the request that a call is about to send, independent of any provider.
    pub(crate) fn context(&self, request: &ModelRequest, key: Option<&ProviderKey>) {
        let Some(trace) = &self.parts.trace else { return };
        let mut line = self.line("stream:context", request.session_id.as_deref());
        line.insert("systemDigest".to_owned(), json!(digest(request.system.as_bytes())));
        if self.parts.with_system {
            line.insert("system".to_owned(), json!(request.system));
        }
        let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
        line.insert(
            "options".to_owned(),
            json!({"thinking": request.thinking.as_str(), "maxTokens": request.max_tokens,
                "temperature": request.temperature, "cacheRetention": request.cache, "tools": tools}),
        );
        self.messages(&mut line, &request.messages);
        trace.append(masked(Value::Object(line).to_string(), key));
    }

    /// Logs the body that is posted.
    pub(crate) fn posted(&self, session: Option<&str>, body: &[u8], key: Option<&ProviderKey>) {
        let Some(payloads) = &self.parts.payloads else { return };
        let mut line = self.line("request", session);
        line.insert("payloadDigest".to_owned(), json!(digest(body)));
        line.insert("payloadBytes".to_owned(), json!(body.len()));
        let text = masked(String::from_utf8_lossy(body).into_owned(), key);
        if let Some(payload) = Some(text).filter(|text| text.len() <= MAX_PAYLOAD)
            && let Ok(raw) = RawValue::from_string(payload)
        {
            // The payload as it is, to the byte: what is looked for is often a byte.
            let mut head = Value::Object(line).to_string();
            head.pop();
            payloads.append(format!("{head},\"payload\":{}}}", raw.get()));
        } else {
            payloads.append(Value::Object(line).to_string());
        }
    }

    /// Logs an event that a listener receives.
    pub(crate) fn event(&self, session: Option<&str>, event: &ModelEvent, key: Option<&ProviderKey>) {
        match event {
            ModelEvent::TextDelta { delta, .. } => self.piece(session, "text_delta", delta),
            ModelEvent::ThinkingDelta { delta, .. } => self.piece(session, "thinking_delta", delta),
            ModelEvent::Start | ModelEvent::Retry { .. } | ModelEvent::ToolCallStart { .. } => {}
            ModelEvent::Done { message, .. } => self.ended(session, message, key),
        }
    }

    fn piece(&self, session: Option<&str>, kind: &str, delta: &str) {
        let Some(stream) = &self.parts.stream else { return };
        let line = json!({"ts": now_ms(), "event": "assistant_text_stream", "sessionId": session, "evtType": kind,
            "delta": delta});
        stream.append(line.to_string());
    }

    fn ended(&self, session: Option<&str>, message: &AssistantMessage, key: Option<&ProviderKey>) {
        if let Some(stream) = &self.parts.stream {
            let thoughts: String = message.content.iter().filter_map(thought).collect();
            let line = json!({"ts": now_ms(), "event": "assistant_message_end", "sessionId": session,
                "rawText": message.text(), "rawThinking": thoughts});
            stream.append(masked(line.to_string(), key));
        }
        if let Some(payloads) = &self.parts.payloads {
            let mut line = self.line("usage", session);
            line.insert("usage".to_owned(), json!(message.usage));
            if let Some(error) = &message.error_message {
                line.insert("error".to_owned(), json!(error));
            }
            payloads.append(Value::Object(line).to_string());
        }
        if let Some(trace) = &self.parts.trace {
            let mut line = self.line("session:after", session);
            line.insert("usage".to_owned(), json!(message.usage));
            self.messages(&mut line, &[Arc::new(Message::Assistant(message.clone()))]);
            trace.append(masked(Value::Object(line).to_string(), key));
        }
    }

    fn line(&self, stage: &str, session: Option<&str>) -> Map<String, Value> {
        let mut line = Map::new();
        line.insert("ts".to_owned(), json!(jiff::Timestamp::now().to_string()));
        line.insert("seq".to_owned(), json!(self.sequence.fetch_add(1, Ordering::Relaxed)));
        line.insert("stage".to_owned(), json!(stage));
        line.insert("sessionId".to_owned(), json!(session));
        line.insert("provider".to_owned(), json!(self.provider));
        line.insert("modelId".to_owned(), json!(self.model));
        line.insert("modelApi".to_owned(), json!(self.api));
        line
    }

    /// Logs digests of the messages, so that the first change from one request to the next can be
    /// found, and the messages themselves if they are requested and not too long for a line.
    fn messages(&self, line: &mut Map<String, Value>, messages: &[Arc<Message>]) {
        let texts: Vec<String> = messages.iter().map(|message| json!(message).to_string()).collect();
        let roles: Vec<&str> = messages.iter().map(|message| role(message)).collect();
        let prints: Vec<String> = texts.iter().map(|text| digest(text.as_bytes())).collect();
        line.insert("messageCount".to_owned(), json!(messages.len()));
        line.insert("messageRoles".to_owned(), json!(roles));
        line.insert("messagesDigest".to_owned(), json!(digest(prints.join("").as_bytes())));
        line.insert("messageFingerprints".to_owned(), json!(prints));
        if self.parts.with_messages && texts.iter().map(String::len).sum::<usize>() <= MAX_PAYLOAD {
            line.insert("messages".to_owned(), json!(messages));
        }
    }
}

/// A person may have written a key into the talk.
fn masked(text: String, key: Option<&ProviderKey>) -> String {
    match key {
        Some(key) => key.redact(&text),
        None => text,
    }
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "toolResult",
    }
}

fn thought(block: &Block) -> Option<&str> {
    match block {
        Block::Thinking(thinking) => Some(&thinking.thinking),
        Block::Text(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
