//! The place of a run in its global lane, which it lends to others while it waits for them: a full lane never waits for itself.

use std::sync::Arc;

use openclaw_journal::journal::Journal;
use openclaw_protocol::RunId;
use openclaw_runtime::global_lanes::{GlobalLanes, LanePermit};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::control::RunControl;

/// A run's place.
pub struct LanePlace {
    lane: String,
    /// Control of the run, if it may have been taken up again.
    control: Option<Arc<RunControl>>,
    state: Mutex<LendState>,
}

#[derive(Debug)]
struct LendState {
    /// Permit of the run; `None` while it is lent, and if the run needs none.
    permit: Option<LanePermit>,
    /// True if the run has a place at all.
    needs_one: bool,
    /// Calls that wait.
    waiting: usize,
}

impl LanePlace {
    /// Makes the place of a run.
    pub fn new(lane: &str, permit: Option<LanePermit>) -> Self {
        let needs_one = permit.is_some();
        Self {
            lane: lane.to_owned(),
            control: None,
            state: Mutex::new(LendState { permit, needs_one, waiting: 0 }),
        }
    }

    /// Returns the place of a run that may be a second attempt.
    pub fn of_attempt(self, control: &Arc<RunControl>) -> Self {
        Self { control: Some(Arc::clone(control)), ..self }
    }

    /// Notes that this run only waits: it can't be the cause of the process's end now, and keeps no
    /// other suspect waiting.
    pub async fn prepared(&self, journal: &dyn Journal, run_id: &RunId) {
        if let Some(control) = &self.control {
            control.attempt.prepared(journal, run_id).await;
        }
    }

    /// Takes the permit out, when the run is over.
    pub fn take(&self) -> Option<LanePermit> {
        let mut state = self.state.lock();
        state.needs_one = false;
        state.permit.take()
    }

    /// Waits with the place lent, and for a place again: not when the run is stopped, which needs none any more.
    pub async fn lend<T>(
        &self,
        lanes: &GlobalLanes,
        cancel: &CancellationToken,
        waiting: impl Future<Output = T>,
    ) -> T {
        let lent = Lent::begin(self);
        let waited = waiting.await;
        drop(lent);
        let is_missing = {
            let state = self.state.lock();
            state.needs_one && state.waiting == 0 && state.permit.is_none()
        };
        if is_missing {
            tokio::select! { biased;
                () = cancel.cancelled() => {}
                permit = lanes.acquire(&self.lane) => self.put_back(permit),
            }
        }
        waited
    }

    fn put_back(&self, permit: LanePermit) {
        let mut state = self.state.lock();
        if state.needs_one && state.waiting == 0 && state.permit.is_none() {
            state.permit = Some(permit);
        }
    }
}

/// Lends the place until it is dropped.
struct Lent<'a>(&'a LanePlace);

impl<'a> Lent<'a> {
    fn begin(place: &'a LanePlace) -> Self {
        let given_back = {
            let mut state = place.state.lock();
            state.waiting += 1;
            state.permit.take()
        };
        drop(given_back);
        Self(place)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;
    use tokio::sync::oneshot;

    use super::*;
    use openclaw_runtime::global_lanes::LaneSizes;

    fn lanes() -> GlobalLanes {
        GlobalLanes::new(LaneSizes { main: 1, ..LaneSizes::default() })
    }

    #[tokio::test]
    async fn a_place_is_lent_while_somebody_waits_and_had_again_after() {
        let (lanes, cancel) = (lanes(), CancellationToken::new());
        let place = LanePlace::new("main", Some(lanes.acquire("main").await));
        let (answer, answered) = oneshot::channel();
        let (again, answered_too) = oneshot::channel();
        let first = place.lend(&lanes, &cancel, answered);
        let second = place.lend(&lanes, &cancel, answered_too);
        tokio::pin!(first, second);
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        let other = lanes.acquire("main").await;
        answer.send(1).unwrap();
        assert_eq!(first.await, Ok(1), "the other call still waits: no place is needed yet");
        again.send(2).unwrap();
        assert!(poll!(&mut second).is_pending(), "somebody else has the place");
        drop(other);
        assert_eq!(second.await, Ok(2));
        assert!(place.take().is_some());
    }

    #[tokio::test]
    async fn who_is_stopped_needs_no_place() {
        let (lanes, cancel) = (lanes(), CancellationToken::new());
        let place = LanePlace::new("main", Some(lanes.acquire("main").await));
        let (answer, answered) = oneshot::channel();
        {
            let waits = place.lend(&lanes, &cancel, answered);
            tokio::pin!(waits);
            assert!(poll!(&mut waits).is_pending());
            let _other = lanes.acquire("main").await;
            answer.send(()).unwrap();
            assert!(poll!(&mut waits).is_pending());
            cancel.cancel();
            assert_eq!(waits.await, Ok(()));
        }
        assert!(place.take().is_none());
        let none = LanePlace::new("main", None);
        none.lend(&lanes, &CancellationToken::new(), std::future::ready(())).await;
        assert!(none.take().is_none());
    }
}
