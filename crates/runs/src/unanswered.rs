//! Messages whose run never began: they were said, so they are in the history. One whose whole
//! answer an earlier process has written ends with that, without a model.

mod records;

use std::sync::Arc;

use openclaw_agent::{Outcome, ReplyPayload, RunEvent};
use openclaw_delivery::outbox::{Outbox, Paced};
use openclaw_journal::api::{AbortReason, RunOutcome};
use openclaw_journal::inbox::{InboxRow, Queued};
use openclaw_journal::journal::Journal;
use openclaw_protocol::message::{AssistantMessage, StopReason};
use openclaw_sessions::store::{Edit, Refused};
use openclaw_sessions::time::now_ms;
use openclaw_sessions::{SessionKey, SessionStore, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::replies::left_of_resumed;
use super::stored_messages::StoredMessages;
use crate::blocked::ObstacleWaits;
use crate::control::RunControl;
use crate::ending::{RunEnding, RunEnds};
use crate::not_begun::NotBegun;
use crate::obstacle::Obstacle;
use crate::result;
use crate::said::FinalReplies;
use openclaw_runtime::messages::turn::MessageTurn;

pub(crate) use records::UnansweredRecords;

/// Parts for ending messages that no model answers.
pub(crate) struct Unanswered {
    records: UnansweredRecords,
    messages: Arc<StoredMessages>,
    ends: Arc<RunEnds>,
    waits: Arc<ObstacleWaits>,
    store: Arc<dyn SessionStore>,
    journal: Arc<dyn Journal>,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl Unanswered {
    pub(crate) fn new(
        records: UnansweredRecords,
        messages: Arc<StoredMessages>,
        ends: Arc<RunEnds>,
        waits: Arc<ObstacleWaits>,
        store: Arc<dyn SessionStore>,
        journal: Arc<dyn Journal>,
        kill: CancellationToken,
    ) -> Self {
        Self { records, messages, ends, waits, store, journal, kill }
    }

    /// Cancelled when runs stop where they are.
    pub(crate) fn kill(&self) -> &CancellationToken {
        &self.kill
    }

    /// Writes the message of a stopped row into the transcript, unless it is there, and closes the row. What was said to the gateway
    /// is nothing the agent should read. An answer that an earlier process has written is left to be
    /// sent: clients may have been told it.
    pub(super) async fn close(
        &self,
        row: &InboxRow<Queued>,
        reason: AbortReason,
        control: &RunControl,
    ) -> RunEnding {
        let facts = &row.payload.facts;
        if !facts.wants.command {
            match self.record(row, UnansweredReason::Stopped(reason), control).await {
                Recorded::Done | Recorded::Broken(_) => {}
                Recorded::Answered(_) => return RunEnding::Unsent,
                Recorded::NotYet => return RunEnding::Interrupted,
            }
            if reason.is_by_a_person() && facts.beat.is_none() {
                self.note_stop(&row.session_key).await;
            }
        }
        self.ends.done(row, None, result::aborted(reason, None)).await
    }

    /// Writes the message of a row that could not begin into the transcript, with the error as its
    /// answer, and closes the row. OpenClaw 2026.2.9 forgets the message, so that neither people nor
    /// the agent could see later what was asked. A heartbeat is no person's message, and would fill the
    /// conversation with its errors.
    pub(super) async fn fail(
        &self,
        row: &InboxRow<Queued>,
        message: String,
        is_beat: bool,
        control: &RunControl,
        events: &mpsc::Sender<RunEvent>,
    ) -> RunEnding {
        let recorded = match is_beat {
            true => Recorded::Done,
            false => self.record(row, UnansweredReason::Failed(&message), control).await,
        };
        self.end(row, recorded, message, events).await
    }

    /// Ends a message that is recorded: with this error, unless it has its answer.
    pub(super) async fn end(
        &self,
        row: &InboxRow<Queued>,
        recorded: Recorded,
        message: String,
        events: &mpsc::Sender<RunEvent>,
    ) -> RunEnding {
        match recorded {
            Recorded::Done => self.ends.failed(row, message).await,
            Recorded::NotYet => RunEnding::Interrupted,
            Recorded::Broken(said) => {
                let (turn, said) = *said;
                let (_, mut payloads) = left_of_resumed(&*self.journal, &turn, said).await;
                payloads.push(ReplyPayload {
                    text: message.clone(),
                    is_error: true,
                    ..ReplyPayload::default()
                });
                let said = FinalReplies {
                    payloads: Some(payloads),
                    quoted: turn.quoted.clone(),
                    has_spoken: true,
                    ..FinalReplies::default()
                };
                let started_at = Some(self.ends.now_ms());
                let outcome = RunOutcome::Error { message, result: None };
                let record = self.ends.record(row, started_at, outcome);
                self.ends.finish(row, &record, said).await;
                RunEnding::Done(record)
            }
            Recorded::Answered(standing) => {
                tracing::info!(run_id = %row.run_id, session = %row.session_key, "the answer was there already: it is sent");
                for event in standing.events {
                    // A lane that is gone hears nothing any more.
                    let _ = events.send(event).await;
                }
                let (started_at, outcome) =
                    (standing.ended.started_at, result::outcome(&standing.ended, None));
                let turn = standing.turn;
                let payloads = match standing.is_told {
                    true => Vec::new(),
                    false => left_of_resumed(&*self.journal, &turn, standing.ended.payloads).await.1,
                };
                let said = FinalReplies {
                    payloads: Some(payloads),
                    quoted: turn.quoted.clone(),
                    ..FinalReplies::default()
                };
                let record = self.ends.record(row, Some(started_at), outcome);
                self.ends.finish(row, &record, said).await;
                RunEnding::Done(record)
            }
        }
    }

    /// Writes a message into the transcript, with its answer if there is one, unless they are there.
    /// Waits for space and for a transcript that another process has.
    pub(super) async fn record(
        &self,
        row: &InboxRow<Queued>,
        why: UnansweredReason<'_>,
        control: &RunControl,
    ) -> Recorded {
        loop {
            let recorded = async {
                let row = InboxRow { abort: why.abort(), ..self.messages.load(row).await? };
                self.records.record_unanswered(&row, why, &control.cancel).await
            };
            let recorded = tokio::select! { biased;
                () = self.kill.cancelled() => return Recorded::NotYet,
                recorded = recorded => recorded,
            };
            match recorded {
                Ok(recorded) => return recorded,
                Err(_) if self.kill.is_cancelled() => return Recorded::NotYet,
                Err(NotBegun { obstacle: Some(obstacle), .. }) => {
                    if self.waits.gone(&obstacle, row, control).await.is_err() {
                        return Recorded::NotYet;
                    }
                }
                Err(NotBegun { message, .. }) => {
                    tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a message that was not answered is not in the history");
                    return Recorded::Done;
                }
            }
        }
    }

    /// Stopped while it waited for its turn.
    pub(crate) async fn stopped_early(&self, row: &InboxRow<Queued>, control: &RunControl) -> RunEnding {
        if self.kill.is_cancelled() {
            return RunEnding::Interrupted;
        }
        let reason = control.reason.get().copied().unwrap_or(AbortReason::Stop);
        // Boxed: every run would carry it, and it is rare.
        Box::pin(self.close(row, reason, control)).await
    }

    /// Waits until it is time to try again. Fails with how the message ends when it is stopped meanwhile, or the gateway is.
    pub(crate) async fn passed(
        &self,
        obstacle: &Obstacle,
        row: &InboxRow<Queued>,
        control: &RunControl,
    ) -> Result<(), RunEnding> {
        tokio::select! { biased;
            () = control.cancel.cancelled() => Err(self.stopped_early(row, control).await),
            gone = self.waits.gone(obstacle, row, control) => gone,
        }
    }

    /// Notes that a person stopped the turn, so that the next one is told.
    async fn note_stop(&self, key: &SessionKey) {
        let change = Box::new(|edit: Edit<'_>| {
            if edit.is_new {
                return Err(Refused("the session was deleted meanwhile".to_owned()));
            }
            edit.entry.touch(edit.now);
            edit.entry.aborted_last_run = Some(true);
            Ok(())
        });
        match self.store.record(key, change).await {
            Ok(_) | Err(StoreError::Refused(_)) => {}
            Err(error) => tracing::warn!(session = %key, %error, "the next turn is not told of a stop"),
        }
    }
}

/// State of a message in the transcript when it was to be written there.
pub(super) enum Recorded {
    /// The message is there, or can't be.
    Done,
    /// The message is there with its answer, which nothing takes back.
    Answered(Box<StandingAnswer>),
    /// The message is there with words of a run that does not come to its end, and that were not
    /// told unless they were sent as blocks.
    Broken(Box<(Arc<MessageTurn>, Vec<ReplyPayload>)>),
    /// The gateway stops, and the next start does it.
    NotYet,
}

/// Whole answer that an earlier process has written.
pub(super) struct StandingAnswer {
    ended: Outcome,
    /// Events by which clients are told.
    events: Vec<RunEvent>,
    turn: Arc<MessageTurn>,
    /// True if another run has told it.
    is_told: bool,
}

/// Reason for which a message has no answer of a model.
#[derive(Debug, Clone, Copy)]
pub(super) enum UnansweredReason<'a> {
    /// Stopped. The beginning of its turn is done: a stopped message begins a new conversation if
    /// it asks for one. A stop by a person is noted behind it, as behind a run: the next turn does
    /// not answer it.
    Stopped(AbortReason),
    /// The run could not begin. People are told this.
    Failed(&'a str),
    /// The process died of it too often. As stopped, and people are told this.
    GivenUp(&'a str),
}

impl UnansweredReason<'_> {
    fn abort(self) -> Option<AbortReason> {
        match self {
            Self::Stopped(reason) => Some(reason),
            Self::Failed(_) => None,
            Self::GivenUp(_) => Some(AbortReason::Stop),
        }
    }

    /// Returns the answer that is written to the message.
    fn answer(self) -> Option<AssistantMessage> {
        let (stop_reason, error_message) = match self {
            Self::Stopped(reason) if reason.is_by_a_person() => (StopReason::Aborted, None),
            Self::Stopped(_) => return None,
            Self::Failed(why) | Self::GivenUp(why) => (StopReason::Error, Some(why.to_owned())),
        };
        let provider = "openclaw".to_owned();
        let timestamp = now_ms();
        Some(AssistantMessage {
            provider,
            stop_reason,
            error_message,
            timestamp,
            ..AssistantMessage::default()
        })
    }

    /// True for a stop. An answer that is there is sent all the same.
    fn is_stop(self) -> bool {
        match self {
            Self::Stopped(_) => true,
            Self::Failed(_) | Self::GivenUp(_) => false,
        }
    }
}

/// Takes back the rest of a session's paced answer, because something takes its place. A mere
/// stop takes nothing back of an answer that is whole.
pub async fn take_back_paced(outbox: &Outbox, key: &SessionKey) {
    if let Err(error) = outbox.withdraw(Paced::InSession(key)).await {
        tracing::warn!(session = %key, %error, "what an answer had left is said");
    }
}
