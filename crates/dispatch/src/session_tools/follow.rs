//! Next step of a talk between sessions: it is in the inbox before that step counts as done, and
//! synced before its own run begins. Where the process or the machine ends in between, the step is
//! closed again by the next start, and the next step has the same id: it is there once.

use std::sync::{Arc, Weak};

use openclaw_agent::ReplyPayload;
use openclaw_journal::api::{AbortReason, Accepted, DispatchError, RunOutcome, RunRecord};
use openclaw_journal::inbox::{Asked, Row};
use openclaw_journal::journal::{Durability, Update};
use openclaw_journal::request::Request;
use openclaw_journal::rights::Rights;
use openclaw_journal::source::Source;
use openclaw_journal::talk::{StepEnd, is_unannounced};
use openclaw_protocol::{RunId, SessionKey};
use tokio::sync::oneshot;

use crate::intake::{self, Placing};
use crate::lane::Supervisor;
use crate::runner::Runner;

fn end_of(record: &RunRecord) -> StepEnd<'_> {
    match &record.outcome {
        RunOutcome::Ok { result } => match result.last_text() {
            Some(text) => StepEnd::Replied { text, took_ms: record.took_ms() },
            None => StepEnd::Silent,
        },
        RunOutcome::Aborted { reason, .. } if reason != AbortReason::Timeout.as_str() => StepEnd::Stopped,
        RunOutcome::Aborted { .. } | RunOutcome::Error { .. } => StepEnd::Silent,
    }
}

/// Next step of a talk: on its way into the inbox, ahead of whatever is stored from now on.
pub(crate) struct Following {
    runner: Arc<Runner>,
    lanes: Arc<Supervisor>,
    /// Id of the talk.
    id: RunId,
    placing: Placing,
}

impl Following {
    /// Begins the step, once it is stored. Its sync is not awaited: if the machine ends before, the
    /// earlier step is closed again, and this one is stored again.
    pub(crate) async fn begin(self) {
        let Self { runner, lanes, id, placing } = self;
        let arriving = match placing.stored(&runner).await {
            Ok(arriving) => arriving,
            Err(error) => {
                tracing::warn!(exchange = %id, %error, "a talk between sessions ends early");
                return;
            }
        };
        let accepting = runner.shared.accepting.clone();
        accepting.spawn(async move {
            match runner.shared.journal.update(Update::Settle).await {
                Ok(_) => drop(arriving.hand_over(&runner, &lanes)),
                Err(error) => {
                    tracing::warn!(exchange = %id, %error, "a talk between sessions goes on after the next start");
                }
            }
        });
    }
}

impl Runner {
    /// Begins to store the step that follows; `None` for most messages.
    pub(crate) async fn follow<P: Asked>(&self, row: &Row<P>, record: &RunRecord) -> Option<Following> {
        let talk = |request: &Request| {
            Some((request.source.exchange().cloned()?, request.lineage, request.rights.clone()))
        };
        let (exchange, lineage, rights) = self.of_request(row, talk).await?;
        let id = exchange.id.clone();
        let (run_id, key, mut request) = exchange.next(end_of(record))?;
        request.lineage = lineage.of_message();
        request.rights = rights.as_ref().map(Rights::caused);
        if let Source::Talk(talk) = &mut request.source
            && let Some(address) = &talk.deliver_to
            && !self.may_deliver(&key, &address.channel).await.unwrap_or_default()
        {
            tracing::info!(exchange = %id, session = %key, "its last word stays in the session: it may not send there");
            talk.deliver_to = None;
        }
        let (runner, lanes) = self.itself().zip(self.lanes.get().and_then(Weak::upgrade))?;
        match intake::place(&runner, &lanes, run_id, key, request, Durability::Written).await {
            Ok(placing) => Some(Following { runner, lanes, id, placing }),
            Err(error) => {
                tracing::warn!(exchange = %id, %error, "a talk between sessions ends early");
                None
            }
        }
    }

