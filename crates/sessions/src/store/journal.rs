//! The journal beside `sessions.json`: what changed since the file was last written.
//!
//! A line is a JSON array of [`Op`]s: all that was written at once, so that a torn line takes nothing along that
//! it does not hold whole. Segments `sessions.json.journal.<n>` are replayed in their order; a snapshot of the file makes
//! all segments that existed when it began unnecessary, and they go oldest first: the last of them replayed over a file
//! that holds their changes already give the same file, the first of them alone would not.
//!
//! Another program may have written a row since a change of it was journaled: [`super::overruled`]
//! decides which of the two counts.
//!
//! A failed write or sync leaves it unknown what is on disk, and a later sync would not tell.
//! Nothing is added to such a segment any more: the next one begins with a line that says how much
//! of it counts ([`SegmentHeader`]).

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_protocol::SessionId;
use serde::{Deserialize, Serialize};

use super::head::HeadText;
use super::overruled::{ChangeFacts, Overruled};
use super::rows::Rows;
use super::stored::RowText;
use crate::disk::{self, DiskFile, SharedDisk};
use crate::entry::SessionEntry;
use crate::ordered::FieldChanges;

/// Change of one row, by the file's spelling of its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Op {
    key: String,
    /// The row is made by this change; a change of a row that is gone makes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    new: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    delete: bool,
    /// The conversation that the row had before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<SessionId>,
    /// Time of the change, Unix milliseconds, and no earlier than the row's own `updatedAt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
    #[serde(flatten)]
    changes: FieldChanges,
}

impl Op {
    pub(crate) fn update(key: &str, old: Option<&SessionEntry>, new: &SessionEntry, now: i64) -> Self {
        let changes = match old {
            Some(old) => old.changes_to(new),
            None => SessionEntry::default().changes_to(new),
        };
        let of = old.and_then(|old| old.session_id.clone());
        let at = Some(now.max(new.updated_at_ms()));
        Self { key: key.to_owned(), new: old.is_none(), delete: false, of, at, changes }
    }

    pub(crate) fn delete(key: &str, old: &RowText, now: i64) -> Self {
        let of = old.text(HeadText::SessionId).map(|id| SessionId::new(&*id));
        let at = Some(now.max(old.updated_at_ms()));
        let (key, changes) = (key.to_owned(), FieldChanges::default());
        Self { key, new: false, delete: true, of, at, changes }
    }

    /// Time of the change, Unix milliseconds. A journal of an older version tells by the field that
    /// most changes set, or not at all.
    pub(crate) fn at(&self) -> i64 {
        self.at.or_else(|| self.changes.set.get("updatedAt")?.as_i64()).unwrap_or(i64::MAX)
    }

    fn made(&self) -> ChangeFacts<'_> {
        let before = self.of.as_ref().map(SessionId::as_str);
        let after = self.changes.set.get("sessionId").and_then(serde_json::Value::as_str);
        ChangeFacts { sessions: [before, after.or(before)], at: self.at() }
    }

    /// The same of a row that is made anew: replayed over a file that holds it, it takes back what older lines put into its
    /// fields. Fields that the change sets stay.
    pub(crate) fn forgetting(mut self, fields: impl IntoIterator<Item = String>) -> Self {
        let set = &self.changes.set;
        self.changes.unset.extend(fields.into_iter().filter(|field| !set.contains_key(field)));
        self
    }

    /// Performs the change, unless the row there counts whole.
    fn apply(&self, rows: &mut Rows, overruled: &mut Overruled) {
        let there = rows.row(&self.key);
        if there.is_some_and(|there| self.made().is_overruled_by(there)) {
            self.note_in(overruled);
            return;
        }
        overruled.clear(&self.key);
        if self.delete {
            rows.remove(&self.key);
            return;
        }
        let mut entry = match there {
            Some(row) => row.entry(),
            None if self.new => SessionEntry::default(),
            None => return,
        };
        entry.apply(&self.changes);
        if let Err(error) = rows.put(Arc::from(self.key.as_str()), &entry) {
            tracing::warn!(key = self.key, %error, "cannot keep a session that the journal holds");
        }
    }

    fn note_in(&self, overruled: &mut Overruled) {
        if self.delete {
            overruled.note_removal(&self.key);
        } else {
            overruled.note(&self.key, self.changes.set.keys().chain(&self.changes.unset));
        }
    }
}

