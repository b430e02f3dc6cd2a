//! `sessions.delete`

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::AgentId;
use openclaw_protocol::params::sessions::{SessionsDeleteParams, SessionsDeleteResult};

use super::MethodError;
use crate::key::{KeyRules, SessionKey};
use crate::store::{Query, Row, Rows, SessionStore};
use crate::transcript::{TranscriptLock, TranscriptRef, Transcripts};

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
    transcripts: &Transcripts,
    params: &SessionsDeleteParams,
    patience: Duration,
) -> Result<SessionsDeleteResult, MethodError> {
    let key = require_deletable(store.rules(), &params.key.0)?;
    let agent = store.rules().agent_of(&key);
    let lock = match store.get(&key).await? {
        Some(row) => lock(transcripts, &agent, &row, &key, patience).await?,
        None => None,
    };
    let deleted = store.delete(&key).await?;
    let archived = match &deleted {
        Some(row) if params.delete_transcript.unwrap_or(true) => {
            archive(store, transcripts, &agent, row).await?
        }
        Some(_) | None => Vec::new(),
    };
    drop(lock);
    let key = deleted.as_ref().map_or(&key, |row| &row.key).to_string();
    Ok(SessionsDeleteResult { ok: true, key, deleted: deleted.is_some(), archived })
}

/// The write lock of a row's transcript, so that no run writes into an archived file; `None` where
/// there is none.
async fn lock(
    transcripts: &Transcripts,
    agent: &AgentId,
    row: &Row,
    key: &SessionKey,
    patience: Duration,
) -> Result<Option<TranscriptLock>, MethodError> {
    let Some(found) = super::transcript_of(transcripts, agent.clone(), row).await else { return Ok(None) };
    match super::lock_soon(transcripts, &found, key, patience).await {
        Err(MethodError::Lock(error)) => {
            // A directory that can't be written to: the row can go all the same.
            tracing::warn!(%error, "deleting a session without the lock of its transcript");
            Ok(None)
        }
        lock => lock.map(Some),
    }
}

/// Archives every transcript of a row that no other row stands for, as rows of cron jobs and of
/// their runs do. A transcript that can't be archived stays, with a warning.
async fn archive(
    store: &dyn SessionStore,
    transcripts: &Transcripts,
    agent: &AgentId,
    row: &Row,
) -> Result<Vec<String>, MethodError> {
    let (all, agent, entry) = (transcripts.clone(), agent.clone(), Arc::clone(&row.entry));
    let found = tokio::task::spawn_blocking(move || all.all_of(&agent, &entry));
    let mut unused = Vec::new();
    for transcript in found.await.unwrap_or_default() {
        if !is_in_use(store, transcripts, row, &transcript).await? {
            unused.push(transcript);
        }
    }
    let all = transcripts.clone();
    let archive = move |transcript: &TranscriptRef| match all.archive(transcript) {
        Ok(archived) => Some(archived),
        Err(error) => {
            tracing::warn!(file = %transcript, %error, "cannot archive the transcript");
            None
        }
    };
    let archive = move || unused.iter().filter_map(archive).collect();
    Ok(tokio::task::spawn_blocking(archive).await.unwrap_or_default())
}

/// True if a remaining row stands for a transcript: by its id, or by name.
async fn is_in_use(
    store: &dyn SessionStore,
    transcripts: &Transcripts,
    deleted: &Row,
    transcript: &TranscriptRef,
) -> Result<bool, MethodError> {
    let named = Query { session_file: Some(transcript.to_string()), ..Query::newest(1) };
    if !store.select(Rows::All, &named).await?.rows.is_empty() {
        return Ok(true);
    }
    let Some(id) = &deleted.entry.session_id else { return Ok(false) };
    let same_id = Query { session_id: Some(id.as_str().to_owned()), ..Query::default() };
    let rows = store.select(Rows::All, &same_id).await?.rows;
    let has_it = |other: &Row| {
        let agent = store.rules().agent_of(&other.key);
        transcripts.find(&agent, &other.entry).as_ref() == Some(transcript)
    };
    Ok(rows.iter().any(has_it))
}
