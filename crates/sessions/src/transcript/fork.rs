//! A new transcript that begins with another one's branch (spec `sessions.md` §5.7).

use std::path::{Path, PathBuf};

use openclaw_protocol::SessionId;

use super::TranscriptError;
use super::file::{NewTranscript, TranscriptFile};
use super::format::Body;
use crate::disk;
use crate::time::{iso, now_ms};

/// A parent with more tokens than this is not forked: the child would begin with a full context.
pub const MAX_FORK_TOKENS: u64 = 100_000;

/// Copies the branch of `parent`'s last entry into a new file beside it. Returns the child's id and file. Blocking.
pub fn fork(parent: &Path, cwd: &str) -> Result<(SessionId, PathBuf), TranscriptError> {
    let mut source = TranscriptFile::open(parent)?;
    let entries = source.branch_entries()?;
    let id = crate::entry::new_session_id();
    let stamp = iso(now_ms()).replace([':', '.'], "-");
    let path = parent.with_file_name(format!("{stamp}_{id}.jsonl"));
    let new = NewTranscript {
        session_id: id.to_string(),
        cwd: cwd.to_owned(),
        parent: Some(parent.display().to_string()),
    };
    let mut child = TranscriptFile::create(&path, &new)?;
    let (labels, rest): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| matches!(entry.body, Body::Label { .. }));
    let copied = rest.into_iter().try_for_each(|entry| child.append(entry.body, Some(entry.id)).map(|_| ()));
    let labelled = copied
        .and_then(|()| labels.into_iter().try_for_each(|entry| child.append(entry.body, None).map(|_| ())));
    if let Err(error) = labelled.and_then(|()| child.sync()) {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    let _ = disk::sync_parent(&path);
    Ok((id, path))
}
