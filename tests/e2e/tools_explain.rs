//! `openclaw tools explain` without a gateway, and that a run is offered what it says.

use std::collections::BTreeSet;

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{Ended, openclaw};
use crate::support::conversation::turn;

async fn explain(gateway: &GatewayUnderTest, args: &[&str]) -> Ended {
    openclaw(gateway, &[&["tools", "explain"], args].concat()).await
}

fn tool<'a>(told: &'a Value, name: &str) -> &'a Value {
    told["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()
}

fn offered(told: &Value) -> BTreeSet<String> {
    let tools = told["tools"].as_array().unwrap().iter().filter(|tool| tool["offered"] == true);
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_rule_is_told_that_keeps_a_tool_from_a_run() {
    let home = gateway()
        .config(json!({
            "tools": {
                "deny": ["group:web"],
                "byProvider": {"google": {"allow": ["read", "exec"]}},
                "subagents": {"tools": {"deny": ["exec"]}},
            },
            "agents": {"list": [{"id": "main"}, {"id": "work", "tools": {"profile": "minimal"}}]},
        }))
        .prepare()
        .unwrap();
    let told = explain(&home, &["--model", "openai/gpt-5.2", "--json"]).await.json();
    assert_eq!(
        [&told["agent"], &told["session"], &told["model"]],
        ["main", "agent:main:main", "openai/gpt-5.2"]
    );
    assert_eq!(tool(&told, "exec"), &json!({"name": "exec", "offered": true}));
    let denied = json!({"kind": "denied", "rule": "tools", "text": "denied by \"group:web\" in tools.deny"});
    assert_eq!(tool(&told, "web_fetch")["reason"], denied);
    assert_eq!(tool(&told, "message")["reason"]["kind"], "no-channel");
    assert_eq!(tool(&told, "apply_patch")["reason"]["kind"], "switched-off");
    assert_eq!(tool(&told, "browser")["reason"]["kind"], "not-built-in");

    let why = async |args: &[&str]| {
        let told = explain(&home, &[args, &["--json"]].concat()).await.json();
        let tools = told["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 1, "{told}");
        tools[0]["reason"]["text"].as_str().unwrap_or("offered").to_owned()
    };
    let sub = ["--session", "agent:main:subagent:x", "--model", "openai/gpt-5.2", "--tool", "Bash"];
    let rows: [(&[&str], &str); 8] = [
        (&["--model", "google/g-1", "--tool", "exec"], "offered"),
        (&["--model", "google/g-1", "--tool", "write"], "not in tools.byProvider.allow"),
        (&["--tool", "gateway"], "offered"),
        (&["--tool", "gateway", "--sender", "other"], "only the owner has it"),
        (&["--tool", "image"], "no model that takes images is connected"),
        (&sub, "denied by \"exec\" in tools.subagents.tools.deny"),
        (&["--agent", "work", "--tool", "read"], "not in agents.list[].tools.profile \"minimal\""),
        (
            &["--session", "agent:work:main", "--tool", "read"],
            "not in agents.list[].tools.profile \"minimal\"",
        ),
    ];
    for (args, expect) in rows {
        assert_eq!(why(args).await, expect, "{args:?}");
    }

    let shown = explain(&home, &["--agent", "main", "--model", "openai/gpt-5.2"]).await;
    assert!(shown.out.starts_with("Tools of a run\nAgent:   main\nSession: agent:main:main\n"), "{shown:?}");
    assert!(shown.out.contains("│ exec             │ yes     │ every rule keeps it "), "{shown:?}");
    assert!(
        shown.out.contains("│ web_fetch        │ no      │ denied by \"group:web\" in tools.deny "),
        "{shown:?}"
    );
}

#[tokio::test]
async fn what_does_not_exist_is_refused() {
    let home = gateway().prepare().unwrap();
    explain(&home, &["--agent", "nobody"]).await.failed(&["Unknown agent id \"nobody\""]);
    explain(&home, &["--session", "agent:nobody:main"]).await.failed(&["Unknown agent id \"nobody\""]);
    let other = explain(&home, &["--agent", "main", "--session", "agent:work:main"]).await;
    other.failed(&["belongs to agent \"work\""]);
    explain(&home, &["--model", "gpt"]).await.failed(&["--model \"gpt\" is no provider/model"]);
    explain(&home, &["--tool", "nosuch"]).await.failed(&["There is no tool \"nosuch\"."]);
}

#[tokio::test]
async fn a_misspelt_list_limits_and_is_told_wherever_the_owner_looks() {
    let model = ModelServer::answering(|_| Reply::text("done")).await;
    let config = json!({"tools": {"allow": ["reed"], "subagents": {"tools": {"deny": ["exce"]}}}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let allowed = "tools.allow names \"reed\", which is no tool or group of tools: it allows nothing. Did you mean \"read\"?";
    let denied = "tools.subagents.tools.deny names \"exce\", which is no tool or group of tools: it denies nothing. Did you mean \"exec\"?";
    for text in [allowed, denied] {
        gateway.logged(text).await.unwrap();
        for command in [["tools", "explain"].as_slice(), &["status", "--json"], &["doctor", "--json"]] {
            let ran = openclaw(&gateway, command).await;
            let told = format!("{}{}", ran.out, ran.err).replace("\\\"", "\"");
            assert!(told.contains(text), "{command:?}: {told}");
        }
    }
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;
    assert_eq!(model.requests()[0].tool_names().into_iter().collect::<Vec<_>>(), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_is_offered_what_is_told() {
    let model = ModelServer::answering(|_| Reply::text("done")).await;
    let config = json!({"tools": {"profile": "coding", "alsoAllow": ["web_search"], "deny": ["process"]}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let told = explain(&gateway, &["--json"]).await.json();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;
    let sent: BTreeSet<String> = model.requests()[0].tool_names().into_iter().collect();
    assert_eq!(offered(&told), sent);
    let expect = "edit exec memory_get memory_search read session_status sessions_history sessions_list sessions_send sessions_spawn web_search write";
    assert_eq!(sent, expect.split(' ').map(str::to_owned).collect());
}
