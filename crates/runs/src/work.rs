//! Work on one message, from its lane to the stored result. The order of the steps is the promise
//! of `docs/durability.md`.

use std::sync::Arc;

use openclaw_agent::event::RunEvent;
use openclaw_journal::api::RunOutcome;
use openclaw_journal::inbox::{InboxRow, Queued};
use openclaw_journal::job::Job;
use openclaw_journal::journal::{Journal, JournalError};
use openclaw_runtime::global_lanes::{GlobalLanes, LanePermit, RunWait};
use openclaw_runtime::registry::Registry;
use openclaw_runtime::session_model::SessionModels;
use openclaw_runtime::setup::LiveSettings;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::attempt::{self, GivenUp, Suspects};
use crate::command::GatewayCommands;
use crate::control::RunControl;
use crate::ending::{RunEnding, RunEnds};
use crate::memory_flush::MemoryFlushes;
use crate::message_route::MessageRoute;
use crate::not_begun::NotBegun;
use crate::obstacle::Obstacle;
use crate::prepare::{Flush, Preparation, Preparer};
use crate::stored_messages::StoredMessages;
use crate::turn::Turns;
use crate::unanswered::Unanswered;
use crate::waiting::WaitingSigns;
use crate::{gathered, given_up, message_route};

/// Parts that drive one message from its lane to its stored result.
pub struct Runner {
    pub(crate) settings: LiveSettings,
    pub(crate) models: Arc<SessionModels>,
    pub(crate) messages: Arc<StoredMessages>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) registry: Arc<Registry>,
    /// Lanes that all sessions share.
    pub(crate) lanes: Arc<GlobalLanes>,
    /// Messages that may end the process.
    pub(crate) suspects: Arc<Suspects>,
    pub(crate) signs: Arc<WaitingSigns>,
    pub(crate) commands: Arc<GatewayCommands>,
    pub(crate) preparer: Arc<Preparer>,
    pub(crate) flushes: MemoryFlushes,
    pub(crate) turns: Turns,
    pub(crate) unanswered: Arc<Unanswered>,
    pub(crate) ends: Arc<RunEnds>,
    /// Cancelled when runs stop where they are. Parent of every run's token.
    pub(crate) kill: CancellationToken,
}

impl Runner {
    /// Works on one message.
    pub async fn work(
        &self,
        job: &Job,
        control: &Arc<RunControl>,
        events: mpsc::Sender<RunEvent>,
    ) -> RunEnding {
        match self.work_or_close(job, control, events.clone()).await {
            RunEnding::Unsent => Box::pin(self.send_answer(job, control, events)).await,
            ending => ending,
        }
    }

    /// Ends a message whose answer stands in the transcript as its run would have, whatever has stopped
    /// it since: clients may have been told the answer. No model is called.
    async fn send_answer(
        &self,
        job: &Job,
        stopped: &RunControl,
        events: mpsc::Sender<RunEvent>,
    ) -> RunEnding {
        tracing::info!(run_id = %job.row.run_id, session = %job.row.session_key, "the answer was there before the run was stopped: it is sent");
        stopped.end.answer();
        let control = Arc::new(RunControl::new(self.kill.child_token(), stopped.has_waited));
        let row = InboxRow { abort: None, ..InboxRow::clone(&job.row) };
        let job = Job { row: Arc::new(row), ..job.clone() };
        self.answered_or_run(&job, &control, None, events).await
    }

    async fn work_or_close(
        &self,
        job: &Job,
        control: &Arc<RunControl>,
        events: mpsc::Sender<RunEvent>,
    ) -> RunEnding {
        let waiting = &job.row;
        if let Some(given_up) = GivenUp::after(waiting.payload.attempts) {
            return Box::pin(given_up::close(
                (&self.unanswered, &self.ends),
                &*self.journal,
                waiting,
                given_up,
                control,
                &events,
            ))
            .await;
        }
        if let Err(ending) = gathered::decide(&*self.journal, &self.unanswered, waiting, control).await {
            return ending;
        }
        // A stop and what the gateway does by itself need no permit of a lane. (Nor has a command that is none any more because the
        // settings have changed since.)
        let permit = if waiting.abort.is_some() || waiting.payload.facts.wants.is_light() {
            None
        } else {
            match self.enter_lane(job, control).await {
                Ok(permit) => Some(permit),
                Err(ending) => return ending,
            }
        };
        // Nothing was done for it so far: who only waits does not die of it.
        self.registry.take_up(&waiting.run_id);
        control.attempt.begin((&self.suspects, &*self.journal), waiting, &control.cancel).await;
        // A stop comes too late for what its reader was told already: all that is left is to write it into the transcript.
        match waiting.abort.filter(|_| waiting.answered.is_none()) {
            Some(reason) => Box::pin(self.unanswered.close(waiting, reason, control)).await,
            // Boxed, so that who waits for a permit takes little memory.
            None => Box::pin(self.answered_or_run(job, control, permit, events)).await,
        }
    }