    /// Takes a request of the gateway's own.
    pub(crate) async fn accept_own(
        &self,
        run_id: RunId,
        key: SessionKey,
        request: Request,
    ) -> Result<Accepted, DispatchError> {
        let (runner, lanes) = (self.itself(), self.lanes.get().and_then(Weak::upgrade));
        let (Some(runner), Some(lanes)) = (runner, lanes) else { return Err(DispatchError::ShuttingDown) };
        let (placed, _) = oneshot::channel();
        // Spawned so that it completes if whoever asks is stopped.
        let accepting =
            self.shared.accepting.spawn(intake::accept(runner, lanes, run_id, key, request, placed));
        let receipt = accepting.await.map_err(|error| DispatchError::Storage(error.to_string()))??;
        Ok(receipt.accepted)
    }

    /// Returns the part of a step's answer that goes to a chat platform: for messages outside of
    /// talks all of it, for a talk only the last word, if it is one.
    pub(crate) async fn announced<P: Asked>(
        &self,
        row: &Row<P>,
        record: &RunRecord,
        payloads: Vec<ReplyPayload>,
    ) -> Vec<ReplyPayload> {
        if self.of_request(row, |request| request.source.exchange().map(drop)).await.is_none() {
            return payloads;
        }
        let is_said = match &record.outcome {
            RunOutcome::Ok { result } => result.last_text().is_some_and(|text| !is_unannounced(text)),
            RunOutcome::Error { .. } | RunOutcome::Aborted { .. } => false,
        };
        let has_failed = |payload: &ReplyPayload| payload.is_error;
        match is_said {
            true => payloads.into_iter().filter(|payload| !has_failed(payload)).collect(),
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_is_stopped_by_a_person_says_no_more() {
        let aborted = |reason: AbortReason| RunOutcome::Aborted {
            reason: reason.as_str().to_owned(),
            result: Some(json!({"payloads": [{"text": "half"}]}).into()),
        };
        let rows = [
            (aborted(AbortReason::Stop), StepEnd::Stopped),
            (aborted(AbortReason::Rpc), StepEnd::Stopped),
            (aborted(AbortReason::Timeout), StepEnd::Silent),
            (RunOutcome::Error { message: "x".to_owned(), result: None }, StepEnd::Silent),
            (
                RunOutcome::Ok { result: json!({"payloads": [{"text": "a"}]}).into() },
                StepEnd::Replied { text: "a", took_ms: 7 },
            ),
            (RunOutcome::Ok { result: json!({"payloads": []}).into() }, StepEnd::Silent),
        ];
        for (outcome, expect) in rows {
            assert_eq!(end_of(&record(1, 8, outcome)), expect);
        }
    }

    /// Checks that a step keeps its measured duration even if the wall clock was set in between.
    #[test]
    fn a_clock_that_jumps_makes_no_step_longer() {
        let hour = 3_600_000;
        let measured = json!({"payloads": [{"text": "a"}], "meta": {"durationMs": 7}});
        let unmeasured = json!({"payloads": [{"text": "a"}]});
        for (result, started_at, ended_at, expect) in [
            (&measured, 1, 8, 7),
            (&measured, 1, hour, 7),
            (&measured, hour, 1, 7),
            (&unmeasured, 1, hour + 1, hour),
            (&unmeasured, hour, 1, 0),
        ] {
            let outcome = RunOutcome::Ok { result: result.clone().into() };
            let expect = StepEnd::Replied { text: "a", took_ms: expect };
            assert_eq!(end_of(&record(started_at, ended_at, outcome)), expect, "{started_at} {ended_at}");
        }
    }

    fn record(started_at: i64, ended_at: i64, outcome: RunOutcome) -> RunRecord {
        RunRecord { run_id: RunId::new("r"), started_at: Some(started_at), ended_at, outcome, report: None }
    }
}
