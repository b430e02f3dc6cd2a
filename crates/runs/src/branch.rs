//! The session's transcript as a run sees it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::transcript::Written;
use openclaw_agent::{Outcome, ReplyPayload, RunEvent, Transcript as _, TranscriptError};
use openclaw_journal::api::{AbortReason, TIME_IS_UP};
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::job::is_copy;
use openclaw_journal::journal::{Journal, Update};
use openclaw_protocol::message::{AssistantMessage, Message, StopReason, UserMessage};
use openclaw_protocol::{RunId, SessionId};
use openclaw_sessions::transcript::{
    self, Compaction, EntryId, Injector, PendingAppend, Transcript, TurnState, View,
};
use tokio_util::sync::CancellationToken;

use super::compaction_note::CompactionNotes;
use super::inject;
use super::obstacle::Obstacle;
use crate::control::RunControl;
use openclaw_runtime::messages::turn::MessageTurn;

/// An open transcript, its branch in memory for the time of the run.
pub(super) struct RunBranch {
    transcript: Transcript,
    context: Arc<Vec<Arc<Message>>>,
    /// [`openclaw_agent::Transcript::own_from`], where an earlier process began the run.
    own_from: Option<usize>,
    /// Messages in its turn besides its own, oldest first; `None` is a copy, or an unknown message.
    steered: Vec<Option<RunId>>,
    control: Arc<RunControl>,
    /// Record of what the run sends by tools.
    turn: Option<Arc<MessageTurn>>,
    /// Notes for clients about compactions, if they follow the run.
    compactions: Option<CompactionNotes>,
    /// Journal in which it is noted that the run takes a message that was steered into it, and the
    /// run's id.
    notes: Option<(Arc<dyn Journal>, RunId)>,
    /// Token after whose cancellation nothing is written any more: the run is left as a crash would
    /// leave it.
    kill: CancellationToken,
    /// True if everything the model said is durable.
    is_secured: bool,
    /// Last message of the context while it is being written, which everything else waits for.
    ahead: Option<(Arc<Message>, PendingAppend)>,
}

/// Pauses before a transcript is synced again that the disk did not sync.
const SYNC_PAUSES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(5)];

/// State of a message in the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Prompted {
    /// Written.
    Yes,
    /// Not written; this id is free for it.
    NotYet(String),
    /// Written; its turn has failed for this reason, and another message's has begun since.
    Failed(String),
    /// Written, but another message's turn has begun since, while this one has no answer: it is to
    /// be said again, under this id.
    Overtaken(String),
}

impl RunBranch {
    /// Name of the transcript among those of its agent.
    pub(super) fn transcript_name(&self) -> &OsStr {
        self.transcript.transcript().file_name()
    }

    /// Makes the branch of a transcript and the messages that were read of it.
    pub(super) fn new(
        transcript: Transcript,
        context: Vec<Arc<Message>>,
        control: Arc<RunControl>,
        kill: CancellationToken,
    ) -> Self {
        let (context, own_from, steered) = (Arc::new(context), None, Vec::new());
        let (turn, compactions, notes, is_secured, ahead) = (None, None, None, false, None);
        Self {
            transcript,
            context,
            own_from,
            steered,
            control,
            turn,
            compactions,
            notes,
            kill,
            is_secured,
            ahead,
        }
    }

    /// Sets how clients are told of compactions.
    pub(super) fn telling(self, compactions: Option<CompactionNotes>) -> Self {
        Self { compactions, ..self }
    }

    /// Sets where messages steered into this run are noted as taken by it, which is done before
    /// they are written: a process that finds the message and its answer after a crash then knows
    /// whose answer that is.
    pub(super) fn noting(self, journal: Arc<dyn Journal>, run_id: RunId) -> Self {
        Self { notes: Some((journal, run_id)), ..self }
    }

    /// Tells `turn` what the run has sent already, and the messages that it heard since its own;
    /// later steered messages are told to it too.
    pub(super) fn tell(&mut self, turn: &Arc<MessageTurn>) {
        let own = self.context.get(self.own_from()..).unwrap_or_default();
        turn.remember(own, &self.steered);
        self.turn = Some(Arc::clone(turn));
    }

