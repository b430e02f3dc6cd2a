//! Rights of runs: a run has the rights of the least trusted caller whose words it was given, and
//! nothing that it causes gains any. There is a test per way in; all combinations of caller, way
//! and tool are in the table in `crates/runtime/src/tool_access/tests/table.rs`.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, button, group_message, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::{end, send, turn};
use crate::support::session_tools::{asked_call, system, tool_said};
use crate::support::sessions_send::{call as sending, step};
use crate::support::subagents::{is_child, listed, lists};
use crate::support::telegram::{bot, last_said};
use crate::support::told_calls::{Caller, model};
use crate::support::trace::{numbered, traced};
use crate::support::wait::until;

const GROUP: i64 = -100;
const OWNER: i64 = 1111;
const FRIEND: i64 = 5;
const STRANGER: i64 = 7;

/// A group in which the owner and a friend have every tool, and nobody else may run commands.
fn group() -> Value {
    json!({
        "dmPolicy": "allowlist", "allowFrom": [OWNER.to_string()], "groupPolicy": "open",
        "groups": {GROUP.to_string(): {"requireMention": false, "toolsBySender": {
            OWNER.to_string(): {}, FRIEND.to_string(): {}, "*": {"deny": ["exec"]},
        }}},
    })
}

fn offered(request: &Captured) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).map(str::to_owned).collect()
}

/// True if a run may run commands. A run that may not has no access to the commands of others either.
fn may_run_commands(request: &Captured) -> bool {
    let tools = offered(request);
    let has = |name: &str| tools.iter().any(|tool| tool == name);
    assert_eq!(has("exec"), has("process"), "{tools:?}");
    has("exec")
}

/// Returns the first request whose own message has these words.
fn asked(model: &ModelServer, words: &str) -> Captured {
    let requests = model.requests();
    let found = requests.iter().find(|request| last_said(request).contains(words));
    found.unwrap_or_else(|| panic!("nobody asked {words}")).clone()
}

async fn asked_soon(model: &ModelServer, pleases: impl Fn(&Captured) -> bool) -> Captured {
    until("it is asked", async || model.requests().into_iter().find(|request| pleases(request))).await
}

/// Says something and waits until it waits in its session's queue.
async fn push(server: &TelegramServer, gateway: &GatewayUnderTest, id: i64, update: Value) {
    server.push(numbered(update, id));
    traced(gateway, id, |event| !event["fate"].is_null() && event["fate"] != "waiting").await;
}

fn call(tool: &str, args: &Value) -> String {
    format!("call {}", json!({"tool": tool, "args": args}))
}

/// Returns the runs of an owner's message and of three that wait behind it, the first of them a stranger's: the words of each, and whether
/// it may run commands.
async fn runs_with(queue: Value) -> Vec<(String, bool)> {
    let (gate, server) = (Gate::new(), TelegramServer::start().await);
    let held = gate.clone();
    let model = ModelServer::answering(move |request| match last_said(request) {
        said if said.contains("first") => Reply::text("heard").after(Step::Wait(held.clone())),
        _ => Reply::text("heard"),
    })
    .await;
    let gateway = bot(&server, &model, group(), json!({"messages": {"queue": queue}})).await;
    server.push(numbered(group_message(GROUP, OWNER, "first"), 1));
    model.arrived(1).await;
    for (id, (from, words)) in (2..).zip([(STRANGER, "second"), (OWNER, "third"), (OWNER, "fourth")]) {
        push(&server, &gateway, id, group_message(GROUP, from, words)).await;
    }
    gate.open();
    server.nth_answer("sendMessage", 3).await;
    let said = |request: &Captured| {
        let said = last_said(request);
        let is_said = |word: &&str| said.contains(*word);
        ["first", "second", "third", "fourth"].into_iter().filter(is_said).collect::<Vec<_>>().join(" ")
    };
    model.requests().iter().map(|request| (said(request), may_run_commands(request))).collect()
}

#[tokio::test]
async fn a_strangers_words_are_not_collected_into_a_run_with_more_rights() {
    let runs = runs_with(json!({"mode": "collect", "debounceMs": 1})).await;
    let expect = [("first", true), ("second", false), ("third fourth", true)];
    assert_eq!(runs, expect.map(|(words, may)| (words.to_owned(), may)));
}

