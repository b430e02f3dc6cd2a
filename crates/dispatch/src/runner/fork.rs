//! A thread's session begins with what was said in the room it was opened in (spec `sessions.md` §5.7).

use std::path::{Path, PathBuf};

use openclaw_protocol::SessionId;
use openclaw_sessions::SessionKey;
use openclaw_sessions::transcript::{TranscriptError, TranscriptLock, fork_path, fork_to, is_forkable};

use super::{NotBegun, Runner};

/// The new session.
pub(super) struct Child<'a> {
    /// Its id, made when its first message was accepted.
    pub(super) id: &'a SessionId,
    /// When that was, Unix milliseconds.
    pub(super) accepted_at: i64,
    /// Where its agent works.
    pub(super) workspace: &'a Path,
}

impl Runner {
    /// Copies the parent's branch into a file of the child. `None`: there is no parent, nothing of it, or too much (known-bad
    /// of 2.9: a nearly full context overflows at once).
    ///
    /// The file's name follows from the message: after a crash before the session's row names it, it is made anew in the same
    /// place, and nothing was appended to it by then.
    pub(super) async fn fork(
        &self,
        parent: &SessionKey,
        child: &Child<'_>,
    ) -> Result<Option<PathBuf>, NotBegun> {
        let Some(row) = self.store.get(parent).await? else { return Ok(None) };
        if !is_forkable(row.entry.total_tokens) {
            return Ok(None);
        }
        let agent = parent.agent_or(&self.settings().sessions.default_agent());
        let Some(source) = self.layout.transcript_to_write(&agent, &row.entry)? else { return Ok(None) };
        let (id, path) = (child.id.clone(), fork_path(&source, child.id, child.accepted_at));
        let (cwd, file) = (child.workspace.display().to_string(), path.clone());
        let forked = {
            // A run of the parent that is under way is waited for: half of its turn is nothing to begin with.
            let _lock = TranscriptLock::acquire(&source).await?;
            tokio::task::spawn_blocking(move || fork_to(&source, &cwd, &id, &file)).await?
        };
        match forked {
            Ok(()) => Ok(Some(path)),
            Err(TranscriptError::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
