//! `sessions.preview`.

use openclaw_protocol::params::sessions::{
    PreviewItem, PreviewRole, PreviewStatus, SessionPreview, SessionsPreviewParams, SessionsPreviewResult,
};
use openclaw_protocol::{AgentId, ErrorShape};
use openclaw_sessions::{Layout, Row, history};

use crate::clock::now_ms;
use crate::methods::keys::canonical;
use crate::request::{Failure, RequestContext};

/// Sessions looked at in one request.
const MAX_KEYS: usize = 64;
/// Messages of each.
const DEFAULT_LIMIT: u64 = 12;
const MAX_LIMIT: u64 = 50;
/// Characters of each message.
const DEFAULT_CHARS: u64 = 240;
const MAX_CHARS: u64 = 2_000;

pub(in crate::methods) async fn preview(
    ctx: RequestContext,
    params: SessionsPreviewParams,
) -> Result<SessionsPreviewResult, Failure> {
    let mut asked = Vec::new();
    for name in params.keys.into_iter().take(MAX_KEYS).map(|key| key.0) {
        let row = match canonical(&ctx, &name) {
            Ok(key) => ctx.gateway.sessions.get(&key).await?,
            Err(_) => None,
        };
        let agent = row.as_ref().map(|row| ctx.gateway.sessions.rules().agent_of(&row.key));
        asked.push((name, row.zip(agent)));
    }
    let layout = ctx.gateway.layout.clone();
    let limit = bounded(params.limit, DEFAULT_LIMIT, MAX_LIMIT);
    let chars = bounded(params.max_chars, DEFAULT_CHARS, MAX_CHARS);
    let read = move || asked.into_iter().map(|(name, row)| one(&layout, name, row, limit, chars)).collect();
    let previews = tokio::task::spawn_blocking(read).await;
    let previews = previews.map_err(|error| ErrorShape::unavailable(format!("Error: {error}")))?;
    Ok(SessionsPreviewResult { ts: now_ms(), previews })
}

fn bounded(asked: Option<u64>, default: u64, most: u64) -> usize {
    usize::try_from(asked.unwrap_or(default).min(most)).unwrap_or(usize::MAX)
}

/// Blocking.
fn one(layout: &Layout, key: String, row: Option<(Row, AgentId)>, limit: usize, chars: usize) -> SessionPreview {
    let (status, items) = match row {
        Some((row, agent)) if row.entry.session_id.is_some() => match layout.find_transcript(&agent, &row.entry) {
            None => (PreviewStatus::Empty, Vec::new()),
            Some(path) => match history::preview(&path, limit, chars) {
                Ok(items) if items.is_empty() => (PreviewStatus::Empty, items),
                Ok(items) => (PreviewStatus::Ok, items),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "the transcript could not be read");
                    (PreviewStatus::Error, Vec::new())
                }
            },
        },
        Some(_) | None => (PreviewStatus::Missing, Vec::new()),
    };
    SessionPreview { key, status, items: items.into_iter().map(item).collect() }
}

fn item(item: history::PreviewItem) -> PreviewItem {
    let role = match item.role {
        history::PreviewRole::User => PreviewRole::User,
        history::PreviewRole::Assistant => PreviewRole::Assistant,
        history::PreviewRole::Tool => PreviewRole::Tool,
        history::PreviewRole::System => PreviewRole::System,
        history::PreviewRole::Other => PreviewRole::Other,
    };
    PreviewItem { role, text: item.text }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openclaw_sessions::{SessionEntry, SessionKey};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_preview_says_why_it_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), folder.path(), None);
        let agent = AgentId::default();
        let row = |entry: &str| {
            let entry: SessionEntry = serde_json::from_str(entry).unwrap();
            let key = SessionKey::parse("agent:main:main").unwrap();
            Some((Row { key, entry: Arc::new(entry) }, agent.clone()))
        };
        let status = |row| one(&layout, "main".to_owned(), row, 3, 40).status;
        assert_eq!(status(None), PreviewStatus::Missing);
        assert_eq!(status(row("{}")), PreviewStatus::Missing);
        assert_eq!(status(row(r#"{"sessionId":"s"}"#)), PreviewStatus::Empty);
        let (stored, _) = row(r#"{"sessionId":"s"}"#).unwrap();
        let path = layout.transcript_of(&agent, &stored.entry).unwrap().unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let head = json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-02-09T10:00:00.000Z", "cwd": "/"});
        let said = json!({"type": "message", "id": "1", "parentId": null, "timestamp": "2026-02-09T10:00:01.000Z",
                          "message": {"role": "user", "content": "[Mon 2026-02-09 10:00 UTC] hello", "timestamp": 1}});
        std::fs::write(&path, format!("{head}\n{said}\n")).unwrap();
        let made = one(&layout, "main".to_owned(), row(r#"{"sessionId":"s"}"#), 3, 40);
        let items = vec![PreviewItem { role: PreviewRole::User, text: "hello".to_owned() }];
        assert_eq!(made, SessionPreview { key: "main".to_owned(), status: PreviewStatus::Ok, items });
    }

    #[test]
    fn limits_are_bounded() {
        assert_eq!(bounded(None, 12, 50), 12);
        assert_eq!(bounded(Some(3), 12, 50), 3);
        assert_eq!(bounded(Some(9_999), 12, 50), 50);
    }
}
