//! Model calls over real HTTP against the scripted model server, through the same door as the rest of the product.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

#[path = "http/bad_input.rs"]
mod bad_input;
#[path = "http/renewal.rs"]
mod renewal;

use std::time::Duration;

use futures_util::StreamExt;
use openclaw_models::catalog::ProviderEntry;
use openclaw_models::net::{Headers, Timeouts};
use openclaw_models::{
    Ask, AskedThinking, Candidate, FailureKind, Http, ModelEvent, ModelFailure, ModelSettings, Models,
    ThinkingLevel, ToolSpec, Variables,
};
use openclaw_protocol::AgentId;
use openclaw_protocol::message::{AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage};
use openclaw_testkit::model_server::{
    Gate, HELLO, ModelServer, Pace, Reply, ScriptedCall, Step, bedrock_exception,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A key that is also a login of the Codex backend: its payload names account `acc_1`.
const KEY: &str =
    "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOiB7ImNoYXRncHRfYWNjb3VudF9pZCI6ICJhY2NfMSJ9fQ.c2ln";

/// The protocols, by the name their provider has here.
const PROVIDERS: [&str; 6] = ["claude", "llama", "gpt", "codex", "gemini", "bedrock"];

fn settings(server: &ModelServer, fallback: bool) -> ModelSettings {
    let entry = |value: Value| -> ProviderEntry { serde_json::from_value(value).unwrap() };
    let models = json!([{"id": "m", "reasoning": true, "input": ["text", "image"], "maxTokens": 64000,
        "cost": {"input": 1.0, "output": 2.0}}]);
    let apis = [
        (server.url(), "anthropic-messages"),
        (server.v1(), "openai-completions"),
        (server.v1(), "openai-responses"),
        (server.url() + "/backend-api", "openai-codex-responses"),
        (server.url() + "/v1beta", "google-generative-ai"),
        (server.url(), "bedrock-converse-stream"),
    ];
    let providers = PROVIDERS.iter().zip(apis).map(|(name, (base_url, api))| {
        let provider = json!({"baseUrl": base_url, "apiKey": KEY, "api": api, "models": models});
        ((*name).to_owned(), entry(provider))
    });
    let mut settings = ModelSettings { providers: providers.collect(), ..ModelSettings::default() };
    if fallback {
        settings.default_model.fallbacks = Some(vec!["llama/m".to_owned()]);
    }
    settings
}

/// An environment in which only what is configured is asked for.
fn no_local_models() -> Variables {
    [("OPENCLAW_LOCAL_MODELS", "off")].into_iter().collect()
}

/// The candidates for a provider's model.
async fn bind(settings: &ModelSettings, http: Http, provider: &str) -> Vec<Candidate> {
    let agent = AgentId::default();
    let dir = tempfile::tempdir().unwrap();
    let ask = Ask {
        model: Some(&format!("{provider}/m")),
        thinking: AskedThinking::Explicit(ThinkingLevel::Medium),
        ..Ask::new(&agent, dir.path())
    };
    Models::new(no_local_models(), http).select(settings, &ask).await.unwrap().candidates
}

async fn candidate(server: &ModelServer, provider: &str) -> Candidate {
    bind(&settings(server, false), Http::default(), provider).await.remove(0)
}

fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 1))
}

fn read_tool() -> ToolSpec {
    let parameters =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    ToolSpec { name: "read".into(), description: "reads".into(), parameters: parameters.into() }
}

async fn call(candidate: &Candidate, messages: Vec<Message>) -> Vec<ModelEvent> {
    let request = candidate.request(
        "You help.".to_owned(),
        messages.into_iter().map(Into::into).collect(),
        vec![read_tool()],
        None,
    );
    let events: Vec<_> = candidate.model.stream(request, CancellationToken::new()).collect().await;
    let ends = events.iter().filter(|event| matches!(event, ModelEvent::Done { .. })).count();
    let starts = events.iter().filter(|event| matches!(event, ModelEvent::Start)).count();
    assert!(ends == 1 && starts <= 1, "{events:?}");
    events
}

