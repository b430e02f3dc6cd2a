use super::*;
use crate::api::Api;
use crate::stream::FailureKind;

#[test]
fn error_answers_say_what_the_provider_said() {
    use FailureKind::{Auth, Billing, ContextOverflow, Format, Gone, RateLimit, Transient};
    let anthropic = |kind: &str, text: &str| {
        format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{text}"}}}}"#)
    };
    let openai =
        |kind: &str, text: &str| format!(r#"{{"error":{{"message":"{text}","type":"{kind}","code":null}}}}"#);
    let unknown_model = r#"404 {"type":"error","error":{"type":"not_found_error","message":"model: x"}}"#;
    let rows = [
        (
            "anthropic-messages",
            401,
            anthropic("authentication_error", "invalid x-api-key"),
            Auth,
            r#"401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
        ),
        ("anthropic-messages", 404, anthropic("not_found_error", "model: x"), Gone, unknown_model),
        (
            "anthropic-messages",
            400,
            anthropic("invalid_request_error", "prompt is too long: 2 tokens > 1 maximum"),
            ContextOverflow,
            r#"400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 tokens > 1 maximum"}}"#,
        ),
        (
            "openai-completions",
            400,
            openai("invalid_request_error", "fake model rejected the request"),
            Format,
            "400 fake model rejected the request",
        ),
        (
            "openai-completions",
            404,
            r#"{"error":"model 'x' not found"}"#.to_owned(),
            Gone,
            "404 model 'x' not found",
        ),
        (
            "openai-completions",
            429,
            r#"{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}"#
                .to_owned(),
            RateLimit,
            "429 quota",
        ),
        (
            "openai-completions",
            429,
            openai("insufficient_quota", "check your plan and billing details"),
            Billing,
            "429 check your plan and billing details",
        ),
        ("openai-completions", 429, String::new(), RateLimit, "429 status code (no body)"),
        ("openai-completions", 413, String::new(), ContextOverflow, "413 status code (no body)"),
        ("openai-completions", 402, "pay up".to_owned(), Billing, "402 pay up"),
        (
            "openai-responses",
            500,
            "data: {\"error\": {\"message\": \"stream start\", \"type\": \"internal_server_error\"}}\n\ndata: [DONE]"
                .to_owned(),
            Transient,
            "500 stream start",
        ),
        (
            "openai-completions",
            502,
            "<html><title>502 Bad Gateway</title>".to_owned(),
            Transient,
            "502 the server answered with a web page titled \"502 Bad Gateway\" instead of a model's answer",
        ),
        (
            "openai-completions",
            301,
            String::new(),
            Gone,
            "301 the server redirects to https://elsewhere; write the final address into the provider's baseUrl",
        ),
    ];
    for (api, status, body, kind, message) in rows {
        let failure =
            http_failure(protocol(&Api::from(api)).unwrap(), status, Some("https://elsewhere"), &body);
        assert_eq!((failure.kind, failure.message.as_str()), (kind, message), "{status} {body}");
        assert_eq!(failure.status, Some(status));
    }
}

#[test]
fn the_time_to_wait_is_read_in_seconds_and_as_a_date() {
    let rows = [
        ("7", Some(7_000)),
        (" 0 ", Some(0)),
        ("1.5", Some(1_500)),
        ("-3", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", Some(10_000)),
        ("Wed, 21 Oct 2015 07:00:00 GMT", Some(0)),
    ];
    for (text, expect) in rows {
        // 2015-10-21T07:27:50Z
        let found = parse_retry_after(text, 1_445_412_470_000);
        assert_eq!(found, expect.map(Duration::from_millis), "{text}");
    }
}
