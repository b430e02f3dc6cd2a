//! What kind of failure a provider's words describe (spec `models.md` §9.1, §9.4).

use super::pattern::{Pattern, any};
use crate::stream::FailureKind;
use Pattern::{Both, Has, Joined, Near, Number, Starts, Then, Word};

/// Texts that look like a failure of a kind below but are none.
const NOT_CLASSIFIED: &[Pattern] =
    &[Has("image dimensions exceed max allowed size"), Both("image exceeds", "mb")];

/// First match wins.
const KINDS: &[(FailureKind, &[Pattern])] = &[
    (
        FailureKind::RateLimit,
        &[
            Near("rate", "limit"),
            Has("too many requests"),
            Word("429"),
            Has("exceeded your current quota"),
            Has("resource has been exhausted"),
            Has("quota exceeded"),
            Has("resource_exhausted"),
            Has("usage limit"),
        ],
    ),
    (FailureKind::Transient, &[Has("overloaded")]),
    (
        FailureKind::Format,
        &[
            Has("string should match pattern"),
            Has("tool_use.id"),
            Has("tool_use_id"),
            Has("invalid request format"),
        ],
    ),
    (
        FailureKind::Billing,
        &[
            Word("402"),
            Has("payment required"),
            Has("insufficient credits"),
            Has("credit balance"),
            Has("plans & billing"),
            Both("billing", "upgrade"),
            Both("billing", "credits"),
            Both("billing", "payment"),
            Both("billing", "plan"),
        ],
    ),
    (FailureKind::Timeout, &[Has("timeout"), Has("timed out"), Has("deadline exceeded")]),
    (
        FailureKind::Auth,
        &[
            Joined("invalidapikey"),
            Has("incorrect api key"),
            Has("invalid token"),
            Has("authentication"),
            Has("re-authenticate"),
            Has("oauth token refresh failed"),
            Has("unauthorized"),
            Has("forbidden"),
            Has("access denied"),
            Word("expired"),
            Word("401"),
            Word("403"),
            Has("no credentials found"),
            Has("no api key found"),
        ],
    ),
];

/// Texts of a server or a way to it that may be well again in a moment (spec `agent-runtime.md` §2.8).
const TRANSIENT: &[Pattern] = &[
    Word("500"),
    Word("502"),
    Word("503"),
    Word("504"),
    Word("529"),
    Near("service", "unavailable"),
    Has("server error"),
    Has("internal error"),
    Near("connection", "error"),
    Near("connection", "refused"),
    Has("other side closed"),
    Has("fetch failed"),
    Near("upstream", "connect"),
    Has("reset before headers"),
    Has("terminated"),
    Has("retry delay"),
];

const OVERFLOW: &[Pattern] = &[
    Has("request_too_large"),
    Has("request exceeds the maximum size"),
    Joined("contextlengthexceeded"),
    Has("maximum context length"),
    Has("prompt is too long"),
    Has("exceeds model context window"),
    Has("context overflow:"),
    Both("request size exceeds", "context window"),
    Both("request size exceeds", "context length"),
    Both("413", "too large"),
    Has("input is too long for requested model"),
    Has("exceeds the context window"),
    Then("input token count", "exceeds the maximum"),
    Number("maximum prompt length is"),
    Has("reduce the length of the messages"),
    Number("exceeds the limit of"),
    Has("exceeds the available context size"),
    Has("greater than the context length"),
    Has("context window exceeds limit"),
    Has("exceeded model token limit"),
    Has("too many tokens"),
    Has("token limit exceeded"),
    // How the answer to an overlong request begins where the server says nothing more.
    Starts("400(nobody)"),
    Starts("413(nobody)"),
    Starts("400statuscode(nobody)"),
    Starts("413statuscode(nobody)"),
];

const COMPACTION: &[Pattern] = &[Has("summarization failed"), Has("auto-compaction"), Has("compaction")];

