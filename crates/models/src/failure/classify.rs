//! Classifies a failure by the provider's words (spec `models.md` §9.1, §9.4).

use super::pattern::{Pattern, any};
use crate::stream::FailureKind;
use Pattern::{Both, Has, Joined, Near, Number, Starts, Then, Word};

/// Texts that look like a failure of a kind below but are none.
const NOT_CLASSIFIED: &[Pattern] =
    &[Has("image dimensions exceed max allowed size"), Both("image exceeds", "mb")];

/// Texts about payment.
const BILLING: &[Pattern] = &[
    Word("402"),
    Has("payment required"),
    Has("insufficient credits"),
    Has("credit balance"),
    Has("plans & billing"),
    Both("billing", "upgrade"),
    Both("billing", "credits"),
    Both("billing", "payment"),
    Both("billing", "plan"),
];

/// Texts that say that there is no money left. Other words of payment also stand in advice, as how to have a higher limit.
const NO_MONEY: &[Pattern] = &[
    Has("insufficient balance"),
    Has("insufficient_balance"),
    Has("insufficient account balance"),
    Has("insufficient credits"),
    Has("insufficient funds"),
    Has("credit balance"),
    Has("out of credit"),
    Has("payment required"),
    Has("recharge"),
    Has("arrear"),
    Has("good standing"),
    Has("余额不足"),
    Has("额度不足"),
    Has("欠费"),
];

/// Texts that say that the credit is enough for a shorter answer; behind the first stands for how many tokens.
const UNAFFORDABLE: &[Pattern] = &[Number(CAN_AFFORD), Has("fewer max_tokens")];
const CAN_AFFORD: &str = "can only afford";

/// Texts about the pace of requests.
const PACE: &[Pattern] =
    &[Near("rate", "limit"), Has("too many requests"), Has("per minute"), Has("per second"), Has("throttl")];

/// Texts that say that the provider has no such model, or has it no longer.
const GONE: &[Pattern] = &[
    Has("model_not_found"),
    Has("model not found"),
    Has("unknown model"),
    Has("not a valid model"),
    Has("no endpoints found"),
    Both("model", "does not exist"),
    Both("model", "decommissioned"),
    Both("model", "no longer available"),
    Both("model", "has been retired"),
];

/// Texts that say that the model takes no tools.
const NO_TOOLS: &[Pattern] = &[
    Has("not support tools"),
    Has("not support tool use"),
    Has("not support tool call"),
    Has("not support function call"),
    // OpenRouter, of a model that no provider serves with tools.
    Has("no endpoints found that support tool use"),
    Has("tools are not supported"),
    Has("tool use is not supported"),
    Has("tool calling is not supported"),
    Has("function calling is not supported"),
];

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
    (FailureKind::Billing, BILLING),
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
    // Beginning of the answer to an overlong request if the server says nothing more.
    Starts("400(nobody)"),
    Starts("413(nobody)"),
    Starts("400statuscode(nobody)"),
    Starts("413statuscode(nobody)"),
];

const COMPACTION: &[Pattern] = &[Has("summarization failed"), Has("auto-compaction"), Has("compaction")];

/// Returns true if a text says that the prompt does not fit the model.
pub fn is_context_overflow(text: &str) -> bool {
    any(OVERFLOW, &text.to_lowercase())
}

/// Returns true if a text says that the model takes no tools.
pub fn refuses_tools(text: &str) -> bool {
    any(NO_TOOLS, &text.to_lowercase())
}

/// Returns true if a text says that compaction failed, so that trying it again is pointless.
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

