//! The order of deliveries: first come, first served in each conversation; conversations do not wait for each other. Pure.

use std::collections::{BTreeMap, HashMap};

use openclaw_journal::delivery::{LaneKey, OpenDelivery};
use tokio::time::Instant;

/// Open deliveries, by conversation.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: HashMap<LaneKey, Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    /// Deliveries by number, with the time at which each may be tried.
    waiting: BTreeMap<i64, Due>,
    /// Delivery that is being tried. It is still in `waiting`.
    busy: Option<i64>,
    /// True if the one being tried was added once more meanwhile.
    is_added_again: bool,
}

#[derive(Debug, Clone)]
struct Due {
    /// Earliest time of the try.
    at: Instant,
    /// True if the pause is our own, so that it may be shorter.
    is_pause: bool,
    thread: Option<String>,
    /// Same as [`OpenDelivery::is_paced`].
    is_paced: bool,
}

/// Outcome of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettledAttempt {
    /// No work is left.
    Over,
    /// Tried again, not before this time.
    Retry(Instant),
    /// Tried again at this time, or when [`Lanes::hurry`] says so.
    Pause(Instant),
}

impl Lanes {
    /// Adds a delivery. One that is here already stays as it is; one that is being tried is looked
    /// at once more afterwards, since it may have been given up and taken up again.
    pub(super) fn add(&mut self, delivery: OpenDelivery, at: Instant) {
        let OpenDelivery { number, lane, thread, is_paced, .. } = delivery;
        let due = Due { at, is_pause: false, thread, is_paced };
        let lane = self.lanes.entry(lane).or_default();
        lane.is_added_again |= lane.busy == Some(number);
        lane.waiting.entry(number).or_insert(due);
    }

