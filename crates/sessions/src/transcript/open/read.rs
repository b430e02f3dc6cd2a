//! Reading entries: the context of a branch, its settings, its open tool calls.

use std::sync::Arc;

use serde_json::Value;

use super::OpenTranscript;
use super::window::LineWindow;
use crate::transcript::context::{self, BranchStep, Context, ContextPlan, View};
use crate::transcript::format::{Body, Entry, MODEL_SNAPSHOT, VERSION};
use crate::transcript::guard::PendingCalls;
use crate::transcript::index::{At, Kind};
use crate::transcript::{TranscriptError, migrate};

impl OpenTranscript {
    /// Context for a model: the branch as it should see it. A long transcript is read only as far as that
    /// takes.
    pub fn context(&mut self) -> Result<Context, TranscriptError> {
        let read = self.context_at(self.leaf)?;
        if read.is_whole {
            return Ok(read.context);
        }
        // Lines are not where they were: somebody wrote over them.
        self.reopen()?;
        Ok(self.context_at(self.leaf)?.context)
    }

    pub(super) fn context_at(&mut self, leaf: Option<At>) -> Result<ReadContext, TranscriptError> {
        let branch = self.branch_until(leaf, context::is_enough)?;
        let plan = context::plan(&self.steps(&branch));
        let mut context = self.settings_at(&branch, plan.thinking, plan.model)?;
        let (view, is_whole) = self.read_view(&branch, &plan, context::is_shown)?;
        context.messages = view.messages();
        Ok(ReadContext { context, is_whole })
    }

    /// The entries of the context, settings and the like among them.
    pub fn view(&mut self) -> Result<View, TranscriptError> {
        let branch = self.branch_until(self.leaf, context::is_enough)?;
        let plan = context::plan(&self.steps(&branch));
        Ok(self.read_view(&branch, &plan, |_| true)?.0)
    }

    /// The entries of a branch that are wanted, and whether each was where it should be.
    fn read_view(
        &mut self,
        branch: &[At],
        plan: &ContextPlan,
        is_wanted: impl Fn(Kind) -> bool,
    ) -> Result<(View, bool), TranscriptError> {
        let mut is_whole = true;
        let mut window = LineWindow::ahead();
        let mut view = View::default();
        if let Some(at) = plan.summary.and_then(|at| branch.get(at)) {
            view.compaction = self.read_entry_through(&mut window, *at)?;
            is_whole = view.compaction.is_some();
        }
        let places = plan.places(branch.len());
        for (entries, places) in [&mut view.kept, &mut view.later].into_iter().zip(places) {
            for at in branch.get(places).unwrap_or_default() {
                let is_wanted = self.place(*at).is_some_and(|place| is_wanted(place.kind));
                if is_wanted {
                    let entry = self.read_entry_through(&mut window, *at)?;
                    is_whole &= entry.is_some();
                    entries.extend(entry);
                }
            }
        }
        Ok((view, is_whole))
    }

    /// Tool calls at the end of the branch that have no result.
    pub fn pending_calls(&mut self) -> Result<PendingCalls, TranscriptError> {
        if let Some(pending) = &self.pending {
            return Ok(pending.clone());
        }
        let turns = |step: &BranchStep<'_>| matches!(step.kind, Kind::User | Kind::Assistant);
        let branch = self.branch_until(self.leaf, |steps| steps.iter().any(turns))?;
        let from = self.steps(&branch).iter().rposition(turns).unwrap_or(branch.len());
        let mut pending = PendingCalls::default();
        for at in branch.iter().skip(from) {
            let entry = self.read_entry(*at)?;
            if let Some(message) = entry.as_ref().and_then(|entry| entry.body.message()) {
                pending.after(message);
            }
        }
        Ok(pending)
    }

    /// The entries of the branch, root first.
    pub fn branch_entries(&mut self) -> Result<Vec<Entry>, TranscriptError> {
        let branch = self.branch_until(self.leaf, |_| false)?;
        let mut out = Vec::with_capacity(branch.len());
        let mut window = LineWindow::ahead();
        for at in branch {
            out.extend(self.read_entry_through(&mut window, at)?.map(Arc::unwrap_or_clone));
        }
        Ok(out)
    }

