//! Transcripts in memory alone, for tests of code that uses [`Transcripts`].

#![allow(clippy::indexing_slicing, reason = "test support: a bug panics")]

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use openclaw_protocol::{AgentId, SessionId};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use serde_json::{Map, json};

use super::context::{self, BranchStep, Context, View};
use super::file::{Branch, ModelSettings, NewTranscript, failure_text, new_header};
use super::fork::label_entries;
use super::format::{Body, Entry, EntryId, MODEL_SNAPSHOT, StoredMessage, TranscriptHeader};
use super::guard::{self, PendingCalls};
use super::head::{Kind, LineHead};
use super::leave::{is_plain_turn, is_said_at, is_setting, marker};
use super::storage::{
    HeldLock, KeepsOthersOut, Locked, OpenTranscript, Opened, Part, Readers, TranscriptReader, TranscriptRef,
    Transcripts, Visit,
};
use super::truncate::plan;
use super::turn::{
    TURN_START, TranscriptTurn, TurnEnd, TurnMark, TurnState, ends_within_turn, steered, turn_end,
};
use super::{LinesCompacted, TranscriptError};
use crate::entry::SessionEntry;
use crate::ids;
use crate::layout::{ArchiveReason, BadSessionId, archive_path, transcript_name};
use crate::time::{iso, now_ms};

/// [`Transcripts`] in memory. Clones are the same transcripts.
#[derive(Debug, Clone)]
pub struct MemoryTranscripts {
    /// Tells the names of one's transcripts from another's: locks go by name.
    number: u64,
    all: TranscriptCells,
}

type TranscriptCells = Arc<Mutex<BTreeMap<TranscriptRef, TranscriptCell>>>;

/// Transcript in memory.
#[derive(Debug, Clone, Default)]
struct TranscriptCell {
    /// Content of the transcript; `None` where only the lock is there.
    stored: Option<StoredTranscript>,
    /// The process that has the lock.
    holder: Option<u32>,
}

#[derive(Debug, Clone)]
struct StoredTranscript {
    header: TranscriptHeader,
    entries: Vec<Entry>,
}

impl StoredTranscript {
    fn position(&self, id: &str) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.id.as_str() == id)
    }

    /// Root first.
    fn branch(&self, leaf: Option<usize>) -> Vec<&Entry> {
        let mut branch = Vec::new();
        let mut next = leaf.and_then(|at| self.entries.get(at));
        while let Some(entry) = next {
            branch.push(entry);
            let parent = entry.parent_id.as_ref();
            next = parent.and_then(|id| self.entries.get(self.position(id.as_str())?));
        }
        branch.reverse();
        branch
    }

    fn free_id(&self) -> EntryId {
        loop {
            let id = ids::hex();
            if self.position(&id).is_none() {
                return EntryId::new(id);
            }
        }
    }
}

fn kind_of(entry: &Entry) -> Kind {
    LineHead::of_entry(entry).map_or(Kind::Other, |head| head.kind)
}

impl Default for MemoryTranscripts {
    fn default() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self { number: NUMBER.fetch_add(1, Ordering::Relaxed), all: TranscriptCells::default() }
    }
}

impl MemoryTranscripts {
    /// Says that a process has a transcript, or none.
    pub fn hold(&self, transcript: &TranscriptRef, holder: Option<u32>) {
        self.all.lock().entry(transcript.clone()).or_default().holder = holder;
    }

    /// The same transcripts once more, as a crash would leave them to another process. Nothing is written while `copy_rest`
    /// copies whatever else that process finds.
    pub fn copied(&self, copy_rest: impl FnOnce()) -> Self {
        let all = self.all.lock();
        copy_rest();
        let copy = Self::default();
        let moved = |(name, kept): (&TranscriptRef, &TranscriptCell)| {
            let rest = name.path().strip_prefix(self.root()).unwrap_or(name.path());
            (
                TranscriptRef::new(copy.root().join(rest)),
                TranscriptCell { stored: kept.stored.clone(), holder: None },
            )
        };
        *copy.all.lock() = all.iter().map(moved).collect();
        drop(all);
        copy
    }

    /// All transcripts with all their entries, those of other branches too.
    pub fn all(&self) -> Vec<(TranscriptRef, Vec<Entry>)> {
        let entries = |(name, kept): (&TranscriptRef, &TranscriptCell)| {
            Some((name.clone(), kept.stored.as_ref()?.entries.clone()))
        };
        self.all.lock().iter().filter_map(entries).collect()
    }

    fn root(&self) -> PathBuf {
        format!("/memory/{}", self.number).into()
    }

