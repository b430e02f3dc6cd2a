//! Sub-agents, in rows that `subagents.rs` leaves out: whose credentials they use, what they are told to cost, what they have of the group
//! they were asked for in, and what becomes of their end where it may not be told or does not fit.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, ScriptedCall, ScriptedUsage, Step};
use openclaw_testkit::telegram::{TelegramServer, group_message, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::config::merge;
use crate::support::conversation::{end, send, sessions_dir, turn};
use crate::support::session_tools::{asked_call, system};
use crate::support::subagents::{announced, are_over, delegating, is_child, lists};
use crate::support::telegram::{bot, open};

fn raw() -> Value {
    json!({"agents": {"defaults": {"subagents": {"announceMode": "raw"}}}})
}

/// The rows of `sessions.json`, once the gateway has ended.
fn stored(gateway: &GatewayUnderTest) -> Value {
    let text = std::fs::read_to_string(sessions_dir(gateway).join("sessions.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Decision 17: what another agent does is done with its own credentials.
#[tokio::test]
async fn another_agent_works_with_its_own_credentials() {
    let model = ModelServer::answering(|request| {
        let (said, context) = (request.last_user_text(), system(request));
        match asked_call(&said) {
            _ if request.ends_with_tool_result() => Reply::text("done"),
            _ if context.contains("Agent-to-agent reply step:") => Reply::text("REPLY_SKIP"),
            _ if context.contains("Agent-to-agent announce step:") => Reply::text("ANNOUNCE_SKIP"),
            Some((tool, args)) => Reply::tool("call-1", &tool, &args),
            None => Reply::text("pong"),
        }
    })
    .await;
    let config = json!({
        "agents": {"list": [
            {"id": "main", "default": true, "subagents": {"allowAgents": ["work"]}}, {"id": "work"},
        ]},
        "tools": {"agentToAgent": {"enabled": true}},
    });
    let setup = gateway().fake_model(&model.v1()).config(raw()).config(config);
    let mut gateway = setup.prepare().unwrap();
    for agent in ["main", "work"] {
        let dir = gateway.state_dir().join(format!("agents/{agent}/agent"));
        std::fs::create_dir_all(&dir).unwrap();
        let profile = json!({"type": "api_key", "provider": "fake", "key": format!("key-of-{agent}")});
        let store = json!({"version": 1, "profiles": {"fake:default": profile}});
        std::fs::write(dir.join("auth-profiles.json"), store.to_string()).unwrap();
    }
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let spawn = json!({"task": "dig", "agentId": "work"});
    turn(&mut client, "main", &format!("CALL sessions_spawn {spawn}"), "r1").await;
    lists(&gateway, are_over).await;
    let ping = json!({"sessionKey": "agent:work:main", "message": "ping"});
    turn(&mut client, "main", &format!("CALL sessions_send {ping}"), "r2").await;
    let requests = model.requests();
    let is_asked = |request: &&Captured| system(request).contains("Agent-to-agent message context:");
    let is_own = |request: &&Captured| asked_call(&request.last_user_text()).is_some();
    let keys = |which: &dyn Fn(&&Captured) -> bool| -> Vec<String> {
        requests.iter().filter(which).map(|request| request.headers["authorization"].clone()).collect()
    };
    assert_eq!(keys(&|request| is_child(request)), ["Bearer key-of-work"]);
    assert_eq!(keys(&is_asked), ["Bearer key-of-work"]);
    assert_eq!(keys(&is_own), ["Bearer key-of-main"; 4]);
}

#[tokio::test]
async fn what_a_child_cost_is_told_where_its_model_has_prices() {
    let model = delegating(json!({"task": "dig"}), |_| {
        Reply::text("dug").usage(ScriptedUsage { input: 100, output: 10, cache_read: 0, cache_write: 0 })
    })
    .await;
    // Dollars for a million tokens.
    let cost = json!({"input": 10_000, "output": 25_000, "cacheRead": 0, "cacheWrite": 0});
    let priced = json!({"id": "fake-1", "name": "Fake One", "cost": cost, "contextWindow": 32_000, "maxTokens": 4_096});
    let config = json!({"models": {"providers": {"fake": {"models": [priced]}}}});
    let gateway = gateway().fake_model(&model.v1()).config(raw()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    let told = announced(&mut client).await;
    assert!(told.contains(" (in 100 / out 10) • est $1.25 • sessionKey "), "{told}");
}

#[tokio::test]
async fn a_child_has_the_group_of_whoever_asked_for_it() {
    let model = delegating(json!({"task": "dig"}), |_| Reply::text("dug")).await;
    let mut gateway = gateway().fake_model(&model.v1()).config(raw()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let asked = json!({
        "sessionKey": "agent:main:discord:group:dev", "message": "delegate", "idempotencyKey": "r1",
        "groupId": "g-1", "groupChannel": "#dev", "groupSpace": "guild",
    });
    client.request("agent", asked).await.unwrap();
    let rows = lists(&gateway, are_over).await;
    gateway.terminate().await.unwrap();
    let child = &stored(&gateway)[rows[0]["childSessionKey"].as_str().unwrap()];
    assert_eq!(
        (&child["groupId"], &child["groupChannel"], &child["space"]),
        (&json!("g-1"), &json!("#dev"), &json!("guild")),
        "{child}"
    );
    assert_eq!(child["spawnedBy"], "agent:main:discord:group:dev");
}

#[tokio::test]
async fn a_child_has_the_tools_that_its_group_leaves() {
    let model = delegating(json!({"task": "dig"}), |_| Reply::text("dug")).await;
    let server = TelegramServer::start().await;
    let mut section = open();
    let groups = json!({
        "-100": {"requireMention": false, "tools": {"deny": ["exec"]}}, "*": {"requireMention": false},
    });
    merge(&mut section, json!({"groupPolicy": "open", "groups": groups}));
    let gateway = bot(&server, &model, section, raw()).await;
    for (n, (group, has_exec)) in [(-100, false), (-200, true)].into_iter().enumerate() {
        server.push(group_message(group, 5, "delegate"));
        lists(&gateway, |rows| rows.len() == n + 1 && are_over(rows)).await;
        let requests = model.requests();
        let child = requests.iter().rev().find(|request| is_child(request)).unwrap();
        let tools = child.tool_names();
        assert!(tools.iter().any(|name| name == "read"), "{group}: {tools:?}");
        assert_eq!(tools.iter().any(|name| name == "exec"), has_exec, "{group}: {tools:?}");
    }
}

/// A requester that may not send any more when its child has ended.
#[tokio::test]
async fn what_may_not_be_sent_is_not_told_and_the_list_says_why() {
    for mode in ["raw", "step", "summary"] {
        let gate = Gate::new();
        let held = gate.clone();
        let model = delegating(json!({"task": "dig"}), move |request| match request.last_user_text() {
            said if said.contains("and now?") => Reply::text("Nothing new."),
            _ => Reply::text("dug").after(Step::Wait(held.clone())),
        })
        .await;
        let server = TelegramServer::start().await;
        let config = json!({"agents": {"defaults": {"subagents": {"announceMode": mode}}}});
        let gateway = bot(&server, &model, open(), config).await;
        server.push(private_message(7, "delegate"));
        server.nth_answer("sendMessage", 1).await;
        lists(&gateway, |rows| rows.len() == 1).await;
        let mut client = gateway.client().await.unwrap();
        let policy = |word: &str| json!({"key": "main", "sendPolicy": word});
        client.request("sessions.patch", policy("deny")).await.unwrap();
        gate.open();
        let rows = lists(&gateway, are_over).await;
        let failed = json!({"status": "failed", "error": "send blocked by session policy"});
        assert_eq!(
            (&rows[0]["outcome"], &rows[0]["announced"]),
            (&json!({"status": "ok"}), &failed),
            "{mode}"
        );
        // Messages said to the same place later would come after it.
        client.request("sessions.patch", policy("allow")).await.unwrap();
        server.push(private_message(7, "and now?"));
        let next = server.nth_call("sendMessage", 2).await;
        assert_eq!(next.params["text"], "Nothing new.", "{mode}");
    }
}

/// Three children end while their requester is busy, and its queue has room for one.
#[tokio::test]
async fn each_child_whose_end_a_full_queue_drops_has_one_verdict() {
    for (drop, rule) in
        [("old", "queue-cap-old"), ("new", "queue-cap-new"), ("summarize", "queue-cap-summarized")]
    {
        let busy = Gate::new();
        let held = busy.clone();
        let model = ModelServer::answering(move |request| {
            let said = request.last_user_text();
            let spawn =
                |id: &str| ScriptedCall::new(id, "sessions_spawn", &json!({"task": format!("dig {id}")}));
            match () {
                () if said.contains("subagent task") || said.contains("[Queue overflow]") => {
                    Reply::text("It is done.")
                }
                () if said.contains("delegate") && !request.ends_with_tool_result() => {
                    Reply::tools(["one", "two", "three"].map(spawn))
                }
                () if said.contains("delegate") => Reply::text("Wait.").after(Step::Wait(held.clone())),
                () => Reply::text("dug"),
            }
        })
        .await;
        let config = json!({
            "agents": {"defaults": {"subagents": {"announceMode": "summary"}}},
            "messages": {"queue": {"mode": "followup", "debounceMs": 1, "cap": 1, "drop": drop}},
        });
        let mut gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        send(&mut client, "main", "delegate", "r1").await;
        // All three have come to the queue once two of them are out of it again.
        let are_told = |rows: &[Value]| rows.iter().filter(|row| row["announced"].is_object()).count();
        lists(&gateway, |rows| are_told(rows) == 2).await;
        busy.open();
        end(&mut client, "r1").await;
        let rows = lists(&gateway, |rows| rows.len() == 3 && are_over(rows)).await;
        let verdict = |row: &Value| row["announced"]["status"].as_str().unwrap().to_owned();
        let mut verdicts: Vec<String> = rows.iter().map(verdict).collect();
        verdicts.sort();
        assert_eq!(verdicts, ["failed", "failed", "sent"], "{drop}: {rows:?}");
        for row in rows.iter().filter(|row| verdict(row) == "failed") {
            assert!(row["announced"]["error"].as_str().unwrap().contains(rule), "{drop}: {row}");
        }
        // The next process finds nothing that is still owed.
        let asked = || {
            let requests = model.requests();
            let told = requests.iter().filter(|request| {
                let said = request.last_user_text();
                said.contains("subagent task") || said.contains("[Queue overflow]")
            });
            told.count()
        };
        let before = asked();
        gateway.crash_and_restart().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        assert_eq!(turn(&mut client, "agent:main:side", "hello", "r2").await, "dug");
        assert_eq!(lists(&gateway, are_over).await, rows, "{drop}");
        assert_eq!(asked(), before, "{drop}");
    }
}