    /// Returns the messages that an earlier process steered into this run's turn, as far as they
    /// are known.
    pub(super) fn steered(&self) -> Vec<RunId> {
        self.steered.iter().flatten().cloned().collect()
    }

    /// Lets the lane write between the run's entries.
    pub(super) fn injector(&self) -> Injector {
        self.transcript.injector()
    }

    /// The run writes alone again.
    pub(super) fn end_injections(&self) {
        self.transcript.end_injections();
    }

    /// Writes a person's message.
    pub(super) async fn say(&mut self, message: UserMessage, id: &str) -> Result<(), TranscriptError> {
        self.write(&Message::User(message), Some(id)).await
    }

    /// Writes an answer to the last message.
    pub(super) async fn answer(&mut self, said: AssistantMessage) -> Result<(), TranscriptError> {
        self.write(&Message::Assistant(said), None).await
    }

    /// True if the turn ends with a whole answer.
    pub(super) fn is_answered(&self) -> bool {
        self.context.last().is_some_and(|last| is_whole_answer(last))
    }

    /// Returns the events and the outcome of the run whose whole answer the turn ends with.
    pub(super) fn standing_answer(
        &self,
        session_id: SessionId,
        now: i64,
    ) -> Option<(Vec<RunEvent>, Outcome)> {
        let own_from = self.own_from.unwrap_or(self.context.len());
        openclaw_agent::standing_answer(&self.context, own_from, session_id, now)
    }

    /// Returns what the turn has said to its own message without having come to its end.
    pub(super) fn standing_words(&self, now: i64) -> Vec<ReplyPayload> {
        let own_from = self.own_from.unwrap_or(self.context.len());
        openclaw_agent::standing_words(&self.context, own_from, now)
    }

    /// Writes an answer to a turn that has none.
    pub(super) async fn close_turn(&mut self, said: AssistantMessage) -> Result<(), TranscriptError> {
        match self.context.last().map(Arc::as_ref) {
            Some(Message::Assistant(last)) if last.stop_reason != StopReason::ToolUse => Ok(()),
            _ => self.answer(said).await,
        }
    }

    /// Writes an answer to the user's last words, after a run that was stopped by the clock.
    pub(super) async fn close_timed_out(&mut self, said: AssistantMessage) -> Result<(), TranscriptError> {
        match self.context.last().map(Arc::as_ref) {
            Some(Message::Assistant(_)) | None => Ok(()),
            Some(Message::User(_) | Message::ToolResult(_)) => self.answer(said).await,
        }
    }

    /// Returns the transcript, when the run is over.
    pub(super) fn into_transcript(self) -> Transcript {
        self.transcript
    }

    /// Finds out if the message of a row was written by an earlier process. Ids are 32 random bits:
    /// an entry counts only if it is a user message of the very millisecond, and a taken id is
    /// replaced by the message's UUID. Its answer is looked for in its own turn alone: other
    /// session keys may lead to the same transcript. `ours` are the ids of the messages since; one
    /// that is not among them was said through another program, and is a turn of its own.
    pub(super) async fn prompted(
        &mut self,
        row: &InboxRow,
        ours: Option<HashMap<String, RunId>>,
    ) -> Result<Prompted, transcript::TranscriptError> {
        if !row.recovered {
            return Ok(Prompted::NotYet(self.free_id(&row.entry_id, row.fresh_id.as_str())));
        }
        let ids = entry_ids(row);
        let ours = Arc::new(ours);
        let known = Arc::clone(&ours);
        let is_ours =
            move |id: &EntryId| known.as_ref().as_ref().is_none_or(|ours| ours.contains_key(message_of(id)));
        let Some(turn) = self.transcript.turn_of(ids.clone(), row.accepted_at, is_ours).await? else {
            return Ok(Prompted::NotYet(self.free_id(&row.entry_id, row.fresh_id.as_str())));
        };
        match turn.state {
            TurnState::Last => {}
            TurnState::Answered(context) => self.context = Arc::new(context.messages),
            TurnState::Failed(why) => return Ok(Prompted::Failed(why)),
            TurnState::Overtaken => {
                let used = ids.iter().position(|id| *id == turn.entry).unwrap_or(ids.len());
                return match ids.get(used + 1) {
                    Some(next) => Ok(Prompted::Overtaken(next.to_string())),
                    None => {
                        let transcript = self.transcript.transcript().clone();
                        Err(transcript::TranscriptError::DuplicateId { transcript, id: turn.entry })
                    }
                };
            }
        }
        // Entries that others put in are not the run's own.
        inject::without_injected(Arc::make_mut(&mut self.context));
        self.own_from = Some(behind_own(&self.context, turn.steered.len()));
        let owner = |id: &EntryId| {
            ours.as_ref().as_ref()?.get(message_of(id)).filter(|_| !is_copy(id.as_str())).cloned()
        };
        self.steered = turn.steered.iter().map(owner).collect();
        Ok(Prompted::Yes)
    }

