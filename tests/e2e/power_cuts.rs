//! A power cut while a tool call is under way: what was not synced is gone, and the model still knows what it has had done.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use openclaw_testkit::faulty_disk::FaultyDisk;
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, ScriptedCall, Step};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{DeviceIdentity, GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::support::conversation::{end, history, send, sessions_dir, transcript_path, turn};
use crate::support::power_cut::suicide;
use crate::support::sessions_send::step;
use crate::support::subagents::{is_child, listed};

/// A session beside the main one.
const SIDE: &str = "agent:main:side";

async fn wait(gateway: &GatewayUnderTest, run: &str) -> Value {
    let mut client = gateway.client().await.unwrap();
    client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap()
}

#[tokio::test]
async fn a_command_that_a_power_cut_met_is_told_to_the_model_and_not_run_once_more() {
    let Some(disk) = FaultyDisk::new().unwrap() else { return };
    let command = Arc::new(OnceLock::<String>::new());
    let told = Arc::clone(&command);
    let model = ModelServer::answering(move |request| match request.ends_with_tool_result() {
        true => Reply::text("I have looked"),
        false => Reply::tool("c1", "exec", &json!({"command": told.get().unwrap()})),
    })
    .await;
    let mut gateway = disk.under(crate::gateway().fake_model(&model.v1())).start().await.unwrap();
    command.set(format!("echo once >> did; {}", suicide(&gateway, "-9"))).unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "go", "run-1").await;
    gateway.exited().await.unwrap();
    disk.cut_power(&sessions_dir(&gateway)).unwrap();
    gateway.start().await.unwrap();
    assert_eq!(wait(&gateway, "run-1").await["status"], "ok", "{}", gateway.log());
    let did = std::fs::read_to_string(gateway.state_dir().join("workspace/did")).unwrap();
    assert_eq!(did, "once\n");
    let asked = model.requests().pop().unwrap();
    assert!(asked.body.to_string().contains("may or may not have completed"), "{}", asked.body);
    gateway.logged("a tool call was under way when the gateway ended: it may have happened").await.unwrap();
    let traced = crate::support::command::openclaw(&gateway, &["trace", "run-1"]).await;
    assert!(traced.out.contains("  the gateway ended during exec: it may have happened"), "{traced:?}");
}

/// A call that is made again after a crash is known by its id, which the model made.
#[tokio::test]
async fn a_message_that_a_tool_has_sent_before_a_power_cut_is_not_sent_again() {
    let Some(disk) = FaultyDisk::new().unwrap() else { return };
    let server = TelegramServer::start().await;
    let command = Arc::new(OnceLock::<String>::new());
    let told = Arc::clone(&command);
    let model = ModelServer::answering(move |request| {
        let calls = request.messages().iter().filter(|message| message["role"] == "tool").count();
        let id = format!("c{}", request.messages().len());
        match (calls, request.body.to_string().contains("may or may not have completed")) {
            (0, _) => Reply::tool(&id, "message", &json!({"action": "send", "message": "by tool"})),
            (_, false) => Reply::tool(&id, "exec", &json!({"command": told.get().unwrap()})),
            (_, true) => Reply::text("done"),
        }
    })
    .await;
    let telegram =
        json!({"botToken": server.token(), "apiRoot": server.root(), "dmPolicy": "open", "allowFrom": ["*"]});
    let setup = crate::gateway().fake_model(&model.v1()).config(json!({"channels": {"telegram": telegram}}));
    let mut gateway = disk.under(setup).start().await.unwrap();
    command.set(suicide(&gateway, "-9")).unwrap();
    server.push(private_message(5, "go"));
    gateway.exited().await.unwrap();
    disk.cut_power(&sessions_dir(&gateway)).unwrap();
    gateway.start().await.unwrap();
    model.arrived(3).await;
    assert_eq!(gateway.fates().await.unwrap(), json!({"run": 1}), "{}", gateway.log());
    let told = model.requests().pop().unwrap().body.to_string();
    assert!(told.contains("may or may not have completed"), "{told}");
    let by_tool = server.made().iter().filter(|made| made["text"] == "by tool").count();
    assert_eq!(by_tool, 1, "{:?}", server.made());
}

