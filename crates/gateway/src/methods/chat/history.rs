//! `chat.history` (spec `gateway-protocol.md` §6.4).

use openclaw_agent::text::silent::{SILENT_TOKENS, is_silent};
use openclaw_models::failure::user_text;
use openclaw_protocol::message::Block;
use openclaw_protocol::params::chat::{ChatHistoryParams, ChatHistoryResult};
use openclaw_protocol::{AgentId, ErrorShape};
use openclaw_sessions::{SessionEntry, history as transcript};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ChatMethods;
use crate::methods::default_model::describe;
use crate::request::RequestFailure;

/// Level of a model that can't be found.
const NO_THINKING: &str = "off";

pub(in crate::methods) async fn history(
    parts: &ChatMethods,
    params: ChatHistoryParams,
) -> Result<ChatHistoryResult<Box<RawValue>>, RequestFailure> {
    let key = parts.sessions.rules().canonical(&params.session_key.0)?;
    let entry = parts.sessions.get(&key).await?.map(|row| row.entry).unwrap_or_default();
    let agent = parts.sessions.rules().agent_of(&key);
    let thinking_level = thinking_level(parts, &agent, &entry).await;
    let verbose_level = match entry.verbose_level {
        Some(level) => Some(level.as_str().to_owned()),
        None => parts.settings.config().agent(&agent).verbose_default,
    };
    let session_id = entry.session_id.as_ref().map(|id| id.as_str().to_owned());
    let limit =
        usize::try_from(params.limit.unwrap_or(ChatHistoryParams::DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    let transcripts = parts.transcripts.clone();
    let read = tokio::task::spawn_blocking(move || match transcripts.find(&agent, &entry) {
        Some(found) => transcript::read(&transcripts.reader(&found), limit),
        None => Ok(Vec::new()),
    });
    let unreadable =
        |error: &dyn std::fmt::Display| ErrorShape::unavailable(format!("Error: history: {error}"));
    let messages = read.await.map_err(|error| unreadable(&error))?.map_err(|error| unreadable(&error))?;
    let messages = messages.into_iter().filter(|message| !is_silence(message)).map(with_error_text).collect();
    Ok(ChatHistoryResult {
        session_key: params.session_key.0,
        session_id,
        messages,
        thinking_level: Some(thinking_level),
        verbose_level,
    })
}

/// True for an answer that is nothing but a silent token: it was not delivered.
fn is_silence(message: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct HistoryReply {
        role: String,
        content: Vec<Block>,
    }
    // Others are not parsed.
    if !SILENT_TOKENS.iter().any(|token| message.get().contains(token)) {
        return false;
    }
    let Ok(HistoryReply { role, content }) = serde_json::from_str(message.get()) else { return false };
    let mut words = String::new();
    for block in &content {
        match block {
            Block::Text(text) => words.push_str(&text.text),
            Block::Thinking(_) => {}
            Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => return false,
        }
    }
    role == "assistant" && is_silent(&words)
}

/// Adds the error text for people to a failed answer. Our answers have it where it differs from the
/// provider's words; those of OpenClaw get it here.
fn with_error_text(message: Box<RawValue>) -> Box<RawValue> {
    // Messages that cannot have the field are not parsed.
    if !message.get().contains("\"errorMessage\"") {
        return message;
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_str(message.get()) else { return message };
    let failed = fields.get("stopReason").is_some_and(|reason| reason == "error");
    let Some(raw) = fields.get("errorMessage").and_then(Value::as_str).filter(|_| failed) else {
        return message;
    };
    let told = user_text(raw);
    if told == raw || fields.contains_key("errorText") {
        return message;
    }
    fields.insert("errorText".to_owned(), told.into());
    serde_json::value::to_raw_value(&fields).unwrap_or(message)
}

/// The session's own level, else the one its model would run with.
async fn thinking_level(parts: &ChatMethods, agent: &AgentId, entry: &SessionEntry) -> String {
    if let Some(level) = entry.thinking_level.as_deref() {
        return level.to_owned();
    }
    let own = entry.model_override_ref().map(|(provider, model)| match provider {
        Some(provider) => format!("{provider}/{model}"),
        None => model.to_owned(),
    });
    let described = describe(&parts.models, &parts.settings.get(), agent, own.as_deref()).await;
    described.map_or_else(|| NO_THINKING.to_owned(), |model| model.thinking.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failed_answer_tells_people_what_a_failed_run_tells_them() {
        let raw = r#"401 {"type":"error","error":{"type":"authentication_error","message":"bad key"}}"#;
        let answer = |stop: &str, error: &str| json!({"role": "assistant", "content": [], "stopReason": stop, "errorMessage": error});
        let told = |mut answer: Value, text: &str| {
            answer["errorText"] = text.into();
            answer
        };
        let rows = [
            (answer("error", raw), told(answer("error", raw), "HTTP 401 authentication_error: bad key")),
            (
                told(answer("error", raw), "All models failed"),
                told(answer("error", raw), "All models failed"),
            ),
            (answer("error", "400 no such model"), answer("error", "400 no such model")),
            (answer("aborted", raw), answer("aborted", raw)),
            (
                json!({"role": "user", "content": "\"errorMessage\""}),
                json!({"role": "user", "content": "\"errorMessage\""}),
            ),
        ];
        for (stored, expect) in rows {
            let shown = with_error_text(serde_json::value::to_raw_value(&stored).unwrap());
            assert_eq!(serde_json::from_str::<Value>(shown.get()).unwrap(), expect, "{stored}");
        }
    }

    #[test]
    fn an_answer_that_is_silence_is_not_shown() {
        let text =
            |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
        let thought = json!({"type": "thinking", "thinking": "nothing to say"});
        let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {}});
        let with = |block: &Value| json!({"role": "assistant", "content": [block, {"type": "text", "text": "NO_REPLY"}]});
        let rows = [
            (text("assistant", "NO_REPLY"), true),
            (text("assistant", " **REPLY_SKIP**.\n"), true),
            (text("assistant", "ANNOUNCE_SKIP"), true),
            (with(&thought), true),
            (with(&call), false),
            (text("assistant", "I said NO_REPLY to them"), false),
            (text("assistant", "hello"), false),
            (text("user", "NO_REPLY"), false),
            (json!({"role": "user", "content": "NO_REPLY"}), false),
        ];
        for (stored, expect) in rows {
            let raw = serde_json::value::to_raw_value(&stored).unwrap();
            assert_eq!(is_silence(&raw), expect, "{stored}");
        }
    }
}
