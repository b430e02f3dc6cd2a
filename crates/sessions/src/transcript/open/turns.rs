//! Finding a message's turn on the branch.

use std::sync::Arc;

use openclaw_protocol::message::Message;
use serde_json::json;

use super::Branch;
use super::OpenTranscript;
use super::window::LineWindow;
use crate::time::{now_ms, parse_iso};
use crate::transcript::TranscriptError;
use crate::transcript::format::{Body, Entry, EntryId};
use crate::transcript::index::{At, Kind};
use crate::transcript::leave::{is_plain_turn, is_said_at, is_setting, marker};
use crate::transcript::turn::{
    TURN_START, TranscriptTurn, TurnEnd, TurnMark, TurnState, ends_within_turn, steered, turn_end,
};

/// Tolerance for clocks put back since a message was accepted, in milliseconds: entries this much
/// older are not looked at.
const CLOCK_SLACK_MS: i64 = 48 * 60 * 60 * 1000;

/// Error text of a failed answer.
fn failure_text(entry: &Entry) -> String {
    match entry.body.message().map(Arc::as_ref) {
        Some(Message::Assistant(answer)) => {
            answer.error_text.clone().or_else(|| answer.error_message.clone()).unwrap_or_default()
        }
        _ => String::new(),
    }
}

impl OpenTranscript {
    /// The turn of the last entry of one of these ids that is a person's message of this time. A message that `is_ours` does
    /// not know was said through another program, and begins a turn of its own.
    pub fn turn_of(
        &mut self,
        ids: &[EntryId],
        said_at: i64,
        is_ours: impl Fn(&EntryId) -> bool,
    ) -> Result<Option<TranscriptTurn>, TranscriptError> {
        let Some((branch, at)) = self.find_said(ids, said_at)? else { return Ok(None) };
        let own = branch.get(at..).unwrap_or_default();
        let mut marks = Vec::with_capacity(own.len());
        let mut window = LineWindow::ahead();
        for at in own {
            let entry = self.read_entry_through(&mut window, *at)?;
            marks.push(entry.as_ref().map_or(TurnMark::Beside, |entry| TurnMark::within(entry, &is_ours)));
        }
        let id_at = |at: usize| own.get(at).and_then(|at| self.place(*at)).map(|place| place.id.clone());
        let Some(entry) = id_at(0) else { return Ok(None) };
        let end = turn_end(&marks);
        let steered = steered(&marks, end).filter_map(id_at).collect();
        let state = match end {
            TurnEnd::Open => TurnState::Last,
            TurnEnd::Overtaken => TurnState::Overtaken,
            TurnEnd::Failed(at) => {
                let failed = own.get(at).map(|end| self.read_entry(*end)).transpose()?.flatten();
                TurnState::Failed(failed.map(|entry| failure_text(&entry)).unwrap_or_default())
            }
            TurnEnd::Answered(at) => {
                let context = own.get(at).map(|end| self.context_at(Some(*end))).transpose()?;
                TurnState::Answered(context.unwrap_or_default().context)
            }
        };
        Ok(Some(TranscriptTurn { entry, steered, state }))
    }

    /// Appends an entry that marks the beginning of a new turn, if the branch ends within another turn.
    ///
    /// # Errors
    /// When it can't be read or written.
    pub fn begin_turn(&mut self) -> Result<(), TranscriptError> {
        let is_told = |kind: Kind| matches!(kind, Kind::User | Kind::Assistant | Kind::ToolResult);
        let branch = self.branch_until(self.leaf, |steps| steps.iter().any(|step| is_told(step.kind)))?;
        let mut last = None;
        for at in branch.iter().rev() {
            let kind = self.place(*at).map(|place| place.kind);
            if !kind.is_some_and(|kind| is_told(kind) || kind == Kind::Custom) {
                continue;
            }
            last =
                self.read_entry(*at)?.as_deref().map(TurnMark::of).filter(|mark| *mark != TurnMark::Beside);
            if last.is_some() {
                break;
            }
        }
        if ends_within_turn(last) {
            let data = Some(json!({"timestamp": now_ms()}));
            self.append(Body::Custom { custom_type: TURN_START.to_owned(), data }, None)?;
        }
        Ok(())
    }

    /// Goes on from before the turn of a message (as [`Self::turn_of`] finds it) and the settings noted for it, where that is
    /// the message and one plain answer at the end of the branch, and appends an entry that says so. `false`: it is something
    /// else, and stays.
    ///
    /// # Errors
    /// When it can't be read or written; the branch is as it was then.
    pub fn leave_turn(&mut self, ids: &[EntryId], said_at: i64) -> Result<bool, TranscriptError> {
        let Some((branch, at)) = self.find_said(ids, said_at)? else { return Ok(false) };
        let mut own = Vec::new();
        for at in branch.get(at..).unwrap_or_default() {
            let Some(entry) = self.read_entry(*at)? else { return Ok(false) };
            own.push(entry);
        }
        let Some(said) = own.first().map(|entry| entry.id.clone()) else { return Ok(false) };
        if !is_plain_turn(own.iter().map(Arc::as_ref)) {
            return Ok(false);
        }
        let to = self.before_settings(&said)?;
        let leaf = self.leaf;
        self.branch(to)?;
        let marked = self.append(marker(&said), None);
        if marked.is_err() {
            self.leaf = leaf;
        }
        marked.map(|_| true)
    }

    /// Last entry before this one that is not a setting.
    fn before_settings(&mut self, id: &EntryId) -> Result<Branch, TranscriptError> {
        loop {
            let branch = self.tail.index.path(self.leaf);
            let is_it = |at: &At| self.place(*at).is_some_and(|place| place.id == *id);
            let until = branch.path.iter().rposition(is_it).unwrap_or_default();
            for at in branch.path.iter().take(until).rev() {
                let entry = self.read_entry(*at)?;
                if let Some(entry) = entry.filter(|entry| !is_setting(entry)) {
                    return Ok(Branch::At(entry.id.clone()));
                }
            }
            if branch.is_whole {
                return Ok(Branch::Root);
            }
            self.load_more()?;
        }
    }

    /// The branch as far as it is known, and where on it the message stands.
    fn find_said(
        &mut self,
        ids: &[EntryId],
        said_at: i64,
    ) -> Result<Option<(Vec<At>, usize)>, TranscriptError> {
        loop {
            let branch = self.tail.index.path(self.leaf);
            for (at, entry) in branch.path.iter().enumerate().rev() {
                let named = self
                    .place(*entry)
                    .is_some_and(|place| place.kind == Kind::User && ids.contains(&place.id));
                if named && self.is_said_at(*entry, said_at)? {
                    return Ok(Some((branch.path, at)));
                }
            }
            if branch.is_whole || self.is_long_before(branch.path.first().copied(), said_at)? {
                return Ok(None);
            }
            self.load_more()?;
        }
    }

    fn is_said_at(&mut self, at: At, said_at: i64) -> Result<bool, TranscriptError> {
        Ok(self.read_entry(at)?.is_some_and(|entry| is_said_at(&entry, said_at)))
    }

    /// True if an entry was written so long before a time that nothing of that time can precede it.
    fn is_long_before(&mut self, at: Option<At>, time: i64) -> Result<bool, TranscriptError> {
        let Some(at) = at else { return Ok(false) };
        let written = self.read_entry(at)?.and_then(|entry| parse_iso(&entry.timestamp));
        Ok(written.is_some_and(|written| written < time.saturating_sub(CLOCK_SLACK_MS)))
    }
}
