//! Reading a file into the index, repairing it, bringing old versions up to date.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::TranscriptFile;
use crate::disk;
use crate::transcript::format::{EntryId, Header, VERSION};
use crate::transcript::index::{Kind, LineHead};
use crate::transcript::scan::Lines;
use crate::transcript::{TranscriptError, migrate};

impl TranscriptFile {
    /// Indexes the lines from `len` to the end of the file, and repairs a torn last one.
    pub(super) fn scan(&mut self) -> Result<(), TranscriptError> {
        let fail = |source| TranscriptError::io("read", &self.path, source);
        let mut reader = self.file.try_clone().map_err(fail)?;
        reader.seek(SeekFrom::Start(self.len)).map_err(fail)?;
        let mut lines = Lines::new(BufReader::with_capacity(256 * 1024, reader), self.len);
        let mut torn = None;
        while let Some(line) = lines.advance().map_err(fail)? {
            let bytes = lines.bytes();
            let blank = bytes.iter().all(u8::is_ascii_whitespace);
            let head = if line.cut || blank { None } else { LineHead::parse(bytes) };
            match (head, u32::try_from(line.len)) {
                (Some(head), Ok(len)) => {
                    if head.kind != Kind::Header {
                        let at = self.index.push_line(line.offset, len, head, self.header.version);
                        if at.is_none() {
                            tracing::warn!(file = %self.path.display(), offset = line.offset, "skipped a line without an id");
                        }
                    }
                    self.unended = !line.ended;
                }
                _ if blank => {}
                _ if !line.ended => torn = Some(line.offset),
                _ => {
                    tracing::warn!(file = %self.path.display(), offset = line.offset, "skipped a malformed line")
                }
            }
            self.len = line.offset + line.len + u64::from(line.ended);
        }
        self.leaf = self.index.last();
        if self.header.version < VERSION {
            self.link_old_compactions()?;
        }
        torn.map_or(Ok(()), |offset| self.cut_torn_tail(offset))
    }

    /// Keeps the bytes from `offset` on in a copy and cuts them off.
    fn cut_torn_tail(&mut self, offset: u64) -> Result<(), TranscriptError> {
        let mut bytes = Vec::new();
        let read = self.file.seek(SeekFrom::Start(offset)).and_then(|_| self.file.read_to_end(&mut bytes));
        read.map_err(|source| self.fail("read", source))?;
        let kept = disk::backup_path(&self.path);
        disk::write_private(&kept, &bytes).map_err(|source| self.fail("back up", source))?;
        let cut = self.file.set_len(offset).and_then(|()| self.file.sync_data());
        cut.map_err(|source| self.fail("repair", source))?;
        self.len = offset;
        self.unended = false;
        let (file, kept) = (self.path.display(), kept.display());
        tracing::warn!(%file, %kept, bytes = bytes.len(), "cut off a torn last line");
        Ok(())
    }

    /// The first version names the first kept entry by index: the index learns the id.
    fn link_old_compactions(&mut self) -> Result<(), TranscriptError> {
        let last = self.index.last().map_or(0, |last| last + 1);
        for at in 0..last {
            if self.place(at).is_some_and(|place| place.kind == Kind::Compaction)
                && let Some(entry) = self.read_entry(at)?
                && let Some(kept) = migrate::kept_by(&entry)
            {
                self.index.set_first_kept(at, EntryId::new(kept));
            }
        }
        Ok(())
    }

    /// Rewrites a file of an old version as the current one; the old file stays as a `.bak` copy.
    pub(super) fn upgrade(&mut self) -> Result<(), TranscriptError> {
        let leaf = self.leaf().cloned();
        let header = Header { version: VERSION, ..self.header.clone() };
        let mut bytes = serde_json::to_vec(&header).map_err(|error| self.fail("upgrade", error.into()))?;
        bytes.push(b'\n');
        let last = self.index.last().map_or(0, |last| last + 1);
        for at in 0..last {
            if let Some(entry) = self.read_entry(at)? {
                bytes.extend(entry.to_line().map_err(|error| self.fail("upgrade", error.into()))?);
            }
        }
        let kept = disk::backup_path(&self.path);
        let replaced = std::fs::copy(&self.path, &kept).and_then(|_| disk::replace(&self.path, &bytes));
        replaced.map_err(|source| self.fail("upgrade", source))?;
        let (file, kept) = (self.path.display(), kept.display());
        tracing::info!(%file, %kept, from = self.header.version, "rewrote a transcript of an old version");
        *self = Self::open(&self.path)?;
        self.leaf = match leaf {
            Some(id) => self.index.position(id.as_str()),
            None => None,
        };
        Ok(())
    }
}

/// The first line that is JSON must be a header with an id.
pub(super) fn read_header(file: &File, path: &Path) -> Result<Header, TranscriptError> {
    let fail = |source| TranscriptError::io("read", path, source);
    let mut lines = Lines::new(BufReader::new(file.try_clone().map_err(fail)?), 0);
    while let Some(line) = lines.advance().map_err(fail)? {
        let bytes = lines.bytes();
        if line.cut || serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_err() {
            continue;
        }
        let header = serde_json::from_slice::<Header>(bytes);
        return header.map_err(|_| TranscriptError::NotATranscript(path.to_path_buf()));
    }
    Err(TranscriptError::NotATranscript(path.to_path_buf()))
}
