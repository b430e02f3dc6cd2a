//! A store as it lies on disk: `sessions.json` with its journal replayed. All readers of a store
//! use it: the file store when it opens one, commands beside a running gateway, and repairs or
//! migrations of a store that nobody has open.

use std::cmp::Reverse;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_config::shared_place;
use openclaw_protocol::AgentId;

use super::document::{self, SessionsDocument};
use super::journal::{Journal, Replayed};
use super::rows::Rows;
use super::stored::{RowText, StoredValue};
use super::table::RowTable;
use crate::disk::{self, FileVersion, SharedDisk};
use crate::entry::SessionEntry;
use crate::key::{KeyRules, SessionKey};
use crate::lockfile::{LockFile, LockKind};

/// A row by the file's spelling of its key.
pub type StoredRow = (String, Arc<SessionEntry>);

/// A store as it was found.
pub(crate) struct StoreOnDisk {
    /// The version of the file; taken before it was read, so that a change in between is noticed later.
    pub(crate) stamp: Option<FileVersion>,
    /// Contents of the file, with acknowledged changes that only the journal holds.
    pub(crate) document: SessionsDocument,
    pub(crate) journal: Journal,
    /// The rows without the journal, where it has something to say.
    pub(crate) in_file: Option<Rows>,
    pub(crate) replayed: Replayed,
}

/// Number of attempts to read a store that another process is writing.
const TRIES: usize = 10;

impl StoreOnDisk {
    /// Reads file and journal of a store that is not to be opened; changes nothing. A missing file has no rows, a damaged
    /// one those that can be read.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        Self::read_with(&disk::real(), path, Journal::look)
    }

    /// [`Self::read`] with the journal that `journal` finds. Another process that has the store may
    /// remove a segment in the middle of this: its changes are in the file by then, which is read
    /// again. A process that never rests is not waited for.
    pub(crate) fn read_with(
        disk: &SharedDisk,
        path: &Path,
        journal: fn(&SharedDisk, &Path) -> io::Result<Journal>,
    ) -> io::Result<Self> {
        let mut last = Self::read_once(disk, path, journal);
        for _ in 1..TRIES {
            match last {
                Ok(found) if !found.journal.has_missed_some() => return Ok(found),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(_) | Err(_) => last = Self::read_once(disk, path, journal),
            }
        }
        last
    }

    fn read_once(
        disk: &SharedDisk,
        path: &Path,
        journal: fn(&SharedDisk, &Path) -> io::Result<Journal>,
    ) -> io::Result<Self> {
        // Segments are listed before the file is read: replaying one that the file holds already changes nothing.
        let journal = journal(disk, path)?;
        let (stamp, mut document) = document::load_file(disk, path)?;
        let in_file = (!journal.is_empty()).then(|| document.rows.clone());
        let replayed = journal.replay(&mut document.rows)?;
        Ok(Self { stamp, document, journal, in_file, replayed })
    }

    /// All rows that can be read.
    pub(crate) fn rows(&self) -> Vec<StoredRow> {
        let read = |(key, value): (&Arc<str>, &StoredValue)| Some(stored_row(key, value.row()?));
        self.document.rows.iter().filter_map(read).collect()
    }

    /// Keys whose value is not a row.
    pub(crate) fn keys_without_row(&self) -> impl Iterator<Item = &str> {
        self.document.rows.iter().filter_map(|(key, value)| value.row().is_none().then_some(&**key))
    }

    /// True if all of it could be read.
    pub(crate) fn is_whole(&self) -> bool {
        self.document.damage.is_none()
            && self.replayed.malformed_lines == 0
            && self.keys_without_row().next().is_none()
    }
}

fn stored_row(key: &str, row: &RowText) -> StoredRow {
    (key.to_owned(), Arc::new(row.entry()))
}

/// The rows of a store that may be in use, by key. A missing file has none; of a damaged one those that can be read.
/// Changes nothing on disk.
///
/// # Errors
/// When the file or its journal can't be read.
pub fn read_rows(path: &Path) -> io::Result<Vec<StoredRow>> {
    Ok(StoreOnDisk::read(path)?.rows())
}

/// The row that stands for a key, as an open store finds it. As [`read_rows`] otherwise.
///
/// # Errors
/// When the file or its journal can't be read.
pub fn read_row(
    path: &Path,
    agent: &AgentId,
    rules: &KeyRules,
    key: &SessionKey,
) -> io::Result<Option<StoredRow>> {
    let table = RowTable::new(StoreOnDisk::read(path)?.document.rows, agent.clone(), rules.clone());
    Ok(table.find(key).map(|(stored, row)| stored_row(stored, row)))
}

