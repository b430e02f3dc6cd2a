//! A state directory as OpenClaw 2026.2.9 leaves it: one agent's `sessions.json` and transcripts (spec `sessions.md` §3, §4).
//!
//! Every kind of key, every field of a row and every type of transcript entry occurs, and some that no version knows, as
//! plugins write them. The same number of sessions always gives the same bytes.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

/// Session of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectorySession {
    /// Session key, as the file spells it.
    pub key: String,
    /// Id of its transcript.
    pub id: String,
}

/// Last activity of the newest row, Unix milliseconds.
const NEWEST: i64 = 1_770_000_000_000;

/// Writes `agents/main/sessions` below a state directory and names what is in it, newest first.
///
/// # Errors
/// When the disk refuses.
pub fn write(state_dir: &Path, sessions: usize) -> Result<Vec<DirectorySession>> {
    let dir = state_dir.join("agents/main/sessions");
    fs::create_dir_all(&dir)?;
    let mut rows = Map::new();
    let mut out = Vec::with_capacity(sessions);
    for number in 0..sessions {
        let session = DirectorySession { key: key(number), id: uuid(number) };
        rows.insert(session.key.clone(), row(number, &session, &dir));
        let name = match topic(number) {
            Some(topic) => format!("{}-topic-{topic}.jsonl", session.id),
            None => format!("{}.jsonl", session.id),
        };
        create(&dir.join(name))?.write_all(transcript(number, &session.id).as_bytes())?;
        out.push(session);
    }
    create(&dir.join("sessions.json"))?.write_all(format!("{:#}", Value::Object(rows)).as_bytes())?;
    Ok(out)
}

fn create(path: &Path) -> std::io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn uuid(number: usize) -> String {
    format!("{number:08x}-5e55-4000-8000-{:012x}", number.wrapping_mul(0x9e37_79b9))
}

fn topic(number: usize) -> Option<usize> {
    (number % 16 == 3).then_some(number / 16 + 1)
}

/// Session key of a row; together the rows have every form of key that a store of one agent holds.
fn key(number: usize) -> String {
    let rest = match (number, number % 16) {
        (0, _) => "main".to_owned(),
        (_, 1) => format!("telegram:direct:{}", 5_000 + number),
        (_, 2) => format!("telegram:group:-100{number}"),
        (_, 3) => format!("telegram:group:-100{number}:topic:{}", number / 16 + 1),
        (_, 4) => format!("discord:channel:{}", 900_000_000_000 + number),
        (_, 5) => format!("slack:channel:c{number}"),
        (_, 6) => format!("slack:channel:c{number}:thread:1700000000.{number:06}"),
        (_, 7) => format!("whatsapp:group:1203630{number}@g.us"),
        (_, 8) => format!("whatsapp:biz:direct:+1555{number:07}"),
        (_, 9) => format!("subagent:{}", uuid(number)),
        (_, 10) => format!("cron:{}", uuid(number)),
        (_, 11) => format!("cron:{}:run:{}", uuid(number - 1), uuid(number)),
        (_, 12) => format!("hook:{}", uuid(number)),
        (_, 13) => format!("openai:{}", uuid(number)),
        (_, 14) => format!("direct:peer-{number}"),
        (_, _) => format!("acp:{}", uuid(number)),
    };
    format!("agent:main:{rest}")
}

fn row(number: usize, session: &DirectorySession, dir: &Path) -> Value {
    let mut row = json!({
        "sessionId": session.id,
        "updatedAt": NEWEST - i64::try_from(number).unwrap_or_default() * 60_000,
        "systemSent": number.is_multiple_of(2),
        "abortedLastRun": number % 31 == 7,
    });
    let parts = [
        Some(contact(number)),
        (number.is_multiple_of(3)).then(|| skills(number)),
        (number % 4 == 1).then(|| usage(number)),
        (number % 7 == 2).then(settings),
        (number % 11 == 3).then(|| overrides(number)),
        (number % 13 == 5).then(|| foreign(number)),
        (number % 16 == 9)
            .then(|| json!({"spawnedBy": "agent:main:main", "label": format!("task {number}")})),
        topic(number).map(|topic| {
            let file = dir.join(format!("{}-topic-{topic}.jsonl", session.id));
            json!({"sessionFile": file.display().to_string()})
        }),
    ];
    for part in parts.into_iter().flatten() {
        if let (Some(row), Value::Object(part)) = (row.as_object_mut(), part) {
            row.extend(part);
        }
    }
    row
}

