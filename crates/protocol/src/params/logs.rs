//! `logs.tail` (spec `gateway-protocol.md` §6.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;

super::calls! {
    /// The end of the log file, or what was added since a cursor.
    LogsTail: "logs.tail" as Strict, LogsTailParams => LogsTailResult;
}

/// Params of `logs.tail`.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogsTailParams {
    /// Where the last answer ended.
    pub cursor: Option<u64>,
    /// Lines at most.
    #[schemars(range(min = 1, max = 5000))]
    pub limit: Option<u64>,
    /// Bytes at most.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_bytes: Option<u64>,
}

impl LogsTailParams {
    /// Lines answered when the client does not say.
    pub const DEFAULT_LIMIT: u64 = 500;
    /// Bytes read when the client does not say.
    pub const DEFAULT_MAX_BYTES: u64 = 250_000;
}

/// Result of `logs.tail`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogsTailResult {
    /// The log file.
    pub file: String,
    /// Where to go on; the file's size.
    pub cursor: u64,
    /// The file's size.
    pub size: u64,
    /// Whole lines.
    pub lines: Vec<String>,
    /// Whether something before them was left out.
    pub truncated: bool,
    /// Whether the cursor did not fit the file any more.
    pub reset: bool,
}
