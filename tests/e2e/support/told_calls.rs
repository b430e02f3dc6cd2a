//! A model that makes the calls it is told, for tests of tools through the real program.

use openclaw_testkit::WsClient;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::conversation::turn;

const CALL: &str = "call ";

/// A model that calls the tool of the last message, and answers with what that said.
pub(crate) async fn model() -> ModelServer {
    ModelServer::answering(|request: &Captured| {
        if request.ends_with_tool_result() {
            let result = request.messages().iter().rfind(|message| message["role"] == "tool");
            return Reply::text(result.and_then(|result| result["content"].as_str()).unwrap_or_default());
        }
        let said = request.last_user_text();
        let told = said.rfind(CALL).and_then(|at| {
            let mut values =
                serde_json::Deserializer::from_str(&said[at + CALL.len()..]).into_iter::<Value>();
            values.next()?.ok()
        });
        match told {
            Some(call) => Reply::tool("c0", call["tool"].as_str().unwrap(), &call["args"]),
            None => Reply::text("heard"),
        }
    })
    .await
}

/// Conversations with that model.
pub(crate) struct Caller {
    client: WsClient,
}

impl Caller {
    pub(crate) fn new(client: WsClient) -> Self {
        Self { client }
    }

    /// A message, and what is answered.
    pub(crate) async fn say(&mut self, session: &str, text: &str) -> String {
        // Unique also where a gateway is started anew.
        let run = uuid::Uuid::new_v4().to_string();
        turn(&mut self.client, session, text, &run).await
    }

    /// Result of a tool in a session.
    pub(crate) async fn call(&mut self, session: &str, tool: &str, args: Value) -> String {
        self.say(session, &format!("{CALL}{}", json!({"tool": tool, "args": args}))).await
    }

    /// Starts a command in the background; its id.
    pub(crate) async fn start(&mut self, session: &str, args: Value) -> String {
        let mut args = args;
        args["background"] = json!(true);
        let started = self.call(session, "exec", args).await;
        let id = started.split("(session ").nth(1).and_then(|rest| rest.split(',').next());
        id.unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    /// An action of `process` on one command.
    pub(crate) async fn act(&mut self, session: &str, action: &str, id: &str) -> String {
        let args = json!({"action": action, "sessionId": id, "data": "x", "keys": ["enter"], "text": "x"});
        self.call(session, "process", args).await
    }
}