/// Of a message that a full queue drops the agent is told in a summary.
#[tokio::test]
async fn a_strangers_words_are_not_summarized_into_a_run_with_more_rights() {
    for (mode, expect) in [
        ("collect", vec![("first", true), ("second", false), ("third fourth", true)]),
        ("followup", vec![("first", true), ("second", false), ("third", true), ("fourth", true)]),
    ] {
        let runs = runs_with(json!({"mode": mode, "debounceMs": 1, "cap": 2, "drop": "summarize"})).await;
        let runs: Vec<(&str, bool)> = runs.iter().map(|(words, may)| (words.as_str(), *may)).collect();
        assert_eq!(runs, expect[..runs.len()], "{mode}");
        assert!(runs.len() >= 3, "{mode}: {runs:?}");
    }
}

#[tokio::test]
async fn a_strangers_words_are_not_steered_into_a_run_of_somebody_trusted() {
    let (gate, server) = (Gate::new(), TelegramServer::start().await);
    let held = gate.clone();
    let model = ModelServer::answering(move |request| match last_said(request) {
        said if said.contains("first") && !request.ends_with_tool_result() => {
            Reply::tool("c0", "session_status", &json!({})).after(Step::Wait(held.clone()))
        }
        _ => Reply::text("heard"),
    })
    .await;
    let queue = json!({"messages": {"queue": {"mode": "steer", "debounceMs": 1}}});
    let gateway = bot(&server, &model, group(), queue).await;
    server.push(numbered(group_message(GROUP, FRIEND, "first"), 1));
    model.arrived(1).await;
    push(&server, &gateway, 2, group_message(GROUP, STRANGER, "second")).await;
    push(&server, &gateway, 3, group_message(GROUP, FRIEND, "third")).await;
    gate.open();
    server.nth_answer("sendMessage", 2).await;
    let second = asked_soon(&model, |request| last_said(request).contains("second")).await;
    assert!(!may_run_commands(&second), "{:?}", offered(&second));
    assert!(model.requests().iter().all(|request| {
        let told = request.body["messages"].to_string();
        !told.contains("second") || !may_run_commands(request) || last_said(request).contains("third")
    }));
}

#[tokio::test]
async fn a_sub_agent_has_the_rights_of_who_asked_for_it_also_after_a_crash() {
    let (server, model) = (TelegramServer::start().await, model().await);
    let mut gateway = bot(&server, &model, group(), json!({})).await;
    let spawn = call("sessions_spawn", &json!({"task": "dig", "cleanup": "keep"}));
    server.push(group_message(GROUP, STRANGER, &spawn));
    let child = asked_soon(&model, is_child).await;
    assert!(!may_run_commands(&child), "{:?}", offered(&child));
    let rows = lists(&gateway, crate::support::subagents::are_over).await;
    let key = rows[0]["childSessionKey"].as_str().unwrap().to_owned();
    assert_eq!(rows[0]["rights"]["tools"], json!([{"deny": ["exec"]}]), "{}", rows[0]);

    // Later messages give the child no more rights than it was started with.
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, &key, "and once more", "more").await;
    let more = asked(&model, "and once more");
    assert!(!may_run_commands(&more), "{:?}", offered(&more));
    turn(&mut client, "main", "in the main session", "main").await;
    assert!(may_run_commands(&asked(&model, "in the main session")));
    assert_eq!(listed(&gateway).len(), 1);
}

#[tokio::test]
async fn a_message_to_another_session_takes_the_rights_of_its_caller_along() {
    let (server, model) = (TelegramServer::start().await, model().await);
    let gateway = bot(&server, &model, group(), json!({})).await;
    std::fs::write(gateway.state_dir().join("workspace/MEMORY.md"), "CANARY").unwrap_or_default();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "first").await;
    std::fs::write(gateway.state_dir().join("workspace/MEMORY.md"), "CANARY").unwrap();
    for (n, to) in ["main", "agent:main:telegram:dm:1111", "agent:main:anew"].into_iter().enumerate() {
        let words = format!("please number {n}");
        let args = json!({"sessionKey": to, "message": words, "timeoutSeconds": 0});
        server.push(group_message(GROUP, STRANGER, &call("sessions_send", &args)));
        let is_it = |request: &Captured| {
            let said = last_said(request);
            said.contains(&words) && !said.contains("sessions_send")
        };
        let sent = asked_soon(&model, is_it).await;
        assert!(!may_run_commands(&sent), "{to}: {:?}", offered(&sent));
        assert!(!offered(&sent).iter().any(|tool| tool == "gateway"), "{to}");
        assert!(!system(&sent).contains("CANARY"), "{to}");
    }
    // The owner's own words in that session have what they had.
    turn(&mut client, "main", "hello again", "second").await;
    let own = asked(&model, "hello again");
    assert!(may_run_commands(&own) && system(&own).contains("CANARY"));
}

