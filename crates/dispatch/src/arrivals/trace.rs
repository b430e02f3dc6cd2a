//! What became of an event of a platform, from the records that are kept anyway.

use openclaw_protocol::RunId;
use openclaw_protocol::params::channels::{TraceDelivery, TraceEvent, TraceResult, TraceRun};

use super::{ArrivalRecord, Fate};
use crate::api::RunOutcome;
use crate::handle::Dispatch;
use crate::inbox::Known;
use crate::journal::JournalError;
use crate::outbox::{DeliveryStatus, OutboxError};

/// Events that one id may name: those of a message, its edits and reactions.
const MOST: u32 = 50;

impl Dispatch {
    /// What became of the events that an id names: the platform's of a message or an event, or a run's. Without an id, of the newest.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn trace(&self, id: Option<&str>) -> Result<TraceResult, OutboxError> {
        let journal = &self.shared().journal;
        let records = journal.arrival_records(id, if id.is_some() { MOST } else { 1 }).await?;
        let tally = journal.arrival_tally().await?.into_iter().collect();
        let mut events = Vec::new();
        for record in records {
            let run_id = match &record.fate {
                Some(Fate::Run(run_id)) => Some(run_id.clone()),
                Some(Fate::Noted | Fate::Handled(_) | Fate::Dropped(_)) | None => None,
            };
            let run = match run_id {
                Some(run_id) => Some(self.run(&run_id).await?),
                None => None,
            };
            events.push(event(record, run));
        }
        Ok(TraceResult { events, tally })
    }

    async fn run(&self, run_id: &RunId) -> Result<TraceRun, JournalError> {
        let journal = &self.shared().journal;
        let (state, error, started_at, ended_at) = match journal.message(run_id).await? {
            None => ("forgotten", None, None, None),
            Some(Known::Unfinished { .. }) => ("accepted", None, None, None),
            Some(Known::Finished(record)) => {
                let (state, error) = match &record.outcome {
                    RunOutcome::Ok { .. } => ("ok", None),
                    RunOutcome::Error { message, .. } => ("error", Some(message.clone())),
                    RunOutcome::Aborted { reason, .. } => ("aborted", Some(reason.clone())),
                };
                (state, error, record.started_at, Some(record.ended_at))
            }
        };
        let own = journal.arrival_records(Some(run_id.as_str()), MOST).await?;
        let deliveries = journal.deliveries_of(run_id).await?;
        Ok(TraceRun {
            run_id: run_id.to_string(),
            state: state.to_owned(),
            error,
            started_at,
            ended_at,
            events: own.into_iter().rev().map(|record| record.native_id).collect(),
            deliveries: deliveries.into_iter().map(delivery).collect(),
        })
    }
}

fn event(record: ArrivalRecord, run: Option<TraceRun>) -> TraceEvent {
    let (fate, reason) = match &record.fate {
        Some(fate) => {
            let (name, reason, _) = fate.columns();
            (name, reason.map(str::to_owned))
        }
        None => ("waiting", None),
    };
    TraceEvent {
        number: record.number,
        channel: record.channel,
        account_id: record.account,
        event_id: record.native_id,
        message_id: record.message_id,
        target: record.target,
        received_at: record.received_at,
        fate: fate.to_owned(),
        reason,
        decided_at: record.decided_at,
        run,
    }
}

fn delivery(status: DeliveryStatus) -> TraceDelivery {
    TraceDelivery {
        id: status.id,
        state: status.state.as_str().to_owned(),
        attempts: status.attempts,
        uncertain: status.may_repeat,
        message_ids: status.receipt.map(|receipt| receipt.message_ids).unwrap_or_default(),
        error: status.error,
    }
}