/// Whether a text says that the prompt does not fit the model.
pub fn is_context_overflow(text: &str) -> bool {
    any(OVERFLOW, &text.to_lowercase())
}

/// Whether a text says that making room failed, so that trying it again is pointless.
pub fn is_compaction_failure(text: &str) -> bool {
    is_context_overflow(text) && any(COMPACTION, &text.to_lowercase())
}

/// The kind of failure a text alone tells; nothing when it tells none.
pub fn classify_text(text: &str) -> Option<FailureKind> {
    let lower = text.to_lowercase();
    if any(NOT_CLASSIFIED, &lower) {
        return None;
    }
    if is_context_overflow(text) {
        return Some(FailureKind::ContextOverflow);
    }
    let kind = KINDS.iter().find(|(_, patterns)| any(patterns, &lower)).map(|(kind, _)| *kind);
    kind.or_else(|| any(TRANSIENT, &lower).then_some(FailureKind::Transient))
}

/// The kind of a failed HTTP answer: what the provider calls it first, then the status, then its words. An overflow is
/// told by words alone, under whatever status.
pub fn classify_answer(status: u16, error_type: Option<&str>, text: &str) -> FailureKind {
    if any(NOT_CLASSIFIED, &text.to_lowercase()) {
        return FailureKind::Other;
    }
    if is_context_overflow(text) || status == 413 {
        return FailureKind::ContextOverflow;
    }
    let by_words = classify_text(text);
    error_type.and_then(by_type).unwrap_or(match status {
        402 => FailureKind::Billing,
        429 => FailureKind::RateLimit,
        // Providers say "your credit is used up" with a status of their own liking.
        400 | 401 | 403 if by_words == Some(FailureKind::Billing) => FailureKind::Billing,
        401 | 403 => FailureKind::Auth,
        408 => FailureKind::Timeout,
        409 | 425 | 500..=599 => FailureKind::Transient,
        400 | 422 => FailureKind::Format,
        300..=399 | 404..=499 => FailureKind::Other,
        _ => by_words.unwrap_or(FailureKind::Other),
    })
}

/// Structured error types of the providers.
fn by_type(error_type: &str) -> Option<FailureKind> {
    match error_type {
        "authentication_error" | "permission_error" | "invalid_api_key" => Some(FailureKind::Auth),
        "rate_limit_error" | "rate_limit_exceeded" => Some(FailureKind::RateLimit),
        "insufficient_quota" | "billing_error" => Some(FailureKind::Billing),
        "overloaded_error" | "api_error" | "server_error" => Some(FailureKind::Transient),
        "timeout_error" => Some(FailureKind::Timeout),
        _ => None,
    }
}

