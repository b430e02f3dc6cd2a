//! Promises to an agent about its commands, across the end of the gateway: it is told of each
//! exactly once, whatever kills the gateway, and whenever.

use std::path::PathBuf;

use nix::sys::signal::Signal;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::{DEADLINE, GatewayUnderTest, WsClient};
use serde_json::{Value, json};
use tokio::time::{Duration, sleep, timeout};

use crate::gateway;
use crate::support::conversation::{send, turn};

const ENDS: [Signal; 2] = [Signal::SIGKILL, Signal::SIGTERM];

/// Makes the call of a message `call: TOOL {ARGUMENTS}`, and says what the result is; says `heard` where there is none.
async fn caller() -> ModelServer {
    ModelServer::answering(|request: &Captured| {
        if request.ends_with_tool_result() {
            let last = request.messages().last().cloned().unwrap_or_default();
            return Reply::text(last["content"].as_str().unwrap_or_default());
        }
        let said = request.last_user_text();
        let call = said.split("call: ").nth(1).and_then(|call| call.split_once(' '));
        let Some((tool, rest)) = call else { return Reply::text("heard") };
        let args = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next();
        Reply::tool(&format!("c{}", request.messages().len()), tool, &args.unwrap().unwrap())
    })
    .await
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    }
}

struct Bench {
    model: ModelServer,
    gateway: GatewayUnderTest,
    client: WsClient,
    turns: usize,
}

impl Bench {
    /// Starts a bench whose commands ask first, or do not.
    async fn start(asks: bool) -> Self {
        let model = caller().await;
        let exec = if asks { json!({"host": "gateway"}) } else { json!({}) };
        let config = json!({
            "tools": {"exec": exec},
            "agents": {"defaults": {"heartbeat": {"every": "1h"}}},
        });
        let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
        let client = gateway.client().await.unwrap();
        Self { model, gateway, client, turns: 0 }
    }

    async fn say(&mut self, text: &str) -> String {
        self.turns += 1;
        turn(&mut self.client, "main", text, &format!("run-{}", self.turns)).await
    }

    async fn call(&mut self, tool: &str, args: Value) -> String {
        self.say(&format!("call: {tool} {args}")).await
    }

    /// Starts a command in the background; gives its id.
    async fn background(&mut self, command: &str) -> String {
        let said = self.call("exec", json!({"command": command, "background": true})).await;
        let id = said.split("(session ").nth(1).and_then(|rest| rest.split(',').next());
        id.unwrap_or_else(|| panic!("{said}")).to_owned()
    }

    /// Ends the gateway and starts it anew.
    async fn restart(&mut self, end: Signal) {
        self.gateway.signal(end).unwrap();
        self.gateway.exited().await.unwrap();
        self.gateway.start().await.unwrap();
        self.client = self.gateway.client().await.unwrap();
    }

    /// The lines that were told so far, each as often as it was.
    async fn told(&mut self) -> Vec<String> {
        self.say("and?").await;
        let last = self.model.requests().pop().unwrap();
        let users = last.messages().iter().filter(|message| message["role"] == "user");
        let texts: String = users.map(|message| format!("{}\n", text_of(&message["content"]))).collect();
        let lines = texts.lines().filter(|line| line.starts_with("System: ["));
        lines.map(|line| line.split_once("] ").unwrap().1.to_owned()).collect()
    }

    /// Waits until a request has this in it.
    async fn hears(&self, text: &str) {
        let heard = async {
            loop {
                let requests = self.model.requests();
                if requests.iter().any(|request| request.last_user_text().contains(text)) {
                    return;
                }
                self.model.arrived(requests.len() + 1).await;
            }
        };
        timeout(DEADLINE, heard)
            .await
            .unwrap_or_else(|_| panic!("nobody heard {text}: {}", self.gateway.log()));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.gateway.state_dir().join("workspace").join(name)
    }

