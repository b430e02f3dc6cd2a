//! Old versions of the format (spec `sessions.md` §4.6): read as the current one, rewritten only when something is appended.

use serde_json::Value;

use super::format::{Body, Entry, EntryId};
use crate::mend::mend;

/// Reads a line of a file of an old `version`, giving it the id and parent its place in the file stands for.
/// `entry_at` names the entry at an index of the old file, the header counted as 0.
pub(crate) fn read_old(
    line: &[u8],
    version: u32,
    id: &EntryId,
    parent: Option<&EntryId>,
    entry_at: &dyn Fn(u64) -> Option<EntryId>,
) -> Option<Value> {
    let mut value: Value =
        serde_json::from_slice(line).or_else(|_| serde_json::from_str(&mend(line))).ok()?;
    let fields = value.as_object_mut()?;
    if version < 2 {
        fields.insert("id".to_owned(), id.as_str().into());
        fields.insert("parentId".to_owned(), parent.map(EntryId::as_str).into());
        if let Some(index) = fields.shift_remove("firstKeptEntryIndex").and_then(|index| index.as_u64())
            && let Some(kept) = entry_at(index)
        {
            fields.insert("firstKeptEntryId".to_owned(), kept.as_str().into());
        }
    }
    if version < 3
        && let Some(role) = fields.get_mut("message").and_then(|message| message.get_mut("role"))
        && role == "hookMessage"
    {
        *role = "custom".into();
    }
    Some(value)
}

/// The id an entry of a file without ids gets: its place, so that reading twice gives the same ids.
pub(crate) fn id_for_place(at: usize) -> EntryId {
    EntryId::new(format!("{at:08x}"))
}

/// Id by which an entry names the first kept entry; `None` if it does so by index, which only the
/// first version did.
pub(crate) fn kept_by(entry: &Entry) -> Option<&str> {
    match &entry.body {
        Body::Compaction(compaction) => Some(&compaction.first_kept_entry_id),
        _ => None,
    }
}
