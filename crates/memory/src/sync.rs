//! Options and results of a sync.

/// Options of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncRequest {
    /// Write everything anew. Texts that were embedded before are not embedded again.
    pub force: bool,
    /// Moment at which the caller is answered.
    pub until: SyncUntil,
}

/// Moment at which the caller of a sync is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncUntil {
    /// As soon as keywords find everything.
    Searchable,
    /// As soon as all chunks have vectors, or it is clear that they will not get them now.
    Embedded,
}

/// Result of a sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Files that were written to the index.
    pub indexed: usize,
    /// Files that were removed from it.
    pub removed: usize,
    /// Files that stayed as they were.
    pub unchanged: usize,
    /// Reason for which everything was written anew.
    pub reindexed: Option<&'static str>,
    /// Files that were left out, in words for people.
    pub issues: Vec<String>,
    /// Chunks that wait for a vector.
    pub pending: usize,
    /// Reason for which they do.
    pub embed_error: Option<String>,
    /// True if another model is set and is used only after a forced sync, because it would embed much text anew.
    pub needs_force: bool,
    /// Reason for which the index could not be written.
    pub error: Option<String>,
}
