//! `sessions.delete`

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_protocol::AgentId;
use openclaw_protocol::params::sessions::{SessionsDeleteParams, SessionsDeleteResult};

use super::MethodError;
use crate::key::{KeyRules, SessionKey};
use crate::layout::{ArchiveReason, Layout, archive_path, transcript_name};
use crate::store::{Query, Row, Rows, SessionStore};
use crate::time::now_ms;
use crate::transcript::{LockError, TranscriptLock, is_transcript};

/// The key to delete. Fails for the main session; ask before stopping the session's run.
pub fn require_deletable(rules: &KeyRules, text: &str) -> Result<SessionKey, MethodError> {
    let key = rules.canonical(text)?;
    if key == rules.main(&rules.default_agent) {
        return Err(MethodError::MainSession(key));
    }
    Ok(key)
}

/// Answers `sessions.delete` once nothing runs in the session: the row is removed, its transcripts, those of its topics
/// too, are renamed unless the client keeps them or another session uses them. A run that began meanwhile is waited for up
/// to `patience`.
pub async fn delete(
    store: &dyn SessionStore,
    layout: &Layout,
    params: &SessionsDeleteParams,
    patience: Duration,
) -> Result<SessionsDeleteResult, MethodError> {
    let key = require_deletable(store.rules(), &params.key.0)?;
    let agent = store.rules().agent_of(&key);
    let lock = match store.get(&key).await? {
        Some(row) => lock(layout, &agent, &row, &key, patience).await?,
        None => None,
    };
    let deleted = store.delete(&key).await?;
    let archived = match &deleted {
        Some(row) if params.delete_transcript.unwrap_or(true) => archive(store, layout, &agent, row).await?,
        Some(_) | None => Vec::new(),
    };
    drop(lock);
    let archived = archived.iter().map(|path| path.display().to_string()).collect();
    Ok(SessionsDeleteResult { ok: true, key: key.to_string(), deleted: deleted.is_some(), archived })
}

/// The write lock of a row's transcript, so that no run writes into what is put away; nothing where there is no file.
async fn lock(
    layout: &Layout,
    agent: &AgentId,
    row: &Row,
    key: &SessionKey,
    patience: Duration,
) -> Result<Option<TranscriptLock>, MethodError> {
    let (layout, agent, entry) = (layout.clone(), agent.clone(), row.entry.clone());
    let found = tokio::task::spawn_blocking(move || layout.find_transcript(&agent, &entry)).await;
    let Some(path) = found.ok().flatten() else { return Ok(None) };
    match TranscriptLock::acquire_soon(&path, patience).await {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held { .. }) => Err(MethodError::StillActive(key.clone())),
        Err(error @ LockError::Io { .. }) => {
            // A directory that can't be written to: the row can go all the same.
            tracing::warn!(%error, "deleting a session without the lock of its transcript");
            Ok(None)
        }
    }
}

/// Renames every transcript of a row that exists and that no other row stands for, as rows of cron jobs and of their runs
/// do. One that can't be renamed stays, with a warning.
async fn archive(
    store: &dyn SessionStore,
    layout: &Layout,
    agent: &AgentId,
    row: &Row,
) -> Result<Vec<PathBuf>, MethodError> {
    let (layout_there, agent_there, row_there) = (layout.clone(), agent.clone(), row.clone());
    let found = tokio::task::spawn_blocking(move || transcripts_of(&layout_there, &agent_there, &row_there));
    let mut files = Vec::new();
    for file in found.await.unwrap_or_default() {
        if !is_in_use(store, layout, row, &file).await? {
            files.push(file);
        }
    }
    let rename = move || files.iter().filter_map(|file| put_away(file)).collect();
    Ok(tokio::task::spawn_blocking(rename).await.unwrap_or_default())
}

/// Whether a row that is still there stands for a file: by its transcript id, or by name.
async fn is_in_use(
    store: &dyn SessionStore,
    layout: &Layout,
    deleted: &Row,
    file: &Path,
) -> Result<bool, MethodError> {
    let named = Query { session_file: Some(file.display().to_string()), ..Query::newest(1) };
    if !store.select(Rows::All, &named).await?.rows.is_empty() {
        return Ok(true);
    }
    let Some(id) = &deleted.entry.session_id else { return Ok(false) };
    let same_id = Query { session_id: Some(id.as_str().to_owned()), ..Query::default() };
    let rows = store.select(Rows::All, &same_id).await?.rows;
    let is_file = |other: &Row| {
        let agent = store.rules().agent_of(&other.key);
        layout.find_transcript(&agent, &other.entry).as_deref() == Some(file)
    };
    Ok(rows.iter().any(is_file))
}

/// The files of a row: where its transcript may be, and those of its topics beside them. What a row names elsewhere counts
/// only when it is a transcript.
fn transcripts_of(layout: &Layout, agent: &AgentId, row: &Row) -> Vec<PathBuf> {
    let mut files = layout.transcript_candidates(agent, &row.entry);
    let dir = layout.sessions_dir(agent);
    files.retain(|file| file.is_file() && (file.parent() == Some(&dir) || is_transcript(file)));
    let name = row.entry.session_id.as_ref().and_then(|id| transcript_name(id, None).ok());
    let prefix = name.and_then(|name| Some(format!("{}-topic-", name.strip_suffix(".jsonl")?)));
    if let Some(prefix) = prefix {
        let is_topic = |file: &PathBuf| {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(&prefix) && name.ends_with(".jsonl")
        };
        let beside = std::fs::read_dir(dir).into_iter().flatten();
        let mut topics: Vec<PathBuf> =
            beside.filter_map(|entry| Some(entry.ok()?.path())).filter(is_topic).collect();
        topics.retain(|topic| !files.contains(topic));
        topics.sort();
        files.extend(topics);
    }
    files
}

fn put_away(file: &Path) -> Option<PathBuf> {
    let target = archive_path(file, ArchiveReason::Deleted, now_ms());
    match std::fs::rename(file, &target) {
        Ok(()) => Some(target),
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "cannot archive the transcript");
            None
        }
    }
}