/// Another session kills the gateway over what it was given to do, before the answer to the one that gave it is on disk.
#[tokio::test]
async fn what_another_session_was_given_to_do_before_a_power_cut_is_given_once() {
    let rows = [
        ("sessions_spawn", json!({"task": "dig it", "cleanup": "keep"})),
        ("sessions_send", json!({"sessionKey": SIDE, "message": "dig it", "timeoutSeconds": 20})),
    ];
    for (tool, args) in rows {
        let Some(disk) = FaultyDisk::new().unwrap() else { return };
        let (command, gate, asked) = (Arc::new(OnceLock::<String>::new()), Gate::new(), AtomicUsize::new(0));
        let (told, held) = (Arc::clone(&command), gate.clone());
        let model = ModelServer::answering(move |request| {
            // An id of its own for each call: one that is made up again is another one.
            let id = format!("c{}", asked.fetch_add(1, Ordering::Relaxed));
            let is_given = is_child(request) || step(request) == "primary";
            let is_giver = !is_given && request.last_user_text().contains("go and give");
            match (request.ends_with_tool_result(), is_given, is_giver) {
                (false, true, _) => Reply::tool(&id, "exec", &json!({"command": told.get().unwrap()})),
                (false, false, true) => Reply::tool(&id, tool, &args),
                (true, false, true) => Reply::text("given").after(Step::Wait(held.clone())),
                _ => Reply::text("REPLY_SKIP"),
            }
        })
        .await;
        let mut gateway = disk.under(crate::gateway().fake_model(&model.v1())).start().await.unwrap();
        command.set(suicide(&gateway, "-9")).unwrap();
        let mut client = gateway.client().await.unwrap();
        send(&mut client, "main", "go and give", "run-1").await;
        gateway.exited().await.unwrap();
        disk.cut_power(&sessions_dir(&gateway)).unwrap();
        gate.open();
        gateway.start().await.unwrap();
        assert_eq!(wait(&gateway, "run-1").await["status"], "ok", "{tool}\n{}", gateway.log());
        gateway.fates().await.unwrap();
        let given = match tool {
            "sessions_spawn" => listed(&gateway).len(),
            _ => {
                let said = history(&mut gateway.client().await.unwrap(), SIDE).await;
                said.iter().filter(|line| line.starts_with("user: ") && line.contains("dig it")).count()
            }
        };
        assert_eq!(given, 1, "{tool}\n{}", gateway.log());
    }
}

/// A turn that only looks costs no sync, and the calls of one answer share one.
#[tokio::test]
async fn a_transcript_is_synced_once_before_the_calls_of_an_answer_that_act() {
    let Some(disk) = FaultyDisk::new().unwrap() else { return };
    let acts = |n: usize| ScriptedCall::new(&format!("a{n}"), "exec", &json!({"command": "true"}));
    let model = ModelServer::queue([
        Reply::tool("c1", "read", &json!({"path": "none.txt"})),
        Reply::text("looked"),
        Reply::tools([acts(1), acts(2)]),
        Reply::text("did"),
    ])
    .await;
    let gateway = disk.under(crate::gateway().fake_model(&model.v1())).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let mut syncs = Vec::new();
    for run in ["run-1", "run-2"] {
        send(&mut client, "main", "go", run).await;
        assert_eq!(end(&mut client, run).await["state"], "final");
        let path = transcript_path(&gateway, "main").await.canonicalize().unwrap();
        syncs.push(disk.synced().unwrap()[&path].times);
    }
    // Syncs of the header and of the end of the turn; then before the calls, and at the end.
    assert_eq!(syncs, [2, 4]);
}

/// A power cut leaves the old file or the new one, never an empty one. Telegram's offset alone may be lost: the bot asks anew, and the
/// inbox knows what comes again.
#[tokio::test]
async fn no_file_of_the_state_takes_the_place_of_another_before_it_is_on_disk() {
    let Some(disk) = FaultyDisk::new().unwrap() else { return };
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let telegram = json!({"botToken": server.token(), "apiRoot": server.root(), "allowFrom": [5]});
    let setup = crate::gateway().fake_model(&model.v1()).config(json!({"channels": {"telegram": telegram}}));
    let mut gateway = disk.under(setup).start().await.unwrap();
    let device = Login::token(TOKEN).device(DeviceIdentity::from_seed(1));
    let (mut client, _) = WsClient::connect(gateway.port(), device).await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;
    let change = patch(&mut client).await;
    client.request("config.patch", change).await.unwrap();
    // An answer, a request to be let in, and choices below a message.
    for (said, update) in (1..).zip([(5, "hello"), (6, "let me in"), (5, "/think")]) {
        server.push(private_message(update.0, update.1));
        server.nth_answer("sendMessage", said).await;
    }
    server.all_confirmed().await;
    gateway.terminate().await.unwrap();
    let replaced = disk.replaced().unwrap();
    let names = |is_synced: bool| -> Vec<&str> {
        let of_kind = replaced.iter().filter(|(_, synced)| **synced == is_synced);
        of_kind.map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect()
    };
    let synced = names(true);
    for name in ["openclaw.json", "models.json", "sessions.json", "paired.json", "telegram-pairing.json"] {
        assert!(synced.contains(&name), "{name} is not replaced: {replaced:?}");
    }
    assert_eq!(names(false), ["update-offset-default.json"], "{replaced:?}");
}

/// A change of the configuration that needs no restart.
async fn patch(client: &mut WsClient) -> Value {
    let now = client.request("config.get", json!({})).await.unwrap();
    json!({"raw": json!({"messages": {"queue": {"mode": "steer"}}}).to_string(), "baseHash": now["hash"]})
}
