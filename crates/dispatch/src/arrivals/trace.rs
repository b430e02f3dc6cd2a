//! Trace of an event of a platform or of a message of a client, from the records that are kept
//! anyway.

mod work;

use openclaw_config::settings::QueueMode;
use openclaw_delivery::outbox::OutboxError;
use openclaw_journal::api::RunOutcome;
use openclaw_journal::delivery::{DeliveryFailure, DeliveryState, DeliveryStatus};
use openclaw_journal::inbox::{AskedRecords, KnownRun, MessageRecord};
use openclaw_journal::job::copies_of;
use openclaw_journal::journal::JournalError;
use openclaw_journal::queue::DropRule;
use openclaw_journal::run_result::RunResult;
use openclaw_protocol::RunId;
use openclaw_protocol::params::channels::{TraceDelivery, TraceEvent, TraceResult, TraceRun};
use openclaw_sessions::SessionKey;

use self::work::{ReadBefore, RunWork};
use super::offline::Lateness;
use super::{ArrivalRecord, Fate, handover};
use crate::handle::Dispatch;
use openclaw_runs::command::is_answer;

/// Number of events that one id may name: those of a message, its edits and reactions.
const MOST: u32 = 50;

impl Dispatch {
    /// Traces the events and messages that an id names: the platform's id of a message or an event,
    /// a run's, a delivery's, or the platform's id of a message that was sent. Without an id,
    /// traces the newest.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn trace(&self, id: Option<&str>) -> Result<TraceResult, OutboxError> {
        let journal = &self.arrivals().journal;
        let mut records = journal.arrival_records(id, if id.is_some() { MOST } else { 1 }).await?;
        let mut messages = match id {
            Some(id) => journal.message_records(AskedRecords::Run(RunId::new(id)), 1).await?,
            None => journal.message_records(AskedRecords::Newest, 1).await?,
        };
        let mut deliveries = Vec::new();
        match id {
            None => {
                // The newest message may be that of an event before the newest.
                if let Some(newest) = messages.first()
                    && !journal.arrival_records(Some(newest.run_id.as_str()), 1).await?.is_empty()
                {
                    messages.clear();
                }
                newest_alone(&mut records, &mut messages);
            }
            Some(id) if records.is_empty() && messages.is_empty() => {
                (records, messages, deliveries) = self.behind_delivery(id).await?;
            }
            Some(_) => {}
        }
        let mut events = Vec::with_capacity(records.len());
        for record in records {
            events.push(self.event(record).await?);
        }
        let mut runs = Vec::with_capacity(messages.len());
        for message in messages {
            runs.push(self.run(&message.run_id.clone(), Some(message)).await?);
        }
        let tally = journal.arrival_tally().await?.into_iter().collect();
        let deliveries = self.told(deliveries).await?;
        Ok(TraceResult { events, runs, deliveries, tally })
    }

    /// Returns what is behind the deliveries with this id, or with this id of a message: the events
    /// that they answer, the messages of clients that they answer, and deliveries that answer
    /// nothing, such as a person's.
    async fn behind_delivery(
        &self,
        id: &str,
    ) -> Result<(Vec<ArrivalRecord>, Vec<MessageRecord>, Vec<DeliveryStatus>), JournalError> {
        let journal = &self.arrivals().journal;
        let (mut events, mut messages, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for delivery in journal.deliveries_named(id).await? {
            let run_id = delivery.id.rsplit_once(':').map(|(run_id, _)| RunId::new(run_id));
            let Some(run_id) = run_id else {
                alone.push(delivery);
                continue;
            };
            let found = journal.arrival_records(Some(run_id.as_str()), MOST).await?;
            if !found.is_empty() {
                events.extend(found);
                continue;
            }
            let found = journal.message_records(AskedRecords::Run(run_id), 1).await?;
            match found.is_empty() {
                true => alone.push(delivery),
                false => messages.extend(found),
            }
        }
        events.dedup_by_key(|event| event.number);
        messages.dedup();
        Ok((events, messages, alone))
    }

    async fn event(&self, record: ArrivalRecord) -> Result<TraceEvent, JournalError> {
        let run_id = match &record.fate {
            Some(Fate::Run(run_id)) => Some(run_id.clone()),
            Some(Fate::Noted | Fate::Handled(_) | Fate::Dropped(_)) | None => None,
        };
        let run = match run_id {
            Some(run_id) => {
                let message =
                    self.arrivals().journal.message_records(AskedRecords::Run(run_id.clone()), 1).await?;
                Some(self.run(&run_id, message.into_iter().next()).await?)
            }
            None => None,
        };
        let answers = self.told(self.own_answers(&record).await?).await?;
        Ok(event(record, run, answers))
    }

    /// Returns the deliveries with which the gateway itself answered an event.
    async fn own_answers(&self, record: &ArrivalRecord) -> Result<Vec<DeliveryStatus>, JournalError> {
        let journal = &self.arrivals().journal;
        let mut answers = Vec::new();
        let kinds: &[&str] = match &record.fate {
            Some(Fate::Handled(_)) => &[handover::REFUSED, handover::TOO_LARGE],
            Some(Fate::Run(_)) => &[handover::TOO_LARGE],
            Some(Fate::Noted | Fate::Dropped(_)) | None => return Ok(answers),
        };
        let code = handover::code_id(record.number, record.received_at);
        for id in [code, handover::own_id(&record.identity)] {
            answers.extend(journal.delivery(&id).await?);
        }
        // Such is said once a minute at most, however many there are: it answers those that were being looked at.
        let decided_at = record.decided_at.unwrap_or(record.received_at);
        for what in kinds {
            let about = handover::told_there(what, &record.channel, &record.account, &record.target);
            let told = journal.deliveries_of(&RunId::new(about)).await?;
            answers.extend(
                told.into_iter().filter(|told| (record.received_at..=decided_at).contains(&told.accepted_at)),
            );
        }
        Ok(answers)
    }

    /// Returns deliveries, each with the one that it waits for.
    async fn told(&self, deliveries: Vec<DeliveryStatus>) -> Result<Vec<TraceDelivery>, JournalError> {
        let mut told = Vec::with_capacity(deliveries.len());
        for status in deliveries {
            let waits_for = match status.state {
                DeliveryState::Pending => self.arrivals().journal.delivery_ahead_of(&status.id).await?,
                DeliveryState::Sending
                | DeliveryState::Uncertain
                | DeliveryState::Sent
                | DeliveryState::Failed => None,
            };
            told.push(TraceDelivery { waits_for, ..delivery(status) });
        }
        Ok(told)
    }

    async fn run(&self, run_id: &RunId, message: Option<MessageRecord>) -> Result<TraceRun, JournalError> {
        let journal = &self.arrivals().journal;
        let known = journal.message(run_id).await?;
        let own = journal.arrival_records(Some(run_id.as_str()), MOST).await?;
        let mut deliveries = journal.deliveries_of(run_id).await?;
        let answered = message.as_ref().filter(|message| !message.is_cut);
        if let Some(by) = answered.and_then(|message| message.taken_by.as_ref()) {
            // The answer of that run is its answer.
            deliveries.extend(journal.deliveries_of(by).await?);
        }
        let took = journal.message_records(AskedRecords::TakenBy(run_id.clone()), MOST).await?;
        let work = match &message {
            Some(message) if message.taken_by.is_none() => self.work(message).await,
            Some(_) | None => None,
        };
        let read_by = match work.as_ref().and_then(|work| work.read_before.as_ref()) {
            Some(read) => self.reader_of(read).await?.filter(|by| by != run_id),
            None => None,
        };
        if let Some(by) = &read_by {
            // The answer of that run may be one to this message as well.
            deliveries.extend(journal.deliveries_of(by).await?);
        }
        let mut run = TraceRun {
            run_id: run_id.to_string(),
            events: own.into_iter().rev().map(|record| record.native_id).collect(),
            deliveries: self.told(deliveries).await?,
            took: took.into_iter().map(|taken| taken.run_id.to_string()).collect(),
            ..of_known(known)
        };
        if let Some(message) = message {
            run.kind = Some(message.kind);
            run.session_key = Some(message.session_key);
            run.session_id = message.session_id.map(|id| id.to_string());
            run.accepted_at = Some(message.accepted_at);
            run.queue_mode = message.queue_mode;
            run.taken_by = message.taken_by.map(|by| by.to_string());
            run.attempts = Some(message.attempts);
            run.stopped_by = message.stop;
            run.is_dropped = message.is_cut.then_some(true);
            if message.is_cut && run.state == "accepted" {
                // Its row is closed with the run that is told of it.
                (run.state, run.error) = ("error".to_owned(), Some(DropRule::Summarized.told()));
            }
        }
        run.read_by = read_by.map(|by| by.to_string());
        if let Some(RunWork { model_calls, tools, silence, read_before }) = work {
            run.was_read_before = read_before.is_some().then_some(true);
            run.model_calls = Some(model_calls);
            run.tools = tools;
            run.silence = silence.filter(|_| run.state == "ok").map(str::to_owned);
        }
        Ok(run)
    }

    /// Returns the run that has read a copy; `None` if its message is not remembered any more.
    async fn reader_of(&self, read: &ReadBefore) -> Result<Option<RunId>, JournalError> {
        let Some(behind) = read.behind.clone() else { return Ok(None) };
        let found = self.arrivals().journal.message_records(AskedRecords::Entry(behind), 1).await?;
        Ok(found.into_iter().next().map(|message| message.taken_by.unwrap_or(message.run_id)))
    }

    /// Returns what a run did; `None` if its transcript does not tell it any more.
    async fn work(&self, message: &MessageRecord) -> Option<RunWork> {
        let parts = self.arrivals();
        let (session_id, key) = (message.session_id.clone()?, message.session()?);
        let agent = agent_of(&key, self);
        let transcripts = parts.transcripts.clone();
        let row = parts.rows.entry_or_none(&key).await;
        let row = row.filter(|row| row.session_id.as_ref() == Some(&session_id));
        let entry_ids = message.entry_ids.clone();
        let [_, fresh_id] = &entry_ids;
        let was_copied = message.queue_mode.as_deref() == Some(QueueMode::SteerBacklog.as_str());
        let copies = if was_copied { copies_of(fresh_id).to_vec() } else { Vec::new() };
        let read = move || {
            let named = row.and_then(|row| transcripts.find(&agent, &row));
            let transcript = named.or_else(|| transcripts.of_conversation(&agent, &key, &session_id).ok())?;
            work::of(&transcripts.reader(&transcript), &entry_ids, &copies).ok().flatten()
        };
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }
}

