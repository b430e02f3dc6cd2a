//! Next step of a talk between sessions, and the part of a step's answer that is told.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_agent::ReplyPayload;
use openclaw_journal::api::{AbortReason, RunOutcome, RunRecord};
use openclaw_journal::inbox::{InboxRow, RequestForm};
use openclaw_journal::request::RunRequest;
use openclaw_journal::rights::Rights;
use openclaw_journal::source::RequestSource;
use openclaw_journal::talk::{StepEnd, is_unannounced};

use crate::run_host::{HostLink, NextStep};
use crate::send_rules::SendRules;
use crate::stored_messages::StoredMessages;

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

/// Talks between sessions: the end of one step makes the next.
pub(crate) struct Talks {
    messages: Arc<StoredMessages>,
    send_rules: Arc<SendRules>,
    host: Arc<HostLink>,
}

impl Talks {
    pub(crate) fn new(
        messages: Arc<StoredMessages>,
        send_rules: Arc<SendRules>,
        host: Arc<HostLink>,
    ) -> Self {
        Self { messages, send_rules, host }
    }

    /// Returns the step that follows; `None` for most messages.
    pub(crate) async fn next_step<P: RequestForm>(
        &self,
        row: &InboxRow<P>,
        record: &RunRecord,
    ) -> Option<NextStep> {
        let talk = |request: &RunRequest| {
            Some((request.source.exchange().cloned()?, request.lineage, request.rights.clone()))
        };
        let (exchange, lineage, rights) = self.messages.of_request(row, talk).await?;
        let talk = exchange.id.clone();
        let (run_id, key, mut request) = exchange.next(end_of(record))?;
        request.lineage = lineage.of_message();
        request.rights = rights.as_ref().map(Rights::caused);
        if let RequestSource::Talk(step) = &mut request.source
            && let Some(address) = &step.deliver_to
            && !self.send_rules.may_deliver(&key, &address.channel).await.unwrap_or_default()
        {
            tracing::info!(exchange = %talk, session = %key, "its last word stays in the session: it may not send there");
            step.deliver_to = None;
        }
        Some(NextStep { talk, run_id, key, request })
    }

    /// Begins to store a step; see [`RunHost::place_step`](crate::RunHost::place_step).
    pub(crate) async fn placed(&self, step: NextStep) -> Option<BoxFuture<'static, ()>> {
        self.host.get()?.place_step(step).await
    }
}

/// Returns the part of a step's answer that goes to a chat platform: for messages outside of
/// talks all of it, for a talk only the last word, if it is one.
pub(crate) async fn announced<P: RequestForm>(
    messages: &StoredMessages,
    row: &InboxRow<P>,
    record: &RunRecord,
    payloads: Vec<ReplyPayload>,
) -> Vec<ReplyPayload> {
    if messages.of_request(row, |request| request.source.exchange().map(drop)).await.is_none() {
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

#[cfg(test)]
mod tests {
    use openclaw_protocol::RunId;
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
