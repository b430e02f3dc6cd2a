//! Texts for people when a model fails (spec `models.md` §9.5).

use std::borrow::Cow;

use openclaw_protocol::printable::excerpt;
use serde_json::Value;

use super::classify::{classify_text, is_context_overflow};
use super::pattern::{Pattern, any};
use crate::stream::FailureKind;
use Pattern::{Has, Then};

/// Characters of a provider's own words that are shown.
const MAX_CHARS: usize = 600;

const OVERFLOW: &str =
    "Context overflow: prompt too large for the model. Try again with less input or a larger-context model.";
const ORDERING: &str =
    "Message ordering conflict - please try again. If this persists, use /new to start a fresh session.";
const CORRUPTED: &str = "Session history looks corrupted (tool call input missing). Use /new to start a fresh session. \
     The old transcript is kept on disk.";
const OVERLOADED: &str = "The AI service is temporarily overloaded. Please try again in a moment.";
const BILLING: &str = "⚠️ The API provider returned a billing error: this key is out of credit or its plan has lapsed. \
     Check the provider's billing dashboard, top up, or switch to another key.";
const EMPTY: &str = "LLM request failed with an unknown error.";

const ORDER_PATTERNS: &[Pattern] =
    &[Has("incorrect role information"), Has("roles must alternate"), Then("400", "role")];
const INPUT_MISSING: &[Pattern] = &[Then("tool_use.input", "field required")];

/// The words for a person, made of a failed call's error message.
pub fn user_text(raw: &str) -> String {
    let raw = raw.trim();
    if raw.is_empty() {
        return EMPTY.to_owned();
    }
    let lower = raw.to_lowercase();
    if is_context_overflow(raw) {
        return OVERFLOW.to_owned();
    }
    if any(ORDER_PATTERNS, &lower) {
        return ORDERING.to_owned();
    }
    if any(INPUT_MISSING, &lower) {
        return CORRUPTED.to_owned();
    }
    if let Some(limit) = image_limit(&lower) {
        return format!(
            "Image too large for the model{limit}. Please compress or resize the image and try again."
        );
    }
    let error = ProviderError::parse(raw);
    if let Some(ProviderError { kind: Some(kind), message, .. }) = &error
        && kind == "invalid_request_error"
        && classify_text(raw) != Some(FailureKind::Billing)
    {
        return format!("LLM request rejected: {message}");
    }
    match classify_text(raw) {
        Some(FailureKind::Transient) if lower.contains("overloaded") => return OVERLOADED.to_owned(),
        Some(FailureKind::Billing) => return BILLING.to_owned(),
        _ => {}
    }
    let words = error.map_or(Cow::Borrowed(raw), |error| Cow::Owned(error.to_string()));
    excerpt(&words, MAX_CHARS).into_owned()
}

/// Beginning of the message if a web page answered a call.
pub(crate) const WEB_PAGE: &str = "the server answered with a web page";

/// Returns true if a web page refused a call, as a proxy or a firewall shows one, and not the
/// provider.
pub fn is_web_page(raw: &str) -> bool {
    raw.contains(WEB_PAGE)
}

/// A provider's error object, found in an error message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProviderError {
    status: Option<String>,
    kind: Option<String>,
    message: String,
    request_id: Option<String>,
}

impl ProviderError {
    /// Reads `{"type":"error","error":{type,message},"request_id"}`, `{"error":{…}}`, `{"error":"…"}` or
    /// `{"type","message"}`, with or without a status before it.
    fn parse(raw: &str) -> Option<Self> {
        let (status, json) = match raw.split_once(char::is_whitespace) {
            Some((status, rest)) if status.len() == 3 && status.bytes().all(|b| b.is_ascii_digit()) => {
                (Some(status.to_owned()), rest.trim_start())
            }
            _ => (None, raw),
        };
        let value: Value = serde_json::from_str(json).ok()?;
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let inner = value.get("error").unwrap_or(&value);
        let message = inner.as_str().map(str::to_owned).or_else(|| text(inner, "message"))?;
        let kind = text(inner, "type").or_else(|| text(inner, "code"));
        Some(Self { status, kind, message, request_id: text(&value, "request_id") })
    }
}

impl std::fmt::Display for ProviderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.status {
            Some(status) => write!(f, "HTTP {status}")?,
            None => f.write_str("LLM error")?,
        }
        if let Some(kind) = &self.kind {
            write!(f, " {kind}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(id) = &self.request_id {
            write!(f, " (request_id: {id})")?;
        }
        Ok(())
    }
}

/// ` (max 5MB)`, or nothing between when the size is not told.
fn image_limit(lower: &str) -> Option<String> {
    let (_, rest) = lower.split_once("image exceeds")?;
    let (before, _) = rest.split_once("mb")?;
    let number: String = before.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    Some(if number.is_empty() { String::new() } else { format!(" (max {number}MB)") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_what_happened() {
        let rows = [
            (
                r#"401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
                "HTTP 401 authentication_error: invalid x-api-key",
            ),
            // The four of golden/agent-error-flows.json and gw-agent-and-wait.jsonl.
            (
                r#"429 {"type":"error","error":{"type":"rate_limit_error","message":"rate limit"}}"#,
                "HTTP 429 rate_limit_error: rate limit",
            ),
            (
                r#"529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "The AI service is temporarily overloaded. Please try again in a moment.",
            ),
            ("400 fake model rejected the request", "400 fake model rejected the request"),
            (
                r#"500 {"type":"error","error":{"type":"api_error","message":"oops"},"request_id":"req_1"}"#,
                "HTTP 500 api_error: oops (request_id: req_1)",
            ),
            (r#"{"error":{"message":"no"}}"#, "LLM error: no"),
            (
                r#"400 {"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too big"}}"#,
                "LLM request rejected: max_tokens: too big",
            ),
            ("400 incorrect role information", ORDERING),
            (r#"{"message":"messages: roles must alternate"}"#, ORDERING),
            ("messages.1.content.0.tool_use.input: Field required", CORRUPTED),
            ("prompt is too long: 208423 tokens > 200000 maximum", OVERFLOW),
            ("402 Payment Required", BILLING),
            (
                r#"400 {"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
                BILLING,
            ),
            (
                "image exceeds 5 MB maximum: 6291456 bytes",
                "Image too large for the model (max 5MB). Please compress or resize the image and try again.",
            ),
            (
                "image exceeds the MB limit",
                "Image too large for the model. Please compress or resize the image and try again.",
            ),
            ("400 messages: first role must be user", ORDERING),
            (r#"{"error":{"type":"api_error","message":"no"}}"#, "LLM error api_error: no"),
            ("  ", EMPTY),
        ];
        for (raw, expect) in rows {
            assert_eq!(user_text(raw), expect, "{raw}");
        }
    }

    #[test]
    fn long_words_are_cut_at_a_character() {
        let text = user_text(&"ü".repeat(700));
        assert_eq!(text.chars().count(), MAX_CHARS + 1);
        assert!(text.ends_with('…'));
        let json = format!(r#"500 {{"error":{{"message":"{}"}}}}"#, "x".repeat(700));
        let text = user_text(&json);
        assert!(text.starts_with("HTTP 500: xxx"), "{text}");
        assert_eq!(text.chars().count(), MAX_CHARS + 1);
    }
}