fn agent_of(key: &SessionKey, dispatch: &Dispatch) -> openclaw_protocol::AgentId {
    key.agent_or(&dispatch.arrivals().settings.now().config.default_agent())
}

/// Keeps either the newest event or the newest message of a client, whichever came later.
fn newest_alone(records: &mut Vec<ArrivalRecord>, messages: &mut Vec<MessageRecord>) {
    let is_before = |message: &MessageRecord| {
        records.first().is_some_and(|event| event.received_at >= message.accepted_at)
    };
    if messages.first().is_some_and(is_before) {
        messages.clear();
    }
    if !messages.is_empty() {
        records.clear();
    }
}

/// Returns the state of a run, without any other details.
fn of_known(known: Option<KnownRun>) -> TraceRun {
    let mut run = TraceRun { state: "forgotten".to_owned(), ..TraceRun::default() };
    match known {
        None => {}
        Some(KnownRun::Unfinished { accepted_at }) => {
            (run.state, run.accepted_at) = ("accepted".to_owned(), Some(accepted_at));
        }
        Some(KnownRun::Finished(record)) => {
            run.is_command = is_answer(&record.outcome).then_some(true);
            let (state, error, result) = match record.outcome {
                RunOutcome::Ok { result } => ("ok", None, Some(result)),
                RunOutcome::Error { message, result } => ("error", Some(message), result),
                RunOutcome::Aborted { reason, result } => ("aborted", Some(reason), result),
            };
            run.state = state.to_owned();
            run.provider = result.as_ref().and_then(RunResult::provider).map(str::to_owned);
            run.model = result.as_ref().and_then(RunResult::model).map(str::to_owned);
            (run.error, run.started_at, run.ended_at) = (error, record.started_at, Some(record.ended_at));
        }
    }
    run
}

