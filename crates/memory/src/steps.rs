//! Named steps of changing an index. Tests end the process at each of them; otherwise they are nothing.

/// Step of a sync, or of making its result visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The tables of a new file are made and not committed.
    TablesMade,
    /// The files were looked at.
    Scanned,
    /// The begin of a reindex is recorded, not committed.
    RewritingBegun,
    /// A file is written, not committed.
    FileWritten,
    /// A file is removed, not committed.
    FileRemoved,
    /// A segment of keywords is written, not committed.
    SegmentWritten,
    /// A transaction is complete and not committed.
    BeforeCommit,
    /// A transaction is committed.
    AfterCommit,
    /// The end of a reindex is recorded, not committed.
    RewritingEnded,
    /// Segments are merged, not committed.
    SegmentsMerged,
    /// Vectors are written for the other program, not committed.
    VectorsShared,
    /// Texts are on their way to the embedder.
    TextsTaken,
    /// Vectors were answered and are not stored.
    Answered,
    /// A vector is stored, not committed.
    VectorStored,
    /// Codes are computed and not written.
    CodesComputed,
    /// Codes are written, not committed.
    CodesWritten,
}

/// Tells that a step is reached.
#[inline(always)]
pub(crate) fn reached(step: Step) {
    #[cfg(test)]
    crate::tests::kills::end_at(step);
    #[cfg(not(test))]
    let _ = step;
}
