//! The rows of spec `sessions.md` §8 that `session_tools.rs`, `sessions_send.rs` and `subagents.rs` leave out, each by a model that calls
//! the tool and by a client over `POST /tools/invoke`; and what is passed to the tools that they do not expect.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::gateway;
use crate::support::clock::now_ms;
use crate::support::config::merge;
use crate::support::conversation::{end, history, send, sessions_dir, turn};
use crate::support::session_tools::{
    Both, SENDS_DISABLED, asked_call, error, forbidden, system, thrown, tool_said,
};
use crate::support::subagents::{announced, are_over, delegating, is_child, listed, lists};
use crate::support::telegram::{bot, open};
use crate::support::tools_invoke::invoke;

/// The tools, and their parameters as a model is told of them: those of spec §8 without the limits, which no provider is sent (spec
/// `tools.md` §8.3).
fn schemas() -> Value {
    json!({
        "sessions_list": {"type": "object", "properties": {
            "kinds": {"type": "array", "items": {"type": "string"}},
            "limit": {"type": "number"},
            "activeMinutes": {"type": "number"},
            "messageLimit": {"type": "number"},
        }},
        "sessions_history": {"type": "object", "required": ["sessionKey"], "properties": {
            "sessionKey": {"type": "string"},
            "limit": {"type": "number"},
            "includeTools": {"type": "boolean"},
        }},
        "sessions_send": {"type": "object", "required": ["message"], "properties": {
            "sessionKey": {"type": "string"},
            "label": {"type": "string"},
            "agentId": {"type": "string"},
            "message": {"type": "string"},
            "timeoutSeconds": {"type": "number"},
        }},
        "sessions_spawn": {"type": "object", "required": ["task"], "properties": {
            "task": {"type": "string"},
            "label": {"type": "string"},
            "agentId": {"type": "string"},
            "model": {"type": "string"},
            "thinking": {"type": "string"},
            "runTimeoutSeconds": {"type": "number"},
            "timeoutSeconds": {"type": "number"},
            "cleanup": {"type": "string", "enum": ["delete", "keep"]},
        }},
        "agents_list": {"type": "object", "properties": {}},
        "session_status": {"type": "object", "properties": {
            "sessionKey": {"type": "string"}, "model": {"type": "string"},
        }},
    })
}

fn session_tools() -> Vec<String> {
    schemas().as_object().unwrap().keys().cloned().collect()
}

#[tokio::test]
async fn a_model_is_told_of_the_parameters_as_they_are_written_down() {
    let both = Both::start(json!({})).await.with_sessions(&["main"]).await;
    let requests = both.model.requests();
    let tools = requests[0].body["tools"].as_array().unwrap();
    for (name, expect) in schemas().as_object().unwrap() {
        let tool = tools.iter().find(|tool| tool["function"]["name"] == **name);
        assert_eq!(&tool.unwrap()["function"]["parameters"], expect, "{name}");
    }
}