    /// Prepares for the message of a new turn: a turn that a crash cut short ends here.
    pub(super) async fn begin_turn(&mut self) -> Result<(), transcript::TranscriptError> {
        self.transcript.begin_turn().await
    }

    /// Moves the branch to before a row's message, if the message has one plain answer; returns
    /// true if so.
    pub(super) async fn leave_turn(&mut self, row: &InboxRow) -> Result<bool, transcript::TranscriptError> {
        self.transcript.leave_turn(entry_ids(row), row.accepted_at).await
    }

    /// Makes everything written durable. For want of space that takes as long as it takes; at another error it is tried
    /// again a few times ([`SYNC_PAUSES`]).
    pub(super) async fn sync(&mut self) -> Result<(), TranscriptError> {
        self.settled().await?;
        let mut pauses = SYNC_PAUSES.into_iter();
        while let Err(error) = self.transcript.sync().await {
            let error = self.error(io::Error::other(error));
            if !self.takes_it_again(&error).await {
                let Some(pause) = pauses.next() else { return Err(error) };
                tracing::warn!(%error, ?pause, "a transcript could not be synced and is synced again");
                tokio::select! { biased;
                    () = self.kill.cancelled() => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
            self.check_alive()?;
        }
        self.is_secured = true;
        Ok(())
    }

    fn free_id(&self, id: &str, instead: &str) -> String {
        if self.transcript.contains(id) { instead.to_owned() } else { id.to_owned() }
    }

    fn check_alive(&self) -> Result<(), TranscriptError> {
        if self.kill.is_cancelled() {
            return Err(
                self.error(io::Error::new(io::ErrorKind::Interrupted, "the gateway is shutting down"))
            );
        }
        Ok(())
    }

    async fn write(&mut self, message: &Message, id: Option<&str>) -> Result<(), TranscriptError> {
        self.settled().await?;
        self.check_alive()?;
        let writing = self.control.steering.writing().map(|job| (job.steered_entries(), job));
        let steered = writing.filter(|([entry, _], _)| id == Some(entry.as_str()));
        let id = match &steered {
            Some(([entry, instead], _)) => Some(self.free_id(entry, instead)),
            None => id.map(str::to_owned),
        };
        if let (Some((_, job)), Some((journal, by))) = (&steered, &self.notes)
            && (!job.is_copy || self.control.steering.is_left(&job.row.run_id))
        {
            let taken = Update::Taken { runs: vec![job.row.run_id.clone()], by: by.clone() };
            journal.update(taken).await.map_err(|error| self.error(io::Error::other(error)))?;
        }
        let message = Arc::new(self.explained(message));
        let written = self.transcript.append_message(Arc::clone(&message), id.map(EntryId::new)).await;
        written.map_err(|error| self.error(io::Error::other(error)))?;
        if let Some((_, job)) = steered {
            self.control.steering.written();
            if let Some(turn) = &self.turn {
                turn.steered((!job.is_copy).then(|| job.row.run_id.clone()));
            }
        }
        self.is_secured &= !matches!(*message, Message::Assistant(_));
        Arc::make_mut(&mut self.context).push(message);
        Ok(())
    }

    /// Waits until the message that is written ahead is on disk; where the disk refuses for a while, until it does not.
    async fn settled(&mut self) -> Result<(), TranscriptError> {
        let Some((message, pending)) = &mut self.ahead else { return Ok(()) };
        let message = Arc::clone(message);
        let mut written = pending.written().await;
        self.ahead = None;
        while let Err(error) = written {
            let error = self.error(io::Error::other(error));
            let goes_on = if self.takes_it_again(&error).await { self.check_alive() } else { Err(error) };
            if let Err(error) = goes_on {
                Arc::make_mut(&mut self.context).pop();
                return Err(error);
            }
            written = self.transcript.append_message(Arc::clone(&message), None).await;
        }
        Ok(())
    }

    /// Waits until it is time to try again, after the disk refused a write for want of space or for
    /// another reason that may pass, or because the database can't be written; `false` if waiting
    /// does not help. Words of a run are not given up for that: nobody is told of an end that the
    /// transcript does not show.
    async fn takes_it_again(&self, refused: &TranscriptError) -> bool {
        let Some(obstacle) = Obstacle::behind(refused) else { return false };
        let Some(pause) = obstacle.pause(&self.control.blocked) else { return false };
        let (why, told) = match obstacle {
            Obstacle::DiskFull(why) => (why, "the disk is full: the run waits until there is space"),
            Obstacle::Refused(why) => (why, "the disk refuses: the run waits until it does not"),
            Obstacle::Database(why) => (why, "the database can't be written: the run waits until it can"),
            Obstacle::Locked { .. } => return false,
        };
        if self.control.blocked.is_first() {
            tracing::warn!(transcript = %self.transcript.transcript(), why, "{told}");
        }
        let _waiting = self.control.blocked.begin();
        tokio::select! { biased;
            // The next write says so.
            () = self.kill.cancelled() => true,
            () = tokio::time::sleep(pause) => true,
        }
    }

    /// An answer that the message's deadline cut off says so.
    fn explained(&self, message: &Message) -> Message {
        let mut message = message.clone();
        if let Message::Assistant(answer) = &mut message
            && answer.stop_reason == StopReason::Aborted
            && self.control.reason.get() == Some(&AbortReason::Timeout)
        {
            answer.error_message.get_or_insert_with(|| TIME_IS_UP.to_owned());
        }
        message
    }

    fn error(&self, source: io::Error) -> TranscriptError {
        TranscriptError { path: self.transcript.transcript().to_string(), source }
    }
}

/// Index at which a turn begins behind its own message, in a context that ends within the turn and
/// with so many messages steered into it. If a summary has replaced the message, the index behind
/// the summary.
fn behind_own(context: &[Arc<Message>], steered: usize) -> usize {
    let said = context.iter().enumerate().filter(|(_, message)| matches!(***message, Message::User(_)));
    let said: Vec<usize> = said.map(|(at, _)| at).collect();
    let own = said.len().saturating_sub(steered + 1);
    said.get(own).map_or(0, |at| at + 1)
}

/// True for an answer of a model that is complete and asks for nothing more.
fn is_whole_answer(message: &Message) -> bool {
    match message {
        Message::Assistant(answer) => {
            !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
                && answer.tool_calls().next().is_none()
        }
        Message::User(_) | Message::ToolResult(_) => false,
    }
}

/// An answer that came after its clients were told of a stop: it is kept like the beginning of one.
fn cut_short(answer: &Message) -> Message {
    let mut answer = answer.clone();
    if let Message::Assistant(answer) = &mut answer {
        answer.stop_reason = StopReason::Aborted;
    }
    answer
}

/// The id of the message that an entry belongs to: of those written again it comes first.
fn message_of(id: &EntryId) -> &str {
    const UUID: usize = 36;
    id.as_str().get(..UUID).unwrap_or(id.as_str())
}

/// Number of times a message is written at most: each time but the first because another session's
/// turn overtook its own.
const TIMES: usize = 8;

/// Returns the ids that the entry of a row's message may have if it is written for the first time;
/// the first free one is used.
pub(super) fn first_ids(row: &InboxRow) -> [EntryId; 2] {
    [EntryId::new(&row.entry_id), EntryId::new(row.fresh_id.as_str())]
}

/// Returns the entry ids that a row's message may have, in the order in which they are used.
fn entry_ids(row: &InboxRow) -> Vec<EntryId> {
    let more = (2..TIMES).map(|n| EntryId::new(format!("{}-{n}", row.fresh_id)));
    first_ids(row).into_iter().chain(more).collect()
}

impl openclaw_agent::Transcript for RunBranch {
    fn context(&self) -> &Arc<Vec<Arc<Message>>> {
        &self.context
    }

    fn own_from(&self) -> usize {
        self.own_from.unwrap_or(self.context.len())
    }

    fn append<'a>(&'a mut self, message: &'a Message, id: Option<&'a str>) -> Written<'a, ()> {
        Box::pin(async move {
            let is_answer = is_whole_answer(message);
            let mut late = None;
            loop {
                if is_answer && !self.control.end.answer() {
                    late = late.or_else(|| Some(Box::new(cut_short(message))));
                }
                let written = self.write(late.as_deref().unwrap_or(message), id).await;
                if !is_answer || written.is_err() {
                    self.control.end.give_up_answer();
                }
                let Err(error) = written else {
                    if is_answer && late.is_none() {
                        self.control.steering.answered();
                    }
                    return Ok(());
                };
                if !self.takes_it_again(&error).await {
                    return Err(error);
                }
            }
        })
    }