fn message(events: &[ModelEvent]) -> AssistantMessage {
    let Some(ModelEvent::Done { message, .. }) = events.last() else { panic!("{events:?}") };
    message.clone()
}

fn failure(events: &[ModelEvent]) -> ModelFailure {
    let Some(ModelEvent::Done { failure: Some(failure), .. }) = events.last() else { panic!("{events:?}") };
    failure.clone()
}

fn text_deltas(events: &[ModelEvent]) -> Vec<String> {
    let delta = |event: &ModelEvent| match event {
        ModelEvent::TextDelta { delta, .. } => Some(delta.clone()),
        _ => None,
    };
    events.iter().filter_map(delta).collect()
}

#[tokio::test]
async fn a_conversation_with_thinking_and_tools_goes_through_every_protocol() {
    for provider in PROVIDERS {
        let calls = [
            ScriptedCall::new("call_1", "read", &json!({"path": "a.txt"})),
            ScriptedCall::new("call_2", "read", &json!({"path": "ä.txt"})),
        ];
        let server = ModelServer::queue([
            Reply::tools(calls).after(Step::Signature("sig".into())).after(Step::Thinking("which?".into())),
            Reply::deltas(HELLO),
            Reply::text("Bye."),
        ])
        .await;
        let model = candidate(&server, provider).await;
        let mut messages = vec![user("read them")];

        let first = message(&call(&model, messages.clone()).await);
        assert_eq!(first.stop_reason, StopReason::ToolUse, "{provider}");
        let arguments: Vec<_> = first.tool_calls().map(|call| call.arguments.clone()).collect();
        assert_eq!(arguments, [json!({"path": "a.txt"}), json!({"path": "ä.txt"})], "{provider}");
        messages.push(Message::Assistant(first.clone()));
        for call in first.tool_calls() {
            messages.push(Message::ToolResult(ToolResultMessage {
                tool_call_id: call.id.clone(),
                tool_name: "read".to_owned(),
                content: vec![openclaw_protocol::message::Block::text("text")],
                ..ToolResultMessage::default()
            }));
        }

        let events = call(&model, messages.clone()).await;
        assert_eq!(text_deltas(&events), HELLO, "{provider}");
        let second = message(&events);
        assert_eq!((second.usage.input, second.usage.output, second.usage.total_tokens), (100, 7, 107));
        assert!((second.usage.cost.total - 0.000_114).abs() < 1e-12);
        messages.extend([Message::Assistant(second), user("thanks")]);
        assert_eq!(message(&call(&model, messages).await).text(), "Bye.");

        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        assert!(requests[1].ends_with_tool_result() && !requests[2].ends_with_tool_result());
        assert_eq!(requests[2].last_user_text(), "thanks");
        assert_eq!(requests[0].tool_names(), ["read"]);
        assert_eq!(requests[0].header("user-agent"), Some(concat!("openclaw/", env!("CARGO_PKG_VERSION"))));
        let thought = requests[1].body.to_string();
        assert!(thought.contains("which?"), "reasoning goes back to its own model: {thought}");
        // The part sent before stays the same, to the byte: the provider's cache depends on it.
        let shared = requests[1].messages().len() - 1;
        assert_eq!(
            json!(requests[1].messages()[..shared]).to_string(),
            json!(requests[2].messages()[..shared]).to_string()
        );
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_heard_all_the_same() {
    for provider in PROVIDERS {
        let server = ModelServer::queue([Reply::text("All at once.").unstreamed()]).await;
        let events = call(&candidate(&server, provider).await, vec![user("hi")]).await;
        assert_eq!(text_deltas(&events), ["All at once."], "{provider}");
        assert_eq!(message(&events).usage.total_tokens, 107);
    }
}

#[tokio::test]
async fn every_failure_has_its_kind_and_its_words() {
    use FailureKind::{Auth, Billing, ContextOverflow, Format, Gone, Timeout, Transient};
    let words = format!("key {KEY} broke us");
    let told = format!(r#"data: {{"type":"error","error":{{"type":"api_error","message":"{words}"}}}}"#);
    let half = |raw: &[u8]| Reply::text("half").then(Step::Raw(raw.to_vec()));
    // Errors inside a stream, in its format.
    let events = [
        (half(format!("{told}\n\n").as_bytes()), Transient, "key [redacted] broke us"),
        (half(b"data: {garbage\n\n"), Transient, "garbage"),
    ];
    let messages = [
        (half(&bedrock_exception("internalServerException", &words)), Transient, "key [redacted] broke us"),
        (half(b"data: {garbage\n\n"), Transient, "no event stream of AWS"),
    ];
    let rows: Vec<(Reply, FailureKind, &str)> = vec![
        (
            Reply::openai_error(401, "x", &format!("Incorrect API key provided: {KEY}")),
            Auth,
            "provided: [redacted]",
        ),
        (Reply::openai_error(402, "x", "pay"), Billing, "402"),
        (Reply::openai_error(404, "not_found_error", "model: m"), Gone, "model: m"),
        (Reply::openai_error(408, "x", "slow").header("retry-after", "100"), Timeout, "408"),
        (Reply::plain(413, "text/plain", ""), ContextOverflow, "413"),
        (
            Reply::openai_error(400, "x", "prompt is too long: 2 tokens > 1 maximum"),
            ContextOverflow,
            "too long",
        ),
        (Reply::openai_error(400, "x", "max_tokens: no"), Format, "max_tokens: no"),
        (Reply::html(200, "Sign in"), Gone, "a web page titled \"Sign in\""),
        (Reply::html(403, "Just a moment..."), Auth, "403 the server answered with a web page"),
        (Reply::plain(307, "text/plain", "").header("location", "http://x"), Gone, "redirects to http://x"),
        (
            Reply::text("half").then(Step::Cut),
            Transient,
            "closed the connection before the answer was complete",
        ),
    ];
    for provider in PROVIDERS {
        let own: &[_] = if provider == "bedrock" { &messages } else { &events };
        for (reply, kind, words) in own.iter().chain(&rows) {
            let server = ModelServer::queue([reply.clone()]).await;
            let events = call(&candidate(&server, provider).await, vec![user("hi")]).await;
            let found = failure(&events);
            assert_eq!(found.kind, *kind, "{provider}: {found:?}");
            assert!(found.message.contains(words), "{provider}: {found:?}");
            assert!(!found.message.contains(KEY), "{provider}: {found:?}");
            let message = message(&events);
            assert_eq!(
                (message.stop_reason, message.error_message),
                (StopReason::Error, Some(found.message))
            );
            assert_eq!(message.content.is_empty(), text_deltas(&events).is_empty());
            assert_eq!(server.requests().len(), 1, "{provider}: {kind:?} is not tried again");
        }
    }
}

#[tokio::test]
async fn a_hang_up_in_half_a_tool_call_leaves_no_call_behind() {
    for provider in PROVIDERS {
        let call_1 = ScriptedCall::new("call_1", "exec", &json!({"command": "rm -rf /tmp/important"}));
        let server =
            ModelServer::queue([Reply::text("ok").then(Step::HalfToolCall(call_1)).then(Step::Cut)]).await;
        let message = message(&call(&candidate(&server, provider).await, vec![user("hi")]).await);
        assert_eq!((message.text().as_str(), message.tool_calls().count()), ("ok", 0), "{provider}");
        assert_eq!(message.stop_reason, StopReason::Error);
    }
}

#[tokio::test]
async fn nobody_listening_is_said_so_and_a_cancel_ends_the_tries() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("http://{gone}");
    let error = Http::default().post_json(&address, Headers::default(), Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), FailureKind::Transient);
    assert_eq!(error.to_string(), format!("connection refused by {gone}; is the server running?"));

    let server = ModelServer::queue([]).await;
    let mut settings = settings(&server, false);
    for (_, provider) in &mut settings.providers {
        provider.base_url = Some(address.clone());
    }
    let candidate = bind(&settings, Http::default(), "llama").await.remove(0);
    let cancel = CancellationToken::new();
    let request = candidate.request(String::new(), vec![user("hi").into()], vec![], None);
    let mut stream = candidate.model.stream(request, cancel.clone());
    let next = stream.next();
    tokio::pin!(next);
    assert!(futures_util::poll!(next.as_mut()).is_pending());
    cancel.cancel();
    let Some(ModelEvent::Done { message, failure: None }) = next.await else { panic!() };
    assert_eq!(message.stop_reason, StopReason::Aborted);
}

#[tokio::test]
async fn a_connection_is_used_again_by_the_next_call() {
    for provider in PROVIDERS {
        let busy = Reply::anthropic_error(503, "overloaded_error", "x").header("retry-after", "0");
        let server =
            ModelServer::queue([busy, Reply::text("one"), Reply::text("two").unstreamed(), Reply::text("3")])
                .await;
        let candidate = candidate(&server, provider).await;
        for _ in 0..3 {
            call(&candidate, vec![user("hi")]).await;
        }
        let peers: std::collections::BTreeSet<_> =
            server.requests().iter().map(|request| request.peer).collect();
        assert_eq!((peers.len(), server.requests().len()), (1, 4), "{provider}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_after_its_silence() {
    let idle = Duration::from_millis(50);
    for provider in PROVIDERS {
        for reply in [Reply::never(), Reply::text("half").then(Step::Hang)] {
            let server = ModelServer::queue([reply]).await;
            let http = Http::with_timeouts(Timeouts { idle, ..Timeouts::default() });
            let candidate = bind(&settings(&server, false), http, provider).await.remove(0);
            let found = failure(&call(&candidate, vec![user("hi")]).await);
            assert_eq!(found.kind, FailureKind::Timeout, "{provider}");
            assert_eq!(found.message, format!("timed out: {} sent nothing for 50ms", server.address()));
            // The connection is closed, not left hanging.
            server.over(0).await;
        }
    }
}

#[tokio::test]
async fn cancelling_closes_the_request_at_once_and_keeps_what_was_said() {
    for provider in PROVIDERS {
        let server = ModelServer::queue([Reply::text("half").then(Step::Hang), Reply::never()]).await;
        let candidate = candidate(&server, provider).await;
        let cancel = CancellationToken::new();
        let request = candidate.request(String::new(), vec![user("hi").into()], vec![], None);
        let mut stream = candidate.model.stream(request.clone(), cancel.clone());
        while let Some(event) = stream.next().await {
            if matches!(event, ModelEvent::TextDelta { .. }) {
                cancel.cancel();
            } else if let ModelEvent::Done { message, failure } = event {
                assert_eq!(
                    (message.text().as_str(), message.stop_reason, failure),
                    ("half", StopReason::Aborted, None)
                );
            }
        }
        server.over(0).await;

        // Dropping does the same, also before the answer began.
        let mut stream = candidate.model.stream(request, CancellationToken::new());
        {
            let next = stream.next();
            tokio::pin!(next);
            tokio::select! {
                _ = &mut next => panic!("nothing was answered"),
                () = server.arrived(2) => {}
            }
        }
        drop(stream);
        server.over(1).await;
    }
}

#[tokio::test]
async fn the_first_words_arrive_while_the_rest_is_still_to_be_said() {
    for provider in PROVIDERS {
        let gate = Gate::new();
        let reply = Reply::text("first").then(Step::Wait(gate.clone())).then(Step::Text(" second".into()));
        let server = ModelServer::queue([reply]).await;
        let candidate = candidate(&server, provider).await;
        let request = candidate.request(String::new(), vec![user("hi").into()], vec![], None);
        let mut stream = candidate.model.stream(request, CancellationToken::new());
        assert_eq!(stream.next().await, Some(ModelEvent::Start));
        assert_eq!(stream.next().await, Some(ModelEvent::TextDelta { block: 0, delta: "first".into() }));
        gate.open();
        let rest: Vec<_> = stream.collect().await;
        assert_eq!(message(&rest).text(), "first second", "{provider}");
    }
}

#[tokio::test]
async fn a_passing_trouble_is_tried_again_up_to_four_times() {
    let busy = || Reply::anthropic_error(529, "overloaded_error", "Overloaded").header("retry-after", "0");
    for provider in PROVIDERS {
        let server = ModelServer::queue([busy(), busy(), Reply::text("now")]).await;
        let events = call(&candidate(&server, provider).await, vec![user("hi")]).await;
        assert_eq!((message(&events).text().as_str(), server.requests().len()), ("now", 3), "{provider}");

        let server = ModelServer::queue(std::iter::repeat_with(busy).take(9)).await;
        let events = call(&candidate(&server, provider).await, vec![user("hi")]).await;
        assert_eq!(
            (failure(&events).kind, server.requests().len()),
            (FailureKind::Transient, 4),
            "{provider}"
        );
    }
}

#[tokio::test]
async fn what_was_heard_is_not_said_twice() {
    let server = ModelServer::queue([Reply::text("half").then(Step::Cut), Reply::text("whole")]).await;
    let events = call(&candidate(&server, "llama").await, vec![user("hi")]).await;
    assert_eq!((failure(&events).kind, server.requests().len()), (FailureKind::Transient, 1));
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_only_by_the_last_candidate() {
    let limit = || Reply::anthropic_error(429, "rate_limit_error", "slow down").header("retry-after", "0");
    let server = ModelServer::queue([limit(), limit(), Reply::text("now")]).await;
    let candidates = bind(&settings(&server, true), Http::default(), "claude").await;
    let names: Vec<_> = candidates.iter().map(|c| c.reference.to_string()).collect();
    assert_eq!(names, ["claude/m", "llama/m"]);
    let first = failure(&call(&candidates[0], vec![user("hi")]).await);
    assert_eq!(
        (first.kind, first.retry_after, server.requests().len()),
        (FailureKind::RateLimit, Some(Duration::ZERO), 1)
    );
    assert_eq!(message(&call(&candidates[1], vec![user("hi")]).await).text(), "now");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_wait_for_the_next_try_can_be_cancelled() {
    let limit = Reply::anthropic_error(429, "rate_limit_error", "slow down").header("retry-after", "60");
    let server = ModelServer::queue([limit]).await;
    let candidate = candidate(&server, "claude").await;
    let cancel = CancellationToken::new();
    let request = candidate.request(String::new(), vec![user("hi").into()], vec![], None);
    let mut stream = candidate.model.stream(request, cancel.clone());
    let Some(ModelEvent::Retry { attempt: 2, attempts: 4, wait, failure }) = stream.next().await else {
        panic!("no word of the wait")
    };
    assert_eq!((wait.as_secs(), failure.kind), (60, FailureKind::RateLimit));
    let next = stream.next();
    tokio::pin!(next);
    tokio::select! { biased;
        _ = &mut next => panic!("the wait is a minute"),
        () = server.over(0) => cancel.cancel(),
    }
    let Some(ModelEvent::Done { message, failure: None }) = next.await else { panic!() };
    assert_eq!((message.stop_reason, server.requests().len()), (StopReason::Aborted, 1));
}

#[tokio::test]
async fn a_refused_thinking_level_is_replaced_by_one_the_provider_names() {
    let refusal = "Unsupported value: 'medium'. Supported values are: 'low', 'high'.";
    let server =
        ModelServer::queue([Reply::openai_error(400, "invalid_request_error", refusal), Reply::text("ok")])
            .await;
    let events = call(&candidate(&server, "llama").await, vec![user("hi")]).await;
    assert_eq!(message(&events).text(), "ok");
    let asked: Vec<_> = server.requests().iter().map(|r| r.body["reasoning_effort"].clone()).collect();
    assert_eq!(asked, [json!("medium"), json!("low")]);
}

#[tokio::test]
async fn the_recorded_stub_answers_as_it_did() {
    let server = ModelServer::reference_at(Pace::FAST).await;
    let model = candidate(&server, "llama").await;
    let says = async |text: &str| call(&model, vec![user(text)]).await;
    let hello = says("hi there").await;
    assert_eq!(text_deltas(&hello), HELLO);
    let usage = message(&hello).usage;
    assert_eq!((usage.input, usage.output, usage.total_tokens), (100, 7, 107));
    assert_eq!(message(&says("SILENT please").await).text(), "NO_REPLY");
    assert_eq!(failure(&says("FAIL400 please").await).message, "400 fake model rejected the request");
    assert_eq!(message(&says("BIGUSAGE now").await).usage.input, 31_500);
    let tool = message(&says("TOOL run").await);
    let calls: Vec<_> =
        tool.tool_calls().map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.clone())).collect();
    assert_eq!(calls, [("call_fake_1", "read", json!({"path": "NOTE.txt"}))]);
    let result =
        Message::ToolResult(ToolResultMessage { tool_call_id: "call_fake_1".into(), ..Default::default() });
    let after = call(&model, vec![user("TOOL run"), Message::Assistant(tool), result]).await;
    assert_eq!(message(&after).text(), HELLO.concat());
}

#[tokio::test]
async fn reasoning_goes_back_to_openai_as_it_came() {
    let thinks = Reply::tool("call_1", "read", &json!({"path": "a.txt"}))
        .after(Step::Signature("gAAAA+/=".into()))
        .after(Step::Thinking("which?".into()));
    let server = ModelServer::queue([thinks, Reply::text("done")]).await;
    let model = candidate(&server, "gpt").await;
    let first = message(&call(&model, vec![user("read it")]).await);
    let result = Message::ToolResult(ToolResultMessage {
        tool_call_id: first.tool_calls().next().unwrap().id.clone(),
        content: vec![openclaw_protocol::message::Block::text("text")],
        ..ToolResultMessage::default()
    });
    call(&model, vec![user("read it"), Message::Assistant(first), result]).await;
    let sent = server.requests().pop().unwrap();
    assert_eq!(
        json!(sent.messages()[2..]),
        json!([
            {"type": "reasoning", "id": "rs_0", "summary": [{"type": "summary_text", "text": "which?"}],
                "encrypted_content": "gAAAA+/="},
            {"type": "function_call", "id": "fc_call_1", "call_id": "call_1", "name": "read",
                "arguments": "{\"path\":\"a.txt\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "text"}])
    );
}

#[tokio::test]
async fn the_codex_backend_is_asked_again_unless_the_plan_is_used_up() {
    let error = |fields: Value| Reply::error(429, &json!({ "error": fields })).header("retry-after", "0");
    let fast = || error(json!({"code": "rate_limit_exceeded", "message": "slow down"}));
    let server = ModelServer::queue([fast(), fast(), Reply::text("now")]).await;
    let events = call(&candidate(&server, "codex").await, vec![user("hi")]).await;
    assert_eq!((message(&events).text().as_str(), server.requests().len()), ("now", 3));
    let request = &server.requests()[0];
    assert_eq!(request.path, "/backend-api/codex/responses");
    assert_eq!(request.header("chatgpt-account-id"), Some("acc_1"));
    assert_eq!(request.header("user-agent"), Some(concat!("openclaw/", env!("CARGO_PKG_VERSION"))));

    let server =
        ModelServer::queue([error(json!({"type": "usage_limit_reached", "plan_type": "plus"}))]).await;
    let found = failure(&call(&candidate(&server, "codex").await, vec![user("hi")]).await);
    assert_eq!(
        (found.kind, found.message.as_str(), server.requests().len()),
        (FailureKind::RateLimit, "You have hit your ChatGPT usage limit (plus plan).", 1)
    );
}

#[tokio::test]
async fn a_codex_login_without_an_account_never_leaves_the_machine() {
    let server = ModelServer::queue([]).await;
    let mut settings = settings(&server, false);
    for (_, provider) in &mut settings.providers {
        provider.api_key = Some("sk-an-api-key".into());
    }
    let candidate = bind(&settings, Http::default(), "codex").await.remove(0);
    let found = failure(&call(&candidate, vec![user("hi")]).await);
    assert_eq!((found.kind, server.requests().len()), (FailureKind::Auth, 0), "{found:?}");
}

#[tokio::test]
async fn google_says_how_long_to_wait_in_its_own_words() {
    let details = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.001s"}]);
    let error =
        json!({"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED", "details": details});
    let server = ModelServer::queue([Reply::error(429, &json!({"error": error})), Reply::text("now")]).await;
    let candidate = candidate(&server, "gemini").await;
    assert_eq!(message(&call(&candidate, vec![user("hi")]).await).text(), "now");
    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1beta/models/m:streamGenerateContent?alt=sse");
    assert_eq!((request.header("x-goog-api-key"), request.header("authorization")), (Some(KEY), None));
}

/// Binds a model of Bedrock with an environment's keys.
async fn bedrock(server: &ModelServer, variables: &[(&str, &str)]) -> Result<Candidate, String> {
    let mut settings = settings(server, false);
    for (_, provider) in &mut settings.providers {
        provider.api_key = None;
    }
    let agent = AgentId::default();
    let dir = tempfile::tempdir().unwrap();
    let ask = Ask { model: Some("bedrock/m"), ..Ask::new(&agent, dir.path()) };
    let models = Models::new(variables.iter().copied().collect(), Http::default());
    let mut selected = models.select(&settings, &ask).await.map_err(|error| error.to_string())?;
    Ok(selected.candidates.remove(0))
}

#[tokio::test]
async fn bedrock_is_called_with_the_keys_of_aws() {
    let server = ModelServer::answering(|_| Reply::text("ok")).await;
    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret-s3cret"),
        ("AWS_REGION", "eu-west-1"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&keys[..], more].concat();
    let rows = [
        (with(&[]), "env: AWS_ACCESS_KEY_ID", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/", None),
        (
            with(&[("AWS_SESSION_TOKEN", "session")]),
            "env: AWS_ACCESS_KEY_ID",
            "AWS4-HMAC-SHA256 ",
            Some("session"),
        ),
        (
            with(&[("AWS_BEARER_TOKEN_BEDROCK", "bearer-token")]),
            "env: AWS_BEARER_TOKEN_BEDROCK",
            "Bearer bearer-token",
            None,
        ),
        (with(&[("AWS_BEDROCK_SKIP_AUTH", "1")]), "env: AWS_BEDROCK_SKIP_AUTH", "", None),
        // A server of one's own on this machine needs no key.
        (vec![], "", "", None),
    ];
    for (number, (variables, source, authorization, session)) in rows.into_iter().enumerate() {
        let candidate = bedrock(&server, &variables).await.unwrap();
        assert_eq!(
            (candidate.auth.source.as_str(), candidate.auth.mode == "aws-sdk"),
            (source, !source.is_empty())
        );
        assert!(!candidate.auth.masked.contains("s3cret"), "{}", candidate.auth.masked);
        assert_eq!(message(&call(&candidate, vec![user("hi")]).await).text(), "ok");
        let request = &server.requests()[number];
        let sent = request.header("authorization").unwrap_or_default();
        assert!(sent.starts_with(authorization) && sent.is_empty() == authorization.is_empty(), "{sent}");
        assert_eq!(request.header("x-amz-security-token"), session);
        if sent.starts_with("AWS4") {
            assert!(
                sent.contains("/eu-west-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date"),
                "{sent}"
            );
        }
    }
    let gone = bedrock(&server, &[("AWS_PROFILE", "gone")]).await.err().unwrap();
    assert!(gone.contains("AWS profile \"gone\""), "{gone}");
}

#[tokio::test]
async fn protocols_that_are_known_by_name_alone_are_named() {
    let agent = AgentId::default();
    let dir = tempfile::tempdir().unwrap();
    let rows = [
        ("google-gemini-cli/gemini-3-pro", "google-gemini-cli"),
        ("google-antigravity/gemini-3-pro", "google-gemini-cli"),
    ];
    for (model, api) in rows {
        let ask = Ask { model: Some(model), ..Ask::new(&agent, dir.path()) };
        let models = Models::new(no_local_models(), Http::default());
        let error = models.select(&ModelSettings::default(), &ask).await.err().unwrap();
        assert!(error.to_string().contains(&format!("speaks {api}, which is not supported yet")), "{error}");
    }
}