/// Result of a replay.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// The keys that the segments name.
    pub(crate) named: HashSet<String>,
    /// Changes that did not count.
    pub(crate) overruled: Overruled,
    /// Complete lines that can't be read. A torn last line does not count: it was never
    /// acknowledged.
    pub(crate) malformed_lines: usize,
}

/// First line of a segment that follows one which failed. Segments between the two failed as well, at their first line:
/// nothing of them counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SegmentHeader {
    /// The segment that failed.
    after: u64,
    /// Length in bytes of the valid part.
    len: u64,
}

/// The segments of one store.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: SharedDisk,
    store: PathBuf,
    /// Segments to replay, in this order.
    segments: Vec<u64>,
    /// The file holds those up to this one.
    covered: u64,
    /// True if another process finished with a segment while it was being read: the file has
    /// changed since.
    has_missed_some: bool,
    /// The highest number in use, by whomever.
    last: u64,
    current: Option<Segment>,
    /// Complete segments that the file does not hold yet. They stay held: one that looks abandoned would be taken over by
    /// another process and its old changes put on top of newer ones.
    complete: Vec<Segment>,
    /// Failed write that no segment records yet.
    failed: Option<SegmentHeader>,
    /// True if the directories down to the store are durable; checked once.
    is_rooted: bool,
    /// Directory whose name is durable, and those above it.
    rooted: Option<PathBuf>,
}

/// Durability of a journal line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum LineDurability {
    /// The end of this process does it no harm; a power cut may take it, with all that was written since the last sync.
    #[default]
    Written,
    /// The line is on disk when the call returns.
    Synced,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    file: Box<dyn DiskFile>,
    len: u64,
    /// True if all of it is on disk.
    is_synced: bool,
}

/// Time to wait for a segment that another process holds: a process that was just told to end lets
/// go of it.
const HOLD_PATIENCE: Duration = Duration::from_secs(1);

impl Journal {
    /// Finds the segments that former owners of the store left. Segments of a living process are
    /// its own business.
    pub(crate) fn open(disk: &SharedDisk, store: &Path) -> io::Result<Self> {
        let mut journal = Self::look(disk, store)?;
        let deadline = Instant::now() + HOLD_PATIENCE;
        let mut left = Vec::new();
        for number in std::mem::take(&mut journal.segments) {
            match journal.is_free(number, deadline) {
                Ok(true) => left.push(number),
                Ok(false) => {
                    let path = journal.path(number);
                    tracing::warn!(journal = %path.display(), "another process is using this session store");
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => journal.has_missed_some = true,
                Err(error) => return Err(error),
            }
        }
        journal.segments = left;
        Ok(journal)
    }

    /// Finds all segments, for one who only reads.
    pub(crate) fn look(disk: &SharedDisk, store: &Path) -> io::Result<Self> {
        let prefix = format!("{}.journal.", store.file_name().unwrap_or_default().to_string_lossy());
        let names = store.parent().map_or(Ok(Vec::new()), |dir| disk.list(dir))?;
        let number = |name: &std::ffi::OsString| name.to_str()?.strip_prefix(&prefix)?.parse::<u64>().ok();
        let mut segments: Vec<u64> = names.iter().filter_map(number).collect();
        segments.sort_unstable();
        let last = segments.last().copied().unwrap_or_default();
        let disk = SharedDisk::clone(disk);
        Ok(Self {
            disk,
            store: store.to_path_buf(),
            segments,
            covered: 0,
            has_missed_some: false,
            last,
            current: None,
            complete: Vec::new(),
            failed: None,
            is_rooted: false,
            rooted: None,
        })
    }

    fn is_free(&self, number: u64, deadline: Instant) -> io::Result<bool> {
        let path = self.path(number);
        let mut pause = Duration::from_millis(1);
        while self.disk.is_held(&path)? {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(pause);
            pause *= 2;
        }
        Ok(true)
    }

    /// True if another process removed segments while they were being read.
    pub(crate) fn has_missed_some(&self) -> bool {
        self.has_missed_some
    }

    /// True if there are segments, even if the file already holds their changes.
    pub(crate) fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// The segments' files, in their order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.segments.iter().map(|number| self.path(*number))
    }