fn event(record: ArrivalRecord, run: Option<TraceRun>, answers: Vec<TraceDelivery>) -> TraceEvent {
    let (fate, reason) = match &record.fate {
        Some(fate) => {
            let (name, reason, _) = fate.columns();
            (name, reason.map(str::to_owned))
        }
        None => ("waiting", None),
    };
    let is_late = is_late(&record).then_some(true);
    let (session_key, matched_by) = record.route.map(|route| (route.session_key, route.matched_by)).unzip();
    TraceEvent {
        number: record.number,
        channel: record.channel,
        account_id: record.account,
        event_id: record.native_id,
        message_id: record.message_id,
        target: record.target,
        received_at: record.received_at,
        said_at: record.said_at,
        is_late,
        repeats: record.again,
        fate: fate.to_owned(),
        reason,
        decided_at: record.decided_at,
        told_in: record.told_in.map(|run_id| run_id.to_string()),
        session_key,
        matched_by,
        run,
        answers,
    }
}

/// True if the event was sent while the gateway was offline.
fn is_late(record: &ArrivalRecord) -> bool {
    let lateness = record.said_at.map(|said_at| Lateness::of(said_at, record.received_at));
    lateness.is_some_and(|lateness| lateness != Lateness::OnTime)
}

fn delivery(status: DeliveryStatus) -> TraceDelivery {
    TraceDelivery {
        id: status.id,
        channel: Some(status.address.channel),
        account_id: Some(status.address.account),
        target: Some(status.address.target),
        thread_id: status.address.thread,
        state: status.state.as_str().to_owned(),
        attempts: status.attempts,
        uncertain: status.may_repeat,
        message_ids: status.receipt.map(|receipt| receipt.message_ids).unwrap_or_default(),
        error: status.error.or(status.left_out),
        waits_for: None,
        waits_for_account: None,
        is_discarded: (status.given_up == Some(DeliveryFailure::Discarded)).then_some(true),
        accepted_at: status.accepted_at,
        next_at: status.next_at,
        ended_at: status.ended_at,
    }
}
