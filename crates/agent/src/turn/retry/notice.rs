//! The notice of a failed call behind which another one follows.

use openclaw_models::{FailureKind, ModelFailure};

use super::{Attempts, RetryDecision};
use crate::retry_notice::{NextTry, RetryNotice};

/// Tries of an answer that has nothing to read.
const EMPTY_ATTEMPTS: u32 = 2;

impl Attempts {
    /// Returns the notice about the failed call of candidate `from` once `next` is decided. `None`
    /// when the run ends, and when the same model is asked at once for what it says it takes.
    pub(in crate::turn) fn notice(
        &self,
        from: usize,
        next: &RetryDecision,
        failure: &ModelFailure,
        heard: bool,
    ) -> Option<RetryNotice> {
        let next = match next {
            RetryDecision::Again(Some(wait)) => {
                let (attempt, attempts) = self.numbers(failure.kind);
                NextTry::Again { attempt, attempts, wait: *wait }
            }
            RetryDecision::Again(None) if self.candidate != from => {
                let (provider, model) = self.model(self.candidate)?;
                NextTry::Fallback { provider: provider.to_owned(), model: model.to_owned() }
            }
            RetryDecision::Again(None) | RetryDecision::GiveUp => return None,
        };
        let broke_off = heard && failure.kind != FailureKind::Empty;
        Some(RetryNotice::new(self.model(from)?, failure, broke_off, next))
    }

    /// The number of the next try of the same candidate, and the most there are.
    fn numbers(&self, failure: FailureKind) -> (u32, u32) {
        if failure == FailureKind::Empty {
            return (EMPTY_ATTEMPTS, EMPTY_ATTEMPTS);
        }
        let another = self.following(failure).is_some();
        (self.retried + 1, self.most_retries(another) + 1)
    }

    fn model(&self, candidate: usize) -> Option<(&str, &str)> {
        self.candidates.get(candidate)?.name.split_once('/')
    }
}
