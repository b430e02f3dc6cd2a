//! Outage detection: decides if the platform of an account is down, by the results of tries and by
//! what the account says. Pure.
//!
//! A platform is down while nothing of it works. Tries do not count then, and one delivery at a
//! time probes whether it works again, rather than each of a hundred that wait. The conversations
//! take turns at probing, those first that did not fail yet, so that a few that always fail keep no
//! other waiting.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use openclaw_channels::SendError;
use tokio::time::Instant;

/// Pause after the first try that found the platform down (backoff). Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
/// Longest pause if nothing was sent for certain, because the platform can't be reached.
const UNREACHABLE_PAUSE: Duration = FIRST_PAUSE;
/// Longest pause otherwise. Each try may have had its effect.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);
/// Pause behind another conversation's try for one that did not fail yet. Such a conversation waits
/// for no other pause; this one keeps a real outage from being probed by each new message.
const FRESH_PAUSE: Duration = FIRST_PAUSE;
/// Number of failing conversations from which on the failure is blamed on the platform rather than
/// on their contents.
const SEVERAL: usize = 2;
/// Number of failing conversations that are remembered; of more, those with the latest failures.
const MAX_FAILING: usize = 1_000;
/// Number of conversations that a person wants tried and that are remembered; more of them take
/// their turns like all.
const MAX_WANTED: usize = 1_000;

/// Health of a platform, for the delivery that was just tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    /// The platform works, so that the result concerns this delivery.
    Works,
    /// The platform is down. The time of the next try is not stored with the delivery: the next
    /// process finds out by itself how the platform does.
    Down,
}

/// Order in which waiting conversations may probe the platform; the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProbeRank {
    /// A person wants it tried.
    Wanted,
    /// No failure in this conversation.
    Fresh,
    /// The platform failed in it. This counts the failures of the account.
    Failed(u64),
}

/// A conversation in which the platform failed, and has answered nothing since.
#[derive(Debug, Clone, Copy)]
struct Failing {
    /// Number of the failure, as in [`ProbeRank::Failed`].
    failure: u64,
    /// True if the platform answered another conversation afterwards: if it fails here once more,
    /// the failure is blamed on this conversation's contents.
    is_overtaken: bool,
    /// True if the platform failed here since it last answered anything.
    is_current: bool,
}

/// The outage of one account, if there is one.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// True if the account hears nothing from its platform.
    is_lost: bool,
    /// True if the platform could not be reached.
    is_unreachable: bool,
    /// True if it is unknown whether the platform took the last request.
    is_silent: bool,
    /// Conversations in which it fails. It never answered them since, but others perhaps.
    failing: HashMap<String, Failing>,
    /// Failures so far.
    failure: u64,
    /// Conversations in which it failed since it last answered anything.
    current: usize,
    /// Number of current failures that are not blamed on the conversation itself.
    blamed_on_platform: usize,
    /// Rounds of tries since it last answered that found it down.
    failures: u32,
    /// Time at which it was found down.
    since: Option<Instant>,
    /// Time of the next try.
    next: Option<Instant>,
    /// Time at which a conversation that did not fail yet may be tried at once again.
    next_fresh: Option<Instant>,
    /// Conversations that a person wants tried.
    wanted: HashSet<String>,
    /// The delivery that is being tried.
    tried: Option<i64>,
    /// Number of times the account has begun to hear from it again.
    returns: u64,
}

impl Outage {
    /// Notes that the account hears nothing from its platform any more. Messages may arrive
    /// nevertheless.
    pub(super) fn lost(&mut self) {
        self.is_lost = true;
    }

    /// Notes that the account hears from the platform again.
    pub(super) fn back(&mut self) {
        *self = Self { tried: self.tried, returns: self.returns + 1, ..Self::default() };
    }

    /// Lets a conversation probe next, together with others that were hastened, and without
    /// waiting: a person wants to know whether the platform works again.
    pub(super) fn hasten(&mut self, target: &str) {
        if self.wanted.len() < MAX_WANTED {
            self.wanted.insert(target.to_owned());
        }
    }

    /// Number of times the platform could be reached again so far: a try that began before the last
    /// time may have met an outage that is over by now.
    pub(super) fn returns(&self) -> u64 {
        self.returns
    }

    /// Notes the result of a try in a conversation.
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
            // The platform answered.
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
        // Tries that were under way together count as one: a platform that goes down during many
        // tries is not probed later for that.
        if self.next.is_some_and(|next| next > now) {
            return Platform::Down;
        }
        self.failures = self.failures.saturating_add(1);
        let longest = if self.is_unreachable { UNREACHABLE_PAUSE } else { LONGEST_PAUSE };
        let doubled = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(self.failures - 1).unwrap_or(u32::MAX));
        self.next = Some(now + doubled.min(longest));
        Platform::Down
    }

    /// Notes that the platform works. Conversations in which it fails meanwhile are tried once more
    /// before the failure is blamed on them.
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

    /// Time of the next try if it is down; `None` if nothing is known to wait for.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Time at which it was found down, while it is.
    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    /// True if it is down. Conversations that failed while others got through do not count as
    /// evidence, unless the account hears nothing either.
    pub(super) fn is_down(&self) -> bool {
        self.is_unreachable
            || if self.is_lost { self.current > 0 } else { self.blamed_on_platform >= SEVERAL }
    }

    /// True if no try is made before the account hears from its platform: each try might arrive
    /// without anybody knowing.
    fn waits_for_account(&self) -> bool {
        self.is_lost && self.is_silent
    }

    /// Returns the rank of a conversation among those that wait.
    pub(super) fn rank(&self, target: &str) -> ProbeRank {
        if self.wanted.contains(target) {
            return ProbeRank::Wanted;
        }
        self.failing.get(target).map_or(ProbeRank::Fresh, |one| ProbeRank::Failed(one.failure))
    }

    /// Time at which a conversation may be tried while it is down; `None`: at once.
    fn turn(&self, target: &str) -> Option<Instant> {
        match self.rank(target) {
            ProbeRank::Wanted => None,
            ProbeRank::Fresh => self.next.and_then(|next| Some(next.min(self.next_fresh?))),
            ProbeRank::Failed(_) => self.next,
        }
    }

    /// True if a delivery may be tried now. Also marks it as being tried, so call it last.
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

    /// Notes that the try of a delivery has ended.
    pub(super) fn ended(&mut self, number: i64) {
        self.tried = self.tried.filter(|tried| *tried != number);
    }

    /// Returns the time before which nothing is tried in a conversation; `None`: not before the try
    /// that is under way has ended, or the account hears again.
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
