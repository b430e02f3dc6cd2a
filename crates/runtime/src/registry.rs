//! Registry of runs that have not ended, and of the callers that wait for them.

use std::collections::HashMap;

use openclaw_journal::api::{ActiveRun, RunPhase, RunRecord};
use openclaw_protocol::{RunId, SessionKey};
use parking_lot::Mutex;
use tokio::sync::{Notify, futures::Notified, watch};

/// Every run from acceptance to its last event. Leaf data: nothing is awaited under its lock.
#[derive(Debug, Default)]
pub struct Registry {
    runs: Mutex<Runs>,
    entered: Notify,
}

#[derive(Debug, Default)]
struct Runs {
    slots: HashMap<RunId, RunSlot>,
    /// Runs by session, oldest first.
    sessions: HashMap<SessionKey, Vec<RunId>>,
}

#[derive(Debug)]
struct RunSlot {
    run: ActiveRun,
    /// True if work on it has begun, be it only the wait for a place.
    taken_up: bool,
    end: watch::Sender<Option<RunRecord>>,
}

/// Tells the end of a run. The one that was told first stays.
fn tell(end: &watch::Sender<Option<RunRecord>>, record: RunRecord) {
    end.send_if_modified(|told| {
        let is_first = told.is_none();
        told.get_or_insert(record);
        is_first
    });
}

impl Registry {
    /// Adds an accepted run.
    pub fn enter(&self, run_id: &RunId, session_key: &SessionKey, accepted_at: i64) {
        let (end, _) = watch::channel(None);
        let run = ActiveRun {
            run_id: run_id.clone(),
            session_key: session_key.clone(),
            accepted_at,
            phase: RunPhase::Queued,
        };
        let slot = RunSlot { run, taken_up: false, end };
        let mut runs = self.runs.lock();
        if runs.slots.insert(run_id.clone(), slot).is_none() {
            runs.sessions.entry(session_key.clone()).or_default().push(run_id.clone());
        }
        drop(runs);
        self.entered.notify_waiters();
    }

    /// Notes that its lane has begun to work on a message.
    pub fn take_up(&self, run_id: &RunId) {
        if let Some(slot) = self.runs.lock().slots.get_mut(run_id) {
            slot.taken_up = true;
        }
    }

    /// Returns the runs that were taken up and have not ended.
    pub fn taken_up(&self) -> Vec<RunId> {
        let runs = self.runs.lock();
        let under_way = runs.slots.iter().filter(|(_, slot)| slot.taken_up);
        under_way.map(|(run_id, _)| run_id.clone()).collect()
    }

    /// Notes that a run works now.
    pub fn running(&self, run_id: &RunId) {
        if let Some(slot) = self.runs.lock().slots.get_mut(run_id) {
            slot.run.phase = RunPhase::Running;
        }
    }

    /// True if a run works now.
    pub fn is_running(&self, run_id: &RunId) -> bool {
        self.runs.lock().slots.get(run_id).is_some_and(|slot| slot.run.phase == RunPhase::Running)
    }

    /// Number of runs that work now.
    pub fn count_running(&self) -> usize {
        self.runs.lock().slots.values().filter(|slot| slot.run.phase == RunPhase::Running).count()
    }

    /// Tells everybody who waits, or asks later, the end of a run that is not stored as ended yet.
    /// The run does not count as active any more.
    pub fn conclude(&self, record: RunRecord) {
        let mut runs = self.runs.lock();
        let Some(slot) = runs.slots.get(&record.run_id) else { return };
        let (end, session_key) = (slot.end.clone(), slot.run.session_key.clone());
        runs.leave_session(&session_key, &record.run_id);
        drop(runs);
        tell(&end, record);
    }

    /// Takes a run out and tells everybody who waits for it its end.
    pub fn finish(&self, record: RunRecord) {
        let mut runs = self.runs.lock();
        let Some(slot) = runs.slots.remove(&record.run_id) else { return };
        runs.leave_session(&slot.run.session_key, &record.run_id);
        drop(runs);
        tell(&slot.end, record);
    }

