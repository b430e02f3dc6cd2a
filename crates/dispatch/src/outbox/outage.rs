//! Whether the platform of an account is down, by what came of tries and by what the account says. Pure.
//!
//! It is down while nothing of it works. Then tries do not count, and one delivery at a time asks whether it works again: a hundred that wait
//! do not each try. The conversations take turns at that, those first that did not fail yet: a few that always fail keep no other waiting.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use openclaw_channels::SendError;
use tokio::time::Instant;

/// Pause after the first try that found the platform down. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
/// The longest, where nothing was sent for certain: the platform can't be reached.
const UNREACHABLE_PAUSE: Duration = FIRST_PAUSE;
/// The longest elsewhere. Each try may have had its effect.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);
/// A conversation that did not fail yet waits for none of these; so long behind another one all the same, that a real outage is not asked by
/// each new message.
const FRESH_PAUSE: Duration = FIRST_PAUSE;
/// So many conversations in which the platform failed, and it is not for what is said in one of them.
const SEVERAL: usize = 2;
/// So many conversations that fail are remembered; of more, those whose failure is the latest.
const MAX_FAILING: usize = 1_000;
/// So many conversations that a person wants tried are remembered; more of them take their turns like all.
const MAX_WANTED: usize = 1_000;

/// How a platform does, for the delivery that was just tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    /// It works: what happened concerns this delivery.
    Works,
    /// It is down. When it is tried again is not stored with the delivery: the next process finds out by itself how the platform does.
    Down,
}

/// Whose turn it is among conversations that wait; the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProbeRank {
    /// A person wants it tried.
    Wanted,
    /// It did not fail.
    Fresh,
    /// The platform failed in it. This counts the failures of the account.
    Failed(u64),
}

/// A conversation in which the platform failed, and has answered nothing since.
#[derive(Debug, Clone, Copy)]
struct Failing {
    /// As in [`ProbeRank::Failed`].
    failure: u64,
    /// The platform answered another conversation afterwards: if it fails here once more, that is for what is said here.
    is_overtaken: bool,
    /// It failed here since it last answered anything.
    is_current: bool,
}

/// The outage of one account, if there is one.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// The account hears nothing from its platform.
    is_lost: bool,
    /// It could not be reached.
    is_unreachable: bool,
    /// It is not known whether it took what was sent to it last.
    is_silent: bool,
    /// Conversations in which it fails. It never answered them since, but others perhaps.
    failing: HashMap<String, Failing>,
    /// Failures so far.
    failure: u64,
    /// Conversations in which it failed since it last answered anything.
    current: usize,
    /// Those of them that do not fail for what is said in them.
    blamed_on_platform: usize,
    /// Rounds of tries since it last answered that found it down.
    failures: u32,
    /// When it was found down.
    since: Option<Instant>,
    /// When it is tried again.
    next: Option<Instant>,
    /// When a conversation that did not fail yet may be tried at once again.
    next_fresh: Option<Instant>,
    /// Conversations that a person wants tried.
    wanted: HashSet<String>,
    /// The delivery that is being tried.
    tried: Option<i64>,
    /// How often the account has begun to hear from it again.
    returns: u64,
}

impl Outage {
    /// The account hears nothing from its platform any more. What is sent may arrive nevertheless.
    pub(super) fn lost(&mut self) {
        self.is_lost = true;
    }

    /// It hears from it again.
    pub(super) fn back(&mut self) {
        *self = Self { tried: self.tried, returns: self.returns + 1, ..Self::default() };
    }

    /// A person wants to know whether it works again: this conversation is tried next, with others of which that was said, and waits for
    /// nothing.
    pub(super) fn hasten(&mut self, target: &str) {
        if self.wanted.len() < MAX_WANTED {
            self.wanted.insert(target.to_owned());
        }
    }

    /// How often the platform could be reached again so far: a try that began before the last time may have met what is over by now.
    pub(super) fn returns(&self) -> u64 {
        self.returns
    }

