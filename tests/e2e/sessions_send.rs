//! Messages from one session to another, and the talk that follows: in which order, through full
//! lanes, in circles, and across the end of the process.

use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, forum_message};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{end, send, sessions_dir, turn};
use crate::support::session_tools::{system, tool_said};
use crate::support::sessions_send::{TOPIC, call, model, step, with_topic};
use crate::support::tools_invoke::invoke;

/// The results of the calls of a run, from the last request that has one.
fn result(model: &ModelServer, of: &str) -> Value {
    let requests = model.requests();
    let own = |request: &&Captured| {
        request.ends_with_tool_result()
            && request.last_user_text().contains(&format!("CALL sessions_send {of}"))
    };
    let said = tool_said(requests.iter().find(own).unwrap_or_else(|| panic!("no result of {of}")));
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

async fn start(model: &ModelServer, config: Value) -> (GatewayUnderTest, WsClient) {
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let client = gateway.client().await.unwrap();
    (gateway, client)
}

/// The transcript of a session, line by line.
fn transcript(gateway: &GatewayUnderTest, id: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(sessions_dir(gateway).join(format!("{id}.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn five_turns_are_seven_runs_and_each_says_where_it_is_from() {
    let model =
        model(|step, _| step.starts_with("turn").then(|| Reply::text(&format!("answer to {step}")))).await;
    let (gateway, mut client) = start(&model, json!({})).await;
    let answer = turn(&mut client, "main", &call("ping", "agent:main:side", 20), "r").await;
    assert_eq!(answer, "done");
    model.arrived(9).await;
    let steps: Vec<String> = model.requests().iter().map(step).collect();
    let talk: Vec<&str> = steps.iter().map(String::as_str).filter(|step| *step != "plain").collect();
    assert_eq!(talk, ["primary", "turn 1", "turn 2", "turn 3", "turn 4", "turn 5", "announce"]);
    let announce = model.requests().into_iter().find(|request| step(request) == "announce").unwrap();
    let context = system(&announce);
    for line in ["Original request: ping", "Round 1 reply: pong", "Latest reply: answer to turn 5"] {
        assert!(context.contains(line), "{line}: {context}");
    }
    let told = result(&model, "");
    assert_eq!((&told["status"], &told["reply"]), (&json!("ok"), &json!("pong")), "{told}");

    // Each message between sessions says that it is one.
    let run = format!("{}:announce", told["runId"].as_str().unwrap());
    let waited = client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap();
    assert_eq!(waited["status"], "ok", "{waited}");
    for (session, from, expect) in [("main", "agent:main:side", 3), ("agent:main:side", "agent:main:main", 4)]
    {
        let history = client.request("chat.history", json!({"sessionKey": session})).await.unwrap();
        let lines = transcript(&gateway, history["sessionId"].as_str().unwrap());
        let provenances: Vec<&Value> = lines
            .iter()
            .map(|line| &line["message"]["provenance"])
            .filter(|value| !value.is_null())
            .collect();
        assert_eq!(provenances.len(), expect, "{session}");
        for provenance in provenances {
            assert_eq!(
                (&provenance["kind"], &provenance["sourceSessionKey"], &provenance["sourceTool"]),
                (&json!("inter_session"), &json!(from), &json!("sessions_send"))
            );
        }
    }
    for request in model.requests() {
        assert!(!request.body.to_string().contains("inter_session"), "the provider is not told");
    }
}

#[tokio::test]
async fn only_the_word_alone_ends_the_turns() {
    for (word, turns) in [
        ("REPLY_SKIP", 1),
        ("\nREPLY_SKIP \n", 1),
        ("\"REPLY_SKIP\"", 1),
        ("I would say REPLY_SKIP now.", 2),
        ("NO_REPLY", 1),
    ] {
        let model = model(move |step, _| (step == "turn 1").then(|| Reply::text(word))).await;
        let (_gateway, mut client) = start(&model, json!({})).await;
        turn(&mut client, "main", &call("ping", "agent:main:side", 20), "r").await;
        let count = 3 + turns + 1;
        model.arrived(count).await;
        let steps: Vec<String> = model.requests().iter().map(step).collect();
        assert_eq!(steps.iter().filter(|step| step.starts_with("turn")).count(), turns, "{word:?} {steps:?}");
        assert_eq!(steps.iter().filter(|step| *step == "announce").count(), 1, "{word:?} {steps:?}");
    }
}

#[tokio::test]
async fn the_word_that_ends_the_turns_is_shown_to_nobody() {
    let model = model(|_, _| None).await;
    let (_gateway, mut client) = start(&model, json!({})).await;
    turn(&mut client, "main", &call("ping", "agent:main:side", 20), "r").await;
    let run = format!("{}:turn-1", result(&model, "")["runId"].as_str().unwrap());
    let ended = end(&mut client, &run).await;
    assert_eq!(ended["state"], "final", "{ended}");
    assert!(ended["message"].is_null(), "{ended}");
    let passed = client.take_passed();
    let of_turn = passed.iter().filter(|frame| frame["payload"]["runId"] == run.as_str());
    assert!(of_turn.clone().count() > 0, "{passed:?}");
    assert!(of_turn.clone().all(|frame| !frame.to_string().contains("REPLY_SKIP")), "{passed:?}");
    let history = client.request("chat.history", json!({"sessionKey": "main"})).await.unwrap();
    let history = history["messages"].to_string();
    assert!(history.contains("pong") && !history.contains("REPLY_SKIP"), "{history}");
}

#[tokio::test]
async fn no_turns_and_no_answer() {
    let silent = |step: &str, _: &Captured| (step == "primary").then(|| Reply::text("NO_REPLY"));
    let rows: [(Value, bool, &[&str]); 2] = [
        (json!({"session": {"agentToAgent": {"maxPingPongTurns": 0}}}), false, &["primary", "announce"]),
        (json!({}), true, &["primary"]),
    ];
    for (config, is_silent, expect) in rows {
        let model = model(move |step, request| if is_silent { silent(step, request) } else { None }).await;
        let (_gateway, mut client) = start(&model, config).await;
        turn(&mut client, "main", &call("ping", "agent:main:side", 20), "r").await;
        model.arrived(2 + expect.len()).await;
        let run = format!("{}:announce", result(&model, "")["runId"].as_str().unwrap());
        let waited = client.request("agent.wait", json!({"runId": run, "timeoutMs": 0})).await.unwrap();
        // The follow-up is stored before a run counts as done: there is none.
        assert!(!is_silent || waited["status"] == "timeout", "{waited}");
        let talk: Vec<String> = model.requests().iter().map(step).filter(|step| step != "plain").collect();
        assert_eq!(talk, expect);
    }
}

#[tokio::test]
async fn the_last_word_goes_to_the_topic_of_the_session() {
    let server = TelegramServer::start().await;
    let model =
        model(|step, _| (step == "announce").then(|| Reply::text("The talk is over, all is well."))).await;
    let gateway = with_topic(&model, &server).await;
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", &call("ping", TOPIC, 20), "r").await;
    server.has_made("the announcement", |made| made.len() == 2).await;
    let made = server.made().pop().unwrap();
    assert_eq!(
        (&made["chat_id"], &made["message_thread_id"], &made["text"]),
        (&json!(-100), &json!(42), &json!("The talk is over, all is well."))
    );
    let primary = model.requests().into_iter().find(|request| step(request) == "turn 1").unwrap();
    assert!(system(&primary).contains("Agent 2 (target) channel: telegram."), "{}", system(&primary));
}

#[tokio::test]
async fn silence_is_not_announced() {
    for word in ["ANNOUNCE_SKIP", " ANNOUNCE_SKIP\n", "NO_REPLY"] {
        let server = TelegramServer::start().await;
        let model = model(move |step, _| (step == "announce").then(|| Reply::text(word))).await;
        let gateway = with_topic(&model, &server).await;
        let mut client = gateway.client().await.unwrap();
        turn(&mut client, "main", &call("ping", TOPIC, 20), "r").await;
        let run = format!("{}:announce", result(&model, "")["runId"].as_str().unwrap());
        let waited = client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap();
        assert_eq!(waited["status"], "ok", "{waited}");
        // Messages said to the same place later come after it: there was nothing.
        server.push(forum_message(-100, 42, 5, "and now?"));
        server.has_made("the next answer", |made| made.len() == 2).await;
        assert_eq!(server.made()[1]["text"], "hello", "{word:?}");
    }
}

#[tokio::test]
async fn a_talk_goes_on_after_the_process_was_killed_and_says_its_last_word_once() {
    for at in ["primary", "turn 1", "announce"] {
        let server = TelegramServer::start().await;
        let gate = Gate::new();
        let held = gate.clone();
        let model = model(move |step, _| {
            let text = match step {
                "primary" => "pong",
                "turn 1" => "one more thing",
                "turn 2" => "REPLY_SKIP",
                "announce" => "All is well.",
                _ => return None,
            };
            let reply = Reply::steps([Step::Text(text.to_owned())]);
            Some(if step == at {
                Reply::steps([Step::Wait(held.clone()), Step::Text(text.to_owned())])
            } else {
                reply
            })
        })
        .await;
        let mut gateway = with_topic(&model, &server).await;
        let mut client = gateway.client().await.unwrap();
        send(&mut client, "main", &call("ping", TOPIC, 0), "r").await;
        let is_there = |requests: &[Captured]| requests.iter().any(|request| step(request) == at);
        let mut count = 1;
        while !is_there(&model.requests()) {
            model.arrived(count).await;
            count += 1;
        }
        gateway.kill().await.unwrap();
        gate.open();
        gateway.start().await.unwrap();
        server.has_made("the announcement", |made| made.len() == 2).await;
        assert_eq!(server.made()[1]["text"], "All is well.", "{at}");
        server.push(forum_message(-100, 42, 5, "and now?"));
        server.has_made("the next answer", |made| made.len() == 3).await;
        assert_eq!(server.made()[2]["text"], "hello", "{at}: nothing was said twice");
    }
}

/// Replies reach whoever waits for them before what follows is synced, and before it begins.
#[tokio::test]
async fn what_follows_a_reply_is_not_lost_with_the_process_that_gave_it() {
    for round in 0..3 {
        let server = TelegramServer::start().await;
        let gate = Gate::new();
        let held = gate.clone();
        let model = model(move |step, _| match step {
            "turn 1" => Some(Reply::steps([Step::Wait(held.clone()), Step::Text("REPLY_SKIP".to_owned())])),
            "announce" => Some(Reply::text("All is well.")),
            _ => None,
        })
        .await;
        let mut gateway = with_topic(&model, &server).await;
        let args = json!({"sessionKey": TOPIC, "message": "ping", "timeoutSeconds": 20});
        let call = json!({"tool": "sessions_send", "args": args});
        let (status, told) = invoke(gateway.port(), &call).await;
        let reply = &told["result"]["details"]["reply"];
        assert_eq!((status, reply), (200, &json!("pong")), "{round}: {told}");
        gateway.kill().await.unwrap();
        gate.open();
        gateway.start().await.unwrap();
        server.has_made("the announcement", |made| made.len() == 2).await;
        assert_eq!(server.made()[1]["text"], "All is well.", "{round}");
        server.push(forum_message(-100, 42, 5, "and now?"));
        server.has_made("the next answer", |made| made.len() == 3).await;
        assert_eq!(server.made()[2]["text"], "hello", "{round}: nothing was said twice");
        let asked = model.requests().iter().filter(|request| step(request) == "primary").count();
        assert_eq!(asked, 1, "{round}: the reply stands");
    }
}

#[tokio::test]
async fn a_call_that_a_crash_cut_short_sends_once() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = model(move |step, _| {
        (step == "primary").then(|| Reply::steps([Step::Wait(held.clone()), Step::Text("pong".to_owned())]))
    })
    .await;
    let (mut gateway, mut client) = start(&model, json!({})).await;
    send(&mut client, "main", &call("ping", "agent:main:side", 300), "r").await;
    model.arrived(2).await;
    gateway.kill().await.unwrap();
    gate.open();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let waited = client.request("agent.wait", json!({"runId": "r", "timeoutMs": 30_000})).await.unwrap();
    assert_eq!(waited["status"], "ok", "{waited}");
    assert_eq!(result(&model, "")["reply"], "pong");
    let history = client.request("chat.history", json!({"sessionKey": "agent:main:side"})).await.unwrap();
    let pings = history["messages"].as_array().unwrap().iter();
    let pings = pings.filter(|message| message["content"].to_string().contains("ping\""));
    assert_eq!(pings.count(), 1, "{history}");
}

/// Config with one place in each lane, in which every run waits for the next.
fn narrow() -> Value {
    json!({"agents": {"defaults": {"maxConcurrent": 1}}})
}

#[tokio::test]
async fn sessions_that_write_to_each_other_in_a_circle_all_end() {
    // main → b → … → main, with waits far beyond the test's patience.
    for names in [&["main"][..], &["main", "b"], &["main", "b", "c"], &["main", "b", "c", "d"]] {
        let keys: Vec<String> = names.iter().map(|name| format!("agent:main:{name}")).collect();
        let mut message = "ping".to_owned();
        for key in keys.iter().skip(1).rev().map(String::as_str).collect::<Vec<_>>() {
            let to = keys[(keys.iter().position(|own| own == key).unwrap() + 1) % keys.len()].as_str();
            message = call(&message, to, 100_000);
        }
        let first = keys[1 % keys.len()].as_str();
        let model = model(|_, _| None).await;
        let (_gateway, mut client) = start(&model, narrow()).await;
        let answer = turn(&mut client, "main", &call(&message, first, 100_000), "r").await;
        assert_eq!(answer, "done", "{names:?}");
        let results: Vec<Value> = model
            .requests()
            .iter()
            .filter(|request| request.ends_with_tool_result())
            .map(|request| serde_json::from_str(&tool_said(request)).unwrap())
            .collect();
        let statuses: Vec<&str> = results.iter().filter_map(|told| told["status"].as_str()).collect();
        let mut expect = vec!["timeout"];
        expect.extend(std::iter::repeat_n("ok", names.len() - 1));
        assert_eq!(statuses[..names.len()], expect, "{names:?}");
        let why = results[0]["error"].as_str().unwrap();
        assert!(why.starts_with("agent run still in progress"), "{why}");
    }
}

#[tokio::test]
async fn a_run_that_waits_lends_its_place() {
    let model = model(|_, _| None).await;
    let (_gateway, mut client) = start(&model, narrow()).await;
    // Two chains at once through lanes of one place.
    let chain = |a: &str, b: &str| call(&call("ping", b, 1_000), a, 1_000);
    send(&mut client, "main", &chain("agent:main:a", "agent:main:b"), "r1").await;
    send(&mut client, "agent:main:other", &chain("agent:main:c", "agent:main:d"), "r2").await;
    let (mut ended, mut runs) = (0, vec!["r1", "r2"]);
    while !runs.is_empty() {
        let over = client
            .event("chat", |payload| {
                payload["state"] != "delta" && runs.iter().any(|run| payload["runId"] == *run)
            })
            .await
            .unwrap();
        assert_eq!(over["state"], "final", "{over}");
        runs.retain(|run| over["runId"] != *run);
        ended += 1;
    }
    assert_eq!(ended, 2);
    let timeouts =
        model.requests().iter().filter(|request| tool_said(request).contains("\"timeout\"")).count();
    assert_eq!(timeouts, 0);
}

#[tokio::test]
async fn after_a_timeout_the_talk_goes_on() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = model(move |step, _| match step {
        "primary" => Some(Reply::steps([Step::Wait(held.clone()), Step::Text("late pong".to_owned())])),
        "announce" => Some(Reply::text("It took a while.")),
        _ => None,
    })
    .await;
    let gateway = with_topic(&model, &server).await;
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", &call("ping", TOPIC, 1), "r").await;
    let told = result(&model, "");
    assert_eq!(
        (&told["status"], &told["error"], &told["sessionKey"]),
        (&json!("timeout"), &json!("agent run still in progress"), &json!(TOPIC))
    );
    gate.open();
    server.has_made("the announcement", |made| made.len() == 2).await;
    assert_eq!(server.made()[1]["text"], "It took a while.");
}

#[tokio::test]
async fn a_session_that_is_deleted_meanwhile_answers_nobody() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = model(move |step, _| {
        (step == "primary").then(|| Reply::steps([Step::Wait(held.clone()), Step::Text("pong".to_owned())]))
    })
    .await;
    let (_gateway, mut client) = start(&model, json!({})).await;
    send(&mut client, "main", &call("ping", "agent:main:side", 1_000), "r").await;
    model.arrived(2).await;
    client.request("sessions.delete", json!({"key": "agent:main:side"})).await.unwrap();
    let ended = end(&mut client, "r").await;
    assert_eq!(ended["state"], "final", "{ended}");
    let told = result(&model, "");
    assert_eq!(
        (&told["status"], &told["error"]),
        (&json!("error"), &json!("agent run was stopped")),
        "{told}"
    );
    gate.open();
}

#[tokio::test]
async fn a_caller_that_is_stopped_waits_no_longer() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = model(move |step, _| {
        (step == "primary").then(|| Reply::steps([Step::Wait(held.clone()), Step::Text("pong".to_owned())]))
    })
    .await;
    let (_gateway, mut client) = start(&model, json!({})).await;
    send(&mut client, "main", &call("ping", "agent:main:side", 1_000), "r").await;
    model.arrived(2).await;
    let stopped = client.request("chat.abort", json!({"sessionKey": "main"})).await.unwrap();
    assert_eq!(stopped["aborted"], true);
    gate.open();
    // The other session is not stopped for it, and its answer comes back as a turn.
    model.arrived(3).await;
    assert_eq!(step(&model.requests()[2]), "turn 1");
}

