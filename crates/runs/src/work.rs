//! Work on one message, from its lane to the stored result. The order of the steps is the promise
//! of `docs/durability.md`.

use std::sync::Arc;

use openclaw_agent::Transcript as _;
use openclaw_agent::event::{RunEnd, RunEvent};
use openclaw_journal::api::{AbortReason, RunOutcome, RunRecord};
use openclaw_journal::beat::BeatAnswer;
use openclaw_journal::inbox::{InboxRow, Queued};
use openclaw_journal::job::Job;
use openclaw_journal::journal::JournalError;
use openclaw_journal::request::MAIN_LANE;
use openclaw_runtime::events::Verbose;
use openclaw_runtime::global_lanes::{LanePermit, RunWait};
use tokio::sync::mpsc;

use crate::agent_call::run_agent;
use crate::attempt::{self, GivenUp};
use crate::command::{self, MessageRoute};
use crate::compaction::{AfterRun, ToldChat};
use crate::control::RunControl;
use crate::ending::{RunEnding, done, failed, finish, record};
use crate::lent::LanePlace;
use crate::live::{Live, Shows};
use crate::not_begun::NotBegun;
use crate::obstacle::Obstacle;
use crate::prepare::{Flush, Preparation, Prepared};
use crate::replies::is_worth_telling;
use crate::runner::Runner;
use crate::said::FinalReplies;
use crate::start_over::DeadEnd;
use crate::unanswered::{passed, stopped_early};
use crate::{gathered, given_up, hooks, memory_flush, prepare, result, unanswered};

/// Number of events of a run that may wait for its follower.
const FOLLOWED: usize = 64;

/// Works on one message.
pub async fn work(
    runner: &Runner,
    job: &Job,
    control: &Arc<RunControl>,
    events: mpsc::Sender<RunEvent>,
) -> RunEnding {
    match work_or_close(runner, job, control, events.clone()).await {
        RunEnding::Unsent => Box::pin(send_answer(runner, job, control, events)).await,
        ending => ending,
    }
}

/// Ends a message whose answer stands in the transcript as its run would have, whatever has stopped
/// it since: clients may have been told the answer. No model is called.
async fn send_answer(
    runner: &Runner,
    job: &Job,
    stopped: &RunControl,
    events: mpsc::Sender<RunEvent>,
) -> RunEnding {
    tracing::info!(run_id = %job.row.run_id, session = %job.row.session_key, "the answer was there before the run was stopped: it is sent");
    stopped.end.answer();
    let control = Arc::new(RunControl::new(runner.shared.kill.child_token(), stopped.has_waited));
    let row = InboxRow { abort: None, ..InboxRow::clone(&job.row) };
    let job = Job { row: Arc::new(row), ..job.clone() };
    answered_or_run(runner, &job, &control, None, events).await
}

async fn work_or_close(
    runner: &Runner,
    job: &Job,
    control: &Arc<RunControl>,
    events: mpsc::Sender<RunEvent>,
) -> RunEnding {
    let waiting = &job.row;
    if let Some(given_up) = GivenUp::after(waiting.payload.attempts) {
        return Box::pin(given_up::close(runner, waiting, given_up, control, &events)).await;
    }
    if let Err(ending) = gathered::decide(runner, waiting, control).await {
        return ending;
    }
    // A stop and what the gateway does by itself need no permit of a lane. (Nor has a command that is none any more because the
    // settings have changed since.)
    let permit = if waiting.abort.is_some() || waiting.payload.facts.wants.is_light() {
        None
    } else {
        match enter_lane(runner, job, control).await {
            Ok(permit) => Some(permit),
            Err(ending) => return ending,
        }
    };
    // Nothing was done for it so far: who only waits does not die of it.
    runner.shared.registry.take_up(&waiting.run_id);
    control.attempt.begin((&runner.suspects, &*runner.shared.journal), waiting, &control.cancel).await;
    // A stop comes too late for what its reader was told already: all that is left is to write it into the transcript.
    match waiting.abort.filter(|_| waiting.answered.is_none()) {
        Some(reason) => Box::pin(unanswered::close(runner, waiting, reason, control)).await,
        // Boxed, so that who waits for a permit takes little memory.
        None => Box::pin(answered_or_run(runner, job, control, permit, events)).await,
    }
}