    /// Settings on the branch, as far as it is known.
    pub(super) fn context_settings(&mut self, branch: &[At]) -> Result<Context, TranscriptError> {
        let plan = context::plan(&self.steps(branch));
        self.settings_at(branch, plan.thinking, plan.model)
    }

    fn settings_at(
        &mut self,
        branch: &[At],
        thinking: Option<usize>,
        model: Option<usize>,
    ) -> Result<Context, TranscriptError> {
        let mut out = Context::default();
        if let Some(at) = thinking
            && let Some(entry) = self.entry_on(branch, at)?
            && let Body::ThinkingLevelChange { thinking_level } = &entry.body
        {
            out.thinking_level = Some(thinking_level.clone());
        }
        if let Some(at) = model {
            out.model = self.entry_on(branch, at)?.as_deref().and_then(context::model_of);
        }
        Ok(out)
    }

    /// The last model snapshot of the branch.
    pub(super) fn model_snapshot(&mut self, branch: &[At]) -> Result<Option<Value>, TranscriptError> {
        for at in branch.iter().rev() {
            if self.place(*at).is_none_or(|place| place.kind != Kind::Custom) {
                continue;
            }
            if let Some(entry) = self.read_entry(*at)?
                && let Body::Custom { custom_type, data } = &entry.body
                && custom_type == MODEL_SNAPSHOT
            {
                return Ok(data.clone());
            }
        }
        Ok(None)
    }

    fn entry_on(&mut self, branch: &[At], at: usize) -> Result<Option<Arc<Entry>>, TranscriptError> {
        match branch.get(at) {
            Some(at) => self.read_entry(*at),
            None => Ok(None),
        }
    }

    /// An entry, from disk if it is not known yet; nothing when its bytes are not this entry any more.
    pub(super) fn read_entry(&mut self, at: At) -> Result<Option<Arc<Entry>>, TranscriptError> {
        self.read_entry_through(&mut LineWindow::exact(), at)
    }

    /// [`Self::read_entry`] for one of many.
    pub(super) fn read_entry_through(
        &mut self,
        window: &mut LineWindow,
        at: At,
    ) -> Result<Option<Arc<Entry>>, TranscriptError> {
        if let Some(known) = self.entries.get(&at) {
            return Ok(Some(Arc::clone(known)));
        }
        let entry = self.read_from_disk(window, at)?.map(Arc::new);
        if let (Some(entry), Some(place)) = (&entry, self.place(at)) {
            self.remember(at, place.len, entry);
        }
        Ok(entry)
    }

    /// An entry as it is on disk now.
    pub(super) fn read_from_disk(
        &mut self,
        window: &mut LineWindow,
        at: At,
    ) -> Result<Option<Entry>, TranscriptError> {
        let Some(place) = self.place(at).cloned() else { return Ok(None) };
        let line = match window.line(&*self.log, place.offset, place.len, self.len) {
            Ok(line) => line,
            // Shorter than it was.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(source) => return Err(TranscriptError::io("read", &self.transcript, source)),
        };
        let entry = if self.header.version >= VERSION {
            Entry::parse(line)
        } else {
            self.read_old(line, at).and_then(Entry::from_value)
        };
        Ok(entry.filter(|entry| entry.id == place.id))
    }

    /// Keeps an entry that was read or written, for as long as the index holds.
    pub(super) fn remember(&mut self, at: At, len: u32, entry: &Arc<Entry>) {
        if self.entries.insert(at, Arc::clone(entry)).is_none() {
            self.entry_bytes += len as usize;
        }
    }

    /// A line of an old version as the current one has it.
    pub(super) fn read_old(&self, line: &[u8], at: At) -> Option<Value> {
        let place = self.place(at)?;
        let parent = self.tail.index.parent(at).and_then(|parent| self.place(parent));
        let entry_at = |index: u64| {
            let at = At::try_from(index.checked_sub(1)?).ok()?;
            self.place(at).map(|place| place.id.clone())
        };
        migrate::read_old(line, self.header.version, &place.id, parent.map(|parent| &parent.id), &entry_at)
    }
}

/// A context as it was read.
#[derive(Default)]
pub(super) struct ReadContext {
    pub(super) context: Context,
    /// True if every entry was where it should be.
    pub(super) is_whole: bool,
}
