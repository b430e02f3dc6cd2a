//! Reading a log into the index, from its end as far as it is needed, and repairing a torn end.

use std::io::{self, BufReader, Read as _};

use super::OpenTranscript;
use super::window::LineWindow;
use crate::time::now_ms;
use crate::transcript::format::{EntryId, TranscriptHeader, VERSION};
use crate::transcript::index::Kind;
use crate::transcript::scan::{Lines, line_start};
use crate::transcript::storage::{LogPart, OpenMode, TranscriptLog, TranscriptLogs, TranscriptRef};
use crate::transcript::tail::{Indexed, SkippedLines, Tail, buffer_for, index_line};
use crate::transcript::{TranscriptError, migrate};

/// Bytes at the end of a long transcript that are read when it is opened.
pub(super) const TAIL: u64 = 1024 * 1024;
/// A header is looked for in the first bytes.
pub(in crate::transcript) const HEADER_WITHIN: u64 = TAIL;
/// Bytes that are compared at once.
const PIECE: usize = 64 * 1024;

impl OpenTranscript {
    /// Reads the end of the log, about this many bytes: so much of it that the last entry is known. Logs of old versions are
    /// read whole, their entries are numbered from the start.
    pub(super) fn load(&mut self, bytes: u64) -> Result<(), TranscriptError> {
        let end = self.opened.len();
        if self.header.version >= VERSION && end > 2 * bytes {
            self.len = line_start(&*self.log, end, bytes).map_err(|source| self.fail("read", source))?;
        }
        self.tail = Tail::new(self.len, 0, bytes);
        self.scan(end)?;
        while self.tail.index.last().is_none() && !self.tail.index.is_whole() {
            self.load_more()?;
        }
        self.leaf = self.tail.index.last();
        Ok(())
    }

    /// Reads a part before the one that is known.
    pub(super) fn load_more(&mut self) -> Result<(), TranscriptError> {
        let skipped = self.tail.load_more(&*self.log, VERSION);
        skipped.map_err(|source| self.fail("read", source))?.warn(&self.transcript);
        Ok(())
    }

    /// Indexes the lines from `len` to the end of the log, which is near `end`, and repairs a torn last one. The last entry
    /// becomes the leaf.
    pub(super) fn scan(&mut self, end: u64) -> Result<(), TranscriptError> {
        let fail = |source| TranscriptError::io("read", &self.transcript, source);
        let rest = LogPart::new(&*self.log, self.len, u64::MAX);
        let buffer = buffer_for(end.saturating_sub(self.len));
        let mut lines = Lines::new(BufReader::with_capacity(buffer, rest), self.len);
        let mut torn = None;
        let mut skipped = SkippedLines::default();
        while let Some(line) = lines.advance().map_err(fail)? {
            let indexed = index_line(&mut self.tail.index, &line, &lines, self.header.version);
            if indexed == Indexed::Malformed && !line.ended {
                torn = Some(line.offset);
            } else {
                skipped.note(&line, indexed);
                self.unended = !line.ended;
            }
            self.len = line.offset + line.len + u64::from(line.ended);
        }
        skipped.warn(&self.transcript);
        self.leaf = self.tail.index.last();
        self.pending = None;
        if self.header.version < VERSION {
            self.link_old_compactions()?;
        }
        let Some(offset) = torn else { return Ok(()) };
        // Nothing of it counts, even if the disk refuses to cut it off.
        let bytes = self.len - offset;
        (self.len, self.unended) = (offset, false);
        self.cut_torn_tail(bytes)
    }

    /// Keeps the bytes behind the known ones, so many, in a copy and cuts them off.
    fn cut_torn_tail(&mut self, bytes: u64) -> Result<(), TranscriptError> {
        let kept = self.copy_tail(bytes).map_err(|source| self.fail("back up", source))?;
        let cut = self.log.cut(self.len).and_then(|()| self.log.sync());
        cut.map_err(|source| self.fail("repair", source))?;
        let file = &self.transcript;
        tracing::warn!(%file, %kept, bytes, "cut off a torn last line");
        Ok(())
    }

