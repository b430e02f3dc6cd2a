//! The lanes all sessions share: FIFO, each with so many places (spec `queue.md` §1).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use openclaw_config::Config;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Shortest wait that is told in the log (spec `queue.md` §1).
const WORTH_A_WARNING: Duration = Duration::from_secs(2);

/// Object and length of a run's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunWait {
    /// A place in its lane.
    Place(Duration),
    /// The run before it in its session.
    Session(Duration),
}

/// Returns the time that something waited for its lane, if it is worth telling; then the log tells
/// it too, with the number that still wait.
pub fn long_wait(since: Instant, lane: &str, behind: usize) -> Option<Duration> {
    let waited = Some(since.elapsed()).filter(|waited| *waited >= WORTH_A_WARNING)?;
    // People search logs for these very words.
    let waited_ms = waited.as_millis();
    tracing::warn!("lane wait exceeded: lane={lane} waitedMs={waited_ms} queueAhead={behind}");
    Some(waited)
}

/// Places of the named lanes. Any other lane has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneSizes {
    /// Replies, heartbeats, the CLI's `agent`: `agents.defaults.maxConcurrent`.
    pub main: usize,
    /// Children of `sessions_spawn`: `agents.defaults.subagents.maxConcurrent`.
    pub subagent: usize,
    /// Isolated cron jobs and webhook turns: `cron.maxConcurrentRuns`.
    pub cron: usize,
}

impl Default for LaneSizes {
    fn default() -> Self {
        Self::of_config(&Config::default())
    }
}

impl LaneSizes {
    /// The configured places.
    pub fn of_config(config: &Config) -> Self {
        let agents = &config.agents.defaults;
        let cron = config.document().pointer("/cron/maxConcurrentRuns").and_then(serde_json::Value::as_u64);
        Self {
            main: agents.max_concurrent(),
            subagent: agents.subagents.max_concurrent(),
            cron: cron.map_or(1, |places| usize::try_from(places).unwrap_or(usize::MAX).max(1)),
        }
    }

    fn of(self, name: &str) -> usize {
        let places = match name {
            // With one place, a nested run that itself asks another session would wait for itself (spec `queue.md` §1).
            "main" | "nested" => self.main,
            "subagent" => self.subagent,
            "cron" => self.cron,
            _ => 1,
        };
        places.clamp(1, Semaphore::MAX_PERMITS)
    }
}

/// The lanes in use.
#[derive(Debug)]
pub struct GlobalLanes {
    state: Mutex<Lanes>,
}

#[derive(Debug)]
struct Lanes {
    sizes: LaneSizes,
    by_name: HashMap<String, Arc<Lane>>,
}

#[derive(Debug)]
struct Lane {
    places: Arc<Semaphore>,
    /// Places it should have.
    size: AtomicUsize,
    /// Places it has too many of; they go when they are given back.
    surplus: AtomicUsize,
    /// Number of runs that wait for a place.
    waiting: AtomicUsize,
}

/// Counts a run that waits, until it is dropped.
struct Waiter<'a>(&'a AtomicUsize);

impl<'a> Waiter<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A permit to work in a lane, given back when dropped.
#[derive(Debug)]
pub struct LanePermit {
    lane: Arc<Lane>,
    permit: Option<OwnedSemaphorePermit>,
    /// Time that it was waited for; `None` if that was short.
    pub waited: Option<Duration>,
}

impl Drop for LanePermit {
    fn drop(&mut self) {
        let one_less = |surplus: usize| surplus.checked_sub(1);
        let Some(permit) = self.permit.take() else { return };
        if self.lane.surplus.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less).is_ok() {
            permit.forget();
        }
    }
}

impl Lane {
    fn new(size: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(size)),
            size: AtomicUsize::new(size),
            surplus: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Only called under the lock of all lanes.
    fn resize(&self, size: usize) {
        let old = self.size.swap(size, Ordering::AcqRel);
        if size < old {
            let taken = old - size;
            let gone = self.places.forget_permits(taken);
            self.surplus.fetch_add(taken - gone, Ordering::AcqRel);
            return;
        }
        let mut more = size - old;
        let pay_back = |surplus: usize| Some(surplus.saturating_sub(more));
        if let Ok(surplus) = self.surplus.fetch_update(Ordering::AcqRel, Ordering::Acquire, pay_back) {
            more = more.saturating_sub(surplus);
        }
        self.places.add_permits(more);
    }
}

impl GlobalLanes {
    /// Lanes of these sizes, all free.
    pub fn new(sizes: LaneSizes) -> Self {
        Self { state: Mutex::new(Lanes { sizes, by_name: HashMap::new() }) }
    }

    /// Resizes the lanes. Runs that hold a place keep it; runs that wait get a new one at once.
    pub fn resize(&self, sizes: LaneSizes) {
        let mut state = self.state.lock();
        state.sizes = sizes;
        for (name, lane) in &state.by_name {
            lane.resize(sizes.of(name));
        }
    }

