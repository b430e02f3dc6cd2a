//! The journal beside `sessions.json`: what changed since the file was last written, one line an update.
//!
//! A line is a JSON array of [`Op`]s. Segments `sessions.json.journal.<n>` are replayed in their order; a snapshot of the
//! file makes all segments that existed when it began unnecessary. Replaying a segment over a file that holds its changes
//! already gives the same file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::document::{Rows, Stored};
use crate::disk;
use crate::entry::SessionEntry;
use crate::ordered::FieldChanges;

/// One change of one row, by the file's spelling of its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Op {
    key: String,
    /// The row is made by this change; a change of a row that is gone makes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    new: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    delete: bool,
    #[serde(flatten)]
    changes: FieldChanges,
}

impl Op {
    pub(crate) fn update(key: &str, old: Option<&SessionEntry>, new: &SessionEntry) -> Self {
        let changes = match old {
            Some(old) => old.changes_to(new),
            None => SessionEntry::default().changes_to(new),
        };
        Self { key: key.to_owned(), new: old.is_none(), delete: false, changes }
    }

    pub(crate) fn delete(key: &str) -> Self {
        Self { key: key.to_owned(), new: false, delete: true, changes: FieldChanges::default() }
    }

    fn apply(&self, rows: &mut Rows) {
        if self.delete {
            rows.shift_remove(self.key.as_str());
            return;
        }
        let mut entry = match rows.get(self.key.as_str()) {
            Some(Stored::Row(entry)) => (**entry).clone(),
            Some(Stored::Opaque(_)) | None if self.new => SessionEntry::default(),
            Some(Stored::Opaque(_)) | None => return,
        };
        entry.apply(&self.changes);
        rows.insert(Arc::from(self.key.as_str()), Stored::Row(Arc::new(entry)));
    }
}

/// The segments of one store.
#[derive(Debug)]
pub(crate) struct Journal {
    store: PathBuf,
    segments: Vec<u64>,
    current: Option<Segment>,
}

#[derive(Debug)]
struct Segment {
    file: File,
    len: u64,
}

impl Journal {
    /// Finds the segments of a store.
    pub(crate) fn open(store: &Path) -> io::Result<Self> {
        let mut segments = Vec::new();
        let prefix = format!("{}.journal.", store.file_name().unwrap_or_default().to_string_lossy());
        let listing = store.parent().map(std::fs::read_dir);
        match listing {
            Some(Ok(entries)) => {
                for entry in entries {
                    let name = entry?.file_name();
                    let number =
                        name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse::<u64>().ok());
                    segments.extend(number);
                }
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Some(Err(error)) => return Err(error),
            None => {}
        }
        segments.sort_unstable();
        Ok(Self { store: store.to_path_buf(), segments, current: None })
    }

    /// Whether there is anything a snapshot would make unnecessary.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes in the segment that is written to.
    pub(crate) fn current_len(&self) -> u64 {
        self.current.as_ref().map_or(0, |segment| segment.len)
    }