    /// Copies the bytes behind the known ones, so many, unless that was done before: then the disk
    /// did not cut them off. Returns the copy.
    fn copy_tail(&self, bytes: u64) -> io::Result<TranscriptRef> {
        let prefix = backup_prefix(&self.transcript);
        let tail = || LogPart::new(&*self.log, self.len, self.len + bytes);
        for name in self.logs.names_beside(&self.transcript)? {
            if !name.as_encoded_bytes().starts_with(prefix.as_bytes()) {
                continue;
            }
            let copy = self.transcript.sibling(name);
            let earlier = self.logs.open(&copy, OpenMode::Read)?;
            if earlier.version()?.len() == bytes && same_bytes(LogPart::new(&*earlier, 0, bytes), tail())? {
                return Ok(copy);
            }
        }
        let kept = free_backup(&*self.logs, &self.transcript)?;
        self.logs.replace(&kept, None, &mut |copy| io::copy(&mut tail(), copy).map(drop))?;
        Ok(kept)
    }

    /// True if the last known entry is still in its place.
    pub(super) fn ends_as_known(&mut self) -> Result<bool, TranscriptError> {
        if self.header.version < VERSION {
            return Ok(true);
        }
        match self.tail.index.last() {
            Some(last) => Ok(self.read_from_disk(&mut LineWindow::exact(), last)?.is_some()),
            None => Ok(true),
        }
    }

    /// Opens the log anew after somebody put another in its place. The leaf stays where
    /// it was moved to, if that is still there.
    pub(super) fn reopen(&mut self) -> Result<(), TranscriptError> {
        let moved = if self.leaf == self.tail.index.last() { None } else { self.leaf().cloned() };
        *self = Self::open(&self.logs, &self.transcript)?;
        if let Some(leaf) = moved
            && let Some(at) = self.find(leaf.as_str())?
        {
            self.leaf = Some(at);
        }
        Ok(())
    }

    /// The first version names the first kept entry by index: the index learns the id.
    fn link_old_compactions(&mut self) -> Result<(), TranscriptError> {
        for at in self.tail.index.all() {
            if self.place(at).is_some_and(|place| place.kind == Kind::Compaction)
                && let Some(entry) = self.read_entry(at)?
                && let Some(kept) = migrate::kept_by(&entry)
            {
                self.tail.index.set_first_kept(at, EntryId::new(kept));
            }
        }
        Ok(())
    }
}

/// Beginning of the names of copies that are made of a log before it is changed.
fn backup_prefix(transcript: &TranscriptRef) -> String {
    format!("{}.bak-", transcript.file_name().to_string_lossy())
}

/// `<log>.bak-<pid>-<ms>`, a name that is not in use.
pub(super) fn free_backup(
    logs: &dyn TranscriptLogs,
    transcript: &TranscriptRef,
) -> io::Result<TranscriptRef> {
    let (prefix, pid) = (backup_prefix(transcript), std::process::id());
    free_name(logs, |ms| transcript.sibling(format!("{prefix}{pid}-{ms}")))
}

/// The first name, from this moment on, that is not in use.
pub(in crate::transcript) fn free_name(
    logs: &dyn TranscriptLogs,
    name: impl Fn(i64) -> TranscriptRef,
) -> io::Result<TranscriptRef> {
    let mut ms = now_ms();
    loop {
        let name = name(ms);
        if logs.version(&name)?.is_none() {
            return Ok(name);
        }
        ms += 1;
    }
}

/// True if both have the same bytes.
fn same_bytes(mut one: LogPart<'_>, mut other: LogPart<'_>) -> io::Result<bool> {
    let (mut left, mut right) = (Vec::with_capacity(PIECE), Vec::with_capacity(PIECE));
    loop {
        left.clear();
        right.clear();
        (&mut one).take(PIECE as u64).read_to_end(&mut left)?;
        (&mut other).take(PIECE as u64).read_to_end(&mut right)?;
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}

/// The first line that is JSON must be a header with an id.
pub(super) fn read_header(
    log: &dyn TranscriptLog,
    transcript: &TranscriptRef,
) -> Result<TranscriptHeader, TranscriptError> {
    let fail = |source| TranscriptError::io("read", transcript, source);
    let header = crate::transcript::backward::header_of(log).map_err(fail)?;
    header.ok_or_else(|| TranscriptError::NotATranscript(transcript.clone()))
}
