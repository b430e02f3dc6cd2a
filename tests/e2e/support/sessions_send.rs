//! Talks between sessions.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, forum_message};
use serde_json::json;

use crate::support::session_tools::{asked_call, system};
use crate::support::telegram::bot;

pub(crate) const TOPIC: &str = "agent:main:telegram:group:-100:topic:42";

pub(crate) fn call(message: &str, to: &str, seconds: u64) -> String {
    let args = json!({"sessionKey": to, "message": message, "timeoutSeconds": seconds});
    format!("CALL sessions_send {args}")
}

/// A model that makes the calls it is asked for, and else says what it is told to by step.
pub(crate) async fn model(
    say: impl Fn(&str, &Captured) -> Option<Reply> + Send + Sync + 'static,
) -> ModelServer {
    ModelServer::answering(move |request| {
        let step = step(request);
        if let Some(reply) = say(&step, request) {
            return reply;
        }
        let asked = asked_call(&request.last_user_text());
        match (asked, request.ends_with_tool_result(), step.as_str()) {
            (_, true, _) => Reply::text("done"),
            (Some((tool, args)), false, "plain" | "primary") => Reply::tool("call-1", &tool, &args),
            (_, _, "primary") => Reply::text("pong"),
            (_, _, "announce") => Reply::text("ANNOUNCE_SKIP"),
            (_, _, step) if step.starts_with("turn") => Reply::text("REPLY_SKIP"),
            (..) => Reply::text("hello"),
        }
    })
    .await
}

/// Step of a talk that a request belongs to, in a word.
pub(crate) fn step(request: &Captured) -> String {
    let context = system(request);
    if context.contains("Agent-to-agent announce step:") {
        return "announce".to_owned();
    }
    if let Some(behind) = context.split("Turn ").nth(1)
        && context.contains("Agent-to-agent reply step:")
    {
        return format!("turn {}", behind.split_whitespace().next().unwrap_or_default());
    }
    match context.contains("Agent-to-agent message context:") {
        true => "primary".to_owned(),
        false => "plain".to_owned(),
    }
}

/// A bot whose forum's topic 42 has a session, and the model's last word to it.
pub(crate) async fn with_topic(model: &ModelServer, server: &TelegramServer) -> GatewayUnderTest {
    let section = json!({"dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open",
                         "groups": {"*": {"requireMention": false}}});
    let gateway = bot(server, model, section, json!({})).await;
    server.push(forum_message(-100, 42, 5, "hello there"));
    server.has_made("the greeting", |made| made.len() == 1).await;
    gateway
}
