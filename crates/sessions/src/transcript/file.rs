//! One open transcript: an index in memory, bodies on disk, appends at the end. Blocking.

mod between;
mod load;
mod window;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use openclaw_protocol::message::Message;
use serde_json::json;

use super::context::{self, Context, Step};
use super::format::{Body, Entry, EntryId, Header, HeaderKind, StoredMessage, VERSION};
use super::guard::PendingCalls;
use super::index::{Index, Kind, LineHead, Place};
use super::{TranscriptError, migrate};
use crate::disk::{self, Stamp};
use crate::time::{iso, now_ms};

pub(super) use between::Put;

use between::Between;
use load::read_header;
use window::Window;

/// What a new transcript's header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTranscript {
    /// Session id.
    pub session_id: String,
    /// Workspace.
    pub cwd: String,
    /// The transcript it is forked from.
    pub parent: Option<String>,
}

/// Where the next append goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Branch {
    /// Under the last entry of the file.
    Latest,
    /// Under this entry.
    At(EntryId),
    /// Under nothing: a new root.
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
}

/// An open transcript file.
#[derive(Debug)]
pub struct TranscriptFile {
    path: PathBuf,
    file: File,
    header: Header,
    index: Index,
    leaf: Option<u32>,
    /// Bytes of the file that are accounted for.
    len: u64,
    /// Whether the last line lacks its newline.
    unended: bool,
    /// The file as the last [`Self::sync`] left it.
    synced: Option<Stamp>,
    between: Between,
}