/// The newest rows of a store by key, newest first, and how many rows there are. As [`read_rows`] otherwise.
///
/// # Errors
/// When the file or its journal can't be read.
pub fn read_newest_rows(path: &Path, limit: usize) -> io::Result<(Vec<StoredRow>, usize)> {
    let rows = StoreOnDisk::read(path)?.document.rows;
    let mut newest: Vec<_> = rows.iter().filter_map(|(key, value)| Some((key, value.row()?))).collect();
    let count = newest.len();
    newest.sort_by_key(|(_, row)| Reverse(row.updated_at_ms()));
    Ok((newest.into_iter().take(limit).map(|(key, row)| stored_row(key, row)).collect(), count))
}

/// True if a file has a key for which `is_wanted` returns true. A file that is not plain JSON has
/// none.
pub(crate) fn has_key(path: &Path, is_wanted: impl Fn(&str) -> bool) -> io::Result<bool> {
    let bytes = match shared_place::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    if let Some(mut keys) = standard_keys(&bytes) {
        return Ok(keys.any(is_wanted));
    }
    let rows = document::plain_rows(&*bytes)?.unwrap_or_default();
    Ok(rows.iter().any(|(key, _)| is_wanted(key)))
}

/// The keys of a file that is laid out as OpenClaw lays it out, each on a line of its own and nothing else at its depth.
/// A big store is looked through at every start, and this takes a tenth of the time. Rows that a person put into one line
/// of such a file are not seen; the store knows them all the same, and the doctor reads everything.
fn standard_keys(bytes: &[u8]) -> Option<impl Iterator<Item = &str>> {
    const BEFORE: &[u8] = b"\n  \"";
    if bytes.get(1..).is_none_or(|rest| !rest.starts_with(BEFORE)) || !bytes.ends_with(b"\n}") {
        return None;
    }
    let key = |at: usize| {
        let rest = bytes.get(at + BEFORE.len()..)?;
        let key = rest.get(..memchr::memchr(b'"', rest)?)?;
        std::str::from_utf8(key).ok().filter(|key| !key.contains('\\'))
    };
    let keys: Option<Vec<&str>> = memchr::memmem::find_iter(bytes, BEFORE).map(key).collect();
    keys.map(Vec::into_iter)
}

/// Puts rows in the place of the whole file, at once or not at all, as OpenClaw writes them. The journal stays.
pub(crate) fn write(path: &Path, rows: &[StoredRow]) -> io::Result<()> {
    let mut all = Rows::default();
    for (key, entry) in rows {
        all.put(Arc::from(key.as_str()), entry)?;
    }
    let mut bytes = Vec::new();
    document::write(&all, &mut bytes)?;
    disk::replace(path, &bytes)
}

/// Time to wait for another process's lock, and the interval between attempts (spec `sessions.md`
/// §3.4).
pub(super) const LOCK_PATIENCE: Duration = Duration::from_secs(10);
pub(super) const LOCK_PAUSE: Duration = Duration::from_millis(25);

/// Path of OpenClaw's lock of a store.
pub(super) fn lock_path(store: &Path) -> PathBuf {
    disk::beside(store, "lock")
}

