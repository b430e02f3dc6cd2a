//! Recorded conversations, and where ours may differ from them.

use openclaw_testkit::golden::{Deviation, LineChange};

/// A recorded conversation of `tests/golden`.
pub(crate) fn recording(name: &str) -> String {
    let path = format!("{}/../../tests/golden/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Deviation of one line, and why it differs with us.
pub(crate) fn differs(line: usize, why: &'static str, change: LineChange) -> Deviation {
    Deviation { lines: line..=line, why, change }
}

pub(crate) fn skip(lines: std::ops::RangeInclusive<usize>, why: &'static str) -> Deviation {
    Deviation { lines, why, change: LineChange::Skip }
}
