//! Reading a file into the index, from its end as far as it is needed, and repairing a torn end.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use openclaw_config::shared_place;

use super::TranscriptFile;
use super::window::FileWindow;
use crate::disk::{self, RealDisk};
use crate::transcript::format::{EntryId, TranscriptHeader, VERSION};
use crate::transcript::index::Kind;
use crate::transcript::scan::{Lines, line_start};
use crate::transcript::storage::{OpenTranscript, TranscriptRef};
use crate::transcript::tail::{BUFFER, Indexed, SkippedLines, Tail, index_line};
use crate::transcript::{TranscriptError, migrate};

/// Bytes at the end of a long file that are read when it is opened.
pub(super) const TAIL: u64 = 1024 * 1024;
/// A header is looked for in the first bytes of a file.
pub(in crate::transcript) const HEADER_WITHIN: u64 = TAIL;

/// Opens a file for reading and appending. Nothing but a regular file: reading from a pipe may never end.
pub(super) fn open_file(path: &Path) -> Result<File, TranscriptError> {
    let fail = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => TranscriptError::Missing(TranscriptRef::new(path)),
        _ => TranscriptError::io("open", path, source),
    };
    shared_place::open_with(path, OpenOptions::new().read(true).append(true)).map_err(fail)
}

impl TranscriptFile {
    /// Reads the end of the file, about this many bytes: so much of it that the last entry is known. Files of old versions are
    /// read whole, their entries are numbered from the start.
    pub(super) fn load(&mut self, bytes: u64) -> Result<(), TranscriptError> {
        let end = self.file.metadata().map_err(|source| self.fail("read", source))?.len();
        if self.header.version >= VERSION && end > 2 * bytes {
            self.len = line_start(&mut self.file, end, bytes).map_err(|source| self.fail("read", source))?;
        }
        self.tail = Tail::new(self.len, 0, bytes);
        self.scan()?;
        while self.tail.index.last().is_none() && !self.tail.index.is_whole() {
            self.load_more()?;
        }
        self.leaf = self.tail.index.last();
        Ok(())
    }

    /// Reads a part before the one that is known.
    pub(super) fn load_more(&mut self) -> Result<(), TranscriptError> {
        let skipped = self.tail.load_more(&self.file, VERSION);
        skipped.map_err(|source| self.fail("read", source))?.warn(&self.path);
        Ok(())
    }

    /// Indexes the lines from `len` to the end of the file, and repairs a torn last one. The last entry becomes the leaf.
    pub(super) fn scan(&mut self) -> Result<(), TranscriptError> {
        let fail = |source| TranscriptError::io("read", &self.path, source);
        let mut reader = self.file.try_clone().map_err(fail)?;
        reader.seek(SeekFrom::Start(self.len)).map_err(fail)?;
        let mut lines = Lines::new(BufReader::with_capacity(BUFFER, reader), self.len);
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
        skipped.warn(&self.path);
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
        let offset = self.len;
        let kept = self.copy_tail(bytes).map_err(|source| self.fail("back up", source))?;
        let cut = self.file.set_len(offset).and_then(|()| self.file.sync_data());
        cut.map_err(|source| self.fail("repair", source))?;
        let file = self.path.display();
        tracing::warn!(%file, kept = %kept.display(), bytes, "cut off a torn last line");
        Ok(())
    }

    /// Copies the bytes behind the known ones, so many, unless that was done before: then the disk
    /// did not cut them off. Returns the copy.
    fn copy_tail(&mut self, bytes: u64) -> io::Result<PathBuf> {
        for copy in disk::backups(&self.path)? {
            let mut earlier = shared_place::open(&copy)?;
            self.file.seek(SeekFrom::Start(self.len))?;
            if earlier.metadata()?.len() == bytes && same_bytes(&mut earlier, &mut self.file)? {
                return Ok(copy);
            }
        }
        let kept = disk::backup_path(&self.path);
        self.file.seek(SeekFrom::Start(self.len))?;
        let copy =
            disk::Temporary::write(&RealDisk, &kept, |copy| io::copy(&mut self.file, copy).map(|_| ()))?;
        copy.persist(&kept)?;
        Ok(kept)
    }

    /// True if the last known entry is still in its place.
    pub(super) fn ends_as_known(&mut self) -> Result<bool, TranscriptError> {
        if self.header.version < VERSION {
            return Ok(true);
        }
        match self.tail.index.last() {
            Some(last) => Ok(self.read_from_disk(&mut FileWindow::exact(), last)?.is_some()),
            None => Ok(true),
        }
    }

    /// Opens the file anew after somebody put another in its place. The leaf stays where
    /// it was moved to, if that is still there.
    pub(super) fn reopen(&mut self) -> Result<(), TranscriptError> {
        let moved = if self.leaf == self.tail.index.last() { None } else { self.leaf().cloned() };
        *self = Self::open(&self.path)?;
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

/// True if both have the same bytes from where they are.
fn same_bytes(one: &mut File, other: &mut File) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(one).bytes(), BufReader::new(other).bytes());
    loop {
        match (one.next().transpose()?, other.next().transpose()?) {
            (None, None) => return Ok(true),
            (one, other) if one != other => return Ok(false),
            _ => {}
        }
    }
}

/// The first line that is JSON must be a header with an id.
pub(super) fn read_header(file: &File, path: &Path) -> Result<TranscriptHeader, TranscriptError> {
    let fail = |source| TranscriptError::io("read", path, source);
    let header = crate::transcript::backward::header_of(file).map_err(fail)?;
    header.ok_or_else(|| TranscriptError::NotATranscript(TranscriptRef::new(path)))
}
