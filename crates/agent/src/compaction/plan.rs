//! Plans what happens to each entry of a branch (spec `agent-runtime.md` §10.2): summarised,
//! summarised as the beginning of a turn, or kept. Pure, and linear in the length of the branch.

use std::sync::Arc;

use openclaw_protocol::message::{Message, StopReason};
use openclaw_sessions::transcript::context::{in_part, message_of};
use openclaw_sessions::transcript::{Body, Compaction, Entry, EntryId, View};

use super::Budget;
use super::cut::{CutPiece, HistoryCut, PieceKind, cut, whole_places};
use super::files::TouchedFiles;
use super::{long_results, tool_failures};
use crate::tokens::{all_tokens, message_tokens};

/// Part of a branch that a model is shown, entry by entry.
#[derive(Debug, Clone, Default)]
pub struct Range {
    /// The last compaction.
    previous: Option<Compaction>,
    /// Entries that the previous compaction kept and all later ones, root first.
    entries: Vec<PlanEntry>,
    /// Number of entries at the start that the previous compaction kept.
    kept_before: usize,
}

#[derive(Debug, Clone)]
struct PlanEntry {
    id: EntryId,
    kind: PieceKind,
    /// Message as the model is shown it; `None` for settings and the like.
    message: Option<Arc<Message>>,
}

/// Reason why there is nothing to compact. Its text is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Nothing {
    /// No message was added since the last compaction.
    #[error("Already compacted")]
    AlreadyCompacted,
    /// There are no messages that could be summarised.
    #[error("Nothing to compact (session too small)")]
    TooSmall,
}

/// A compaction that is decided.
#[derive(Debug, Clone)]
pub struct CompactionPlan {
    /// The first entry that stays.
    pub first_kept: EntryId,
    /// Messages to summarise.
    pub history: Vec<Arc<Message>>,
    /// The beginning of a turn whose end stays: summarised for itself.
    pub prefix: Vec<Arc<Message>>,
    /// The summary of what was before.
    pub previous_summary: Option<String>,
    /// Characters that results among what stays are shown of; `None` shows them whole.
    pub results_up_to: Option<usize>,
    /// Tokens of what stays, before results of it are shown in part.
    pub kept_tokens: u64,
    /// True if the plan shortens results that were shown in full before.
    shortens: bool,
    files: TouchedFiles,
}

impl Range {
    /// Builds the range of the entries in a context.
    pub fn of(view: &View) -> Self {
        let previous = view.compaction.as_deref().and_then(|entry| match &entry.body {
            Body::Compaction(compaction) => Some(compaction.clone()),
            _ => None,
        });
        let up_to = previous.as_ref().and_then(Compaction::results_up_to);
        let kept = view.kept.iter().map(|entry| PlanEntry::of(entry, up_to));
        let entries = kept.chain(view.later.iter().map(|entry| PlanEntry::of(entry, None))).collect();
        Self { previous, entries, kept_before: view.kept.len() }
    }

    fn has_news(&self) -> bool {
        let since = if self.previous.is_some() { self.kept_before } else { 0 };
        self.entries.iter().skip(since).any(|entry| entry.message.is_some())
    }

    fn messages(&self, part: std::ops::Range<usize>) -> Vec<Arc<Message>> {
        let part = self.entries.get(part).unwrap_or_default();
        part.iter().filter_map(|entry| entry.message.clone()).collect()
    }

    fn whole(&self) -> Vec<bool> {
        let place = |entry: &'_ PlanEntry| -> (Vec<String>, Option<String>) {
            match entry.message.as_deref() {
                Some(Message::Assistant(answer)) => {
                    (answer.tool_calls().map(|call| call.id.clone()).collect(), None)
                }
                Some(Message::ToolResult(result)) => (Vec::new(), Some(result.tool_call_id.clone())),
                Some(Message::User(_)) | None => (Vec::new(), None),
            }
        };
        let places: Vec<_> = self.entries.iter().map(place).collect();
        whole_places(
            places
                .iter()
                .map(|(calls, result)| (calls.iter().map(String::as_str).collect(), result.as_deref())),
        )
    }
}

fn is_cut_off(message: &Message) -> bool {
    matches!(message, Message::Assistant(answer) if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted))
}

