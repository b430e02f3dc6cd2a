//! Rows and transcripts of sessions, written as another program would.

use openclaw_testkit::GatewayUnderTest;
use serde_json::{Value, json};

use crate::support::conversation::sessions_dir;

pub(crate) fn write_rows(gateway: &GatewayUnderTest, rows: &Value) {
    std::fs::create_dir_all(sessions_dir(gateway)).unwrap();
    std::fs::write(sessions_dir(gateway).join("sessions.json"), rows.to_string()).unwrap();
}

/// The rows in the file.
pub(crate) fn rows(gateway: &GatewayUnderTest) -> Value {
    serde_json::from_str(&std::fs::read_to_string(sessions_dir(gateway).join("sessions.json")).unwrap())
        .unwrap()
}

pub(crate) fn row(id: &str, updated_at: u64) -> Value {
    json!({"sessionId": id, "updatedAt": updated_at})
}

/// Writes a transcript in which one thing was said.
pub(crate) fn write_transcript(gateway: &GatewayUnderTest, id: &str, said: &str) {
    let at = "2026-02-09T10:11:12.123Z";
    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": at, "cwd": "/"});
    let message = json!({"role": "user", "content": [{"type": "text", "text": said}], "timestamp": 1_770_000_000_000_u64});
    let entry =
        json!({"type": "message", "id": "aaaaaaaa", "parentId": null, "timestamp": at, "message": message});
    std::fs::write(sessions_dir(gateway).join(format!("{id}.jsonl")), format!("{header}\n{entry}\n"))
        .unwrap();
}
