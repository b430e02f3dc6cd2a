//! The order of deliveries: first come, first served in each conversation; conversations do not wait for each other. Pure.

use std::collections::{BTreeMap, HashMap};

use openclaw_channels::Address;
use tokio::time::Instant;

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LaneKey {
    pub(crate) channel: String,
    pub(crate) account: String,
    pub(crate) target: String,
}

impl From<&Address> for LaneKey {
    fn from(address: &Address) -> Self {
        Self {
            channel: address.channel.clone(),
            account: address.account.clone(),
            target: address.target.clone(),
        }
    }
}

/// One that is not over, as far as its order needs it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenDelivery {
    /// Its number: numbers grow in the order of acceptance.
    pub(crate) number: i64,
    /// Its conversation.
    pub(crate) lane: LaneKey,
    /// Not to be tried before; Unix milliseconds.
    pub(crate) next_at: i64,
}

/// Everything that is not over, by conversation.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: HashMap<LaneKey, Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    /// When each may be tried.
    waiting: BTreeMap<i64, Due>,
    /// The one that is being tried. It is still in `waiting`.
    busy: Option<i64>,
    /// That one was added once more meanwhile.
    is_added_again: bool,
}

#[derive(Debug, Clone, Copy)]
struct Due {
    /// Not before this.
    at: Instant,
    /// The pause is our own, and nobody minds if it is shorter.
    is_pause: bool,
}

/// What became of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// Nothing is left to be done.
    Over,
    /// It is to be tried again, not before this.
    Retry(Instant),
    /// It is to be tried again at this time, or when [`Lanes::hurry`] says so.
    Pause(Instant),
}

impl Lanes {
    /// Adds one. One that is here already stays as it is; one that is being tried is looked at once more afterwards, since it may have been
    /// given up and taken up again.
    pub(super) fn add(&mut self, key: LaneKey, number: i64, due: Instant) {
        let due = Due { at: due, is_pause: false };
        let lane = self.lanes.entry(key).or_default();
        lane.is_added_again |= lane.busy == Some(number);
        lane.waiting.entry(number).or_insert(due);
    }

    /// Takes up to `room` out that may be tried now: the first of each conversation, if `may_try` it. That is asked last: `true` begins it. Those
    /// of the least `rank` are asked first, and of these the oldest.
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
            let (number, _) = lane.head().filter(|(_, due)| *due <= now)?;
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

    /// The try of a conversation has ended.
    pub(super) fn settle(&mut self, key: &LaneKey, settled: Settled) {
        let Some(lane) = self.lanes.get_mut(key) else { return };
        let Some(number) = lane.busy.take() else { return };
        match settled {
            // The next look finds it over, if it is.
            Settled::Over if lane.is_added_again => {}
            Settled::Over => drop(lane.waiting.remove(&number)),
            Settled::Retry(at) => drop(lane.waiting.insert(number, Due { at, is_pause: false })),
            Settled::Pause(at) => drop(lane.waiting.insert(number, Due { at, is_pause: true })),
        }
        if lane.waiting.is_empty() {
            self.lanes.remove(key);
        }
    }

    /// The platform can be reached again: what pauses since it could not is tried now.
    pub(super) fn hurry(&mut self, now: Instant, is_meant: impl Fn(&LaneKey) -> bool) {
        let meant = self.lanes.iter_mut().filter(|(key, _)| is_meant(key)).map(|(_, lane)| lane);
        for due in meant.flat_map(|lane| lane.waiting.values_mut()).filter(|due| due.is_pause) {
            due.at = due.at.min(now);
        }
    }

    /// A person wants a conversation tried now.
    pub(super) fn hasten(&mut self, now: Instant, key: &LaneKey) {
        let waiting = self.lanes.get_mut(key).into_iter().flat_map(|lane| lane.waiting.values_mut());
        waiting.for_each(|due| due.at = due.at.min(now));
    }

    /// When the next one that waits for its time may be tried, none of its conversation before the time that `not_before` gives for it; never
    /// where that gives none.
    pub(super) fn next_due(&self, not_before: impl Fn(&LaneKey) -> Option<Instant>) -> Option<Instant> {
        let waiting = self.lanes.iter().filter_map(|(key, lane)| Some((key, lane.head()?)));
        waiting.filter_map(|(key, (_, due))| Some(due.max(not_before(key)?))).min()
    }
}

impl Lane {
    fn head(&self) -> Option<(i64, Instant)> {
        let (number, due) = self.waiting.first_key_value()?;
        self.busy.is_none().then_some((*number, due.at))
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
            lanes.add(lane(target), number, now);
        }
        assert_eq!(numbers(begin(&mut lanes, now, 9, |_, _| true)), [1, 3, 4]);
        lanes.settle(&lane("x"), Settled::Pause(later));
        lanes.settle(&lane("y"), Settled::Retry(later));
        lanes.settle(&lane("z"), Settled::Pause(later));
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
            lanes.add(lane(target), number, now);
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
            lanes.add(lane(target), number, now);
        }
        let ready = |key: &LaneKey, _: i64| key.target != "z";
        assert_eq!(numbers(begin(&mut lanes, now, 9, ready)), [1, 3]);
        assert_eq!(numbers(begin(&mut lanes, now, 9, ready)), [0; 0], "they are being tried");
        let later = now + Duration::from_secs(5);
        lanes.settle(&lane("x"), Settled::Retry(later));
        lanes.settle(&lane("y"), Settled::Over);
        assert_eq!(numbers(begin(&mut lanes, now, 9, ready)), [0; 0], "2 waits behind 1");
        assert_eq!(lanes.next_due(|key| ready(key, 0).then_some(now)), Some(later));
        assert_eq!(numbers(begin(&mut lanes, later, 9, ready)), [1]);
        lanes.settle(&lane("x"), Settled::Over);
        assert_eq!(numbers(begin(&mut lanes, later, 9, |_, _| true)), [2, 4]);
        lanes.settle(&lane("x"), Settled::Over);
        lanes.settle(&lane("z"), Settled::Over);
        assert!(lanes.lanes.is_empty(), "nothing is left behind");
    }

    #[test]
    fn one_that_is_taken_up_again_while_its_try_ends_is_tried_again() {
        let (now, mut lanes) = (Instant::now(), Lanes::default());
        lanes.add(lane("x"), 1, now);
        assert_eq!(numbers(begin(&mut lanes, now, 9, |_, _| true)), [1]);
        // It is given up, which is on disk; a person takes it up again before its task has ended.
        lanes.add(lane("x"), 1, now);
        lanes.settle(&lane("x"), Settled::Over);
        assert_eq!(numbers(begin(&mut lanes, now, 9, |_, _| true)), [1]);
        lanes.settle(&lane("x"), Settled::Over);
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
                lanes.add(lane(&target.to_string()), i64::try_from(number).unwrap(), now);
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
                        lanes.settle(&key, Settled::Retry(now + Duration::from_secs(1)));
                    } else {
                        lanes.settle(&key, Settled::Over);
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
