//! Tools that look at other sessions, called by a model and by a client.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::config::merge;
use crate::support::conversation::{end, send, turn};
use crate::support::tools_invoke::invoke;

/// A gateway with two agents, and what asks its tools.
pub(crate) struct Both {
    pub(crate) model: ModelServer,
    pub(crate) gateway: GatewayUnderTest,
    pub(crate) client: WsClient,
    asked: usize,
}

impl Both {
    pub(crate) async fn start(config: Value) -> Self {
        let model = ModelServer::answering(reply).await;
        let mut whole =
            json!({"agents": {"list": [{"id": "main", "default": true}, {"id": "work", "name": "Work"}]}});
        merge(&mut whole, config);
        let gateway = gateway().fake_model(&model.v1()).config(whole).start().await.unwrap();
        let client = gateway.client().await.unwrap();
        Self { model, gateway, client, asked: 0 }
    }

    /// Says something in these sessions.
    pub(crate) async fn with_sessions(mut self, keys: &[&str]) -> Self {
        for (n, key) in keys.iter().enumerate() {
            turn(&mut self.client, key, "hi", &format!("begin-{n}")).await;
        }
        self
    }

    /// Result of a tool for a model, in the main session.
    pub(crate) async fn by_model(&mut self, tool: &str, args: &Value) -> Value {
        self.by_model_in("main", tool, args).await
    }

    /// The same in another session.
    pub(crate) async fn by_model_in(&mut self, session: &str, tool: &str, args: &Value) -> Value {
        self.asked += 1;
        let run = format!("ask-{}", self.asked);
        send(&mut self.client, session, &format!("CALL {tool} {args}"), &run).await;
        let ended = end(&mut self.client, &run).await;
        assert_eq!(ended["state"], "final", "{ended}");
        let requests = self.model.requests();
        let own = |request: &&Captured| {
            request.ends_with_tool_result() && asked_call(&request.last_user_text()).is_some()
        };
        let said = tool_said(requests.iter().rev().find(own).unwrap());
        serde_json::from_str(&said).unwrap_or(Value::String(said))
    }

    /// Result of a tool for a client. An error of a tool looks as it does to a model.
    pub(crate) async fn by_client(&self, tool: &str, args: &Value) -> Value {
        let (status, body) = invoke(self.gateway.port(), &json!({"tool": tool, "args": args})).await;
        match status {
            200 => {
                let text = body["result"]["content"][0]["text"].as_str().unwrap();
                serde_json::from_str(text).unwrap_or(Value::String(text.to_owned()))
            }
            _ => json!({"status": "error", "tool": tool, "error": body["error"]["message"]}),
        }
    }

    /// Results for a model and for a client, without what differs from call to call.
    pub(crate) async fn each(&mut self, tool: &str, args: &Value) -> [Value; 2] {
        let mut said = [self.by_model(tool, args).await, self.by_client(tool, args).await];
        for said in &mut said {
            let Some(fields) = said.as_object_mut() else { continue };
            let run = fields.remove("runId");
            if tool == "sessions_send" && !fields.contains_key("tool") {
                let run = run.unwrap_or_else(|| panic!("no runId: {args}"));
                assert_eq!(run.as_str().map(str::len), Some(36), "{run}");
            }
        }
        said
    }

    /// The same where both hear the same.
    pub(crate) async fn both(&mut self, tool: &str, args: Value) -> Value {
        let said = self.each(tool, &args).await;
        let [by_model, by_client] = said;
        assert_eq!(by_model, by_client, "{tool} {args}");
        by_model
    }

    /// Rows of a list as `key kind channel`.
    pub(crate) async fn listed(&mut self, args: Value) -> Vec<String> {
        let mut both =
            [self.by_model("sessions_list", &args).await, self.by_client("sessions_list", &args).await].map(
                |told| {
                    let rows = told["sessions"].as_array().unwrap_or_else(|| panic!("{told}")).iter();
                    let row = |row: &Value| {
                        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
                        format!("{} {} {}", text("key"), text("kind"), text("channel"))
                    };
                    let mut rows: Vec<String> = rows.map(row).collect();
                    assert_eq!(told["count"], rows.len());
                    rows.sort();
                    rows
                },
            );
        let [by_model, by_client] = &mut both;
        assert_eq!(by_model, by_client, "{args}");
        std::mem::take(by_model)
    }
}

/// A model that makes the calls it is asked for, and has little to say in talks between sessions.
fn reply(request: &Captured) -> Reply {
    let text = request.last_user_text();
    if request.ends_with_tool_result() {
        return Reply::text("done");
    }
    if let Some((tool, args)) = asked_call(&text) {
        return Reply::tool("call-1", &tool, &args);
    }
    let context = system(request);
    match () {
        () if context.contains("Agent-to-agent announce step:") => Reply::text("ANNOUNCE_SKIP"),
        () if context.contains("Agent-to-agent reply step:") => Reply::text("REPLY_SKIP"),
        () if text.contains("FAIL") => {
            Reply::openai_error(400, "invalid_request_error", "the model does not want to")
        }
        () if text.contains("SILENCE") => Reply::text("NO_REPLY"),
        () if context.contains("Agent-to-agent message context:") => Reply::text("pong"),
        () => Reply::text("hello"),
    }
}

/// The call that a message of a test asks for: `CALL ⟨tool⟩ ⟨arguments⟩`.
pub(crate) fn asked_call(text: &str) -> Option<(String, Value)> {
    let (_, call) = text.split_once("CALL ")?;
    let line = call.lines().next()?;
    let (tool, args) = line.split_once(' ')?;
    Some((tool.to_owned(), serde_json::from_str(args).ok()?))
}

/// Last tool result in a request.
pub(crate) fn tool_said(request: &Captured) -> String {
    let last = request.messages().iter().rev().find(|message| message["role"] == "tool");
    last.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned()
}

/// The system prompt of a request.
pub(crate) fn system(request: &Captured) -> String {
    request.messages().first().map(|message| message["content"].to_string()).unwrap_or_default()
}

pub(crate) const SENDS_DISABLED: &str =
    "Agent-to-agent messaging is disabled. Set tools.agentToAgent.enabled=true to allow cross-agent sends.";

pub(crate) fn forbidden(error: &str) -> Value {
    json!({"status": "forbidden", "error": error})
}

pub(crate) fn error(error: &str) -> Value {
    json!({"status": "error", "error": error})
}

pub(crate) fn thrown(tool: &str, error: &str) -> Value {
    json!({"status": "error", "tool": tool, "error": error})
}
