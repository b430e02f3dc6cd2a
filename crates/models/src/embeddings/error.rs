//! Errors of embedding, by what the caller does about them.

use openclaw_embedding::EmbedError;
use openclaw_protocol::printable::excerpt;

use super::answer::WrongAnswer;
use crate::stream::{FailureKind, ModelFailure};

/// Characters of a server's own words that are shown.
const SHOWN: usize = 300;

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

/// The error that a failed request stands for. `provider` begins the message, as in OpenClaw.
pub(super) fn failed_request(provider: &str, failure: &ModelFailure) -> EmbedError {
    let message = failed(provider, &failure.message);
    let lower = failure.message.to_lowercase();
    let refuses_size = matches!(failure.status, Some(400 | 413 | 422 | 500))
        && TOO_LARGE.iter().any(|phrase| lower.contains(phrase));
    match failure.kind {
        FailureKind::RateLimit => EmbedError::RateLimited { message, retry_after: failure.retry_after },
        FailureKind::Auth | FailureKind::Billing | FailureKind::Unaffordable => {
            EmbedError::Unauthorized { message }
        }
        FailureKind::ContextOverflow => EmbedError::TooLarge { message },
        _ if refuses_size => EmbedError::TooLarge { message },
        FailureKind::Transient | FailureKind::Timeout => EmbedError::Unavailable { message },
        FailureKind::Format | FailureKind::Gone | FailureKind::Empty | FailureKind::Other => {
            EmbedError::Invalid { message }
        }
    }
}

pub(super) fn wrong_answer(provider: &str, wrong: &WrongAnswer) -> EmbedError {
    EmbedError::Invalid { message: failed(provider, &wrong.to_string()) }
}

/// `openai embeddings failed: …`
fn failed(provider: &str, what: &str) -> String {
    format!("{provider} embeddings failed: {}", excerpt(what, SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: FailureKind, status: u16, message: &str) -> EmbedError {
        let failure = ModelFailure { status: Some(status), ..ModelFailure::new(kind, message) };
        failed_request("openai", &failure)
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
