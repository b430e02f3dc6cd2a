//! Open transcript file: an index in memory, bodies on disk, appends at the end. Blocking.

mod load;
mod pieces;
mod read;
mod repair;
mod turns;
mod unsynced;
mod window;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::TranscriptError;
use super::context::{BranchStep, Context, View};
use super::format::{
    Body, CACHE_TTL, Entry, EntryId, HeaderKind, MODEL_SNAPSHOT, StoredMessage, TranscriptHeader, VERSION,
};
use super::guard::{self, PendingCalls};
use super::index::{At, IndexedEntry, LineHead};
use super::storage::{OpenTranscript, TranscriptRef};
use super::tail::Tail;
use super::turn::TranscriptTurn;
use crate::disk::{self, FileVersion};
use crate::ids;
use crate::time::{iso, now_ms};

pub(super) use load::HEADER_WITHIN;
pub(super) use pieces::BranchPiece;
#[cfg(any(test, feature = "contract"))]
pub(super) use turns::failure_text;
pub(super) use window::FileWindow;

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
    /// Appends under the last entry of the file.
    Latest,
    /// Appends under this entry.
    At(EntryId),
    /// Appends a new root.
    Root,
}

/// The model and thinking level of a run, as transcripts note them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// Provider id.
    pub provider: String,
    /// Model id.
    pub model_id: String,
    /// Wire protocol.
    pub api: String,
    /// `off` to `xhigh`.
    pub thinking_level: String,
    /// True if the run's calls refresh a cache of the provider's by which old tool results are
    /// pruned: then each refresh is noted, as OpenClaw does.
    pub touches_cache: bool,
}

impl ModelSettings {
    /// The entries that say them, but for those that a branch with this context and this last model snapshot says already.
    pub(super) fn not_in(
        &self,
        current: &Context,
        snapshot: Option<&Value>,
    ) -> impl Iterator<Item = Body> + use<> {
        let Self { provider, model_id, api, thinking_level, touches_cache } = self.clone();
        let data = json!({"timestamp": now_ms(), "provider": provider, "modelId": model_id});
        let touch = Body::Custom { custom_type: CACHE_TTL.to_owned(), data: Some(data) };
        let is = |name: &str, value: &str| snapshot.and_then(|said| said.get(name)?.as_str()) == Some(value);
        let has_snapshot = is("provider", &provider) && is("modelApi", &api) && is("modelId", &model_id);
        let has_model = current.model.as_ref().is_some_and(|(p, m)| *p == provider && *m == model_id);
        let has_level = current.thinking_level.as_deref() == Some(&thinking_level);
        let data = json!({"timestamp": now_ms(), "provider": provider, "modelApi": api, "modelId": model_id});
        let snapshot = Body::Custom { custom_type: MODEL_SNAPSHOT.to_owned(), data: Some(data) };
        let model = Body::ModelChange { provider, model_id };
        let level = Body::ThinkingLevelChange { thinking_level };
        let all = [(has_model, model), (has_level, level), (has_snapshot, snapshot), (!touches_cache, touch)];
        all.into_iter().filter_map(|(is_said, body)| (!is_said).then_some(body))
    }
}

/// An open transcript file.
#[derive(Debug)]
pub struct TranscriptFile {
    path: PathBuf,
    file: File,
    /// The file as it was when it was opened: which one it is.
    opened: Metadata,
    header: TranscriptHeader,
    /// Known last part of the file; earlier parts are read when something asks for them.
    tail: Tail,
    leaf: Option<At>,
    /// Bytes of the file that are accounted for.
    len: u64,
    /// True if the last line lacks its newline.
    unended: bool,
    /// True if half a line may stand behind the known bytes, which the disk would not cut off.
    is_torn: bool,
    /// The file as the last [`Self::sync`] left it.
    synced: Option<FileVersion>,
    /// Bytes from its beginning that a sync is known to have made durable.
    durable: u64,
    /// True after a failed sync: the system may take data for written that is not on the disk, and
    /// the next sync for done.
    is_in_doubt: bool,
    /// The tool calls at the end of the branch that have no result, when they are known.
    pending: Option<PendingCalls>,
    /// Entries that were read or written, for the next who asks. They hold as long as the index does.
    entries: HashMap<At, Arc<Entry>>,
    /// Bytes of their lines.
    entry_bytes: usize,
}