impl FailureKind {
    /// The reason's name in messages and stores; absent where failover has none.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::RateLimit | Self::Transient => Some("rate_limit"),
            Self::Billing => Some("billing"),
            Self::Auth => Some("auth"),
            Self::Timeout => Some("timeout"),
            Self::Format => Some("format"),
            Self::ContextOverflow | Self::Other => None,
        }
    }

    /// Whether the credential is at fault, for every model it is used with. The server's trouble is not.
    pub fn bars_credential(self) -> bool {
        match self {
            Self::RateLimit | Self::Billing | Self::Auth | Self::Timeout => true,
            Self::Transient | Self::Format | Self::ContextOverflow | Self::Other => false,
        }
    }

    /// Whether another model may do better. An overflow is for compaction, and what nobody can classify is shown.
    pub fn falls_over(self) -> bool {
        self.reason().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `models.md` §9.1.
    #[test]
    fn texts_classify_as_the_spec_lists() {
        let rows = [
            ("auth", "invalid api key"),
            ("auth", "no credentials found"),
            ("auth", "no api key found"),
            ("auth", "OAuth token refresh failed for anthropic: boom. Please try again or re-authenticate."),
            ("auth", "Please re-authenticate to continue."),
            ("rate_limit", "429 too many requests"),
            ("rate_limit", "resource has been exhausted"),
            ("rate_limit", "You have hit your ChatGPT usage limit (plus plan)"),
            ("rate_limit", r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
            ("billing", "credit balance too low"),
            ("billing", "HTTP 402 Payment Required"),
            ("billing", "billing: please upgrade your plan"),
            ("timeout", "deadline exceeded"),
            ("timeout", "request timed out"),
            ("format", "INVALID_REQUEST_ERROR: string should match pattern"),
            ("format", "messages.1.content.1.tool_use.id"),
            ("-", "bad request"),
            ("-", "model not found"),
            ("-", "image exceeds 5 MB maximum"),
            (
                "-",
                "messages.84.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
            ),
            // One of each pattern, and the order among them.
            ("rate_limit", "rate_limit hit"),
            ("rate_limit", "Rate limit reached"),
            ("rate_limit", "Too Many Requests"),
            ("rate_limit", "error 429"),
            ("rate_limit", "You exceeded your current quota"),
            ("rate_limit", "Quota exceeded for metric"),
            ("rate_limit", "status RESOURCE_EXHAUSTED"),
            ("rate_limit", "usage limit reached"),
            ("rate_limit", "429: see your billing plan"),
            ("rate_limit", "The model is overloaded"),
            ("format", "messages.3: tool_use_id: not found"),
            ("format", "Invalid request format"),
            ("billing", "error 402"),
            ("billing", "Payment required"),
            ("billing", "insufficient credits"),
            ("billing", "see Plans & Billing"),
            ("billing", "billing: buy credits"),
            ("billing", "billing: payment failed"),
            ("billing", "billing: your plan lapsed"),
            ("billing", "402: the payment timed out"),
            ("timeout", "connect timeout"),
            ("timeout", "context deadline exceeded"),
            ("timeout", "timeout: unauthorized"),
            ("auth", "invalid_api_key"),
            ("auth", "invalid_api key"),
            ("auth", "invalid_apikey"),
            ("auth", "invalid api_key"),
            ("auth", "invalid apikey"),
            ("auth", "invalidapi_key"),
            ("auth", "invalidapi key"),
            ("auth", "InvalidApiKey"),
            ("auth", "Incorrect API key provided"),
            ("auth", "invalid token"),
            ("auth", "authentication failed"),
            ("auth", "Unauthorized"),
            ("auth", "Forbidden"),
            ("auth", "Access denied"),
            ("auth", "your token has expired"),
            ("auth", "error 401"),
            ("auth", "error 403"),
            // The server's trouble is transient; its name in messages is `rate_limit`.
            ("rate_limit", "status 500"),
            ("rate_limit", "status 502"),
            ("rate_limit", "status 503"),
            ("rate_limit", "status 504"),
            ("rate_limit", "status 529"),
            ("rate_limit", "service unavailable"),
            ("rate_limit", "connection refused by 10.0.0.1:80"),
            ("rate_limit", "service_unavailable"),
            ("rate_limit", "Server error"),
            ("rate_limit", "internal error"),
            ("rate_limit", "connection error"),
            ("rate_limit", "connection-error"),
            ("rate_limit", "ConnectionError"),
            ("rate_limit", "connection_refused"),
            ("rate_limit", "other side closed"),
            ("rate_limit", "fetch failed"),
            ("rate_limit", "upstream connect error"),
            ("rate_limit", "upstream_connect"),
            ("rate_limit", "disconnect/reset before headers"),
            ("rate_limit", "terminated"),
            ("rate_limit", "the retry delay is too long"),
            ("rate_limit", "rate-limit"),
            ("rate_limit", "RateLimitExceeded"),
            ("-", "the rate has no limit"),
            // Numbers and words inside others are not statuses.
            ("-", "request 4290 of batch 14010"),
            ("-", "the unexpiredness of x"),
        ];
        for (expect, text) in rows {
            let reason = classify_text(text).and_then(FailureKind::reason).unwrap_or("-");
            assert_eq!(reason, expect, "{text}");
        }
    }

    /// Vectors of `models.md` §9.4.
    #[test]
    fn overflows_are_recognised() {
        let rows = [
            ("prompt is too long: 208423 tokens > 200000 maximum", true),
            ("prompt is too long: 214290 tokens > 200000 maximum", true),
            ("413 Request Entity Too Large", true),
            ("request_too_large", true),
            (r#"400 {"error":{"message":"Request size exceeds model context window"}}"#, true),
            ("Your input exceeds the context window of this model", true),
            ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)", true),
            ("maximum prompt length is 131072", true),
            ("400 status code (no body)", true),
            ("the request exceeds the available context size. try increasing the context size", true),
            ("This model's maximum context length is 8192 tokens", true),
            ("request exceeds the maximum size", true),
            ("Context length exceeded", true),
            ("code: context_length_exceeded", true),
            ("context length_exceeded", true),
            ("Context overflow: too much", true),
            ("request size exceeds the context length", true),
            ("Input is too long for requested model.", true),
            ("Please reduce the length of the messages", true),
            ("the prompt exceeds the limit of 128000", true),
            ("greater than the context length", true),
            ("context window exceeds limit", true),
            ("exceeded model token limit: 262144", true),
            ("too many tokens", true),
            ("token limit exceeded", true),
            ("400 (no body)", true),
            ("413 (no body)", true),
            ("413 status code (no body)", true),
            ("413   status code(no body)", true),
            ("401 status code (no body)", false),
            ("request size exceeds upload limit", false),
            ("rate limit exceeded", false),
            ("model not found", false),
            ("Model context window too small (minimum is 128k tokens)", false),
            ("this exceeds the limit of patience", false),
        ];
        for (text, expect) in rows {
            assert_eq!(is_context_overflow(text), expect, "{text}");
        }
        assert!(is_compaction_failure(
            r#"Context overflow: Summarization failed: 400 {"message":"prompt is too long"}"#
        ));
        assert!(is_compaction_failure("Context overflow: auto-compaction did not help"));
        assert!(is_compaction_failure("prompt is too long: compaction failed"));
        assert!(!is_compaction_failure("Context overflow: prompt too large"));
        assert!(!is_compaction_failure("compaction failed"), "for another reason");
    }

    #[test]
    fn answers_classify_by_type_then_status_then_words() {
        use FailureKind::{Auth, Billing, ContextOverflow, Format, Other, RateLimit, Timeout, Transient};
        let rows = [
            (401, Some("authentication_error"), "invalid x-api-key", Auth),
            (403, None, "forbidden", Auth),
            (400, Some("invalid_request_error"), "your credit balance is too low", Billing),
            (429, Some("insufficient_quota"), "You exceeded your current quota", Billing),
            (429, None, "", RateLimit),
            (529, Some("overloaded_error"), "Overloaded", Transient),
            (503, None, "rate limit of a proxy", Transient),
            (408, None, "", Timeout),
            (402, None, "", Billing),
            (401, None, "", Auth),
            (403, None, "your credit balance is too low", Billing),
            (400, None, "bad", Format),
            (422, None, "bad", Format),
            (500, None, "", Transient),
            (502, Some("api_error"), "", Transient),
            (413, None, "", ContextOverflow),
            (
                400,
                Some("invalid_request_error"),
                "prompt is too long: 214290 tokens > 200000",
                ContextOverflow,
            ),
            (400, Some("invalid_request_error"), "messages: roles must alternate", Format),
            (404, Some("not_found_error"), "model: claude-x", Other),
            (302, None, "", Other),
            (400, None, "image exceeds 5 MB maximum", Other),
        ];
        for (status, error_type, text, expect) in rows {
            assert_eq!(classify_answer(status, error_type, text), expect, "{status} {error_type:?} {text}");
        }
    }
}
