//! Open transcript: an index in memory, bodies in the log, appends at the end. Blocking.

mod append;
mod load;
#[cfg(any(test, feature = "contract"))]
mod of_files;
mod pieces;
mod read;
mod repair;
mod settings;
mod turns;
mod window;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::TranscriptError;
use super::context::BranchStep;
use super::format::{Entry, EntryId, HeaderKind, TranscriptHeader, VERSION};
use super::guard::PendingCalls;
use super::index::{At, IndexedEntry};
use super::storage::{FileVersion, OpenMode, TranscriptLog, TranscriptLogs, TranscriptRef};
use super::tail::Tail;
use crate::time::{iso, now_ms};

pub(super) use load::{HEADER_WITHIN, free_name};
pub(super) use pieces::BranchPiece;
pub use settings::ModelSettings;
pub(super) use window::LineWindow;

use load::read_header;

/// Header fields of a new transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTranscript {
    /// Session id.
    pub session_id: String,
    /// Workspace.
    pub cwd: String,
    /// The transcript it is forked from.
    pub parent: Option<String>,
}

/// Target of the next append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Branch {
    /// Appends under the last entry.
    Latest,
    /// Appends under this entry.
    At(EntryId),
    /// Appends a new root.
    Root,
}

/// An open transcript.
#[derive(Debug)]
pub struct OpenTranscript {
    logs: Arc<dyn TranscriptLogs>,
    transcript: TranscriptRef,
    log: Box<dyn TranscriptLog>,
    /// The log as it was when it was opened: which one it is.
    opened: FileVersion,
    header: TranscriptHeader,
    /// Known last part of the log; earlier parts are read when something asks for them.
    tail: Tail,
    leaf: Option<At>,
    /// Bytes of the log that are accounted for.
    len: u64,
    /// True if the last line lacks its newline.
    unended: bool,
    /// True if half a line may stand behind the known bytes, which could not be cut off.
    is_torn: bool,
    /// The log as the last [`Self::sync`] left it.
    synced: Option<FileVersion>,
    /// The tool calls at the end of the branch that have no result, when they are known.
    pending: Option<PendingCalls>,
    /// Entries that were read or written, for the next who asks. They hold as long as the index does.
    entries: HashMap<At, Arc<Entry>>,
    /// Bytes of their lines.
    entry_bytes: usize,
}

impl OpenTranscript {
    /// Opens a transcript that is there. Only the end of a long one is read; the rest follows when it
    /// is asked for. A torn last line is cut off, its bytes kept in a `.bak` copy.
    ///
    /// # Errors
    /// [`TranscriptError::Missing`] when there is none.
    pub(super) fn open(
        logs: &Arc<dyn TranscriptLogs>,
        transcript: &TranscriptRef,
    ) -> Result<Self, TranscriptError> {
        Self::open_tail(logs, transcript, load::TAIL)
    }