/// Fields that say where the conversation came from and where it is answered.
fn contact(number: usize) -> Value {
    match number % 16 {
        0 => json!({"deliveryContext": {"channel": "webchat"}, "lastChannel": "webchat"}),
        1 => json!({
            "chatType": "direct",
            "deliveryContext": {"channel": "telegram", "to": format!("telegram:{number}"), "accountId": "default"},
            "lastChannel": "telegram", "lastTo": format!("telegram:{number}"), "lastAccountId": "default",
            "origin": {
                "label": format!("Ünal {number} id:{number}"), "provider": "telegram", "surface": "telegram",
                "chatType": "direct", "from": format!("telegram:{number}"), "to": format!("telegram:{number}"),
                "accountId": "default",
            },
        }),
        2 | 3 => json!({
            "chatType": "group", "channel": "telegram", "groupId": format!("-100{number}"), "subject": "Familie 👪",
            "displayName": format!("telegram:g-familie-{number}"), "groupActivation": "always",
            "groupActivationNeedsSystemIntro": false,
            "deliveryContext": {"channel": "telegram", "to": format!("telegram:-100{number}"), "threadId": number},
            "lastChannel": "telegram", "lastTo": format!("telegram:-100{number}"), "lastThreadId": number,
        }),
        4..=6 => json!({
            "chatType": "channel", "channel": "slack", "groupChannel": "#general", "space": "T024BE7LD",
            "displayName": "slack:t024be7ld#general",
            "deliveryContext": {"channel": "slack", "to": format!("channel:C{number}"), "threadId": "1700000000.000001"},
            "lastChannel": "slack", "lastTo": format!("channel:C{number}"), "lastThreadId": "1700000000.000001",
        }),
        _ => json!({}),
    }
}

/// The frozen skills prompt and the report of the prompt's parts.
fn skills(number: usize) -> Value {
    json!({
        "skillsSnapshot": {
            "prompt": "<available_skills>\n  <skill>\n    <name>weather</name>\n  </skill>\n</available_skills>",
            "skills": [{"name": "weather", "primaryEnv": "WEATHER_KEY"}, {"name": "healthcheck"}],
            "resolvedSkills": [{"name": "weather", "filePath": "/skills/weather/SKILL.md", "empty": [], "none": {}}],
            "version": number,
        },
        "systemPromptReport": {
            "source": "run", "generatedAt": NEWEST, "bootstrapMaxChars": 20_000,
            "systemPrompt": {"chars": 9_000 + number, "projectContextChars": 400},
            "injectedWorkspaceFiles": [{"name": "AGENTS.md", "missing": false, "rawChars": 12, "ratio": 0.5}],
        },
    })
}

fn usage(number: usize) -> Value {
    json!({
        "inputTokens": number, "outputTokens": number % 97, "totalTokens": number + number % 97,
        "modelProvider": "anthropic", "model": "claude-opus-4-6", "contextTokens": 200_000, "compactionCount": number % 5,
        "memoryFlushAt": NEWEST - 1, "memoryFlushCompactionCount": number % 5,
        "cliSessionIds": {"claude-cli": "c1"}, "claudeCliSessionId": "c1",
    })
}

fn settings() -> Value {
    json!({
        "thinkingLevel": "high", "verboseLevel": "full", "reasoningLevel": "stream", "elevatedLevel": "off",
        "ttsAuto": "tagged", "execHost": "node", "execSecurity": "allowlist", "execAsk": "on-miss", "execNode": "n1",
        "responseUsage": "tokens", "sendPolicy": "deny", "queueMode": "collect", "queueDebounceMs": 500, "queueCap": 9,
        "queueDrop": "summarize",
    })
}

fn overrides(number: usize) -> Value {
    json!({
        "providerOverride": "fake", "modelOverride": "fake-1", "authProfileOverride": "fake:default",
        "authProfileOverrideSource": "user", "authProfileOverrideCompactionCount": 1,
        "label": format!("label {number}"), "lastHeartbeatText": "all \"well\"\n", "lastHeartbeatSentAt": NEWEST,
    })
}