/// Waits for a permit of the message's global lane; fails with how the message ends when it is stopped meanwhile.
async fn enter_lane(runner: &Runner, job: &Job, control: &RunControl) -> Result<LanePermit, RunEnding> {
    let lane = job.row.payload.facts.lane();
    tokio::select! { biased;
        () = control.cancel.cancelled() => Err(stopped_early(runner, &job.row, control).await),
        permit = async {
            job.gate.cancelled().await;
            runner.shown_to_wait(&job.row, runner.shared.global.acquire(lane)).await
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
    runner: &Runner,
    job: &Job,
    control: &Arc<RunControl>,
    mut permit: Option<LanePermit>,
    events: mpsc::Sender<RunEvent>,
) -> RunEnding {
    let row = match runner.load(&job.row).await {
        Ok(row) => row,
        Err(error) => return unreadable(runner, &job.row, error).await,
    };
    let requested = match runner.route(&row).await {
        MessageRoute::Agent(requested) => requested,
        MessageRoute::Gateway { refusal } => {
            if row.payload.compacts() && row.answered.is_none() && permit.is_none() {
                permit = match enter_lane(runner, job, control).await {
                    Ok(permit) => Some(permit),
                    Err(ending) => return ending,
                };
            }
            let _permit = permit.filter(|_| row.payload.compacts());
            return command::work(runner, job, &row, control, refusal, &events).await;
        }
    };
    let mut flush = Flush::IfDue;
    loop {
        runner.shared.registry.running(&row.run_id);
        let preparing = Box::pin(runner.prepare(&row, control, requested.clone(), flush));
        let obstacle = match control
            .attempt
            .within(attempt::PATIENCE, &*runner.shared.journal, &job.row, preparing)
            .await
        {
            Ok(Preparation::Ready(prepared)) => {
                return drive(runner, &row, prepared, permit, control, events).await;
            }
            Ok(Preparation::FlushFirst(session_id)) => {
                let flushing = memory_flush::work(runner, &row, &session_id, control, requested.clone());
                runner.shown_to_wait(&job.row, flushing).await;
                flush = Flush::Done;
                continue;
            }
            Ok(Preparation::Stopped) => {
                drop(permit);
                return stopped_early(runner, &job.row, control).await;
            }
            Err(_) if runner.shared.kill.is_cancelled() => return RunEnding::Interrupted,
            Err(NotBegun { obstacle: Some(obstacle), .. }) => obstacle,
            Err(NotBegun { message, is_refusal, .. }) => {
                tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "run could not begin");
                if is_refusal {
                    return done(runner, &row, None, RunOutcome::Error { message, result: None }).await;
                }
                // Boxed: it is as large as a turn and rare.
                let is_beat = row.payload.source.beat().is_some();
                return Box::pin(unanswered::fail(runner, &job.row, message, is_beat, control, &events))
                    .await;
            }
        };
        drop(permit.take());
        permit = match enter_lane_after(obstacle, runner, job, control).await {
            Ok(permit) => Some(permit),
            Err(ending) => return ending,
        };
    }
}

/// Waits for an obstacle to pass, then for a permit.
async fn enter_lane_after(
    obstacle: Obstacle,
    runner: &Runner,
    job: &Job,
    control: &RunControl,
) -> Result<LanePermit, RunEnding> {
    passed(&obstacle, runner, &job.row, control).await?;
    enter_lane(runner, job, control).await
}

/// Ends a message whose request can't be read from disk any more.
async fn unreadable(runner: &Runner, row: &InboxRow<Queued>, error: JournalError) -> RunEnding {
    if error == JournalError::Closed || runner.shared.kill.is_cancelled() {
        return RunEnding::Interrupted;
    }
    tracing::error!(run_id = %row.run_id, session = %row.session_key, %error, "a message could not be read");
    failed(runner, row, format!("Error: the message could not be read from gateway.sqlite: {error}")).await
}

/// Runs the agent, then stores: transcript and session row, then the inbox, and only then clients hear of the end.
async fn drive(
    runner: &Runner,
    row: &InboxRow,
    mut prepared: Box<Prepared>,
    permit: Option<LanePermit>,
    control: &Arc<RunControl>,
    events: mpsc::Sender<RunEvent>,
) -> RunEnding {
    let turn = runner.message_turn(row);
    let lane = row.payload.lane.as_deref().unwrap_or(MAIN_LANE);
    let place = Arc::new(LanePlace::new(lane, permit).of_attempt(control));
    prepared.branch.tell(&turn);
    if prepared.branch.is_answered() {
        control.end.answer();
    }
    let verbose = control.verbose.get().copied().unwrap_or_default();
    let notes = prepare::notes(row, &prepared.session.entry, verbose);
    let shows = Shows {
        notes,
        reasoning: prepared.reasoning,
        catalogue: prepared.tools.catalogue(),
        as_it_grows: !control.has_waited,
    };
    runner.tell_new_session(row, &prepared).await;
    let mut live = Live::begin(runner, row, &runner.prefix_of(row, &prepared), &turn, shows);
    let report = runner.keep_report(&row.session_key, prepared.report.take());
    let (mut ended, kept_report) = match &mut live {
        Some(live) => {
            let (told, followed) = mpsc::channel(FOLLOWED);
            let running = run_agent(runner, &mut prepared, control, (row, &turn, &place), told);
            let (ended, (), report) = tokio::join!(running, live.follow(followed, &events), report);
            (ended, report)
        }
        None => {
            tokio::join!(run_agent(runner, &mut prepared, control, (row, &turn, &place), events), report)
        }
    };
    prepared.kept_report = kept_report;
    let permit = place.take();
    control.transcript.send_replace(None);
    prepared.branch.end_injections();
    if let Some((bus, context)) = prepared.hooks.get() {
        hooks::run::ended(bus, context, &ended, prepared.branch.context());
    }
    if runner.shared.kill.is_cancelled() {
        return RunEnding::Interrupted;
    }
    let reason = control.reason.get().copied();
    if control.end.is_stop() {
        result::stopped_as_told(&mut ended);
    }
    let unanswered = control.steering.behind_answer();
    // A run that ran out of time tells so, with its answer.
    let is_stopped = ended.end == RunEnd::Aborted && reason != Some(AbortReason::Timeout);
    let answered = (is_stopped && unanswered > 0).then(|| turn.steered_in().saturating_sub(unanswered));
    if let Some(said_to) = answered {
        let _ = control.answer_before_stop.set(result::end_with_answer(&mut ended, said_to));
    }
    if let Some(why) = result::time_is_up(&mut ended, reason) {
        prepared.close_timed_out(ended.candidate, why).await;
    }
    if notes != Verbose::Off {
        result::mention_compactions(&mut ended, &prepared.session.entry);
        if let Some(wait) = control.lane_wait.get() {
            result::mention_wait(&mut ended, *wait, lane);
        }
        if prepared.session.is_new && row.payload.is_chat() {
            result::mention_beginning(&mut ended, &prepared.session.id);
        }
    }
    let dead_end = DeadEnd::met(&prepared, row, &ended);
    if let Some(dead_end) = dead_end {
        dead_end.tell(&mut ended);
    }
    let mut outcome = result::outcome(&ended, reason);
    let answer = row.payload.source.beat().and_then(|beat| BeatAnswer::read(beat, &ended));
    let is_left = prepared.leave_forgettable(row, answer.as_ref()).await;
    if let Some(answer) = &answer {
        answer.note(&mut outcome);
    }
    let (is_full, candidate) = (ended.is_full, ended.candidate);
    let started_at = ended.started_at;
    let thinking = prepared.models.get(candidate).map(|model| model.thinking.as_str().to_owned());
    let mut unsent = None;
    let said = match live {
        // Another run has given the answer, and has said it.
        Some(_) | None if runner.is_told_by_another(row, prepared.branch.context()).await => {
            FinalReplies::nothing()
        }
        // Of what somebody stopped no more is said.
        Some(live) if !is_worth_telling(&outcome) => {
            live.abandon().await;
            FinalReplies::nothing()
        }
        None if !is_worth_telling(&outcome) => FinalReplies::nothing(),
        Some(live) => {
            let (left, paced) = match answered {
                Some(said_to) => live.finish_at(said_to, ended.payloads.clone()).await,
                None => live.finish(ended.payloads.clone()).await,
            };
            unsent = paced;
            let (had_some, mut payloads) = match row.recovered {
                true => runner.left_of_resumed(&turn, left).await,
                false => (!left.is_empty(), turn.remaining(left)),
            };
            let is_silent_failure = payloads.is_empty() && outcome.failure().is_some();
            // A message that the agent has sent by itself is no answer for a footer to stand below.
            if !(had_some && payloads.is_empty()) {
                runner.add_footer(&prepared, &ended, &mut payloads).await;
            }
            let payloads = (!is_silent_failure).then_some(payloads);
            FinalReplies { payloads, thinking, quoted: turn.quoted.clone(), ..FinalReplies::default() }
        }
        // A program asked, and its answer is for a chat platform.
        None if row.payload.source.deliver_to().is_some() => {
            let payloads = Some(turn.remaining(ended.payloads.clone()));
            FinalReplies { payloads, thinking, quoted: turn.quoted.clone(), ..FinalReplies::default() }
        }
        None => FinalReplies::nothing(),
    };
    let mut figures = prepared.figures(ended, row, &outcome, reason);
    if answered.is_some() {
        figures.abort = reason;
    }
    let storing = async {
        let session = &prepared.session;
        match dead_end {
            // Of a turn that was left there is nothing to tell.
            _ if is_left => Ok(()),
            Some(dead_end) => Box::pin(runner.start_over(session, row, figures, dead_end)).await,
            None => runner.store_figures(&session.key, figures).await,
        }
    };
    // The sync first: the row is made while another thread waits for the disk.
    let (synced, stored) = tokio::join!(prepared.branch.sync(), storing);
    if let Err(error) = stored {
        tracing::error!(session = %row.session_key, %error, "session row was not updated after a run");
    }
    if let Err(error) = synced {
        if runner.shared.kill.is_cancelled() {
            return RunEnding::Interrupted;
        }
        // The run is over all the same: the caller must not wait for a disk that does not recover.
        tracing::error!(run_id = %row.run_id, %error, "transcript could not be synced: a power cut may take the end of it");
    }
    for taken in control.steering.close() {
        let end = control.end_of_taken(&taken.row.run_id, &outcome);
        let record = record(runner, &taken.row, Some(started_at), end);
        finish(runner, &taken.row, &record, FinalReplies::nothing()).await;
    }
    let report = prepared.kept_report.clone();
    let record = RunRecord { report, ..record(runner, row, Some(started_at), outcome) };
    finish(runner, row, &record, said).await;
    if let Some(unsent) = unsent {
        unsent.show(&runner.shared);
    }
    if is_full {
        let origin = row.payload.source.origin().filter(|_| notes != Verbose::Off);
        let chat = origin.map(|origin| ToldChat {
            run_id: row.run_id.clone(),
            to: origin.into(),
            context: runner.prefix_of(row, &prepared),
        });
        return RunEnding::Full(record, Box::new(AfterRun { prepared: *prepared, permit, candidate, chat }));
    }
    prepared.keep(runner);
    drop(permit);
    RunEnding::Done(record)
}