/// Arguments that are missing, empty, of another type, or too many: what both are told.
#[tokio::test]
async fn arguments_that_are_not_as_written_down_are_answered_alike() {
    let mut both =
        Both::start(json!({})).await.with_sessions(&["main", "agent:main:side", "agent:work:main"]).await;
    let labelled = json!({"key": "agent:main:side", "label": "errands"});
    both.client.request("sessions.patch", labelled).await.unwrap();
    let delivery = json!({"status": "pending", "mode": "announce"});
    let ok = json!({"status": "ok", "reply": "pong", "sessionKey": "agent:main:side", "delivery": delivery});
    let accepted = json!({"status": "accepted", "sessionKey": "agent:main:side", "delivery": delivery});
    let to_nobody = error("Either sessionKey or label is required");
    let throws = |tool: &str, name: &str| thrown(tool, &format!("{name} required"));
    let (no_task, no_key, no_message) = (
        throws("sessions_spawn", "task"),
        throws("sessions_history", "sessionKey"),
        throws("sessions_send", "message"),
    );
    let side = |more: Value| {
        let mut args = json!({"message": "ping", "sessionKey": "side"});
        merge(&mut args, more);
        args
    };
    let errands = |more: Value| {
        let mut args = json!({"message": "ping", "label": "errands"});
        merge(&mut args, more);
        args
    };
    let too_long = error("invalid label: too long (max 64)");
    let not_text = |name: &str| format!("{name}: must be string");
    let missing = |name: &str| format!("{name}: must have required property '{name}'");
    // With what a model hears of its schema instead, where it is not the tool that refuses.
    let rows = [
        ("sessions_spawn", json!({}), &no_task, missing("task")),
        ("sessions_spawn", json!({"task": null}), &no_task, String::new()),
        ("sessions_spawn", json!({"task": " \n"}), &no_task, String::new()),
        ("sessions_spawn", json!({"task": ["t"]}), &no_task, not_text("task")),
        ("sessions_history", json!({}), &no_key, missing("sessionKey")),
        ("sessions_history", json!({"sessionKey": null}), &no_key, String::new()),
        ("sessions_history", json!({"sessionKey": "  "}), &no_key, String::new()),
        ("sessions_history", json!({"sessionKey": {"key": "main"}}), &no_key, not_text("sessionKey")),
        ("sessions_send", json!({}), &no_message, missing("message")),
        ("sessions_send", json!({"message": null, "sessionKey": "side"}), &no_message, String::new()),
        ("sessions_send", json!({"message": " ", "sessionKey": "side"}), &no_message, String::new()),
        (
            "sessions_send",
            json!({"message": ["ping"], "sessionKey": "side"}),
            &no_message,
            not_text("message"),
        ),
        (
            "sessions_send",
            json!({"message": "ping", "sessionKey": null, "label": null}),
            &to_nobody,
            String::new(),
        ),
        (
            "sessions_send",
            json!({"message": "ping", "sessionKey": " ", "label": ""}),
            &to_nobody,
            String::new(),
        ),
        ("sessions_send", json!({"message": "ping", "label": [1]}), &to_nobody, not_text("label")),
        ("sessions_send", json!({"message": "ping", "label": "x".repeat(65)}), &too_long, String::new()),
        ("sessions_send", json!({"message": "ping", "label": "x".repeat(10_000)}), &too_long, String::new()),
        (
            "sessions_send",
            errands(json!({"agentId": "w".repeat(10_000)})),
            &forbidden(SENDS_DISABLED),
            String::new(),
        ),
        ("sessions_send", errands(json!({"agentId": null})), &ok, String::new()),
        ("sessions_send", side(json!({"nobodyKnowsThis": {"a": 1}})), &ok, String::new()),
        ("sessions_send", side(json!({"timeoutSeconds": "7"})), &ok, String::new()),
        ("sessions_send", side(json!({"timeoutSeconds": 1e300})), &ok, String::new()),
        (
            "sessions_send",
            side(json!({"timeoutSeconds": "soon"})),
            &ok,
            "timeoutSeconds: must be number".to_owned(),
        ),
        ("sessions_send", side(json!({"timeoutSeconds": -1})), &accepted, String::new()),
        (
            "session_status",
            json!({"model": "fake/"}),
            &thrown("session_status", "Unrecognized model \"fake/\"."),
            String::new(),
        ),
        (
            "session_status",
            json!({"model": "nobody/has-it"}),
            &thrown("session_status", "Unrecognized model \"nobody/has-it\"."),
            String::new(),
        ),
        (
            "sessions_send",
            side(json!({"sessionKey": "agent:main:subagent:gone"})),
            &error("No session found: agent:main:subagent:gone"),
            String::new(),
        ),
        (
            "sessions_send",
            side(json!({"sessionKey": " Unknown "})),
            &error("No session found: unknown"),
            String::new(),
        ),
    ];
    for (tool, args, expect, of_schema) in rows {
        let [by_model, by_client] = both.each(tool, &args).await;
        assert_eq!(by_client, *expect, "{tool} {args}");
        if of_schema.is_empty() {
            assert_eq!(by_model, *expect, "{tool} {args}");
        } else {
            let begin =
                format!("Validation failed for tool \"{tool}\":\n  - {of_schema}\n\nReceived arguments:\n");
            assert!(
                by_model.as_str().is_some_and(|said| said.starts_with(&begin)),
                "{tool} {args}: {by_model}"
            );
        }
    }
    let all = json!({"includeUnknown": true, "includeGlobal": true});
    let rows = both.client.request("sessions.list", all).await.unwrap();
    let is_made = |row: &Value| row["key"] == "unknown" || row["key"] == "agent:main:subagent:gone";
    assert!(!rows["sessions"].as_array().unwrap().iter().any(is_made), "no row was made: {rows}");
    // A call without a session writes to nobody: an answer would need one.
    let asked = json!({"tool": "sessions_send", "args": {"sessionKey": "main", "message": "hi"}, "sessionKey": "unknown"});
    let (_, told) = invoke(both.gateway.port(), &asked).await;
    assert_eq!(told["result"]["details"]["error"], "No session found: unknown", "{told}");
    let key = "x".repeat(10_000);
    for tool in ["sessions_history", "sessions_send"] {
        let told = both.both(tool, json!({"sessionKey": key, "message": "ping"})).await;
        assert_eq!(told["status"], "error", "{tool}: {told}");
        assert!(told["error"].as_str().unwrap().contains("too long"), "{tool}: {told}");
    }
    let plain = both.both("agents_list", json!({})).await;
    for args in [json!({"nobodyKnowsThis": 1}), json!({"requester": null})] {
        assert_eq!(both.both("agents_list", args).await, plain);
    }
    let plain = both.by_client("sessions_list", &json!({})).await["count"].clone();
    for args in [
        json!({"kinds": null, "limit": null, "activeMinutes": null, "messageLimit": null}),
        json!({"kinds": {"main": true}, "limit": "many", "activeMinutes": true, "messageLimit": {}}),
        json!({"kinds": [5, null, ["main"]], "nobodyKnowsThis": "x"}),
        json!({"kinds": ["x".repeat(10_000)]}),
    ] {
        assert_eq!(both.by_client("sessions_list", &args).await["count"], plain, "{args}");
    }
}

#[tokio::test]
async fn one_text_may_stand_where_a_list_is_wanted() {
    let mut both = Both::start(json!({})).await.with_sessions(&["main", "agent:main:cron:job"]).await;
    let (main, job) = ("main main webchat", "agent:main:cron:job cron internal");
    assert_eq!(both.listed(json!({"kinds": "cron"})).await, [job]);
    assert_eq!(both.listed(json!({"kinds": " "})).await, [job, main]);
    assert_eq!(both.listed(json!({"kinds": "nonsense"})).await, [job, main]);
    // Of a list that is written as text a model is told.
    let said = both.by_model("sessions_list", &json!({"kinds": "[\"cron\"]"})).await;
    assert!(said.as_str().is_some_and(|said| said.contains("kinds: must be array")), "{said}");
}

#[tokio::test]
async fn a_card_names_the_other_models_and_is_had_by_id_too() {
    let model = |id: &str| json!({"id": id, "name": id, "contextWindow": 32000, "maxTokens": 4096});
    let config = json!({
        "agents": {"defaults": {"model": {"fallbacks": ["fake/fake-2", "nobody/knows", "fake/fake-3", "fake/fake-2"]}}},
        "models": {"providers": {"fake": {"models": [model("fake-1"), model("fake-2"), model("fake-3")]}}},
    });
    let mut both = Both::start(config).await.with_sessions(&["main", "agent:main:side"]).await;
    let listed = both.by_client("sessions_list", &json!({"kinds": ["other"]})).await;
    let id = listed["sessions"][0]["sessionId"].clone();
    for args in [json!({"sessionId": id}), json!({"sessionKey": "side"}), json!({"sessionId": "side"})] {
        for said in both.each("session_status", &args).await {
            let card = said.as_str().unwrap_or_else(|| panic!("{args}: {said}"));
            assert!(card.contains("\n🧵 Session: agent:main:side • "), "{args}: {card}");
            let models = card.lines().skip_while(|line| !line.starts_with("🧠 Model: fake/fake-1 "));
            assert_eq!(models.take(2).last(), Some("↪️ Fallbacks: fake/fake-2, fake/fake-3"), "{card}");
        }
    }
    let told = both.both("session_status", json!({"sessionId": "nobody"})).await;
    assert_eq!(told, thrown("session_status", "Unknown sessionId: nobody"));
    // The other name counts where both are there.
    let told = both.both("session_status", json!({"sessionKey": "nobody", "sessionId": id})).await;
    assert_eq!(told, thrown("session_status", "Unknown sessionId: nobody"));
}

