//! Fork: a thread's session begins with the conversation of the room it was opened in (spec
//! `sessions.md` §5.7).

use std::path::Path;

use openclaw_protocol::{AgentId, SessionId};
use openclaw_sessions::transcript::{
    NewTranscript, TranscriptError, TranscriptLock, TranscriptRef, Transcripts, is_forkable,
};
use openclaw_sessions::{SessionKey, SessionStore};

use crate::not_begun::NotBegun;

/// The new session.
pub(super) struct Child<'a> {
    /// Id of the session, made when its first message was accepted.
    pub(super) id: &'a SessionId,
    /// Time of that acceptance, Unix milliseconds.
    pub(super) accepted_at: i64,
    /// Workspace of its agent.
    pub(super) workspace: &'a Path,
}

/// Copies the parent's branch into a transcript of the child. `None`: there is no parent, nothing of it, or too much (known-bad
/// of 2.9: a nearly full context overflows at once).
///
/// The transcript's name follows from the message: after a crash before the session's row names it, it is made anew in the same
/// place, and nothing was appended to it by then.
pub(super) async fn fork(
    store: &dyn SessionStore,
    transcripts: &Transcripts,
    (parent, agent): (&SessionKey, &AgentId),
    child: &Child<'_>,
) -> Result<Option<TranscriptRef>, NotBegun> {
    let Some(row) = store.get(parent).await? else { return Ok(None) };
    if !is_forkable(row.entry.total_tokens) {
        return Ok(None);
    }
    let Some(source) = transcripts.to_write(agent, &row.entry)? else { return Ok(None) };
    let forked = transcripts.of_fork(&source, child.id, child.accepted_at);
    let new = NewTranscript {
        session_id: child.id.to_string(),
        cwd: child.workspace.display().to_string(),
        parent: None,
    };
    // A run of the parent that is under way is waited for: half of its turn is nothing to begin with.
    let lock = TranscriptLock::acquire(transcripts, &source).await?;
    match lock.fork(forked.clone(), new).await {
        Ok(()) => Ok(Some(forked)),
        Err(TranscriptError::Missing(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
