//! Looking at a store file without keeping it: for commands beside a running gateway. Changes nothing on disk.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::document::{self, Rows, Stored};
use super::journal::Journal;
use crate::entry::SessionEntry;

/// How often a look is taken again when a segment went away meanwhile.
const TRIES: usize = 5;

/// The rows of a store by key, acknowledged changes that only the journal holds included. A missing file has none; of a
/// damaged one those that can be read.
///
/// # Errors
/// When the file or its journal can't be read.
pub fn glance(path: &Path) -> io::Result<Vec<(String, Arc<SessionEntry>)>> {
    let mut last = look(path);
    for _ in 1..TRIES {
        match last {
            // A snapshot has just made a segment unnecessary: what it held is in the file now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => last = look(path),
            other => return other,
        }
    }
    last
}

fn look(path: &Path) -> io::Result<Vec<(String, Arc<SessionEntry>)>> {
    // Segments are listed before the file is read: replaying one that the file holds already changes nothing.
    let journal = Journal::open(path)?;
    let mut rows = match std::fs::read(path) {
        Ok(bytes) => document::read(&bytes).rows,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Rows::new(),
        Err(error) => return Err(error),
    };
    journal.replay(&mut rows)?;
    let row = |(key, stored): (Arc<str>, Stored)| match stored {
        Stored::Row(entry) => Some((key.to_string(), entry)),
        Stored::Opaque(_) => None,
    };
    Ok(rows.into_iter().filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_sees_the_journal_and_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        assert_eq!(glance(&path).unwrap(), []);
        std::fs::write(&path, r#"{"a": {"sessionId": "1", "updatedAt": 5}, "note": 3}"#).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        let made = SessionEntry::new(openclaw_protocol::SessionId::new("2"), 7);
        let op = super::super::journal::Op::update("b", None, &made);
        journal.append(&super::super::journal::line(&[op]).unwrap()).unwrap();
        let names = || {
            let mut names: Vec<_> =
                std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        let rows = glance(&path).unwrap();
        let seen: Vec<(&str, Option<&str>)> = rows
            .iter()
            .map(|(key, row)| (key.as_str(), row.session_id.as_ref().map(|id| id.as_str())))
            .collect();
        assert_eq!(seen, [("a", Some("1")), ("b", Some("2"))]);
        assert_eq!(names(), before);
    }
}
