//! A message that is steered into a run: the calls that are left are not made, and clients hear of it in OpenClaw's order.

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, ScriptedCall, Step};
use openclaw_testkit::{Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{end, history, send};

/// Lines of `golden/agent-steer-events.json` that do not depend on time: the pieces in which text
/// and output arrive do.
const EVENTS: &[&str] = &[
    "q2 lifecycle start",
    "q2 assistant Working.",
    "q2 tool start c1",
    "q3 chat final",
    "q2 tool result c1 false A",
    "q2 tool start c2",
    "q2 tool result c2 true Skipped due to queued user message.",
    "q2 tool start c3",
    "q2 tool result c3 true Skipped due to queued user message.",
    "q2 assistant Hello from fake.",
    "q2 lifecycle end",
    "q2 chat final Hello from fake.",
];

fn exec(id: &str, command: &str) -> ScriptedCall {
    ScriptedCall::new(id, "exec", &json!({"command": command}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_steered_message_skips_the_calls_that_are_left_and_is_read_next() {
    let calls = [exec("c1", "cat gate"), exec("c2", "touch B"), exec("c3", "touch C")];
    let working = Reply::steps([Step::Text("Working.".to_owned()), Step::ToolCalls(calls.into())]);
    let model = ModelServer::queue([working, Reply::text("Hello from fake.")]).await;
    let config =
        json!({"messages": {"queue": {"mode": "steer"}}, "agents": {"defaults": {"verboseDefault": "full"}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(config).prepare().unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    let gate = workspace.join("gate");
    mkfifo(&gate, Mode::S_IRWXU).unwrap();
    gateway.start().await.unwrap();
    let login = Login::token(TOKEN).with("caps", json!(["tool-events"]));
    let (mut client, _) = WsClient::connect(gateway.port(), login).await.unwrap();

    send(&mut client, "main", "go", "q2").await;
    let started =
        |payload: &Value| payload["data"]["toolCallId"] == "c1" && payload["data"]["phase"] == "start";
    let mut frames = heard(&mut client, "agent", started).await;
    send(&mut client, "main", "STEERME now", "q3").await;
    let ended = |payload: &Value| payload["runId"] == "q3" && payload["state"] == "final";
    frames.extend(heard(&mut client, "chat", ended).await);
    // The reader of the pipe is there, or comes.
    tokio::task::spawn_blocking(move || std::fs::write(gate, "A\n")).await.unwrap().unwrap();
    let last = end(&mut client, "q2").await;
    frames.extend(client.take_passed());
    frames.push(json!({"event": "chat", "payload": last}));

    let mut told: Vec<String> = Vec::new();
    let mut numbers = Vec::new();
    for frame in &frames {
        let payload = &frame["payload"];
        numbers.extend(
            payload["seq"].as_u64().filter(|_| frame["event"] == "agent" && payload["runId"] == "q2"),
        );
        let Some(line) = line(frame) else { continue };
        // A text grows: its last state counts.
        if told.last().is_some_and(|last| last.starts_with("q2 assistant") && line.starts_with(last.as_str()))
        {
            told.pop();
        }
        told.push(line);
    }
    assert_eq!(told, EVENTS);
    assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.first() == Some(&1), "{numbers:?}");
    assert!(!workspace.join("B").exists() && !workspace.join("C").exists(), "a skipped call was made");

    let request = model.requests().pop().unwrap();
    let behind = &request.messages()[request.messages().len() - 4..];
    let roles: Vec<_> = behind.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["tool", "tool", "tool", "user"]);
    let steered = request.last_user_text();
    assert!(steered.contains("] STEERME now\n[message_id: q3]"), "{steered}");
}

/// A whole answer stays that of its message although a stop meets the run at a message behind it.
/// That is stopped, also where a crash comes right behind the stop.
#[tokio::test]
async fn a_stop_ends_the_message_that_is_answered_and_leaves_the_answer_before_it() {
    for crashes in [false, true] {
        let (first, never) = (Gate::new(), Gate::new());
        let (of_first, of_second) = (first.clone(), never.clone());
        let model = ModelServer::answering(move |request| {
            let second = request.last_user_text().contains("two");
            let before = Step::Text(if second { "beginning" } else { "" }.to_owned());
            let gate = if second { &of_second } else { &of_first };
            Reply::steps([before, Step::Wait(gate.clone()), Step::Text("answer".to_owned())])
        })
        .await;
        let config = json!({"messages": {"queue": {"mode": "steer"}}});
        let mut gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        send(&mut client, "main", "one", "run-1").await;
        model.arrived(1).await;
        send(&mut client, "main", "two", "run-2").await;
        let taken = end(&mut client, "run-2").await;
        assert_eq!((&taken["state"], &taken["message"]), (&json!("final"), &Value::Null), "{taken}");
        first.open();
        // The run goes on with the second message, which stands behind its whole answer to the first.
        let grows = |payload: &Value| payload["data"]["text"] == "beginning";
        client.event("agent", grows).await.unwrap();
        let aborted = client.request("chat.abort", json!({"sessionKey": "main"})).await.unwrap();
        assert_eq!((&aborted["aborted"], &aborted["runIds"]), (&json!(true), &json!(["run-1"])));
        if crashes {
            gateway.crash_and_restart().await.unwrap();
            client = gateway.client().await.unwrap();
        }
        for (run, state) in [("run-1", "ok"), ("run-2", "aborted")] {
            client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap();
            let traced = client.request("trace", json!({"id": run})).await.unwrap();
            assert_eq!(traced["runs"][0]["state"], state, "crash: {crashes}, {run}\n{}", gateway.log());
        }
        if !crashes {
            let told = end(&mut client, "run-1").await;
            let text = &told["message"]["content"][0]["text"];
            assert_eq!((&told["state"], text), (&json!("final"), &json!("answer")), "{told}");
        }
        let said = history(&mut client, "main").await;
        assert_eq!(said[..3], ["user: one", "assistant: answer", "user: two"], "crash: {crashes}");
        assert_eq!(model.requests().len(), 2, "a stopped message was answered\n{}", gateway.log());
    }
}

/// The frames up to the event that pleases, with it.
async fn heard(client: &mut WsClient, name: &str, pleases: impl Fn(&Value) -> bool) -> Vec<Value> {
    let payload = client.event(name, pleases).await.unwrap();
    let mut frames = client.take_passed();
    frames.push(json!({"event": name, "payload": payload}));
    frames
}

/// An event in one line; nothing of those that depend on time.
fn line(frame: &Value) -> Option<String> {
    let payload = &frame["payload"];
    let text = |value: &Value| value.as_str().map(|text| format!(" {text}")).unwrap_or_default();
    let run = payload["runId"].as_str()?;
    if frame["event"] == "chat" {
        let state = payload["state"].as_str().filter(|state| *state != "delta")?;
        return Some(format!("{run} chat {state}{}", text(&payload["message"]["content"][0]["text"])));
    }
    let (stream, data) = (payload["stream"].as_str()?, &payload["data"]);
    let what = match (stream, data["phase"].as_str()) {
        ("assistant", _) => text(&data["text"]),
        (_, Some("update")) => return None,
        ("tool", Some("result")) => {
            let said = text(&data["result"]["content"][0]["text"]);
            format!(" result{} {}{said}", text(&data["toolCallId"]), data["isError"])
        }
        (_, phase) => format!(" {}{}", phase?, text(&data["toolCallId"])),
    };
    Some(format!("{run} {stream}{what}"))
}
