//! Records of messages without an answer, in the transcripts of their sessions.

use std::sync::Arc;

use openclaw_agent::Transcript as _;
use openclaw_journal::clock::Clock;
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::journal::Journal;
use openclaw_protocol::SessionId;
use openclaw_runtime::setup::LiveSettings;
use openclaw_sessions::transcript::{NewTranscript, TranscriptLock, Transcripts};
use tokio_util::sync::CancellationToken;

use super::{Recorded, StandingAnswer, UnansweredReason};
use crate::branch::{Prompted, RunBranch};
use crate::kept::KeptTranscripts;
use crate::message_tool::message_turn;
use crate::not_begun::NotBegun;
use crate::prepare::circumstances;
use crate::session::SessionOpener;
use crate::stored_messages::entries_since;
use crate::taken;
use crate::wording::{self, Circumstances};

/// Parts for writing messages without an answer into their transcripts.
pub(crate) struct UnansweredRecords {
    settings: LiveSettings,
    sessions: Arc<SessionOpener>,
    transcripts: Transcripts,
    kept: Arc<KeptTranscripts>,
    journal: Arc<dyn Journal>,
    clock: Clock,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl UnansweredRecords {
    pub(crate) fn new(
        settings: LiveSettings,
        sessions: Arc<SessionOpener>,
        transcripts: Transcripts,
        kept: Arc<KeptTranscripts>,
        journal: Arc<dyn Journal>,
        clock: Clock,
        kill: CancellationToken,
    ) -> Self {
        Self { settings, sessions, transcripts, kept, journal, clock, kill }
    }

    /// Returns the answer that the message's turn ends with; `None` if there is no whole one.
    async fn standing(
        &self,
        row: &InboxRow,
        branch: &mut RunBranch,
        session_id: SessionId,
    ) -> Result<Option<StandingAnswer>, NotBegun> {
        let now = self.clock.now_ms();
        let Some((events, ended)) = branch.standing_answer(session_id, now) else { return Ok(None) };
        branch.sync().await?;
        taken::takes_on(&*self.journal, row, branch.steered()).await;
        let turn = message_turn(row);
        branch.tell(&turn);
        let is_told = taken::is_told_by_another(&*self.journal, row, branch.context()).await;
        Ok(Some(StandingAnswer { ended, events, turn, is_told }))
    }

    pub(super) async fn record_unanswered(
        &self,
        row: &InboxRow,
        why: UnansweredReason<'_>,
        stop: &CancellationToken,
    ) -> Result<Recorded, NotBegun> {
        let answer = why.answer();
        let session = self.sessions.session(row, &self.settings.now(), None, stop).await?;
        session.note(&*self.journal, row).await?;
        let is_bare_reset = session.reset.as_deref().is_some_and(|rest| rest.trim().is_empty());
        if is_bare_reset && why.is_stop() {
            // Nothing was said but that.
            return Ok(Recorded::Done);
        }
        let lock = TranscriptLock::acquire_now(&self.transcripts, &session.transcript).await?;
        let new = NewTranscript {
            session_id: session.id.as_str().to_owned(),
            cwd: session.agent.workspace.display().to_string(),
            parent: None,
        };
        let (kept, asked) = self.kept.take(&session.transcript).unzip();
        let transcript = lock.reopen(kept, new).await?;
        let context = match answer.is_some() || row.recovered {
            true => transcript.context().await?.messages,
            false => Vec::new(),
        };
        let mut branch = RunBranch::new(transcript, context, Arc::default(), self.kill.clone());
        let mut words = Vec::new();
        let (unsaid, answer) = match branch.prompted(row, entries_since(&*self.journal, row).await).await? {
            Prompted::NotYet(id) => (Some(id), answer),
            // A message that somebody stopped is not written once more for that.
            Prompted::Overtaken(_) if why.is_stop() => (None, None),
            // The answer has to follow the message.
            Prompted::Overtaken(id) => (answer.is_some().then_some(id), answer),
            Prompted::Yes => {
                if let Some(standing) = self.standing(row, &mut branch, session.id.clone()).await? {
                    self.kept.put(branch.into_transcript(), asked.unwrap_or_default());
                    return Ok(Recorded::Answered(Box::new(standing)));
                }
                if !why.is_stop() {
                    words = branch.standing_words(self.clock.now_ms());
                }
                (None, answer)
            }
            Prompted::Failed(_) => (None, None),
        };
        if let Some(id) = unsaid {
            branch.begin_turn().await?;
            // A note that somebody stopped the run before is for the next run.
            let circumstances = Circumstances { after_abort: false, ..circumstances(&session) };
            branch.say(wording::message(row, &circumstances), &id).await?;
        }
        if let Some(answer) = answer {
            branch.close_turn(answer).await?;
        }
        branch.sync().await?;
        let turn = (!words.is_empty()).then(|| message_turn(row));
        if let Some(turn) = &turn {
            branch.tell(turn);
        }
        self.kept.put(branch.into_transcript(), asked.unwrap_or_default());
        Ok(turn.map_or(Recorded::Done, |turn| Recorded::Broken(Box::new((turn, words)))))
    }
}