/// Error for a store's lock that could not be had in time.
pub(super) fn lock_timeout(store: &Path, holder: Option<u32>) -> io::Error {
    let holder = holder.map_or_else(String::new, |pid| format!(" (held by pid {pid})"));
    let text = format!("timeout acquiring session store lock: {}{holder}", lock_path(store).display());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// Takes OpenClaw's lock of a store, so that no command of OpenClaw writes it meanwhile. Blocking.
pub(crate) fn lock(store: &Path) -> io::Result<LockFile> {
    let begun = Instant::now();
    loop {
        match LockFile::try_acquire(&disk::real(), &lock_path(store), LockKind::Store)? {
            Ok(lock) => return Ok(lock),
            Err(_) if begun.elapsed() < LOCK_PATIENCE => std::thread::sleep(LOCK_PAUSE),
            Err(pid) => return Err(lock_timeout(store, pid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::Damage;
    use super::super::journal::{Op, line};
    use super::*;

    #[test]
    fn a_look_sees_the_journal_and_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        assert_eq!(read_rows(&path).unwrap(), []);
        std::fs::write(&path, r#"{"a": {"sessionId": "1", "updatedAt": 5}, "note": 3}"#).unwrap();
        let mut journal = Journal::open(&disk::real(), &path).unwrap();
        let made = SessionEntry::new(openclaw_protocol::SessionId::new("2"), 7);
        let op = Op::update("b", None, &made, 7);
        journal.append(&line(&[op]).unwrap()).unwrap();
        let names = || {
            let mut names: Vec<_> =
                std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        let rows = read_rows(&path).unwrap();
        let seen: Vec<(&str, Option<&str>)> = rows
            .iter()
            .map(|(key, row)| (key.as_str(), row.session_id.as_ref().map(|id| id.as_str())))
            .collect();
        assert_eq!(seen, [("a", Some("1")), ("b", Some("2"))]);
        let (newest, count) = read_newest_rows(&path, 1).unwrap();
        assert_eq!((newest.as_slice(), count), (&rows[1..], 2));
        assert_eq!(names(), before);
    }

    #[test]
    fn everything_there_is_is_found_and_the_bad_parts_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        assert!(StoreOnDisk::read(&path).unwrap().rows().is_empty());
        std::fs::write(&path, r#"{"a": {"sessionId": "1"}, "note": 3, "b": {"sess"#).unwrap();
        let lines = "{oops}\n[{\"key\":\"c\",\"new\":true,\"set\":{\"sessionId\":\"2\"}}]\n[{\"key\":";
        std::fs::write(dir.path().join("sessions.json.journal.1"), lines).unwrap();
        let found = StoreOnDisk::read(&path).unwrap();
        let rows = found.rows();
        let keys: Vec<&str> = rows.iter().map(|(key, _)| key.as_str()).collect();
        let lines = found.replayed.malformed_lines;
        assert_eq!((keys, lines, found.journal.paths().count()), (vec!["a", "c"], 1, 1));
        assert_eq!(found.document.damage, Some(Damage::BrokenAt(35)));
        // Beginning of a segment that follows a failed one, and the stand-in for a change that was
        // none.
        let sound = "{\"after\":1,\"len\":7}\n[]\n[{\"key\":\"c\",\"delete\":true}]\n";
        std::fs::write(dir.path().join("sessions.json.journal.2"), sound).unwrap();
        assert_eq!(StoreOnDisk::read(&path).unwrap().replayed.malformed_lines, 1);
        std::fs::remove_file(dir.path().join("sessions.json.journal.2")).unwrap();
        write(&path, &rows).unwrap();
        let again = StoreOnDisk::read(&path).unwrap();
        let damage = again.document.damage.as_ref();
        assert_eq!((again.rows(), damage), (rows, None), "the journal changes nothing any more");
    }

    #[test]
    fn files_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        let deep = "[".repeat(100_000);
        let rows: &[(&str, &[&str], Option<Damage>)] = &[
            ("{}", &[], None),
            (r#"{"a": {}, "b": 5, "c": null}"#, &["b", "c"], None),
            ("// mine\n{a: {sessionId: 'x',}, b: [],}", &["b"], None),
            (r#"{"a": {"subject": "x\ud83d"}, "b": 1}"#, &["b"], None),
            ("[]", &[], Some(Damage::NotAnObject)),
            ("", &[], Some(Damage::NotAnObject)),
            ("hello", &[], Some(Damage::NotAnObject)),
            (&deep, &[], Some(Damage::NotAnObject)),
            (r#"{"a": {"#, &[], Some(Damage::BrokenAt(0))),
            (r#"{"a": {}}}"#, &[], Some(Damage::BrokenAt(9))),
        ];
        for (text, no_rows, damage) in rows {
            std::fs::write(&path, text).unwrap();
            let found = StoreOnDisk::read(&path).unwrap();
            let keys: Vec<&str> = found.keys_without_row().collect();
            let seen = found.document.damage.as_ref();
            assert_eq!((keys.as_slice(), seen), (*no_rows, damage.as_ref()), "{text:.40}");
        }
    }

    #[test]
    fn keys_are_found_without_reading_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        let has = |key: &str| has_key(&path, |found| found == key).unwrap();
        assert!(!has("main"));
        for (text, expect) in [
            (r#"{"agent:main:main": {"main": 1}}"#, false),
            (r#"{"agent:main:main": {}, "m\u0061in": {}}"#, true),
            (r#"{"main": {}"#, false),
            (r#"["main"]"#, false),
            ("{\n  \"main\": {\n    \"a\": 1\n  }\n}", true),
            ("{\n  \"x\": {\n    \"main\": 1\n  }\n}", false),
            ("{\n  \"m\\u0061in\": {}\n}", true),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(has("main"), expect, "{text}");
        }
    }

    /// Values of `sessions.md` §3.4.
    #[test]
    fn the_lock_is_waited_for_as_openclaw_waits() {
        assert_eq!(LockKind::Store.counts_unheld_for().as_millis(), 30_000);
        assert_eq!((LOCK_PATIENCE.as_millis(), LOCK_PAUSE.as_millis()), (10_000, 25));
    }
}