impl TranscriptFile {
    /// Opens an existing file. Only the end of a long file is read; the rest follows when it is
    /// asked for. A torn last line is cut off, its bytes kept in a `.bak` copy.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        Self::open_tail(path, load::TAIL)
    }

    /// [`Self::open`] that reads another number of bytes at first.
    pub(super) fn open_tail(path: &Path, bytes: u64) -> Result<Self, TranscriptError> {
        let file = load::open_file(path)?;
        let header = read_header(&file, path)?;
        let mut out = Self::empty(path, file, header)?;
        out.load(bytes)?;
        Ok(out)
    }

    fn empty(path: &Path, file: File, header: TranscriptHeader) -> Result<Self, TranscriptError> {
        let opened = file.metadata().map_err(|source| TranscriptError::io("read", path, source))?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            opened,
            header,
            tail: Tail::new(0, 0, load::TAIL),
            leaf: None,
            len: 0,
            unended: false,
            is_torn: false,
            synced: None,
            durable: 0,
            is_in_doubt: false,
            pending: None,
            entries: HashMap::new(),
            entry_bytes: 0,
        })
    }

    /// Creates a file with its header, readable by its owner alone, and makes it durable.
    pub fn create(path: &Path, new: &NewTranscript) -> Result<Self, TranscriptError> {
        let fail = |source| TranscriptError::io("create", path, source);
        disk::create_parent(&disk::RealDisk, path).map_err(fail)?;
        let header = new_header(new);
        let mut line = serde_json::to_vec(&header).map_err(|error| fail(error.into()))?;
        line.push(b'\n');
        let mut file = disk::private(OpenOptions::new().read(true).append(true).create_new(true))
            .open(path)
            .map_err(fail)?;
        let written = file
            .write_all(&line)
            .and_then(|()| file.sync_data())
            .and_then(|()| disk::sync_parent(&disk::RealDisk, path));
        if let Err(source) = written {
            // Half a header is no transcript; without it the next attempt starts clean.
            let _ = std::fs::remove_file(path);
            return Err(fail(source));
        }
        let mut out = Self::empty(path, file, header)?;
        out.len = line.len() as u64;
        out.durable = out.len;
        Ok(out)
    }

    /// Opens a file, or creates it. A file that is named after the session but is no transcript is
    /// moved aside to a `.bak` copy first; if only the header is missing, as after OpenClaw
    /// 2026.2.9's `sessions.compact`, it is given one.
    pub fn open_or_create(path: &Path, new: &NewTranscript) -> Result<Self, TranscriptError> {
        match Self::open(path) {
            Err(TranscriptError::Missing(_)) => Self::create(path, new),
            Err(TranscriptError::NotATranscript(_)) => {
                repair::put_aside(path, new)?;
                match Self::open(path) {
                    Err(TranscriptError::Missing(_)) => Self::create(path, new),
                    other => other,
                }
            }
            other => other,
        }
    }

    fn write_entry(&mut self, body: Body, id: EntryId) -> Result<(), TranscriptError> {
        let parent_id = self.leaf().cloned();
        let entry = Entry { id, parent_id, timestamp: iso(now_ms()), body, extra: serde_json::Map::new() };
        let line = entry.to_line().map_err(|error| self.fail("write", error.into()))?;
        let head = LineHead::of_entry(&entry);
        if let Some(at) = self.write_line(&line, head)? {
            self.remember(at, u32::try_from(line.len()).unwrap_or(u32::MAX), &Arc::new(entry));
        }
        Ok(())
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

    /// Appends a line; returns the position of its entry, if it is one.
    fn write_line(&mut self, line: &[u8], head: Option<LineHead>) -> Result<Option<At>, TranscriptError> {
        self.cut_half_line()?;
        let bytes = if self.unended { Cow::Owned([b"\n", line].concat()) } else { Cow::Borrowed(line) };
        let offset = self.len + (bytes.len() - line.len()) as u64;
        if let Err(source) = self.file.write_all(&bytes) {
            // A short write must not become the beginning of the next line.
            self.is_torn = self.file.set_len(self.len).is_err();
            return Err(self.fail("write", source));
        }
        self.len += bytes.len() as u64;
        self.unended = false;
        let (Some(head), Ok(len)) = (head, u32::try_from(line.len() - 1)) else { return Ok(None) };
        let at = self.tail.index.push_line(offset, len, head, VERSION);
        self.leaf = at.or(self.leaf);
        Ok(at)
    }

    /// Cuts off what a failed write has left, if the disk would not at once.
    fn cut_half_line(&mut self) -> Result<(), TranscriptError> {
        if self.is_torn {
            self.file.set_len(self.len).map_err(|source| self.fail("repair", source))?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Eight hex digits that no entry has; a whole UUID when that fails a hundred times, or when not all ids are known.
    fn new_id(&self) -> EntryId {
        for _ in 0..100 {
            let id = ids::hex();
            if !self.contains(&id) {
                return EntryId::new(id);
            }
        }
        EntryId::new(ids::uuid().to_string())
    }

    fn named(&self) -> TranscriptRef {
        TranscriptRef::new(&self.path)
    }

    fn fail(&self, what: &'static str, source: std::io::Error) -> TranscriptError {
        TranscriptError::io(what, &self.path, source)
    }
}

impl OpenTranscript for TranscriptFile {
    fn header(&self) -> &TranscriptHeader {
        &self.header
    }

    fn leaf(&self) -> Option<&EntryId> {
        self.place(self.leaf?).map(|place| &place.id)
    }

    fn contains(&self, id: &str) -> bool {
        !self.tail.index.is_whole() || self.tail.index.position(id).is_some()
    }

    fn len(&self) -> usize {
        self.tail.index.len()
    }

    fn memory(&self) -> usize {
        /// Estimated bytes that an entry takes beside its text, in the index and as parsed.
        const ENTRY: usize = 1024;
        self.len() * ENTRY + self.entry_bytes
    }

    fn refresh(&mut self) -> Result<(), TranscriptError> {
        self.cut_half_line()?;
        let on_disk = std::fs::metadata(&self.path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => TranscriptError::Missing(self.named()),
            _ => self.fail("read", source),
        })?;
        if !disk::same_file(&on_disk, &self.opened) || on_disk.len() < self.len {
            self.reopen()
        } else if on_disk.len() > self.len {
            if self.ends_as_known()? { self.scan() } else { self.reopen() }
        } else {
            Ok(())
        }
    }

    /// After an error the file is as it was, results of calls that got none aside.
    fn append(&mut self, body: Body, id: Option<EntryId>) -> Result<EntryId, TranscriptError> {
        if self.header.version < VERSION {
            self.upgrade()?;
        }
        let id = match id {
            Some(id) if self.tail.index.position(id.as_str()).is_some() => {
                return Err(TranscriptError::DuplicateId { transcript: self.named(), id });
            }
            Some(id) => id,
            None => self.new_id(),
        };
        let Body::Message(StoredMessage::Known(message)) = body else {
            self.write_entry(body, id.clone())?;
            return Ok(id);
        };
        let message = guard::checked(message);
        let mut pending = match self.pending.take() {
            Some(pending) => pending,
            None => self.pending_calls()?,
        };
        for missing in pending.before(&message, now_ms()) {
            let id = self.new_id();
            self.write_entry(missing.into(), id)?;
        }
        pending.after(&message);
        self.write_entry(Body::Message(StoredMessage::Known(message)), id.clone())?;
        self.pending = Some(pending);
        Ok(id)
    }

    /// Notes the settings of a run. In a long file only the end counts: earlier settings are noted
    /// again.
    fn note_settings(&mut self, settings: &ModelSettings) -> Result<(), TranscriptError> {
        let branch = self.tail.index.path(self.leaf).path;
        let current = self.context_settings(&branch)?;
        let snapshot = self.model_snapshot(&branch)?;
        settings.not_in(&current, snapshot.as_ref()).try_for_each(|body| self.append(body, None).map(drop))
    }

    fn begin_turn(&mut self) -> Result<(), TranscriptError> {
        self.begin_turn()
    }

    fn sync(&mut self) -> Result<(), TranscriptError> {
        let is_in_doubt = std::mem::replace(&mut self.is_in_doubt, true);
        let again = if is_in_doubt { self.write_again() } else { Ok(()) };
        let synced = again.and_then(|()| self.file.sync_data()).and_then(|()| self.file.metadata());
        let meta = synced.map_err(|source| self.fail("sync", source))?;
        (self.is_in_doubt, self.durable) = (false, self.len);
        self.synced = (meta.len() == self.len).then(|| FileVersion::from_meta(&meta));
        Ok(())
    }

    fn is_untouched(&self) -> bool {
        self.synced.is_some() && FileVersion::of(&self.path).is_ok_and(|stamp| stamp == self.synced)
    }

    fn branch(&mut self, to: Branch) -> Result<(), TranscriptError> {
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

    fn context(&mut self) -> Result<Context, TranscriptError> {
        self.context()
    }

    fn view(&mut self) -> Result<View, TranscriptError> {
        self.view()
    }

    fn pending_calls(&mut self) -> Result<PendingCalls, TranscriptError> {
        self.pending_calls()
    }

    fn turn_of(
        &mut self,
        ids: &[EntryId],
        said_at: i64,
        is_ours: &dyn Fn(&EntryId) -> bool,
    ) -> Result<Option<TranscriptTurn>, TranscriptError> {
        self.turn_of(ids, said_at, is_ours)
    }

    fn leave_turn(&mut self, ids: &[EntryId], said_at: i64) -> Result<bool, TranscriptError> {
        self.leave_turn(ids, said_at)
    }

    fn entries(&mut self) -> Result<Vec<Entry>, TranscriptError> {
        self.branch_entries()
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
