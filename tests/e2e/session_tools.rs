//! The session tools, each row of their tables twice: called by a model, and by a client over `POST /tools/invoke`.

use serde_json::{Value, json};

use crate::support::config::merge;
use crate::support::session_tools::{Both, SENDS_DISABLED, error, forbidden, thrown};
use crate::support::tools_invoke::invoke;

const KEYS: [&str; 7] = [
    "main",
    "agent:main:discord:group:dev",
    "agent:main:cron:job",
    "agent:main:hook:1",
    "agent:main:node-7",
    "agent:main:side",
    "agent:work:main",
];

#[tokio::test]
async fn sessions_are_listed_by_what_they_are() {
    let mut both = Both::start(json!({})).await.with_sessions(&KEYS).await;
    let all = [
        "agent:main:cron:job cron internal",
        "agent:main:discord:group:dev group discord",
        "agent:main:hook:1 hook internal",
        "agent:main:node-7 node internal",
        "agent:main:side other webchat",
        "main main webchat",
    ];
    assert_eq!(both.listed(json!({})).await, all, "another agent's are not shown");
    assert_eq!(both.listed(json!({"kinds": ["main", "cron"]})).await, [all[0], all[5]]);
    assert_eq!(both.listed(json!({"kinds": ["nonsense"]})).await, all);
    assert_eq!(both.listed(json!({"kinds": ["nonsense", "hook"]})).await, [all[2]]);
    assert_eq!(both.listed(json!({"kinds": []})).await, all);
    assert_eq!(both.listed(json!({"limit": 1, "kinds": ["node"]})).await, [all[3]]);
    assert_eq!(both.listed(json!({"limit": 2.9})).await.len(), 2);
    assert_eq!(both.listed(json!({"activeMinutes": 5})).await, all);
    assert_eq!(both.listed(json!({"activeMinutes": 1e300})).await, all);

    let told = both.by_client("sessions_list", &json!({"kinds": ["other"], "messageLimit": 1})).await;
    let row = &told["sessions"][0];
    let path = std::path::Path::new(row["transcriptPath"].as_str().unwrap());
    assert!(path.is_absolute() && path.exists(), "{row}");
    assert_eq!(row["messages"].as_array().unwrap().len(), 1, "{row}");
    assert_eq!(row["messages"][0]["content"][0]["text"], "hello");
    assert!(row["messages"][0].get("usage").is_none(), "{row}");
    for name in ["updatedAt", "sessionId", "model", "contextTokens", "totalTokens", "systemSent"] {
        assert!(!row[name].is_null(), "{name}: {row}");
    }
    let told = both.by_client("sessions_list", &json!({"messageLimit": 0})).await;
    assert!(told["sessions"][0].get("messages").is_none(), "{told}");
}

#[tokio::test]
async fn agents_that_may_talk_see_each_other() {
    let config = json!({"tools": {"agentToAgent": {"enabled": true, "allow": ["main", "W*"]}}});
    let mut both = Both::start(config).await.with_sessions(&["main", "agent:work:main"]).await;
    assert_eq!(both.listed(json!({})).await, ["agent:work:main main webchat", "main main webchat"]);
    let told = both.both("sessions_history", json!({"sessionKey": "agent:work:main"})).await;
    assert_eq!(told["sessionKey"], "agent:work:main");
    assert_eq!(told["messages"].as_array().unwrap().len(), 2, "{told}");
    let told = both.both("sessions_send", json!({"sessionKey": "agent:work:main", "message": "ping"})).await;
    let expect = json!({
        "status": "ok", "reply": "pong", "sessionKey": "agent:work:main",
        "delivery": {"status": "pending", "mode": "announce"},
    });
    assert_eq!(told, expect);
}

