//! State of a delivery, and the consequence of a try to send it.

use std::time::Duration;

use openclaw_channels::{Part, Receipt};

/// No conversation waits longer because its platform asked for it.
pub const MAX_HOLD: Duration = Duration::from_secs(24 * 3600);

/// State of a delivery (`docs/durability.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// Waits for its turn.
    Pending,
    /// The platform is being asked to take it.
    Sending,
    /// The platform was asked, and the result is unknown.
    Uncertain,
    /// The platform has it.
    Sent,
    /// The delivery is given up. Only a person brings it back.
    Failed,
}

impl DeliveryState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Sending, Self::Uncertain, Self::Sent, Self::Failed];

    /// Name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Uncertain => "uncertain",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }

    /// Reads the name of a state. One that is unknown counts as not known to have arrived.
    pub fn parse(name: &str) -> Self {
        Self::ALL.into_iter().find(|state| state.as_str() == name).unwrap_or(Self::Uncertain)
    }

    /// Returns the states that may follow.
    pub fn next_states(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Sending, Self::Failed],
            Self::Sending => &[Self::Sent, Self::Pending, Self::Uncertain, Self::Failed],
            Self::Uncertain => &[Self::Sending, Self::Sent, Self::Uncertain, Self::Failed],
            Self::Sent => &[],
            Self::Failed => &[Self::Pending, Self::Uncertain],
        }
    }

    /// True if it is still to be sent.
    pub fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::Sending | Self::Uncertain => true,
            Self::Sent | Self::Failed => false,
        }
    }

    /// True if a delivery in this state, given up for this reason, may be thrown away. Not while it
    /// is being sent: until that ends, nobody knows whether it arrives.
    pub fn may_be_discarded(self, given_up: Option<DeliveryFailure>) -> bool {
        match self {
            Self::Pending | Self::Uncertain => true,
            Self::Failed => given_up != Some(DeliveryFailure::Discarded),
            Self::Sending | Self::Sent => false,
        }
    }

    /// Returns the error of a waiting delivery once it is thrown away: the error so far, and that it
    /// may have arrived.
    pub fn discarded_as(self, error: Option<&str>) -> Option<String> {
        let arrived = (self == Self::Uncertain).then_some("it may have arrived");
        let why: Vec<&str> = error.into_iter().chain(arrived).collect();
        Some(why.join("; ")).filter(|why| !why.is_empty())
    }

    /// True if a delivery in this state was given up, and not thrown away.
    pub fn is_listed_as_failed(self, given_up: Option<DeliveryFailure>) -> bool {
        self == Self::Failed && given_up != Some(DeliveryFailure::Discarded)
    }

    /// True if a delivery in this state was never tried because it waits for an intended pause.
    pub fn is_paced(self, attempts: u32, error: Option<&str>, next_at: i64, accepted_at: i64) -> bool {
        self == Self::Pending && attempts == 0 && error.is_none() && next_at > accepted_at
    }
}

/// Consequence of a try.
#[derive(Debug, Clone, PartialEq)]
pub enum DeliveryVerdict {
    /// The platform has it.
    Sent(Receipt),
    /// The delivery waits for another try.
    Retry(Retry),
    /// The platform does not take its file, and nothing was sent: its words are sent without it, at once.
    WithoutFile {
        /// Part sent in its place: the words, and a note of the file.
        part: Box<Part>,
        /// Content that is left out and why, for people.
        left_out: String,
    },
    /// The delivery is given up.
    Failed {
        /// Reason for people.
        reason: String,
        /// Kind of reason, for what follows from it.
        why: DeliveryFailure,
        /// Time that its conversation waits because the platform asked for it.
        hold: Option<Duration>,
    },
}

impl DeliveryVerdict {
    /// Verdict that it will never be sent as it is.
    pub fn refused(reason: String) -> Self {
        Self::failed(reason, DeliveryFailure::Refused)
    }

    /// Verdict that it is given up.
    pub fn failed(reason: String, why: DeliveryFailure) -> Self {
        Self::Failed { reason, why, hold: None }
    }
}

