//! Schedule of heartbeats (spec `agent-runtime.md` §11.2). A pure machine: it is told the time, in
//! Unix milliseconds, what is configured, what somebody wishes and how beats ended, and tells which
//! beats are to be made.

use std::collections::BTreeMap;

use openclaw_protocol::AgentId;

use super::reason::HeartbeatReason;

/// Wishes within this time are one beat, made for the last of them.
const COALESCE_MS: i64 = 250;
/// A beat that found its session at work is tried again after this.
const RETRY_MS: i64 = 1_000;

/// Agents that beat, each with the time of its next beat.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    slots: BTreeMap<AgentId, HeartbeatSlot>,
    /// `set-heartbeats`
    is_off: bool,
}

/// Heartbeat of one agent.
#[derive(Debug)]
struct HeartbeatSlot {
    /// `None` for an agent whose interval is off: it never beats.
    every_ms: Option<i64>,
    due: Option<i64>,
    last_run: Option<i64>,
    wish: Option<(i64, HeartbeatReason)>,
    is_running: bool,
}

/// Result of a beat, as far as the schedule depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BeatOutcome {
    /// The beat was made, or there was a reason not to: the next one is an interval away.
    Counts,
    /// The session was at work: the beat is tried again soon.
    InFlight,
    /// Heartbeats of this agent were switched off meanwhile.
    Disabled,
}

impl Schedule {
    /// Takes the configuration in force: the agents that have heartbeats, and their intervals.
    /// Agents that stay keep the time of their last beat.
    pub(super) fn configure(&mut self, now: i64, agents: impl IntoIterator<Item = (AgentId, Option<u64>)>) {
        let mut before = std::mem::take(&mut self.slots);
        for (agent, every_ms) in agents {
            let every_ms = every_ms.map(|every| i64::try_from(every).unwrap_or(i64::MAX));
            let slot = match before.remove(&agent) {
                Some(known) => known.at_interval(now, every_ms),
                None => HeartbeatSlot::new(now, every_ms),
            };
            self.slots.insert(agent, slot);
        }
    }

    /// Switches all of it on or off. Beats that are overdue when it is switched on are made then;
    /// wishes made meanwhile are forgotten.
    pub(super) fn set_enabled(&mut self, enabled: bool) {
        self.is_off = !enabled;
        if self.is_off {
            self.slots.values_mut().for_each(|slot| slot.wish = None);
        }
    }

    /// Records a wish for a beat of an agent, or of all that have heartbeats, whatever is due.
    pub(super) fn wish(&mut self, now: i64, reason: &HeartbeatReason, agent: Option<&AgentId>) {
        if self.is_off {
            return;
        }
        let meant = self.slots.iter_mut().filter(|(id, _)| agent.is_none_or(|agent| agent == *id));
        for (_, slot) in meant {
            // The first of several says when, the last one why.
            let at = slot.wish.as_ref().map_or(now.saturating_add(COALESCE_MS), |(at, _)| *at);
            slot.wish = Some((at, reason.clone()));
        }
    }

    /// Time of the next thing to do; `None` if only news can change that.
    pub(super) fn next(&self) -> Option<i64> {
        if self.is_off {
            return None;
        }
        self.slots.values().filter(|slot| !slot.is_running).filter_map(HeartbeatSlot::next).min()
    }

    /// The beats to be made now. Each is under way until it has [`ended`](Self::ended).
    pub(super) fn take(&mut self, now: i64) -> Vec<(AgentId, HeartbeatReason)> {
        if self.is_off {
            return Vec::new();
        }
        let free = self.slots.iter_mut().filter(|(_, slot)| !slot.is_running);
        free.filter_map(|(agent, slot)| Some((agent.clone(), slot.take(now)?))).collect()
    }

    /// A beat that was taken has ended.
    pub(super) fn ended(&mut self, now: i64, agent: &AgentId, reason: HeartbeatReason, ended: BeatOutcome) {
        let Some(slot) = self.slots.get_mut(agent) else { return };
        slot.is_running = false;
        match ended {
            BeatOutcome::Counts => slot.ran(now),
            BeatOutcome::InFlight => {
                let retry = now.saturating_add(RETRY_MS);
                slot.wish.get_or_insert((retry, reason));
                slot.due = slot.due.map(|due| due.max(retry));
            }
            BeatOutcome::Disabled => slot.due = slot.interval_from(now),
        }
    }
}

impl HeartbeatSlot {
    fn new(now: i64, every_ms: Option<i64>) -> Self {
        let slot = Self { every_ms, due: None, last_run: None, wish: None, is_running: false };
        Self { due: slot.interval_from(now), ..slot }
    }

