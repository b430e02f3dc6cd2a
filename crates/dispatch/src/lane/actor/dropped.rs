//! Messages that a rule denies a run of their own, and the typing indicator for senders of waiting
//! ones.

use std::sync::Arc;
use std::time::Duration;

use openclaw_journal::api::RunRecord;
use openclaw_journal::job::Job;
use openclaw_journal::journal::Update;
use openclaw_journal::queue::DropRule;

use super::{Actor, LaneNotice};

/// Time that a platform may take to show a typing indicator.
const SHOWING: Duration = Duration::from_secs(5);

impl Actor {
    /// Drops a message for good. That is stored before anybody is told, so that a crash can't bring
    /// it back.
    pub(super) async fn drop_message(&mut self, job: Job, rule: DropRule) {
        let record = self.dropped(&job, rule);
        let update = Update::Drop { record: record.clone(), rule, arrivals: job.row.payload.said.clone() };
        self.store_drop(&job, rule, update).await;
        // Of one that was dropped before, clients have heard.
        if job.cut.is_none() {
            self.told.push_back((job, LaneNotice::Dropped(rule)));
        }
        self.settle(record);
    }

    /// Drops a message of which the next run is told: its row is closed with that run. It has ended
    /// with this.
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
        self.parts.registry.conclude(record);
        self.told.push_back((job, LaneNotice::Dropped(rule)));
    }

    fn dropped(&self, job: &Job, rule: DropRule) -> RunRecord {
        let ended_at = self.parts.clock.now_ms();
        let (run_id, outcome) = (job.row.run_id.clone(), rule.outcome());
        RunRecord { run_id, started_at: None, ended_at, outcome, report: None }
    }

    async fn store_drop(&self, job: &Job, rule: DropRule, update: Update) {
        let run_id = &job.row.run_id;
        tracing::info!(%run_id, session = %self.key, rule = rule.as_str(), "a message that waited is dropped");
        if let Err(error) = self.parts.journal.update(update).await {
            tracing::warn!(%run_id, %error, "a dropped message would be answered after a restart right now");
        }
    }

    /// Shows the sender of a message that has to wait a typing indicator at once (spec `queue.md`
    /// §3). The platform removes it by itself.
    pub(super) fn show_that_it_waits(&mut self, job: Job) {
        if job.row.payload.facts.place.is_none() {
            return;
        }
        let signs = Arc::clone(&self.parts.signs);
        self.showing.spawn(async move {
            // A failure to show it does not matter: the message waits all the same.
            let _ = tokio::time::timeout(SHOWING, signs.show_typing(&job.row)).await;
        });
    }
}