/// A session that was asked by another may leave its sandbox as little as a heartbeat may, and no setting is named that would change it.
#[tokio::test]
async fn a_run_that_no_person_asked_for_is_not_elevated_whatever_is_configured() {
    let anybody = json!({"webchat": ["*"], "none": ["*"]});
    let config = json!({"tools": {"elevated": {"allowFrom": anybody}}});
    let both = Both::start(config).await;
    let call = json!({"command": "true", "elevated": true});
    let ask = json!({"sessionKey": "agent:main:side", "message": format!("CALL exec {call}")});
    assert_eq!(both.by_client("sessions_send", &ask).await["status"], "ok");
    let requests = both.model.requests();
    let said = tool_said(requests.iter().find(|request| request.ends_with_tool_result()).unwrap());
    for part in [
        "elevated is not available right now (runtime=direct).",
        "Failing gates: a person's message",
        "Context: provider=none session=agent:main:side",
        "Fix-it keys: none. Only a run that a person's message asked for can be elevated",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("allowFrom"), "{said}");
}

#[tokio::test]
async fn a_label_that_a_child_can_not_have_is_told_and_it_works_without() {
    let subagents = json!({"announceMode": "raw", "model": "nobody/knows"});
    let config = json!({"agents": {"list": [{"id": "main", "default": true}, {"id": "work"}],
        "defaults": {"models": {"fake/fake-1": {}}, "subagents": subagents}}});
    let mut both = Both::start(config).await.with_sessions(&["agent:main:side"]).await;
    let labelled = json!({"key": "agent:main:side", "label": "errands"});
    both.client.request("sessions.patch", labelled).await.unwrap();
    let taken = "its session has no label: label already in use: errands";
    let long = "its session has no label: invalid label: too long (max 64)";
    for (label, why) in [("errands".to_owned(), taken), ("y".repeat(65), long)] {
        for told in both.each("sessions_spawn", &json!({"task": "dig", "label": label})).await {
            assert_eq!(
                (&told["status"], &told["modelApplied"]),
                (&json!("accepted"), &json!(false)),
                "{told}"
            );
            let warning = told["warning"].as_str().unwrap();
            assert!(warning.contains("nobody/knows") && warning.ends_with(&format!("; {why}")), "{warning}");
        }
    }
    // Only the label is mentioned where the model can be had; and nothing of a label that is free.
    for (label, warning) in [("errands", json!(taken)), ("digger", json!(null))] {
        let args = json!({"task": "dig", "label": label, "model": "fake/fake-1"});
        let told = both.by_client("sessions_spawn", &args).await;
        assert_eq!((&told["modelApplied"], &told["warning"]), (&json!(true), &warning), "{told}");
        let rows =
            both.client.request("sessions.list", json!({"search": told["childSessionKey"]})).await.unwrap();
        let own = if warning.is_null() { json!(label) } else { json!(null) };
        assert_eq!(rows["sessions"][0]["label"], own, "{rows}");
    }
    lists(&both.gateway, |rows| rows.len() == 6 && are_over(rows)).await;
}

/// Each parameter of each tool as nothing, as another type, and huge: something is answered, and the gateway goes on.
#[tokio::test]
async fn odd_values_of_each_parameter_are_answered() {
    let huge = "x".repeat(100_000);
    let odd = [json!(null), json!(true), json!(-1), json!(1e300), json!([[]]), json!({"a": 1}), json!(huge)];
    let mut both = Both::start(json!({})).await.with_sessions(&["main"]).await;
    for (tool, schema) in schemas().as_object().unwrap() {
        for name in schema["properties"].as_object().unwrap().keys() {
            for (n, odd) in odd.iter().enumerate() {
                // No session has this label: nothing is begun by the way.
                let mut args = json!({"message": "x", "label": "nobody", "task": "t", "agentId": "ghost"});
                args[name] = odd.clone();
                let body = json!({"tool": tool, "args": args});
                let (status, told) = invoke(both.gateway.port(), &body).await;
                assert!(status == 200 || status == 400, "{tool} {name} {n}: {status} {told}");
                let session = format!("agent:main:{tool}-{name}-{n}").to_lowercase();
                let told = both.by_model_in(&session, tool, &args).await;
                assert!(!told.is_null(), "{tool} {name} {n}");
            }
        }
    }
    let told = both.by_client("sessions_list", &json!({"kinds": ["main"]})).await;
    assert_eq!(told["count"], 1, "{told}");
}

#[tokio::test]
async fn a_start_is_refused_alike_at_both_doors() {
    for (allowed, word) in [(json!([]), "none"), (json!(["other", "ghost"]), "other, ghost")] {
        let list = json!([
            {"id": "main", "default": true, "subagents": {"allowAgents": allowed}}, {"id": "work"}, {"id": "other"},
        ]);
        let config = json!({"agents": {"list": list, "defaults": {"models": {"fake/fake-1": {}}}}});
        let mut both = Both::start(config).await.with_sessions(&["main"]).await;
        let not_allowed = forbidden(&format!("agentId is not allowed for sessions_spawn (allowed: {word})"));
        let rows = [
            (json!({"task": "t", "agentId": "work"}), not_allowed.clone()),
            (json!({"task": "t", "agentId": "nobody"}), not_allowed),
            (
                json!({"task": "t", "thinking": "banana"}),
                error("Invalid thinking level \"banana\". Use one of: off, minimal, low, medium, high."),
            ),
            // A level that other models have.
            (
                json!({"task": "t", "thinking": "xhigh"}),
                error("Invalid thinking level \"xhigh\". Use one of: off, minimal, low, medium, high."),
            ),
        ];
        for (args, expect) in rows {
            assert_eq!(both.both("sessions_spawn", args.clone()).await, expect, "{args}");
        }
        if word != "none" {
            let told = both.both("sessions_spawn", json!({"task": "t", "agentId": "ghost"})).await;
            assert_eq!(told, error("unknown agent id \"ghost\""));
        }
        for model in ["nobody/knows", "fake/", "/"] {
            let told = both.both("sessions_spawn", json!({"task": "t", "model": model})).await;
            assert_eq!(told["status"], "error", "{told}");
            assert!(told["error"].as_str().unwrap().contains(model), "{told}");
        }
        // Nothing is left of what was not started.
        let rows = both.client.request("sessions.list", json!({})).await.unwrap();
        assert!(!rows.to_string().contains(":subagent:"), "{rows}");
        assert_eq!(listed(&both.gateway), [Value::Null; 0]);
    }
}