    fn named(&self, agent: &AgentId, name: &str) -> TranscriptRef {
        TranscriptRef::new(self.root().join(agent.as_str()).join(name))
    }

    fn opened(&self, transcript: &TranscriptRef) -> Opened {
        let missing = || TranscriptError::Missing(transcript.clone());
        let all = self.all.lock();
        let stored = all.get(transcript).and_then(|kept| kept.stored.as_ref()).ok_or_else(missing)?;
        Ok(Box::new(MemoryTranscript {
            all: Arc::clone(&self.all),
            transcript: transcript.clone(),
            header: stored.header.clone(),
            leaf: stored.entries.last().map(|entry| entry.id.clone()),
            known: stored.entries.len(),
            synced: None,
        }))
    }
}

impl Transcripts for MemoryTranscripts {
    fn of_new(&self, agent: &AgentId, id: &SessionId) -> Result<TranscriptRef, BadSessionId> {
        Ok(self.named(agent, &transcript_name(id, None)?))
    }

    fn of_topic(&self, agent: &AgentId, id: &SessionId, topic: &str) -> Result<TranscriptRef, BadSessionId> {
        Ok(self.named(agent, &transcript_name(id, Some(topic))?))
    }

    fn find(&self, agent: &AgentId, row: &SessionEntry) -> Option<TranscriptRef> {
        self.to_write(agent, row).ok().flatten().filter(|transcript| self.exists(transcript))
    }

