use openclaw_protocol::message::{Message, UserMessage};
use secrecy::SecretString;
use serde_json::json;

use super::*;
use crate::request::ToolSpec;
use crate::thinking::ThinkingLevel;

/// The body as a value.
fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let conversation = RequestConversation::whole(&request.messages);
    serde_json::from_slice(&super::body(spec, request, &conversation).to_bytes()).unwrap()
}

const NOW: i64 = 1_700_000_000_000;

fn spec() -> ModelSpec {
    let mut spec = ModelSpec::sample("openai-codex", "gpt-5.3-codex", "openai-codex-responses");
    (spec.reasoning, spec.base_url) = (true, "https://chatgpt.com/backend-api".to_owned());
    spec
}

/// A token with this payload.
fn token(payload: &Value) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload.to_string()))
}

fn key(text: &str) -> ProviderKey {
    ProviderKey::from(SecretString::from(text))
}

fn refusal(status: u16, body: &Value) -> Option<ModelFailure> {
    let text = body.to_string();
    Codex.refusal(&ErrorAnswer { status, error: body.get("error").or(Some(body)), body: &text, now: NOW })
}

#[test]
fn the_address_is_completed() {
    let rows = [
        ("https://chatgpt.com/backend-api", "https://chatgpt.com/backend-api/codex/responses"),
        ("http://127.0.0.1:1/codex", "http://127.0.0.1:1/codex/responses"),
        ("http://127.0.0.1:1/codex/responses", "http://127.0.0.1:1/codex/responses"),
    ];
    for (base, expect) in rows {
        assert_eq!(url(base), expect);
    }
}

#[test]
fn the_account_comes_from_the_token() {
    let claim = |id: Value| json!({ CLAIM: { "chatgpt_account_id": id } });
    let rows = [
        (token(&claim(json!("acc_1"))), Some("acc_1")),
        (token(&claim(json!("ü👍?>~"))), Some("ü👍?>~")),
        (json!({"access": token(&claim(json!("acc_2"))), "accountId": "stored"}).to_string(), Some("acc_2")),
        (json!({"access": "opaque", "accountId": "stored"}).to_string(), Some("stored")),
        (token(&claim(json!(""))), None),
        (token(&claim(json!(7))), None),
        (token(&json!({})), None),
        ("sk-plain-key".to_owned(), None),
        ("a.%%%.c".to_owned(), None),
        ("a.b".to_owned(), None),
    ];
    for (text, expect) in rows {
        let found = account_id(&key(&text));
        assert_eq!(found.as_deref().ok(), expect, "{text}");
        if let Err(failure) = found {
            assert_eq!(failure.kind, FailureKind::Auth);
            assert!(failure.message.contains("models auth login --provider openai-codex"), "{failure:?}");
            assert!(!failure.message.contains(&text), "{failure:?}");
        }
    }
}

