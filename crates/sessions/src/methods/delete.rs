//! `sessions.delete`

use std::path::PathBuf;

use openclaw_protocol::AgentId;
use openclaw_protocol::params::sessions::{SessionsDeleteParams, SessionsDeleteResult};

use super::MethodError;
use crate::key::{KeyRules, SessionKey};
use crate::layout::{ArchiveReason, Layout, archive_path};
use crate::store::{Row, Rows, SessionStore};
use crate::time::now_ms;

/// The key to delete. Fails for the main session; ask before stopping the session's run.
pub fn require_deletable(rules: &KeyRules, text: &str) -> Result<SessionKey, MethodError> {
    let key = rules.canonical(text)?;
    if key == rules.main(&rules.default_agent) {
        return Err(MethodError::MainSession(key));
    }
    Ok(key)
}

/// Answers `sessions.delete` once nothing runs in the session: the row is removed, its transcripts are renamed unless the
/// client keeps them or another session uses them.
pub async fn delete(
    store: &dyn SessionStore,
    layout: &Layout,
    params: &SessionsDeleteParams,
) -> Result<SessionsDeleteResult, MethodError> {
    let key = require_deletable(store.rules(), &params.key.0)?;
    let deleted = store.delete(&key).await?;
    let agent = store.rules().agent_of(&key);
    let archived = match &deleted {
        Some(row) if params.delete_transcript.unwrap_or(true) && !is_shared(store, &agent, row).await? => {
            archive(layout, &agent, row).await
        }
        Some(_) | None => Vec::new(),
    };
    let archived = archived.iter().map(|path| path.display().to_string()).collect();
    Ok(SessionsDeleteResult { ok: true, key: key.to_string(), deleted: deleted.is_some(), archived })
}

/// Whether another row stands for the same transcript, as rows of cron runs do.
async fn is_shared(store: &dyn SessionStore, agent: &AgentId, row: &Row) -> Result<bool, MethodError> {
    let rows = store.rows(Rows::Of(agent)).await?;
    let same_id =
        |other: &Row| row.entry.session_id.is_some() && other.entry.session_id == row.entry.session_id;
    let same_file =
        |other: &Row| row.entry.session_file.is_some() && other.entry.session_file == row.entry.session_file;
    Ok(rows.iter().any(|other| same_id(other) || same_file(other)))
}

/// Renames every transcript of a row that exists. One that can't be renamed stays, with a warning.
async fn archive(layout: &Layout, agent: &AgentId, row: &Row) -> Vec<PathBuf> {
    let candidates = layout.transcript_candidates(agent, &row.entry);
    let rename = move || {
        let mut archived = Vec::new();
        for file in candidates.into_iter().filter(|file| file.is_file()) {
            let target = archive_path(&file, ArchiveReason::Deleted, now_ms());
            match std::fs::rename(&file, &target) {
                Ok(()) => archived.push(target),
                Err(error) => tracing::warn!(file = %file.display(), %error, "cannot archive the transcript"),
            }
        }
        archived
    };
    tokio::task::spawn_blocking(rename).await.unwrap_or_default()
}
