//! The lines of a branch as they stand in the log, for who copies them elsewhere.

use std::io;

use super::OpenTranscript;
use super::window::LineWindow;
use crate::transcript::TranscriptError;
use crate::transcript::format::{Body, EntryId, VERSION};
use crate::transcript::index::{At, Kind};

/// Entry of a branch: its kind and the place of its line.
#[derive(Debug)]
pub(in crate::transcript) struct BranchPiece {
    pub(in crate::transcript) id: EntryId,
    pub(in crate::transcript) kind: Kind,
    pub(in crate::transcript) first_kept: Option<EntryId>,
    offset: u64,
    len: u32,
}

/// Reads the lines of pieces.
#[derive(Debug)]
pub(in crate::transcript) struct PieceReader<'a> {
    source: &'a OpenTranscript,
    window: LineWindow,
}

impl PieceReader<'_> {
    /// The line of a piece, without its newline.
    pub(in crate::transcript) fn line(&mut self, piece: &BranchPiece) -> io::Result<&[u8]> {
        self.window.line(&*self.source.log, piece.offset, piece.len, self.source.len)
    }
}

impl OpenTranscript {
    /// The current branch, root first.
    pub(in crate::transcript) fn branch_pieces(&mut self) -> Result<Vec<BranchPiece>, TranscriptError> {
        let branch = self.branch_until(self.leaf, |_| false)?;
        let piece = |at: &At| {
            let place = self.tail.index.get(*at)?;
            let first_kept = self.tail.index.first_kept(*at).cloned();
            let (id, kind) = (place.id.clone(), place.kind);
            Some(BranchPiece { id, kind, first_kept, offset: place.offset, len: place.len })
        };
        Ok(branch.iter().filter_map(piece).collect())
    }

    /// Reader for pieces that are read in their order.
    pub(in crate::transcript) fn piece_reader(&self) -> PieceReader<'_> {
        PieceReader { source: self, window: LineWindow::ahead() }
    }

    /// Labels of entries (`None` where a label was removed), in the order of the log.
    pub(in crate::transcript) fn labels(
        &mut self,
    ) -> Result<Vec<(EntryId, Option<String>)>, TranscriptError> {
        self.count()?;
        let mut labels = Vec::new();
        for at in self.tail.index.all() {
            if self.place(at).is_none_or(|place| place.kind != Kind::Label) {
                continue;
            }
            if let Some(entry) = self.read_entry(at)?
                && let Body::Label { target_id, label } = &entry.body
            {
                labels.push((target_id.clone(), label.clone()));
            }
        }
        Ok(labels)
    }

    /// Number of all entries, on all branches.
    pub(in crate::transcript) fn count(&mut self) -> Result<usize, TranscriptError> {
        while !self.tail.index.is_whole() {
            self.load_more()?;
        }
        Ok(self.tail.index.len())
    }

    /// Rewrites a transcript of an old version as the current one.
    pub(in crate::transcript) fn bring_up_to_date(&mut self) -> Result<(), TranscriptError> {
        if self.header.version < VERSION { self.upgrade() } else { Ok(()) }
    }
}