    fn append_ahead<'a>(&'a mut self, message: &'a Message) -> Written<'a, ()> {
        Box::pin(async move {
            self.settled().await?;
            self.check_alive()?;
            let message = Arc::new(self.explained(message));
            self.is_secured &= !matches!(*message, Message::Assistant(_));
            self.ahead = Some((Arc::clone(&message), self.transcript.begin_append(Arc::clone(&message))));
            Arc::make_mut(&mut self.context).push(message);
            self.control.end.give_up_answer();
            Ok(())
        })
    }

    fn settle(&mut self) -> Written<'_, ()> {
        Box::pin(self.settled())
    }

    fn secure(&mut self) -> Written<'_, ()> {
        Box::pin(async { if self.is_secured { Ok(()) } else { self.sync().await } })
    }

    fn view(&mut self) -> Written<'_, View> {
        Box::pin(async {
            self.settled().await?;
            let view = self.transcript.view().await;
            view.map_err(|error| self.error(io::Error::other(error)))
        })
    }

    fn compact(&mut self, compaction: Compaction) -> Written<'_, ()> {
        Box::pin(async move {
            self.settled().await?;
            let mut context = loop {
                self.check_alive()?;
                match self.transcript.compact(compaction.clone()).await {
                    Ok(context) => break context,
                    Err(error) => {
                        let error = self.error(io::Error::other(error));
                        if !self.takes_it_again(&error).await {
                            return Err(error);
                        }
                    }
                }
            };
            inject::without_preface(&mut context.messages);
            self.context = Arc::new(context.messages);
            if let Some(notes) = &mut self.compactions {
                let verbose = self.control.verbose.get().copied().unwrap_or_default();
                notes.add(verbose, &self.transcript.injector()).await;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use openclaw_journal::request::RunRequest;
    use openclaw_protocol::message::Block;
    use openclaw_protocol::{AgentId, RunId, SessionId, SessionKey};
    use openclaw_sessions::transcript::{MemoryLogs, NewTranscript, TranscriptLock, Transcripts};

    use super::*;

    fn row(name: &str, at: i64) -> InboxRow {
        InboxRow {
            run_id: RunId::new(name),
            session_key: SessionKey::parse(&format!("agent:main:{name}")).unwrap(),
            payload: RunRequest { text: name.to_owned(), ..RunRequest::default() },
            accepted_at: at,
            entry_id: format!("id-{name}"),
            fresh_id: SessionId::new(format!("fresh-{name}")),
            session_id: None,
            abort: None,
            answered: None,
            recovered: true,
            gathering: None,
        }
    }

    async fn opened(all: &Transcripts) -> RunBranch {
        let transcript = all.of_new(&AgentId::default(), &SessionId::new("s")).unwrap();
        let new = NewTranscript { session_id: "s".to_owned(), cwd: "/".to_owned(), parent: None };
        let lock = TranscriptLock::acquire_now(all, &transcript).await.unwrap();
        let transcript = lock.reopen(None, new).await.unwrap();
        let context = transcript.context().await.unwrap().messages;
        RunBranch::new(transcript, context, Arc::default(), CancellationToken::new())
    }

    fn answer(text: &str) -> Message {
        Message::Assistant(AssistantMessage {
            content: vec![Block::text(text)],
            ..AssistantMessage::default()
        })
    }

    fn last_text(branch: &RunBranch) -> String {
        match branch.context.last().map(Arc::as_ref) {
            Some(Message::Assistant(said)) => said.text(),
            other => format!("{other:?}"),
        }
    }

    /// Begins a turn as [`super::super::prepare`] does for a run whose message may have been
    /// written by an earlier process.
    async fn begin(branch: &mut RunBranch, row: &InboxRow) -> Prompted {
        let prompted = branch.prompted(row, None).await.unwrap();
        if let Prompted::NotYet(id) | Prompted::Overtaken(id) = &prompted {
            branch.begin_turn().await.unwrap();
            branch.say(UserMessage::text(row.run_id.as_str(), row.accepted_at), id).await.unwrap();
        }
        prompted
    }

    /// Clients are told of a run as its transcript shows it.
    #[tokio::test]
    async fn of_an_answer_and_a_stop_the_first_one_counts() {
        use openclaw_agent::Transcript as _;
        for is_stopped in [false, true] {
            let all = MemoryLogs::default().transcripts();
            let mut branch = opened(&all).await;
            begin(&mut branch, &row("one", 1)).await;
            assert!(!is_stopped || branch.control.end.stop());
            branch.append(&answer("to one"), None).await.unwrap();
            assert_eq!((last_text(&branch), branch.is_answered()), ("to one".to_owned(), !is_stopped));
            assert_eq!(branch.control.end.stop(), is_stopped);
            // A message that is steered in behind the answer is not answered yet.
            branch.append(&Message::User(UserMessage::text("more", 2)), None).await.unwrap();
            assert!(branch.control.end.stop());
        }
    }

    #[tokio::test]
    async fn what_is_written_ahead_is_in_order_and_leaves_the_context_where_it_is_refused() {
        use openclaw_agent::Transcript as _;
        let logs = MemoryLogs::default();
        let mut branch = opened(&logs.transcripts()).await;
        begin(&mut branch, &row("one", 1)).await;
        for text in ["first", "second"] {
            branch.append_ahead(&answer(text)).await.unwrap();
            assert_eq!(last_text(&branch), text);
        }
        branch.append(&answer("third"), None).await.unwrap();
        let on_disk = branch.transcript.context().await.unwrap().messages;
        assert_eq!(on_disk, *branch.context);
        assert_eq!(on_disk.len(), 4);

        branch.append_ahead(&answer("fourth")).await.unwrap();
        branch.settle().await.unwrap();
        logs.put(branch.transcript.transcript(), "no transcript\n");
        branch.append_ahead(&answer("fifth")).await.unwrap();
        assert!(branch.settle().await.is_err());
        assert_eq!(last_text(&branch), "fourth");
        branch.settle().await.unwrap();
    }

    /// Two keys lead to one transcript, and the crash came after the first answer or before it.
    #[tokio::test]
    async fn a_resumed_message_takes_its_own_answer_and_no_other() {
        for answered in [true, false] {
            let all = MemoryLogs::default().transcripts();
            let (one, two) = (row("one", 1), row("two", 2));
            let mut branch = opened(&all).await;
            assert_eq!(begin(&mut branch, &one).await, Prompted::NotYet("id-one".to_owned()));
            if answered {
                branch.write(&answer("to one"), None).await.unwrap();
            }
            drop(branch);

            let mut branch = opened(&all).await;
            assert_eq!(begin(&mut branch, &two).await, Prompted::NotYet("id-two".to_owned()));
            branch.write(&answer("to two"), None).await.unwrap();
            drop(branch);

            let mut branch = opened(&all).await;
            let prompted = begin(&mut branch, &one).await;
            if answered {
                assert_eq!((prompted, last_text(&branch)), (Prompted::Yes, "to one".to_owned()));
            } else {
                assert_eq!(prompted, Prompted::Overtaken("fresh-one".to_owned()));
                branch.write(&answer("to one at last"), None).await.unwrap();
            }
            drop(branch);

            // Once more, as after another crash.
            let mut branch = opened(&all).await;
            let expect = if answered { "to one" } else { "to one at last" };
            assert_eq!(branch.prompted(&one, None).await.unwrap(), Prompted::Yes);
            assert_eq!(last_text(&branch), expect);
            drop(branch);
            let mut branch = opened(&all).await;
            assert_eq!(branch.prompted(&two, None).await.unwrap(), Prompted::Yes);
            assert_eq!(last_text(&branch), "to two");
        }
    }
}
