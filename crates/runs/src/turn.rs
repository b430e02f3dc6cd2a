//! The turn of a prepared message: the agent answers, and the answer is told and stored. The order of
//! the steps is the promise of `docs/durability.md`.

use std::sync::Arc;

use openclaw_agent::Transcript as _;
use openclaw_agent::event::{RunEnd, RunEvent};
use openclaw_delivery::outbox::Outbox;
use openclaw_journal::api::{AbortReason, RunRecord};
use openclaw_journal::beat::BeatAnswer;
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::journal::Journal;
use openclaw_journal::request::MAIN_LANE;
use openclaw_runtime::events::Verbose;
use openclaw_runtime::global_lanes::LanePermit;
use openclaw_runtime::memory::Memories;
use openclaw_runtime::session_model::SessionModels;
use openclaw_runtime::setup::LiveSettings;
use openclaw_runtime::stopping::Stopping;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::agent_call::run_agent;
use crate::compaction::{AfterRun, ToldChat};
use crate::control::RunControl;
use crate::ending::{RunEnding, RunEnds};
use crate::footer::add_footer;
use crate::kept::KeptTranscripts;
use crate::lent::LanePlace;
use crate::live::{Live, Shows};
use crate::message_tool::message_turn;
use crate::notices::Notices;
use crate::prefixes::Prefixes;
use crate::prepare::Prepared;
use crate::replies::{ChatAnswers, is_worth_telling, left_of_resumed};
use crate::reports::Reports;
use crate::rows::SessionRows;
use crate::run_host::HostLink;
use crate::said::FinalReplies;
use crate::start_over::{DeadEnd, FreshStarts};
use crate::taken::is_told_by_another;
use crate::{hooks, new_session, prepare, result};

/// Number of events of a run that may wait for its follower.
const FOLLOWED: usize = 64;

/// Parts that drive the turn of a prepared message.
pub(crate) struct Turns {
    pub(crate) settings: LiveSettings,
    pub(crate) models: Arc<SessionModels>,
    pub(crate) rows: Arc<SessionRows>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) memories: Memories,
    pub(crate) kept: Arc<KeptTranscripts>,
    pub(crate) host: Arc<HostLink>,
    pub(crate) answers: Arc<ChatAnswers>,
    pub(crate) prefixes: Arc<Prefixes>,
    pub(crate) notices: Arc<Notices>,
    pub(crate) reports: Reports,
    pub(crate) fresh_starts: FreshStarts,
    pub(crate) ends: Arc<RunEnds>,
    pub(crate) outbox: Outbox,
    /// Shows that somebody writes until all of an answer is out.
    pub(crate) showing: TaskTracker,
    pub(crate) stops: Stopping,
}

impl Turns {
    /// Runs the agent, then stores: transcript and session row, then the inbox, and only then clients hear of the end.
    pub(crate) async fn drive(
        &self,
        row: &InboxRow,
        mut prepared: Box<Prepared>,
        permit: Option<LanePermit>,
        control: &Arc<RunControl>,
        events: mpsc::Sender<RunEvent>,
    ) -> RunEnding {
        let turn = message_turn(row);
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
        let context = self.prefixes.prefix_of(&row.session_key, prepared.models.first());
        let of_run = (row, &*prepared);
        new_session::tell(&self.notices, &self.models.all, &self.settings.now(), of_run, &context).await;
        let mut live = Live::begin(&self.answers, row, &context, &turn, shows);
        let report = self.reports.keep_for_row(&row.session_key, prepared.report.take());
        let (mut ended, kept_report) = match &mut live {
            Some(live) => {
                let (told, followed) = mpsc::channel(FOLLOWED);
                let running = run_agent(&self.host, &mut prepared, control, (row, &turn, &place), told);
                let (ended, (), report) = tokio::join!(running, live.follow(followed, &events), report);
                (ended, report)
            }
            None => {
                tokio::join!(
                    run_agent(&self.host, &mut prepared, control, (row, &turn, &place), events),
                    report
                )
            }
        };
        prepared.kept_report = kept_report;
        let permit = place.take();
        control.transcript.send_replace(None);
        prepared.branch.end_injections();
        if let Some((bus, context)) = prepared.hooks.get() {
            hooks::run::ended(bus, context, &ended, prepared.branch.context());
        }
        if self.stops.kill.is_cancelled() {
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
            Some(_) | None if is_told_by_another(&*self.journal, row, prepared.branch.context()).await => {
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
                    true => left_of_resumed(&*self.journal, &turn, left).await,
                    false => (!left.is_empty(), turn.remaining(left)),
                };
                let is_silent_failure = payloads.is_empty() && outcome.failure().is_some();
                // A message that the agent has sent by itself is no answer for a footer to stand below.
                if !(had_some && payloads.is_empty()) {
                    add_footer(&self.rows, &self.settings.now(), &prepared, &ended, &mut payloads).await;
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
        // All that is left is to store it: another session's run begins while the disk works. A
        // compaction behind the run calls a model, and a dead end waits for hooks: both keep the
        // place.
        let permit = permit.filter(|_| is_full || dead_end.is_some());
        let storing = async {
            let session = &prepared.session;
            match dead_end {
                // Of a turn that was left there is nothing to tell.
                _ if is_left => Ok(()),
                Some(dead_end) => {
                    Box::pin(self.fresh_starts.start_over(session, row, figures, dead_end)).await
                }
                None => self.rows.store_figures(&session.key, figures).await,
            }
        };
        // The sync first: the row is made while another thread waits for the disk.
        let (synced, stored) = tokio::join!(prepared.branch.sync(), storing);
        if let Err(error) = stored {
            tracing::error!(session = %row.session_key, %error, "session row was not updated after a run");
        }
        self.memories.transcript_grew(&prepared.session.agent.id, || prepared.branch.transcript_name());
        if let Err(error) = synced {
            if self.stops.kill.is_cancelled() {
                return RunEnding::Interrupted;
            }
            // The run is over all the same: the caller must not wait for a disk that does not recover.
            tracing::error!(run_id = %row.run_id, %error, "transcript could not be synced: a power cut may take the end of it");
        }
        for taken in control.steering.close() {
            let end = control.end_of_taken(&taken.row.run_id, &outcome);
            let record = self.ends.record(&taken.row, Some(started_at), end);
            self.ends.finish(&taken.row, &record, FinalReplies::nothing()).await;
        }
        let report = prepared.kept_report.clone();
        let record = RunRecord { report, ..self.ends.record(row, Some(started_at), outcome) };
        self.ends.finish(row, &record, said).await;
        if let Some(unsent) = unsent {
            unsent.show(&self.showing, self.outbox.clone(), self.stops.stopping.clone());
        }
        if is_full {
            let origin = row.payload.source.origin().filter(|_| notes != Verbose::Off);
            let chat = origin.map(|origin| ToldChat {
                run_id: row.run_id.clone(),
                to: origin.into(),
                context: self.prefixes.prefix_of(&row.session_key, prepared.models.first()),
            });
            return RunEnding::Full(
                record,
                Box::new(AfterRun { prepared: *prepared, permit, candidate, chat }),
            );
        }
        prepared.keep(&self.kept);
        drop(permit);
        RunEnding::Done(record)
    }
}