#[tokio::test]
async fn the_shared_session_is_called_main() {
    let mut both = Both::start(json!({"session": {"scope": "global"}})).await.with_sessions(&["main"]).await;
    assert_eq!(both.listed(json!({})).await, ["main main webchat"]);
    for name in ["global", "main"] {
        let args = json!({"sessionKey": name});
        for told in
            [both.by_model("sessions_history", &args).await, both.by_client("sessions_history", &args).await]
        {
            assert_eq!(told["sessionKey"], "main", "{told}");
            assert!(told["messages"].as_array().unwrap().len() > 1, "{told}");
        }
    }
}

#[tokio::test]
async fn nobody_is_told_of_global_where_everybody_shares_one_session() {
    let mut both = Both::start(json!({"session": {"scope": "global"}})).await.with_sessions(&["main"]).await;
    let card = both.by_model("session_status", &json!({})).await.to_string();
    assert!(card.contains("Session: main •"), "{card}");
    let spawned = both.by_model("sessions_spawn", &json!({"task": "dig"})).await;
    assert_eq!(spawned["status"], "accepted", "{spawned}");
    let told = crate::support::subagents::announced(&mut both.client).await;
    assert!(told.starts_with("Status: "), "{told}");
    let args = json!({"sessionKey": "agent:main:side", "message": "ping", "timeoutSeconds": 20});
    assert_eq!(both.by_model("sessions_send", &args).await["status"], "ok");
    let listed = both.by_client("sessions_list", &json!({})).await;
    let rows = listed["sessions"].as_array().unwrap();
    let child = rows.iter().find(|row| row["key"] == spawned["childSessionKey"]).unwrap();
    assert_eq!(child["spawnedBy"], "main", "{listed}");
    let listed = both.client.request("sessions.list", json!({"spawnedBy": "main"})).await.unwrap();
    assert_eq!(listed["sessions"][0]["spawnedBy"], "main", "{listed}");
    for key in ["agent:main:side", child["key"].as_str().unwrap()] {
        let history = both.client.request("chat.history", json!({"sessionKey": key})).await.unwrap();
        assert_eq!(history["messages"][0]["provenance"]["sourceSessionKey"], "main", "{history}");
    }
    for request in both.model.requests() {
        let told = request.body["messages"].to_string().to_lowercase();
        assert!(!told.contains("session: global") && !told.contains("\"global\\\""), "{told}");
    }
}

const HISTORY_DISABLED: &str =
    "Agent-to-agent history is disabled. Set tools.agentToAgent.enabled=true to allow cross-agent access.";
const STATUS_DISABLED: &str =
    "Agent-to-agent status is disabled. Set tools.agentToAgent.enabled=true to allow cross-agent access.";