    /// [`Self::open`] that reads another number of bytes at first.
    pub(super) fn open_tail(
        logs: &Arc<dyn TranscriptLogs>,
        transcript: &TranscriptRef,
        bytes: u64,
    ) -> Result<Self, TranscriptError> {
        let log = logs.open(transcript, OpenMode::Append).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => TranscriptError::Missing(transcript.clone()),
            _ => TranscriptError::io("open", transcript, source),
        })?;
        let header = read_header(&*log, transcript)?;
        let mut out = Self::empty(logs, transcript, log, header)?;
        out.load(bytes)?;
        Ok(out)
    }

    fn empty(
        logs: &Arc<dyn TranscriptLogs>,
        transcript: &TranscriptRef,
        log: Box<dyn TranscriptLog>,
        header: TranscriptHeader,
    ) -> Result<Self, TranscriptError> {
        let opened = log.version().map_err(|source| TranscriptError::io("read", transcript, source))?;
        Ok(Self {
            logs: Arc::clone(logs),
            transcript: transcript.clone(),
            log,
            opened,
            header,
            tail: Tail::new(0, 0, load::TAIL),
            leaf: None,
            len: 0,
            unended: false,
            is_torn: false,
            synced: None,
            pending: None,
            entries: HashMap::new(),
            entry_bytes: 0,
        })
    }

    /// Creates a transcript with its header, durably.
    pub(super) fn create(
        logs: &Arc<dyn TranscriptLogs>,
        transcript: &TranscriptRef,
        new: &NewTranscript,
    ) -> Result<Self, TranscriptError> {
        let fail = |source| TranscriptError::io("create", transcript, source);
        let header = new_header(new);
        let mut line = serde_json::to_vec(&header).map_err(|error| fail(error.into()))?;
        line.push(b'\n');
        let log = logs.create(transcript, &line).map_err(fail)?;
        let mut out = Self::empty(logs, transcript, log, header)?;
        out.len = line.len() as u64;
        Ok(out)
    }

    /// Opens a transcript, or creates it. A log that is named after the session but is no transcript is
    /// kept under a `.bak` name first; if only the header is missing, as after OpenClaw
    /// 2026.2.9's `sessions.compact`, it is given one.
    pub(super) fn open_or_create(
        logs: &Arc<dyn TranscriptLogs>,
        transcript: &TranscriptRef,
        new: &NewTranscript,
    ) -> Result<Self, TranscriptError> {
        match Self::open(logs, transcript) {
            Err(TranscriptError::Missing(_)) => Self::create(logs, transcript, new),
            Err(TranscriptError::NotATranscript(_)) => {
                repair::begin_anew(&**logs, transcript, new)?;
                Self::open(logs, transcript)
            }
            other => other,
        }
    }

    fn place(&self, at: At) -> Option<&IndexedEntry> {
        self.tail.index.get(at)
    }

    /// The last entry of this id, wherever it is.
    fn find(&mut self, id: &str) -> Result<Option<At>, TranscriptError> {
        loop {
            match self.tail.index.position(id) {
                None if !self.tail.index.is_whole() => self.load_more()?,
                found => return Ok(found),
            }
        }
    }

    /// The way to `leaf`, root first: as much of it as is known already, or as is enough, or all.
    fn branch_until(
        &mut self,
        leaf: Option<At>,
        enough: impl Fn(&[BranchStep<'_>]) -> bool,
    ) -> Result<Vec<At>, TranscriptError> {
        loop {
            let branch = self.tail.index.path(leaf);
            if branch.is_whole || enough(&self.steps(&branch.path)) {
                return Ok(branch.path);
            }
            self.load_more()?;
        }
    }

    fn steps<'a>(&'a self, branch: &[At]) -> Vec<BranchStep<'a>> {
        branch
            .iter()
            .filter_map(|at| {
                let place = self.place(*at)?;
                let first_kept = self.tail.index.first_kept(*at).map(EntryId::as_str);
                Some(BranchStep { id: place.id.as_str(), kind: place.kind, first_kept })
            })
            .collect()
    }

    fn named(&self) -> TranscriptRef {
        self.transcript.clone()
    }

    fn fail(&self, what: &'static str, source: io::Error) -> TranscriptError {
        TranscriptError::io(what, &self.transcript, source)
    }

    /// The header.
    pub fn header(&self) -> &TranscriptHeader {
        &self.header
    }

    /// The entry that the next append will be a child of.
    pub fn leaf(&self) -> Option<&EntryId> {
        self.place(self.leaf?).map(|place| &place.id)
    }

    /// True if there is an entry with this id on any branch, or may be in a part that has not been
    /// read.
    pub fn contains(&self, id: &str) -> bool {
        !self.tail.index.is_whole() || self.tail.index.position(id).is_some()
    }

    /// Number of known entries.
    pub fn known_entries(&self) -> usize {
        self.tail.index.len()
    }

    /// About how much memory it takes while it is kept, in bytes.
    pub fn memory(&self) -> usize {
        /// Estimated bytes that an entry takes beside its text, in the index and as parsed.
        const ENTRY: usize = 1024;
        self.known_entries() * ENTRY + self.entry_bytes
    }

    /// Takes in changes by others. Later reads and appends build on the log as it is at this
    /// moment.
    ///
    /// # Errors
    /// [`TranscriptError::Missing`] when it is gone; when it can't be read.
    pub fn refresh(&mut self) -> Result<(), TranscriptError> {
        self.cut_half_line()?;
        let now = self.logs.version(&self.transcript).map_err(|source| self.fail("read", source))?;
        let now = now.ok_or_else(|| TranscriptError::Missing(self.named()))?;
        if !now.is_same_file(&self.opened) || now.len() < self.len {
            self.reopen()
        } else if now.len() > self.len {
            if self.ends_as_known()? { self.scan(now.len()) } else { self.reopen() }
        } else {
            Ok(())
        }
    }

    /// Moves the leaf. Nothing is written.
    ///
    /// # Errors
    /// [`TranscriptError::UnknownId`]
    pub fn branch(&mut self, to: Branch) -> Result<(), TranscriptError> {
        self.pending = None;
        self.leaf = match to {
            Branch::Latest => self.tail.index.last(),
            Branch::Root => None,
            Branch::At(id) => match self.find(id.as_str())? {
                Some(at) => Some(at),
                None => return Err(TranscriptError::UnknownId { transcript: self.named(), id }),
            },
        };
        Ok(())
    }
}

/// The header of a transcript that begins now.
pub(super) fn new_header(new: &NewTranscript) -> TranscriptHeader {
    TranscriptHeader {
        kind: HeaderKind::Session,
        version: VERSION,
        id: new.session_id.clone(),
        timestamp: iso(now_ms()),
        cwd: new.cwd.clone(),
        parent_session: new.parent.clone(),
        extra: serde_json::Map::new(),
    }
}
