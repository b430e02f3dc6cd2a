//! Looking at a store file without keeping it: for commands beside a running gateway. Changes nothing on disk.

use std::cmp::Reverse;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::document;
use super::journal::Journal;
use super::rows::Rows;
use super::stored::{RowText, Stored};
use crate::disk;
use crate::entry::SessionEntry;

/// How often a look is taken again when a segment went away meanwhile.
const TRIES: usize = 5;

/// A row by the file's spelling of its key.
pub type Glanced = (String, Arc<SessionEntry>);

/// The rows of a store by key, acknowledged changes that only the journal holds included. A missing file has none; of a
/// damaged one those that can be read.
///
/// # Errors
/// When the file or its journal can't be read.
pub fn glance(path: &Path) -> io::Result<Vec<Glanced>> {
    let rows = patiently(path)?;
    let read = |(key, value): (&Arc<str>, &Stored)| Some((key.to_string(), Arc::new(value.row()?.entry())));
    Ok(rows.iter().filter_map(read).collect())
}

/// The newest rows of a store by key, newest first, and how many rows there are. As [`glance`] otherwise.
///
/// # Errors
/// When the file or its journal can't be read.
pub fn glance_newest(path: &Path, limit: usize) -> io::Result<(Vec<Glanced>, usize)> {
    let rows = patiently(path)?;
    let mut newest: Vec<_> = rows.iter().filter_map(|(key, value)| Some((key, value.row()?))).collect();
    let count = newest.len();
    newest.sort_by_key(|(_, row)| Reverse(row.updated_at_ms()));
    let read = |(key, row): (&Arc<str>, &Arc<RowText>)| (key.to_string(), Arc::new(row.entry()));
    Ok((newest.into_iter().take(limit).map(read).collect(), count))
}

fn patiently(path: &Path) -> io::Result<Rows> {
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

fn look(path: &Path) -> io::Result<Rows> {
    // Segments are listed before the file is read: replaying one that the file holds already changes nothing.
    let journal = Journal::look(&disk::real(), path)?;
    let mut rows = match document::load(|| disk::open_regular(path)) {
        Ok(document) => document.rows,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Rows::default(),
        Err(error) => return Err(error),
    };
    journal.replay(&mut rows)?;
    Ok(rows)
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
        let mut journal = Journal::open(&disk::real(), &path).unwrap();
        let made = SessionEntry::new(openclaw_protocol::SessionId::new("2"), 7);
        let op = super::super::journal::Op::update("b", None, &made, 7);
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
        let (newest, count) = glance_newest(&path, 1).unwrap();
        assert_eq!((newest.as_slice(), count), (&rows[1..], 2));
        assert_eq!(names(), before);
    }
}