#[tokio::test]
async fn a_start_is_accepted_alike_at_both_doors() {
    let defaults =
        json!({"models": {"fake/fake-1": {}}, "subagents": {"announceMode": "raw", "thinking": "low"}});
    let mut both =
        Both::start(json!({"agents": {"defaults": defaults}})).await.with_sessions(&["main"]).await;
    let (low, none) = (json!("low"), json!(null));
    let rows = [
        (json!({"task": "dig"}), &none, &low),
        (json!({"task": "dig", "thinking": "high"}), &none, &json!("high")),
        (json!({"task": "dig", "thinking": "off", "label": "digger"}), &none, &none),
        (json!({"task": "dig", "model": "fake/fake-1"}), &json!(true), &low),
        (json!({"task": "dig", "runTimeoutSeconds": 1e300, "nobodyKnowsThis": 1}), &none, &low),
        (json!({"task": "dig", "runTimeoutSeconds": 0, "timeoutSeconds": -1}), &none, &low),
        (
            json!({"task": "dig", "label": null, "agentId": null, "model": null, "thinking": null}),
            &none,
            &low,
        ),
        (json!({"task": "x".repeat(20_000), "label": "y".repeat(10_000)}), &none, &low),
    ];
    let mut keys = Vec::new();
    for (n, (args, applied, thinking)) in rows.into_iter().enumerate() {
        let from = format!("agent:main:from-{n}");
        // The same call of a client twice is two.
        let told = [
            both.by_model_in(&from, "sessions_spawn", &args).await,
            both.by_client("sessions_spawn", &args).await,
            both.by_client("sessions_spawn", &args).await,
        ];
        for told in told {
            assert_eq!(
                (&told["status"], &told["modelApplied"]),
                (&json!("accepted"), applied),
                "{n}: {told}"
            );
            assert_eq!(told["runId"].as_str().unwrap().len(), 36, "{told}");
            let key = told["childSessionKey"].as_str().unwrap().to_owned();
            assert!(key.starts_with("agent:main:subagent:") && !keys.contains(&key), "{told}");
            let rows = both.client.request("sessions.list", json!({"search": key})).await.unwrap();
            assert_eq!(rows["sessions"][0]["thinkingLevel"], *thinking, "{n}: {rows}");
            keys.push(key);
        }
    }
    let rows = lists(&both.gateway, |rows| rows.len() == keys.len() && are_over(rows)).await;
    for row in rows {
        assert_eq!((&row["outcome"], &row["cleanup"]), (&json!({"status": "ok"}), &json!("keep")), "{row}");
    }
}