    async fn appears(&self, name: &str) {
        let path = self.path(name);
        let there = async {
            while !path.exists() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(DEADLINE, there).await.unwrap_or_else(|_| panic!("{name}"));
    }
}

#[tokio::test]
async fn a_command_that_ran_in_the_background_is_told_of_once_over_two_restarts() {
    for (end, pty) in [(Signal::SIGKILL, false), (Signal::SIGTERM, false), (Signal::SIGKILL, true)] {
        let mut bench = Bench::start(false).await;
        let command = "echo begun; touch on; exec sleep 10000";
        let said = bench.call("exec", json!({"command": command, "background": true, "pty": pty})).await;
        let id = said.split("(session ").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
        bench.appears("on").await;
        bench.restart(end).await;
        let short: String = id.chars().take(8).collect();
        // The heartbeat that tells it is cut short, or just over.
        bench.hears(&format!("Exec failed ({short}, gateway restarted)")).await;
        bench.restart(end).await;
        let tail = if end == Signal::SIGTERM { " :: begun" } else { "" };
        assert_eq!(
            bench.told().await,
            [format!("Exec failed ({short}, gateway restarted){tail}")],
            "{end} {pty}"
        );
        let missing = "it ended when the gateway restarted, and its output is gone.";
        for action in ["poll", "log"] {
            let said = bench.call("process", json!({"action": action, "sessionId": id})).await;
            assert_eq!(said, format!("No session found for {id}: {missing}"));
        }
        bench.restart(end).await;
        assert_eq!(bench.told().await.len(), 1, "{end}");
    }
}

#[tokio::test]
async fn what_a_command_said_is_told_although_the_gateway_ended_before() {
    for end in ENDS {
        let mut bench = Bench::start(false).await;
        let id = bench.background("until [ -e go ]; do sleep 0.01; done; echo RESULT").await;
        let short: String = id.chars().take(8).collect();
        // Another run has the session meanwhile.
        let hold = json!({"command": "touch held; sleep 10000"});
        send(&mut bench.client, "main", &format!("call: exec {hold}"), "holding").await;
        bench.appears("held").await;
        std::fs::write(bench.path("go"), "").unwrap();
        let line = format!("Exec completed ({short}, code 0) :: RESULT");
        let waits = async {
            loop {
                let status = bench.client.request("status", json!({})).await.unwrap();
                if status["queuedSystemEvents"].to_string().contains(&line) {
                    return;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(DEADLINE, waits).await.unwrap();
        bench.restart(end).await;
        bench.hears(&line).await;
        assert_eq!(bench.told().await, [line], "{end}");
    }
}

#[tokio::test]
async fn what_was_told_is_not_told_again() {
    for end in ENDS {
        let mut bench = Bench::start(false).await;
        let id = bench.background("until [ -e go ]; do sleep 0.01; done; echo RESULT").await;
        let short: String = id.chars().take(8).collect();
        std::fs::write(bench.path("go"), "").unwrap();
        let line = format!("Exec completed ({short}, code 0) :: RESULT");
        bench.hears(&line).await;
        bench.restart(end).await;
        assert_eq!(bench.told().await, [line], "{end}");
    }
}

#[tokio::test]
async fn what_a_person_was_asked_about_is_told_and_the_old_id_is_known() {
    for end in ENDS {
        let mut bench = Bench::start(true).await;
        let said = bench.call("exec", json!({"command": "touch it-ran"})).await;
        assert!(said.starts_with("Approval required (id "), "{said}");
        let asked = bench.client.event("exec.approval.requested", |_| true).await.unwrap();
        let id = asked["id"].as_str().unwrap().to_owned();
        bench.restart(end).await;
        let line = format!("Exec denied (gateway id={id}, gateway-restarted): touch it-ran");
        bench.hears(&line).await;
        bench.restart(end).await;
        let decide = json!({"id": id, "decision": "allow-once"});
        let refused = bench.client.call("exec.approval.resolve", decide).await.unwrap();
        let why =
            "the gateway restarted while this approval was waiting: nothing was run; have it asked again";
        assert_eq!(refused.error["message"], why, "{refused:?}");
        let said = bench.say(&format!("/approve {} allow-once", &id[..8])).await;
        assert_eq!(said, format!("❌ Failed to submit approval: {why}"));
        assert_eq!(bench.told().await, [line], "{end}");
        assert!(!bench.path("it-ran").exists());
    }
}

#[tokio::test]
async fn a_command_that_a_person_allowed_is_told_of() {
    for end in ENDS {
        let mut bench = Bench::start(true).await;
        bench.call("exec", json!({"command": "echo begun; touch on; sleep 10000"})).await;
        let asked = bench.client.event("exec.approval.requested", |_| true).await.unwrap();
        let decide = json!({"id": asked["id"], "decision": "allow-once"});
        bench.client.request("exec.approval.resolve", decide).await.unwrap();
        bench.appears("on").await;
        let listed = bench.call("process", json!({"action": "list"})).await;
        let session = listed.split(' ').next().unwrap().to_owned();
        bench.restart(end).await;
        let id = asked["id"].as_str().unwrap();
        let line = format!("Exec finished (gateway id={id}, session={session}, gateway restarted)");
        bench.hears(&line).await;
        let tail = if end == Signal::SIGTERM { " begun" } else { "" };
        assert_eq!(bench.told().await, [format!("{line}{tail}")], "{end}");
    }
}

#[tokio::test]
async fn what_an_agent_ended_itself_is_not_told() {
    let mut bench = Bench::start(false).await;
    let id = bench.background("sleep 10000").await;
    let said = bench.call("process", json!({"action": "kill", "sessionId": id})).await;
    assert_eq!(said, format!("Killed session {id}."));
    bench.restart(Signal::SIGKILL).await;
    assert_eq!(bench.told().await, [""; 0]);
}
