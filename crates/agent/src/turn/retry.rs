//! What to do after a failed model call (spec `agent-runtime.md` §2.8, `models.md` §5, §9.2, §9.3): once more, with
//! another thinking level, with the next candidate, or not at all. The only place that decides this.
//!
//! The budget counts failures in a row: a long run is not ended by its fourth hiccup in an hour.

use std::time::Duration;

use openclaw_models::failure::{is_compaction_failure, user_text};
use openclaw_models::thinking::next_supported;
use openclaw_models::{FailureKind, ModelFailure, ThinkingLevel};

use super::CandidateFacts;
use crate::reply::{CandidateFailure, RunError, RunErrorKind};

/// First wait; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Longest wait a provider may ask for.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Where the run stands among its candidates.
#[derive(Debug)]
pub(super) struct Attempts {
    candidates: Vec<CandidateFacts>,
    candidate: usize,
    thinking: ThinkingLevel,
    tried_levels: Vec<ThinkingLevel>,
    retried: u32,
    retries: u32,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// Call again, after a wait if given. Which candidate and level is [`Attempts`]' to say.
    Again(Option<Duration>),
    /// Nothing left to try.
    GiveUp,
}

impl Attempts {
    pub(super) fn new(candidates: Vec<CandidateFacts>, retries: u32) -> Self {
        let thinking = candidates.first().map_or(ThinkingLevel::Off, |first| first.thinking);
        Self { candidates, candidate: 0, thinking, tried_levels: Vec::new(), retried: 0, retries }
    }

    pub(super) fn candidate(&self) -> usize {
        self.candidate
    }

    pub(super) fn thinking(&self) -> ThinkingLevel {
        self.thinking
    }

    /// A call succeeded: the next failure is a new one.
    pub(super) fn succeeded(&mut self) {
        self.retried = 0;
    }

    /// Decides, and moves on to what is tried next. `heard`: some of the answer had arrived.
    pub(super) fn after(&mut self, failure: &ModelFailure, heard: bool) -> Next {
        let another = self.candidate + 1 < self.candidates.len();
        let repeated_already =
            !heard && self.candidates.get(self.candidate).is_some_and(|c| c.repeats_itself);
        if !repeated_already {
            if let Some(level) = self.supported_level(failure) {
                self.thinking = level;
                return Next::Again(None);
            }
            if let Some(wait) = self.wait(failure, another) {
                self.retried += 1;
                return Next::Again(Some(wait));
            }
        }
        if failure.kind.falls_over() && another {
            self.candidate += 1;
            self.retried = 0;
            self.tried_levels.clear();
            self.thinking =
                self.candidates.get(self.candidate).map_or(ThinkingLevel::Off, |next| next.thinking);
            return Next::Again(None);
        }
        Next::GiveUp
    }

    /// A level the provider named as supported and that was not tried yet.
    fn supported_level(&mut self, failure: &ModelFailure) -> Option<ThinkingLevel> {
        self.tried_levels.push(self.thinking);
        next_supported(&failure.message, &self.tried_levels)
    }

    /// How long to wait before the same candidate is called again; `None` when it is not.
    fn wait(&self, failure: &ModelFailure, another: bool) -> Option<Duration> {
        let worth_it = match failure.kind {
            FailureKind::Transient => true,
            // Someone else may answer at once.
            FailureKind::RateLimit => !another,
            FailureKind::Billing
            | FailureKind::Auth
            | FailureKind::Timeout
            | FailureKind::Format
            | FailureKind::ContextOverflow
            | FailureKind::Other => false,
        };
        if !worth_it || self.retried >= self.retries {
            return None;
        }
        let asked = failure.retry_after.unwrap_or_default();
        (asked <= MAX_WAIT).then(|| asked.max(FIRST_WAIT * 2_u32.saturating_pow(self.retried)).min(MAX_WAIT))
    }

    /// What people are told when nothing is left. `failures` are all of this run, `last` the one that ended it.
    pub(super) fn error(&self, failures: &[CandidateFailure], last: &ModelFailure) -> RunError {
        let text = user_text(&last.message);
        if self.candidate == 0 || !last.kind.falls_over() {
            return RunError { kind: kind_of(last, &text), message: text };
        }
        let each: Vec<String> = self
            .candidates
            .iter()
            .enumerate()
            .filter_map(|(at, c)| {
                let failure = failures.iter().rfind(|failure| failure.candidate == at)?;
                let reason = failure.kind.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
                Some(format!("{}: {}{reason}", c.name, user_text(&failure.message)))
            })
            .collect();
        RunError {
            kind: last.kind.into(),
            message: format!("All models failed ({}): {}", each.len(), each.join(" | ")),
        }
    }
}