    /// True if the file lacks nothing that the journal holds.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.last().is_none_or(|last| *last <= self.covered)
    }

    /// True if segments are left that the file already holds.
    pub(crate) fn is_stale(&self) -> bool {
        self.segments.first().is_some_and(|first| *first <= self.covered)
    }

    /// Bytes in the segment that is written to.
    pub(crate) fn current_len(&self) -> u64 {
        self.current.as_ref().map_or(0, |segment| segment.len)
    }

    /// Performs everything the segments hold that still counts. A torn last line of a segment was never acknowledged and is
    /// passed over.
    pub(crate) fn replay(&self, rows: &mut Rows) -> io::Result<Replayed> {
        let mut done = Replayed::default();
        done.malformed_lines = self.each_op(
            |path| self.disk.read(path),
            |op| {
                op.apply(rows, &mut done.overruled);
                if !done.named.contains(&op.key) {
                    done.named.insert(op.key.clone());
                }
            },
        )?;
        Ok(done)
    }

    /// The fields into which the segments put something for a key. A snapshot under way removes segments once the file holds
    /// them: nothing of those comes up again.
    pub(crate) fn fields_of(&self, key: &str) -> io::Result<BTreeSet<String>> {
        let read = |path: &Path| match self.disk.read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        };
        let mut fields = BTreeSet::new();
        self.each_op(read, |op| {
            if op.key == key {
                fields.extend(op.changes.set.keys().cloned());
            }
        })?;
        Ok(fields)
    }

    /// True if a failed write is not recorded yet: its line may come up again after a crash.
    pub(crate) fn has_unrecorded_failure(&self) -> bool {
        self.failed.is_some()
    }

    /// Returns how many lines can't be read.
    fn each_op(
        &self,
        read: impl Fn(&Path) -> io::Result<Vec<u8>>,
        mut work: impl FnMut(&Op),
    ) -> io::Result<usize> {
        let mut texts: Vec<(u64, Vec<u8>)> = Vec::new();
        for number in &self.segments {
            let text = read(&self.path(*number))?;
            if let Some(header) = header_of(&text) {
                for (number, failed) in texts.iter_mut().filter(|(number, _)| *number >= header.after) {
                    let counts = if *number == header.after { header.len } else { 0 };
                    failed.truncate(usize::try_from(counts).unwrap_or(usize::MAX));
                }
            }
            texts.push((*number, text));
        }
        Ok(texts.iter().map(|(number, text)| self.each_op_of(*number, text, &mut work)).sum())
    }

    fn each_op_of(&self, number: u64, text: &[u8], work: &mut impl FnMut(&Op)) -> usize {
        let (mut offset, mut malformed) = (0, 0);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            match serde_json::from_slice::<Vec<Op>>(line) {
                Ok(ops) if line.ends_with(b"\n") => ops.iter().for_each(&mut *work),
                _ if !line.ends_with(b"\n") || (offset == 0 && header_of(line).is_some()) => {}
                _ => {
                    let journal = self.path(number);
                    tracing::warn!(journal = %journal.display(), offset, "skipped a malformed line");
                    malformed += 1;
                }
            }
            offset += line.len();
        }
        malformed
    }

    /// Appends a line and makes it durable, and all before it. After an error it counts as never written.
    pub(crate) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.write(line, LineDurability::Synced)
    }

    /// True if a power cut may lose the last writes.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.current.as_ref().is_some_and(|segment| !segment.is_synced)
    }

    /// [`Self::append`] that need not wait for the disk.
    pub(crate) fn write(&mut self, line: &[u8], durability: LineDurability) -> io::Result<()> {
        let mut segment = match self.current.take() {
            Some(segment) => segment,
            None => self.begin_segment()?,
        };
        let header = match self.failed {
            Some(failed) if segment.len == 0 => self::line(&failed)?,
            Some(_) | None => Vec::new(),
        };
        let text = [&*header, line].concat();
        let written = segment.file.write_all(&text);
        let cut_off = written.is_err() && cut(&mut segment).is_ok();
        let is_synced = durability == LineDurability::Synced;
        match written.and_then(|()| if is_synced { segment.file.sync() } else { Ok(()) }) {
            Ok(()) => {
                segment.len += text.len() as u64;
                segment.is_synced = is_synced;
                self.current = Some(segment);
                self.failed = None;
                Ok(())
            }
            Err(error) if cut_off => {
                self.current = Some(segment);
                Err(error)
            }
            Err(error) => {
                let _ = cut(&mut segment);
                self.failed.get_or_insert(SegmentHeader { after: segment.number, len: segment.len });
                self.complete.push(segment);
                Err(error)
            }
        }
    }

    /// Closes the current segment: the next append begins a new one. Returns the numbers of those that are complete.
    pub(crate) fn rotate(&mut self) -> Vec<u64> {
        if let Some(mut segment) = self.current.take() {
            if !segment.is_synced {
                // Later lines must not be on disk without it. Should the disk refuse, the file will
                // hold it all.
                let _ = segment.file.sync();
            }
            self.complete.push(segment);
        }
        self.segments.clone()
    }

    /// Takes note that the file holds the segments up to one, and that some of them were removed. Others are removed after
    /// a later snapshot; till then they do no harm.
    pub(crate) fn on_snapshot(&mut self, last: Option<u64>, removed: &[u64]) {
        self.covered = last.unwrap_or_default().max(self.covered);
        self.segments.retain(|number| !removed.contains(number));
        self.complete.retain(|segment| segment.number > self.covered);
        if self.segments.is_empty() {
            self.failed = None;
        }
    }

    /// Notes that the directories down to this one are durable.
    pub(crate) fn set_rooted(&mut self, dir: PathBuf) {
        self.rooted = Some(dir);
    }

    fn begin_segment(&mut self) -> io::Result<Segment> {
        loop {
            self.last += 1;
            let path = self.path(self.last);
            let created = match self.disk.create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // What was durable here is gone; the directory of all state is not.
                    self.is_rooted = false;
                    disk::create_parent(&*self.disk, &path)?;
                    self.disk.create_new(&path)
                }
                other => other,
            };
            match created {
                Ok(file) => {
                    file.hold();
                    self.segments.push(self.last);
                    if self.is_rooted {
                        disk::sync_parent(&*self.disk, &path)?;
                    } else {
                        disk::sync_way_to(&*self.disk, &path, self.rooted.as_deref())?;
                        self.is_rooted = true;
                    }
                    return Ok(Segment { number: self.last, file, len: 0, is_synced: true });
                }
                // Someone else uses the store as well.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        segment_path(&self.store, number)
    }
}