#[tokio::test]
async fn the_history_of_a_session_is_told_by_key_or_id() {
    let mut both =
        Both::start(json!({})).await.with_sessions(&["main", "agent:main:side", "agent:work:main"]).await;
    let listed = both.by_client("sessions_list", &json!({"kinds": ["other"]})).await;
    let id = listed["sessions"][0]["sessionId"].as_str().unwrap().to_owned();
    for name in ["agent:main:side", "side", " Side ", &id] {
        let told = both.both("sessions_history", json!({"sessionKey": name})).await;
        assert_eq!(told["sessionKey"], "agent:main:side", "{name}");
        let texts: Vec<&str> = told["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|message| message["content"][0]["text"].as_str())
            .collect();
        assert_eq!(texts, ["hi", "hello"], "{name}");
        assert_eq!(
            (&told["truncated"], &told["droppedMessages"], &told["contentTruncated"]),
            (&json!(true), &json!(false), &json!(true)),
            "the usage is left out"
        );
        assert!(told["bytes"].as_u64().unwrap() > 100);
    }
    let told = both.both("sessions_history", json!({"sessionKey": "side", "limit": 1})).await;
    assert_eq!(told["messages"].as_array().unwrap().len(), 1);
    let nobody = "9f1c5c1e-8f0b-4f4f-9d6c-111111111111";
    let told = both.both("sessions_history", json!({"sessionKey": nobody})).await;
    assert_eq!(told, error(&format!("No session found: {nobody}")));
    let told = both.both("sessions_history", json!({"sessionKey": "agent:main:telegram:group:1"})).await;
    assert_eq!((&told["messages"], &told["bytes"]), (&json!([]), &json!(2)));
    let told = both.both("sessions_history", json!({"sessionKey": "agent:work:main"})).await;
    assert_eq!(told, forbidden(HISTORY_DISABLED));
    // Results of tools are told when they are asked for: the main session has some by now.
    for (with_tools, expect) in [(false, false), (true, true)] {
        let told = both
            .by_client("sessions_history", &json!({"sessionKey": "main", "includeTools": with_tools}))
            .await;
        let messages = told["messages"].as_array().unwrap();
        assert_eq!(messages.iter().any(|message| message["role"] == "toolResult"), expect);
    }
    for args in
        [json!({}), json!({"sessionKey": null}), json!({"sessionKey": "  "}), json!({"sessionKey": 5})]
    {
        let told = both.by_client("sessions_history", &args).await;
        assert_eq!(told, thrown("sessions_history", "sessionKey required"), "{args}");
    }
    let told = both.by_client("sessions_history", &json!({"sessionKey": "x".repeat(50_000)})).await;
    assert!(told["error"].as_str().unwrap().contains("too long"), "{told}");
}

/// Appends messages to a session's transcript on disk.
fn append(path: &str, messages: &[Value]) {
    let mut text = std::fs::read_to_string(path).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let mut parent = last["id"].clone();
    for (n, message) in messages.iter().enumerate() {
        let id = json!(format!("{n:08x}"));
        let entry = json!({"type": "message", "id": id, "parentId": parent,
            "timestamp": "2026-02-09T10:00:00.000Z", "message": message});
        text.push_str(&format!("{entry}\n"));
        parent = id;
    }
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn a_model_is_told_no_more_of_a_history_than_fits() {
    let mut both = Both::start(json!({})).await.with_sessions(&["main", "agent:main:side"]).await;
    let listed = both.by_client("sessions_list", &json!({"kinds": ["other"]})).await;
    let path = listed["sessions"][0]["transcriptPath"].as_str().unwrap().to_owned();
    both.gateway.terminate().await.unwrap();
    let mut messages: Vec<Value> = (0..30)
        .map(|n| json!({"role": "user", "timestamp": n, "content": [{"type": "text", "text": "x".repeat(5_000)}]}))
        .collect();
    messages.push(json!({"role": "user", "timestamp": 30, "content": [
        {"type": "text", "text": "look"}, {"type": "image", "mimeType": "image/png", "data": "A".repeat(60_000)},
    ]}));
    messages.push(json!({"role": "assistant", "timestamp": 31, "api": "openai-completions", "provider": "fake", "model": "fake-1",
        "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2}, "stopReason": "stop", "content": [
        {"type": "thinking", "thinking": "y".repeat(9_000), "thinkingSignature": "s".repeat(9_000)},
        {"type": "text", "text": "z".repeat(4_000)},
    ]}));
    append(&path, &messages);
    both.gateway.start().await.unwrap();
    both.client = both.gateway.client().await.unwrap();
    let told = both.both("sessions_history", json!({"sessionKey": "side"})).await;
    let sizes = |name: &str| told[name].as_u64().unwrap();
    assert!((70_000..=80 * 1024).contains(&sizes("bytes")), "{}", sizes("bytes"));
    assert_eq!(sizes("bytes"), told["messages"].to_string().len() as u64);
    assert_eq!(
        (&told["truncated"], &told["droppedMessages"], &told["contentTruncated"]),
        (&json!(true), &json!(true), &json!(true))
    );
    let messages = told["messages"].as_array().unwrap();
    let [.., said, shown, thought] = messages.as_slice() else { panic!("{told}") };
    assert_eq!(said["content"][0]["text"], format!("{}\n…(truncated)…", "x".repeat(4_000)));
    assert_eq!(
        shown["content"][1],
        json!({"type": "image", "mimeType": "image/png", "omitted": true, "bytes": 60_000})
    );
    assert_eq!(
        thought["content"],
        json!([
            {"type": "thinking", "thinking": format!("{}\n…(truncated)…", "y".repeat(4_000))},
            {"type": "text", "text": "z".repeat(4_000)},
        ])
    );
    assert!(thought.get("usage").is_none(), "{thought}");
}

#[tokio::test]
async fn a_message_goes_to_whom_it_names_or_says_why_not() {
    let mut both =
        Both::start(json!({})).await.with_sessions(&["main", "agent:main:side", "agent:work:main"]).await;
    let labelled = json!({"key": "agent:main:side", "label": "errands"});
    both.client.request("sessions.patch", labelled).await.unwrap();
    let delivery = json!({"status": "pending", "mode": "announce"});
    let ok = json!({"status": "ok", "reply": "pong", "sessionKey": "agent:main:side", "delivery": delivery});
    let rows = [
        (json!({"message": "ping", "sessionKey": "agent:main:side"}), ok.clone()),
        (json!({"message": "ping", "sessionKey": "side", "timeoutSeconds": 20}), ok.clone()),
        (json!({"message": "ping", "label": "errands"}), ok.clone()),
        (json!({"message": "ping", "label": "errands", "agentId": "main"}), ok),
        (
            json!({"message": "SILENCE", "sessionKey": "side"}),
            json!({"status": "ok", "sessionKey": "agent:main:side", "delivery": delivery}),
        ),
        (
            json!({"message": "ping", "sessionKey": "side", "timeoutSeconds": 0}),
            json!({"status": "accepted", "sessionKey": "agent:main:side", "delivery": delivery}),
        ),
        (
            json!({"message": "ping", "sessionKey": "side", "label": "errands"}),
            error("Provide either sessionKey or label (not both)."),
        ),
        (json!({"message": "ping"}), error("Either sessionKey or label is required")),
        (json!({"message": "ping", "label": "nothing"}), error("No session found with label: nothing")),
        (json!({"message": "ping", "sessionKey": "nobody"}), error("No session found: nobody")),
        (json!({"message": "ping", "sessionKey": "agent:work:main"}), forbidden(SENDS_DISABLED)),
        (json!({"message": "ping", "label": "errands", "agentId": "work"}), forbidden(SENDS_DISABLED)),
    ];
    for (args, expect) in rows {
        assert_eq!(both.both("sessions_send", args.clone()).await, expect, "{args}");
    }
    let told = both.both("sessions_send", json!({"message": "FAIL", "sessionKey": "side"})).await;
    assert_eq!(
        (&told["status"], &told["sessionKey"]),
        (&json!("error"), &json!("agent:main:side")),
        "{told}"
    );
    assert!(told["error"].as_str().unwrap().contains("does not want to"), "{told}");
    let long = json!({"message": "x".repeat(300_000), "sessionKey": "side", "timeoutSeconds": 0});
    assert_eq!(both.by_client("sessions_send", &long).await["status"], "accepted");
    for args in [json!({}), json!({"message": ""}), json!({"message": 7}), json!({"message": null})] {
        let told = both.by_client("sessions_send", &args).await;
        assert_eq!(told, thrown("sessions_send", "message required"), "{args}");
    }
}

#[tokio::test]
async fn who_is_not_in_the_list_is_told_so() {
    let config = json!({"tools": {"agentToAgent": {"enabled": true, "allow": ["main"]}}});
    let mut both = Both::start(config).await.with_sessions(&["main", "agent:work:main"]).await;
    let to = |rest: Value| {
        let mut args = json!({"sessionKey": "agent:work:main"});
        merge(&mut args, rest);
        args
    };
    let rows = [
        (
            "sessions_history",
            to(json!({})),
            forbidden("Agent-to-agent history denied by tools.agentToAgent.allow."),
        ),
        (
            "sessions_send",
            to(json!({"message": "x"})),
            forbidden("Agent-to-agent messaging denied by tools.agentToAgent.allow."),
        ),
        (
            "session_status",
            to(json!({})),
            thrown("session_status", "Agent-to-agent session status denied by tools.agentToAgent.allow."),
        ),
    ];
    for (tool, args, expect) in rows {
        assert_eq!(both.both(tool, args).await, expect, "{tool}");
    }
    assert_eq!(both.listed(json!({})).await, ["main main webchat"]);
}

#[tokio::test]
async fn agents_are_listed_as_they_may_be_given_work() {
    let rows = [
        (json!([]), false, &["main"][..]),
        (json!(["work"]), false, &["main", "work"]),
        (json!(["work", "ghost", " "]), false, &["main", "ghost", "work"]),
        (json!(["*"]), true, &["main", "work"]),
    ];
    for (allowed, any, expect) in rows {
        let list = json!([
            {"id": "main", "default": true, "subagents": {"allowAgents": allowed}},
            {"id": "work", "name": "Work"},
        ]);
        let mut both = Both::start(json!({"agents": {"list": list}})).await;
        let told = both.both("agents_list", json!({})).await;
        assert_eq!((&told["requester"], &told["allowAny"]), (&json!("main"), &json!(any)));
        let agents = told["agents"].as_array().unwrap();
        let ids: Vec<&str> = agents.iter().filter_map(|agent| agent["id"].as_str()).collect();
        assert_eq!(ids, expect, "{allowed}");
        for agent in agents {
            assert_eq!(agent["configured"], agent["id"] != "ghost", "{agent}");
            assert_eq!(agent.get("name").is_some(), agent["id"] == "work", "{agent}");
        }
    }
}

#[tokio::test]
async fn the_card_of_a_session_tells_the_time_and_changes_its_model() {
    let mut both =
        Both::start(json!({})).await.with_sessions(&["main", "agent:main:side", "agent:work:main"]).await;
    let said = both.by_model("session_status", &json!({})).await;
    let card = said.as_str().unwrap();
    assert!(card.starts_with("🦞 OpenClaw") && card.contains("\n🕒 Time: "), "{card}");
    assert!(card.contains("🧵 Session: agent:main:main"), "{card}");
    let (status, body) =
        invoke(both.gateway.port(), &json!({"tool": "session_status", "args": {"sessionKey": "side"}})).await;
    assert_eq!(status, 200, "{body}");
    let details = &body["result"]["details"];
    assert_eq!(
        (&details["ok"], &details["sessionKey"], &details["changedModel"]),
        (&json!(true), &json!("agent:main:side"), &json!(false))
    );
    assert_eq!(details["statusText"], body["result"]["content"][0]["text"]);
    let throws = |error: &str| thrown("session_status", error);
    let nobody = "9f1c5c1e-8f0b-4f4f-9d6c-111111111111";
    let rows = [
        (json!({"sessionKey": "agent:main:nope"}), throws("Unknown sessionKey: agent:main:nope")),
        (json!({"sessionKey": nobody}), throws(&format!("Unknown sessionId: {nobody}"))),
        (json!({"sessionKey": "agent:work:main"}), throws(STATUS_DISABLED)),
        (json!({"sessionKey": "side", "model": "a/b/ c"}), Value::Null),
    ];
    for (args, expect) in rows {
        let said = both.both("session_status", args.clone()).await;
        if !expect.is_null() {
            assert_eq!(said, expect, "{args}");
        }
    }
    let change =
        |model: &str| json!({"tool": "session_status", "args": {"sessionKey": "side", "model": model}});
    let port = both.gateway.port();
    let mut changed = Vec::new();
    for model in ["fake/other-model", "fake/other-model", "default", ""] {
        let (status, body) = invoke(port, &change(model)).await;
        assert_eq!(status, 200, "{model}: {body}");
        changed.push(body["result"]["details"]["changedModel"].clone());
    }
    assert_eq!(changed, [json!(true), json!(false), json!(true), json!(false)]);
}

#[tokio::test]
async fn a_model_that_is_not_allowed_is_not_chosen() {
    let probe = Both::start(json!({})).await.with_sessions(&["main"]).await;
    let own = probe.by_client("sessions_list", &json!({})).await["sessions"][0]["model"].clone();
    let allowed = format!("fake/{}", own.as_str().unwrap());
    let config = json!({"agents": {"defaults": {"models": {allowed: {}}}}});
    let mut both = Both::start(config).await.with_sessions(&["main", "agent:main:side"]).await;
    let said = both.both("session_status", json!({"sessionKey": "side", "model": "fake/forbidden"})).await;
    assert_eq!(said, thrown("session_status", "Model \"fake/forbidden\" is not allowed."));
}

#[tokio::test]
async fn from_a_sandbox_only_its_own_children_are_seen() {
    for (visibility, sees) in [(None, false), (Some("spawned"), false), (Some("all"), true)] {
        let mut sandbox = json!({"mode": "all", "backend": "local"});
        if let Some(visibility) = visibility {
            sandbox["sessionToolsVisibility"] = visibility.into();
        }
        let config = json!({"agents": {"defaults": {"sandbox": sandbox}}});
        let both = Both::start(config).await;
        for (key, by) in
            [("agent:main:subagent:own", "main"), ("agent:main:subagent:other", "agent:main:side")]
        {
            let mut client = both.gateway.client().await.unwrap();
            let params = json!({"key": key, "spawnedBy": by, "label": key.rsplit(':').next()});
            client.request("sessions.patch", params).await.unwrap();
        }
        let mut client = both.gateway.client().await.unwrap();
        client.request("sessions.patch", json!({"key": "agent:main:side", "label": "side"})).await.unwrap();
        let told = both.by_client("sessions_list", &json!({})).await;
        let count = if sees { 3 } else { 1 };
        assert_eq!(told["count"], count, "{told}");
        let hidden = "Session not visible from this sandboxed agent session: ";
        let outside = forbidden(&format!("{hidden}agent:main:side"));
        let inside =
            both.by_client("sessions_history", &json!({"sessionKey": "agent:main:subagent:own"})).await;
        assert_eq!(inside["sessionKey"], "agent:main:subagent:own", "{inside}");
        let told = both.by_client("sessions_history", &json!({"sessionKey": "agent:main:side"})).await;
        let nobody = both.by_client("sessions_history", &json!({"sessionKey": "nobody"})).await;
        let mut sent = [
            json!({"message": "x", "sessionKey": "agent:main:side", "timeoutSeconds": 0}),
            json!({"message": "x", "label": "side", "timeoutSeconds": 0}),
            json!({"message": "x", "label": "side", "agentId": "work", "timeoutSeconds": 0}),
        ]
        .map(|args| args);
        let mut answers = Vec::new();
        for args in &mut sent {
            let mut said = both.by_client("sessions_send", args).await;
            said.as_object_mut().unwrap().remove("runId");
            answers.push(said);
        }
        if sees {
            assert_eq!(told["sessionKey"], "agent:main:side", "{told}");
            assert_eq!(nobody, error("No session found: nobody"));
            assert_eq!(answers[0]["status"], "accepted", "{answers:?}");
            assert_eq!(answers[1]["status"], "accepted", "{answers:?}");
            assert_eq!(answers[2], forbidden(SENDS_DISABLED));
        } else {
            assert_eq!(told, outside);
            assert_eq!(nobody, forbidden(&format!("{hidden}nobody")));
            assert_eq!(answers[0], outside);
            assert_eq!(answers[1], forbidden("Session not visible from this sandboxed agent session."));
            assert_eq!(
                answers[2],
                forbidden("Sandboxed sessions_send label lookup is limited to this agent")
            );
        }
    }
}
