//! Row of a message, and the rules by which it changes.

use openclaw_protocol::{RunId, SessionId};

use crate::api::{AbortReason, RunRecord};
use crate::inbox::{Attempts, Digest, InboxRow, MessageRecord, RequestColumns};
use crate::origin::MessageOrigin;
use crate::queue::DropRule;

/// Row of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageRow {
    /// The run, unique.
    pub run_id: RunId,
    /// Kind of request that brought it.
    pub kind: String,
    /// The session's key.
    pub session_key: String,
    /// Unix milliseconds.
    pub accepted_at: i64,
    /// Id that its entry in the transcript may have.
    pub entry_id: String,
    /// The other id that it may have.
    pub fresh_id: String,
    /// Treatment during another run; `None` in rows of older versions, and possibly if it was asked for
    /// all unfinished messages, or all since a time.
    pub queue_mode: Option<String>,
    /// Digest of the request; `None` in rows of older versions.
    pub digest: Option<Digest>,
    /// Facts beside a request that is not read before its run begins, JSON.
    pub facts: Option<String>,
    /// Request, JSON; `None` if it was not asked for, or the run has ended.
    pub payload: Option<String>,
    /// The part that changes; possibly without the outcome and what came of it if all since a time
    /// were asked for.
    pub progress: MessageProgress,
}

impl MessageRow {
    /// Returns the row of a new message.
    pub fn of(row: &InboxRow<RequestColumns>) -> Self {
        let RequestColumns { kind, json, digest, facts, queue_mode, .. } = &row.payload;
        Self {
            run_id: row.run_id.clone(),
            kind: (*kind).to_owned(),
            session_key: row.session_key.spelled().to_owned(),
            accepted_at: row.accepted_at,
            entry_id: row.entry_id.clone(),
            fresh_id: row.fresh_id.as_str().to_owned(),
            queue_mode: Some(queue_mode.as_str().to_owned()),
            digest: Some(*digest),
            facts: facts.clone(),
            payload: Some(json.get().to_owned()),
            progress: MessageProgress::default(),
        }
    }

    /// Returns the run that took it into itself.
    fn taken_by(&self) -> Option<&RunId> {
        let MessageProgress { taken_by, collected_by, .. } = &self.progress;
        taken_by.as_ref().or_else(|| collected_by.as_ref().filter(|leader| **leader != self.run_id))
    }

    /// Returns what has to be known to change it.
    pub fn into_state(self) -> MessageState {
        MessageState { accepted_at: self.accepted_at, digest: self.digest, progress: self.progress }
    }

    /// Returns the record for people.
    pub fn into_record(self) -> MessageRecord {
        let taken_by = self.taken_by().cloned();
        let MessageProgress { session_id, attempts, abort, cut, .. } = self.progress;
        MessageRecord {
            run_id: self.run_id,
            kind: self.kind,
            session_key: self.session_key,
            session_id,
            entry_ids: [self.entry_id, self.fresh_id],
            accepted_at: self.accepted_at,
            queue_mode: self.queue_mode,
            taken_by,
            attempts: attempts.all,
            stop: abort.map(|reason| reason.as_str().to_owned()),
            is_cut: cut.is_some(),
        }
    }
}

/// State of a message, as far as its change needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageState {
    /// Unix milliseconds.
    pub accepted_at: i64,
    /// Digest of the request; `None` in rows of older versions.
    pub digest: Option<Digest>,
    /// The part that changes.
    pub progress: MessageProgress,
}

/// The part of a message's row that changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MessageProgress {
    /// True if the run has ended. Progress before that is read off the transcript, which is the
    /// authority on what was said.
    pub is_finished: bool,
    /// The session the run has begun in.
    pub session_id: Option<SessionId>,
    /// Number of times it was tried.
    pub attempts: Attempts,
    /// Reason of a stop that was asked for.
    pub abort: Option<AbortReason>,
    /// Result, JSON: of the run if that has ended, otherwise the gateway's own answer.
    pub outcome: Option<String>,
    /// Time at which the run began, in Unix milliseconds.
    pub started_at: Option<i64>,
    /// Time of the result, in Unix milliseconds.
    pub ended_at: Option<i64>,
    /// The run that took it into itself when it was steered.
    pub taken_by: Option<RunId>,
    /// The message that leads the run it belongs to; itself, if it leads others.
    pub collected_by: Option<RunId>,
    /// Place of the answer, JSON, if not the place where the message was said.
    pub answer_to: Option<String>,
    /// Number under which a full queue has dropped it.
    pub cut: Option<u64>,
    /// True if its key counts as new when it is sent again.
    pub may_repeat: bool,
}

