//! `chat.history` (spec `gateway-protocol.md` §6.4, `sessions.md` §4.9).

use std::ops::ControlFlow;
use std::path::Path;

use openclaw_models::{Ask, AskedThinking};
use openclaw_protocol::params::chat::{ChatHistoryParams, ChatHistoryResult};
use openclaw_protocol::{AgentId, ErrorShape};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::time::parse_iso;
use openclaw_sessions::transcript::backward::walk_branch;
use serde_json::{Value, json};

use super::display::strip_message;
use crate::methods::keys::canonical;
use crate::request::{Failure, RequestContext};

/// Largest `messages` array in bytes of JSON.
const MAX_BYTES: usize = 6 * 1024 * 1024;
/// Level of a model that can't be found.
const NO_THINKING: &str = "off";

pub(in crate::methods) async fn history(
    ctx: RequestContext,
    params: ChatHistoryParams,
) -> Result<ChatHistoryResult, Failure> {
    let key = canonical(&ctx, &params.session_key.0)?;
    let row = ctx.gateway.sessions.get(&key).await?;
    let entry = row.map(|row| row.entry).unwrap_or_default();
    let agent = ctx.gateway.sessions.rules().agent_of(&key);
    let limit = usize::try_from(params.limit.unwrap_or(ChatHistoryParams::DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    let verbose_default = ctx.gateway.config().agent(&agent).verbose_default;
    let verbose = entry.verbose_level.map(|level| level.as_str().to_owned()).or(verbose_default);
    Ok(ChatHistoryResult {
        session_key: params.session_key.0,
        session_id: entry.session_id.as_ref().map(|id| id.as_str().to_owned()),
        thinking_level: Some(thinking_level(&ctx, &agent, &entry).await),
        verbose_level: verbose,
        messages: {
            let layout = ctx.gateway.layout.clone();
            let read = move || layout.find_transcript(&agent, &entry).map_or_else(Vec::new, |path| shown(&path, limit));
            let messages = tokio::task::spawn_blocking(read).await;
            messages.map_err(|error| ErrorShape::unavailable(format!("Error: {error}")))?
        },
    })
}

/// The session's own level, else the one its model would run with.
async fn thinking_level(ctx: &RequestContext, agent: &AgentId, entry: &SessionEntry) -> String {
    if let Some(level) = entry.thinking_level.as_deref() {
        return level.to_owned();
    }
    let settings = ctx.gateway.settings();
    let own = entry.model_override_ref().map(|(provider, model)| match provider {
        Some(provider) => format!("{provider}/{model}"),
        None => model.to_owned(),
    });
    let ask = Ask {
        agent,
        agent_dir: &settings.config.agent(agent).agent_dir,
        model: own.as_deref(),
        profile: None,
        thinking: AskedThinking::Default,
    };
    match ctx.gateway.models.describe(&settings.models, &ask).await {
        Ok(model) => model.thinking.as_str().to_owned(),
        Err(_) => NO_THINKING.to_owned(),
    }
}

/// The last messages of a transcript's current branch as clients see them. Blocking.
fn shown(path: &Path, limit: usize) -> Vec<Value> {
    let mut messages = last_messages(path, limit).unwrap_or_else(|error| {
        tracing::warn!(path = %path.display(), %error, "the transcript could not be read");
        Vec::new()
    });
    messages.iter_mut().for_each(strip_message);
    within_budget(messages, MAX_BYTES)
}

fn last_messages(path: &Path, limit: usize) -> std::io::Result<Vec<Value>> {
    let mut messages = Vec::new();
    walk_branch(path, |_, line| {
        if messages.len() >= limit {
            return ControlFlow::Break(());
        }
        messages.extend(message_of(line));
        ControlFlow::Continue(())
    })?;
    messages.reverse();
    Ok(messages)
}

/// The message of a transcript line; a marker for a compaction; nothing for other entries.
fn message_of(line: &[u8]) -> Option<Value> {
    let mut entry: Value = serde_json::from_slice(line).ok()?;
    match entry.get("type").and_then(Value::as_str) {
        Some("message") => entry.get_mut("message").map(Value::take).filter(Value::is_object),
        Some("compaction") => {
            let timestamp = entry.get("timestamp").and_then(Value::as_str).and_then(parse_iso);
            let mut marker = json!({
                "role": "system",
                "content": [{"type": "text", "text": "Compaction"}],
                "timestamp": timestamp.unwrap_or_default(),
                "__openclaw": {"kind": "compaction"},
            });
            if let (Some(id), Some(own)) = (entry.get("id"), marker.get_mut("__openclaw")) {
                own.as_object_mut()?.insert("id".to_owned(), id.clone());
            }
            Some(marker)
        }
        _ => None,
    }
}

/// Drops the oldest until the array fits; the last one always stays.
fn within_budget(mut messages: Vec<Value>, max_bytes: usize) -> Vec<Value> {
    const BRACKETS: usize = 2;
    const COMMA: usize = 1;
    let mut bytes = BRACKETS;
    let mut kept = 0;
    for message in messages.iter().rev() {
        bytes += message.to_string().len() + if kept == 0 { 0 } else { COMMA };
        if bytes > max_bytes && kept > 0 {
            break;
        }
        kept += 1;
    }
    messages.split_off(messages.len() - kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vector of `sessions.md` §4.9.
    #[test]
    fn the_oldest_messages_make_room_and_the_last_stays() {
        let rows = [
            (json!(["a", "b", "c"]), 10, json!(["b", "c"])),
            (json!(["a", "b", "c"]), 13, json!(["a", "b", "c"])),
            (json!(["a", "b", "c"]), 1, json!(["c"])),
            (json!([]), 1, json!([])),
        ];
        for (messages, max, expect) in rows {
            let kept = within_budget(messages.as_array().unwrap().clone(), max);
            assert_eq!(Value::from(kept), expect, "{max}");
        }
    }

    #[test]
    fn the_last_messages_of_the_branch_are_shown_as_typed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let lines = [
            json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-02-09T10:00:00.000Z", "cwd": "/"}),
            json!({"type": "message", "id": "1", "parentId": null, "timestamp": "2026-02-09T10:00:01.000Z",
                   "message": {"role": "user", "content": "[Mon 2026-02-09 10:00 UTC] hi\n[message_id: r]", "timestamp": 1}}),
            json!({"type": "message", "id": "left", "parentId": "1", "timestamp": "2026-02-09T10:00:02.000Z",
                   "message": {"role": "user", "content": "on another branch", "timestamp": 2}}),
            json!({"type": "compaction", "id": "2", "parentId": "1", "timestamp": "2026-02-09T10:00:03.000Z",
                   "summary": "s", "firstKeptEntryId": "1", "tokensBefore": 5}),
            json!({"type": "custom", "id": "3", "parentId": "2", "timestamp": "2026-02-09T10:00:04.000Z",
                   "customType": "x", "data": {}}),
            json!({"type": "message", "id": "4", "parentId": "3", "timestamp": "2026-02-09T10:00:05.000Z",
                   "message": {"role": "assistant", "content": [], "timestamp": 3, "novel": true}}),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let user = json!({"role": "user", "content": "hi", "timestamp": 1});
        let marker = json!({"role": "system", "content": [{"type": "text", "text": "Compaction"}],
                            "timestamp": 1_770_631_203_000_i64, "__openclaw": {"kind": "compaction", "id": "2"}});
        let answer = json!({"role": "assistant", "content": [], "timestamp": 3, "novel": true});
        assert_eq!(shown(&path, 10), [user, marker.clone(), answer.clone()]);
        assert_eq!(shown(&path, 2), [marker, answer]);
        assert_eq!(shown(Path::new("/nowhere.jsonl"), 2), [Value::Null; 0]);
    }
}
