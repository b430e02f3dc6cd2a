//! Stops: whoever began what a session does, a stop ends it and the session is free (spec
//! `queue.md` §6.2, §6.3).

use openclaw_testkit::WsClient;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{message, send, turn};
use crate::support::session_tools::{asked_call, tool_said};
use crate::support::telegram::{bot, open};

/// Parties that began the run that hangs.
const BEGINNERS: [&str; 4] = ["a person", "a program", "another session", "an answer of another session"];
/// Ways to stop it.
const STOPS: [&str; 4] = ["/stop", "stop", "abort", "abort of the run"];

/// Message to a session that is to answer.
const FREE: &str = "are you free?";

/// A model that makes the calls it is asked for, says what it is told to, and hangs where it is told that.
fn reply(request: &Captured) -> Reply {
    let said = request.last_user_text();
    if request.ends_with_tool_result() {
        return Reply::text("done");
    }
    if let Some((tool, args)) = asked_call(&said).filter(|_| !said.contains(FREE)) {
        return Reply::tool("call-1", &tool, &args);
    }
    match () {
        // The model may see what hung before in the same turn.
        () if said.contains(FREE) => Reply::text("hello"),
        () if said.contains("SAY ") => Reply::text(said.split("SAY ").nth(1).unwrap()),
        () if said.contains("hang") => Reply::never(),
        () => Reply::text("hello"),
    }
}

fn sends(text: &str, to: &str) -> String {
    let args = json!({"sessionKey": to, "message": text, "timeoutSeconds": 0});
    format!("CALL sessions_send {args}")
}

/// Asks for a run as a program.
async fn program(client: &mut WsClient, session: &str, text: &str, run: &str) {
    client.request("agent", message(session, text, run)).await.unwrap();
}

async fn has_begun(client: &mut WsClient, run: &str) {
    let begun = |event: &Value| event["runId"] == run && event["data"]["phase"] == "start";
    client.event("agent", begun).await.unwrap();
}

/// The run of the message that a session has sent to another.
fn sent_run(model: &ModelServer, to: &str) -> String {
    let requests = model.requests();
    let results = requests.iter().map(tool_said).filter_map(|said| serde_json::from_str::<Value>(&said).ok());
    let run = results.into_iter().find(|told| told["sessionKey"] == to).expect("it was sent");
    run["runId"].as_str().unwrap().to_owned()
}

/// Makes a run hang in a session; returns its id.
async fn hangs(client: &mut WsClient, model: &ModelServer, beginner: &str, key: &str) -> String {
    let run = match beginner {
        "a person" => {
            send(client, key, "hang", &format!("{key}-run")).await;
            format!("{key}-run")
        }
        "a program" => {
            program(client, key, "hang", &format!("{key}-run")).await;
            format!("{key}-run")
        }
        "another session" => {
            turn(client, &format!("{key}-other"), &sends("hang", key), &format!("{key}-r")).await;
            sent_run(model, key)
        }
        _ => {
            let other = format!("{key}-other");
            turn(client, key, &sends("SAY hang", &other), &format!("{key}-r")).await;
            format!("{}:turn-1", sent_run(model, &other))
        }
    };
    has_begun(client, &run).await;
    run
}

async fn stop(client: &mut WsClient, how: &str, key: &str, run: &str) -> Value {
    let (method, params) = match how {
        "abort" => ("chat.abort", json!({"sessionKey": key})),
        "abort of the run" => ("chat.abort", json!({"sessionKey": key, "runId": run})),
        words => ("chat.send", message(key, words, &format!("{key}-stop"))),
    };
    client.request(method, params).await.unwrap()
}

/// Checks that a run has ended.
async fn is_over(client: &mut WsClient, run: &str) {
    let over = client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap();
    assert_ne!(over["status"], "timeout", "{over}");
}

async fn was_aborted(client: &mut WsClient, key: &str) -> Value {
    let listed = client.request("sessions.list", json!({})).await.unwrap();
    let rows = listed["sessions"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == key).unwrap()["abortedLastRun"].clone()
}

#[tokio::test]
async fn a_stop_ends_what_a_session_does_whoever_began_it() {
    let model = ModelServer::answering(reply).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (n, beginner) in BEGINNERS.into_iter().enumerate() {
        for (m, how) in STOPS.into_iter().enumerate() {
            let (key, at) = (format!("agent:main:s{n}{m}"), format!("{how}, begun by {beginner}"));
            let run = hangs(&mut client, &model, beginner, &key).await;
            let waits = format!("{key}-waits");
            program(&mut client, &key, "hang on", &waits).await;
            let stopped = stop(&mut client, how, &key, &run).await;
            let ends = match how {
                "abort of the run" => vec![json!(run)],
                _ => vec![json!(run), json!(waits)],
            };
            assert_eq!((&stopped["aborted"], &stopped["runIds"]), (&json!(true), &json!(ends)), "{at}");
            is_over(&mut client, &run).await;
            if how == "abort of the run" {
                has_begun(&mut client, &waits).await;
                stop(&mut client, "abort", &key, &waits).await;
            }
            is_over(&mut client, &waits).await;
            assert_eq!(was_aborted(&mut client, &key).await, true, "{at}");
            assert_eq!(turn(&mut client, &key, FREE, &format!("{key}-free")).await, "hello", "{at}");
            let requests = model.requests();
            let note = "Note: the user stopped the run before this message.";
            let is_free = |request: &&Captured| request.last_user_text().contains(FREE);
            let said = requests.iter().rfind(is_free).unwrap().body.to_string();
            assert!(said.contains(note), "{at}: {said}");
        }
    }
}

#[tokio::test]
async fn a_stop_on_a_platform_ends_what_programs_began() {
    let (model, server) = (ModelServer::answering(reply).await, TelegramServer::start().await);
    let mut gateway = bot(&server, &model, open(), json!({})).await;
    let mut client = gateway.client().await.unwrap();
    program(&mut client, "main", "hang", "run").await;
    model.arrived(1).await;
    program(&mut client, "main", "hang on", "waits").await;
    server.push(private_message(7, "/stop"));
    let told = server.nth_call("sendMessage", 1).await;
    assert_eq!(told.params["text"], "⚙️ Agent was aborted.");
    for run in ["run", "waits"] {
        is_over(&mut client, run).await;
    }
    // A start does not take them up again.
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", FREE, "free").await, "hello");
    assert_eq!(model.requests().len(), 2);
}

/// A stop of a talk ends it in the session where it is; the other session is not touched.
#[tokio::test]
async fn a_talk_that_is_stopped_is_over() {
    let model = ModelServer::answering(reply).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let mut asked = 0;
    // With what the model is asked until it hangs.
    for (n, (step, requests)) in
        [("another session", 3), ("an answer of another session", 4)].into_iter().enumerate()
    {
        let key = format!("agent:main:s{n}");
        let run = hangs(&mut client, &model, step, &key).await;
        asked += requests;
        model.arrived(asked).await;
        stop(&mut client, "/stop", &key, &run).await;
        is_over(&mut client, &run).await;
        for session in [key.clone(), format!("{key}-other")] {
            assert_eq!(turn(&mut client, &session, FREE, &format!("{session}-free")).await, "hello");
        }
        asked += 2;
        assert_eq!(model.requests().len(), asked, "nothing follows: {step}");
    }
}