    /// Waits for a permit of a lane; blank names mean `main`.
    pub async fn acquire(&self, name: &str) -> LanePermit {
        let since = Instant::now();
        let lane = self.lane(name);
        // The semaphores are never closed; were one, its lane would simply not limit any more.
        let permit = {
            let _waits = Waiter::begin(&lane.waiting);
            Arc::clone(&lane.places).acquire_owned().await.ok()
        };
        let waited = long_wait(since, name_of(name), lane.waiting.load(Ordering::Acquire));
        LanePermit { lane, permit, waited }
    }

    fn lane(&self, name: &str) -> Arc<Lane> {
        let name = name_of(name);
        let mut state = self.state.lock();
        if let Some(lane) = state.by_name.get(name) {
            return Arc::clone(lane);
        }
        // Lanes nobody uses go before a new one comes: their names are a client's choice.
        state.by_name.retain(|_, lane| Arc::strong_count(lane) > 1);
        let lane = Arc::new(Lane::new(state.sizes.of(name)));
        state.by_name.insert(name.to_owned(), Arc::clone(&lane));
        lane
    }
}

/// Blank names mean `main`.
fn name_of(name: &str) -> &str {
    match name.trim() {
        "" => "main",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, poll};

    use super::*;

    #[tokio::test]
    async fn a_lane_has_its_places_and_the_next_waits_for_one_in_turn() {
        let lanes = GlobalLanes::new(LaneSizes::default());
        for (name, places) in [("main", 4), (" ", 0), ("subagent", 8), ("cron", 1), ("nested", 4), ("own", 1)]
        {
            let mut held: Vec<_> = (0..places).map(|_| lanes.acquire(name).now_or_never().unwrap()).collect();
            if places == 0 {
                continue;
            }
            let (fifth, sixth) = (lanes.acquire(name), lanes.acquire(name));
            tokio::pin!(fifth, sixth);
            assert!(poll!(&mut fifth).is_pending() && poll!(&mut sixth).is_pending(), "{name}");
            drop(held.pop());
            assert!(poll!(&mut sixth).is_pending(), "{name}: first come, first served");
            assert!(poll!(&mut fifth).is_ready(), "{name}");
        }
    }

    /// Spec `queue.md` §1.
    #[tokio::test(start_paused = true)]
    async fn a_long_wait_is_told_and_a_short_one_is_not() {
        let lanes = GlobalLanes::new(LaneSizes { main: 1, ..LaneSizes::default() });
        for (held_ms, told) in [(1_999, None), (2_000, Some(Duration::from_secs(2)))] {
            let first = lanes.acquire("main").await;
            assert_eq!(first.waited, None);
            let holding = async {
                tokio::time::sleep(Duration::from_millis(held_ms)).await;
                drop(first);
            };
            let (second, ()) = tokio::join!(lanes.acquire(" main"), holding);
            assert_eq!(second.waited, told, "{held_ms}");
            assert_eq!(second.lane.waiting.load(Ordering::Acquire), 0);
        }
    }

    #[tokio::test]
    async fn a_blank_name_is_main_and_unused_lanes_are_forgotten() {
        let lanes = GlobalLanes::new(LaneSizes { main: 1, ..LaneSizes::default() });
        let held = lanes.acquire("main").await;
        assert!(lanes.acquire(" ").now_or_never().is_none());
        for n in 0..100 {
            lanes.acquire(&format!("lane-{n}")).await;
        }
        assert!(lanes.state.lock().by_name.len() <= 2);
        drop(held);
        assert!(lanes.acquire("").now_or_never().is_some());
    }

    #[tokio::test]
    async fn another_size_holds_for_who_waits_and_for_who_comes() {
        let sizes = |main| LaneSizes { main, ..LaneSizes::default() };
        let lanes = GlobalLanes::new(sizes(1));
        let first = lanes.acquire("main").await;
        let second = lanes.acquire("main");
        tokio::pin!(second);
        assert!(poll!(&mut second).is_pending());
        lanes.resize(sizes(3));
        let second = second.now_or_never().expect("there is room now");
        let third = lanes.acquire("main").now_or_never().unwrap();
        lanes.resize(sizes(1));
        drop(first);
        drop(second);
        assert!(lanes.acquire("main").now_or_never().is_none(), "one has the only place");
        lanes.resize(sizes(2));
        let fourth = lanes.acquire("main").now_or_never().expect("the second place");
        assert!(lanes.acquire("main").now_or_never().is_none());
        lanes.resize(sizes(1));
        lanes.resize(sizes(2));
        drop((third, fourth));
        let both = (lanes.acquire("main").now_or_never(), lanes.acquire("main").now_or_never());
        assert!(both.0.is_some() && both.1.is_some());
        assert!(lanes.acquire("main").now_or_never().is_none());
    }
}