    /// Forgets all runs: they go on after the next start. Who waits learns that there is nothing to wait for.
    pub fn abandon(&self) -> Vec<RunId> {
        let mut runs = self.runs.lock();
        runs.sessions.clear();
        let slots = std::mem::take(&mut runs.slots);
        slots.into_iter().filter(|(_, slot)| slot.end.borrow().is_none()).map(|(run_id, _)| run_id).collect()
    }

    /// Returns a receiver for the end of a run that has not ended; `None` for one that is not here.
    pub fn end_of(&self, run_id: &RunId) -> Option<watch::Receiver<Option<RunRecord>>> {
        self.runs.lock().slots.get(run_id).map(|slot| slot.end.subscribe())
    }

    /// Waits until a run is taken out, or has an end that is told; returns at once for one that is not
    /// here.
    pub async fn ended(&self, run_id: &RunId) {
        if let Some(mut end) = self.end_of(run_id) {
            // An error means that all runs were forgotten.
            let _ = end.wait_for(Option::is_some).await;
        }
    }

    /// Returns the record of a run that has ended and is still here.
    pub fn record_of(&self, run_id: &RunId) -> Option<RunRecord> {
        self.runs.lock().slots.get(run_id).and_then(|slot| slot.end.borrow().clone())
    }

    /// Completes when the next run enters. Create it before looking.
    pub fn entered(&self) -> Notified<'_> {
        self.entered.notified()
    }

    /// Returns the session of a run that has not ended.
    pub fn session_of(&self, run_id: &RunId) -> Option<SessionKey> {
        self.runs.lock().slots.get(run_id).map(|slot| slot.run.session_key.clone())
    }

    /// Number of runs of a session that have not ended.
    pub fn count(&self, session_key: &SessionKey) -> usize {
        self.runs.lock().sessions.get(session_key).map_or(0, Vec::len)
    }

    /// The runs of a session, oldest first.
    pub fn of_session(&self, session_key: &SessionKey) -> Vec<ActiveRun> {
        let runs = self.runs.lock();
        let ids = runs.sessions.get(session_key).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|run_id| Some(runs.slots.get(run_id)?.run.clone())).collect()
    }
}

impl Runs {
    fn leave_session(&mut self, session_key: &SessionKey, run_id: &RunId) {
        if let Some(session) = self.sessions.get_mut(session_key) {
            session.retain(|other| other != run_id);
            if session.is_empty() {
                self.sessions.remove(session_key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_journal::api::RunOutcome;
    use serde_json::json;

    use super::*;

    fn record(run_id: &str) -> RunRecord {
        let outcome = RunOutcome::Ok { result: json!({}).into() };
        RunRecord { run_id: RunId::new(run_id), started_at: None, ended_at: 9, outcome, report: None }
    }

    #[tokio::test]
    async fn who_waits_learns_the_end_and_nothing_is_left_behind() {
        let (registry, session) = (Registry::default(), SessionKey::global());
        for (n, run_id) in ["a", "b"].into_iter().enumerate() {
            registry.enter(&RunId::new(run_id), &session, i64::try_from(n).unwrap());
        }
        registry.running(&RunId::new("a"));
        let phases: Vec<_> =
            registry.of_session(&session).into_iter().map(|run| (run.accepted_at, run.phase)).collect();
        assert_eq!(phases, [(0, RunPhase::Running), (1, RunPhase::Queued)]);
        let mut end = registry.end_of(&RunId::new("a")).unwrap();
        registry.finish(record("a"));
        assert_eq!(end.wait_for(Option::is_some).await.unwrap().clone(), Some(record("a")));
        assert!(registry.end_of(&RunId::new("a")).is_none());
        assert_eq!(registry.count(&session), 1);
        registry.finish(record("b"));
        assert!(registry.runs.lock().sessions.is_empty() && registry.runs.lock().slots.is_empty());
    }

    #[tokio::test]
    async fn abandoned_runs_end_the_wait_without_a_record() {
        let (registry, session) = (Registry::default(), SessionKey::global());
        registry.enter(&RunId::new("a"), &session, 0);
        let mut end = registry.end_of(&RunId::new("a")).unwrap();
        assert_eq!(registry.abandon(), [RunId::new("a")]);
        assert!(end.wait_for(Option::is_some).await.is_err());
        assert_eq!(registry.count(&session), 0);
    }
}
