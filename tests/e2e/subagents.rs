//! Sub-agents: started by a model, told of once, whatever dies in between (spec `sessions.md` §8.4–8.6, 8.9).

use std::time::{Duration, Instant};

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, ScriptedCall, ScriptedUsage, Step};
use openclaw_testkit::telegram::{CallFault, TelegramServer, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::config::merge;
use crate::support::connect::with_scopes;
use crate::support::conversation::{end, send, sessions_dir, text_of, turn};
use crate::support::subagents::{
    PATIENCE, announced, announces_are_accepted, are_over, delegating, is_child, listed, lists,
};
use crate::support::telegram::{bot, open};
use crate::support::tools_invoke::invoke;

/// A child that digs and says so in its step.
fn digs(request: &Captured) -> Reply {
    if is_step(request) { Reply::text("Result: a hole\nNotes: mind it") } else { Reply::text("dug") }
}

fn is_step(request: &Captured) -> bool {
    request.last_user_text().contains("Sub-agent announce step.")
}

/// The answer of the tool, as the model was told.
fn answer_of(model: &ModelServer) -> Value {
    answers_of(model).pop().unwrap()
}

fn answers_of(model: &ModelServer) -> Vec<Value> {
    let requests = model.requests();
    let told = requests.iter().rev().find(|request| request.ends_with_tool_result()).unwrap();
    let results =
        told.body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    results.map(|result| serde_json::from_str(result["content"].as_str().unwrap()).unwrap()).collect()
}

/// The entries of the main session's transcript that another session sent.
fn told_by_others(gateway: &GatewayUnderTest, key: &str) -> Vec<Value> {
    let store = std::fs::read_to_string(sessions_dir(gateway).join("sessions.json")).unwrap();
    let store: Value = serde_json::from_str(&store).unwrap();
    let id = store[key]["sessionId"].as_str().unwrap_or_else(|| panic!("no {key} in {store}"));
    let transcript = std::fs::read_to_string(sessions_dir(gateway).join(format!("{id}.jsonl"))).unwrap();
    let entries = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.filter(|entry| entry["message"]["provenance"]["kind"] == "inter_session").collect()
}

#[tokio::test]
async fn the_tokens_of_a_child_and_of_the_step_that_words_its_result_are_added_up() {
    let model = delegating(json!({"task": "dig a hole"}), |request| {
        let (input, output) = if is_step(request) { (50, 5) } else { (700, 20) };
        digs(request).usage(ScriptedUsage { input, output, ..ScriptedUsage::default() })
    })
    .await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate it", "r1").await;
    let key = answer_of(&model)["childSessionKey"].as_str().unwrap().to_owned();
    let told = announced(&mut client).await;
    assert!(told.contains("(in 750 / out 25)"), "{told}");
    lists(&gateway, are_over).await;
    // The file follows within seconds.
    gateway.terminate().await.unwrap();
    let store = std::fs::read_to_string(sessions_dir(&gateway).join("sessions.json")).unwrap();
    let row = &serde_json::from_str::<Value>(&store).unwrap()[&key];
    assert_eq!((&row["inputTokens"], &row["outputTokens"]), (&json!(750), &json!(25)), "{row}");
}

#[tokio::test]
async fn a_child_works_by_itself_and_its_end_is_told_where_it_was_asked_for() {
    let task = json!({"task": "dig a hole", "label": "digger"});
    let model = delegating(task, digs).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "delegate it", "r1").await, "It is being done.");
    let accepted = answer_of(&model);
    let (key, run) = (accepted["childSessionKey"].as_str().unwrap(), accepted["runId"].as_str().unwrap());
    assert_eq!(accepted["status"], "accepted", "{accepted}");
    assert!(key.starts_with("agent:main:subagent:") && run.len() == 36, "{accepted}");

    let told = announced(&mut client).await;
    let (triple, stats) = told.split_once("\n\n").unwrap();
    assert_eq!(triple, "Status: success\nResult: a hole\nNotes: mind it");
    assert!(stats.starts_with("Stats: runtime ") && stats.contains(" • tokens "), "{stats}");
    assert!(
        stats.contains(&format!(" • sessionKey {key} • sessionId ")) && stats.ends_with(".jsonl"),
        "{stats}"
    );

    let rows = lists(&gateway, are_over).await;
    let row = &rows[0];
    assert_eq!((&row["runId"], &row["childSessionKey"]), (&json!(run), &json!(key)));
    assert_eq!(row["requesterSessionKey"], "agent:main:main");
    assert_eq!((&row["requesterDisplayKey"], &row["cleanup"]), (&json!("main"), &json!("keep")));
    assert_eq!(row["requesterOrigin"], json!({"channel": "webchat"}));
    assert_eq!((&row["outcome"], &row["announced"]), (&json!({"status": "ok"}), &json!({"status": "sent"})));
    assert_eq!(row["archiveAtMs"].as_i64().unwrap() - row["createdAt"].as_i64().unwrap(), 3_600_000);

    // Task of the child, and its rights.
    let requests = model.requests();
    let child = requests.iter().find(|request| is_child(request)).unwrap();
    let prompt = child.messages()[0].to_string();
    for part in [
        "## Your Role",
        "dig a hole",
        "## Rules",
        "## Output Format",
        "## What You DON'T Do",
        "## Session Context",
        "- Label: digger",
        "- Requester session: agent:main:main.",
        "- Requester channel: webchat.",
        &format!("- Your session: {key}."),
    ] {
        assert!(prompt.contains(part), "{part} is missing in {prompt}");
    }
    assert!(!prompt.contains("## Heartbeats") && !prompt.contains("## Silent Replies"), "{prompt}");
    assert!(requests[0].tool_names().contains(&"sessions_spawn".to_owned()));
    assert!(!child.tool_names().iter().any(|name| name.starts_with("session")), "{:?}", child.tool_names());
    assert!(child.tool_names().contains(&"exec".to_owned()));

    let rows = client.request("sessions.list", json!({"spawnedBy": "main"})).await.unwrap();
    assert_eq!(rows["sessions"][0]["key"], key, "{rows}");
    let list = turn(&mut client, "main", "/subagents", "r2").await;
    let line = format!("1) done · digger · just now · run {} · {key}", &run[..8]);
    assert_eq!(list, format!("🧭 Subagents (current session)\nActive: 0 · Done: 1\n{line}"));
    let info = turn(&mut client, "main", "/subagents info last", "r3").await;
    assert!(
        info.contains("Status: done\nLabel: digger\nTask: dig a hole\n") && info.contains("Announce: sent"),
        "{info}"
    );
    let log = turn(&mut client, "main", "/subagents log 1", "r4").await;
    assert!(
        log.starts_with("📜 Subagent log: digger\nUser: ") && log.contains("\nAssistant: dug\n"),
        "{log}"
    );
    let sent = turn(&mut client, "main", &format!("/subagents send {} and another", &run[..6]), "r5").await;
    assert_eq!(sent, "dug");
    for (text, expect) in [
        ("/subagents stop 1", "digger is already finished."),
        ("/subagents stop all", "⚙️ Stopped 0 subagents."),
        ("/subagents stop", "🧭 Usage: /subagents stop <id|#|all>"),
        ("/subagents log", "🧭 Usage: /subagents log <id|#> [limit] [tools]"),
        ("/subagents send 1", "🧭 Usage: /subagents send <id|#> <message>"),
        ("/subagents info 7", "⚠️ Invalid subagent index: 7"),
        ("/subagents info zz", "⚠️ Unknown subagent id: zz"),
    ] {
        assert_eq!(turn(&mut client, "main", text, text).await, expect, "{text}");
    }
    // The agent knows of it, once.
    gateway.terminate().await.unwrap();
    let told = told_by_others(&gateway, "agent:main:main");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["message"]["provenance"]["sourceSessionKey"], key);
}

