//! Error texts for people when a model's provider refuses or sends something that is no answer
//! (spec `models.md` §9.5).

use std::time::{SystemTime, UNIX_EPOCH};

use openclaw_testkit::login_server::{LoginServer, Scripted};
use openclaw_testkit::model_server::{Captured, ModelServer, Reply, ScriptedCall, Step};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::{end, failure, send, turn, words};

const KEY: &str = "sk-ant-fake-key";

/// Name, what the server answers, what people read, and how often the server is asked.
type Case = (&'static str, fn() -> Reply, &'static str, usize);

fn refusal(status: u16, kind: &str, message: &str) -> Reply {
    Reply::anthropic_error(status, kind, message).header("retry-after", "0")
}

const CASES: [Case; 13] = [
    (
        "400",
        || refusal(400, "invalid_request_error", "max_tokens: too big"),
        "LLM request rejected: max_tokens: too big\nThis is the answer of anthropic (model claude-opus-4-6). It refuses the request as \
         it is: /model <provider>/<model> asks another model, /new begins a conversation without this history.",
        1,
    ),
    (
        "401",
        || refusal(401, "authentication_error", "invalid x-api-key sk-ant-fake-key"),
        "HTTP 401 authentication_error: invalid x-api-key [redacted]\nThis is the answer of anthropic (model claude-opus-4-6). \
         Set ANTHROPIC_API_KEY in ~/.openclaw/.env or in the environment of the gateway's service and restart \
         the gateway; or, without a restart, run `claude setup-token`, then `openclaw models auth setup-token`. \
         `openclaw models \
         status` shows which credential is used.",
        1,
    ),
    (
        "402",
        || refusal(402, "billing_error", "pay"),
        "⚠️ The API provider returned a billing error: this key is out of credit or its plan has lapsed. Check the \
         provider's billing dashboard, top up, or switch to another key.\nThis is the answer of anthropic (model \
         claude-opus-4-6). `openclaw models status` shows which credential is used.",
        1,
    ),
    (
        "403",
        || refusal(403, "permission_error", "not for you"),
        "HTTP 403 permission_error: not for you\nThis is the answer of anthropic (model claude-opus-4-6). It knows the \
         credential and does not permit this: check the plan, the rights and the region at the provider. /model \
         <provider>/<model> asks another model. Another credential may be permitted. Set ANTHROPIC_API_KEY in \
         ~/.openclaw/.env or in the environment of the gateway's service and restart the gateway; or, without a \
         restart, run `claude \
         setup-token`, then `openclaw models auth setup-token`. `openclaw models status` shows which credential is used.",
        1,
    ),
    (
        "tools",
        || refusal(400, "invalid_request_error", "gemma does not support tools"),
        "LLM request rejected: gemma does not support tools\nThis is the answer of anthropic (model claude-opus-4-6). The model \
         takes no tools, which every agent offers. /model <provider>/<model> asks another model; with \
         tools.byProvider[\"anthropic/claude-opus-4-6\"].deny: [\"*\"] in the config it is offered none.",
        1,
    ),
    (
        "error inside",
        || {
            Reply::plain(
                200,
                "application/json",
                r#"{"type":"error","error":{"type":"odd","message":"no luck"}}"#,
            )
        },
        "LLM error odd: no luck\nThis came of asking anthropic (model claude-opus-4-6). /model <provider>/<model> asks another \
         model; `openclaw models status --probe` shows what answers.",
        1,
    ),
    (
        "404",
        || refusal(404, "not_found_error", "model: x"),
        "HTTP 404 not_found_error: model: x\nThis is the answer of anthropic (model claude-opus-4-6). It has no such model, or \
         is not at this address: `openclaw models list --all --provider anthropic` shows the known models, \
         models.providers.anthropic.baseUrl is the address.",
        1,
    ),
    (
        "408",
        || refusal(408, "timeout_error", "slow"),
        "HTTP 408 timeout_error: slow\nThis is the answer of anthropic (model claude-opus-4-6). Try again in a moment; \
         `openclaw models status --probe` shows whether it answers.",
        4,
    ),
    (
        "413",
        || refusal(413, "request_too_large", "Request exceeds the maximum size"),
        "Context overflow: prompt too large for the model. Try again with less input or a larger-context model.\nanthropic \
         (model claude-opus-4-6) takes no request of this size. About 1,234 tokens were sent, of 200,000 that its window \
         holds, and could not be made fewer. Send less at once; /new begins a conversation without this history; /model \
         <provider>/<model> asks another model.",
        1,
    ),
    (
        "429",
        || refusal(429, "rate_limit_error", "slow down"),
        "HTTP 429 rate_limit_error: slow down\nThis is the answer of anthropic (model claude-opus-4-6). It takes no more \
         requests for now: try again later, or name another model that answers meanwhile: `openclaw models fallbacks add \
         <provider>/<model>`.",
        4,
    ),
    (
        "500",
        || refusal(500, "api_error", "oops"),
        "HTTP 500 api_error: oops\nThis is the answer of anthropic (model claude-opus-4-6). Try again in a moment; `openclaw \
         models status --probe` shows whether it answers.",
        4,
    ),
    (
        "529",
        || refusal(529, "overloaded_error", "Overloaded"),
        "The AI service is temporarily overloaded. Please try again in a moment.",
        4,
    ),
    (
        "cloudflare",
        || Reply::html(403, "Just a moment..."),
        "403 the server answered with a web page titled \"Just a moment...\" instead of a model's answer\nThis is the \
         answer of anthropic (model claude-opus-4-6). Try again in a moment; `openclaw models status --probe` shows whether \
         it answers.",
        1,
    ),
];

