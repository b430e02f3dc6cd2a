//! Costs of the tools by which agents look at other sessions, talk to them and start sub-agents.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use openclaw_testkit::model_server::{ModelServer, Reply, ScriptedCall};
use openclaw_testkit::{GatewaySetup, TOKEN, many_sessions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::model::{InstantModel, PEER, Request, Script, Tool};
use super::start::write_sessions;
use super::{Row, percentile};

/// Sessions of which some are listed.
const SESSIONS: usize = 10_000;
/// Number of sessions listed, and of messages in each.
const LISTED: usize = 200;
const MESSAGES: usize = 40;
/// Number of measurements of a call.
const CALLS: usize = 50;

/// Sub-agents that one answer of the model starts.
const CHILDREN: usize = 1_000;
/// Time that all of it may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Times at which the model asked for the children, and was told that all are accepted.
#[derive(Debug, Default)]
struct Times {
    asked: Option<Instant>,
    told: Option<Instant>,
    accepted: usize,
}

pub(super) async fn rows(program: &Path) -> Result<Vec<Row>> {
    let mut rows = spawns(program).await?;
    rows.push(list(program).await?);
    rows.extend(send(program).await?);
    Ok(rows)
}

/// `sessions_list` with the last messages of each session.
async fn list(program: &Path) -> Result<Row> {
    let gateway = GatewaySetup::new(program).prepare()?;
    write_sessions(&gateway.state_dir(), SESSIONS)?;
    for number in SESSIONS - LISTED..SESSIONS {
        write_transcript(&gateway.state_dir(), number)?;
    }
    let mut gateway = gateway;
    gateway.start().await?;
    let call = json!({"tool": "sessions_list", "args": {"limit": LISTED, "messageLimit": 5}});
    let listed = result_of(&invoke(gateway.port(), &call).await?)?;
    let messages = listed.to_string().matches("a word of number").count();
    ensure!(messages >= LISTED * 5, "only {messages} messages are listed");
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let began = Instant::now();
        let answer = invoke(gateway.port(), &call).await?;
        times.push(began.elapsed());
        result_of(&answer)?;
    }
    let what = "sessions_list of 200 of 10,000, 5 messages each, p50";
    Ok(Row::limited(what, "ms", percentile(&mut times, 50), 20.0))
}

/// Some talk for a row of the store.
fn write_transcript(state: &Path, number: usize) -> Result<()> {
    let id = many_sessions::id(number);
    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-02-09T10:00:00.000Z", "cwd": "/"});
    let mut text = format!("{header}\n");
    for n in 0..MESSAGES {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let parent = n.checked_sub(1).map(|before| format!("{before:08x}"));
        let content = json!([{"type": "text", "text": format!("a word of number {n} ").repeat(20)}]);
        let message =
            json!({"role": role, "content": content, "timestamp": 1_770_000_000_000_u64 + n as u64});
        let line = json!({
            "type": "message", "id": format!("{n:08x}"), "parentId": parent,
            "timestamp": "2026-02-09T10:00:00.000Z", "message": message,
        });
        writeln!(text, "{line}")?;
    }
    Ok(std::fs::write(state.join(format!("agents/main/sessions/{id}.jsonl")), text)?)
}

/// `sessions_send` to a session that answers, without what agents say to each other after it: called by a model in its run, and
/// by a program.
async fn send(program: &Path) -> Result<Vec<Row>> {
    let (mut beside_models, mut by_program) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    let config = json!({"session": {"agentToAgent": {"maxPingPongTurns": 0}}});
    let script = Script { tool_calls: 1, tool: Tool::Send, ..Script::SHORT };
    let model = InstantModel::start(script)?;
    let gateway = GatewaySetup::new(program).fake_model(&model.url()).config(config.clone()).start().await?;
    let mut client = gateway.client().await?;
    client.request("sessions.patch", json!({"key": "agent:main:peer", "label": PEER})).await?;
    for number in 0..CALLS {
        let run = format!("send-{number}");
        let asked = json!({"sessionKey": "main", "message": "ask the other", "idempotencyKey": run});
        client.request("chat.send", asked).await?;
        client.event("chat", |event| event["runId"] == run && event["state"] == "final").await?;
        // The answers of both sessions, and the announcement.
        answered(&model, (number + 1) * 3).await?;
        beside_models.push(beside(&model.requests())?);
    }
    drop(gateway);

    let model = InstantModel::start(Script::SHORT)?;
    let gateway = GatewaySetup::new(program).fake_model(&model.url()).config(config).start().await?;
    let mut client = gateway.client().await?;
    client.request("sessions.patch", json!({"key": "agent:main:peer", "label": PEER})).await?;
    let call =
        json!({"tool": "sessions_send", "args": {"label": PEER, "message": "hello", "timeoutSeconds": 30}});
    for number in 0..CALLS {
        let began = Instant::now();
        let answer = invoke(gateway.port(), &call).await?;
        by_program.push(began.elapsed());
        let answer = result_of(&answer)?;
        ensure!(answer.to_string().contains("Hello again"), "no answer: {answer}");
        answered(&model, (number + 1) * 2).await?;
    }
    let what = "sessions_send until its answer, without the models' time, p50";
    let shown = "the same by HTTP, with the connection and the model's time, p50";
    Ok(vec![
        Row::limited(what, "ms", percentile(&mut beside_models, 50), 3.0),
        Row::shown(shown, "ms", percentile(&mut by_program, 50)),
    ])
}