    /// Takes out up to `room` deliveries that may be tried now: the first of each conversation (of
    /// those that are not behind a pause), if `may_try` allows it. Calls `may_try` last, because
    /// `true` begins the try. Conversations of the least `rank` come first, and of these the one
    /// with the oldest delivery.
    pub(super) fn start<R: Ord>(
        &mut self,
        now: Instant,
        room: usize,
        rank: impl Fn(&LaneKey) -> R,
        mut may_try: impl FnMut(&LaneKey, i64) -> bool,
    ) -> Vec<(LaneKey, i64)> {
        if room == 0 {
            return Vec::new();
        }
        let due = self.lanes.iter_mut().filter_map(|(key, lane)| {
            let number = lane.ready(now)?;
            Some((rank(key), number, key, lane))
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by(|(rank, number, ..), (other_rank, other, ..)| (rank, number).cmp(&(other_rank, other)));
        let mut started = Vec::new();
        for (_, number, key, lane) in due {
            if started.len() == room {
                break;
            }
            if may_try(key, number) {
                (lane.busy, lane.is_added_again) = (Some(number), false);
                started.push((key.clone(), number));
            }
        }
        started
    }

    /// Ends the try of a conversation.
    pub(super) fn settle(&mut self, key: &LaneKey, settled: SettledAttempt) {
        let Some(lane) = self.lanes.get_mut(key) else { return };
        let Some(number) = lane.busy.take() else { return };
        let again = match settled {
            // The next look finds it over, if it is.
            SettledAttempt::Over if lane.is_added_again => None,
            SettledAttempt::Over => {
                lane.waiting.remove(&number);
                None
            }
            SettledAttempt::Retry(at) => Some((at, false)),
            SettledAttempt::Pause(at) => Some((at, true)),
        };
        if let (Some((at, is_pause)), Some(due)) = (again, lane.waiting.get_mut(&number)) {
            // From its first try on all that is behind it waits for it.
            *due = Due { at, is_pause, is_paced: false, thread: due.thread.take() };
        }
        if lane.waiting.is_empty() {
            self.lanes.remove(key);
        }
    }

    /// Tries paused deliveries now, because the platform can be reached again.
    pub(super) fn hurry(&mut self, now: Instant, is_meant: impl Fn(&LaneKey) -> bool) {
        let meant = self.lanes.iter_mut().filter(|(key, _)| is_meant(key)).map(|(_, lane)| lane);
        for due in meant.flat_map(|lane| lane.waiting.values_mut()).filter(|due| due.is_pause) {
            due.at = due.at.min(now);
        }
    }

    /// Lets a conversation be tried now, because a person wants it.
    pub(super) fn hasten(&mut self, now: Instant, key: &LaneKey) {
        let waiting = self.lanes.get_mut(key).into_iter().flat_map(|lane| lane.waiting.values_mut());
        waiting.for_each(|due| due.at = due.at.min(now));
    }

    /// Time at which the next waiting delivery may be tried, no sooner than `not_before` says for
    /// its conversation; conversations for which that gives `None` don't count.
    pub(super) fn next_due(&self, not_before: impl Fn(&LaneKey) -> Option<Instant>) -> Option<Instant> {
        let waiting = self.lanes.iter().filter_map(|(key, lane)| Some((key, lane.due()?)));
        waiting.filter_map(|(key, due)| Some(due.max(not_before(key)?))).min()
    }
}

impl Lane {
    /// Deliveries of which one may be next, in their order: the first that is not paced, and before
    /// it the first paced one of each other thread.
    fn next(&self) -> impl Iterator<Item = (i64, &Due)> {
        let mut paced: Vec<Option<&str>> = Vec::new();
        let mut is_over = self.busy.is_some();
        let waiting = self.waiting.iter().filter(move |(_, due)| {
            let thread = due.thread.as_deref();
            if is_over || paced.contains(&thread) {
                return false;
            }
            match due.is_paced {
                true => paced.push(thread),
                false => is_over = true,
            }
            true
        });
        waiting.map(|(number, due)| (*number, due))
    }

    /// Returns the delivery that may be tried now.
    fn ready(&self, now: Instant) -> Option<i64> {
        self.next().find(|(_, due)| due.at <= now).map(|(number, _)| number)
    }

    /// Time at which one may be tried.
    fn due(&self) -> Option<Instant> {
        self.next().map(|(_, due)| due.at).min()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn lane(target: &str) -> LaneKey {
        LaneKey { channel: "c".to_owned(), account: "a".to_owned(), target: target.to_owned() }
    }

    fn open(lane: LaneKey, number: i64) -> OpenDelivery {
        OpenDelivery { number, lane, thread: None, next_at: 0, is_paced: false }
    }

    fn begin(
        lanes: &mut Lanes,
        now: Instant,
        room: usize,
        may_try: impl FnMut(&LaneKey, i64) -> bool,
    ) -> Vec<(LaneKey, i64)> {
        lanes.start(now, room, |_| (), may_try)
    }

    fn numbers(mut started: Vec<(LaneKey, i64)>) -> Vec<i64> {
        started.sort_by_key(|(_, number)| *number);
        started.into_iter().map(|(_, number)| number).collect()
    }

    #[test]
    fn what_pauses_is_tried_when_its_platform_is_back_and_what_was_asked_to_wait_waits() {
        let (now, mut lanes) = (Instant::now(), Lanes::default());
        let later = now + Duration::from_secs(120);
        for (target, number) in [("x", 1), ("x", 2), ("y", 3), ("z", 4)] {
            lanes.add(open(lane(target), number), now);
        }
        assert_eq!(numbers(begin(&mut lanes, now, 9, |_, _| true)), [1, 3, 4]);
        lanes.settle(&lane("x"), SettledAttempt::Pause(later));
        lanes.settle(&lane("y"), SettledAttempt::Retry(later));
        lanes.settle(&lane("z"), SettledAttempt::Pause(later));
        assert!(begin(&mut lanes, now, 9, |_, _| true).is_empty());
        lanes.hurry(now, |key| key.target != "z");
        assert_eq!(
            numbers(begin(&mut lanes, now, 9, |_, _| true)),
            [1],
            "in its order, and no other platform's"
        );
        lanes.hasten(now, &lane("y"));
        assert_eq!(numbers(begin(&mut lanes, now, 9, |_, _| true)), [3], "a person says so");
    }

    #[test]
    fn the_oldest_of_the_first_rank_is_asked_first() {
        let (now, mut lanes) = (Instant::now(), Lanes::default());
        for (target, number) in [("later", 1), ("x", 2), ("y", 3), ("later", 4), ("z", 5)] {
            lanes.add(open(lane(target), number), now);
        }
        let rank = |key: &LaneKey| key.target == "later";
        let mut order = Vec::new();
        lanes.start(now, 9, rank, |_, number| {
            order.push(number);
            false
        });
        assert_eq!(order, [2, 3, 5, 1]);
        assert_eq!(numbers(lanes.start(now, 2, rank, |_, _| true)), [2, 3], "as many as there is room for");
    }

    #[test]
    fn one_at_a_time_in_a_conversation_and_a_pause_holds_what_is_behind() {
        let (now, mut lanes) = (Instant::now(), Lanes::default());
        for (target, number) in [("x", 1), ("x", 2), ("y", 3), ("z", 4), ("x", 1)] {
            lanes.add(open(lane(target), number), now);
        }
        let ready = |key: &LaneKey, _: i64| key.target != "z";
        assert_eq!(numbers(begin(&mut lanes, now, 9, ready)), [1, 3]);
        assert_eq!(numbers(begin(&mut lanes, now, 9, ready)), [0; 0], "they are being tried");
        let later = now + Duration::from_secs(5);
        lanes.settle(&lane("x"), SettledAttempt::Retry(later));
        lanes.settle(&lane("y"), SettledAttempt::Over);
        assert_eq!(numbers(begin(&mut lanes, now, 9, ready)), [0; 0], "2 waits behind 1");
        assert_eq!(lanes.next_due(|key| ready(key, 0).then_some(now)), Some(later));
        assert_eq!(numbers(begin(&mut lanes, later, 9, ready)), [1]);
        lanes.settle(&lane("x"), SettledAttempt::Over);
        assert_eq!(numbers(begin(&mut lanes, later, 9, |_, _| true)), [2, 4]);
        lanes.settle(&lane("x"), SettledAttempt::Over);
        lanes.settle(&lane("z"), SettledAttempt::Over);
        assert!(lanes.lanes.is_empty(), "nothing is left behind");
    }

    #[test]
    fn a_pause_holds_its_own_thread_alone_and_one_that_was_tried_holds_all() {
        let (now, mut lanes) = (Instant::now(), Lanes::default());
        let (soon, later) = (now + Duration::from_secs(2), now + Duration::from_secs(5));
        let in_thread = |number, thread: &str, is_paced| OpenDelivery {
            thread: Some(thread.to_owned()),
            is_paced,
            ..open(lane("x"), number)
        };
        lanes.add(in_thread(1, "a", true), later);
        lanes.add(in_thread(2, "a", false), now);
        lanes.add(in_thread(3, "b", true), soon);
        lanes.add(in_thread(4, "b", true), soon);
        lanes.add(in_thread(5, "c", false), now);
        lanes.add(in_thread(6, "c", false), now);
        for number in [5, 6] {
            assert_eq!(numbers(begin(&mut lanes, now, 9, |_, _| true)), [number]);
            assert_eq!(lanes.next_due(|_| Some(now)), None, "one at a time");
            lanes.settle(&lane("x"), SettledAttempt::Over);
        }
        assert_eq!(numbers(begin(&mut lanes, now, 9, |_, _| true)), [0; 0], "2 waits behind 1");
        assert_eq!(lanes.next_due(|_| Some(now)), Some(soon));
        assert_eq!(numbers(begin(&mut lanes, soon, 9, |_, _| true)), [3]);
        lanes.settle(&lane("x"), SettledAttempt::Retry(later));
        assert_eq!(numbers(begin(&mut lanes, soon, 9, |_, _| true)), [0; 0], "4 waits behind 3");
        for number in [1, 2, 3, 4] {
            assert_eq!(numbers(begin(&mut lanes, later, 9, |_, _| true)), [number]);
            lanes.settle(&lane("x"), SettledAttempt::Over);
        }
        assert!(lanes.lanes.is_empty());
    }

    #[test]
    fn one_that_is_taken_up_again_while_its_try_ends_is_tried_again() {
        let (now, mut lanes) = (Instant::now(), Lanes::default());
        lanes.add(open(lane("x"), 1), now);
        assert_eq!(numbers(begin(&mut lanes, now, 9, |_, _| true)), [1]);
        // The delivery is given up, which is on disk; a person takes it up again before its task
        // has ended.
        lanes.add(open(lane("x"), 1), now);
        lanes.settle(&lane("x"), SettledAttempt::Over);
        assert_eq!(numbers(begin(&mut lanes, now, 9, |_, _| true)), [1]);
        lanes.settle(&lane("x"), SettledAttempt::Over);
        assert!(lanes.lanes.is_empty());
    }

    proptest! {
        /// Whatever fails and whenever, each conversation's numbers end in their order, each once.
        #[test]
        fn order_is_kept_in_every_conversation(
            targets in prop::collection::vec(0..4_u8, 1..40),
            fails in prop::collection::vec(any::<bool>(), 0..60),
            room in 1..5_usize,
        ) {
            let (mut now, mut lanes) = (Instant::now(), Lanes::default());
            for (number, target) in targets.iter().enumerate() {
                lanes.add(open(lane(&target.to_string()), i64::try_from(number).unwrap()), now);
            }
            let mut fails = fails.into_iter();
            let mut ended: Vec<(LaneKey, i64)> = Vec::new();
            while ended.len() < targets.len() {
                let started = begin(&mut lanes, now, room, |_, _| true);
                prop_assert!(started.len() <= room);
                let busy: BTreeSet<String> = started.iter().map(|(key, _)| key.target.clone()).collect();
                prop_assert_eq!(busy.len(), started.len());
                for (key, number) in started {
                    if fails.next() == Some(true) {
                        lanes.settle(&key, SettledAttempt::Retry(now + Duration::from_secs(1)));
                    } else {
                        lanes.settle(&key, SettledAttempt::Over);
                        ended.push((key, number));
                    }
                }
                now += Duration::from_secs(1);
            }
            for target in 0..4_u8 {
                let key = lane(&target.to_string());
                let order: Vec<i64> = ended.iter().filter(|(other, _)| *other == key).map(|(_, n)| *n).collect();
                prop_assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:?}");
            }
        }
    }
}
