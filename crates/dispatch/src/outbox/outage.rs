//! Whether the platform of an account is down, by what came of tries and by what the account says. Pure.
//!
//! While it is, tries do not count, and one delivery at a time asks whether it works again: a hundred that wait do not each try.

use std::collections::HashSet;
use std::time::Duration;

use openclaw_channels::SendError;
use tokio::time::Instant;

/// Pause after the first try that found the platform down. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
/// The longest, where nothing was sent for certain: the platform can't be reached.
const UNREACHABLE_PAUSE: Duration = FIRST_PAUSE;
/// The longest elsewhere. Each try may have had its effect.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);
/// So many conversations in which the platform failed, and it is not for what is said in one of them.
const SEVERAL: usize = 2;

/// How a platform does, for the delivery that was just tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    /// It works: what happened concerns this delivery.
    Works,
    /// It is down. When it is tried again is not stored with the delivery: the next process finds out by itself how the platform does.
    Down,
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
    /// Conversations in which it failed since it last took or refused anything; not all of many.
    failed_in: HashSet<String>,
    /// Rounds of tries since then that found it down.
    failures: u32,
    /// When it is tried again.
    next: Option<Instant>,
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

    /// A person wants to know whether it works again: the next try waits for nothing.
    pub(super) fn hasten(&mut self) {
        self.next = None;
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
        self.is_silent = matches!(came, Err(SendError::Uncertain { .. }));
        match came {
            Err(SendError::Unreachable { .. }) => self.is_unreachable = true,
            Err(SendError::Down { .. } | SendError::Uncertain { .. }) => {
                if self.failed_in.len() < SEVERAL {
                    self.failed_in.insert(target.to_owned());
                }
            }
            // It answered.
            Ok(_)
            | Err(
                SendError::Final { .. } | SendError::File { .. } | SendError::Retry { after: Some(_), .. },
            ) => {
                let returns = self.returns + u64::from(self.is_down());
                *self = Self { is_lost: self.is_lost, tried: self.tried, returns, ..Self::default() };
                return Platform::Works;
            }
            // Nothing went out.
            Err(SendError::NotReady | SendError::Retry { after: None, .. }) => return Platform::Works,
        }
        if !self.is_down() {
            return Platform::Works;
        }
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

    /// When it is tried again, where it is down and nobody knows better.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Whether it is down.
    pub(super) fn is_down(&self) -> bool {
        let several = if self.is_lost { 1 } else { SEVERAL };
        self.is_unreachable || self.failed_in.len() >= several
    }

    /// Each try might arrive, and nobody would know: the account is to hear from its platform first.
    fn waits_for_account(&self) -> bool {
        self.is_lost && self.is_silent
    }

    /// Whether a delivery may be tried now. It is, then.
    pub(super) fn may_try(&mut self, number: i64, now: Instant) -> bool {
        if self.waits_for_account() {
            return false;
        }
        if !self.is_down() {
            return true;
        }
        let is_time = self.next.is_none_or(|next| next <= now);
        let may = is_time && self.tried.is_none();
        if may {
            self.tried = Some(number);
        }
        may
    }

    /// The try of a delivery has ended.
    pub(super) fn ended(&mut self, number: i64) {
        self.tried = self.tried.filter(|tried| *tried != number);
    }

    /// Not before this is anything tried; `None`: not before the try that is under way has ended, or the account hears again.
    pub(super) fn not_before(&self, now: Instant) -> Option<Instant> {
        if self.waits_for_account() {
            return None;
        }
        if !self.is_down() {
            return Some(now);
        }
        self.tried.is_none().then(|| self.next.unwrap_or(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn down() -> Result<(), SendError> {
        Err(SendError::Down { reason: String::new() })
    }

    fn unreachable() -> Result<(), SendError> {
        Err(SendError::Unreachable { reason: String::new() })
    }

    fn lost() -> Result<(), SendError> {
        Err(SendError::Uncertain { reason: String::new() })
    }

    #[test]
    fn trouble_in_one_conversation_is_no_outage_and_trouble_in_two_is() {
        let (now, mut outage) = (Instant::now(), Outage::default());
        for came in [down(), lost(), down()] {
            assert_eq!(outage.on_tried("x", &came, now), Platform::Works);
        }
        assert_eq!(outage.on_tried("y", &down(), now), Platform::Down);
        assert_eq!(outage.on_tried("x", &lost(), now), Platform::Down);
        // One that is refused was answered.
        let refused = Err::<(), _>(SendError::Final { reason: String::new() });
        assert_eq!(outage.on_tried("x", &refused, now), Platform::Works);
        assert_eq!(outage.on_tried("y", &down(), now), Platform::Works);
    }

    #[test]
    fn where_the_account_hears_nothing_either_one_is_enough() {
        let (now, mut outage) = (Instant::now(), Outage::default());
        outage.lost();
        assert!(outage.may_try(1, now) && outage.may_try(2, now), "what is sent may arrive nevertheless");
        let mut at = now;
        for pause in [15, 30, 60, 120, 240, 300, 300] {
            // Others that were under way at the same time.
            for target in ["x", "y", "z"] {
                assert_eq!(outage.on_tried(target, &down(), at), Platform::Down);
                assert_eq!(outage.next(), Some(at + pause * SECOND));
            }
            at += pause * SECOND;
        }
        outage.back();
        assert!(outage.may_try(1, now) && outage.may_try(2, now));
        assert_eq!(outage.on_tried("x", &down(), now), Platform::Works);
    }

    /// What may have arrived is not sent again and again to a platform that says nothing.
    #[test]
    fn a_platform_that_says_nothing_is_asked_again_when_the_account_hears_from_it() {
        let (now, mut outage) = (Instant::now(), Outage::default());
        outage.lost();
        outage.on_tried("x", &lost(), now);
        let later = now + 3600 * SECOND;
        assert!(!outage.may_try(1, later));
        assert_eq!(outage.not_before(later), None);
        outage.back();
        assert!(outage.may_try(1, now));
    }

    #[test]
    fn one_delivery_at_a_time_asks_whether_the_platform_is_back() {
        let (now, mut outage) = (Instant::now(), Outage::default());
        assert!(outage.may_try(1, now) && outage.may_try(2, now) && outage.may_try(3, now));
        for target in ["x", "y", "z"] {
            assert_eq!(outage.on_tried(target, &unreachable(), now), Platform::Down);
        }
        let later = now + 15 * SECOND;
        assert!(!outage.may_try(1, now));
        assert_eq!(outage.not_before(now), Some(later));
        assert!(outage.may_try(2, later) && !outage.may_try(1, later), "2 asks");
        assert_eq!(outage.not_before(later), None);
        outage.ended(1);
        assert!(!outage.may_try(1, later), "2 still does");
        outage.on_tried("y", &unreachable(), later);
        outage.ended(2);
        assert!(!outage.may_try(2, later));
        outage.hasten();
        assert!(outage.may_try(2, later) && !outage.may_try(1, later), "one of them, at once");
        outage.on_tried("y", &Ok(()), later);
        outage.ended(2);
        assert!(outage.may_try(1, later) && outage.may_try(3, later), "it is back");
    }
}