fn answer(request: &Captured) -> Reply {
    let text = request.last_user_text();
    let said = words(&text);
    let case = CASES.iter().find(|(name, ..)| said == format!("case {name}"));
    case.map_or_else(|| Reply::text("fine"), |(_, reply, ..)| reply())
}

#[tokio::test]
async fn every_refusal_is_told_in_words_for_people() {
    let model = ModelServer::answering(answer).await;
    let elsewhere = json!({"agents": {"defaults": {"model": "anthropic/claude-opus-4-6"}},
        "models": {"providers": {"anthropic": {"baseUrl": model.url(), "models": []}}}});
    let gateway = gateway().config(elsewhere).env("ANTHROPIC_API_KEY", KEY).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (name, _, text, times) in CASES {
        let before = model.requests().len();
        let run = format!("run-{name}");
        let asked = format!("case {name}");
        send(&mut client, name, &asked, &run).await;
        let told = failure(&mut client, name, &asked, &run).await;
        assert_eq!(without_sizes(&told), without_sizes(text), "{name}");
        assert_eq!(model.requests().len() - before, times, "{name}");
    }
    assert!(!gateway.log().contains(KEY), "{}", gateway.log());
}

/// Text with the estimates of tokens taken out.
fn without_sizes(text: &str) -> String {
    let is_size = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains(',');
    text.split(' ').filter(|word| !is_size(word)).collect::<Vec<_>>().join(" ")
}

/// The advice for a model without tools works.
#[tokio::test]
async fn a_model_without_tools_answers_where_it_is_offered_none() {
    let model = ModelServer::answering(|request| match request.tool_names().is_empty() {
        true => Reply::text("just words"),
        false => Reply::openai_error(400, "invalid_request_error", "fake-1 does not support tools"),
    })
    .await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let hello = ["agent", "--agent", "main", "--message", "hello"];
    openclaw(&gateway, &hello)
        .await
        .failed(&["tools.byProvider[\"fake/fake-1\"].deny: [\"*\"] in the config"]);
    let path = "tools.byProvider[\"fake/fake-1\"].deny";
    let set = openclaw(&gateway, &["config", "set", path, "[\"*\"]"]).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    assert_eq!(openclaw(&gateway, &hello).await.out, "just words\n");
}

/// A chat is advised commands of chats, which `openclaw agent` would hand to the model as words.
#[tokio::test]
async fn the_command_line_is_advised_commands_that_work_there() {
    let model = ModelServer::answering(|request| match request.body.to_string().contains("poison") {
        true => Reply::openai_error(400, "invalid_request_error", "no"),
        false => Reply::text("fine"),
    })
    .await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let ask = async |place: [&str; 2], words: &str| {
        openclaw(&gateway, &["agent", place[0], place[1], "--message", words]).await
    };
    let refused = ask(["--agent", "main"], "poison").await;
    refused.failed(&[
        "`openclaw models set <provider>/<model>` sets another model",
        "`openclaw agent --session-id <new id>` begins a conversation without this history",
    ]);
    assert!(!refused.err.contains("/model <") && !refused.err.contains("/new"), "{refused:?}");
    ask(["--agent", "main"], "and now?").await.failed(&["--session-id <new id>"]);
    assert_eq!(ask(["--session-id", "another-1"], "and now?").await.out, "fine\n");

    let mut client = gateway.client().await.unwrap();
    send(&mut client, "chat", "poison", "run-1").await;
    let told = failure(&mut client, "chat", "poison", "run-1").await;
    assert!(told.contains("/model <provider>/<model> asks another model, /new begins"), "{told}");
    assert!(!told.contains("openclaw models set"), "{told}");
}

#[tokio::test]
async fn a_call_whose_arguments_never_become_json_is_answered_not_run() {
    let call =
        ScriptedCall { id: "c1".into(), name: "exec".into(), arguments: "{\"command\": \"touch ran".into() };
    let model = ModelServer::queue([Reply::tools([call]), Reply::text("I see.")]).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "go", "run-1").await, "I see.");
    assert!(!gateway.state_dir().join("workspace/ran").exists());
    let told = model.requests()[1].messages().last().unwrap().clone();
    assert_eq!(told["role"], "tool");
    assert!(told["content"].as_str().unwrap().contains("arguments"), "{told}");
}