/// Rules: each makes a change and returns true, or returns false if the message is past it.
impl MessageProgress {
    /// Counts another attempt.
    pub fn attempt(&mut self) -> bool {
        let Attempts { all, unprepared } = self.attempts;
        self.if_open(|open| {
            open.attempts = Attempts { all: all.saturating_add(1), unprepared: unprepared.saturating_add(1) };
        })
    }

    /// Notes that the attempt under way is past its preparation.
    pub fn prepare(&mut self) -> bool {
        self.attempts.unprepared = 0;
        true
    }

    /// Takes an attempt back: the process did not die of it.
    pub fn excuse(&mut self) -> bool {
        self.attempts = Attempts { all: self.attempts.all.saturating_sub(1), unprepared: 0 };
        true
    }

    /// Notes that the run begins in a session. The first attempt is counted with it.
    pub fn begin(&mut self, session_id: &SessionId) -> bool {
        self.session_id = Some(session_id.clone());
        let Attempts { all, unprepared } = self.attempts;
        self.attempts = Attempts { all: all.max(1), unprepared: unprepared.max(1) };
        true
    }

    /// Notes that the run is to be stopped. The first reason stays.
    pub fn stop(&mut self, reason: AbortReason) -> bool {
        self.abort.is_none() && self.if_open(|open| open.abort = Some(reason))
    }

    /// Notes the run that took the message of `own` into itself. One that takes itself belongs to no
    /// other run any more.
    pub fn take(&mut self, own: &RunId, by: &RunId) -> bool {
        self.if_open(|open| open.taken_by = (own != by).then(|| by.clone()))
    }

    /// Notes the message that leads its run.
    pub fn collect(&mut self, leader: &RunId) -> bool {
        self.if_open(|open| open.collected_by = Some(leader.clone()))
    }

    /// Notes that it leads its run, and the place of the answer.
    pub fn lead(
        &mut self,
        own: &RunId,
        answer_to: Option<&MessageOrigin>,
    ) -> Result<bool, serde_json::Error> {
        let answer_to = answer_to.map(serde_json::to_string).transpose()?;
        Ok(self.collect(own) && self.if_open(|open| open.answer_to = answer_to))
    }

    /// Notes that a full queue has dropped it.
    pub fn cut(&mut self, dropped: u64) -> bool {
        self.if_open(|open| open.cut = Some(dropped))
    }

    /// Notes the gateway's answer, which is on its way to the transcript.
    pub fn answer(&mut self, record: &RunRecord) -> Result<bool, serde_json::Error> {
        let outcome = serde_json::to_string(&record.outcome)?;
        Ok(self.if_open(|open| {
            open.outcome = Some(outcome);
            open.ended_at = Some(record.ended_at);
        }))
    }

    /// Notes the end of the run. The end of a message that a full queue had dropped before is that,
    /// whatever became of the run that was told of it.
    pub fn finish(&mut self, record: &RunRecord) -> Result<bool, serde_json::Error> {
        let (outcome, started_at) = match self.cut {
            Some(_) => (serde_json::to_string(&DropRule::Summarized.outcome())?, None),
            None => (serde_json::to_string(&record.outcome)?, record.started_at),
        };
        Ok(self.if_open(|open| {
            open.is_finished = true;
            open.outcome = Some(outcome);
            open.started_at = started_at;
            open.ended_at = Some(record.ended_at);
            open.attempts.unprepared = 0;
        }))
    }

    /// Notes that a rule has dropped it: this is the end of its run.
    pub fn drop_by(&mut self, record: &RunRecord, rule: DropRule) -> Result<bool, serde_json::Error> {
        let is_over = self.finish(record)?;
        self.may_repeat |= is_over && rule.may_be_sent_again();
        Ok(is_over)
    }

    fn if_open(&mut self, change: impl FnOnce(&mut Self)) -> bool {
        let is_open = !self.is_finished;
        if is_open {
            change(self);
        }
        is_open
    }
}