/// Fields of plugins and of other versions, with values that are easy to change by accident.
fn foreign(number: usize) -> Value {
    json!({
        "acmePlugin": {"list": [1, 2.5, -0.25, 1e21, null, true, "\u{2028}\u{7f}"], "deep": {"er": {"z": 1, "a": 2}}},
        "zeroWidth": "a\u{200b}b", "big": 9_007_199_254_740_991_u64, "small": 1e-7, "number": number,
    })
}

/// Lines of a transcript: header, settings, a turn with a tool, and what a long life adds.
fn transcript(number: usize, id: &str) -> String {
    let mut entries = Entries { lines: Vec::new(), parent: Value::Null, number, next: 0 };
    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": entries.time(), "cwd": "/home/user/ws"});
    entries.lines.push(header.to_string());
    entries.add("model_change", json!({"provider": "anthropic", "modelId": "claude-opus-4-6"}));
    entries.add("thinking_level_change", json!({"thinkingLevel": "low"}));
    let snapshot = json!({"timestamp": NEWEST, "provider": "anthropic", "modelApi": "anthropic-messages", "modelId": "claude-opus-4-6"});
    entries.add("custom", json!({"customType": "model-snapshot", "data": snapshot}));
    entries.turn("What's up?");
    if number % 5 == 1 {
        let first_kept = entries.turn("And now?");
        entries.add(
            "compaction",
            json!({"summary": "They greeted.", "firstKeptEntryId": first_kept, "tokensBefore": 9_000, "details": {"readFiles": []}, "fromHook": false}),
        );
        entries.turn("After that?");
    }
    if number % 5 == 2 {
        entries.add("branch_summary", json!({"fromId": "root", "summary": "A side way.", "fromHook": false}));
        entries.add("custom_message", json!({"customType": "note", "content": "remember", "display": true}));
        entries.add("session_info", json!({"name": "a name"}));
        let target = entries.parent.clone();
        entries.add("label", json!({"targetId": target, "label": "here"}));
        entries.add("acme_entry", json!({"of": "a plugin", "n": 1.50}));
    }
    entries.lines.join("\n") + "\n"
}

struct Entries {
    lines: Vec<String>,
    parent: Value,
    number: usize,
    next: usize,
}

impl Entries {
    fn time(&self) -> String {
        format!("2026-02-09T10:{:02}:{:02}.{:03}Z", self.next / 60 % 60, self.next % 60, self.number % 1_000)
    }

    /// Appends an entry below the last one and returns its id.
    fn add(&mut self, kind: &str, fields: Value) -> String {
        let id = format!("{:08x}", self.number * 256 + self.next);
        let mut entry = json!({"type": kind, "id": id, "parentId": self.parent, "timestamp": self.time()});
        if let (Some(entry), Value::Object(fields)) = (entry.as_object_mut(), fields) {
            entry.extend(fields);
        }
        self.lines.push(entry.to_string());
        self.parent = json!(id);
        self.next += 1;
        id
    }

    /// A question, a tool call, its result and the answer; returns the id of the question.
    fn turn(&mut self, question: &str) -> String {
        let timestamp = NEWEST + i64::try_from(self.next).unwrap_or_default();
        let user =
            json!({"role": "user", "content": [{"type": "text", "text": question}], "timestamp": timestamp});
        let first = self.add("message", json!({"message": user}));
        let call = json!({"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"path": "a.md"}});
        let thinking = json!({"type": "thinking", "thinking": "Hm.", "thinkingSignature": "c2ln"});
        self.assistant(&[thinking, call], "toolUse");
        let result = json!({
            "role": "toolResult", "toolCallId": "call_1", "toolName": "read",
            "content": [{"type": "text", "text": "ä\u{1F600}\u{0}b"}], "details": {"lines": 1}, "isError": false,
            "timestamp": timestamp,
        });
        self.add("message", json!({"message": result}));
        self.assistant(&[json!({"type": "text", "text": "All well."})], "stop");
        first
    }

    fn assistant(&mut self, content: &[Value], stop_reason: &str) {
        let cost =
            json!({"input": 0.001, "output": 0.0002, "cacheRead": 0, "cacheWrite": 0, "total": 0.0012});
        let message = json!({
            "role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic",
            "model": "claude-opus-4-6",
            "usage": {"input": 100, "output": 7, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 107, "cost": cost},
            "stopReason": stop_reason, "timestamp": NEWEST,
        });
        self.add("message", json!({"message": message}));
    }
}