/// A child that would like to start children of its own.
#[tokio::test]
async fn a_sub_agent_has_no_session_tools_at_either_door() {
    let model = delegating(json!({"task": "dig"}), |request| match request.ends_with_tool_result() {
        true => Reply::text("I was not let."),
        false => Reply::tool("s1", "sessions_spawn", &json!({"task": "dig deeper"})),
    })
    .await;
    let config = json!({"agents": {"defaults": {"subagents": {"announceMode": "raw"}}}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    let told = announced(&mut client).await;
    assert!(told.starts_with("Status: success\nResult: I was not let.\nNotes: -"), "{told}");
    let requests = model.requests();
    let heard = requests.iter().find(|request| is_child(request) && request.ends_with_tool_result());
    assert_eq!(tool_said(heard.unwrap()), "Tool sessions_spawn not found");
    assert_eq!(listed(&gateway).len(), 1);
    let key = listed(&gateway)[0]["childSessionKey"].clone();
    for session in [key, json!("agent:main:subagent:x")] {
        for tool in session_tools() {
            let args = json!({"task": "t", "sessionKey": "main", "message": "x"});
            let (status, told) =
                invoke(gateway.port(), &json!({"tool": tool, "args": args, "sessionKey": session})).await;
            let expect = json!({"ok": false, "error": {"type": "not_found", "message": format!("Tool not available: {tool}")}});
            assert_eq!((status, told), (404, expect), "{session}");
        }
    }
}

/// A model that makes the calls it is asked for, and answers another session once the gate is open.
async fn held(gate: &Gate) -> ModelServer {
    let held = gate.clone();
    ModelServer::answering(move |request| {
        let context = system(request);
        match () {
            () if request.ends_with_tool_result() => Reply::text("done"),
            () if context.contains("Agent-to-agent message context:") => {
                Reply::text("pong").after(Step::Wait(held.clone()))
            }
            () if context.contains("Agent-to-agent reply step:") => Reply::text("REPLY_SKIP"),
            () if context.contains("Agent-to-agent announce step:") => Reply::text("ANNOUNCE_SKIP"),
            () => match asked_call(&request.last_user_text()) {
                Some((tool, args)) => Reply::tool("call-1", &tool, &args),
                None => Reply::text("hello"),
            },
        }
    })
    .await
}

fn ping(seconds: u64) -> Value {
    json!({"sessionKey": "agent:main:side", "message": "ping", "timeoutSeconds": seconds})
}

fn ping_from(from: &str, seconds: u64) -> Value {
    json!({"tool": "sessions_send", "sessionKey": from, "args": ping(seconds)})
}

#[tokio::test]
async fn a_client_hears_that_an_answer_is_late_and_that_its_session_is_gone() {
    let gate = Gate::new();
    let model = held(&gate).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let (_, told) = invoke(gateway.port(), &ping_from("main", 1)).await;
    let details = &told["result"]["details"];
    assert_eq!(
        (&details["status"], &details["error"], &details["sessionKey"]),
        (&json!("timeout"), &json!("agent run still in progress"), &json!("agent:main:side")),
        "{told}"
    );
    assert_eq!(details["runId"].as_str().unwrap().len(), 36, "{told}");
    let mut client = gateway.client().await.unwrap();
    client.request("sessions.delete", json!({"key": "agent:main:side"})).await.unwrap();
    // Now one that is deleted while it is waited for, whose run is under way.
    let (port, begun) = (gateway.port(), model.requests().len());
    let waiting = tokio::spawn(async move { invoke(port, &ping_from("agent:main:desk", 1_000)).await });
    model.arrived(begun + 1).await;
    client.request("sessions.delete", json!({"key": "agent:main:side"})).await.unwrap();
    let (_, told) = waiting.await.unwrap();
    let details = &told["result"]["details"];
    assert_eq!(
        (&details["status"], &details["error"], &details["sessionKey"]),
        (&json!("error"), &json!("agent run was stopped"), &json!("agent:main:side")),
        "{told}"
    );
    gate.open();
}

#[tokio::test]
async fn ten_clients_wait_for_one_session() {
    let gate = Gate::new();
    let model = held(&gate).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut waiting = JoinSet::new();
    for n in 0..10 {
        let port = gateway.port();
        waiting.spawn(async move { invoke(port, &ping_from(&format!("agent:main:p{n}"), 100)).await });
    }
    model.arrived(1).await;
    gate.open();
    while let Some(told) = waiting.join_next().await {
        let (status, told) = told.unwrap();
        let details = &told["result"]["details"];
        assert_eq!(
            (status, &details["status"], &details["reply"]),
            (200, &json!("ok"), &json!("pong")),
            "{told}"
        );
    }
}

#[tokio::test]
async fn ten_parents_wait_for_one_session() {
    // With fewer places in their lane than there are parents, and with one.
    for config in [json!({}), json!({"agents": {"defaults": {"maxConcurrent": 1}}})] {
        let gate = Gate::new();
        let model = held(&gate).await;
        let gateway = gateway().fake_model(&model.v1()).config(config.clone()).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        let mut runs: Vec<String> = (0..10).map(|n| format!("r{n}")).collect();
        for run in &runs {
            let text = format!("CALL sessions_send {}", ping(100));
            send(&mut client, &format!("agent:main:{run}"), &text, run).await;
        }
        // The calls of all, and the first message's run.
        model.arrived(runs.len() + 1).await;
        gate.open();
        while !runs.is_empty() {
            let is_end = |payload: &Value| {
                payload["state"] != "delta" && runs.iter().any(|run| payload["runId"] == **run)
            };
            let ended = client.event("chat", is_end).await.unwrap();
            assert_eq!(ended["state"], "final", "{ended}");
            runs.retain(|run| ended["runId"] != **run);
        }
        let requests = model.requests();
        let told = requests.iter().filter(|request| request.ends_with_tool_result()).map(tool_said);
        let told: Vec<Value> = told.map(|said| serde_json::from_str(&said).unwrap()).collect();
        let has_answer = |told: &Value| told["status"] == "ok" && told["reply"] == "pong";
        assert!(told.len() == 10 && told.iter().all(has_answer), "{config}: {told:?}");
    }
}

#[tokio::test]
async fn lists_have_an_end() {
    let mut both = Both::start(json!({})).await.with_sessions(&["main"]).await;
    for n in 0..205 {
        let row = json!({"key": format!("agent:main:row{n}"), "thinkingLevel": "low"});
        both.client.request("sessions.patch", row).await.unwrap();
    }
    for args in [json!({}), json!({"limit": 100_000}), json!({"limit": 1e300})] {
        for told in
            [both.by_model("sessions_list", &args).await, both.by_client("sessions_list", &args).await]
        {
            assert_eq!(
                (&told["count"], told["sessions"].as_array().unwrap().len()),
                (&json!(200), 200),
                "{args}"
            );
        }
    }
    for n in 0..11 {
        turn(&mut both.client, "agent:main:side", "hi", &format!("more-{n}")).await;
    }
    for limit in [json!(21), json!(1e300), json!("99")] {
        let args = json!({"kinds": ["other"], "limit": 1, "messageLimit": limit});
        for told in
            [both.by_model("sessions_list", &args).await, both.by_client("sessions_list", &args).await]
        {
            let row = &told["sessions"][0];
            assert_eq!(row["key"], "agent:main:side", "{limit}");
            assert_eq!(row["messages"].as_array().unwrap().len(), 20, "{limit}");
        }
    }
}

/// Rows as another program may have left them.
fn prepared(model: &ModelServer, rows: &Value, config: Value) -> GatewayUnderTest {
    let gateway = gateway().fake_model(&model.v1()).config(config).prepare().unwrap();
    std::fs::create_dir_all(sessions_dir(&gateway)).unwrap();
    std::fs::write(sessions_dir(&gateway).join("sessions.json"), rows.to_string()).unwrap();
    gateway
}

const ID: &str = "11111111-2222-4333-8444-555555555555";

#[tokio::test]
async fn a_row_tells_what_is_known_of_its_session() {
    let now = now_ms();
    let full = json!({
        "sessionId": ID, "updatedAt": now, "label": "errands", "displayName": "Errands",
        "deliveryContext": {"channel": "telegram", "to": "telegram:7", "accountId": "default"},
        "lastChannel": "telegram", "lastTo": "telegram:7", "lastAccountId": "default",
        "contextTokens": 32_000, "totalTokens": 7, "thinkingLevel": "low", "verboseLevel": "on",
        "systemSent": true, "abortedLastRun": true, "sendPolicy": "deny", "model": "fake-1", "modelProvider": "fake",
    });
    let (one, other) = ("aaaaaaaa-2222-4333-8444-555555555555", "bbbbbbbb-2222-4333-8444-555555555555");
    let row = |id: &str| json!({"sessionId": id, "updatedAt": now});
    let rows = json!({
        "agent:main:main": row(other), "agent:main:side": full, "agent:main:bare": row(one),
        "agent:main:twin": row(one), "unknown": row(other),
    });
    let model = ModelServer::answering(|request| {
        let asked = asked_call(&request.last_user_text());
        match (request.ends_with_tool_result(), asked) {
            (false, Some((tool, args))) => Reply::tool("call-1", &tool, &args),
            (..) => Reply::text("done"),
        }
    })
    .await;
    let mut gateway = prepared(&model, &rows, json!({"session": {"mainKey": "home"}}));
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let args = json!({});
    turn(&mut client, "main", &format!("CALL sessions_list {args}"), "r1").await;
    let by_model: Value = serde_json::from_str(&tool_said(model.requests().last().unwrap())).unwrap();
    let (_, by_client) = invoke(gateway.port(), &json!({"tool": "sessions_list", "args": args})).await;
    for told in [&by_model, &by_client["result"]["details"]] {
        let rows = told["sessions"].as_array().unwrap();
        let of = |key: &str| {
            let found = rows.iter().find(|row| row["key"] == key);
            found.cloned().unwrap_or_else(|| panic!("no {key}: {told}"))
        };
        assert!(!rows.iter().any(|row| row["key"].as_str().unwrap().ends_with("unknown")), "{told}");
        assert_eq!(rows.iter().filter(|row| row["kind"] == "main").count(), 1, "{told}");
        assert_eq!(of("main")["kind"], "main");
        assert_eq!(of("agent:main:bare")["channel"], "unknown", "{told}");
        let mut side = of("agent:main:side");
        let path = side.as_object_mut().unwrap().remove("transcriptPath").unwrap();
        assert!(path.as_str().unwrap().ends_with(&format!("/agents/main/sessions/{ID}.jsonl")), "{path}");
        let expect = json!({
            "key": "agent:main:side", "kind": "other", "channel": "telegram", "label": "errands",
            "displayName": side["displayName"],
            "deliveryContext": {"channel": "telegram", "to": "telegram:7", "accountId": "default"},
            "updatedAt": now, "sessionId": ID, "model": "fake-1", "contextTokens": 32_000, "totalTokens": 7,
            "thinkingLevel": "low", "verboseLevel": "on", "systemSent": true, "abortedLastRun": true,
            "sendPolicy": "deny", "lastChannel": "telegram", "lastTo": "telegram:7", "lastAccountId": "default",
        });
        assert_eq!(side, expect);
        assert!(side["displayName"].is_string(), "{side}");
    }
    // Two with one id: none is meant.
    let args = json!({"sessionKey": one});
    turn(&mut client, "main", &format!("CALL sessions_history {args}"), "r2").await;
    let by_model: Value = serde_json::from_str(&tool_said(model.requests().last().unwrap())).unwrap();
    let (_, by_client) = invoke(gateway.port(), &json!({"tool": "sessions_history", "args": args})).await;
    for told in [&by_model, &by_client["result"]["details"]] {
        assert_eq!(told["status"], "error", "{told}");
        let text = told["error"].as_str().unwrap();
        assert!(text.starts_with(&format!("Multiple sessions found for sessionId: {one} (")), "{text}");
        assert!(text.contains("agent:main:bare") && text.contains("agent:main:twin"), "{text}");
    }
}

#[tokio::test]
async fn a_history_leaves_out_what_tools_gave_back_after_it_is_counted() {
    let mut both = Both::start(json!({})).await.with_sessions(&["main"]).await;
    // Four messages: what is asked, the call, its result, the answer.
    both.by_model_in("agent:main:side", "agents_list", &json!({})).await;
    for (limit, with_tools, expect) in [
        (4, true, &["user", "assistant", "toolResult", "assistant"][..]),
        (4, false, &["user", "assistant", "assistant"]),
        (2, true, &["toolResult", "assistant"]),
        (2, false, &["assistant"]),
    ] {
        let args = json!({"sessionKey": "side", "limit": limit, "includeTools": with_tools});
        let told = both.both("sessions_history", args.clone()).await;
        let messages = told["messages"].as_array().unwrap().iter();
        let roles: Vec<&str> = messages.filter_map(|message| message["role"].as_str()).collect();
        assert_eq!(roles, expect, "{args}");
    }
    // Of a list they are left out before it is counted.
    let args = json!({"kinds": ["other"], "messageLimit": 3});
    for told in [both.by_model("sessions_list", &args).await, both.by_client("sessions_list", &args).await] {
        let messages = told["sessions"][0]["messages"].as_array().unwrap().iter();
        let roles: Vec<&str> = messages.filter_map(|message| message["role"].as_str()).collect();
        assert_eq!(roles, ["user", "assistant", "assistant"], "{told}");
    }
}

#[tokio::test]
async fn a_long_history_is_cut_and_its_oldest_part_left_out() {
    let mut both = Both::start(json!({})).await.with_sessions(&["main"]).await;
    for n in 0..30 {
        turn(&mut both.client, "agent:main:side", &"x".repeat(5_000), &format!("long-{n}")).await;
    }
    let args = json!({"sessionKey": "side"});
    let told = both.by_client("sessions_history", &args).await;
    assert_eq!((&told["droppedMessages"], &told["contentTruncated"]), (&json!(true), &json!(true)), "{told}");
    assert!(told["bytes"].as_u64().unwrap() <= 80 * 1024, "{}", told["bytes"]);
    let messages = told["messages"].as_array().unwrap();
    let texts = messages.iter().filter_map(|message| message["content"][0]["text"].as_str());
    let cut: Vec<&str> = texts.filter(|text| text.ends_with("\n…(truncated)…")).collect();
    assert!(!cut.is_empty(), "{told}");
    for text in cut {
        assert_eq!(text.chars().count(), 4_000 + "\n…(truncated)…".chars().count());
    }
}

/// `action` counts where a tool has one, and what is in the arguments counts more.
#[tokio::test]
async fn an_action_is_an_argument_of_tools_that_have_one() {
    let gateway = gateway().start().await.unwrap();
    let rows = [
        (json!({"tool": "gateway", "action": "config.get"}), 200),
        (json!({"tool": "gateway", "args": {"action": "config.get"}}), 200),
        (json!({"tool": "gateway", "action": "nobody.knows", "args": {"action": "config.get"}}), 200),
        (json!({"tool": "gateway", "action": "config.get", "args": {"action": "nobody.knows"}}), 400),
        (json!({"tool": "gateway"}), 400),
        (json!({"tool": "agents_list", "action": "config.get"}), 200),
    ];
    for (body, expect) in rows {
        let (status, told) = invoke(gateway.port(), &body).await;
        assert_eq!(status, expect, "{body}: {told}");
        assert!(expect == 200 || told["error"]["type"] == "tool_error", "{told}");
    }
}

/// Name of the child's case, further arguments of its task, the configuration, the answers of its
/// model, and the text that is told of it.
type Restless = (&'static str, Value, Value, Says, &'static str);
type Says = Box<dyn Fn() -> Reply + Send + Sync>;

/// Children that go in circles, are cut short, or say very much.
#[tokio::test]
async fn children_that_do_not_come_to_an_end_are_told_of() {
    let never = Gate::new();
    let much = "0123456789abcdef".repeat(4_096);
    let rows: [Restless; 4] = [
        (
            "loops until its time is over",
            json!({"runTimeoutSeconds": 2}),
            json!({}),
            Box::new(|| Reply::tool("c", "exec", &json!({"command": "sleep 0.2"}))),
            "Status: timeout\nResult: ",
        ),
        (
            "loops until it is stopped",
            json!({}),
            json!({"tools": {"loopGuard": {"warnAfter": 2, "stopAfter": 3}}}),
            Box::new(|| Reply::tool("c", "read", &json!({"path": "none.txt"}))),
            "Stopped: the model made the same read call 3 times in a row.",
        ),
        (
            "is cut short",
            json!({"runTimeoutSeconds": 1}),
            json!({}),
            Box::new(move || Reply::steps([Step::Text("partial".to_owned()), Step::Wait(never.clone())])),
            "Status: timeout\nResult: partial\nNotes: -\n\nStats: ",
        ),
        (
            "says 5 MB",
            json!({}),
            json!({}),
            Box::new(move || Reply::steps(vec![Step::Text(much.clone()); 80])),
            "Status: success\nResult: 0123456789abcdef",
        ),
    ];
    for (name, more, config, child, expect) in rows {
        let mut task = json!({"task": "dig"});
        merge(&mut task, more);
        let model = delegating(task, move |_| child()).await;
        let raw = json!({"agents": {"defaults": {"subagents": {"announceMode": "raw"}}}});
        let gateway = gateway().fake_model(&model.v1()).config(raw).config(config).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        turn(&mut client, "main", "delegate", "r1").await;
        // No client listens meanwhile: one that hears of each piece of 5 MB may be too slow for it.
        drop(client);
        lists(&gateway, are_over).await;
        let mut client = gateway.client().await.unwrap();
        let told = history(&mut client, "main").await.pop().unwrap();
        let told = told.strip_prefix("assistant: ").unwrap();
        let begin: String = told.chars().take(2_000).collect();
        assert!(told.contains(expect) && told.starts_with("Status: "), "{name}: {begin}");
        assert!(told.len() < 17_000, "{name}: {}", told.len());
    }
}

#[tokio::test]
async fn a_requester_that_keeps_silent_sends_nothing() {
    for word in ["NO_REPLY", "ANNOUNCE_SKIP", " ANNOUNCE_SKIP\n"] {
        let model = delegating(json!({"task": "dig"}), move |request| {
            let said = request.last_user_text();
            match () {
                () if said.contains("A subagent task") => Reply::text(word),
                () if said.contains("and now?") => Reply::text("Nothing new."),
                () => Reply::text("dug"),
            }
        })
        .await;
        let server = TelegramServer::start().await;
        let config = json!({"agents": {"defaults": {"subagents": {"announceMode": "summary"}}}});
        let gateway = bot(&server, &model, open(), config).await;
        server.push(private_message(7, "delegate"));
        server.nth_call("sendMessage", 1).await;
        lists(&gateway, are_over).await;
        server.push(private_message(7, "and now?"));
        let next = server.nth_call("sendMessage", 2).await;
        assert_eq!(next.params["text"], "Nothing new.", "{word:?}");
        let is_trigger = |request: &Captured| request.last_user_text().contains("A subagent task");
        assert!(model.requests().iter().any(is_trigger), "{word:?}");
    }
}

/// The chat in which a child was asked for counts more than the one in which its requester was
/// written to since.
#[tokio::test]
async fn a_child_is_told_of_where_it_was_asked_for() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = delegating(json!({"task": "dig"}), move |request| match request.last_user_text() {
        said if said.contains("look in") => Reply::text("hello"),
        _ => Reply::text("dug").after(Step::Wait(held.clone())),
    })
    .await;
    let server = TelegramServer::start().await;
    let config = json!({"agents": {"defaults": {"subagents": {"announceMode": "raw"}}}});
    let gateway = bot(&server, &model, open(), config).await;
    server.push(private_message(7, "delegate"));
    server.nth_call("sendMessage", 1).await;
    lists(&gateway, |rows| rows.len() == 1).await;
    server.push(private_message(8, "look in"));
    server.nth_call("sendMessage", 2).await;
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "look in", "r1").await;
    end(&mut client, "r1").await;
    gate.open();
    let told = server.nth_call("sendMessage", 3).await;
    assert_eq!(told.params["chat_id"].to_string().trim_matches('"'), "7", "{:?}", told.params);
    assert!(told.params["text"].as_str().unwrap().starts_with("Status: success\nResult: dug"));
}

