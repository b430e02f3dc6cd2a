//! Sessions with a long talk behind them, as OpenClaw 2026.2.9 leaves them: rows and transcripts.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::many_sessions::OLDEST;

/// Writes `agents/main/sessions` below a state directory: this many sessions of this many messages each.
///
/// # Errors
/// When the disk refuses.
pub fn write(state_dir: &Path, sessions: usize, messages: usize) -> Result<()> {
    // Of today: the next message goes on with the talk rather than begins a new one.
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let mut rows = Map::new();
    for number in 0..sessions {
        let path = transcript(state_dir, number);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        write_transcript(&path, &id(number), messages)?;
        let row =
            json!({"sessionId": id(number), "updatedAt": now, "systemSent": true, "chatType": "direct"});
        rows.insert(key(number), row);
    }
    Ok(fs::write(state_dir.join("agents/main/sessions/sessions.json"), Value::Object(rows).to_string())?)
}

/// The key of a session.
pub fn key(number: usize) -> String {
    format!("agent:main:long-{number}")
}

/// Path of its transcript.
pub fn transcript(state_dir: &Path, number: usize) -> PathBuf {
    state_dir.join(format!("agents/main/sessions/{}.jsonl", id(number)))
}

fn id(number: usize) -> String {
    format!("{number:08x}-1046-4000-8000-{number:012x}")
}

/// Writes a transcript of this many messages, user and assistant in turns.
///
/// # Errors
/// When the disk refuses.
pub fn write_transcript(path: &Path, id: &str, messages: usize) -> Result<()> {
    let at = "2026-02-09T10:00:00.000Z";
    let mut text =
        format!("{}\n", json!({"type": "session", "version": 3, "id": id, "timestamp": at, "cwd": "/"}));
    for n in 0..messages {
        let content = json!([{"type": "text", "text": format!("Line {n} of a long talk about nothing in particular.")}]);
        let message = match n % 2 {
            0 => json!({"role": "user", "content": content, "timestamp": OLDEST + n as i64}),
            _ => json!({
                "role": "assistant", "content": content, "api": "openai-completions", "provider": "fake",
                "model": "fake-1", "stopReason": "stop", "timestamp": OLDEST + n as i64,
                "usage": {"input": 100, "output": 7, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 107,
                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
            }),
        };
        let parent = n.checked_sub(1).map(|parent| format!("{parent:08x}"));
        let line = json!({"type": "message", "id": format!("{n:08x}"), "parentId": parent, "timestamp": at, "message": message});
        writeln!(text, "{line}")?;
    }
    Ok(fs::write(path, text)?)
}