/// Clients tell three failures apart that providers do not classify; our own texts do.
fn kind_of(failure: &ModelFailure, text: &str) -> RunErrorKind {
    if is_compaction_failure(&failure.message) {
        return RunErrorKind::CompactionFailure;
    }
    if text.starts_with("Message ordering conflict") {
        return RunErrorKind::RoleOrdering;
    }
    if text.starts_with("Image too large") {
        return RunErrorKind::ImageSize;
    }
    failure.kind.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: FailureKind) -> ModelFailure {
        ModelFailure { kind, status: None, retry_after: None, message: "boom".into() }
    }

    fn attempts(candidates: usize) -> Attempts {
        let facts = |at: usize| CandidateFacts {
            name: format!("p/m{at}"),
            thinking: ThinkingLevel::Low,
            repeats_itself: false,
        };
        Attempts::new((0..candidates).map(facts).collect(), 3)
    }

    fn secs(n: u64) -> Next {
        Next::Again(Some(Duration::from_secs(n)))
    }

    #[test]
    fn a_hiccup_is_tried_four_times_then_given_up() {
        let mut one = attempts(1);
        let seen: Vec<Next> = (0..4).map(|_| one.after(&failure(FailureKind::Transient), false)).collect();
        assert_eq!(seen, [secs(2), secs(4), secs(8), Next::GiveUp]);
        one.succeeded();
        assert_eq!(one.after(&failure(FailureKind::RateLimit), false), secs(2));
    }

    #[test]
    fn a_rate_limit_goes_to_the_next_candidate_at_once() {
        let mut two = attempts(2);
        assert_eq!(
            (two.after(&failure(FailureKind::RateLimit), false), two.candidate()),
            (Next::Again(None), 1)
        );
        assert_eq!((two.after(&failure(FailureKind::RateLimit), false), two.candidate()), (secs(2), 1));
    }

    #[test]
    fn the_providers_wait_is_honoured_up_to_a_minute() {
        let asked =
            |n| ModelFailure { retry_after: Some(Duration::from_secs(n)), ..failure(FailureKind::RateLimit) };
        assert_eq!(attempts(1).after(&asked(17), false), secs(17));
        assert_eq!(attempts(1).after(&asked(1), false), secs(2));
        assert_eq!(attempts(1).after(&asked(61), false), Next::GiveUp);
    }

    #[test]
    fn what_another_candidate_may_not_have_moves_on_and_the_rest_ends_the_run() {
        use FailureKind::{Auth, Billing, ContextOverflow, Format, Other, Timeout};
        for kind in [Auth, Billing, Timeout, Format] {
            assert_eq!(attempts(2).after(&failure(kind), false), Next::Again(None), "{kind:?}");
            assert_eq!(attempts(1).after(&failure(kind), false), Next::GiveUp, "{kind:?}");
        }
        for kind in [ContextOverflow, Other] {
            assert_eq!(attempts(2).after(&failure(kind), false), Next::GiveUp, "{kind:?}");
        }
    }

    #[test]
    fn a_candidate_that_repeats_by_itself_is_called_again_only_when_its_answer_broke_off() {
        let facts = CandidateFacts { name: "p/m".into(), thinking: ThinkingLevel::Low, repeats_itself: true };
        let mut one = Attempts::new(vec![facts], 3);
        assert_eq!(one.after(&failure(FailureKind::Transient), true), secs(2));
        assert_eq!(one.after(&failure(FailureKind::Transient), false), Next::GiveUp);
    }

    #[test]
    fn an_unsupported_thinking_level_is_replaced_by_a_supported_one() {
        let refused = ModelFailure {
            message: "Unsupported value: 'low'. Supported values are: 'medium', 'high'.".into(),
            ..failure(FailureKind::Format)
        };
        let mut one = attempts(1);
        assert_eq!((one.after(&refused, false), one.thinking()), (Next::Again(None), ThinkingLevel::Medium));
        assert_eq!((one.after(&refused, false), one.thinking()), (Next::Again(None), ThinkingLevel::High));
        assert_eq!(one.after(&refused, false), Next::GiveUp);
    }

    #[test]
    fn the_error_names_every_model_that_was_tried() {
        let mut two = attempts(2);
        two.after(&failure(FailureKind::Auth), false);
        two.after(&failure(FailureKind::Billing), false);
        let seen = |candidate, kind| CandidateFailure { candidate, kind, message: "boom".into() };
        let failures = [seen(0, FailureKind::Auth), seen(1, FailureKind::Billing)];
        let error = two.error(&failures, &failure(FailureKind::Billing));
        assert_eq!(error.message, "All models failed (2): p/m0: boom (auth) | p/m1: boom (billing)");
        let alone = attempts(1).error(&failures[..1], &failure(FailureKind::Auth));
        assert_eq!(alone, RunError { kind: RunErrorKind::Auth, message: "boom".into() });
    }
}