/// As `session_tools::from_a_sandbox_only_its_own_children_are_seen`, by a model.
#[tokio::test]
async fn a_model_in_a_sandbox_sees_only_its_own_children() {
    for (visibility, sees) in [(None, false), (Some("spawned"), false), (Some("all"), true)] {
        let mut sandbox = json!({"mode": "all", "backend": "local"});
        if let Some(visibility) = visibility {
            sandbox["sessionToolsVisibility"] = visibility.into();
        }
        let mut both = Both::start(json!({"agents": {"defaults": {"sandbox": sandbox}}})).await;
        let (own, other, side) = ("agent:main:subagent:own", "agent:main:subagent:other", "agent:main:side");
        for row in [
            json!({"key": own, "spawnedBy": "main", "label": "own"}),
            json!({"key": other, "spawnedBy": side, "label": "other"}),
            json!({"key": side, "label": "side"}),
        ] {
            both.client.request("sessions.patch", row).await.unwrap();
        }
        let told = both.by_model("sessions_list", &json!({"kinds": ["other"]})).await;
        let rows = told["sessions"].as_array().unwrap().iter();
        let mut keys: Vec<&str> = rows.filter_map(|row| row["key"].as_str()).collect();
        keys.sort_unstable();
        assert_eq!(keys, if sees { vec![side, other, own] } else { vec![own] }, "{told}");
        let hidden =
            |name: &str| forbidden(&format!("Session not visible from this sandboxed agent session: {name}"));
        let no_label = forbidden("Session not visible from this sandboxed agent session.");
        let foreign = forbidden("Sandboxed sessions_send label lookup is limited to this agent");
        let to = |more: Value| {
            let mut args = json!({"message": "x", "timeoutSeconds": 0});
            merge(&mut args, more);
            args
        };
        let rows = [
            ("sessions_history", json!({"sessionKey": own}), None, None),
            ("sessions_history", json!({"sessionKey": side}), None, Some(hidden(side))),
            (
                "sessions_history",
                json!({"sessionKey": "nobody"}),
                Some(error("No session found: nobody")),
                Some(hidden("nobody")),
            ),
            ("sessions_send", to(json!({"sessionKey": own})), None, None),
            ("sessions_send", to(json!({"sessionKey": side})), None, Some(hidden(side))),
            ("sessions_send", to(json!({"label": "own"})), None, None),
            ("sessions_send", to(json!({"label": "side"})), None, Some(no_label.clone())),
            (
                "sessions_send",
                to(json!({"label": "nobody"})),
                Some(error("No session found with label: nobody")),
                Some(no_label),
            ),
            (
                "sessions_send",
                to(json!({"label": "side", "agentId": "work"})),
                Some(forbidden(SENDS_DISABLED)),
                Some(foreign),
            ),
        ];
        for (tool, args, in_sight, confined) in rows {
            let mut told = both.by_model(tool, &args).await;
            let expect = if sees { in_sight } else { confined };
            match expect {
                Some(expect) => {
                    told.as_object_mut().unwrap().remove("runId");
                    assert_eq!(told, expect, "{visibility:?} {tool} {args}");
                }
                None => {
                    let is_told = told["status"] == "accepted" || told["messages"].is_array();
                    assert!(is_told, "{visibility:?} {tool} {args}: {told}");
                }
            }
        }
    }
}

