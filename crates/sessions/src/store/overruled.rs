//! Conflict rule for a row that somebody else wrote and that was changed here as well (OpenClaw
//! 2026.2.9 beside us, or after a crash of ours whose changes only the journal holds).
//!
//! Edits of single fields go together: a person who sets a label in the file touches neither `updatedAt` nor `sessionId`. A
//! row that was written after the change, or that belongs to another conversation, counts whole: half of it and half of ours
//! would be a row that nobody has written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::head::HeadText;
use super::stored::RowText;

/// Facts of a change that decide whether it still counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeFacts<'a> {
    /// The conversations the row had before and has after it, where they are known.
    pub(crate) sessions: [Option<&'a str>; 2],
    /// Time of the change, Unix milliseconds.
    pub(crate) at: i64,
}

impl ChangeFacts<'_> {
    /// True if the row in the file counts as a whole, and the change not at all.
    pub(crate) fn is_overruled_by(&self, there: &RowText) -> bool {
        there.updated_at_ms() > self.at || self.is_of_another_session(there)
    }

    fn is_of_another_session(&self, there: &RowText) -> bool {
        let is_known = self.sessions.iter().any(Option::is_some);
        is_known && there.text(HeadText::SessionId).is_some_and(|id| !self.sessions.contains(&Some(&*id)))
    }
}

/// Changes that do not count: names of fields by the key of their row.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Overruled(BTreeMap<String, BTreeSet<String>>);

/// Stand-in for a field name where the whole row was removed.
const REMOVAL: &str = "(its removal)";
/// Rows that are named in the log; of more it tells how many.
const MOST_NAMED: usize = 20;

impl Overruled {
    pub(crate) fn note<'a>(&mut self, key: &str, fields: impl IntoIterator<Item = &'a String>) {
        self.0.entry(key.to_owned()).or_default().extend(fields.into_iter().cloned());
    }

    pub(crate) fn note_removal(&mut self, key: &str) {
        self.0.entry(key.to_owned()).or_default().insert(REMOVAL.to_owned());
    }

    /// Forgets the dropped changes of a row, since a later change counts: they are in it, or were
    /// reported when the row was taken in.
    pub(crate) fn clear(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Tells what was dropped.
    pub(crate) fn log(&self, store: &Path) {
        let store = store.display();
        for (key, fields) in self.0.iter().take(MOST_NAMED) {
            let dropped = fields.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            tracing::warn!(
                %store, key, dropped,
                "another program wrote a newer version of this session; changes made here before it were dropped"
            );
        }
        if let Some(more) = self.0.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
            tracing::warn!(%store, more, "changes of further sessions were dropped for the same reason");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stored::Pool;
    use super::*;

    #[test]
    fn a_row_counts_whole_when_it_is_newer_or_of_another_session() {
        let rows = [
            // The row of the file; the conversations and the time of the change; whether the row counts whole.
            (r#"{"sessionId":"a","updatedAt":5}"#, [Some("a"), Some("a")], 6, false),
            (r#"{"sessionId":"a","updatedAt":6}"#, [Some("a"), Some("a")], 6, false),
            (r#"{"sessionId":"a","updatedAt":7}"#, [Some("a"), Some("a")], 6, true),
            (r#"{"sessionId":"b","updatedAt":5}"#, [Some("a"), Some("a")], 6, true),
            (r#"{"sessionId":"b","updatedAt":5}"#, [Some("a"), Some("b")], 6, false),
            (r#"{"sessionId":"b","updatedAt":5}"#, [None, Some("a")], 6, true),
            (r#"{"sessionId":"b","updatedAt":5}"#, [None, None], 6, false),
            (r#"{"updatedAt":5}"#, [Some("a"), Some("a")], 6, false),
            (r#"{"sessionId":7,"updatedAt":"x"}"#, [Some("a"), Some("a")], 6, false),
        ];
        for (row, sessions, at, expect) in rows {
            let there = RowText::found(row, &serde_json::from_str(row).unwrap(), &mut Pool::default());
            assert_eq!(
                ChangeFacts { sessions, at }.is_overruled_by(&there),
                expect,
                "{row} {sessions:?} {at}"
            );
        }
    }
}