/// Removes segments whose changes a snapshot holds, oldest first and each one for good before the next. Returns those
/// that are gone.
pub(crate) fn remove_segments(disk: &SharedDisk, store: &Path, numbers: &[u64]) -> Vec<u64> {
    let mut gone = Vec::new();
    for number in numbers {
        let path = segment_path(store, *number);
        if let Err(error) = disk.remove(&path).and_then(|()| disk::sync_parent(&**disk, &path)) {
            tracing::warn!(journal = %path.display(), %error, "cannot remove a journal that is done with");
            break;
        }
        gone.push(*number);
    }
    gone
}

fn segment_path(store: &Path, number: u64) -> PathBuf {
    disk::beside(store, &format!("journal.{number}"))
}

fn header_of(text: &[u8]) -> Option<SegmentHeader> {
    let line = text.split_inclusive(|byte| *byte == b'\n').next()?;
    serde_json::from_slice(line).ok()
}

/// Takes back what was written beyond what counts.
fn cut(segment: &mut Segment) -> io::Result<()> {
    segment.file.set_len(segment.len)?;
    segment.file.sync()
}

/// A line of the journal.
pub(crate) fn line(content: &(impl Serialize + ?Sized)) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(content)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::super::document;
    use super::super::stored::Pool;
    use super::*;

    fn entry(json: &str) -> SessionEntry {
        serde_json::from_str(json).unwrap()
    }

    fn delete(key: &str, old: &str, now: i64) -> Op {
        let old = RowText::found(old, &serde_json::from_str(old).unwrap(), &mut Pool::default());
        Op::delete(key, &old, now)
    }

    fn rows_after(journal: &Journal, base: &str) -> String {
        let mut rows = document::read(base.as_bytes()).rows;
        journal.replay(&mut rows).unwrap();
        text_of(&rows)
    }

    fn text_of(rows: &Rows) -> String {
        let mut out = Vec::new();
        document::write(rows, &mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        value.to_string()
    }

    #[test]
    fn replay_merges_with_edits_made_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("sessions.json");
        let mut journal = Journal::open(&disk::real(), &store).unwrap();
        let (old, new) =
            (entry(r#"{"sessionId":"a","label":"x"}"#), entry(r#"{"sessionId":"a","inputTokens":5}"#));
        let ops = [
            Op::update("agent:main:a", Some(&old), &new, 0),
            Op::update("agent:main:b", None, &entry(r#"{"sessionId":"b"}"#), 0),
            delete("agent:main:c", "{}", 0),
            Op::update("agent:main:gone", Some(&old), &new, 0),
        ];
        journal.append(&line(&ops).unwrap()).unwrap();
        let base = r#"{"agent:main:a":{"sessionId":"a","label":"x","sendPolicy":"deny"},"agent:main:c":{}}"#;
        let expect = r#"{"agent:main:a":{"sessionId":"a","sendPolicy":"deny","inputTokens":5},"agent:main:b":{"sessionId":"b"}}"#;
        drop(journal);
        let reopened = Journal::open(&disk::real(), &store).unwrap();
        assert_eq!(rows_after(&reopened, base), expect);
        assert_eq!(rows_after(&reopened, expect), expect, "replay over its own result changes nothing");
    }

    /// Killed, then used by OpenClaw 2026.2.9, then started again: each row of the file against each kind of change.
    #[test]
    fn a_row_that_somebody_wrote_later_counts_whole() {
        let (old, new) = (
            r#"{"sessionId":"a","updatedAt":5,"label":"x"}"#,
            r#"{"sessionId":"a","updatedAt":10,"inputTokens":7}"#,
        );
        let (set, made) =
            (Op::update("k", Some(&entry(old)), &entry(new), 10), Op::update("k", None, &entry(new), 10));
        let reset = Op::update("k", Some(&entry(old)), &entry(r#"{"sessionId":"b","updatedAt":10}"#), 10);
        let removed = delete("k", old, 10);
        let later = r#"{"sessionId":"a","updatedAt":11,"label":"y"}"#;
        let other = r#"{"sessionId":"z","updatedAt":9,"label":"y"}"#;
        let merged = r#"{"sessionId":"a","updatedAt":10,"inputTokens":7}"#;
        let by_hand = r#"{"sessionId":"a","updatedAt":5,"label":"x","sendPolicy":"deny"}"#;
        let both = r#"{"sessionId":"a","updatedAt":10,"sendPolicy":"deny","inputTokens":7}"#;
        let fresh = r#"{"sessionId":"b","updatedAt":10}"#;
        let cases = [
            // The change, the row in the file, the row afterwards, and what is told.
            ("as it was", &set, Some(old), Some(merged), ""),
            ("the file has the change", &set, Some(merged), Some(merged), ""),
            ("edited by hand", &set, Some(by_hand), Some(both), ""),
            ("written later", &set, Some(later), Some(later), "inputTokens label updatedAt"),
            (
                "another conversation, and an older clock",
                &set,
                Some(other),
                Some(other),
                "inputTokens label updatedAt",
            ),
            ("removed", &set, None, None, ""),
            ("not known to anybody else", &made, None, Some(merged), ""),
            ("made there as well", &made, Some(other), Some(other), "inputTokens sessionId updatedAt"),
            ("begun anew", &reset, Some(old), Some(fresh), ""),
            ("begun anew, and the file has it", &reset, Some(fresh), Some(fresh), ""),
            ("begun anew, then written there", &reset, Some(later), Some(later), "label sessionId updatedAt"),
            ("removed here", &removed, Some(old), None, ""),
            ("removed here, then written there", &removed, Some(later), Some(later), "(its removal)"),
            ("removed here, another one there", &removed, Some(other), Some(other), "(its removal)"),
            ("removed here and there", &removed, None, None, ""),
        ];
        for (name, op, there, expect, told) in cases {
            let mut rows = Rows::default();
            if let Some(there) = there {
                rows.put(Arc::from("k"), &entry(there)).unwrap();
            }
            let mut overruled = Overruled::default();
            op.apply(&mut rows, &mut overruled);
            let after = rows.row("k").map(|row| serde_json::to_string(&row.entry()).unwrap());
            assert_eq!(after.as_deref(), expect, "{name}");
            let mut expect = Overruled::default();
            let told: Vec<String> = told.split(' ').map(str::to_owned).collect();
            match told.as_slice() {
                [nothing] if nothing.is_empty() => {}
                [.., removal] if removal.ends_with(')') => expect.note_removal("k"),
                fields => expect.note("k", fields),
            }
            assert_eq!(overruled, expect, "{name}");
        }
    }

    #[test]
    fn a_file_that_has_it_all_is_left_as_it_is_and_nothing_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("sessions.json");
        let mut journal = Journal::open(&disk::real(), &store).unwrap();
        let states = [
            r#"{"sessionId":"a","updatedAt":1}"#,
            r#"{"sessionId":"a","updatedAt":2,"inputTokens":2}"#,
            r#"{"sessionId":"b","updatedAt":3}"#,
            r#"{"sessionId":"b","updatedAt":3,"label":"l"}"#,
        ];
        let mut old = None;
        for (now, state) in (1..).zip(states) {
            let new = entry(state);
            journal.append(&line(&[Op::update("k", old.as_ref(), &new, now)]).unwrap()).unwrap();
            old = Some(new);
        }
        for held in states {
            let mut rows = document::read(format!("{{\"k\":{held}}}").as_bytes()).rows;
            let done = journal.replay(&mut rows).unwrap();
            assert_eq!(text_of(&rows), format!("{{\"k\":{}}}", states[3]), "{held}");
            assert_eq!(done.overruled, Overruled::default(), "{held}");
        }
    }

    /// A file that holds everything, because a name could not be synced and the segments stayed, with what someone put there
    /// since: replayed over it, old lines give the new row nothing, and nothing of theirs is lost.
    #[test]
    fn a_row_that_is_made_again_gets_nothing_back_from_old_lines() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("sessions.json");
        let mut journal = Journal::open(&disk::real(), &store).unwrap();
        let empty = entry(r#"{"sessionId":"a"}"#);
        let old = entry(r#"{"sessionId":"a","label":"x","inputTokens":5}"#);
        let new = entry(r#"{"sessionId":"b","inputTokens":7}"#);
        journal.append(&line(&[Op::update("agent:main:a", Some(&empty), &old, 0)]).unwrap()).unwrap();
        let fields = journal.fields_of("agent:main:a").unwrap();
        assert_eq!(fields.iter().collect::<Vec<_>>(), ["inputTokens", "label"]);
        assert!(journal.fields_of("agent:main:b").unwrap().is_empty());
        let made = Op::update("agent:main:a", None, &new, 0).forgetting(fields);
        journal.append(&line(&[made]).unwrap()).unwrap();
        let base = r#"{"agent:main:a":{"sessionId":"b","inputTokens":7,"theirs":1}}"#;
        assert_eq!(rows_after(&journal, base), base);
        assert_eq!(rows_after(&journal, "{}"), r#"{"agent:main:a":{"sessionId":"b","inputTokens":7}}"#);
    }

    /// A snapshot is written beside the updates, and removes segments before anybody has heard of its end.
    #[test]
    fn a_segment_that_a_snapshot_has_just_removed_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("sessions.json");
        let mut journal = Journal::open(&disk::real(), &store).unwrap();
        for field in ["label", "subject"] {
            let new = entry(&format!(r#"{{"sessionId":"a","{field}":"x"}}"#));
            let op = Op::update("agent:main:a", Some(&entry(r#"{"sessionId":"a"}"#)), &new, 0);
            journal.append(&line(&[op]).unwrap()).unwrap();
            journal.rotate();
        }
        let fields =
            |journal: &Journal| journal.fields_of("agent:main:a").unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(fields(&journal), ["label", "subject"]);
        std::fs::remove_file(journal.path(journal.segments[0])).unwrap();
        assert_eq!(fields(&journal), ["subject"]);
        assert!(Journal::open(&disk::real(), &store).is_ok());
    }

    #[test]
    fn a_journal_cut_anywhere_replays_its_whole_lines() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("sessions.json");
        let mut journal = Journal::open(&disk::real(), &store).unwrap();
        let mut ends = vec![0];
        for n in 0..3 {
            let new = entry(&format!(r#"{{"sessionId":"{n}"}}"#));
            journal.append(&line(&[Op::update(&format!("agent:main:{n}"), None, &new, 0)]).unwrap()).unwrap();
            ends.push(journal.current_len() as usize);
        }
        let path = journal.path(1);
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut rows = Rows::default();
            Journal::open(&disk::real(), &store).unwrap().replay(&mut rows).unwrap();
            let expect = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!(rows.len(), expect, "{cut}");
        }
    }

    /// Checks the hold on complete segments: else another process would take over changes that are
    /// about to be in the file, and put them on top of newer ones there.
    #[test]
    fn a_complete_segment_is_held_until_the_file_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("sessions.json");
        let mut journal = Journal::open(&disk::real(), &store).unwrap();
        let made = entry(r#"{"sessionId":"a"}"#);
        journal.append(&line(&[Op::update("agent:main:a", None, &made, 0)]).unwrap()).unwrap();
        let complete = journal.rotate();
        assert!(disk::real().is_held(&journal.path(1)).unwrap());
        journal.on_snapshot(complete.last().copied(), &[]);
        assert!(
            !disk::real().is_held(&journal.path(1)).unwrap(),
            "it could not be removed, and does no harm"
        );
    }

    #[test]
    fn segments_are_replayed_in_order_and_removed_when_done_with() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("sessions.json");
        let mut journal = Journal::open(&disk::real(), &store).unwrap();
        for n in 1..=11 {
            let new = entry(&format!(r#"{{"sessionId":"a","inputTokens":{n}}}"#));
            journal.append(&line(&[Op::update("agent:main:a", None, &new, 0)]).unwrap()).unwrap();
            assert_eq!(journal.rotate().last(), Some(&n));
        }
        drop(journal);
        let mut reopened = Journal::open(&disk::real(), &store).unwrap();
        assert_eq!(rows_after(&reopened, "{}"), r#"{"agent:main:a":{"sessionId":"a","inputTokens":11}}"#);
        let all = reopened.rotate();
        reopened.on_snapshot(Some(10), &remove_segments(&disk::real(), &store, &all[..10]));
        assert_eq!(reopened.segments, [11]);
        assert_eq!(Journal::open(&disk::real(), &store).unwrap().segments, [11]);
    }
}
