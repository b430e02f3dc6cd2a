//! A new transcript that begins with another one's branch (spec `sessions.md` §5.7).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use openclaw_protocol::SessionId;
use serde_json::Map;

use super::TranscriptError;
use super::file::{NewTranscript, TranscriptFile, new_header};
use super::format::{Body, Entry, EntryId};
use super::index::Kind;
use super::rewrite::Copy;
use crate::disk::{self, RealDisk};
use crate::ids;
use crate::time::{iso, now_ms};

/// A parent with more tokens than this is not forked: the child would begin with a full context.
pub const MAX_FORK_TOKENS: u64 = 100_000;

/// True if a new session with a parent starts with the parent's branch. A parent of unknown size
/// counts as small enough.
pub fn is_forkable(parent_total_tokens: Option<u64>) -> bool {
    parent_total_tokens.is_none_or(|tokens| tokens <= MAX_FORK_TOKENS)
}

/// Path of a fork: beside its parent's file, named after the moment and its id.
pub(super) fn fork_path(parent: &Path, id: &SessionId, at_ms: i64) -> PathBuf {
    parent.with_file_name(format!("{}_{id}.jsonl", iso(at_ms).replace([':', '.'], "-")))
}

/// Copies the branch of `parent`'s last entry into another file, labels of its entries at the end. Blocking.
pub(super) fn fork_to(parent: &Path, path: &Path, new: NewTranscript) -> Result<(), TranscriptError> {
    let mut source = TranscriptFile::open(parent)?;
    source.bring_up_to_date()?;
    let branch = source.branch_pieces()?;
    let kept: Vec<usize> =
        branch.iter().enumerate().filter(|(_, piece)| piece.kind != Kind::Label).map(|(at, _)| at).collect();
    let header = new_header(&NewTranscript { parent: Some(parent.display().to_string()), ..new });
    let ids = kept.iter().filter_map(|at| branch.get(*at)).map(|piece| piece.id.clone()).collect();
    let more = label_entries(source.labels()?, ids);
    let copy = Copy { header: &header, branch: &branch, kept: &kept, more };
    disk::Temporary::write(&RealDisk, path, |out| copy.write(&mut source, out))
        .and_then(|written| written.persist(path))
        .map_err(|source| TranscriptError::io("fork", parent, source))
}

/// New label entries for the copied entries, as the labels are now, whichever branch they were
/// given on. `labels` are in the order in which they were given, `ids` those of the copied entries.
pub(super) fn label_entries(
    labels: impl IntoIterator<Item = (EntryId, Option<String>)>,
    mut ids: HashSet<EntryId>,
) -> Vec<Entry> {
    let mut in_force: Vec<(EntryId, String)> = Vec::new();
    for (target_id, label) in labels.into_iter().filter(|(target_id, _)| ids.contains(target_id)) {
        in_force.retain(|(target, _)| *target != target_id);
        in_force.extend(label.map(|label| (target_id, label)));
    }
    let timestamp = iso(now_ms());
    let entry = |(target_id, label): (EntryId, String)| {
        let id = loop {
            let id = EntryId::new(ids::hex());
            if ids.insert(id.clone()) {
                break id;
            }
        };
        let body = Body::Label { target_id, label: Some(label) };
        Entry { id, parent_id: None, timestamp: timestamp.clone(), body, extra: Map::new() }
    };
    in_force.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules of `sessions.md` §5.7.
    #[test]
    fn a_fork_is_named_after_its_moment_and_its_id() {
        let path = fork_path(Path::new("/d/p.jsonl"), &SessionId::new("id"), 1_770_631_932_123);
        assert_eq!(path, Path::new("/d/2026-02-09T10-12-12-123Z_id.jsonl"));
    }

    #[test]
    fn a_parent_with_a_full_context_is_not_forked() {
        for (tokens, expect) in [(None, true), (Some(100_000), true), (Some(100_001), false)] {
            assert_eq!(is_forkable(tokens), expect, "{tokens:?}");
        }
    }
}
