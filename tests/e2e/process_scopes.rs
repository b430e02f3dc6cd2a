//! Commands that `process` sees: those that its own session started, on the same side of the sandbox (spec `tools.md` §4).

use serde_json::json;

use crate::gateway;
use crate::support::conversation::{end, send};
use crate::support::sandbox::works;
use crate::support::told_calls::{Caller, model};

const MAIN: &str = "agent:main:main";
const SIDE: &str = "agent:main:side";
const OTHER: &str = "agent:other:main";

/// Actions on a command, each with its answer for a command that does not exist.
const ACTIONS: [(&str, &str); 9] = [
    ("poll", "No session found for "),
    ("log", "No session found for "),
    ("write", "No active session found for "),
    ("send-keys", "No active session found for "),
    ("submit", "No active session found for "),
    ("paste", "No active session found for "),
    ("clear", "No finished session found for "),
    ("remove", "No session found for "),
    ("kill", "No active session found for "),
];

/// A command that would tell if it was fed.
fn fed() -> serde_json::Value {
    json!({"command": "read -r line; echo fed $line; sleep 1000"})
}

/// A session sees none of this, and changes nothing of it.
async fn has_none_of(caller: &mut Caller, session: &str, id: &str) {
    let listed = caller.call(session, "process", json!({"action": "list"})).await;
    assert!(listed.lines().all(|line| !line.starts_with(&format!("{id} "))), "{session} sees {id}: {listed}");
    for (action, says) in ACTIONS {
        assert_eq!(caller.act(session, action, id).await, format!("{says}{id}"), "{session}: {action}");
    }
}

/// Checks that the command still runs and got no input.
async fn is_untouched(caller: &mut Caller, session: &str, id: &str) {
    let polled = caller.act(session, "poll", id).await;
    assert_eq!(polled, "(no new output)\n\nProcess still running.", "{session}: {id}");
}

#[tokio::test]
async fn a_session_has_no_commands_of_another() {
    let model = model().await;
    let list = json!({"agents": {"list": [{"id": "main", "default": true}, {"id": "other"}]}});
    let gateway = gateway().fake_model(&model.v1()).config(list).start().await.unwrap();
    let mut caller = Caller::new(gateway.client().await.unwrap());
    let mains = caller.start(MAIN, fed()).await;
    let others = caller.start(OTHER, fed()).await;
    has_none_of(&mut caller, OTHER, &mains).await;
    has_none_of(&mut caller, MAIN, &others).await;
    is_untouched(&mut caller, MAIN, &mains).await;
    is_untouched(&mut caller, OTHER, &others).await;
    // Nor has another session of the same agent.
    has_none_of(&mut caller, SIDE, &mains).await;
    is_untouched(&mut caller, MAIN, &mains).await;
    assert_eq!(caller.act(MAIN, "kill", &mains).await, format!("Killed session {mains}."));
    is_untouched(&mut caller, OTHER, &others).await;
}

#[tokio::test]
async fn a_sandbox_and_the_host_have_no_commands_of_each_other() {
    let model = model().await;
    let config = json!({
        "agents": {"defaults": {"sandbox": {"mode": "non-main", "backend": "local"}}},
        "tools": {"elevated": {"allowFrom": {"webchat": ["*"]}}},
    });
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, SIDE, "hello", "first").await;
    let first = end(&mut client, "first").await;
    if model.requests().is_empty() {
        assert!(!works(&gateway, &first.to_string()));
        return;
    }
    let mut caller = Caller::new(client);
    for session in [MAIN, SIDE] {
        caller.say(session, "/elevated off").await;
    }
    let outside = caller.start(MAIN, fed()).await;
    let inside = caller.start(SIDE, fed()).await;
    has_none_of(&mut caller, SIDE, &outside).await;
    has_none_of(&mut caller, MAIN, &inside).await;
    is_untouched(&mut caller, MAIN, &outside).await;
    is_untouched(&mut caller, SIDE, &inside).await;

    // A command that left the sandbox is that session's, as long as it may leave it, and nobody
    // else's.
    caller.say(SIDE, "/elevated full").await;
    let left = caller.start(SIDE, fed()).await;
    is_untouched(&mut caller, SIDE, &left).await;
    is_untouched(&mut caller, SIDE, &inside).await;
    has_none_of(&mut caller, SIDE, &outside).await;
    for session in [MAIN, "agent:main:third"] {
        has_none_of(&mut caller, session, &left).await;
    }
    caller.say(SIDE, "/elevated off").await;
    has_none_of(&mut caller, SIDE, &left).await;
    caller.say(SIDE, "/elevated full").await;
    assert_eq!(caller.act(SIDE, "kill", &left).await, format!("Killed session {left}."));
    is_untouched(&mut caller, MAIN, &outside).await;
}
