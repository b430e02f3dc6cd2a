//! A run that is stopped while a hook is asked ends, and does not wait for the hook.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{send, turn};
use crate::support::hooks::Heard;

/// Calls a tool where the message asks for it.
fn model(request: &Captured) -> Reply {
    let messages = request.messages();
    let last = &messages[messages.len() - 1];
    let asks = last["role"] == "user" && last["content"].to_string().contains("call a tool");
    if asks { Reply::tool("c1", "exec", &json!({"command": "echo called"})) } else { Reply::text("ok") }
}

#[tokio::test]
async fn a_stopped_run_waits_for_no_hook() {
    for (event, message) in [
        ("command:new", "/new hello"),
        ("agent:bootstrap", "hello"),
        ("before_agent_start", "hello"),
        ("before_tool_call", "call a tool"),
    ] {
        let model = ModelServer::answering(model).await;
        let dir = tempfile::tempdir().unwrap();
        let mut heard = Heard::at(dir.path().join("heard"));
        // Hangs the first time.
        let (told, hung) = (heard.path().display(), dir.path().join("hung"));
        let hung = hung.display();
        let script = format!(
            "given=$(cat); [ -e {hung} ] && exit; : > {hung}; printf '%s\\n' \"$given\" > {told}; exec sleep 10000"
        );
        let commands = json!([{"event": event, "command": ["/bin/sh", "-c", script]}]);
        let config = json!({"hooks": {"internal": {"enabled": true, "commands": commands}}});
        let mut gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();

        send(&mut client, "main", message, "run-1").await;
        let _given: Value = heard.next().await;
        let aborted =
            client.request("chat.abort", json!({"sessionKey": "main", "runId": "run-1"})).await.unwrap();
        assert_eq!(aborted["runIds"], json!(["run-1"]), "{event}");
        let waited = client.request("agent.wait", json!({"runId": "run-1"})).await.unwrap();
        assert_ne!(waited["status"], "timeout", "{event}: {waited}");
        assert_eq!(turn(&mut client, "main", "again", "run-2").await, "ok", "{event}");
        let log = gateway.log();
        assert!(!log.contains("did not end within"), "{event}: {log}");
        assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
    }
}