/// The kind of a failed HTTP answer: the status first, with its words where they say more, then what the provider calls it. Vendors use
/// the names of others for things of their own. An overflow is told by words alone, under whatever status.
pub fn classify_answer(status: u16, error_type: Option<&str>, text: &str) -> FailureKind {
    let lower = text.to_lowercase();
    if any(NOT_CLASSIFIED, &lower) {
        return FailureKind::Other;
    }
    if is_context_overflow(text) || status == 413 {
        return FailureKind::ContextOverflow;
    }
    let named = error_type.and_then(by_type);
    match status {
        402 if any(UNAFFORDABLE, &lower) => FailureKind::Unaffordable,
        402 => FailureKind::Billing,
        429 if says_no_money(named, &lower) => FailureKind::Billing,
        429 => FailureKind::RateLimit,
        400 | 403 | 422 if is_gone(named, &lower) => FailureKind::Gone,
        // Providers say "your credit is used up" with a status of their own liking.
        400 | 401 | 403 if is_billing(named, &lower) => FailureKind::Billing,
        401 | 403 => FailureKind::Auth,
        // There is no model at this address.
        300..=399 | 404 | 405 | 410 => FailureKind::Gone,
        408 => FailureKind::Timeout,
        409 | 425 | 500..=599 => FailureKind::Transient,
        // The server is not in trouble, whatever it calls a request that it refuses.
        400 | 422 => named.filter(|kind| *kind != FailureKind::Transient).unwrap_or(FailureKind::Format),
        400..=499 => FailureKind::Other,
        _ => match named {
            Some(FailureKind::Billing) if !is_billing(None, &lower) => FailureKind::RateLimit,
            Some(kind) => kind,
            None => classify_text(text).unwrap_or(FailureKind::Other),
        },
    }
}