impl PlanEntry {
    fn of(entry: &Entry, up_to: Option<usize>) -> Self {
        // No model is shown what failed or was stopped.
        let message = message_of(entry).filter(|message| !is_cut_off(message));
        let message = message.map(|message| in_part(message, up_to));
        let kind = match (&entry.body, message.as_deref()) {
            (_, None) => PieceKind::Aside,
            (_, Some(Message::Assistant(_))) => PieceKind::Answer,
            (_, Some(Message::ToolResult(_))) => PieceKind::Result,
            (_, Some(Message::User(_))) => PieceKind::Start,
        };
        Self { id: entry.id.clone(), kind, message }
    }
}

/// Urgency of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// The compaction can wait: an incomplete summary is then not worth replacing the messages.
    CanWait,
    /// The conversation can't continue without compaction: old messages are then left out even if
    /// no model can summarise them. Holds the number of earlier attempts.
    Overflow {
        /// Number of the attempt, from 0; each attempt keeps less.
        attempt: u32,
    },
}

/// Decides what is summarised.
///
/// # Errors
/// When there is nothing to be summarised.
pub fn plan(range: &Range, budget: &Budget, urgency: Urgency) -> Result<CompactionPlan, Nothing> {
    let attempt = match urgency {
        Urgency::CanWait if range.has_news() => 0,
        Urgency::CanWait if range.previous.is_some() => return Err(Nothing::AlreadyCompacted),
        Urgency::CanWait => return Err(Nothing::TooSmall),
        Urgency::Overflow { attempt } => attempt,
    };
    let piece = |entry: &PlanEntry| CutPiece {
        kind: entry.kind,
        tokens: entry.message.as_deref().map_or(0, message_tokens),
    };
    let pieces: Vec<CutPiece> = range.entries.iter().map(piece).collect();
    let HistoryCut { kept, turn } = cut(&pieces, &range.whole(), budget.kept(attempt));
    let (history, prefix) = (range.messages(0..turn), range.messages(turn..kept));
    if history.is_empty() && prefix.is_empty() {
        return Err(Nothing::TooSmall);
    }
    range.planned(kept, history, prefix, budget).ok_or(Nothing::TooSmall)
}

/// Keeps everything, and shows in part what is too long; `None` when nothing is.
pub fn shorten(range: &Range, budget: &Budget) -> Option<CompactionPlan> {
    range.planned(0, Vec::new(), Vec::new(), budget).filter(|plan| plan.shortens)
}

impl Range {
    fn planned(
        &self,
        kept: usize,
        history: Vec<Arc<Message>>,
        prefix: Vec<Arc<Message>>,
        budget: &Budget,
    ) -> Option<CompactionPlan> {
        let staying = self.messages(kept..self.entries.len());
        let shorter = long_results::cap(&staying, budget.window, budget.threshold() / 2);
        // Results that were shortened stay so.
        let before = self.previous.as_ref().filter(|_| kept < self.kept_before);
        let before = before.and_then(Compaction::results_up_to);
        Some(CompactionPlan {
            first_kept: self.entries.get(kept)?.id.clone(),
            files: TouchedFiles::of(history.iter().chain(&prefix), self.previous.as_ref()),
            previous_summary: self.previous.as_ref().map(|previous| previous.summary.clone()),
            results_up_to: shorter.into_iter().chain(before).min(),
            shortens: shorter.is_some(),
            kept_tokens: all_tokens(&staying),
            history,
            prefix,
        })
    }
}

impl CompactionPlan {
    /// Returns true if everything is kept.
    pub(super) fn leaves_out_nothing(&self) -> bool {
        self.history.is_empty() && self.prefix.is_empty()
    }

    /// Returns the text added to the summary: the failed tools, if requested, and the files.
    pub(super) fn appendix(&self, with_failures: bool) -> String {
        let failures = if with_failures { tool_failures::section(self.summarised()) } else { String::new() };
        failures + &self.files.lists()
    }

    /// The entry's body.
    pub(super) fn entry(&self, summary: String, tokens_before: u64) -> Compaction {
        let mut details = self.files.details();
        if let Some(chars) = self.results_up_to {
            details.insert(Compaction::RESULTS_UP_TO.to_owned(), chars.into());
        }
        Compaction {
            summary,
            first_kept_entry_id: self.first_kept.to_string(),
            tokens_before,
            details: Some(details.into()),
            from_hook: None,
        }
    }

    /// Messages that the summary replaces.
    pub(super) fn summarised(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.history.iter().chain(&self.prefix)
    }
}

#[cfg(test)]
mod tests;