/// A press on a button below a message of the group.
fn press(from: i64, message: i64, data: &str) -> Value {
    let mut update = button(from, message, data);
    update["callback_query"]["message"]["chat"] = json!({"id": GROUP, "type": "supergroup", "title": "Team"});
    update
}

#[tokio::test]
async fn a_pressed_button_has_no_more_rights_than_the_run_that_made_it_also_after_a_crash() {
    let (server, model) = (TelegramServer::start().await, model().await);
    let queue = json!({"messages": {"queue": {"mode": "followup", "debounceMs": 0}}});
    let mut section = group();
    section["capabilities"] = json!({"inlineButtons": "all"});
    let mut gateway = bot(&server, &model, section, queue).await;
    // The message that a call of the tool is about; its words are its mark.
    let done = async |from: i64, mut args: Value, button: Option<&str>| -> i64 {
        if let Some(data) = button {
            args["buttons"] = json!([[{"text": "Yes", "callback_data": data}]]);
        }
        server.push(group_message(GROUP, from, &call("message", &args)));
        let mark = args["message"].as_str().unwrap();
        let is_it = |request: &Captured| request.ends_with_tool_result() && last_said(request).contains(mark);
        let told = tool_said(&asked_soon(&model, is_it).await);
        let result: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}"));
        let id = if args["action"] == "edit" { &result["messageId"] } else { &result["result"]["messageId"] };
        id.as_str().unwrap_or_else(|| panic!("{told}")).parse().unwrap()
    };
    let send = |words: &str| json!({"action": "send", "message": words});
    let edit =
        |words: &str, id: i64| json!({"action": "edit", "messageId": id.to_string(), "message": words});
    let strangers = done(STRANGER, send("one"), Some("press one")).await;
    let owners = done(OWNER, send("two"), Some("press two")).await;
    let not_theirs = done(OWNER, send("three"), Some("press three")).await;
    // The stranger puts another button below a message of the owner, and one below a message without any.
    let other = done(OWNER, send("four"), Some("press four")).await;
    assert_eq!(done(STRANGER, edit("five", other), Some("press five")).await, other);
    let bare = done(OWNER, send("six"), None).await;
    assert_eq!(done(STRANGER, edit("seven", bare), Some("press seven")).await, bare);
    gateway.crash_and_restart().await.unwrap();
    let rows = [
        (OWNER, strangers, "press one", false),
        (OWNER, owners, "press two", true),
        (STRANGER, not_theirs, "press three", false),
        (OWNER, other, "press five", false),
        (OWNER, bare, "press seven", false),
        (OWNER, 4_321, "press what nobody knows", false),
    ];
    for (from, message, data, may) in rows {
        server.push(press(from, message, data));
        let is_press = |request: &Captured| {
            let said = last_said(request);
            said.contains(data) && !said.contains("callback_data")
        };
        let pressed = asked_soon(&model, is_press).await;
        assert_eq!(may_run_commands(&pressed), may, "{data} by {from}: {:?}", offered(&pressed));
        assert_eq!(offered(&pressed).iter().any(|tool| tool == "gateway"), may, "{data} by {from}");
    }
}

#[tokio::test]
async fn what_the_owner_said_elsewhere_is_told_to_nobody_else() {
    let (server, model) = (TelegramServer::start().await, model().await);
    let gateway = bot(&server, &model, group(), json!({})).await;
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "the code is 4711", "first").await;
    let rows = [
        ("sessions_history", json!({"sessionKey": "main"})),
        ("session_status", json!({"sessionKey": "main"})),
        ("session_status", json!({"sessionKey": "main", "model": "default"})),
        ("sessions_list", json!({"messageLimit": 5})),
    ];
    // The owner last: what is told to them in the group stands in its conversation.
    for (from, may) in [(STRANGER, false), (FRIEND, false), (OWNER, true)] {
        for (n, (tool, args)) in rows.iter().enumerate() {
            let mark = format!("round {n} of {from}");
            server.push(group_message(GROUP, from, &format!("{mark} {}", call(tool, args))));
            let is_it =
                |request: &Captured| request.ends_with_tool_result() && last_said(request).contains(&mark);
            let said = tool_said(&asked_soon(&model, is_it).await);
            let is_seen = match *tool {
                "sessions_list" => said.contains("\"key\": \"main\""),
                _ => !said.contains("not visible"),
            };
            assert_eq!(is_seen, may, "{tool} {args} of {from}: {said}");
            assert!(may || !said.contains("4711"), "{said}");
        }
    }
}