    fn to_write(&self, agent: &AgentId, row: &SessionEntry) -> Result<Option<TranscriptRef>, BadSessionId> {
        match (&row.session_file, &row.session_id) {
            // A transcript that came from another process with its rows has its name here.
            (Some(file), _) => {
                Ok(Some(self.named(agent, file.rsplit_once('/').map_or(file, |(_, name)| name))))
            }
            (None, Some(id)) => self.of_new(agent, id).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn is_named_by(&self, transcript: &TranscriptRef, _agent: &AgentId, row: &SessionEntry) -> bool {
        row.session_file.as_deref() == Some(&*transcript.to_string())
    }

    fn exists(&self, transcript: &TranscriptRef) -> bool {
        self.all.lock().get(transcript).is_some_and(|kept| kept.stored.is_some())
    }

    fn all_of(&self, agent: &AgentId, row: &SessionEntry) -> Vec<TranscriptRef> {
        let topic = row.session_id.as_ref().map(|id| self.named(agent, &format!("{id}-topic-")).to_string());
        let is_topic = |name: &TranscriptRef| {
            topic.as_ref().is_some_and(|topic| name.to_string().starts_with(topic.as_str()))
        };
        let own = self.find(agent, row);
        let topics: Vec<_> = self.all.lock().keys().filter(|name| is_topic(name)).cloned().collect();
        let topics = topics.into_iter().filter(|name| Some(name) != own.as_ref());
        own.iter().cloned().chain(topics).collect()
    }

    fn of_fork(&self, parent: &TranscriptRef, id: &SessionId, at: i64) -> TranscriptRef {
        TranscriptRef::new(parent.path().with_file_name(format!("{at}_{id}.jsonl")))
    }

    fn reader(&self, transcript: &TranscriptRef) -> Box<dyn TranscriptReader> {
        Box::new(MemoryReader { all: Arc::clone(&self.all), transcript: transcript.clone() })
    }

    fn readers(&self) -> Readers {
        let all = self.clone();
        Box::new(move |transcript| all.reader(transcript))
    }

    fn try_lock(&self, transcript: &TranscriptRef) -> io::Result<Result<HeldLock, Option<u32>>> {
        let mut all = self.all.lock();
        let holder = &mut all.entry(transcript.clone()).or_default().holder;
        if let Some(pid) = *holder {
            return Ok(Err(Some(pid)));
        }
        *holder = Some(std::process::id());
        Ok(Ok(Box::new(MemoryLock { all: Arc::clone(&self.all), transcript: transcript.clone() })))
    }

    fn is_locked(&self, transcript: &TranscriptRef) -> io::Result<bool> {
        Ok(self.all.lock().get(transcript).is_some_and(|kept| kept.holder.is_some()))
    }

    fn open(&self, lock: Locked<'_>) -> Opened {
        self.opened(lock.transcript())
    }

    fn open_or_create(&self, lock: Locked<'_>, new: &NewTranscript) -> Opened {
        self.all
            .lock()
            .entry(lock.transcript().clone())
            .or_default()
            .stored
            .get_or_insert_with(|| StoredTranscript { header: new_header(new), entries: Vec::new() });
        self.opened(lock.transcript())
    }

    fn fork(
        &self,
        parent: Locked<'_>,
        child: &TranscriptRef,
        new: NewTranscript,
    ) -> Result<(), TranscriptError> {
        let missing = || TranscriptError::Missing(parent.transcript().clone());
        let mut all = self.all.lock();
        let source =
            all.get(parent.transcript()).and_then(|kept| kept.stored.as_ref()).ok_or_else(missing)?;
        let branch = source.branch(source.entries.len().checked_sub(1));
        let mut copied = StoredTranscript {
            header: new_header(&NewTranscript { parent: Some(parent.transcript().to_string()), ..new }),
            entries: Vec::new(),
        };
        for entry in branch.into_iter().filter(|entry| !matches!(entry.body, Body::Label { .. })) {
            copied.follow(entry.clone());
        }
        let labels = source.entries.iter().filter_map(|entry| match &entry.body {
            Body::Label { target_id, label } => Some((target_id.clone(), label.clone())),
            _ => None,
        });
        let ids = copied.entries.iter().map(|entry| entry.id.clone()).collect();
        label_entries(labels, ids).into_iter().for_each(|entry| copied.follow(entry));
        all.entry(child.clone()).or_default().stored = Some(copied);
        Ok(())
    }

    fn truncate(&self, lock: Locked<'_>, most: NonZeroUsize) -> Result<LinesCompacted, TranscriptError> {
        let missing = || TranscriptError::Missing(lock.transcript().clone());
        let mut all = self.all.lock();
        let stored =
            all.get_mut(lock.transcript()).and_then(|kept| kept.stored.as_mut()).ok_or_else(missing)?;
        let before = stored.clone();
        let branch = before.branch(before.entries.len().checked_sub(1));
        let kinds: Vec<Kind> = branch.iter().map(|entry| kind_of(entry)).collect();
        let plan = plan(&kinds, most.get());
        let kept = plan.carried.len() + branch.len() - plan.from;
        let count = before.entries.len();
        if count <= most.get() || count == kept {
            return Ok(LinesCompacted { kept: count, archived: None });
        }
        stored.entries.clear();
        for at in plan.carried.iter().copied().chain(plan.from..branch.len()) {
            stored.follow(branch[at].clone());
        }
        let archive = archive_path(lock.transcript().path(), ArchiveReason::Backup, now_ms());
        let archived = Some(archive.display().to_string());
        all.entry(TranscriptRef::new(archive)).or_default().stored = Some(before);
        Ok(LinesCompacted { kept, archived })
    }

    fn archive(&self, transcript: &TranscriptRef) -> io::Result<String> {
        let mut all = self.all.lock();
        let stored = all.get_mut(transcript).and_then(|kept| kept.stored.take());
        let stored = stored.ok_or(io::ErrorKind::NotFound)?;
        let archive = archive_path(transcript.path(), ArchiveReason::Deleted, now_ms());
        let name = archive.display().to_string();
        all.entry(TranscriptRef::new(archive)).or_default().stored = Some(stored);
        Ok(name)
    }
}

impl StoredTranscript {
    /// Adds an entry after the last one, whatever it says.
    fn follow(&mut self, entry: Entry) {
        let parent_id = self.entries.last().map(|last| last.id.clone());
        self.entries.push(Entry { parent_id, ..entry });
    }
}

struct MemoryLock {
    all: TranscriptCells,
    transcript: TranscriptRef,
}

impl KeepsOthersOut for MemoryLock {
    fn is_in_place(&self) -> bool {
        let holder = self.all.lock().get(&self.transcript).and_then(|kept| kept.holder);
        holder == Some(std::process::id())
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.all.lock().entry(self.transcript.clone()).or_default().holder = None;
    }
}

struct MemoryReader {
    all: TranscriptCells,
    transcript: TranscriptRef,
}

impl TranscriptReader for MemoryReader {
    fn visit(&self, part: Part, visit: &mut Visit<'_>) -> io::Result<()> {
        let stored = self.all.lock().get(&self.transcript).and_then(|kept| kept.stored.clone());
        let stored = stored.ok_or(io::ErrorKind::NotFound)?;
        let leaf_first = || stored.branch(stored.entries.len().checked_sub(1)).into_iter().rev().collect();
        let (entries, mut bytes): (Vec<&Entry>, u64) = match part {
            Part::Branch => (leaf_first(), u64::MAX),
            Part::End { bytes } => (leaf_first(), bytes),
            Part::Beginning { lines, bytes } => {
                (stored.entries.iter().take(lines.saturating_sub(1)).collect(), bytes)
            }
        };
        for entry in entries {
            let line = entry.to_line()?;
            let Some(left) = bytes.checked_sub(line.len() as u64) else { return Ok(()) };
            bytes = left;
            if let ControlFlow::Break(()) = visit(kind_of(entry), Some(&entry.id), &line) {
                return Ok(());
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryTranscript {
    all: TranscriptCells,
    transcript: TranscriptRef,
    header: TranscriptHeader,
    leaf: Option<EntryId>,
    /// Number of entries when it was looked at last.
    known: usize,
    /// Number of entries when it was synced last.
    synced: Option<usize>,
}

impl MemoryTranscript {
    fn stored(&self) -> Result<MappedMutexGuard<'_, StoredTranscript>, TranscriptError> {
        MutexGuard::try_map(self.all.lock(), |all| all.get_mut(&self.transcript)?.stored.as_mut())
            .map_err(|_| TranscriptError::Missing(self.transcript.clone()))
    }

    fn branch_to(&self, leaf: Option<&EntryId>) -> Result<Vec<Entry>, TranscriptError> {
        let stored = self.stored()?;
        let leaf = leaf.and_then(|id| stored.position(id.as_str()));
        Ok(stored.branch(leaf).into_iter().cloned().collect())
    }

    fn write(&mut self, body: Body, id: EntryId) -> Result<(), TranscriptError> {
        let (parent_id, timestamp) = (self.leaf.clone(), iso(now_ms()));
        let entry = Entry { id: id.clone(), parent_id, timestamp, body, extra: Map::new() };
        let mut stored = self.stored()?;
        stored.entries.push(entry);
        let known = stored.entries.len();
        drop(stored);
        (self.known, self.leaf) = (known, Some(id));
        Ok(())
    }
}

fn plan_of(branch: &[Entry]) -> context::ContextPlan {
    let kept = |entry: &Entry| match &entry.body {
        Body::Compaction(compaction) => Some(compaction.first_kept_entry_id.clone()),
        _ => None,
    };
    let facts: Vec<_> = branch.iter().map(|entry| (entry.id.clone(), kind_of(entry), kept(entry))).collect();
    let steps: Vec<BranchStep<'_>> = facts
        .iter()
        .map(|(id, kind, kept)| BranchStep { id: id.as_str(), kind: *kind, first_kept: kept.as_deref() })
        .collect();
    context::plan(&steps)
}

fn context_of(branch: &[Entry]) -> Context {
    let plan = plan_of(branch);
    let thinking_level = plan.thinking.and_then(|at| match &branch[at].body {
        Body::ThinkingLevelChange { thinking_level } => Some(thinking_level.clone()),
        _ => None,
    });
    let model = plan.model.and_then(|at| context::model_of(&branch[at]));
    Context { messages: view_of(branch, &plan).messages(), thinking_level, model }
}

fn view_of(branch: &[Entry], plan: &context::ContextPlan) -> View {
    let entry = |at: usize| Arc::new(branch[at].clone());
    let [kept, later] = plan.places(branch.len()).map(|places| places.map(entry).collect());
    View { compaction: plan.summary.map(entry), kept, later }
}

impl OpenTranscript for MemoryTranscript {
    fn header(&self) -> &TranscriptHeader {
        &self.header
    }

    fn leaf(&self) -> Option<&EntryId> {
        self.leaf.as_ref()
    }

    fn contains(&self, id: &str) -> bool {
        self.stored().is_ok_and(|stored| stored.position(id).is_some())
    }

    fn len(&self) -> usize {
        self.known
    }

    fn memory(&self) -> usize {
        0
    }

    fn refresh(&mut self) -> Result<(), TranscriptError> {
        let (count, last) = {
            let stored = self.stored()?;
            (stored.entries.len(), stored.entries.last().map(|entry| entry.id.clone()))
        };
        if count != self.known {
            (self.known, self.leaf) = (count, last);
        }
        Ok(())
    }

    fn append(&mut self, body: Body, id: Option<EntryId>) -> Result<EntryId, TranscriptError> {
        let id = match id {
            Some(id) if self.contains(id.as_str()) => {
                return Err(TranscriptError::DuplicateId { transcript: self.transcript.clone(), id });
            }
            Some(id) => id,
            None => self.stored()?.free_id(),
        };
        let Body::Message(StoredMessage::Known(message)) = body else {
            self.write(body, id.clone())?;
            return Ok(id);
        };
        let message = guard::checked(message);
        for missing in self.pending_calls()?.before(&message, now_ms()) {
            let id = self.stored()?.free_id();
            self.write(missing.into(), id)?;
        }
        self.write(Body::Message(StoredMessage::Known(message)), id.clone())?;
        Ok(id)
    }

    fn note_settings(&mut self, settings: &ModelSettings) -> Result<(), TranscriptError> {
        let branch = self.branch_to(self.leaf.as_ref())?;
        let snapshot = branch.iter().rev().find_map(|entry| match &entry.body {
            Body::Custom { custom_type, data } if custom_type == MODEL_SNAPSHOT => data.clone(),
            _ => None,
        });
        settings
            .not_in(&context_of(&branch), snapshot.as_ref())
            .try_for_each(|body| self.append(body, None).map(drop))
    }

    fn begin_turn(&mut self) -> Result<(), TranscriptError> {
        let branch = self.branch_to(self.leaf.as_ref())?;
        if ends_within_turn(branch.iter().rev().map(TurnMark::of).find(|mark| *mark != TurnMark::Beside)) {
            let data = Some(json!({"timestamp": now_ms()}));
            self.append(Body::Custom { custom_type: TURN_START.to_owned(), data }, None)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), TranscriptError> {
        let count = self.stored()?.entries.len();
        self.synced = Some(count);
        Ok(())
    }

    fn is_untouched(&self) -> bool {
        self.stored().is_ok_and(|stored| self.synced == Some(stored.entries.len()))
    }

    fn branch(&mut self, to: Branch) -> Result<(), TranscriptError> {
        self.leaf = match to {
            Branch::Latest => self.stored()?.entries.last().map(|entry| entry.id.clone()),
            Branch::Root => None,
            Branch::At(id) if self.contains(id.as_str()) => Some(id),
            Branch::At(id) => {
                return Err(TranscriptError::UnknownId { transcript: self.transcript.clone(), id });
            }
        };
        Ok(())
    }

    fn context(&mut self) -> Result<Context, TranscriptError> {
        Ok(context_of(&self.branch_to(self.leaf.as_ref())?))
    }

    fn view(&mut self) -> Result<View, TranscriptError> {
        let branch = self.branch_to(self.leaf.as_ref())?;
        Ok(view_of(&branch, &plan_of(&branch)))
    }

    fn pending_calls(&mut self) -> Result<PendingCalls, TranscriptError> {
        let mut pending = PendingCalls::default();
        for entry in self.branch_to(self.leaf.as_ref())? {
            if let Some(message) = entry.body.message() {
                pending.before(message, 0);
                pending.after(message);
            }
        }
        Ok(pending)
    }

    fn turn_of(
        &mut self,
        ids: &[EntryId],
        said_at: i64,
        is_ours: &dyn Fn(&EntryId) -> bool,
    ) -> Result<Option<TranscriptTurn>, TranscriptError> {
        let branch = self.branch_to(self.leaf.as_ref())?;
        let is_said = |entry: &Entry| ids.contains(&entry.id) && is_said_at(entry, said_at);
        let Some(from) = branch.iter().rposition(is_said) else { return Ok(None) };
        let marks: Vec<TurnMark> =
            branch[from..].iter().map(|entry| TurnMark::within(entry, is_ours)).collect();
        let end = turn_end(&marks);
        let steered = steered(&marks, end).map(|at| branch[from + at].id.clone()).collect();
        let state = match end {
            TurnEnd::Open => TurnState::Last,
            TurnEnd::Overtaken => TurnState::Overtaken,
            TurnEnd::Failed(at) => TurnState::Failed(failure_text(&branch[from + at])),
            TurnEnd::Answered(at) => TurnState::Answered(context_of(&branch[..=from + at])),
        };
        Ok(Some(TranscriptTurn { entry: branch[from].id.clone(), steered, state }))
    }

    fn leave_turn(&mut self, ids: &[EntryId], said_at: i64) -> Result<bool, TranscriptError> {
        let branch = self.branch_to(self.leaf.as_ref())?;
        let is_said = |entry: &Entry| ids.contains(&entry.id) && is_said_at(entry, said_at);
        let Some(from) = branch.iter().rposition(is_said) else { return Ok(false) };
        if !is_plain_turn(&branch[from..]) {
            return Ok(false);
        }
        let before = branch[..from].iter().rev().find(|entry| !is_setting(entry));
        self.branch(before.map_or(Branch::Root, |entry| Branch::At(entry.id.clone())))?;
        self.append(marker(&branch[from].id), None)?;
        Ok(true)
    }

    fn entries(&mut self) -> Result<Vec<Entry>, TranscriptError> {
        self.branch_to(self.leaf.as_ref())
    }
}
