//! Reading a transcript without its lock, for clients: histories, previews, titles (spec `sessions.md`
//! §4.9).

use std::cell::OnceCell;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::backward::{first_entries, walk_branch};
use super::files::FileLogs;
use super::format::EntryId;
use super::head::Kind;
use super::storage::{OpenMode, TranscriptLog, TranscriptLogs, TranscriptRef};

/// Callback that is shown entries: kind, id, and JSON text.
pub type Visit<'a> = dyn FnMut(Kind, Option<&EntryId>, &[u8]) -> ControlFlow<()> + 'a;

/// Entries that [`TranscriptReader::visit`] shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The branch of the last entry, leaf first.
    Branch,
    /// The same, as far as it stands in the last bytes.
    End {
        /// Bytes at most.
        bytes: u64,
    },
    /// The first entries in their order, of all branches.
    Beginning {
        /// Lines at most, the header counted.
        lines: usize,
        /// Bytes at most.
        bytes: u64,
    },
}

/// Reads one transcript, the same log at each visit.
#[derive(Debug)]
pub struct TranscriptReader {
    logs: Arc<dyn TranscriptLogs>,
    transcript: TranscriptRef,
    log: OnceCell<Box<dyn TranscriptLog>>,
}

impl TranscriptReader {
    /// Opens nothing yet.
    pub(super) fn new(logs: Arc<dyn TranscriptLogs>, transcript: TranscriptRef) -> Self {
        Self { logs, transcript, log: OnceCell::new() }
    }

    /// Reader of a file. Opens nothing yet.
    pub fn of_file(path: impl AsRef<Path>) -> Self {
        Self::new(Arc::new(FileLogs::default()), TranscriptRef::new(path))
    }

    /// Shows entries until `visit` breaks.
    ///
    /// # Errors
    /// When it can't be read; [`io::ErrorKind::NotFound`] when there is none.
    pub fn visit(&self, part: Part, visit: &mut Visit<'_>) -> io::Result<()> {
        let log = self.log()?;
        match part {
            Part::Branch => walk_branch(log, u64::MAX, visit),
            Part::End { bytes } => walk_branch(log, bytes, visit),
            Part::Beginning { lines, bytes } => first_entries(log, lines, bytes, visit),
        }
    }

    fn log(&self) -> io::Result<&dyn TranscriptLog> {
        if let Some(log) = self.log.get() {
            return Ok(&**log);
        }
        let log = self.logs.open(&self.transcript, OpenMode::Read)?;
        Ok(&**self.log.get_or_init(|| log))
    }
}
