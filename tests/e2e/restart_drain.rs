//! A restart waits for the runs that are under way, and the gateway serves on meanwhile (spec `operations.md` §2.2).

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::command::run;
use crate::support::conversation::{message, send, turn};
use crate::support::http::get;
use crate::support::telegram::{bot, last_said};

const RESTARTS: &str =
    "⚙️ Restarting OpenClaw in-process (SIGUSR1) once 1 run has ended; messages are answered after that.";
const WAITS: &str = "the restart waits for 1 run to end, 300 s at most";

/// A bot of which two people are owners, each with a session of their own, and a model that says `slow` once the gate is open.
async fn bench(gate: &Gate) -> (TelegramServer, ModelServer, GatewayUnderTest) {
    let (server, held) = (TelegramServer::start().await, gate.clone());
    let model = ModelServer::answering(move |request| match last_said(request) {
        said if said.contains("slow") => Reply::text("slow").after(Step::Wait(held.clone())),
        _ => Reply::text("quick"),
    })
    .await;
    let section = json!({"dmPolicy": "allowlist", "allowFrom": [5, 6]});
    let rest = json!({"commands": {"restart": true}, "session": {"dmScope": "per-peer"}});
    let gateway = bot(&server, &model, section, rest).await;
    (server, model, gateway)
}

/// Requests a restart while the run of somebody else goes on.
async fn asks_for_a_restart(server: &TelegramServer, gateway: &GatewayUnderTest) {
    server.push(private_message(6, "/restart"));
    has_said(server, RESTARTS).await;
    gateway.logged(WAITS).await.unwrap();
}

async fn has_said(server: &TelegramServer, text: &str) {
    server.has_made(text, |made| made.iter().any(|made| made["text"] == text)).await;
}

fn said(server: &TelegramServer) -> Vec<(Value, Value)> {
    server.made().iter().map(|made| (made["chat_id"].clone(), made["text"].clone())).collect()
}

#[tokio::test]
async fn while_a_restart_waits_messages_are_taken_commands_answered_and_the_run_ends() {
    let gate = Gate::new();
    let (server, model, gateway) = bench(&gate).await;
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "idle", "hello", "before").await, "quick");
    server.push(private_message(5, "slow"));
    model.arrived(2).await;
    asks_for_a_restart(&server, &gateway).await;
    // Taken by the platform's account and over the protocol, and not begun.
    server.push(private_message(6, "are you there?"));
    server.all_confirmed().await;
    send(&mut client, "idle", "and you?", "held").await;
    // Answered by the gateway itself.
    assert!(turn(&mut client, "idle", "/status", "status").await.contains("OpenClaw"));
    // The command line finds it.
    let (exit, out, err) = run(&gateway, &["health"]).await;
    assert!(exit == 0 && out.contains("Restarting: it waits for runs to end"), "{out}{err}");
    let ready = get(gateway.port(), "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("\"draining\":true"), "{ready}");
    assert_eq!(model.requests().len(), 2, "nothing was begun");
    gate.open();
    gateway.logged("runs have ended; restarting now").await.unwrap();
    has_said(&server, "quick").await;
    model.arrived(4).await;
    let by_now = said(&server);
    let expect = [(6, RESTARTS), (5, "slow"), (6, "quick")].map(|(at, text)| (json!(at), json!(text)));
    assert_eq!(by_now, expect);
    let mut asked: Vec<_> = model.requests()[2..].iter().map(last_said).collect();
    asked.sort_by_key(|said| said.contains("are you there?"));
    assert!(asked[0].contains("and you?") && asked[1].contains("are you there?"), "{asked:?}");
}

#[tokio::test]
async fn a_run_that_a_restart_waits_for_can_be_stopped() {
    for by_a_client in [false, true] {
        let (server, model, gateway) = bench(&Gate::new()).await;
        let mut client = gateway.client().await.unwrap();
        if by_a_client {
            send(&mut client, "far", "slow", "run").await;
        } else {
            server.push(private_message(5, "slow"));
        }
        model.arrived(1).await;
        asks_for_a_restart(&server, &gateway).await;
        if by_a_client {
            let waits = message("far", "later", "waits");
            client.request("chat.send", waits).await.unwrap();
            let stopped = client.request("chat.abort", json!({"sessionKey": "far"})).await.unwrap();
            assert_eq!(stopped["runIds"], json!(["run", "waits"]));
        } else {
            server.push(private_message(5, "/stop"));
            has_said(&server, "⚙️ Agent was aborted.").await;
        }
        // The bot introduces itself when it starts.
        server.nth_call("setMyCommands", 2).await;
        server.push(private_message(6, "hello"));
        has_said(&server, "quick").await;
        assert_eq!(model.requests().len(), 2, "what was stopped does not come back");
    }
}

#[tokio::test]
async fn whoever_says_stop_is_not_kept_waiting_by_a_restart() {
    let (server, model, mut gateway) = bench(&Gate::new()).await;
    server.push(private_message(5, "slow"));
    model.arrived(1).await;
    asks_for_a_restart(&server, &gateway).await;
    assert!(gateway.terminate().await.unwrap().success());
    assert_eq!(server.calls("setMyCommands").len(), 1, "it did not start again");
    // The run goes on with the next start.
    gateway.start().await.unwrap();
    model.arrived(2).await;
    assert!(last_said(&model.requests()[1]).contains("slow"));
}
