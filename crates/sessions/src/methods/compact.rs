//! `sessions.compact`

use std::num::NonZeroUsize;
use std::time::Duration;

use openclaw_protocol::params::sessions::{NotCompacted, SessionsCompactParams, SessionsCompactResult};

use super::MethodError;
use crate::store::{Edit, Refused, SessionStore, update_with};
use crate::transcript::{DEFAULT_MAX_LINES, LinesCompacted, TranscriptError, Transcripts};

/// Answers `sessions.compact` once nothing runs in the session: its transcript keeps the last lines, the row forgets how
/// full the context was. A run that began meanwhile is waited for up to `patience`.
pub async fn compact(
    store: &dyn SessionStore,
    transcripts: &Transcripts,
    params: &SessionsCompactParams,
    patience: Duration,
) -> Result<SessionsCompactResult, MethodError> {
    let key = store.rules().canonical(&params.key.0)?;
    let row = store.get(&key).await?;
    let key = row.as_ref().map_or(key, |row| row.key.clone());
    let mut result = SessionsCompactResult {
        ok: true,
        key: key.to_string(),
        compacted: false,
        reason: None,
        archived: None,
        kept: None,
    };
    let Some(row) = row.filter(|row| row.entry.session_id.is_some() || row.entry.session_file.is_some())
    else {
        result.reason = Some(NotCompacted::NoSessionId);
        return Ok(result);
    };
    let Some(found) = super::transcript_of(transcripts, store.rules().agent_of(&key), &row).await else {
        result.reason = Some(NotCompacted::NoTranscript);
        return Ok(result);
    };
    let asked = params.max_lines.map(|lines| usize::try_from(lines).unwrap_or(usize::MAX));
    let lines = asked.and_then(NonZeroUsize::new).unwrap_or(DEFAULT_MAX_LINES);
    let lock = super::lock_soon(transcripts, &found, &key, patience).await?;
    let LinesCompacted { kept, archived } = match lock.truncate(lines).await {
        Ok(compacted) => compacted,
        Err(TranscriptError::Missing(_)) => {
            result.reason = Some(NotCompacted::NoTranscript);
            return Ok(result);
        }
        Err(error) => return Err(error.into()),
    };
    drop(lock);
    result.kept = Some(kept as u64);
    if archived.is_some() {
        result.compacted = true;
        result.archived = archived;
        forget_tokens(store, &key).await?;
    }
    Ok(result)
}

/// The counters were those of what was cut off.
async fn forget_tokens(store: &dyn SessionStore, key: &crate::key::SessionKey) -> Result<(), MethodError> {
    let change = |edit: Edit<'_>| {
        if edit.is_new {
            return Err(Refused("the session was deleted".to_owned()));
        }
        edit.entry.input_tokens = None;
        edit.entry.output_tokens = None;
        edit.entry.total_tokens = None;
        edit.entry.touch(edit.now);
        Ok(())
    };
    match update_with(store, key, change).await {
        Ok(_) | Err(crate::store::UpdateError::Refused(_)) => Ok(()),
        Err(crate::store::UpdateError::Store(error)) => Err(error.into()),
    }
}