/// Waits until a model has answered so often, and a little longer: what follows is not to be measured with the next call.
async fn answered(model: &InstantModel, times: usize) -> Result<()> {
    let began = Instant::now();
    while model.answers() < times {
        ensure!(began.elapsed() < PATIENCE, "the announcement is never asked for");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(())
}

/// Time from the call of the tool to the request that has its result, without the time in which the
/// other session's model answered.
fn beside(requests: &[Request]) -> Result<Duration> {
    let (calls, other) = (requests.first(), requests.get(1));
    let told = requests.iter().find(|request| request.has_result);
    let (call, other, told) =
        calls.zip(other).zip(told).map(|((a, b), c)| (a, b, c)).context("too few requests")?;
    let all = told.asked.saturating_duration_since(call.ended);
    Ok(all.saturating_sub(other.ended.saturating_duration_since(other.asked)))
}

/// Calls a tool by HTTP and gives the answer as it comes.
async fn invoke(port: u16, call: &Value) -> Result<String> {
    let body = call.to_string();
    let head = format!(
        "POST /tools/invoke HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await?;
    socket.write_all((head + &body).as_bytes()).await?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Result of a tool. It is read when the time is taken: that is the client's own work.
fn result_of(answer: &str) -> Result<Value> {
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    let answer: Value = serde_json::from_str(body).with_context(|| answer.to_owned())?;
    ensure!(answer.get("ok") == Some(&json!(true)), "refused: {answer}");
    Ok(answer)
}

/// A thousand sub-agents.
async fn spawns(program: &Path) -> Result<Vec<Row>> {
    let times = Arc::new(Mutex::new(Times::default()));
    let noted = Arc::clone(&times);
    let model = ModelServer::answering(move |request| {
        let mut times = noted.lock().unwrap_or_else(PoisonError::into_inner);
        if !request.last_user_text().contains("delegate") {
            return Reply::text("done");
        }
        if !request.ends_with_tool_result() {
            times.asked = Some(Instant::now());
            let task = |n| {
                ScriptedCall::new(&format!("c{n}"), "sessions_spawn", &json!({"task": format!("task {n}")}))
            };
            return Reply::tools((0..CHILDREN).map(task));
        }
        times.told = Some(Instant::now());
        times.accepted = request.body.to_string().matches("accepted").count();
        Reply::text("all are at work")
    });
    let model = model.await.forgetful();
    let config = json!({"agents": {"defaults": {"subagents": {"announceMode": "raw", "maxConcurrent": 8}}}});
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).config(config).start().await?;
    let mut client = gateway.client().await?;
    let params = json!({"sessionKey": "main", "message": "delegate", "idempotencyKey": "r1"});
    client.request("chat.send", params).await?;
    client.event("chat", |event| event["runId"] == "r1" && event["state"] == "final").await?;
    drop(client);
    let (asked, told) = {
        let times = times.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(times.accepted >= CHILDREN, "only {} sub-agents were accepted", times.accepted);
        (times.asked.context("nothing was asked")?, times.told.context("nothing was told")?)
    };
    let path = gateway.state_dir().join("subagents/runs.json");
    while over(&path) < CHILDREN {
        ensure!(asked.elapsed() < PATIENCE, "only {} sub-agents are told of", over(&path));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(vec![
        Row::limited(
            "1,000 sub-agents accepted, 8 at work",
            "ms",
            (told - asked).as_secs_f64() * 1e3,
            1_000.0,
        ),
        Row::shown("the same until all are told of", "ms", asked.elapsed().as_secs_f64() * 1e3),
    ])
}

/// Number of entries that need nothing more.
fn over(path: &Path) -> usize {
    let list: Value =
        std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let rows = list["runs"].as_object().into_iter().flat_map(serde_json::Map::values);
    rows.filter(|row| row["cleanupCompletedAt"].is_number()).count()
}
