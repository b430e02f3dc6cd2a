//! `sessions.preview`

use openclaw_protocol::params::sessions::{
    PreviewItem, PreviewStatus, SessionPreview, SessionsPreviewParams, SessionsPreviewResult,
};

use crate::history;
use crate::store::{SessionStore, StoreError};
use crate::time::now_ms;
use crate::transcript::Transcripts;

/// Keys that are looked at.
const MAX_KEYS: usize = 64;
const DEFAULT_LIMIT: u64 = 12;
const MAX_LIMIT: u64 = 50;
const DEFAULT_CHARS: u64 = 240;
const MIN_CHARS: u64 = 20;
const MAX_CHARS: u64 = 2000;

/// Answers `sessions.preview`, one preview a key in their order.
pub async fn preview(
    store: &dyn SessionStore,
    transcripts: &Transcripts,
    params: &SessionsPreviewParams,
) -> Result<SessionsPreviewResult, StoreError> {
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let chars = params.max_chars.unwrap_or(DEFAULT_CHARS).clamp(MIN_CHARS, MAX_CHARS);
    let (limit, chars) = (usize::try_from(limit).unwrap_or(1), usize::try_from(chars).unwrap_or(1));
    let mut previews = Vec::new();
    for key in params.keys.iter().take(MAX_KEYS) {
        let (status, items) = one(store, transcripts, &key.0, limit, chars).await?;
        previews.push(SessionPreview { key: key.0.clone(), status, items });
    }
    Ok(SessionsPreviewResult { ts: now_ms(), previews })
}

async fn one(
    store: &dyn SessionStore,
    transcripts: &Transcripts,
    key: &str,
    limit: usize,
    chars: usize,
) -> Result<(PreviewStatus, Vec<PreviewItem>), StoreError> {
    let Ok(key) = store.rules().canonical(key) else { return Ok((PreviewStatus::Missing, Vec::new())) };
    let Some(row) = store.get(&key).await? else { return Ok((PreviewStatus::Missing, Vec::new())) };
    if row.entry.session_id.is_none() && row.entry.session_file.is_none() {
        return Ok((PreviewStatus::Missing, Vec::new()));
    }
    let (transcripts, agent) = (transcripts.clone(), store.rules().agent_of(&key));
    let read = move || match transcripts.find(&agent, &row.entry) {
        Some(found) => history::preview(&transcripts.reader(&found), limit, chars),
        None => Ok(Vec::new()),
    };
    Ok(match tokio::task::spawn_blocking(read).await {
        Ok(Ok(items)) if items.is_empty() => (PreviewStatus::Empty, Vec::new()),
        Ok(Ok(items)) => (PreviewStatus::Ok, items),
        Ok(Err(_)) | Err(_) => (PreviewStatus::Error, Vec::new()),
    })
}
