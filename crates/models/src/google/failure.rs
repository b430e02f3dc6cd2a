//! Failures as Google's servers report them.

use std::time::Duration;

use serde_json::Value;

use crate::failure::{classify_answer, is_context_overflow};
use crate::stream::{FailureKind, ModelFailure};
use crate::wire::{ErrorAnswer, named_words};

/// Failure kinds by canonical status of an error; other errors are classified by HTTP status and
/// words.
const STATUSES: &[(&str, FailureKind)] = &[
    ("RESOURCE_EXHAUSTED", FailureKind::RateLimit),
    ("UNAUTHENTICATED", FailureKind::Auth),
    ("PERMISSION_DENIED", FailureKind::Auth),
    ("UNAVAILABLE", FailureKind::Transient),
    ("INTERNAL", FailureKind::Transient),
    ("ABORTED", FailureKind::Transient),
    ("DEADLINE_EXCEEDED", FailureKind::Timeout),
];

/// Reason or phrases that report a wrong key under status 400: in `details[].reason`, or in the
/// text.
const WRONG_KEY: (&str, &[&str]) = ("API_KEY_INVALID", &["api key not valid", "api key expired"]);

/// The failure of an error answer that is one of Google's.
pub(crate) fn refusal(answer: &ErrorAnswer<'_>) -> Option<ModelFailure> {
    let error = inner(answer.error?);
    // Without its canonical name the error is a gateway's in between.
    text_of(error, "status")?;
    Some(failure(error, Some(answer.status), answer.body))
}

/// The failure of an error that came inside an answer.
pub(super) fn in_stream(error: &Value) -> ModelFailure {
    let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    failure(error, status, &error.to_string())
}

/// `<status>: <message>`, as far as they are there.
pub(super) fn error_words(error: &Value, body: &str) -> String {
    let error = inner(error);
    let message = error.as_str().or_else(|| text_of(error, "message"));
    named_words(text_of(error, "status"), message).unwrap_or_else(|| body.to_owned())
}

/// Returns the error itself: Google wraps it into a list if a stream was requested that is not
/// server-sent events.
fn inner(error: &Value) -> &Value {
    let wrapped = error.as_array().and_then(|list| list.first());
    wrapped.map_or(error, |first| first.get("error").unwrap_or(first))
}

fn failure(error: &Value, status: Option<u16>, body: &str) -> ModelFailure {
    let words = error_words(error, body);
    let message = match status {
        Some(status) => format!("{status} {words}"),
        None => words,
    };
    let kind = kind(error, status, &message);
    ModelFailure { kind, status, retry_after: retry_delay(error), message }
}

fn kind(error: &Value, status: Option<u16>, message: &str) -> FailureKind {
    let name = text_of(error, "status").unwrap_or_default();
    if is_context_overflow(message) && name != "RESOURCE_EXHAUSTED" {
        return FailureKind::ContextOverflow;
    }
    let (reason, words) = WRONG_KEY;
    let lower = message.to_lowercase();
    let named = details(error).any(|detail| text_of(detail, "reason") == Some(reason));
    if named || words.iter().any(|text| lower.contains(text)) {
        return FailureKind::Auth;
    }
    if name == "FAILED_PRECONDITION" && lower.contains("billing") {
        return FailureKind::Billing;
    }
    let known = STATUSES.iter().find(|(status, _)| *status == name).map(|(_, kind)| *kind);
    known.unwrap_or_else(|| classify_answer(status.unwrap_or(0), text_of(error, "type"), message))
}

/// `retryDelay` of the details: seconds with an `s`, as in `34.07s`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let text = details(error).find_map(|detail| text_of(detail, "retryDelay"))?;
    let seconds: f64 = text.trim().strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error.get("details").and_then(Value::as_array).into_iter().flatten()
}

fn text_of<'a>(error: &'a Value, name: &str) -> Option<&'a str> {
    error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "JSON written in place reads better")]
    fn refused(status: u16, error: Value) -> Option<ModelFailure> {
        refusal(&ErrorAnswer { status, error: Some(&error), body: "", now: 0 })
    }

    #[test]
    fn errors_are_told_by_their_names() {
        use FailureKind::{Auth, Billing, ContextOverflow, Format, Gone, RateLimit, Timeout, Transient};
        let rows = [
            (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", RateLimit),
            (429, "RESOURCE_EXHAUSTED", "too many tokens per minute", RateLimit),
            (401, "UNAUTHENTICATED", "missing credential", Auth),
            (403, "PERMISSION_DENIED", "disabled", Auth),
            (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", Auth),
            (400, "INVALID_ARGUMENT", "Unknown name \"x\"", Format),
            (
                400,
                "INVALID_ARGUMENT",
                "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
                ContextOverflow,
            ),
            (400, "FAILED_PRECONDITION", "enable billing on your project", Billing),
            (404, "NOT_FOUND", "models/x is not found", Gone),
            (500, "INTERNAL", "An internal error has occurred", Transient),
            (503, "UNAVAILABLE", "The model is overloaded.", Transient),
            (504, "DEADLINE_EXCEEDED", "too slow", Timeout),
            (502, "NEW_STATUS", "x", Transient),
        ];
        for (status, name, message, kind) in rows {
            let error = json!({"code": status, "message": message, "status": name});
            let expect = ModelFailure {
                kind,
                status: Some(status),
                retry_after: None,
                message: format!("{status} {name}: {message}"),
            };
            assert_eq!(refused(status, error.clone()), Some(expect.clone()), "{name}");
            assert_eq!(in_stream(&error), expect, "{name}");
            assert_eq!(refused(status, json!([{"error": error}])), Some(expect), "in a list");
        }
        assert_eq!(refused(400, json!({"message": "x"})), None, "no error of Google's");
    }

    #[test]
    fn the_details_say_more() {
        let retry = |delay: &str| {
            let details = json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]);
            let error = json!({"message": "m", "status": "RESOURCE_EXHAUSTED", "details": details});
            refused(429, error).unwrap().retry_after
        };
        assert_eq!(retry("34.5s"), Some(Duration::from_millis(34_500)));
        assert_eq!(retry("7s"), Some(Duration::from_secs(7)));
        for bad in ["soon", "5", "-1s", "NaNs", "1e300s"] {
            assert_eq!(retry(bad), None, "{bad}");
        }
        let error =
            json!({"message": "m", "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]});
        assert_eq!(refused(400, error).unwrap().kind, FailureKind::Auth);
    }
}
