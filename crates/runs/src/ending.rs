//! Ends of messages, stored before anybody hears of them.

use std::sync::Arc;

use openclaw_journal::api::{RunOutcome, RunRecord};
use openclaw_journal::clock::Clock;
use openclaw_journal::inbox::{InboxRow, RequestForm};
use openclaw_journal::journal::{Journal, JournalError, Update};
use openclaw_protocol::message::Message;

use crate::acknowledge::Acknowledgements;
use crate::compaction::AfterRun;
use crate::replies::Replies;
use crate::said::FinalReplies;
use crate::talk_step::Talks;

/// End of the work on a message.
#[derive(Debug)]
pub enum RunEnding {
    /// Done, with a result that is stored.
    Done(RunRecord),
    /// Done, with a result that is stored, and with a conversation that has to be compacted once
    /// clients have heard of it.
    Full(RunRecord, Box<AfterRun>),
    /// The compaction after a run is done.
    Compacted,
    /// Answered by the gateway itself, with these words; `None` if the sender may not give
    /// commands.
    Answered(RunRecord, Option<Box<Message>>),
    /// Interrupted by a shutdown; the message is taken up again by the next start.
    Interrupted,
    /// Stopped, but an earlier process has written the answer, which is still to be sent: [`Runner::work`](crate::Runner::work)
    /// does that.
    Unsent,
}

/// Storing the ends of runs, with all that follows from them.
pub struct RunEnds {
    journal: Arc<dyn Journal>,
    clock: Clock,
    replies: Replies,
    talks: Talks,
    acks: Arc<Acknowledgements>,
}

impl RunEnds {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        clock: Clock,
        replies: Replies,
        talks: Talks,
        acks: Arc<Acknowledgements>,
    ) -> Self {
        Self { journal, clock, replies, talks, acks }
    }

    /// Returns the time, in Unix milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Stores the answer of the gateway itself to a message, before anybody is told it.
    ///
    /// # Errors
    ///
    /// The disk refuses.
    pub(crate) async fn answered(
        &self,
        row: &InboxRow,
        record: RunRecord,
        said: FinalReplies,
    ) -> Result<(), JournalError> {
        let replies = self.replies.replies(row, &record, said).await;
        self.journal.update(Update::Answered(record, replies)).await?;
        self.acks.no_longer_acknowledged(row).await;
        Ok(())
    }

    /// Ended while it was prepared; the text is for people.
    pub(crate) async fn failed<P: RequestForm>(&self, row: &InboxRow<P>, message: String) -> RunEnding {
        let started_at = Some(self.clock.now_ms());
        self.done(row, started_at, RunOutcome::Error { message, result: None }).await
    }

    pub(crate) fn record<P>(
        &self,
        row: &InboxRow<P>,
        started_at: Option<i64>,
        outcome: RunOutcome,
    ) -> RunRecord {
        let ended_at = self.clock.now_ms();
        RunRecord { run_id: row.run_id.clone(), started_at, ended_at, outcome, report: None }
    }

    pub(crate) async fn done<P: RequestForm>(
        &self,
        row: &InboxRow<P>,
        started_at: Option<i64>,
        outcome: RunOutcome,
    ) -> RunEnding {
        let record = self.record(row, started_at, outcome);
        self.finish(row, &record, FinalReplies::default()).await;
        RunEnding::Done(record)
    }

    /// Notes the end of a run, with the replies to its chat platform. The next steps that follow from
    /// it are stored first, and begin afterwards. Should the disk refuse, it is tried again.
    pub async fn finish<P: RequestForm>(&self, row: &InboxRow<P>, record: &RunRecord, said: FinalReplies) {
        let replies = self.replies.replies(row, record, said).await;
        let following = match self.talks.next_step(row, record).await {
            Some(step) => self.talks.placed(step).await,
            None => None,
        };
        let (run_id, record) = (&record.run_id, RunRecord { report: None, ..record.clone() });
        let others = row.others();
        let update = match others.is_empty() {
            true => Update::Finish(record, replies),
            false => Update::FinishAll(record, others, replies),
        };
        // Both go into the journal one behind the other, in one transaction.
        let following = async {
            if let Some(following) = following {
                following.await;
            }
        };
        let (stored, ()) = tokio::join!(self.journal.update(update), following);
        self.acks.no_longer_acknowledged(row).await;
        if let Err(error) = stored {
            // The writer tries again; after a crash the answer is found in the transcript.
            tracing::warn!(%run_id, %error, "a run is not stored as finished yet");
        }
    }
}