/// A model that makes the calls it is asked for, and in a message from another session says what only that session's history has.
async fn confidant() -> ModelServer {
    ModelServer::answering(|request: &Captured| {
        match (step(request).as_str(), asked_call(&last_said(request))) {
            _ if request.ends_with_tool_result() => Reply::text("done"),
            ("plain", Some((tool, args))) => Reply::tool("call-1", &tool, &args),
            ("primary", _) => Reply::text("CANARY"),
            ("announce", _) => Reply::text("ANNOUNCE_SKIP"),
            (step, _) if step.starts_with("turn") => Reply::text("REPLY_SKIP"),
            _ => Reply::text("heard"),
        }
    })
    .await
}

#[tokio::test]
async fn what_another_session_answers_is_told_to_nobody_who_may_not_read_it() {
    let (server, model) = (TelegramServer::start().await, confidant().await);
    let gateway = bot(&server, &model, group(), json!({})).await;
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "the word is CANARY", "first").await;
    let said = async |from: i64, mark: &str, call: String| -> Value {
        server.push(group_message(GROUP, from, &call));
        let is_it = |request: &Captured| request.ends_with_tool_result() && last_said(request).contains(mark);
        let told = tool_said(&asked_soon(&model, is_it).await);
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"))
    };
    let group_key = format!("agent:main:telegram:group:{GROUP}");
    let steps = |which: &str| model.requests().iter().filter(|request| step(request) == which).count();
    for (n, (from, is_heard)) in [(STRANGER, false), (FRIEND, false), (OWNER, true)].into_iter().enumerate() {
        let mark = format!("tell {from}");
        let told = said(from, &mark, sending(&mark, "main", 20)).await;
        let status = if is_heard { "ok" } else { "accepted" };
        assert_eq!((&told["status"], told["reply"] == "CANARY"), (&json!(status), is_heard), "{told}");
        assert_eq!(told.to_string().contains("CANARY"), is_heard, "{told}");
        until("the talk is over", async || (steps("announce") == n + 1).then_some(())).await;
        let turns = model.requests().iter().filter(|request| step(request).starts_with("turn")).count();
        assert_eq!(turns > 0, is_heard, "{from}");
        if !is_heard {
            let history = client.request("chat.history", json!({"sessionKey": group_key})).await.unwrap();
            assert!(!history.to_string().contains("CANARY"), "{history}");
        }
    }
    // Of its own child a stranger's run hears.
    let spawn = format!("CALL sessions_spawn {}", json!({"task": "dig for 9", "cleanup": "keep"}));
    let child = said(STRANGER, "dig for 9", spawn).await["childSessionKey"].as_str().unwrap().to_owned();
    let told = said(STRANGER, "tell the child", sending("tell the child", &child, 20)).await;
    assert_eq!((&told["status"], &told["reply"]), (&json!("ok"), &json!("CANARY")), "{told}");
}

#[tokio::test]
async fn the_owners_private_chat_leads_the_main_session_and_a_strangers_does_not() {
    let (server, model) = (TelegramServer::start().await, model().await);
    let section = json!({"dmPolicy": "open", "allowFrom": ["*"]});
    let rest = json!({
        "session": {"dmScope": "per-channel-peer"},
        "commands": {"ownerAllowFrom": [format!("telegram:{OWNER}")]},
    });
    let gateway = bot(&server, &model, section, rest).await;
    let mut client = gateway.client().await.unwrap();
    let mut answered = 0;
    let mut say = async |from: i64| {
        answered += 1;
        server.push(private_message(from, "hello"));
        server.nth_answer("sendMessage", answered).await;
        let list = client.request("sessions.list", json!({})).await.unwrap();
        let rows = list["sessions"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == "agent:main:main").map(|row| row["lastTo"].clone())
    };
    assert_eq!(say(STRANGER).await, None);
    assert_eq!(say(OWNER).await, Some(json!(format!("telegram:{OWNER}"))));
    assert_eq!(say(STRANGER).await, Some(json!(format!("telegram:{OWNER}"))));
    let words = ["agent", "--agent", "main", "--message", "tell me", "--deliver", "--channel", "last"];
    let ended = openclaw(&gateway, &words).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(server.nth_call("sendMessage", 4).await.params["chat_id"], OWNER);
}

