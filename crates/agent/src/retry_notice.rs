//! A failed model call of a run that goes on: what is told to whoever waits for the answer.

use std::time::Duration;

use openclaw_models::failure::user_text;
use openclaw_models::{FailureKind, ModelFailure};
use openclaw_protocol::printable::excerpt;

use crate::redaction::Redactor;

/// Characters of the provider's words that are told.
const MAX_ERROR_CHARS: usize = 160;

/// A failed model call, and what is tried next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryNotice {
    /// The provider that was asked.
    pub provider: String,
    /// Model id within the provider.
    pub model: String,
    /// The class of the failure.
    pub kind: FailureKind,
    /// The provider's words. [`RetryNotice::for_people`] shortens them and masks secrets in them.
    pub error: String,
    /// True if some of the answer had arrived.
    pub broke_off: bool,
    /// Next step of the run.
    pub next: NextTry,
}

/// Next step after a failed model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextTry {
    /// Calls the same model again.
    Again {
        /// Number of the next try, counted from 1.
        attempt: u32,
        /// Tries that are made at most.
        attempts: u32,
        /// Time until then.
        wait: Duration,
    },
    /// Another model, or the same one with another credential.
    Fallback {
        /// The provider that is asked next.
        provider: String,
        /// Model id within the provider.
        model: String,
    },
}

impl RetryNotice {
    /// The notice of a failed call of this model.
    pub(crate) fn new(
        (provider, model): (&str, &str),
        failure: &ModelFailure,
        broke_off: bool,
        next: NextTry,
    ) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            kind: failure.kind,
            error: failure.message.clone(),
            broke_off,
            next,
        }
    }

    /// Returns the same notice with the provider's words in one short line, known secrets masked.
    pub(crate) fn for_people(self, redactor: &Redactor) -> Self {
        let words = user_text(&redactor.redact_text(&self.error));
        let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { error: excerpt(&line, MAX_ERROR_CHARS).into_owned(), ..self }
    }

    /// The notice as a sentence:
    /// `openai/gpt-5.2 does not answer (connection refused by 127.0.0.1:9); trying again in 2 s (2 of 4)`.
    pub fn text(&self) -> String {
        let Self { provider, model, error, .. } = self;
        let next = match &self.next {
            NextTry::Again { attempt, attempts, wait } if wait.is_zero() => {
                format!("trying again ({attempt} of {attempts})")
            }
            NextTry::Again { attempt, attempts, wait } => {
                let seconds = wait.as_millis().div_ceil(1000);
                format!("trying again in {seconds} s ({attempt} of {attempts})")
            }
            NextTry::Fallback { provider: to, model: name } if (to, name) == (provider, model) => {
                "trying it with another credential".to_owned()
            }
            NextTry::Fallback { provider, model } => format!("asking {provider}/{model}"),
        };
        format!("{provider}/{model} {} ({}); {next}", self.problem(), error.trim_end_matches('.'))
    }

    fn problem(&self) -> &'static str {
        match self.kind {
            _ if self.broke_off => "broke off its answer",
            FailureKind::Transient => "does not answer",
            FailureKind::Timeout => "did not answer in time",
            FailureKind::RateLimit => "takes no more requests for now",
            FailureKind::Billing
            | FailureKind::Unaffordable
            | FailureKind::Auth
            | FailureKind::Format
            | FailureKind::Gone
            | FailureKind::Empty
            | FailureKind::ContextOverflow
            | FailureKind::Other => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(kind: FailureKind, error: &str, broke_off: bool, next: NextTry) -> RetryNotice {
        RetryNotice::new(("openai", "gpt-5.2"), &ModelFailure::new(kind, error), broke_off, next)
    }

    fn again(wait_ms: u64) -> NextTry {
        NextTry::Again { attempt: 2, attempts: 4, wait: Duration::from_millis(wait_ms) }
    }

    fn fallback(provider: &str, model: &str) -> NextTry {
        NextTry::Fallback { provider: provider.to_owned(), model: model.to_owned() }
    }

    #[test]
    fn a_notice_names_the_model_what_happened_and_what_comes() {
        let refused = "connection refused by 127.0.0.1:9; is the server running?";
        let overloaded = r#"529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let rows = [
            (
                notice(FailureKind::Transient, refused, false, again(2_000)),
                "openai/gpt-5.2 does not answer (connection refused by 127.0.0.1:9; is the server running?); trying again \
                 in 2 s (2 of 4)",
            ),
            (
                notice(FailureKind::Transient, overloaded, false, again(2_001)),
                "openai/gpt-5.2 does not answer (The AI service is temporarily overloaded. Please try again in a moment); \
                 trying again in 3 s (2 of 4)",
            ),
            (
                notice(FailureKind::RateLimit, "429 slow\n down", false, again(0)),
                "openai/gpt-5.2 takes no more requests for now (429 slow down); trying again (2 of 4)",
            ),
            (
                notice(FailureKind::Transient, "cut", true, again(2_000)),
                "openai/gpt-5.2 broke off its answer (cut); trying again in 2 s (2 of 4)",
            ),
            (
                notice(FailureKind::Auth, "401 wrong key", false, fallback("openai", "gpt-5.2")),
                "openai/gpt-5.2 failed (401 wrong key); trying it with another credential",
            ),
            (
                notice(FailureKind::Timeout, "silence", false, fallback("local", "small")),
                "openai/gpt-5.2 did not answer in time (silence); asking local/small",
            ),
        ];
        for (notice, expect) in rows {
            assert_eq!(notice.for_people(&Redactor::default()).text(), expect);
        }
    }

    #[test]
    fn secrets_are_masked_before_the_words_are_cut() {
        let secret = "sk-1234567890";
        let redactor = Redactor::new([secret]).unwrap();
        for before in 0..MAX_ERROR_CHARS {
            let words = format!("{}{secret} and more", "x".repeat(before));
            let told = notice(FailureKind::Transient, &words, false, again(0)).for_people(&redactor).error;
            assert!(!told.contains("sk-"), "{told}");
        }
        let long = notice(FailureKind::Transient, &"éé ".repeat(500), false, again(0));
        assert_eq!(long.for_people(&redactor).error.chars().count(), MAX_ERROR_CHARS + 1);
    }
}