    /// What a try in a conversation came to.
    pub(super) fn on_tried<T>(
        &mut self,
        target: &str,
        came: &Result<T, SendError>,
        now: Instant,
    ) -> Platform {
        match came {
            Err(SendError::Unreachable { .. }) => {
                (self.is_unreachable, self.is_silent) = (true, false);
            }
            Err(SendError::Down { .. }) => self.is_silent = false,
            Err(SendError::Uncertain { .. }) => self.is_silent = true,
            // It answered.
            Ok(_)
            | Err(
                SendError::Final { .. } | SendError::File { .. } | SendError::Retry { after: Some(_), .. },
            ) => {
                self.on_answered(target);
                return Platform::Works;
            }
            // Nothing went out.
            Err(SendError::NotReady | SendError::Retry { after: None, .. }) => {
                self.is_silent = false;
                return Platform::Works;
            }
        }
        self.on_failed(target);
        if !self.is_down() {
            return Platform::Works;
        }
        self.since.get_or_insert(now);
        // Those that were under way together are one: a platform that goes down while it is asked a lot is not asked later for it.
        if self.next.is_some_and(|next| next > now) {
            return Platform::Down;
        }
        self.failures = self.failures.saturating_add(1);
        let longest = if self.is_unreachable { UNREACHABLE_PAUSE } else { LONGEST_PAUSE };
        let doubled = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(self.failures - 1).unwrap_or(u32::MAX));
        self.next = Some(now + doubled.min(longest));
        Platform::Down
    }

    /// It works. Those in which it fails meanwhile are tried once more before that is taken for their own.
    fn on_answered(&mut self, target: &str) {
        let returns = self.returns + u64::from(self.is_down());
        let mut failing = std::mem::take(&mut self.failing);
        failing.remove(target);
        for one in failing.values_mut() {
            (one.is_overtaken, one.is_current) = (true, false);
        }
        *self = Self {
            is_lost: self.is_lost,
            failing,
            failure: self.failure,
            wanted: std::mem::take(&mut self.wanted),
            tried: self.tried,
            returns,
            ..Self::default()
        };
    }

    fn on_failed(&mut self, target: &str) {
        self.failure += 1;
        let before = self.failing.get(target);
        let is_overtaken = before.is_some_and(|one| one.is_overtaken);
        if !before.is_some_and(|one| one.is_current) {
            self.current += 1;
            self.blamed_on_platform += usize::from(!is_overtaken);
        }
        let failing = Failing { failure: self.failure, is_overtaken, is_current: true };
        self.failing.insert(target.to_owned(), failing);
        if self.failing.len() > MAX_FAILING {
            let oldest = self.failing.iter().min_by_key(|(_, one)| one.failure);
            if let Some(oldest) = oldest.map(|(target, _)| target.clone()) {
                self.failing.remove(&oldest);
            }
        }
    }

    /// When it is tried again, where it is down and nobody knows better.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// When it was found down, while it is.
    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Whether it is down. Conversations that failed while others got through say nothing about it, but where the account hears nothing either.
    pub(super) fn is_down(&self) -> bool {
        self.is_unreachable
            || if self.is_lost { self.current > 0 } else { self.blamed_on_platform >= SEVERAL }
    }

    /// Each try might arrive, and nobody would know: the account is to hear from its platform first.
    fn waits_for_account(&self) -> bool {
        self.is_lost && self.is_silent
    }

    /// The place of a conversation among those that wait.
    pub(super) fn rank(&self, target: &str) -> ProbeRank {
        if self.wanted.contains(target) {
            return ProbeRank::Wanted;
        }
        self.failing.get(target).map_or(ProbeRank::Fresh, |one| ProbeRank::Failed(one.failure))
    }

    /// When a conversation may be tried while it is down; `None`: at once.
    fn turn(&self, target: &str) -> Option<Instant> {
        match self.rank(target) {
            ProbeRank::Wanted => None,
            ProbeRank::Fresh => self.next.and_then(|next| Some(next.min(self.next_fresh?))),
            ProbeRank::Failed(_) => self.next,
        }
    }

    /// Whether a delivery may be tried now. It is, then.
    pub(super) fn may_try(&mut self, target: &str, number: i64, now: Instant) -> bool {
        if self.waits_for_account() {
            return false;
        }
        if self.is_down() {
            if self.tried.is_some() || self.turn(target).is_some_and(|turn| turn > now) {
                return false;
            }
            self.tried = Some(number);
            if self.rank(target) == ProbeRank::Fresh {
                self.next_fresh = Some(now + FRESH_PAUSE);
            }
        }
        self.wanted.remove(target);
        true
    }

    /// The try of a delivery has ended.
    pub(super) fn ended(&mut self, number: i64) {
        self.tried = self.tried.filter(|tried| *tried != number);
    }

    /// Not before this is anything tried in a conversation; `None`: not before the try that is under way has ended, or the account hears again.
    pub(super) fn not_before(&self, target: &str, now: Instant) -> Option<Instant> {
        if self.waits_for_account() {
            return None;
        }
        if !self.is_down() {
            return Some(now);
        }
        self.tried.is_none().then(|| self.turn(target).unwrap_or(now))
    }
}

#[cfg(test)]
mod tests;
