//! Copying chosen entries of a branch into a new log. Lines stay as they are but for what they follow, and for the first
//! entry a compaction keeps where that is not copied.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};

use serde_json::Value;

use super::format::{Entry, EntryId, TranscriptHeader};
use super::open::{BranchPiece, OpenTranscript};
use crate::mend::mend;

/// Parts of a transcript to copy.
pub(super) struct Copy<'a> {
    /// The first line.
    pub(super) header: &'a TranscriptHeader,
    /// The branch it is taken from.
    pub(super) branch: &'a [BranchPiece],
    /// Positions on the branch that stay, in order.
    pub(super) kept: &'a [usize],
    /// Entries that come after them; each follows the one before, whatever it says.
    pub(super) more: Vec<Entry>,
}

impl Copy<'_> {
    /// Writes it all.
    pub(super) fn write(&self, source: &OpenTranscript, out: &mut dyn Write) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(256 * 1024, out);
        serde_json::to_writer(&mut out, self.header)?;
        out.write_all(b"\n")?;
        let ids: HashSet<&str> = self.pieces().map(|(_, piece)| piece.id.as_str()).collect();
        let mut parent: Option<&EntryId> = None;
        let mut reader = source.piece_reader();
        for (at, piece) in self.pieces() {
            let gone = piece.first_kept.as_ref().filter(|kept| !ids.contains(kept.as_str()));
            let first_kept = gone.and_then(|kept| self.next_kept(kept, at));
            let line = reader.line(piece)?;
            match relinked(line, parent, first_kept)? {
                Some(changed) => out.write_all(&changed)?,
                None => out.write_all(line)?,
            }
            out.write_all(b"\n")?;
            parent = Some(&piece.id);
        }
        for entry in &self.more {
            let linked = Entry { parent_id: parent.cloned(), ..entry.clone() };
            out.write_all(&linked.to_line()?)?;
            parent = Some(&entry.id);
        }
        out.flush()
    }

    fn pieces(&self) -> impl Iterator<Item = (usize, &BranchPiece)> {
        self.kept.iter().filter_map(|at| self.branch.get(*at).map(|piece| (*at, piece)))
    }

    /// First entry that a compaction at `end` keeps when the one it names is not copied: the next
    /// one that is.
    fn next_kept(&self, named: &EntryId, end: usize) -> Option<&EntryId> {
        let before = self.branch.get(..end)?;
        let from = before.iter().rposition(|piece| piece.id == *named)?;
        self.pieces().find(|(at, _)| (from..end).contains(at)).map(|(_, piece)| &piece.id)
    }
}

/// A line with another parent or another first kept entry; nothing when it says both already.
fn relinked(
    line: &[u8],
    parent: Option<&EntryId>,
    first_kept: Option<&EntryId>,
) -> io::Result<Option<Vec<u8>>> {
    #[derive(serde::Deserialize)]
    struct Parent {
        #[serde(rename = "parentId", deserialize_with = "serde::Deserialize::deserialize")]
        parent_id: Option<EntryId>,
    }
    let said = serde_json::from_slice::<Parent>(line);
    if first_kept.is_none() && said.is_ok_and(|said| said.parent_id.as_ref() == parent) {
        return Ok(None);
    }
    let mut value: Value = serde_json::from_slice(line).or_else(|_| serde_json::from_str(&mend(line)))?;
    let Some(fields) = value.as_object_mut() else { return Ok(None) };
    fields.insert("parentId".to_owned(), parent.map(EntryId::as_str).into());
    if let Some(kept) = first_kept {
        fields.insert("firstKeptEntryId".to_owned(), kept.as_str().into());
    }
    Ok(Some(serde_json::to_vec(&value)?))
}