#[tokio::test]
async fn a_delta_of_fifty_megabytes_ends_the_run_and_nothing_else() {
    let model = ModelServer::answering(|request| match words(&request.last_user_text()) {
        "flood" => Reply::text(&"x".repeat(50 * 1024 * 1024)).unstreamed(),
        _ => Reply::text("fine"),
    })
    .await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "flood", "run-1").await;
    assert_eq!(
        failure(&mut client, "main", "flood", "run-1").await,
        "the model's answer is larger than 32 MiB\nThis came of asking fake (model fake-1). /model <provider>/<model> asks \
         another model; `openclaw models status --probe` shows what answers."
    );
    assert_eq!(turn(&mut client, "other", "still there?", "run-2").await, "fine");
}

/// A login of the Codex backend with this much of its time left.
fn codex_login(gateway: &openclaw_testkit::GatewayUnderTest, left: i64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let expires = i64::try_from(now).unwrap() + left;
    let dir = gateway.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&dir).unwrap();
    let store = json!({"version": 1, "profiles": {"openai-codex:default": {"type": "oauth",
        "provider": "openai-codex", "access": "old-access", "refresh": "r1-secret", "expires": expires, "accountId": "acc"}}});
    std::fs::write(dir.join("auth-profiles.json"), store.to_string()).unwrap();
}

fn codex_at(model: &ModelServer) -> Value {
    json!({"agents": {"defaults": {"model": {"primary": "openai-codex/gpt-5.3-codex"}}},
        "models": {"providers": {"openai-codex": {"baseUrl": model.v1(), "models": []}}}})
}

#[tokio::test]
async fn a_login_that_was_revoked_is_told_and_how_to_mend_it() {
    let logins = LoginServer::start().await;
    let revoked = r#"{"error":"invalid_grant","error_description":"revoked"}"#;
    logins.script([Scripted::status(400, revoked), Scripted::status(400, revoked)]);
    let model = ModelServer::answering(|_| Reply::openai_error(401, "x", "token expired")).await;
    let told = "OAuth token refresh failed for openai-codex: the login is no longer valid (invalid_grant: revoked). \
                Please try again or re-authenticate.";
    // Before its first use, and when the server refuses it though there is an hour left.
    for left in [-1, 3_600_000] {
        let setup = gateway().config(codex_at(&model)).env("OPENCLAW_LOGIN_SERVER", logins.url());
        let mut gateway = setup.prepare().unwrap();
        codex_login(&gateway, left);
        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        send(&mut client, "main", "hello", "run-1").await;
        // The first run never begins; what begins is told like every failure.
        let text = match left {
            -1 => end(&mut client, "run-1").await["errorMessage"].to_string(),
            _ => failure(&mut client, "main", "hello", "run-1").await,
        };
        assert!(text.contains(told), "{left}: {text}");
        assert!(!gateway.log().contains("r1-secret"), "{}", gateway.log());
    }
}

#[tokio::test]
async fn a_login_that_is_refused_before_its_time_is_renewed_unnoticed() {
    let logins = LoginServer::start().await;
    // A second question would be answered with status 500.
    logins.script([Scripted::tokens("new-access", "r2", 3_600)]);
    let model = ModelServer::answering(|request| match request.header("authorization") {
        Some("Bearer new-access") => Reply::text("welcome"),
        _ => Reply::openai_error(401, "x", "token expired"),
    })
    .await;
    let setup = gateway().config(codex_at(&model)).env("OPENCLAW_LOGIN_SERVER", logins.url());
    let mut gateway = setup.prepare().unwrap();
    codex_login(&gateway, 3_600_000);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for run in ["run-1", "run-2"] {
        assert_eq!(turn(&mut client, "main", "hello", run).await, "welcome");
    }
    assert_eq!((model.requests().len(), logins.requests().len()), (3, 1));
}

/// A server that cuts texts by UTF-16 units sends the halves of a character in two events.
#[tokio::test]
async fn a_character_that_is_cut_in_two_events_arrives_whole() {
    let piece = |text: &str| {
        Step::Raw(
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n").into_bytes(),
        )
    };
    let whole = Reply::steps([piece(r"hi \ud83d"), piece(r"\ude00!")]);
    let alone = Reply::steps([piece(r"a\ud83d"), piece("b"), piece(r"c\ud83d")]);
    let model = ModelServer::queue([whole, alone]).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "r1").await, "hi 😀!");
    assert_eq!(turn(&mut client, "main", "again", "r2").await, "a\u{fffd}bc\u{fffd}");
}