    /// Performs everything the segments hold. A torn last line of a segment was never acknowledged and is passed over.
    pub(crate) fn replay(&self, rows: &mut Rows) -> io::Result<()> {
        for number in &self.segments {
            let path = self.path(*number);
            let file = File::open(&path)?;
            let mut lines = crate::transcript::scan::Lines::new(BufReader::new(file), 0);
            while let Some(line) = lines.advance()? {
                match serde_json::from_slice::<Vec<Op>>(lines.bytes()) {
                    Ok(ops) if line.ended => ops.iter().for_each(|op| op.apply(rows)),
                    _ if !line.ended => {}
                    _ => {
                        tracing::warn!(journal = %path.display(), offset = line.offset, "skipped a malformed line")
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends lines and makes them durable. After an error nothing of them is in the journal.
    pub(crate) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut segment = match self.current.take() {
            Some(segment) => segment,
            None => self.begin_segment()?,
        };
        match segment.file.write_all(lines).and_then(|()| segment.file.sync_data()) {
            Ok(()) => {
                segment.len += lines.len() as u64;
                self.current = Some(segment);
                Ok(())
            }
            Err(error) => {
                // A segment that can't be cut back is left alone with its refused lines cut off by a foul one.
                let cut = segment.file.set_len(segment.len).and_then(|()| segment.file.sync_data());
                if cut.is_ok() {
                    self.current = Some(segment);
                }
                Err(error)
            }
        }
    }

    /// Closes the current segment: the next append begins a new one. Returns the last number that is complete.
    pub(crate) fn rotate(&mut self) -> Option<u64> {
        self.current = None;
        self.segments.last().copied()
    }

    /// Removes segments up to a number, after a snapshot that holds their changes.
    pub(crate) fn remove_through(&mut self, last: u64) {
        let path = |number: &u64| self.path(*number);
        for number in self.segments.iter().filter(|number| **number <= last) {
            if let Err(error) = std::fs::remove_file(path(number)) {
                tracing::warn!(journal = %path(number).display(), %error, "cannot remove a journal that is done with");
            }
        }
        self.segments.retain(|number| *number > last);
    }

    fn begin_segment(&mut self) -> io::Result<Segment> {
        let number = self.segments.last().map_or(1, |last| last + 1);
        let path = self.path(number);
        disk::create_parent(&path)?;
        let file = disk::private(OpenOptions::new().append(true).create_new(true)).open(&path)?;
        disk::sync_parent(&path)?;
        self.segments.push(number);
        Ok(Segment { file, len: 0 })
    }

    fn path(&self, number: u64) -> PathBuf {
        disk::beside(&self.store, &format!("journal.{number}"))
    }
}

/// A line of the journal.
pub(crate) fn line(ops: &[Op]) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(ops)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::super::document;
    use super::*;

    fn entry(json: &str) -> SessionEntry {
        serde_json::from_str(json).unwrap()
    }

    fn rows_after(journal: &Journal, base: &str) -> String {
        let mut rows = document::read(base.as_bytes()).rows;
        journal.replay(&mut rows).unwrap();
        let rows: Vec<_> = rows.into_iter().collect();
        let mut out = Vec::new();
        document::write(&rows, &mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        value.to_string()
    }

    #[test]
    fn replay_merges_with_edits_made_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("sessions.json");
        let mut journal = Journal::open(&store).unwrap();
        let (old, new) =
            (entry(r#"{"sessionId":"a","label":"x"}"#), entry(r#"{"sessionId":"a","inputTokens":5}"#));
        let ops = [
            Op::update("agent:main:a", Some(&old), &new),
            Op::update("agent:main:b", None, &entry(r#"{"sessionId":"b"}"#)),
            Op::delete("agent:main:c"),
            Op::update("agent:main:gone", Some(&old), &new),
        ];
        journal.append(&line(&ops).unwrap()).unwrap();
        let base = r#"{"agent:main:a":{"sessionId":"a","label":"x","sendPolicy":"deny"},"agent:main:c":{}}"#;
        let expect = r#"{"agent:main:a":{"sessionId":"a","sendPolicy":"deny","inputTokens":5},"agent:main:b":{"sessionId":"b"}}"#;
        let reopened = Journal::open(&store).unwrap();
        assert_eq!(rows_after(&reopened, base), expect);
        assert_eq!(rows_after(&reopened, expect), expect, "replay over its own result changes nothing");
    }

    #[test]
    fn a_journal_cut_anywhere_replays_its_whole_lines() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("sessions.json");
        let mut journal = Journal::open(&store).unwrap();
        let mut ends = vec![0];
        for n in 0..3 {
            let new = entry(&format!(r#"{{"sessionId":"{n}"}}"#));
            journal.append(&line(&[Op::update(&format!("agent:main:{n}"), None, &new)]).unwrap()).unwrap();
            ends.push(journal.current_len() as usize);
        }
        let path = journal.path(1);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut rows = Rows::new();
            Journal::open(&store).unwrap().replay(&mut rows).unwrap();
            let expect = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!(rows.len(), expect, "{cut}");
        }
    }

    #[test]
    fn segments_are_replayed_in_order_and_removed_when_done_with() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("sessions.json");
        let mut journal = Journal::open(&store).unwrap();
        for n in 1..=11 {
            let new = entry(&format!(r#"{{"sessionId":"{n}"}}"#));
            journal.append(&line(&[Op::update("agent:main:a", None, &new)]).unwrap()).unwrap();
            assert_eq!(journal.rotate(), Some(n));
        }
        let mut reopened = Journal::open(&store).unwrap();
        assert_eq!(rows_after(&reopened, "{}"), r#"{"agent:main:a":{"sessionId":"11"}}"#);
        reopened.remove_through(10);
        assert_eq!(Journal::open(&store).unwrap().segments, [11]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_refuses_the_append_and_the_next_one_goes_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("sessions.json")).unwrap();
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        journal.current = Some(Segment { file: full, len: 0 });
        let lines = line(&[Op::update("agent:main:a", None, &entry(r#"{"sessionId":"a"}"#))]).unwrap();
        assert_eq!(journal.append(&lines).unwrap_err().kind(), io::ErrorKind::StorageFull);
        journal.append(&lines).unwrap();
        assert_eq!(rows_after(&journal, "{}"), r#"{"agent:main:a":{"sessionId":"a"}}"#);
    }
}
