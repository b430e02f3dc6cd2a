//! Sub-agents where something around them is too much, too little or not there: floods, full queues, a platform that is down; and what lists
//! say of them meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, ScriptedCall, Step};
use openclaw_testkit::telegram::{Moment, Outage, TelegramServer, private_message};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{end, send, sessions_dir, turn};
use crate::support::memory::resident_at_most;
use crate::support::session_tools::tool_said;
use crate::support::subagents::{announced, announces_are_accepted, are_over, delegating, is_child, lists};
use crate::support::telegram::{bot, open};
use crate::support::tools_invoke::invoke;

/// Time that something which is not announced may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// Fifty megabytes on its standard output. They stay what they are: some lines in what the model reads and in the transcript.
#[tokio::test]
async fn a_flood_of_a_child_ends_in_a_few_lines() {
    let flood = "yes 0123456789abcde | head -c 50000000; echo; echo the end";
    let model = delegating(json!({"task": "dig"}), move |request| match request.ends_with_tool_result() {
        true => Reply::text("dug"),
        false => Reply::tool("c1", "exec", &json!({"command": flood, "yieldMs": 120_000})),
    })
    .await;
    let config = json!({"agents": {"defaults": {"subagents": {"announceMode": "raw"}}}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let before = resident_at_most(&gateway);
    turn(&mut client, "main", "delegate", "r1").await;
    let told = announced(&mut client).await;
    assert!(told.starts_with("Status: success\nResult: dug\nNotes: -\n"), "{told}");
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < 100_000_000, "the gateway grew by {grown} bytes");
    let requests = model.requests();
    let heard = requests.iter().find(|request| is_child(request) && request.ends_with_tool_result());
    let heard = tool_said(heard.unwrap());
    assert!(heard.len() < 1_000_000 && heard.trim_end().ends_with("the end"), "{} bytes", heard.len());
    lists(&gateway, are_over).await;
    let files = std::fs::read_dir(sessions_dir(&gateway)).unwrap();
    let kept: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(kept < 2_000_000, "{kept} bytes of transcripts");
}

/// Waits until both lists say of the only child of a session how it stands, and who has started it.
async fn stands(gateway: &GatewayUnderTest, client: &mut WsClient, requester: &str, state: &str) {
    let begun = Instant::now();
    loop {
        let listed = client.request("sessions.list", json!({"spawnedBy": requester})).await.unwrap();
        let listed = listed["sessions"].as_array().unwrap().clone();
        assert_eq!(listed.len(), 1, "{listed:?}");
        let (_, told) = invoke(gateway.port(), &json!({"tool": "sessions_list", "args": {}})).await;
        let rows = told["result"]["details"]["sessions"].as_array().unwrap().clone();
        let row = rows.into_iter().find(|row| row["key"] == listed[0]["key"]).unwrap();
        assert_eq!((&row["spawnedBy"], &listed[0]["spawnedBy"]), (&json!(requester), &json!(requester)));
        if row["state"] == state && listed[0]["state"] == state {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{state}: {row} {}", listed[0]);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn lists_say_who_has_started_a_child_and_how_it_stands() {
    let (gate, fails) = (Gate::new(), Arc::new(AtomicBool::new(false)));
    let (held, is_bad) = (gate.clone(), Arc::clone(&fails));
    let model = delegating(json!({"task": "dig"}), move |_| match is_bad.load(Ordering::SeqCst) {
        true => Reply::openai_error(400, "invalid_request_error", "the model is out of order"),
        false => Reply::text("dug").after(Step::Wait(held.clone())),
    })
    .await;
    let config = json!({"agents": {"defaults": {"subagents": {"announceMode": "raw"}}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let (main, side) = ("agent:main:main", "agent:main:side");
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "delegate", "r1").await;
    stands(&gateway, &mut client, main, "running").await;
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    stands(&gateway, &mut client, main, "running").await;
    gate.open();
    stands(&gateway, &mut client, main, "done").await;
    lists(&gateway, are_over).await;
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    stands(&gateway, &mut client, main, "done").await;
    fails.store(true, Ordering::SeqCst);
    turn(&mut client, side, "delegate", "r2").await;
    stands(&gateway, &mut client, side, "error").await;
    stands(&gateway, &mut client, main, "done").await;
    // A session that is nobody's child has neither.
    let nobody = client.request("sessions.list", json!({"spawnedBy": "agent:main:nobody"})).await.unwrap();
    assert_eq!(nobody["sessions"], json!([]));
    let all = client.request("sessions.list", json!({})).await.unwrap();
    let row = all["sessions"].as_array().unwrap().iter().find(|row| row["key"] == side).unwrap();
    assert!(row.get("spawnedBy").is_none() && row.get("state").is_none(), "{row}");
}

/// The sessions that messages of a chat tell of, in order.
fn told_of(made: &[Value]) -> Vec<String> {
    let texts = made.iter().filter_map(|made| made["text"].as_str());
    let behind = texts.filter_map(|text| text.split_once("• sessionKey "));
    let mut keys: Vec<String> =
        behind.filter_map(|(_, key)| key.split(' ').next()).map(str::to_owned).collect();
    keys.sort();
    keys
}

/// A platform that is down for a while, over the ends of two children and a kill: each is told of once when it is back.
#[tokio::test]
async fn what_ends_while_the_platform_is_down_is_told_once_it_is_back() {
    for outage in [Outage::Refuses, Outage::BadGateway] {
        let gate = Gate::new();
        let held = gate.clone();
        let model = ModelServer::answering(move |request| {
            let said = request.last_user_text();
            let spawn =
                |id: &str| ScriptedCall::new(id, "sessions_spawn", &json!({"task": format!("dig {id}")}));
            match () {
                () if said.contains("thanks") => Reply::text("You are welcome."),
                () if said.contains("delegate") && !request.ends_with_tool_result() => {
                    Reply::tools([spawn("one"), spawn("two")])
                }
                () if said.contains("delegate") => Reply::text("It is being done."),
                () => Reply::text("dug").after(Step::Wait(held.clone())),
            }
        })
        .await;
        let server = TelegramServer::start().await;
        let raw = json!({"agents": {"defaults": {"subagents": {"announceMode": "raw"}}}});
        let mut gateway = bot(&server, &model, open(), raw).await;
        server.push(private_message(7, "delegate"));
        server.nth_answer("sendMessage", 1).await;
        lists(&gateway, |rows| rows.len() == 2).await;
        server.goes_down(outage).await;
        gate.open();
        let rows = lists(&gateway, are_over).await;
        for row in &rows {
            assert_eq!(row["announced"], json!({"status": "sent"}), "its session has it: {row}");
        }
        gateway.logged("a delivery is tried again").await.unwrap();
        // The next process begins while it is down.
        gateway.crash_and_restart().await.unwrap();
        assert_eq!(told_of(&server.made()), [""; 0]);
        server.comes_back();
        let sees = server.sees(|made| told_of(made).len() >= 2);
        tokio::time::timeout(PATIENCE, sees)
            .await
            .unwrap_or_else(|_| panic!("{outage:?}: {}", gateway.log()));
        server.push(private_message(7, "thanks"));
        server.has_made("an answer", |made| made.iter().any(|made| made["text"] == "You are welcome.")).await;
        gateway.terminate().await.unwrap();
        let mut keys: Vec<&str> = rows.iter().filter_map(|row| row["childSessionKey"].as_str()).collect();
        keys.sort_unstable();
        assert_eq!(told_of(&server.made()), keys, "{outage:?}");
        assert!(server.count(Moment::Called("sendMessage")) >= 4);
    }
}

#[tokio::test]
async fn a_full_queue_says_how_many_ends_it_has_dropped() {
    let busy = Gate::new();
    let held = busy.clone();
    let model = ModelServer::answering(move |request| {
        let said = request.last_user_text();
        let spawn = |id: &str| ScriptedCall::new(id, "sessions_spawn", &json!({"task": format!("dig {id}")}));
        match () {
            () if said.contains("subagent task") => Reply::text("All are done."),
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
        "messages": {"queue": {"mode": "collect", "debounceMs": 0, "cap": 1, "drop": "summarize"}},
    });
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "delegate", "r1").await;
    let rows =
        lists(&gateway, |rows| rows.len() == 3 && rows.iter().all(|row| row["endedAt"].is_number())).await;
    announces_are_accepted(&mut client, &rows).await;
    busy.open();
    end(&mut client, "r1").await;
    lists(&gateway, are_over).await;
    let said: Vec<String> = model.requests().iter().map(Captured::last_user_text).collect();
    let told: Vec<&String> = said.iter().filter(|said| said.contains("A subagent task")).collect();
    assert_eq!(told.len(), 1, "{said:?}");
    assert!(
        told[0].contains("[Queue overflow] Dropped 2 announces due to cap.\nSummary:\n- "),
        "{}",
        told[0]
    );
}
