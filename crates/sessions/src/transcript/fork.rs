//! A new transcript that begins with another one's branch (spec `sessions.md` §5.7).

use std::collections::HashSet;
use std::sync::Arc;

use openclaw_protocol::SessionId;
use serde_json::Map;

use super::TranscriptError;
use super::format::{Body, Entry, EntryId};
use super::index::Kind;
use super::open::{NewTranscript, OpenTranscript, new_header};
use super::rewrite::Copy;
use super::storage::{TranscriptLogs, TranscriptRef};
use crate::ids;
use crate::time::{iso, now_ms};

/// A parent with more tokens than this is not forked: the child would begin with a full context.
pub const MAX_FORK_TOKENS: u64 = 100_000;

/// True if a new session with a parent starts with the parent's branch. A parent of unknown size
/// counts as small enough.
pub fn is_forkable(parent_total_tokens: Option<u64>) -> bool {
    parent_total_tokens.is_none_or(|tokens| tokens <= MAX_FORK_TOKENS)
}

/// Name of a fork, which lies beside its parent: the moment and its id.
pub(super) fn fork_name(id: &SessionId, at_ms: i64) -> String {
    format!("{}_{id}.jsonl", iso(at_ms).replace([':', '.'], "-"))
}

/// Copies the branch of the parent's last entry into another transcript, labels of its entries at the end. Blocking.
///
/// # Errors
/// [`TranscriptError::Missing`] and [`TranscriptError::NotATranscript`] when there is nothing to begin with.
pub(super) fn fork_to(
    logs: &Arc<dyn TranscriptLogs>,
    parent: &TranscriptRef,
    child: &TranscriptRef,
    new: NewTranscript,
) -> Result<(), TranscriptError> {
    let mut source = OpenTranscript::open(logs, parent)?;
    source.bring_up_to_date()?;
    let branch = source.branch_pieces()?;
    let kept: Vec<usize> =
        branch.iter().enumerate().filter(|(_, piece)| piece.kind != Kind::Label).map(|(at, _)| at).collect();
    let header = new_header(&NewTranscript { parent: Some(parent.to_string()), ..new });
    let ids = kept.iter().filter_map(|at| branch.get(*at)).map(|piece| piece.id.clone()).collect();
    let more = label_entries(source.labels()?, ids);
    let copy = Copy { header: &header, branch: &branch, kept: &kept, more };
    logs.replace(child, None, &mut |out| copy.write(&source, out))
        .map_err(|source| TranscriptError::io("fork", parent, source))
}

/// New label entries for the copied entries, as the labels are now, whichever branch they were
/// given on. `labels` are in the order in which they were given, `ids` those of the copied entries.
fn label_entries(
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
        let name = fork_name(&SessionId::new("id"), 1_770_631_932_123);
        assert_eq!(name, "2026-02-09T10-12-12-123Z_id.jsonl");
    }

    #[test]
    fn a_parent_with_a_full_context_is_not_forked() {
        for (tokens, expect) in [(None, true), (Some(100_000), true), (Some(100_001), false)] {
            assert_eq!(is_forkable(tokens), expect, "{tokens:?}");
        }
    }
}