    /// The same agent at another interval, or the same one: counted from its last beat, where there was one.
    fn at_interval(self, now: i64, every_ms: Option<i64>) -> Self {
        if self.every_ms == every_ms {
            return self;
        }
        let changed = Self { every_ms, ..self };
        Self { due: changed.interval_from(changed.last_run.unwrap_or(now)), ..changed }
    }

    fn interval_from(&self, from: i64) -> Option<i64> {
        Some(from.saturating_add(self.every_ms?))
    }

    fn ran(&mut self, now: i64) {
        self.last_run = Some(now);
        self.due = self.interval_from(now);
    }

    fn next(&self) -> Option<i64> {
        self.due.into_iter().chain(self.wish.as_ref().map(|(at, _)| *at)).min()
    }

    fn take(&mut self, now: i64) -> Option<HeartbeatReason> {
        self.mind_clock(now);
        let reason = match self.wish.take_if(|(at, _)| *at <= now) {
            Some((_, reason)) => Some(reason),
            None => self.due.filter(|due| *due <= now).map(|_| HeartbeatReason::Interval),
        };
        self.is_running = reason.is_some();
        reason
    }

    /// A clock that was put back must not silence an agent for as long.
    fn mind_clock(&mut self, now: i64) {
        let latest = self.interval_from(now);
        if self.due > latest {
            self.due = latest;
        }
        if let Some((at, _)) = &mut self.wish {
            *at = (*at).min(now.saturating_add(RETRY_MS));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: i64 = 60_000;

    fn id(name: &str) -> AgentId {
        AgentId::normalize(name)
    }

    fn schedule(agents: &[(&str, Option<u64>)]) -> Schedule {
        let mut schedule = Schedule::default();
        configure(&mut schedule, 0, agents);
        schedule
    }

    fn configure(schedule: &mut Schedule, now: i64, agents: &[(&str, Option<u64>)]) {
        schedule.configure(now, agents.iter().map(|(name, minutes)| (id(name), minutes.map(|m| m * 60_000))));
    }

    fn taken(schedule: &mut Schedule, now: i64) -> Vec<String> {
        schedule.take(now).into_iter().map(|(agent, reason)| format!("{agent} {reason}")).collect()
    }

    #[test]
    fn each_agent_beats_at_its_own_interval() {
        let mut all = schedule(&[("a", Some(10)), ("b", Some(30)), ("off", None)]);
        assert_eq!(all.next(), Some(10 * MINUTE));
        assert_eq!(taken(&mut all, 10 * MINUTE - 1), [""; 0]);
        assert_eq!(taken(&mut all, 10 * MINUTE), ["a interval"]);
        assert_eq!(taken(&mut all, 10 * MINUTE), [""; 0], "it is under way");
        assert_eq!(all.next(), Some(30 * MINUTE), "who is under way is not waited for");
        all.ended(11 * MINUTE, &id("a"), HeartbeatReason::Interval, BeatOutcome::Counts);
        assert_eq!(all.next(), Some(21 * MINUTE));
        assert_eq!(
            taken(&mut all, 90 * MINUTE),
            ["a interval", "b interval"],
            "what was slept through is made once"
        );
    }

    #[test]
    fn a_new_configuration_keeps_when_an_agent_beat_last() {
        let mut all = schedule(&[("a", Some(10)), ("b", Some(10))]);
        taken(&mut all, 10 * MINUTE);
        all.ended(10 * MINUTE, &id("a"), HeartbeatReason::Interval, BeatOutcome::Counts);
        configure(&mut all, 12 * MINUTE, &[("a", Some(5)), ("b", Some(10)), ("c", Some(4))]);
        assert_eq!(all.next(), Some(15 * MINUTE), "five minutes after the last beat");
        assert_eq!(taken(&mut all, 16 * MINUTE), ["a interval", "c interval"], "b is still under way");
        all.ended(16 * MINUTE, &id("b"), HeartbeatReason::Interval, BeatOutcome::Counts);
        configure(&mut all, 17 * MINUTE, &[("b", Some(10))]);
        assert_eq!(all.next(), Some(26 * MINUTE), "the same interval changes nothing");
        all.ended(17 * MINUTE, &id("a"), HeartbeatReason::Interval, BeatOutcome::Counts);
        configure(&mut all, 17 * MINUTE, &[("b", None)]);
        assert_eq!(all.next(), None);
    }

    #[test]
    fn wishes_of_a_moment_are_one_beat_for_the_last_reason() {
        let mut all = schedule(&[("a", Some(10)), ("b", None)]);
        all.wish(100, &HeartbeatReason::Wake, None);
        all.wish(200, &HeartbeatReason::Cron("j".to_owned()), Some(&id("b")));
        all.wish(210, &HeartbeatReason::Wake, Some(&id("nobody")));
        assert_eq!(all.next(), Some(350));
        assert_eq!(taken(&mut all, 349), [""; 0]);
        assert_eq!(taken(&mut all, 350), ["a wake", "b cron:j"]);
        all.wish(360, &HeartbeatReason::Wake, Some(&id("a")));
        all.ended(400, &id("a"), HeartbeatReason::Wake, BeatOutcome::Counts);
        assert_eq!(all.next(), Some(610), "a wish during a beat is a beat of its own");
        assert_eq!(taken(&mut all, 610), ["a wake"]);
        all.ended(700, &id("a"), HeartbeatReason::Wake, BeatOutcome::Counts);
        assert_eq!(all.next(), Some(700 + 10 * MINUTE), "the interval begins anew");
    }

    #[test]
    fn a_beat_that_found_its_session_at_work_is_tried_again_for_the_same_reason() {
        let mut all = schedule(&[("a", Some(10))]);
        taken(&mut all, 10 * MINUTE);
        all.ended(10 * MINUTE, &id("a"), HeartbeatReason::Interval, BeatOutcome::InFlight);
        // The interval is overdue still: it is the retry that is waited for, not made at once again and again.
        assert_eq!(taken(&mut all, 10 * MINUTE + 999), [""; 0]);
        assert_eq!(taken(&mut all, 10 * MINUTE + 1_000), ["a interval"]);
        all.wish(10 * MINUTE + 1_500, &HeartbeatReason::Wake, None);
        all.ended(10 * MINUTE + 1_600, &id("a"), HeartbeatReason::Interval, BeatOutcome::InFlight);
        assert_eq!(taken(&mut all, 10 * MINUTE + 1_750), ["a wake"], "a wish made meanwhile takes its place");
    }

    #[test]
    fn nothing_is_made_while_it_is_off_and_what_is_due_when_it_is_on_again() {
        let mut all = schedule(&[("a", Some(10))]);
        all.wish(0, &HeartbeatReason::Wake, None);
        all.set_enabled(false);
        all.wish(1, &HeartbeatReason::Wake, None);
        assert_eq!((all.next(), taken(&mut all, 60 * MINUTE)), (None, vec![]));
        all.set_enabled(true);
        assert_eq!(taken(&mut all, 60 * MINUTE), ["a interval"]);
        all.ended(60 * MINUTE, &id("a"), HeartbeatReason::Interval, BeatOutcome::Disabled);
        assert_eq!(all.next(), Some(70 * MINUTE));
    }

    #[test]
    fn a_clock_that_is_put_back_silences_nobody() {
        let mut all = schedule(&[("a", Some(10))]);
        configure(&mut all, 0, &[("a", Some(10))]);
        taken(&mut all, 1_000 * MINUTE);
        all.ended(1_000 * MINUTE, &id("a"), HeartbeatReason::Interval, BeatOutcome::Counts);
        assert_eq!(taken(&mut all, 5 * MINUTE), [""; 0]);
        assert_eq!(all.next(), Some(15 * MINUTE));
    }

    proptest! {
        /// However beats end, one agent has never two under way, and is never made to wait longer than its interval.
        #[test]
        fn an_agent_has_one_beat_at_a_time_and_one_an_interval(steps in prop::collection::vec((0_i64..400_000, 0..5), 1..60)) {
            let mut all = schedule(&[("a", Some(3))]);
            let (mut now, mut under_way, mut last) = (0, None, 0);
            for (pause, what) in steps {
                now += pause;
                for (_, reason) in all.take(now) {
                    prop_assert!(under_way.is_none());
                    under_way = Some(reason);
                }
                let ended = match what {
                    0 => Some(BeatOutcome::Counts),
                    1 => Some(BeatOutcome::InFlight),
                    2 => { all.wish(now, &HeartbeatReason::Wake, None); None }
                    _ => None,
                };
                if let Some(ended) = ended && let Some(reason) = under_way.take() {
                    all.ended(now, &id("a"), reason, ended);
                    if ended == BeatOutcome::Counts { last = now; }
                }
                if under_way.is_none() {
                    let next = all.next();
                    prop_assert!(next.is_some_and(|at| at <= (last + 3 * MINUTE).max(now + RETRY_MS)));
                }
            }
        }
    }
}