    /// Waits for a permit of the message's global lane; fails with how the message ends when it is stopped meanwhile.
    async fn enter_lane(&self, job: &Job, control: &RunControl) -> Result<LanePermit, RunEnding> {
        let lane = job.row.payload.facts.lane();
        tokio::select! { biased;
            () = control.cancel.cancelled() => Err(self.unanswered.stopped_early(&job.row, control).await),
            permit = async {
                job.gate.cancelled().await;
                self.signs.shown_to_wait(&job.row, self.lanes.acquire(lane)).await
            } => {
                if let Some(waited) = permit.waited {
                    // The first wait is told.
                    let _ = control.lane_wait.set(RunWait::Place(waited));
                }
                Ok(permit)
            }
        }
    }

    /// Does the work that a message asks for, which may be for the gateway alone. Gives its permit back
    /// while it can't begin.
    async fn answered_or_run(
        &self,
        job: &Job,
        control: &Arc<RunControl>,
        mut permit: Option<LanePermit>,
        events: mpsc::Sender<RunEvent>,
    ) -> RunEnding {
        let row = match self.messages.load(&job.row).await {
            Ok(row) => row,
            Err(error) => return self.unreadable(&job.row, error).await,
        };
        let requested = match message_route::route(&self.models.all, &self.settings.now(), &row).await {
            MessageRoute::Agent(requested) => requested,
            MessageRoute::Gateway { refusal } => {
                if row.payload.compacts() && row.answered.is_none() && permit.is_none() {
                    permit = match self.enter_lane(job, control).await {
                        Ok(permit) => Some(permit),
                        Err(ending) => return ending,
                    };
                }
                let _permit = permit.filter(|_| row.payload.compacts());
                return self.commands.work(job, &row, control, refusal, &events).await;
            }
        };
        let mut flush = Flush::IfDue;
        loop {
            self.registry.running(&row.run_id);
            let preparing = Box::pin(self.preparer.prepare(&row, control, requested.clone(), flush));
            let obstacle = match control
                .attempt
                .within(attempt::PATIENCE, &*self.journal, &job.row, preparing)
                .await
            {
                Ok(Preparation::Ready(prepared)) => {
                    return self.turns.drive(&row, prepared, permit, control, events).await;
                }
                Ok(Preparation::FlushFirst(session_id)) => {
                    let flushing = self.flushes.work(&row, &session_id, control, requested.clone());
                    self.signs.shown_to_wait(&job.row, flushing).await;
                    flush = Flush::Done;
                    continue;
                }
                Ok(Preparation::Stopped) => {
                    drop(permit);
                    return self.unanswered.stopped_early(&job.row, control).await;
                }
                Err(_) if self.kill.is_cancelled() => return RunEnding::Interrupted,
                Err(NotBegun { obstacle: Some(obstacle), .. }) => obstacle,
                Err(NotBegun { message, is_refusal, .. }) => {
                    tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "run could not begin");
                    if is_refusal {
                        return self.ends.done(&row, None, RunOutcome::Error { message, result: None }).await;
                    }
                    // Boxed: it is as large as a turn and rare.
                    let is_beat = row.payload.source.beat().is_some();
                    return Box::pin(self.unanswered.fail(&job.row, message, is_beat, control, &events))
                        .await;
                }
            };
            drop(permit.take());
            permit = match self.enter_lane_after(obstacle, job, control).await {
                Ok(permit) => Some(permit),
                Err(ending) => return ending,
            };
        }
    }

    /// Waits for an obstacle to pass, then for a permit.
    async fn enter_lane_after(
        &self,
        obstacle: Obstacle,
        job: &Job,
        control: &RunControl,
    ) -> Result<LanePermit, RunEnding> {
        self.unanswered.passed(&obstacle, &job.row, control).await?;
        self.enter_lane(job, control).await
    }

    /// Ends a message whose request can't be read from disk any more.
    async fn unreadable(&self, row: &InboxRow<Queued>, error: JournalError) -> RunEnding {
        if error == JournalError::Closed || self.kill.is_cancelled() {
            return RunEnding::Interrupted;
        }
        tracing::error!(run_id = %row.run_id, session = %row.session_key, %error, "a message could not be read");
        self.ends
            .failed(row, format!("Error: the message could not be read from gateway.sqlite: {error}"))
            .await
    }
}