/// A child's session is kept for a while after its end, then its transcript is put aside.
#[tokio::test]
async fn a_child_is_archived_when_its_time_has_come() {
    let model = delegating(json!({"task": "dig"}), |_| Reply::text("dug")).await;
    let config =
        json!({"agents": {"defaults": {"subagents": {"announceMode": "raw", "archiveAfterMinutes": 1}}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    let row = lists(&gateway, are_over).await.remove(0);
    assert_eq!(row["archiveAtMs"].as_i64().unwrap() - row["createdAt"].as_i64().unwrap(), 60_000);
    gateway.terminate().await.unwrap();
    let path = gateway.state_dir().join("subagents/runs.json");
    let mut document: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let run = row["runId"].as_str().unwrap();
    document["runs"][run]["archiveAtMs"] = json!(now_ms() - 1);
    std::fs::write(&path, document.to_string()).unwrap();
    gateway.start().await.unwrap();
    lists(&gateway, <[Value]>::is_empty).await;
    let mut client = gateway.client().await.unwrap();
    let rows = client.request("sessions.list", json!({})).await.unwrap();
    assert!(!rows.to_string().contains(":subagent:"), "{rows}");
    let files = std::fs::read_dir(sessions_dir(&gateway)).unwrap();
    let names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.contains(".jsonl.deleted.")), "{names:?}");
}

#[tokio::test]
async fn with_no_minutes_no_child_is_archived() {
    let model = delegating(json!({"task": "dig"}), |_| Reply::text("dug")).await;
    let config =
        json!({"agents": {"defaults": {"subagents": {"announceMode": "raw", "archiveAfterMinutes": 0}}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    let row = lists(&gateway, are_over).await.remove(0);
    assert_eq!(row["archiveAtMs"], json!(null), "{row}");
    // The next process looks for what is due at its start.
    gateway.terminate().await.unwrap();
    let path = gateway.state_dir().join("subagents/runs.json");
    let mut document: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let due = json!({
        "runId": "due", "childSessionKey": "agent:main:subagent:due", "requesterSessionKey": "agent:main:main",
        "requesterDisplayKey": "main", "task": "dig", "cleanup": "keep", "createdAt": 1, "endedAt": 2,
        "cleanupHandled": true, "cleanupCompletedAt": 3, "archiveAtMs": now_ms() - 1,
    });
    document["runs"]["due"] = due;
    std::fs::write(&path, document.to_string()).unwrap();
    gateway.start().await.unwrap();
    lists(&gateway, |rows| rows.len() == 1 && rows[0]["runId"] == row["runId"]).await;
    let mut client = gateway.client().await.unwrap();
    let rows = client.request("sessions.list", json!({"spawnedBy": "main"})).await.unwrap();
    assert_eq!(rows["sessions"][0]["key"], row["childSessionKey"], "{rows}");
}
