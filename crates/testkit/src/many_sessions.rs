//! A store with very many sessions, row by row as OpenClaw 2026.2.9 leaves them after some talk (spec `sessions.md` §3.2):
//! groups, direct chats and sub-agents, about 0.9 KB a row; every fiftieth carries the skills prompt that it shares with the
//! others, every hundredth the report of its system prompt.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

/// Last activity of the oldest row, Unix milliseconds; each further row is a second younger.
pub const OLDEST: i64 = 1_770_000_000_000;

/// Rows that carry the skills prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skills {
    /// Every fiftieth row.
    Some,
    /// All of them, as in a store that only chats fill.
    All,
}

/// Writes `agents/main/sessions/sessions.json` below a state directory.
///
/// # Errors
/// When the disk refuses.
pub fn write(state_dir: &Path, sessions: usize, skills: Skills) -> Result<()> {
    let dir = state_dir.join("agents/main/sessions");
    fs::create_dir_all(&dir)?;
    let mut file = BufWriter::new(fs::File::create(dir.join("sessions.json"))?);
    let prompt = "Use this skill when the user asks for it; read its file first.\n".repeat(128);
    write!(file, "{{")?;
    for number in 0..sessions {
        let mut row = row(number, &dir);
        if skills == Skills::All || number % 50 == 7 {
            let snapshot = json!({"prompt": prompt, "skills": [{"name": "healthcheck"}], "version": 0});
            row.insert("skillsSnapshot".to_owned(), snapshot);
        }
        let text = format!("{:#}", Value::Object(row)).replace('\n', "\n  ");
        write!(file, "{}\n  \"{}\": {text}", if number == 0 { "" } else { "," }, key(number))?;
    }
    write!(file, "{}}}", if sessions == 0 { "" } else { "\n" })?;
    Ok(file.flush()?)
}

/// The key of a row.
pub fn key(number: usize) -> String {
    match number % 10 {
        0..=4 => format!("agent:main:telegram:group:-100{number}"),
        5..=7 => format!("agent:main:whatsapp:direct:+1555{number:07}"),
        8 => format!("agent:main:subagent:{}", id(number)),
        _ => format!("agent:main:discord:channel:{}", 900_000_000_000_usize + number),
    }
}

/// The transcript id of a row.
pub fn id(number: usize) -> String {
    format!("{number:08x}-5e55-4000-8000-{number:012x}")
}

fn row(number: usize, dir: &Path) -> Map<String, Value> {
    let id = id(number);
    let state = json!({
        "sessionId": id,
        "updatedAt": OLDEST + 1_000 * number as i64,
        "systemSent": true,
        "abortedLastRun": false,
        "sessionFile": dir.join(format!("{id}.jsonl")),
        "modelProvider": "anthropic",
        "model": "claude-sonnet-4-5",
        "contextTokens": 200_000,
        "inputTokens": 4_000 + number % 900,
        "outputTokens": 300 + number % 90,
        "totalTokens": 14_000 + number % 5_000,
        "compactionCount": 0,
    });
    let report = || {
        let entry = json!({"name": "exec", "summaryChars": 80, "schemaChars": 900, "propertiesCount": 9});
        let tools = json!({"entries": vec![entry; 20]});
        json!({"systemPromptReport": {"source": "run", "generatedAt": OLDEST, "tools": tools}})
    };
    let parts = [Some(state), Some(chat(number)), (number % 100 == 3).then(report)];
    let fields = parts.into_iter().flatten().filter_map(|part| match part {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    fields.flatten().collect()
}

/// Chat of a conversation: its channel, kind and target.
fn chat(number: usize) -> Value {
    let (channel, kind, target) = match number % 10 {
        0..=4 => ("telegram", "group", format!("telegram:-100{number}")),
        5..=7 => ("whatsapp", "direct", format!("+1555{number:07}")),
        8 => ("webchat", "direct", "webchat".to_owned()),
        _ => ("discord", "channel", format!("channel:{}", 900_000_000_000_usize + number)),
    };
    let more = match number % 10 {
        0..=4 => json!({
            "channel": channel, "groupId": format!("-100{number}"), "subject": format!("Group number {number}"),
            "displayName": format!("telegram:g-group-number-{number}"), "groupActivation": "mention",
        }),
        5..=7 => json!({}),
        8 => json!({"spawnedBy": key(number % 500), "label": format!("task {number}")}),
        _ => json!({
            "channel": channel, "groupId": format!("{}", 900_000_000_000_usize + number), "groupChannel": "#general",
            "space": format!("server {}", number % 100), "thinkingLevel": "low",
        }),
    };
    let origin = json!({
        "label": format!("Somebody {number} id:{number}"), "provider": channel, "surface": channel, "chatType": kind,
        "from": target, "to": target, "accountId": "default",
    });
    let mut fields = json!({
        "chatType": kind, "origin": origin,
        "deliveryContext": {"channel": channel, "to": target, "accountId": "default"},
        "lastChannel": channel, "lastTo": target, "lastAccountId": "default",
    });
    if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
        fields.extend(more);
    }
    fields
}
