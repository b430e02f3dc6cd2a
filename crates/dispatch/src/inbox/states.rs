//! The states of a message in the inbox.

use crate::journal::states::States;

/// What lies between the two is read off the transcript, which is the truth about what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageState {
    /// Its run has not ended.
    Accepted,
    /// Its run has ended, and this is how.
    Finished,
}

impl States for MessageState {
    const TABLE: &'static str = "inbox";
    const KEY: &'static str = "run_id";
    const FIRST: Self = Self::Accepted;
    const ALL: &'static [Self] = &[Self::Accepted, Self::Finished];

    fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Finished => "finished",
        }
    }

    fn next(self) -> &'static [Self] {
        match self {
            Self::Accepted => &[Self::Finished],
            Self::Finished => &[],
        }
    }

    fn is_over(self) -> bool {
        self == Self::Finished
    }
}