/// Later messages are not held up by the wait for the answer to `/subagents send`: the reply is
/// waited for only while nobody wants anything else.
#[tokio::test]
async fn a_message_to_a_child_holds_up_nothing_that_comes_behind_it() {
    let (again, main) = (Gate::new(), Gate::new());
    let (held, busy) = (again.clone(), main.clone());
    let model = delegating(json!({"task": "dig"}), move |request| match request.last_user_text() {
        said if said.contains("and another") => Reply::text("dug more").after(Step::Wait(held.clone())),
        said if said.contains("think hard") => Reply::text("thought").after(Step::Wait(busy.clone())),
        said if said.contains("hello") => Reply::text("hi"),
        _ => digs(request),
    })
    .await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate it", "r1").await;
    lists(&gateway, are_over).await;
    let until = async |text: &'static str, times: usize| {
        let asked = |request: &&Captured| request.last_user_text().contains(text);
        let begun = Instant::now();
        while model.requests().iter().filter(asked).count() < times {
            assert!(begun.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };

    // In its own turn: behind it a message to the agent.
    send(&mut client, "main", "/subagents send 1 and another", "s1").await;
    until("and another", 1).await;
    send(&mut client, "main", "/subagents send 1 and another", "s0").await;
    assert_eq!(turn(&mut client, "main", "hello", "r2").await, "hi");
    assert!(text_of(&end(&mut client, "s1").await["message"]).starts_with("⏳ Subagent still running (run "));

    // Beside a run: behind it a command, and the end of the run.
    send(&mut client, "main", "think hard", "r3").await;
    until("think hard", 1).await;
    send(&mut client, "main", "/subagents send 1 and another", "s2").await;
    assert!(turn(&mut client, "main", "/subagents", "r4").await.contains("Subagents (current session)"));
    assert!(text_of(&end(&mut client, "s2").await["message"]).starts_with("⏳"));
    send(&mut client, "main", "/subagents send 1 and another", "s3").await;
    main.open();
    assert_eq!(text_of(&end(&mut client, "r3").await["message"]), "thought");
    assert!(text_of(&end(&mut client, "s3").await["message"]).starts_with("⏳"));

    again.open();
    assert_eq!(turn(&mut client, "main", "/subagents send 1 and another", "s4").await, "dug more");
}

/// After a crash messages are taken up one at a time until each has begun. A command that waits has.
#[tokio::test]
async fn a_command_that_waits_holds_up_no_run_of_others_after_a_crash() {
    let (again, others) = (Gate::new(), Gate::new());
    let (held, busy) = (again.clone(), others.clone());
    let model = delegating(json!({"task": "dig"}), move |request| match request.last_user_text() {
        said if said.contains("and another") => Reply::text("dug more").after(Step::Wait(held.clone())),
        said if said.contains("think hard") => Reply::text("thought").after(Step::Wait(busy.clone())),
        _ => digs(request),
    })
    .await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate it", "r1").await;
    lists(&gateway, are_over).await;
    let asked = async |text: &str, times: usize| {
        let asked = |request: &&Captured| request.last_user_text().contains(text);
        let begun = Instant::now();
        while model.requests().iter().filter(asked).count() < times {
            assert!(begun.elapsed() < PATIENCE, "{text} {times}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    send(&mut client, "main", "/subagents send 1 and another", "s1").await;
    asked("and another", 1).await;
    send(&mut client, "agent:main:other", "think hard", "r2").await;
    asked("think hard", 1).await;
    gateway.crash_and_restart().await.unwrap();
    asked("think hard", 2).await;
    asked("and another", 2).await;
    let mut client = gateway.client().await.unwrap();
    others.open();
    assert_eq!(text_of(&end(&mut client, "r2").await["message"]), "thought");
    again.open();
    assert_eq!(text_of(&end(&mut client, "s1").await["message"]), "dug more");
}

#[tokio::test]
async fn what_may_not_be_is_refused() {
    let config = json!({
        "agents": {
            "list": [
                {"id": "main", "default": true, "subagents": {"allowAgents": ["work"]}},
                {"id": "work"}, {"id": "other"}, {"id": "lone"}, {"id": "free", "subagents": {"allowAgents": ["*"]}},
            ],
            "defaults": {"models": {"fake/fake-1": {}}},
        },
    });
    let rows = [
        (
            "main",
            json!({"task": " "}),
            json!({"status": "error", "tool": "sessions_spawn", "error": "task required"}),
        ),
        (
            "main",
            json!({"task": "t", "agentId": "other"}),
            json!({"status": "forbidden", "error": "agentId is not allowed for sessions_spawn (allowed: work)"}),
        ),
        (
            "lone",
            json!({"task": "t", "agentId": "main"}),
            json!({"status": "forbidden", "error": "agentId is not allowed for sessions_spawn (allowed: none)"}),
        ),
        (
            "free",
            json!({"task": "t", "agentId": "ghost"}),
            json!({"status": "error", "error": "unknown agent id \"ghost\""}),
        ),
        (
            "main",
            json!({"task": "t", "thinking": "banana"}),
            json!({"status": "error", "error":
                "Invalid thinking level \"banana\". Use one of: off, minimal, low, medium, high."}),
        ),
    ];
    let script = rows.clone();
    let model = ModelServer::answering(move |request| {
        let said = request.last_user_text();
        let row = script.iter().enumerate().find(|(n, _)| said.contains(&format!("row {n}")));
        match row {
            Some((_, (_, arguments, _))) if !request.ends_with_tool_result() => {
                Reply::tool("s1", "sessions_spawn", arguments)
            }
            Some(_) => Reply::text("well"),
            None if said.contains("bad model") && !request.ends_with_tool_result() => {
                Reply::tool("s2", "sessions_spawn", &json!({"task": "t", "model": "nobody/knows"}))
            }
            None => Reply::text("ok"),
        }
    })
    .await;
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (n, (agent, arguments, expect)) in rows.iter().enumerate() {
        turn(&mut client, &format!("agent:{agent}:main"), &format!("row {n}"), &format!("r{n}")).await;
        assert_eq!(answer_of(&model), *expect, "{agent} {arguments}");
    }
    turn(&mut client, "main", "bad model", "b1").await;
    let answer = answer_of(&model);
    assert_eq!(answer["status"], "error", "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("nobody/knows"), "{answer}");
    // Nothing is left of what was not started.
    let rows = client.request("sessions.list", json!({})).await.unwrap();
    assert!(!rows.to_string().contains(":subagent:"), "{rows}");
    assert_eq!(listed(&gateway), [Value::Null; 0]);
}

/// Runs with such a model fall back to another from the beginning.
#[tokio::test]
async fn a_model_without_a_credential_is_said_and_nobody_is_asked_for_it() {
    const WANTED: &str = "anthropic/claude-opus-4-6";
    let config = |subagents: Value| json!({"agents": {"defaults": {"models": {"fake/fake-1": {}, WANTED: {}}, "subagents": subagents}}});
    let why = format!("Model \"{WANTED}\" can't be used. There is no credential for anthropic. ");

    let model = delegating(json!({"task": "dig", "model": WANTED}), digs).await;
    let asked = gateway()
        .fake_model(&model.v1())
        .config(config(json!({"announceMode": "raw"})))
        .start()
        .await
        .unwrap();
    let mut client = asked.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    let answer = answer_of(&model);
    assert_eq!(answer["status"], "error", "{answer}");
    assert!(answer["error"].as_str().unwrap().starts_with(&why), "{answer}");
    assert_eq!(listed(&asked), [Value::Null; 0], "nothing is left of what was not started");

    let model = delegating(json!({"task": "dig"}), digs).await;
    let wanted = config(json!({"announceMode": "raw", "model": WANTED}));
    let configured = gateway().fake_model(&model.v1()).config(wanted).start().await.unwrap();
    let mut client = configured.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    let answer = answer_of(&model);
    assert_eq!((&answer["status"], &answer["modelApplied"]), (&json!("accepted"), &json!(false)), "{answer}");
    assert!(answer["warning"].as_str().unwrap().starts_with(&why), "{answer}");
    let told = announced(&mut client).await;
    assert!(told.starts_with("Status: success\nResult: dug\nNotes: -\n\nStats: "), "{told}");
}

#[tokio::test]
async fn a_child_is_what_is_asked_for_or_configured() {
    let config = json!({
        "agents": {
            "list": [
                {"id": "main", "default": true, "subagents": {"allowAgents": ["*"]}},
                {"id": "work", "subagents": {"model": "nobody/knows"}},
            ],
            "defaults": {"models": {"fake/fake-1": {}}, "subagents": {"announceMode": "raw"}},
        },
    });
    let arguments = json!({"task": "dig", "agentId": "work", "cleanup": "delete"});
    let model = delegating(arguments, digs).await;
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    let answer = answer_of(&model);
    assert_eq!((&answer["status"], &answer["modelApplied"]), (&json!("accepted"), &json!(false)), "{answer}");
    assert!(answer["warning"].as_str().unwrap().contains("nobody/knows"), "{answer}");
    let key = answer["childSessionKey"].as_str().unwrap().to_owned();
    assert!(key.starts_with("agent:work:subagent:"), "{key}");
    let told = announced(&mut client).await;
    assert!(told.starts_with("Status: success\nResult: dug\nNotes: -\n\nStats: "), "{told}");
    assert!(!model.requests().iter().any(is_step), "it is told without a turn of the child");
    // The child is deleted once its end is told.
    lists(&gateway, <[Value]>::is_empty).await;
    let rows = client.request("sessions.list", json!({})).await.unwrap();
    assert!(!rows.to_string().contains(&key), "{rows}");
    let files = std::fs::read_dir(gateway.state_dir().join("agents/work/sessions")).unwrap();
    let names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.contains(".jsonl.deleted.")), "{names:?}");
}

#[tokio::test]
async fn children_that_fail_are_told_of_by_the_runtimes_word() {
    let model = ModelServer::answering(|request| {
        let said = request.last_user_text();
        let spawns = |id: &str, task: &str, more: Value| {
            let mut arguments = json!({"task": task});
            merge(&mut arguments, more);
            ScriptedCall::new(id, "sessions_spawn", &arguments)
        };
        match () {
            () if said.contains("delegate") && !request.ends_with_tool_result() => Reply::tools([
                spawns("a", "fail now", json!({})),
                spawns("b", "take for ever", json!({"runTimeoutSeconds": 1})),
                spawns("c", "be quiet", json!({})),
                spawns("d", "lie", json!({})),
                spawns("e", "print much", json!({})),
            ]),
            () if said.contains("delegate") => Reply::text("It is being done."),
            () if said.contains("fail now") => {
                Reply::openai_error(400, "invalid_request_error", "the model is out of order")
            }
            () if said.contains("take for ever") => Reply::never(),
            () if said.contains("be quiet") => Reply::text("ANNOUNCE_SKIP"),
            () if said.contains("lie") => Reply::text("Status: failed"),
            () if said.contains("print much") => Reply::text(&"x".repeat(200_000)),
            () => Reply::text("?"),
        }
    })
    .await;
    let config = json!({"agents": {"defaults": {"subagents": {"announceMode": "raw"}}}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(announced(&mut client).await);
    }
    told.sort();
    assert!(told[0].starts_with("Status: error\nResult: (not available)\nNotes: "), "{}", told[0]);
    assert!(told[0].contains("the model is out of order"), "{}", told[0]);
    assert!(
        told[1].starts_with("Status: success\nResult: Status: failed\nNotes: -\n\nStats: "),
        "{}",
        told[1]
    );
    assert!(
        told[2].starts_with("Status: success\nResult: xxx") && told[2].len() < 17_000,
        "{}",
        told[2].len()
    );
    assert!(
        told[3].starts_with("Status: timeout\nResult: (not available)\nNotes: -\n\nStats: "),
        "{}",
        told[3]
    );
    let rows = lists(&gateway, are_over).await;
    let of = |task: &str| rows.iter().find(|row| row["task"] == task).unwrap().clone();
    assert_eq!(of("be quiet")["announced"], json!({"status": "skipped"}));
    assert_eq!(of("take for ever")["outcome"], json!({"status": "timeout"}));
    assert_eq!(of("fail now")["outcome"]["status"], "error");
}

/// The posts of a chat that tell of a child.
fn posts(server: &TelegramServer) -> Vec<String> {
    let calls = server.calls("sendMessage").into_iter();
    let texts = calls.map(|call| call.params["text"].as_str().unwrap_or_default().to_owned());
    texts.filter(|text| text.contains("Status:")).collect()
}

#[tokio::test]
async fn a_child_is_told_of_once_whenever_the_gateway_dies() {
    let (works, words) = (Gate::new(), Gate::new());
    let (working, wording) = (works.clone(), words.clone());
    let model = delegating(json!({"task": "dig"}), move |request| match is_step(request) {
        true => digs(request).after(Step::Wait(wording.clone())),
        false => digs(request).after(Step::Wait(working.clone())),
    })
    .await;
    let server = TelegramServer::start().await;
    let mut gateway = bot(&server, &model, open(), json!({"messages": {"responsePrefix": ""}})).await;
    server.push(private_message(7, "delegate"));
    server.nth_call("sendMessage", 1).await;
    lists(&gateway, |rows| rows.len() == 1).await;
    let until = async |what: fn(&Captured) -> bool, times: usize| {
        let begun = Instant::now();
        while model.requests().iter().filter(|request| what(request)).count() < times {
            assert!(begun.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let is_work: fn(&Captured) -> bool = |request| is_child(request) && !is_step(request);
    // While it works.
    until(is_work, 1).await;
    gateway.crash_and_restart().await.unwrap();
    until(is_work, 2).await;
    works.open();
    // While it words what is told.
    until(is_step, 1).await;
    gateway.crash_and_restart().await.unwrap();
    until(is_step, 2).await;
    // While the platform is down.
    for _ in 0..3 {
        server.fail("sendMessage", CallFault::Refuse(502, "Bad Gateway"));
    }
    words.open();
    let rows = lists(&gateway, are_over).await;
    assert_eq!(rows[0]["announced"], json!({"status": "sent"}));
    gateway.crash_and_restart().await.unwrap();
    server.heal();
    let begun = Instant::now();
    while posts(&server).is_empty() || server.has_faults() {
        assert!(begun.elapsed() < PATIENCE, "{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Nothing is said again, also by the next process.
    gateway.crash_and_restart().await.unwrap();
    server.push(private_message(7, "thanks"));
    let begun = Instant::now();
    while !server.calls("sendMessage").iter().any(|call| call.params["text"] == "dug") {
        assert!(begun.elapsed() < PATIENCE, "{:?}", server.calls("sendMessage"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gateway.terminate().await.unwrap();
    let told = told_by_others(&gateway, "agent:main:main");
    assert_eq!(told.len(), 1, "{told:?}");
    let delivered: Vec<String> =
        server.made().iter().filter_map(|made| made["text"].as_str().map(str::to_owned)).collect();
    let delivered: Vec<&String> = delivered.iter().filter(|text| text.contains("Status:")).collect();
    assert_eq!(delivered.len(), 1, "{delivered:?}");
}

#[tokio::test]
async fn what_an_older_process_left_is_told() {
    let model = ModelServer::answering(|_| Reply::text("?")).await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let dir = gateway.state_dir().join("subagents");
    std::fs::create_dir_all(&dir).unwrap();
    let now = 1_764_000_000_000_i64;
    let run = json!({"runId": "old", "childSessionKey": "agent:main:subagent:old", "requesterSessionKey": "main",
        "requesterDisplayKey": "main", "task": "dig", "cleanup": "keep", "createdAt": now, "startedAt": now,
        "requesterChannel": "webchat"});
    let ended = json!({"runId": "ended", "childSessionKey": "agent:main:subagent:ended", "requesterSessionKey": "agent:main:main",
        "requesterDisplayKey": "main", "task": "dig", "cleanup": "keep", "createdAt": now, "startedAt": now, "endedAt": now + 5_000});
    let sessions = sessions_dir(&gateway);
    std::fs::create_dir_all(&sessions).unwrap();
    let row = json!({"agent:main:subagent:ended": {"sessionId": "e1", "updatedAt": now}});
    std::fs::write(sessions.join("sessions.json"), row.to_string()).unwrap();
    std::fs::write(sessions.join("e1.jsonl"), "{\"type\":\"session\",\"version\":3,\"id\":\"e1\"}\n")
        .unwrap();
    let document = json!({"version": 1, "runs": {"old": run, "ended": ended, "bad": 7}});
    std::fs::write(dir.join("runs.json"), document.to_string()).unwrap();
    gateway.start().await.unwrap();
    let rows = lists(&gateway, are_over).await;
    assert_eq!(rows[0]["outcome"], json!({"status": "unknown"}));
    assert_eq!(rows[1]["outcome"], json!({"status": "error", "error": "gateway restarted"}));
    for row in &rows {
        assert_eq!(row["announced"], json!({"status": "sent"}));
    }
    let names = || {
        let files = std::fs::read_dir(&dir).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert!(names().iter().any(|name| name.starts_with("runs.json.damaged-")), "{:?}", names());
    let mut client = gateway.client().await.unwrap();
    let history = crate::support::conversation::history(&mut client, "main").await;
    let has = |begin: &str, end: &str| {
        history.iter().any(|said| said.starts_with(begin) && said.trim_end().ends_with(end))
    };
    assert!(
        has("assistant: Status: error\nResult: (not available)\nNotes: gateway restarted", ""),
        "{history:?}"
    );
    let transcript = format!("sessionId e1 • transcript {}", sessions.join("e1.jsonl").display());
    assert!(has("assistant: Status: unknown\nResult: (not available)\nNotes: -", &transcript), "{history:?}");
    // Half of a file is kept too, and the gateway starts.
    gateway.kill().await.unwrap();
    std::fs::write(dir.join("runs.json"), "{\"version\": 2, \"runs\": {\"a\"").unwrap();
    gateway.start().await.unwrap();
    gateway.logged("the list of sub-agents is damaged").await.unwrap();
}

#[tokio::test]
async fn the_requester_may_tell_it_in_its_own_words() {
    let model = delegating(json!({"task": "dig", "label": "digger"}), |request| {
        let said = request.last_user_text();
        match said.contains("A subagent task") {
            true => Reply::text("The hole is there."),
            false => digs(request),
        }
    })
    .await;
    let server = TelegramServer::start().await;
    let config = json!({"agents": {"defaults": {"subagents": {"announceMode": "summary"}}}});
    let mut gateway = bot(&server, &model, open(), config).await;
    server.push(private_message(7, "delegate"));
    server.nth_call("sendMessage", 1).await;
    let told = server.nth_call("sendMessage", 2).await;
    assert_eq!(told.params["text"], "The hole is there.");
    let requests = model.requests();
    let trigger =
        requests.iter().map(Captured::last_user_text).find(|said| said.contains("A subagent task")).unwrap();
    let begin = trigger.find("A subagent task").unwrap();
    let (head, rest) = trigger[begin..].split_once("Stats: ").unwrap();
    assert_eq!(
        head,
        "A subagent task \"digger\" just completed successfully.\n\nFindings:\nStatus: success\nResult: dug\nNotes: -\n\n"
    );
    assert!(
        rest.contains("\n\nSummarize this naturally for the user. Keep it brief (1-2 sentences)."),
        "{rest}"
    );
    assert!(rest.contains("You can respond with NO_REPLY if no announcement is needed"), "{rest}");
    lists(&gateway, are_over).await;
    gateway.terminate().await.unwrap();
    assert_eq!(told_by_others(&gateway, "agent:main:main").len(), 1);
}

#[tokio::test]
async fn what_is_told_a_busy_requester_waits_and_is_told_together() {
    let busy = Gate::new();
    let held = busy.clone();
    let model = ModelServer::answering(move |request| {
        let said = request.last_user_text();
        let spawn = |id: &str| ScriptedCall::new(id, "sessions_spawn", &json!({"task": format!("dig {id}")}));
        match () {
            () if said.contains("subagent task") => Reply::text("Both are done."),
            () if said.contains("delegate") && !request.ends_with_tool_result() => {
                Reply::tools([spawn("one"), spawn("two")])
            }
            () if said.contains("delegate") => Reply::text("Wait.").after(Step::Wait(held.clone())),
            () => Reply::text("dug"),
        }
    })
    .await;
    let config = json!({
        "agents": {"defaults": {"subagents": {"announceMode": "summary"}}},
        "messages": {"queue": {"mode": "collect", "debounceMs": 0}},
    });
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "delegate", "r1").await;
    let rows =
        lists(&gateway, |rows| rows.len() == 2 && rows.iter().all(|row| row["endedAt"].is_number())).await;
    // Both wait behind the run.
    announces_are_accepted(&mut client, &rows).await;
    busy.open();
    end(&mut client, "r1").await;
    assert_eq!(announced(&mut client).await, "Both are done.");
    lists(&gateway, are_over).await;
    let asked = model
        .requests()
        .iter()
        .map(Captured::last_user_text)
        .find(|said| said.contains("subagent task"))
        .unwrap();
    assert!(asked.contains("[Queued announce messages while agent was busy]\n\n---\nQueued #1\n"), "{asked}");
    assert!(
        asked.contains("\n\n---\nQueued #2\n") && asked.matches("A subagent task").count() == 2,
        "{asked}"
    );
}

#[tokio::test]
async fn a_stop_stops_the_children_and_says_how_many() {
    let model = ModelServer::answering(|request| {
        let said = request.last_user_text();
        let spawn = |id: &str| ScriptedCall::new(id, "sessions_spawn", &json!({"task": format!("dig {id}")}));
        match () {
            () if said.contains("delegate") && !request.ends_with_tool_result() => {
                Reply::tools([spawn("one"), spawn("two")])
            }
            () if said.contains("delegate") => Reply::text("It is being done."),
            () => Reply::never(),
        }
    })
    .await;
    let server = TelegramServer::start().await;
    let mut gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(7, "delegate"));
    server.nth_call("sendMessage", 1).await;
    lists(&gateway, |rows| rows.len() == 2).await;
    server.push(private_message(7, "/stop"));
    let told = server.nth_call("sendMessage", 2).await;
    assert_eq!(told.params["text"], "⚙️ Agent was aborted. Stopped 2 sub-agents.");
    let rows = lists(&gateway, are_over).await;
    for row in &rows {
        assert_eq!(row["outcome"], json!({"status": "error", "error": "stopped"}), "{row}");
        assert_eq!(row["announced"], json!({"status": "skipped", "error": "stopped"}), "{row}");
    }
    server.push(private_message(7, "/stop"));
    let told = server.nth_call("sendMessage", 3).await;
    assert_eq!(told.params["text"], "⚙️ Agent was aborted.");
    // The children stay stopped.
    gateway.crash_and_restart().await.unwrap();
    assert!(are_over(&listed(&gateway)));
    assert_eq!(posts(&server), [""; 0]);
}

#[tokio::test]
async fn a_requester_that_is_deleted_is_not_made_again() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = delegating(json!({"task": "dig"}), move |request| match is_step(request) {
        true => digs(request).after(Step::Wait(held.clone())),
        false => digs(request),
    })
    .await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let requester = "agent:main:side";
    turn(&mut client, requester, "delegate", "r1").await;
    lists(&gateway, |rows| rows.iter().any(|row| row["endedAt"].is_number())).await;
    client.request("sessions.delete", json!({"key": requester})).await.unwrap();
    gate.open();
    let rows = lists(&gateway, are_over).await;
    assert_eq!(rows[0]["announced"], json!({"status": "failed", "error": "session agent:main:side is gone"}));
    let sessions = client.request("sessions.list", json!({})).await.unwrap();
    let mut rows = sessions["sessions"].as_array().unwrap().iter();
    assert!(rows.all(|row| row["key"] != requester), "{sessions}");
}

#[tokio::test]
async fn a_requester_that_began_anew_is_told_all_the_same() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = delegating(json!({"task": "dig"}), move |request| match is_step(request) {
        true => digs(request).after(Step::Wait(held.clone())),
        false => digs(request),
    })
    .await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    lists(&gateway, |rows| rows.iter().any(|row| row["endedAt"].is_number())).await;
    client.request("sessions.reset", json!({"key": "main"})).await.unwrap();
    gate.open();
    assert!(announced(&mut client).await.starts_with("Status: success\nResult: a hole"));
    lists(&gateway, are_over).await;
    gateway.terminate().await.unwrap();
    assert_eq!(told_by_others(&gateway, "agent:main:main").len(), 1);
}

#[tokio::test]
async fn no_more_children_than_are_allowed() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |request| {
        let said = request.last_user_text();
        let spawn = |id: &str| ScriptedCall::new(id, "sessions_spawn", &json!({"task": format!("dig {id}")}));
        match () {
            () if said.contains("delegate") && !request.ends_with_tool_result() => {
                Reply::tools(["a", "b", "c"].map(spawn))
            }
            () if said.contains("delegate") => Reply::text("It is being done."),
            () => Reply::text("dug").after(Step::Wait(held.clone())),
        }
    })
    .await;
    let config = json!({"agents": {"defaults": {"subagents":
        {"announceMode": "raw", "maxChildrenPerAgent": 2, "maxConcurrent": 1}}}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    let answers = answers_of(&model);
    let statuses: Vec<&str> = answers.iter().map(|answer| answer["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["accepted", "accepted", "forbidden"], "{answers:?}");
    assert!(
        answers[2]["error"].as_str().unwrap().contains("agents.defaults.subagents.maxChildrenPerAgent: 2")
    );
    // The two of the requester, and the one child that is at work.
    model.arrived(3).await;
    let list = turn(&mut client, "main", "/subagents", "r2").await;
    assert!(list.contains("Active: 2 · Done: 0") && list.matches("running").count() == 1, "{list}");
    assert!(list.contains(") queued · "), "{list}");
    let stopped = turn(&mut client, "main", "/subagents stop 1", "r3").await;
    assert!(stopped.starts_with("⚙️ Stop requested for dig "), "{stopped}");
    gate.open();
    announced(&mut client).await;
    let rows = lists(&gateway, are_over).await;
    let told: Vec<&Value> = rows.iter().map(|row| &row["announced"]["status"]).collect();
    assert!(told.contains(&&json!("sent")) && told.contains(&&json!("skipped")), "{told:?}");
}

#[tokio::test]
async fn what_is_posted_does_not_wait_for_a_busy_requester() {
    let busy = Gate::new();
    let held = busy.clone();
    let model = ModelServer::answering(move |request| {
        let said = request.last_user_text();
        match said.contains("delegate") {
            true if !request.ends_with_tool_result() => {
                Reply::tool("s1", "sessions_spawn", &json!({"task": "dig"}))
            }
            true => Reply::text("Wait.").after(Step::Wait(held.clone())),
            false => digs(request),
        }
    })
    .await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "delegate", "r1").await;
    assert!(announced(&mut client).await.starts_with("Status: success\nResult: a hole"));
    busy.open();
    let ended = end(&mut client, "r1").await;
    assert_eq!(ended["message"]["content"][0]["text"], "Wait.", "{ended}");
    lists(&gateway, are_over).await;
    gateway.terminate().await.unwrap();
    assert_eq!(told_by_others(&gateway, "agent:main:main").len(), 1);
}

#[tokio::test]
async fn what_is_told_is_steered_into_a_run_with_its_rights_where_people_steer() {
    let busy = Gate::new();
    let held = busy.clone();
    let model = ModelServer::answering(move |request| {
        let said = request.last_user_text();
        match () {
            () if said.contains("A subagent task") => Reply::text("And it is done."),
            () if said.contains("delegate") && !request.ends_with_tool_result() => {
                Reply::tool("s1", "sessions_spawn", &json!({"task": "dig"}))
            }
            () if said.contains("delegate") => Reply::text("Wait.").after(Step::Wait(held.clone())),
            () => Reply::text("dug"),
        }
    })
    .await;
    let config = json!({
        "agents": {"defaults": {"subagents": {"announceMode": "summary"}}},
        "messages": {"queue": {"mode": "steer"}},
    });
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    // The owner's own words have tools that nothing has which they cause.
    let mut client = with_scopes(&gateway, &["operator.read", "operator.write"]).await;
    send(&mut client, "main", "delegate", "r1").await;
    // The child's own stream ends empty: it is part of the run under way.
    assert_eq!(announced(&mut client).await, "");
    busy.open();
    let ended = end(&mut client, "r1").await;
    assert!(ended["message"].to_string().contains("And it is done."), "{ended}");
    let rows = lists(&gateway, are_over).await;
    assert_eq!(rows[0]["announced"], json!({"status": "sent"}));
}

#[tokio::test]
async fn a_stop_of_a_client_stops_them_too() {
    let model = ModelServer::answering(|request| {
        let said = request.last_user_text();
        match said.contains("delegate") {
            true if !request.ends_with_tool_result() => {
                Reply::tool("s1", "sessions_spawn", &json!({"task": "dig"}))
            }
            true => Reply::text("It is being done."),
            false => Reply::never(),
        }
    })
    .await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (n, stop) in ["/stop", "abort", "delete", "one"].into_iter().enumerate() {
        let key = format!("agent:main:s{n}");
        turn(&mut client, &key, "delegate", &format!("r{n}")).await;
        lists(&gateway, |rows| rows.len() == n + 1).await;
        match stop {
            "/stop" => drop(
                client
                    .request("chat.send", crate::support::conversation::message(&key, "/stop", "s"))
                    .await
                    .unwrap(),
            ),
            "abort" => drop(client.request("chat.abort", json!({"sessionKey": key})).await.unwrap()),
            "delete" => drop(client.request("sessions.delete", json!({"key": key})).await.unwrap()),
            _ => {
                let told = turn(&mut client, &key, "/subagents stop last", "one").await;
                assert_eq!(told, "⚙️ Stop requested for dig.");
            }
        }
        let rows = lists(&gateway, are_over).await;
        let row = rows.iter().find(|row| row["requesterSessionKey"] == key).unwrap();
        assert_eq!(row["announced"], json!({"status": "skipped", "error": "stopped"}), "{stop}: {row}");
    }
}

#[tokio::test]
async fn a_child_of_a_session_that_nobody_has_used_is_told_of_there() {
    let model = ModelServer::answering(|_| Reply::text("dug")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let body = json!({"tool": "sessions_spawn", "args": {"task": "dig"}, "sessionKey": "agent:main:ci"});
    let (status, told) = invoke(gateway.port(), &body).await;
    assert_eq!((status, &told["result"]["details"]["status"]), (200, &json!("accepted")), "{told}");
    let rows = lists(&gateway, are_over).await;
    assert_eq!(rows[0]["announced"], json!({"status": "sent"}), "{rows:?}");
    let mut client = gateway.client().await.unwrap();
    let said = crate::support::conversation::history(&mut client, "agent:main:ci").await;
    assert!(said[0].starts_with("assistant: Status: success\nResult: dug"), "{said:?}");
}