#[tokio::test]
async fn a_child_of_a_sandboxed_run_is_never_on_the_host() {
    let child = |request: &Captured| match request.ends_with_tool_result() {
        true => Reply::text("dug"),
        false => Reply::tool("c1", "exec", &json!({"command": "pwd"})),
    };
    let spawn = json!({"task": "dig", "agentId": "free"});
    let model = crate::support::subagents::delegating(spawn, child).await;
    let config = json!({"agents": {
        "defaults": {"sandbox": {"backend": "local"}},
        "list": [
            {"id": "main", "default": true, "sandbox": {"mode": "all"}, "subagents": {"allowAgents": ["free"]}},
            {"id": "free", "sandbox": {"mode": "off"}},
        ],
    }});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "delegate", "first").await;
    let first = end(&mut client, "first").await;
    if model.requests().is_empty() {
        assert!(!crate::support::sandbox::works(&gateway, &first.to_string()));
        return;
    }
    let told = asked_soon(&model, |request| is_child(request) && request.ends_with_tool_result()).await;
    assert_eq!(tool_said(&told).trim(), "/workspace", "{}", gateway.log());
}

#[tokio::test]
async fn nobody_is_taken_for_another_by_the_name_they_give_themselves() {
    let (server, model) = (TelegramServer::start().await, model().await);
    let mut section = group();
    section["groups"][GROUP.to_string()]["toolsBySender"]["@alice"] = json!({});
    let _gateway = bot(&server, &model, section, json!({})).await;
    for (n, (field, name)) in
        [("first_name", "1111"), ("username", "1111"), ("username", "alice")].into_iter().enumerate()
    {
        let words = format!("hello number {n}");
        let mut update = group_message(GROUP, STRANGER, &words);
        update["message"]["from"][field] = json!(name);
        server.push(update);
        server.nth_answer("sendMessage", n + 1).await;
        assert!(!may_run_commands(&asked(&model, &words)), "{field} {name}");
    }
}

/// No row says to which account the group of such a session belongs.
#[tokio::test]
async fn the_rules_of_an_accounts_groups_hold_also_where_no_row_names_the_account() {
    let model = model().await;
    let rules = json!({"groups": {GROUP.to_string(): {"tools": {"deny": ["exec"]}}}});
    let telegram = json!({"enabled": false, "accounts": {"work": rules}});
    let config = json!({"channels": {"telegram": telegram}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (group, may) in [(GROUP, false), (GROUP - 1, true)] {
        let words = format!("hello, {group}");
        let key = format!("agent:main:telegram:group:{group}");
        turn(&mut client, &key, &words, &words).await;
        assert_eq!(may_run_commands(&asked(&model, &words)), may, "{group}");
    }
}

#[tokio::test]
async fn memory_is_told_in_direct_chats_of_the_owner_alone() {
    let (server, model) = (TelegramServer::start().await, model().await);
    let section = json!({"dmPolicy": "open", "allowFrom": ["*"]});
    let rest = json!({
        "session": {"dmScope": "per-channel-peer"},
        "commands": {"ownerAllowFrom": [format!("telegram:{OWNER}")]},
    });
    let gateway = bot(&server, &model, section, rest).await;
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "first").await;
    std::fs::write(gateway.state_dir().join("workspace/MEMORY.md"), "CANARY").unwrap();
    for (n, (from, is_told)) in [(STRANGER, false), (OWNER, true), (FRIEND, false)].into_iter().enumerate() {
        let words = format!("who am I, {from}?");
        server.push(private_message(from, &words));
        server.nth_answer("sendMessage", n + 1).await;
        assert_eq!(system(&asked(&model, &words)).contains("CANARY"), is_told, "{from}");
    }
    let mut caller = Caller::new(client);
    caller.say("main", "and in the main session?").await;
    assert!(system(&asked(&model, "and in the main session?")).contains("CANARY"));
}
