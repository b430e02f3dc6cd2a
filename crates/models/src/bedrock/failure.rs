//! Failures as Bedrock reports them.

use serde_json::Value;

use crate::failure::{classify_answer, is_context_overflow};
use crate::stream::{FailureKind, ModelFailure};
use crate::wire::{ErrorAnswer, named_words};

/// Errors that come inside a stream: what they are called to people (spec `models.md` §4.6) and what they mean.
const EXCEPTIONS: &[(&str, &str, FailureKind)] = &[
    ("internalServerException", "Internal server error", FailureKind::Transient),
    ("modelStreamErrorException", "Model stream error", FailureKind::Transient),
    ("validationException", "Validation error", FailureKind::Format),
    ("throttlingException", "Throttling error", FailureKind::RateLimit),
    ("serviceUnavailableException", "Service unavailable", FailureKind::Transient),
    ("modelTimeoutException", "Model timeout", FailureKind::Timeout),
];
/// Phrases with which AWS reports a signature whose time is wrong.
const CLOCK: &[&str] = &["signature expired", "signature not yet current", "request has expired"];

/// The failure of an error answer whose status says more than its words: they speak of "too many tokens" where there were
/// too many requests.
pub(super) fn refusal(answer: &ErrorAnswer<'_>) -> Option<ModelFailure> {
    let kind = match answer.status {
        429 => FailureKind::RateLimit,
        // The model failed, not the request.
        424 => FailureKind::Transient,
        _ => return None,
    };
    let words = error_words(answer.error?, answer.body);
    let message = format!("{} {words}", answer.status);
    Some(ModelFailure { kind, status: Some(answer.status), retry_after: None, message })
}

/// The failure of an exception inside a stream.
pub(super) fn in_stream(name: &str, data: &str) -> ModelFailure {
    let error: Value = serde_json::from_str(data).unwrap_or_default();
    let words = message_of(&error).unwrap_or(data);
    let known = EXCEPTIONS.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(name));
    let message = match known {
        Some((_, called, _)) => format!("{called}: {words}"),
        None => format!("{name}: {words}"),
    };
    let kind = match known {
        Some((_, _, FailureKind::Format)) if is_context_overflow(&message) => FailureKind::ContextOverflow,
        Some((_, _, kind)) => *kind,
        None => classify_answer(0, None, &message),
    };
    ModelFailure::new(kind, message)
}

/// `<type>: <message>`, as far as they are there.
pub(super) fn error_words(error: &Value, body: &str) -> String {
    let kind = error.get("__type").and_then(Value::as_str).and_then(|kind| kind.rsplit('#').next());
    let message = error.as_str().or_else(|| message_of(error));
    let words = named_words(kind, message).unwrap_or_else(|| body.to_owned());
    let lower = words.to_lowercase();
    if CLOCK.iter().any(|text| lower.contains(text)) {
        return format!("{words} (is the clock of this machine right?)");
    }
    words
}

/// Some of AWS's gates write it with a capital.
fn message_of(error: &Value) -> Option<&str> {
    error.get("message").or_else(|| error.get("Message")).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exceptions_of_a_stream_are_told_by_their_names() {
        use FailureKind::{Auth, ContextOverflow, Format, Other, RateLimit, Timeout, Transient};
        let rows = [
            ("internalServerException", "boom", "Internal server error: boom", Transient),
            ("modelStreamErrorException", "boom", "Model stream error: boom", Transient),
            ("validationException", "bad field", "Validation error: bad field", Format),
            (
                "validationException",
                "Input is too long for requested model.",
                "Validation error: Input is too long for requested model.",
                ContextOverflow,
            ),
            (
                "throttlingException",
                "Too many tokens, please wait before trying again.",
                "Throttling error: Too many tokens, please wait before trying again.",
                RateLimit,
            ),
            ("ThrottlingException", "slow", "Throttling error: slow", RateLimit),
            ("serviceUnavailableException", "later", "Service unavailable: later", Transient),
            ("modelTimeoutException", "slow", "Model timeout: slow", Timeout),
            ("accessDeniedException", "access denied", "accessDeniedException: access denied", Auth),
            ("newException", "what", "newException: what", Other),
        ];
        for (name, message, words, kind) in rows {
            let found = in_stream(name, &json!({"message": message}).to_string());
            assert_eq!((found.message.as_str(), found.kind), (words, kind), "{name}");
        }
        assert_eq!(in_stream("throttlingException", "no json").message, "Throttling error: no json");
    }

    #[test]
    fn a_throttled_request_is_no_overflow() {
        let error = json!({"message": "Too many tokens, please wait before trying again."});
        let refused = |status| refusal(&ErrorAnswer { status, error: Some(&error), body: "", now: 0 });
        let found = refused(429).unwrap();
        assert_eq!((found.kind, found.status), (FailureKind::RateLimit, Some(429)));
        assert_eq!(found.message, "429 Too many tokens, please wait before trying again.");
        assert_eq!(refused(424).unwrap().kind, FailureKind::Transient);
        assert_eq!(refused(400), None);
    }

    #[test]
    fn error_answers_are_worded() {
        let rows = [
            (json!({"message": "m"}), "m"),
            (json!({"Message": "M"}), "M"),
            (
                json!({"__type": "com.amazon.coral.service#UnrecognizedClientException", "message": "m"}),
                "UnrecognizedClientException: m",
            ),
            (json!({"__type": "X"}), "X"),
            (json!({"other": 1}), "body"),
            (
                json!({"message": "Signature expired: 20150830T123600Z is now earlier than 20150830T133600Z"}),
                "Signature expired: 20150830T123600Z is now earlier than 20150830T133600Z (is the clock of this machine right?)",
            ),
        ];
        for (error, expect) in rows {
            assert_eq!(error_words(&error, "body"), expect, "{error}");
        }
    }
}