/// The example of `docs/session-tools.md`.
#[tokio::test]
async fn two_agents_work_together() {
    let config = json!({
        "agents": {"list": [
            {"id": "main", "default": true},
            {"id": "research", "name": "Research", "workspace": "~/research"},
        ]},
        "tools": {"agentToAgent": {"enabled": true, "allow": ["main", "research"]}},
        "session": {"agentToAgent": {"maxPingPongTurns": 2}},
    });
    let model = model(|step, request| match step {
        "primary" => Some(Reply::text("The train leaves at 9:41 from platform 7.")),
        "plain" if request.ends_with_tool_result() => {
            Some(Reply::text("Your train leaves at 9:41, platform 7."))
        }
        _ => None,
    })
    .await;
    let (gateway, mut client) = start(&model, config).await;
    let ask = call("When does the next train to Basel leave?", "agent:research:main", 30);
    let answer = turn(&mut client, "main", &ask, "r").await;
    assert_eq!(answer, "Your train leaves at 9:41, platform 7.");
    let primary = model.requests().into_iter().find(|request| step(request) == "primary").unwrap();
    let prompt = system(&primary);
    let workspace = gateway.home().join("research");
    assert!(
        prompt.contains(&workspace.display().to_string()),
        "the other agent works in its own workspace: {prompt}"
    );
    assert!(prompt.contains("Agent 2 (target) session: agent:research:main."), "{prompt}");
    // Turn 1 is the asking agent's; it has enough. Then the other one has nothing to announce.
    model.arrived(5).await;
    let talk: Vec<String> = model.requests().iter().map(step).filter(|step| step != "plain").collect();
    assert_eq!(talk, ["primary", "turn 1", "announce"]);
}
