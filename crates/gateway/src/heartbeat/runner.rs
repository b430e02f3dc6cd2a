//! Waits for what the schedule says, and for those who wish a beat.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use openclaw_dispatch::Settings;
use openclaw_protocol::AgentId;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::schedule::{BeatOutcome, Schedule};
use super::{BeatParts, HeartbeatRequest, beat};
use crate::clock::now_ms;

/// The clock is looked at this often at least: it may have been set, and the machine may have slept.
const LOOK: Duration = Duration::from_secs(60);

/// Result of a beat task; `None` for a beat of an earlier process, which was not scheduled.
type BeatResult = Option<BeatOutcome>;

/// Makes heartbeats until the gateway stops.
pub(crate) async fn run(parts: BeatParts, stopping: CancellationToken) {
    let parts = Arc::new(parts);
    let Some(wishes) = parts.heartbeats.waiting.lock().take() else { return };
    let mut beats = JoinSet::new();
    for unfinished in parts.dispatch.take_unfinished_beats() {
        let parts = Arc::clone(&parts);
        beats.spawn(async move {
            beat::take_up(&parts, &unfinished).await;
            None
        });
    }
    tokio::select! { biased;
        () = stopping.cancelled() => {}
        () = follow(&parts, wishes, &mut beats) => {}
    }
    // The runs are in the inbox: the next start takes up those that have not ended.
    while beats.join_next().await.is_some() {}
}

async fn follow(
    parts: &Arc<BeatParts>,
    mut wishes: mpsc::Receiver<HeartbeatRequest>,
    beats: &mut JoinSet<BeatResult>,
) {
    let mut schedule = Schedule::default();
    let mut under_way = HashMap::new();
    let mut settings = parts.settings.follow();
    let mut enabled = parts.heartbeats.enabled.subscribe();
    schedule.configure(now_ms(), agents(&settings.borrow_and_update()));
    loop {
        for (agent, reason) in schedule.take(now_ms()) {
            let parts = Arc::clone(parts);
            let made = (agent.clone(), reason.clone());
            let task = beats.spawn(async move { Some(beat::make(&parts, &agent, &reason).await) });
            under_way.insert(task.id(), made);
        }
        let wait = schedule.next().map(|at| u64::try_from(at - now_ms()).unwrap_or(0));
        let wait = wait.map_or(LOOK, |wait| Duration::from_millis(wait).min(LOOK));
        tokio::select! { biased;
            Some(wish) = wishes.recv() => schedule.wish(now_ms(), &wish.reason, wish.agent.as_ref()),
            Some(ended) = beats.join_next_with_id(), if !beats.is_empty() => {
                let (task, ended) = how(ended);
                if let Some((agent, reason)) = under_way.remove(&task) {
                    schedule.ended(now_ms(), &agent, reason, ended);
                }
            }
            Ok(()) = settings.changed() => schedule.configure(now_ms(), agents(&settings.borrow_and_update())),
            Ok(()) = enabled.changed() => schedule.set_enabled(*enabled.borrow_and_update()),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Id and result of a task that has ended. A task that panicked counts as made: the next one is an
/// interval away.
fn how(ended: Result<(Id, BeatResult), JoinError>) -> (Id, BeatOutcome) {
    match ended {
        Ok((task, ended)) => (task, ended.unwrap_or(BeatOutcome::Counts)),
        Err(error) => {
            tracing::error!(%error, "a heartbeat panicked");
            (error.id(), BeatOutcome::Counts)
        }
    }
}

/// The agents that have heartbeats, with their intervals.
fn agents(settings: &Settings) -> Vec<(AgentId, Option<u64>)> {
    let ids = settings.config.agent_ids().into_iter();
    let beats = ids.map(|id| {
        let beat = settings.config.heartbeat(&id);
        (id, beat)
    });
    beats.filter(|(_, beat)| beat.enabled).map(|(id, beat)| (id, beat.every_ms)).collect()
}
