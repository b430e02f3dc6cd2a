//! Errors of embedding, by what the caller does about them.

use std::time::Duration;

use openclaw_protocol::printable::excerpt;

use super::answer::WrongAnswer;
use crate::stream::{FailureKind, ModelFailure};

/// Characters of a server's own words that are shown.
const SHOWN: usize = 300;

/// Reason why texts were not embedded. The messages are for people and hold no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingError {
    /// The provider asks to slow down, or nobody may ask it yet: try again after that time.
    #[error("{message}")]
    RateLimited {
        /// Description of the failure.
        message: String,
        /// Time until the provider may be asked.
        retry_after: Option<Duration>,
    },
    /// The credential is missing, refused or without credit: a person must act.
    #[error("{message}")]
    Unauthorized {
        /// Description of the failure, and advice.
        message: String,
    },
    /// A text, or all of them together, are too large: ask with less.
    #[error("{message}")]
    TooLarge {
        /// Description of the failure.
        message: String,
    },
    /// The server can't be reached, failed, or was silent: try again later.
    #[error("{message}")]
    Unavailable {
        /// Description of the failure.
        message: String,
    },
    /// The request is refused, or the answer makes no sense: the same request is of no use.
    #[error("{message}")]
    Invalid {
        /// Description of the failure.
        message: String,
    },
}

/// Phrases by which servers say that a request is too large, whatever its status.
const TOO_LARGE: &[&str] = &[
    "maximum context length",
    "context length",
    "context size",
    "too large",
    "too long",
    "too many tokens",
    "too many inputs",
    "max allowed tokens",
    "max_tokens_per_request",
    "maximum input length",
    "maximum array length",
    "at most 100 requests",
];

impl EmbeddingError {
    /// The error that a failed request stands for. `provider` begins the message, as in OpenClaw.
    pub(super) fn of_failure(provider: &str, failure: &ModelFailure) -> Self {
        let message = failed(provider, &failure.message);
        let lower = failure.message.to_lowercase();
        let refuses_size = matches!(failure.status, Some(400 | 413 | 422 | 500))
            && TOO_LARGE.iter().any(|phrase| lower.contains(phrase));
        match failure.kind {
            FailureKind::RateLimit => Self::RateLimited { message, retry_after: failure.retry_after },
            FailureKind::Auth | FailureKind::Billing | FailureKind::Unaffordable => {
                Self::Unauthorized { message }
            }
            FailureKind::ContextOverflow => Self::TooLarge { message },
            _ if refuses_size => Self::TooLarge { message },
            FailureKind::Transient | FailureKind::Timeout => Self::Unavailable { message },
            FailureKind::Format | FailureKind::Gone | FailureKind::Empty | FailureKind::Other => {
                Self::Invalid { message }
            }
        }
    }

    pub(super) fn wrong_answer(provider: &str, wrong: &WrongAnswer) -> Self {
        Self::Invalid { message: failed(provider, &wrong.to_string()) }
    }

    /// Returns true if the same request may succeed later without anybody's help.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Unavailable { .. } => true,
            Self::Unauthorized { .. } | Self::TooLarge { .. } | Self::Invalid { .. } => false,
        }
    }

    /// The same error with another message.
    pub(super) fn adding(self, advice: &str) -> Self {
        match self {
            Self::RateLimited { message, retry_after } => {
                Self::RateLimited { message: message + advice, retry_after }
            }
            Self::Unauthorized { message } => Self::Unauthorized { message: message + advice },
            Self::TooLarge { message } => Self::TooLarge { message: message + advice },
            Self::Unavailable { message } => Self::Unavailable { message: message + advice },
            Self::Invalid { message } => Self::Invalid { message: message + advice },
        }
    }
}

/// `openai embeddings failed: …`
fn failed(provider: &str, what: &str) -> String {
    format!("{provider} embeddings failed: {}", excerpt(what, SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: FailureKind, status: u16, message: &str) -> EmbeddingError {
        let failure = ModelFailure { status: Some(status), ..ModelFailure::new(kind, message) };
        EmbeddingError::of_failure("openai", &failure)
    }

    #[test]
    fn each_kind_of_failure_has_its_error() {
        use FailureKind::{Auth, Billing, ContextOverflow, Format, Gone, RateLimit, Timeout, Transient};
        let rows = [
            (of(RateLimit, 429, "429 slow"), "RateLimited"),
            (of(Auth, 401, "401 no"), "Unauthorized"),
            (of(Billing, 402, "402 pay"), "Unauthorized"),
            (of(ContextOverflow, 413, "413"), "TooLarge"),
            (of(Format, 400, "400 The max allowed tokens per submitted batch is 120000"), "TooLarge"),
            (of(Transient, 500, "500 input is too large to process"), "TooLarge"),
            (of(Transient, 502, "502 the page is too large"), "Unavailable"),
            (of(Transient, 503, "503"), "Unavailable"),
            (of(Timeout, 408, "408"), "Unavailable"),
            (of(Format, 400, "400 bad"), "Invalid"),
            (of(Gone, 404, "404 no such model"), "Invalid"),
        ];
        for (error, expect) in rows {
            assert!(format!("{error:?}").starts_with(expect), "{error:?}");
            assert!(error.to_string().starts_with("openai embeddings failed: "), "{error}");
        }
        let long = of(Auth, 401, &"x".repeat(5000)).to_string();
        assert!(long.chars().count() < 340, "{}", long.len());
    }
}