impl TranscriptFile {
    /// Opens an existing file. A torn last line is cut off, its bytes kept in a `.bak` copy.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        let file =
            OpenOptions::new().read(true).append(true).open(path).map_err(|source| match source.kind() {
                std::io::ErrorKind::NotFound => TranscriptError::Missing(path.to_path_buf()),
                _ => TranscriptError::io("open", path, source),
            })?;
        let header = read_header(&file, path)?;
        let mut out = Self {
            path: path.to_path_buf(),
            file,
            header,
            index: Index::default(),
            leaf: None,
            len: 0,
            unended: false,
            synced: None,
            between: Between::default(),
        };
        out.scan()?;
        Ok(out)
    }

    /// Creates a file with its header, readable by its owner alone, and makes it durable.
    pub fn create(path: &Path, new: &NewTranscript) -> Result<Self, TranscriptError> {
        let fail = |source| TranscriptError::io("create", path, source);
        disk::create_parent(path).map_err(fail)?;
        let header = Header {
            kind: HeaderKind::Session,
            version: VERSION,
            id: new.session_id.clone(),
            timestamp: iso(now_ms()),
            cwd: new.cwd.clone(),
            parent_session: new.parent.clone(),
            extra: serde_json::Map::new(),
        };
        let mut line = serde_json::to_vec(&header).map_err(|error| fail(error.into()))?;
        line.push(b'\n');
        let mut file = disk::private(OpenOptions::new().read(true).append(true).create_new(true))
            .open(path)
            .map_err(fail)?;
        let written =
            file.write_all(&line).and_then(|()| file.sync_data()).and_then(|()| disk::sync_parent(path));
        if let Err(source) = written {
            // Half a header is no transcript; without it the next attempt starts clean.
            let _ = std::fs::remove_file(path);
            return Err(fail(source));
        }
        let len = line.len() as u64;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            header,
            index: Index::default(),
            leaf: None,
            len,
            unended: false,
            synced: None,
            between: Between::default(),
        })
    }

    /// Opens a file, or creates it. What is no transcript is moved aside to a `.bak` copy first.
    pub fn open_or_create(path: &Path, new: &NewTranscript) -> Result<Self, TranscriptError> {
        match Self::open(path) {
            Err(TranscriptError::Missing(_)) => Self::create(path, new),
            Err(TranscriptError::NotATranscript(_)) => {
                if std::fs::metadata(path).is_ok_and(|meta| meta.len() == 0) {
                    std::fs::remove_file(path)
                        .map_err(|source| TranscriptError::io("replace", path, source))?;
                    return Self::create(path, new);
                }
                let aside = disk::backup_path(path);
                std::fs::rename(path, &aside)
                    .map_err(|source| TranscriptError::io("move aside", path, source))?;
                let (file, kept) = (path.display(), aside.display());
                tracing::warn!(%file, %kept, "no transcript, moved aside and begun anew");
                Self::create(path, new)
            }
            other => other,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The entry that the next append will be a child of.
    pub fn leaf(&self) -> Option<&EntryId> {
        self.place(self.leaf?).map(|place| &place.id)
    }

    /// Whether there is an entry with this id.
    pub fn contains(&self, id: &str) -> bool {
        self.index.position(id).is_some()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves the leaf.
    pub fn branch(&mut self, to: Branch) -> Result<(), TranscriptError> {
        self.leaf = match to {
            Branch::Latest => self.index.last(),
            Branch::Root => None,
            Branch::At(id) => match self.index.position(id.as_str()) {
                Some(at) => Some(at),
                None => return Err(TranscriptError::UnknownId { path: self.path.clone(), id }),
            },
        };
        Ok(())
    }

    /// Appends an entry under the leaf. After an error the file is as it was.
    pub fn append(&mut self, body: Body, id: Option<EntryId>) -> Result<EntryId, TranscriptError> {
        self.refresh()?;
        if self.header.version < VERSION {
            self.upgrade()?;
        }
        let id = match id {
            Some(id) if self.contains(id.as_str()) => {
                return Err(TranscriptError::DuplicateId { path: self.path.clone(), id });
            }
            Some(id) => id,
            None => self.new_id(),
        };
        let entry = Entry { id: id.clone(), parent_id: self.leaf().cloned(), timestamp: iso(now_ms()), body };
        let line = entry.to_line().map_err(|error| self.fail("write", error.into()))?;
        self.write_line(&line)?;
        if let Err(error) = self.write_waiting() {
            // The entry itself is written. What waits goes on waiting.
            tracing::warn!(%error, "what others put into the transcript has to wait");
        }
        Ok(id)
    }

    /// Notes model and thinking level as far as the branch does not say them already.
    pub fn note_settings(&mut self, settings: &ModelSettings) -> Result<(), TranscriptError> {
        self.refresh()?;
        let current = self.context_settings()?;
        let model = (settings.provider.clone(), settings.model_id.clone());
        if current.model.as_ref() != Some(&model) {
            let (provider, model_id) = model;
            self.append(Body::ModelChange { provider, model_id }, None)?;
        }
        if current.thinking_level.as_deref() != Some(settings.thinking_level.as_str()) {
            let thinking_level = settings.thinking_level.clone();
            self.append(Body::ThinkingLevelChange { thinking_level }, None)?;
        }
        if !self.snapshot_says(settings)? {
            let data = json!({
                "timestamp": now_ms(),
                "provider": settings.provider,
                "modelApi": settings.api,
                "modelId": settings.model_id,
            });
            self.append(Body::Custom { custom_type: MODEL_SNAPSHOT.to_owned(), data: Some(data) }, None)?;
        }
        Ok(())
    }

    /// Makes everything appended durable.
    pub fn sync(&mut self) -> Result<(), TranscriptError> {
        let synced = self.file.sync_data().and_then(|()| self.file.metadata());
        let meta = synced.map_err(|source| self.fail("sync", source))?;
        self.synced = (meta.len() == self.len).then(|| Stamp::from_meta(&meta));
        Ok(())
    }

    /// Whether the file is as the last [`Self::sync`] left it, so that what is known of it still holds.
    pub fn is_untouched(&self) -> bool {
        self.synced.is_some() && Stamp::of(&self.path).is_ok_and(|stamp| stamp == self.synced)
    }

    /// Takes in what others did to the file since: appended lines are read, a replaced file is opened anew.
    pub fn refresh(&mut self) -> Result<(), TranscriptError> {
        let on_disk = std::fs::metadata(&self.path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => TranscriptError::Missing(self.path.clone()),
            _ => self.fail("read", source),
        })?;
        let open = self.file.metadata().map_err(|source| self.fail("read", source))?;
        if !disk::same_file(&on_disk, &open) || on_disk.len() < self.len {
            *self = Self::open(&self.path)?;
        } else if on_disk.len() > self.len {
            self.scan()?;
        }
        Ok(())
    }

    /// What a model should see of the branch.
    pub fn context(&mut self) -> Result<Context, TranscriptError> {
        let branch = self.index.path(self.leaf);
        let plan = context::plan(&self.steps(&branch));
        let mut out = self.settings_at(&branch, plan.thinking, plan.model)?;
        let mut window = Window::ahead();
        for at in plan.summary.into_iter().chain(plan.shown) {
            let Some(at) = branch.get(at) else { continue };
            if let Some(entry) = self.read_entry_through(&mut window, *at)? {
                out.messages.extend(context::message_of(&entry));
            }
        }
        Ok(out)
    }

    /// Tool calls at the end of the branch that have no result.
    pub fn pending_calls(&mut self) -> Result<PendingCalls, TranscriptError> {
        let branch = self.index.path(self.leaf);
        let is = |at: &u32, kind: Kind| self.place(*at).is_some_and(|place| place.kind == kind);
        let turns = |at: &u32| is(at, Kind::User) || is(at, Kind::Assistant);
        let from = branch.iter().rposition(turns).unwrap_or(branch.len());
        let mut pending = PendingCalls::default();
        for at in branch.iter().skip(from) {
            if let Some(Entry { body: Body::Message(StoredMessage::Known(message)), .. }) =
                self.read_entry(*at)?
            {
                pending.after(&message);
            }
        }
        Ok(pending)
    }

    /// The entries of the branch, root first.
    pub fn branch_entries(&mut self) -> Result<Vec<Entry>, TranscriptError> {
        let branch = self.index.path(self.leaf);
        let mut out = Vec::with_capacity(branch.len());
        let mut window = Window::ahead();
        for at in branch {
            out.extend(self.read_entry_through(&mut window, at)?);
        }
        Ok(out)
    }

    /// The message of an entry, when it is one.
    pub fn message(&mut self, id: &str) -> Result<Option<Message>, TranscriptError> {
        let Some(at) = self.index.position(id) else { return Ok(None) };
        match self.read_entry(at)? {
            Some(Entry { body: Body::Message(StoredMessage::Known(message)), .. }) => Ok(Some(message)),
            Some(_) | None => Ok(None),
        }
    }

    fn place(&self, at: u32) -> Option<&Place> {
        self.index.get(at)
    }

    fn steps<'a>(&'a self, branch: &[u32]) -> Vec<Step<'a>> {
        branch
            .iter()
            .filter_map(|at| {
                let place = self.place(*at)?;
                let first_kept = self.index.first_kept(*at).map(EntryId::as_str);
                Some(Step { id: place.id.as_str(), kind: place.kind, first_kept })
            })
            .collect()
    }

    fn context_settings(&mut self) -> Result<Context, TranscriptError> {
        let branch = self.index.path(self.leaf);
        let plan = context::plan(&self.steps(&branch));
        self.settings_at(&branch, plan.thinking, plan.model)
    }

    fn settings_at(
        &mut self,
        branch: &[u32],
        thinking: Option<usize>,
        model: Option<usize>,
    ) -> Result<Context, TranscriptError> {
        let mut out = Context::default();
        if let Some(at) = thinking
            && let Some(Entry { body: Body::ThinkingLevelChange { thinking_level }, .. }) =
                self.entry_on(branch, at)?
        {
            out.thinking_level = Some(thinking_level);
        }
        if let Some(at) = model {
            out.model = self.entry_on(branch, at)?.as_ref().and_then(context::model_of);
        }
        Ok(out)
    }

    /// Whether the last model snapshot of the branch is this one.
    fn snapshot_says(&mut self, settings: &ModelSettings) -> Result<bool, TranscriptError> {
        let branch = self.index.path(self.leaf);
        for at in branch.into_iter().rev() {
            if self.place(at).is_none_or(|place| place.kind != Kind::Custom) {
                continue;
            }
            let Some(Entry { body: Body::Custom { custom_type, data }, .. }) = self.read_entry(at)? else {
                continue;
            };
            if custom_type == MODEL_SNAPSHOT {
                let says = |name: &str, value: &str| {
                    data.as_ref().and_then(|d| d.get(name)?.as_str()) == Some(value)
                };
                return Ok(says("provider", &settings.provider)
                    && says("modelApi", &settings.api)
                    && says("modelId", &settings.model_id));
            }
        }
        Ok(false)
    }

    fn entry_on(&mut self, branch: &[u32], at: usize) -> Result<Option<Entry>, TranscriptError> {
        match branch.get(at) {
            Some(at) => self.read_entry(*at),
            None => Ok(None),
        }
    }

    /// Reads an entry from disk; nothing when its bytes are no entry any more.
    fn read_entry(&mut self, at: u32) -> Result<Option<Entry>, TranscriptError> {
        self.read_entry_through(&mut Window::exact(), at)
    }

    /// [`Self::read_entry`] for one of many.
    fn read_entry_through(&mut self, window: &mut Window, at: u32) -> Result<Option<Entry>, TranscriptError> {
        let Some(place) = self.place(at).cloned() else { return Ok(None) };
        let line = window
            .line(&mut self.file, place.offset, place.len, self.len)
            .map_err(|source| TranscriptError::io("read", &self.path, source))?;
        if self.header.version >= VERSION {
            return Ok(Entry::parse(line));
        }
        let parent = place.parent.and_then(|parent| self.place(parent)).map(|parent| parent.id.clone());
        let entry_at = |index: u64| {
            let at = u32::try_from(index.checked_sub(1)?).ok()?;
            self.place(at).map(|place| place.id.clone())
        };
        Ok(migrate::read_old(line, self.header.version, &place.id, parent.as_ref(), &entry_at))
    }

    fn write_line(&mut self, line: &[u8]) -> Result<(), TranscriptError> {
        let mut bytes = Vec::with_capacity(line.len() + 1);
        if self.unended {
            bytes.push(b'\n');
        }
        let offset = self.len + bytes.len() as u64;
        bytes.extend_from_slice(line);
        if let Err(source) = self.file.write_all(&bytes) {
            // A short write must not become the beginning of the next line.
            let _ = self.file.set_len(self.len);
            return Err(self.fail("write", source));
        }
        self.len += bytes.len() as u64;
        self.unended = false;
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        if let (Some(head), Ok(len)) = (LineHead::parse(content), u32::try_from(content.len())) {
            self.leaf = self.index.push_line(offset, len, head, VERSION).or(self.leaf);
        }
        Ok(())
    }

    /// Eight hex digits that no entry has; a whole UUID when that fails a hundred times.
    fn new_id(&self) -> EntryId {
        for _ in 0..100 {
            let id = format!("{:08x}", rand::random::<u32>());
            if !self.contains(&id) {
                return EntryId::new(id);
            }
        }
        EntryId::new(uuid::Uuid::new_v4().to_string())
    }

    fn fail(&self, what: &'static str, source: std::io::Error) -> TranscriptError {
        TranscriptError::io(what, &self.path, source)
    }
}

const MODEL_SNAPSHOT: &str = "model-snapshot";