/// Selection of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageQuery<'a> {
    /// The message of a run.
    Run(&'a RunId),
    /// All, the newest first.
    Newest,
    /// Messages that the run of this one took into itself.
    TakenBy(&'a RunId),
    /// Messages whose entry in the transcript may have this id.
    Entry(&'a str),
    /// Messages accepted since.
    AcceptedSince(i64),
    /// Messages whose run has not ended.
    Unfinished,
}

impl MessageQuery<'_> {
    /// True if a row is selected.
    pub fn matches(&self, row: &MessageRow) -> bool {
        match self {
            Self::Run(run_id) => row.run_id == **run_id,
            Self::Newest => true,
            Self::TakenBy(run_id) => {
                let MessageProgress { taken_by, collected_by, .. } = &row.progress;
                row.run_id != **run_id
                    && [taken_by, collected_by].into_iter().flatten().any(|by| by == *run_id)
            }
            Self::Entry(id) => row.entry_id == *id || row.fresh_id == *id,
            Self::AcceptedSince(time) => row.accepted_at >= *time,
            Self::Unfinished => !row.progress.is_finished,
        }
    }

    /// True if the newest row comes first.
    pub fn is_newest_first(&self) -> bool {
        match self {
            Self::Newest => true,
            Self::Run(_) | Self::TakenBy(_) | Self::Entry(_) | Self::AcceptedSince(_) | Self::Unfinished => {
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::RunOutcome;

    fn ended() -> RunRecord {
        let outcome = RunOutcome::Ok { result: serde_json::json!({"payloads": []}).into() };
        RunRecord { run_id: RunId::new("a"), started_at: Some(1), ended_at: 9, outcome, report: None }
    }

    #[test]
    fn a_run_ends_once_and_what_comes_after_its_end_changes_nothing() {
        let mut message = MessageProgress::default();
        assert!(message.finish(&ended()).unwrap());
        let end = message.clone();
        assert!(!message.finish(&RunRecord { ended_at: 10, ..ended() }).unwrap());
        assert!(!message.drop_by(&ended(), DropRule::Old).unwrap());
        assert!(!message.answer(&ended()).unwrap());
        let (own, other) = (RunId::new("a"), RunId::new("b"));
        let late = [
            message.attempt(),
            message.stop(AbortReason::Rpc),
            message.take(&own, &other),
            message.collect(&other),
            message.lead(&own, None).unwrap(),
            message.cut(1),
        ];
        assert_eq!((late, message), ([false; 6], end));
    }

    #[test]
    fn the_end_of_a_message_that_was_cut_is_that_it_was_dropped() {
        let mut message = MessageProgress::default();
        assert!(message.cut(7) && message.finish(&ended()).unwrap());
        let outcome = serde_json::to_string(&DropRule::Summarized.outcome()).unwrap();
        assert_eq!((message.outcome, message.started_at, message.ended_at), (Some(outcome), None, Some(9)));
        for (rule, may_repeat) in [(DropRule::Old, true), (DropRule::Read, false)] {
            let mut message = MessageProgress::default();
            assert!(message.drop_by(&ended(), rule).unwrap());
            assert_eq!(message.may_repeat, may_repeat);
        }
    }

    #[test]
    fn an_attempt_is_counted_once_and_never_below_none() {
        let mut message = MessageProgress::default();
        let session = SessionId::new("s");
        type Step = fn(&mut MessageProgress, &SessionId) -> bool;
        let steps: [(Step, (u32, u32)); 6] = [
            (|message, session| message.begin(session), (1, 1)),
            (|message, _| message.attempt(), (2, 2)),
            (|message, session| message.begin(session), (2, 2)),
            (|message, _| message.prepare(), (2, 0)),
            (|message, _| message.excuse() && message.excuse(), (0, 0)),
            (|message, _| message.excuse(), (0, 0)),
        ];
        for (step, expected) in steps {
            assert!(step(&mut message, &session));
            assert_eq!((message.attempts.all, message.attempts.unprepared), expected);
        }
    }

    #[test]
    fn the_first_reason_stays_and_a_message_can_be_given_back_to_itself() {
        let mut message = MessageProgress::default();
        assert!(message.stop(AbortReason::Rpc) && !message.stop(AbortReason::Stop));
        assert_eq!(message.abort, Some(AbortReason::Rpc));
        let (own, other) = (RunId::new("a"), RunId::new("b"));
        assert!(message.take(&own, &other));
        assert_eq!(message.taken_by, Some(other));
        assert!(message.take(&own, &own));
        assert_eq!(message.taken_by, None);
    }
}
