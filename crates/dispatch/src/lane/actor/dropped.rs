//! Messages that get no run of their own because a rule says so, and what those that wait see of it.

use std::sync::Arc;
use std::time::Duration;

use super::{Actor, Told};
use crate::api::{RunOutcome, RunRecord};
use crate::job::Job;
use crate::journal::Update;
use crate::queue::DropRule;

/// How long a platform may take to show that somebody writes.
const SHOWING: Duration = Duration::from_secs(5);

impl Actor {
    /// A message is dropped for good. That is stored before anybody is told: a crash must not bring it back.
    pub(super) async fn drop_message(&mut self, job: Job, rule: DropRule) {
        let record = self.dropped(&job, rule);
        let update = Update::Drop { record: record.clone(), rule, arrivals: job.row.payload.said.clone() };
        self.store_drop(&job, rule, update).await;
        // Of one that was dropped before, clients have heard.
        if job.cut.is_none() {
            self.told.push_back((job, Told::Dropped(rule)));
        }
        self.settle(record);
    }

    /// A message is dropped, and the next run is told of it: its row is closed with that one.
    pub(super) async fn cut_message(&mut self, job: Job) {
        let rule = DropRule::Summarized;
        let record = self.dropped(&job, rule);
        let update = Update::Cut {
            run_id: job.row.run_id.clone(),
            arrivals: job.row.payload.said.clone(),
            dropped: job.cut.unwrap_or(1),
            now: record.ended_at,
        };
        self.store_drop(&job, rule, update).await;
        self.deadlines.retain(|(_, run_id)| *run_id != record.run_id);
        self.shared.registry.conclude(record);
        self.told.push_back((job, Told::Dropped(rule)));
    }

    fn dropped(&self, job: &Job, rule: DropRule) -> RunRecord {
        let outcome = RunOutcome::Error { message: rule.told(), result: None };
        let ended_at = self.shared.clock.now_ms();
        RunRecord { run_id: job.row.run_id.clone(), started_at: None, ended_at, outcome, report: None }
    }

    async fn store_drop(&self, job: &Job, rule: DropRule, update: Update) {
        let run_id = &job.row.run_id;
        tracing::info!(%run_id, session = %self.key, rule = rule.as_str(), "a message that waited is dropped");
        if let Err(error) = self.shared.journal.update(update).await {
            tracing::warn!(%run_id, %error, "a dropped message would be answered after a restart right now");
        }
    }

    /// Whoever sent a message that has to wait sees at once that it was heard (spec `queue.md` §3). The platform forgets it by itself.
    pub(super) fn show_that_it_waits(&mut self, job: Job) {
        if job.row.payload.facts.place.is_none() {
            return;
        }
        let runner = Arc::clone(&self.runner);
        self.showing.spawn(async move {
            // One that can't be shown is waiting all the same.
            let _ = tokio::time::timeout(SHOWING, runner.show_typing(&job.row)).await;
        });
    }
}
