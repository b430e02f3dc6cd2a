//! Rows of promises and lines ([`crate::notices`]).

use openclaw_tools::Promise;

use crate::notices::KeptLine;

/// Row of a promise.
#[derive(Debug, Clone)]
pub struct PromiseRow {
    /// The promise.
    pub promise: Promise,
    /// Time of the start that found its process gone, in Unix milliseconds.
    pub lost_at: Option<i64>,
}

/// All promises and lines.
#[derive(Debug, Clone, Default)]
pub struct NoticeRows {
    /// The promises, the oldest first.
    pub promises: Vec<PromiseRow>,
    /// The lines, by their numbers.
    pub lines: Vec<KeptLine>,
    /// The highest number of a line, also of one that can't be read; 0 if there is none.
    pub last_line: i64,
}