#[test]
fn the_request_says_whose_session_it_is() {
    let access = token(&json!({ CLAIM: { "chatgpt_account_id": "acc_1" } }));
    let request = ModelRequest {
        system: "You help.".into(),
        messages: vec![Message::User(UserMessage::text("hi", 1)).into()].into(),
        tools: vec![ToolSpec {
            name: "x".into(),
            description: "d".into(),
            parameters: json!({"type": "object"}).into(),
        }]
        .into(),
        thinking: ThinkingLevel::Minimal,
        max_tokens: Some(99),
        temperature: Some(0.5),
        session_id: Some("s-1".to_owned()),
        ..ModelRequest::default()
    };
    let asked = RequestConversation::whole(&request.messages).asked();
    let built = Codex
        .head(&OutgoingCall { spec: &spec(), key: Some(&key(&access)), request: &request, asked })
        .unwrap();
    let mut headers = built.headers.pairs();
    headers.sort();
    let expect = [
        ("accept", "text/event-stream"),
        ("authorization", &format!("Bearer {access}")),
        ("chatgpt-account-id", "acc_1"),
        ("content-type", "application/json"),
        ("openai-beta", "responses=experimental"),
        ("originator", "openclaw"),
        ("session_id", "s-1"),
    ];
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(headers, expect);
    assert_eq!(
        body(&spec(), &request),
        json!({"model": "gpt-5.3-codex", "store": false, "stream": true, "instructions": "You help.",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
            "text": {"verbosity": "medium"}, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "s-1",
            "tool_choice": "auto", "parallel_tool_calls": true,
            "tools": [{"type": "function", "name": "x", "description": "d", "parameters": {"type": "object", "properties": {}}, "strict": null}],
            "reasoning": {"effort": "low", "summary": "auto"}})
    );
    let quiet = body(&spec(), &ModelRequest::default());
    assert_eq!(
        (&quiet["reasoning"], &quiet["tools"], &quiet["prompt_cache_key"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
}

#[test]
fn a_used_up_plan_is_named_with_its_minutes() {
    use FailureKind::{RateLimit, Transient};
    let error = |fields: Value| json!({ "error": fields });
    let limit = "You have hit your ChatGPT usage limit";
    let rows = [
        (
            429,
            error(
                json!({"type": "usage_limit_reached", "plan_type": "Plus", "resets_at": NOW / 1000 + 12 * 60 + 20}),
            ),
            Some((RateLimit, format!("{limit} (plus plan). Try again in ~12 min."))),
        ),
        (
            429,
            error(json!({"code": "usage_limit_reached", "plan_type": "team", "resets_at": NOW / 1000 - 60})),
            Some((RateLimit, format!("{limit} (team plan). Try again in ~0 min."))),
        ),
        (403, error(json!({"code": "usage_not_included"})), Some((RateLimit, format!("{limit}.")))),
        (
            403,
            error(json!({"code": "usage_not_included", "plan_type": "Free"})),
            Some((RateLimit, format!("{limit} (free plan)."))),
        ),
        (400, error(json!({"code": "rate_limit_exceeded"})), Some((Transient, format!("{limit}.")))),
        (429, error(json!({"code": "rate_limit_exceeded"})), Some((Transient, format!("{limit}.")))),
        (
            429,
            error(json!({"code": "rate_limit_exceeded", "plan_type": "pro"})),
            Some((Transient, format!("{limit} (pro plan)."))),
        ),
        (429, json!({"detail": "slow down"}), Some((Transient, format!("{limit}.")))),
        (
            429,
            error(json!({"message": "The usage limit has been reached"})),
            Some((RateLimit, format!("{limit}."))),
        ),
        (
            400,
            json!({"detail": "upstream connect error"}),
            Some((Transient, "400 upstream connect error".to_owned())),
        ),
        (
            400,
            json!({"detail": "Service-Unavailable"}),
            Some((Transient, "400 Service-Unavailable".to_owned())),
        ),
        (400, json!({"detail": "rate-limit hit"}), Some((Transient, "400 rate-limit hit".to_owned()))),
        (400, error(json!({"message": "Overloaded"})), Some((Transient, "400 Overloaded".to_owned()))),
        (
            400,
            json!({"detail": "connection refused"}),
            Some((Transient, "400 connection refused".to_owned())),
        ),
        (
            400,
            error(json!({"message": "rate limit: usage limit reached"})),
            Some((RateLimit, format!("{limit}."))),
        ),
        (400, json!({"detail": "Instructions are required"}), None),
        (401, error(json!({"message": "token expired"})), None),
    ];
    for (status, body, expect) in rows {
        let found = refusal(status, &body);
        let found = found.map(|failure| {
            assert_eq!(failure.status, Some(status));
            (failure.kind, failure.message)
        });
        assert_eq!(found, expect, "{status} {body}");
    }
    let spent = refusal(429, &error(json!({"type": "usage_limit_reached", "resets_at": NOW / 1000 + 90})));
    assert_eq!(spent.unwrap().retry_after, Some(Duration::from_secs(90)));
}

#[test]
fn other_errors_keep_their_words() {
    let rows = [
        (json!({"detail": "Unauthorized"}), "Unauthorized"),
        (json!({"message": "no"}), "no"),
        (json!("text"), "text"),
        (json!({"x": 1}), "{\"x\":1}"),
    ];
    for (error, expect) in rows {
        assert_eq!(Codex.error_words(&error, &error.to_string()), expect);
    }
}

#[test]
fn troubles_are_waited_out_one_two_and_four_seconds() {
    use crate::retry::{Patience, Retry, decide};
    let after = |seconds| Retry::After(Duration::from_secs(seconds));
    for status in [429, 500, 502, 503, 504] {
        let body = json!({"detail": "x"});
        let failure = refusal(status, &body).unwrap_or_else(|| ModelFailure {
            kind: crate::failure::classify_answer(status, None, "x"),
            status: Some(status),
            retry_after: None,
            message: "x".to_owned(),
        });
        let found: Vec<_> =
            (1..=4).map(|made| decide(made, &failure, Patience::Full, Codex.first_wait())).collect();
        assert_eq!(found, [after(1), after(2), after(4), Retry::GiveUp], "{status}");
    }
    let spent = refusal(429, &json!({"error": {"type": "usage_limit_reached"}})).unwrap();
    assert_eq!(decide(1, &spent, Patience::Full, Codex.first_wait()), Retry::GiveUp);
}