/// Wait of a conversation whose platform asked for more time than its message could wait. Unix
/// milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Time at which it asked.
    pub asked_at: i64,
    /// Time before which nothing is sent.
    pub until: i64,
}

impl Hold {
    /// Returns the time that is left of it. A clock that was put back makes it meaningless: then
    /// the platform is asked again, which answers as it did before.
    pub fn left(self, now: i64) -> Option<Duration> {
        let millis =
            |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).ok().filter(|left| *left > 0);
        let (left, asked) = (millis(now, self.until)?, millis(self.asked_at, self.until)?);
        (left <= asked.saturating_mul(2)).then(|| Duration::from_millis(left).min(MAX_HOLD))
    }
}

/// Kind of reason for which a delivery is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryFailure {
    /// The delivery can't be sent as it is. Later parts of the same message are sent without it.
    Refused,
    /// The platform did not take it for too long. What stands behind it in the same message does not come without it.
    PutOff,
    /// The platform did not take it for too long, and it may have arrived.
    Unknown,
    /// A person threw it away after it was given up: it is remembered, and nothing is left to be
    /// sent.
    Discarded,
}

impl DeliveryFailure {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Refused, Self::PutOff, Self::Unknown, Self::Discarded];

    /// Name in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::PutOff => "put-off",
            Self::Unknown => "unknown",
            Self::Discarded => "discarded",
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.as_str() == name)
    }

    /// Returns the state of a delivery that a person wants tried again; `None` if nothing is left
    /// to be sent.
    pub fn revived(self) -> Option<DeliveryState> {
        match self {
            Self::Refused | Self::PutOff => Some(DeliveryState::Pending),
            Self::Unknown => Some(DeliveryState::Uncertain),
            Self::Discarded => None,
        }
    }

    /// True if later parts of the same message are given up with it.
    pub fn takes_the_rest(self) -> bool {
        match self {
            Self::Refused | Self::Discarded => false,
            Self::PutOff | Self::Unknown => true,
        }
    }
}

/// Details of another try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// [`DeliveryState::Pending`] or [`DeliveryState::Uncertain`].
    pub state: DeliveryState,
    /// Least time that it waits.
    pub pause: Duration,
    /// Tries that count so far.
    pub attempts: u32,
    /// True if the pause ends when the platform can be reached again: false if the platform asked
    /// for it.
    pub may_hurry: bool,
    /// Reason, for people.
    pub reason: String,
}

impl Retry {
    /// Returns the earliest time of the try, after one that ended at `now`; Unix milliseconds.
    pub fn at(&self, now: i64) -> i64 {
        now.saturating_add(i64::try_from(self.pause.as_millis()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_name_of_its_own_and_leads_to_an_end() {
        for state in DeliveryState::ALL {
            assert_eq!(DeliveryState::parse(state.as_str()), state);
            let mut reached = vec![state];
            while let Some(more) =
                reached.iter().flat_map(|state| state.next_states()).find(|next| !reached.contains(next))
            {
                reached.push(*more);
            }
            assert!(reached.iter().any(|state| !state.is_open()), "{state:?} never ends");
        }
    }

    #[test]
    fn a_hold_ends_whatever_the_clock_does() {
        let minute = 60_000;
        let hold = |asked: i64, until: i64| Hold { asked_at: asked * minute, until: until * minute };
        let minutes = |count: u64| Some(Duration::from_secs(count * 60));
        let rows = [
            (hold(0, 15), 0, minutes(15)),
            (hold(0, 15), 10, minutes(5)),
            (hold(0, 15), 15, None),
            // The clock was put forward, and back.
            (hold(0, 15), 500_000, None),
            (hold(100, 115), 98, minutes(17)),
            (hold(100, 115), 0, None),
            (hold(100, 115), -500_000, None),
            // Nothing was asked.
            (hold(100, 90), 80, None),
            (hold(0, 90 * 24 * 60), 0, minutes(24 * 60)),
        ];
        for (hold, now, expect) in rows {
            assert_eq!(hold.left(now * minute), expect, "{hold:?} at {now}");
        }
    }
}