/// The tokens of an answer that the credit is enough for, where a provider says so.
pub(crate) fn affordable_tokens(text: &str) -> Option<u32> {
    let lower = text.to_lowercase();
    let (_, rest) = lower.split_once(CAN_AFFORD)?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// True if "too many" means money. OpenAI calls a credit that is used up by the name under which vendors say that the share of this minute is.
fn says_no_money(named: Option<FailureKind>, lower: &str) -> bool {
    let is_called_so = named == Some(FailureKind::Billing) && any(BILLING, lower);
    !any(PACE, lower) && (is_called_so || any(NO_MONEY, lower))
}

fn is_billing(named: Option<FailureKind>, lower: &str) -> bool {
    named == Some(FailureKind::Billing) || any(NO_MONEY, lower) || any(BILLING, lower)
}

fn is_gone(named: Option<FailureKind>, lower: &str) -> bool {
    named == Some(FailureKind::Gone) || any(GONE, lower)
}

/// Structured error types of the providers.
fn by_type(error_type: &str) -> Option<FailureKind> {
    match error_type {
        "authentication_error" | "permission_error" | "invalid_api_key" => Some(FailureKind::Auth),
        "rate_limit_error" | "rate_limit_exceeded" => Some(FailureKind::RateLimit),
        "insufficient_quota" | "billing_error" => Some(FailureKind::Billing),
        "overloaded_error" | "api_error" | "server_error" => Some(FailureKind::Transient),
        "timeout_error" => Some(FailureKind::Timeout),
        "model_not_found" => Some(FailureKind::Gone),
        _ => None,
    }
}

impl FailureKind {
    /// The reason's name in messages and stores; absent where failover has none.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::RateLimit => Some("rate_limit"),
            Self::Transient => Some("unavailable"),
            Self::Billing | Self::Unaffordable => Some("billing"),
            Self::Auth => Some("auth"),
            Self::Timeout => Some("timeout"),
            Self::Format => Some("format"),
            Self::Gone => Some("model_not_found"),
            Self::Empty => Some("empty"),
            Self::ContextOverflow | Self::Other => None,
        }
    }

    /// Returns true if the credential is at fault, for every model it is used with. Trouble of the
    /// server is not the credential's fault.
    pub fn bars_credential(self) -> bool {
        match self {
            Self::RateLimit | Self::Billing | Self::Auth | Self::Timeout => true,
            Self::Transient
            | Self::Unaffordable
            | Self::Format
            | Self::Gone
            | Self::Empty
            | Self::ContextOverflow
            | Self::Other => false,
        }
    }

    /// Returns true if failover to another model may help. An overflow is for compaction, and what
    /// nobody can classify is shown.
    pub fn falls_over(self) -> bool {
        self.reason().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `models.md` §9.1. The server's trouble, which is `rate_limit` there, has a name of its own: it is none.
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
            ("unavailable", r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
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
            // An example of each pattern, and the order among them.
            ("rate_limit", "rate_limit hit"),
            ("rate_limit", "Rate limit reached"),
            ("rate_limit", "Too Many Requests"),
            ("rate_limit", "error 429"),
            ("rate_limit", "You exceeded your current quota"),
            ("rate_limit", "Quota exceeded for metric"),
            ("rate_limit", "status RESOURCE_EXHAUSTED"),
            ("rate_limit", "usage limit reached"),
            ("rate_limit", "429: see your billing plan"),
            ("unavailable", "The model is overloaded"),
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
            ("unavailable", "status 500"),
            ("unavailable", "status 502"),
            ("unavailable", "status 503"),
            ("unavailable", "status 504"),
            ("unavailable", "status 529"),
            ("unavailable", "service unavailable"),
            ("unavailable", "connection refused by 10.0.0.1:80"),
            ("unavailable", "service_unavailable"),
            ("unavailable", "Server error"),
            ("unavailable", "internal error"),
            ("unavailable", "connection error"),
            ("unavailable", "connection-error"),
            ("unavailable", "ConnectionError"),
            ("unavailable", "connection_refused"),
            ("unavailable", "other side closed"),
            ("unavailable", "fetch failed"),
            ("unavailable", "upstream connect error"),
            ("unavailable", "upstream_connect"),
            ("unavailable", "disconnect/reset before headers"),
            ("unavailable", "terminated"),
            ("unavailable", "the retry delay is too long"),
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

    #[test]
    fn what_the_credit_is_enough_for_is_read() {
        let said = "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 1200.";
        assert_eq!(affordable_tokens(said), Some(1200));
        assert_eq!(affordable_tokens("402 payment required"), None);
    }

    #[test]
    fn a_model_without_tools_is_recognised() {
        let rows = [
            ("400 registry.ollama.ai/library/gemma does not support tools", true),
            ("404 No endpoints found that support tool use.", true),
            ("400 Function calling is not supported with this model", true),
            ("400 tool_choice 'required' is not supported", false),
            ("400 tools.0.name: too long", false),
        ];
        for (text, expect) in rows {
            assert_eq!(refuses_tools(text), expect, "{text}");
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
    fn answers_classify_by_status_and_words_then_by_type() {
        use FailureKind::{
            Auth, Billing, ContextOverflow, Format, Gone, Other, RateLimit, Timeout, Transient, Unaffordable,
        };
        let rows = [
            (401, Some("authentication_error"), "invalid x-api-key", Auth),
            (403, None, "forbidden", Auth),
            (400, Some("invalid_request_error"), "your credit balance is too low", Billing),
            (
                429,
                Some("insufficient_quota"),
                "You exceeded your current quota, please check your plan and billing details.",
                Billing,
            ),
            // Other providers use the same name for a share of a minute.
            (
                429,
                Some("insufficient_quota"),
                "Allocated quota exceeded, please increase your quota limit.",
                RateLimit,
            ),
            (429, None, "Throttling.AllocationQuota: Allocated quota exceeded", RateLimit),
            // Gemini's share of a minute, in the words of a used up credit.
            (
                429,
                None,
                "You exceeded your current quota, please check your plan and billing details.",
                RateLimit,
            ),
            (
                429,
                Some("tokens"),
                "Rate limit reached. To have more, add a payment method at /account/billing",
                RateLimit,
            ),
            (429, Some("1113"), "Insufficient balance or no resource package. Please recharge.", Billing),
            (429, None, "余额不足或无可用资源包,请充值。", Billing),
            (403, Some("insufficient_quota"), "no quota", Billing),
            (0, Some("insufficient_quota"), "Allocated quota exceeded", RateLimit),
            (0, Some("insufficient_quota"), "check your plan and billing details", Billing),
            (402, None, "You requested up to 32000 tokens, but can only afford 1200.", Unaffordable),
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
            (404, Some("not_found_error"), "model: claude-x", Gone),
            (410, None, "", Gone),
            (404, None, "the server answered with a web page", Gone),
            (400, Some("model_not_found"), "", Gone),
            (403, Some("model_not_found"), "Project x does not have access to model y", Gone),
            (400, None, "The model `llama3-70b` has been decommissioned", Gone),
            (400, Some("api_error"), "registry.ollama.ai/library/gemma does not support tools", Format),
            (400, Some("invalid_api_key"), "no", Auth),
            (405, None, "", Gone),
            (302, None, "", Gone),
            (418, None, "", Other),
            (400, None, "image exceeds 5 MB maximum", Other),
        ];
        for (status, error_type, text, expect) in rows {
            assert_eq!(classify_answer(status, error_type, text), expect, "{status} {error_type:?} {text}");
        }
    }
}
