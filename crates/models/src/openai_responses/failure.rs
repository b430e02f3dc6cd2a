//! Failures as OpenAI's servers report them (spec `models.md` §4.3, §4.4).

use std::time::Duration;

use serde_json::Value;

use crate::stream::{FailureKind, ModelFailure};
use crate::wire::{error_in_stream, named_words};

/// Server that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    /// The public API and its imitators.
    Api,
    /// ChatGPT's backend for Codex, which counts against a plan.
    Codex,
}

/// Codes under which the Codex backend says that a plan is used up or does not include it.
const PLAN_CODES: &[&str] = &["usage_limit_reached", "usage_not_included"];
/// The code of too many requests at once.
const RATE_CODE: &str = "rate_limit_exceeded";

/// The failure of an `error` event. `now` is in Unix milliseconds.
pub(super) fn reported(backend: Backend, data: &str, now: i64) -> ModelFailure {
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    let error = event.get("error").filter(|error| error.is_object()).unwrap_or(&event);
    if let Some(failure) = plan_limit(backend, error, None, now) {
        return failure;
    }
    let code = code_of(error).map(|code| format!("Error Code {code}"));
    let words = named_words(code.as_deref(), text_of(error, "message"));
    error_in_stream(&coded(error), words.unwrap_or_else(|| data.to_owned()))
}

/// The failure of a response that ended with `status`.
pub(super) fn failed(backend: Backend, error: &Value, status: &str, now: i64) -> ModelFailure {
    if let Some(failure) = plan_limit(backend, error, None, now) {
        return failure;
    }
    let silent = || format!("the model server ended the response as {status} and did not say why");
    let words = named_words(code_of(error), text_of(error, "message")).unwrap_or_else(silent);
    error_in_stream(&coded(error), words)
}

/// The words of an error answer.
pub(super) fn error_words(error: &Value, body: &str) -> String {
    let words = error.as_str().or_else(|| text_of(error, "message")).or_else(|| text_of(error, "detail"));
    words.unwrap_or(body).to_owned()
}

/// Interprets a limit that the Codex backend reports. A plan that is used up is not asked again
/// before it is renewed; requests that came too fast are.
pub(super) fn plan_limit(
    backend: Backend,
    error: &Value,
    status: Option<u16>,
    now: i64,
) -> Option<ModelFailure> {
    if backend != Backend::Codex {
        return None;
    }
    let code = code_of(error).or_else(|| text_of(error, "type")).unwrap_or_default().to_lowercase();
    let resets = resets_in(error, now);
    let says_so = text_of(error, "message").is_some_and(|text| text.to_lowercase().contains("usage limit"));
    let plan_is_used_up = PLAN_CODES.iter().any(|known| code.contains(known)) || says_so || resets.is_some();
    let too_fast = code.contains(RATE_CODE) || status == Some(429);
    if !plan_is_used_up && !too_fast {
        return None;
    }
    let kind = if plan_is_used_up { FailureKind::RateLimit } else { FailureKind::Transient };
    Some(ModelFailure { kind, status, retry_after: resets, message: limit_text(error, resets) })
}

fn limit_text(error: &Value, resets: Option<Duration>) -> String {
    let plan = text_of(error, "plan_type").map(|plan| format!(" ({} plan)", plan.to_lowercase()));
    let when = resets.map(|wait| format!(" Try again in ~{} min.", (wait.as_secs() + 30) / 60));
    format!("You have hit your ChatGPT usage limit{}.{}", plan.unwrap_or_default(), when.unwrap_or_default())
}

/// Returns the time until the plan is renewed: `resets_at` in Unix seconds.
fn resets_in(error: &Value, now: i64) -> Option<Duration> {
    let at = error.get("resets_at").and_then(Value::as_f64).filter(|at| at.is_finite() && *at > 0.0)?;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are far below 2^53")]
    let wait = at - now as f64 / 1000.0;
    Duration::try_from_secs_f64(wait.max(0.0)).ok()
}

fn code_of(error: &Value) -> Option<&str> {
    text_of(error, "code")
}

fn text_of<'a>(error: &'a Value, name: &str) -> Option<&'a str> {
    error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The error with its code where the classification looks first: the `type` of an event says only that it is one.
fn coded(error: &Value) -> Value {
    match code_of(error) {
        Some(code) => serde_json::json!({ "type": code }),
        None => error.clone(),
    }
}
