//! Several clients in the same sessions, bursts in every queue mode, stops and resets, and `kill -9` at any moment: each accepted
//! message stands once in a transcript, in the order in which its client sent it, and comes to an end.
//!
//! `OPENCLAW_TEST_QUEUE_KILLS` sets how many kills there are of each mode, `OPENCLAW_TEST_SEED` the chance.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, Login, Received, TOKEN, WsClient};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::kills::{Alarm, set};

const MODES: [&str; 5] = ["collect", "followup", "steer", "steer-backlog", "interrupt"];
/// Of each mode, unless `OPENCLAW_TEST_QUEUE_KILLS` says otherwise.
const KILLS: usize = 12;
const CLIENTS: usize = 4;
/// Sessions that all clients share. They go on with others after a while: every turn sends the whole history.
const SESSIONS: usize = 2;
const MESSAGES: usize = 40;
/// Frames seen by all clients together before a kill, at most.
const LIFETIME: usize = 120;
const SEED: u64 = 20_261_122;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bursts_in_every_queue_mode_outlive_kills_once_and_in_order() -> Result<()> {
    for (at, mode) in MODES.into_iter().enumerate() {
        let seed = set("OPENCLAW_TEST_SEED", SEED)? + at as u64;
        torture(mode, set("OPENCLAW_TEST_QUEUE_KILLS", KILLS)?, seed)
            .await
            .with_context(|| mode.to_owned())?;
    }
    Ok(())
}

async fn torture(mode: &str, kills: usize, seed: u64) -> Result<()> {
    let model = ModelServer::answering(answer).await.forgetful();
    let config = json!({"messages": {"queue": {"mode": mode}}});
    let mut gateway = crate::gateway().fake_model(&model.v1()).config(config).start().await?;
    let mut chance = StdRng::seed_from_u64(seed);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|name| Client::new(name, chance.random())).collect();
    for _ in 0..kills {
        let alarm = Arc::new(Alarm::after(chance.random_range(1..LIFETIME)));
        let mut lives = JoinSet::new();
        for client in clients.drain(..) {
            lives.spawn(client.live(gateway.port(), Arc::clone(&alarm)));
        }
        alarm.rings().await;
        gateway.kill().await?;
        while let Some(client) = lives.join_next().await {
            clients.push(client??);
        }
        gateway.start().await.context("the gateway does not start after a kill")?;
    }
    settle(&gateway, &clients).await?;
    gateway.terminate().await?;
    ensure!(!gateway.log().contains("damaged"), "a kill damages nothing:\n{}", gateway.log());
    let said = said(&gateway.state_dir().join("agents/main/sessions"))?;
    for client in &clients {
        for run in &client.accepted {
            let times = said.values().flatten().filter(|other| *other == run).count();
            ensure!(times == 1, "{run} stands {times} times in {said:#?}; log:\n{}", about(&gateway, run));
        }
    }
    for (file, runs) in &said {
        for client in 0..CLIENTS {
            let own: Vec<usize> = runs.iter().filter_map(|run| number(run, client)).collect();
            ensure!(own.is_sorted(), "client {client} in {file}: {own:?}");
        }
    }
    Ok(())
}

/// The lines of the log that name a run.
fn about(gateway: &GatewayUnderTest, run: &str) -> String {
    let log = gateway.log();
    log.lines().filter(|line| line.contains(run)).map(|line| format!("{line}\n")).collect()
}

/// Every third answer makes a tool call first: there is something to steer into.
fn answer(request: &Captured) -> Reply {
    let said = request.last_user_text();
    let run = said.split_whitespace().find(|word| word.starts_with("run-")).unwrap_or("nobody").to_owned();
    if run.ends_with(['1', '4', '7']) && !request.ends_with_tool_result() {
        return Reply::tool(&format!("call-{run}"), "read", &json!({"path": "openclaw-test-no-such-file"}));
    }
    Reply::deltas(["answer ", "to ", &run])
}

/// A client that sends bursts of messages, and sends again what it has not seen end.
struct Client {
    name: usize,
    next: usize,
    /// Sent and not seen to end, oldest first.
    open: Vec<String>,
    accepted: BTreeSet<String>,
    chance: StdRng,
}

impl Client {
    fn new(name: usize, seed: u64) -> Self {
        let chance = StdRng::seed_from_u64(seed);
        Self { name, next: 0, open: Vec::new(), accepted: BTreeSet::new(), chance }
    }

    /// Works until the connection is gone.
    async fn live(mut self, port: u16, alarm: Arc<Alarm>) -> Result<Self> {
        if let Ok((mut socket, _)) = WsClient::connect(port, Login::token(TOKEN)).await {
            while self.burst(&mut socket, &alarm).await? {}
        }
        Ok(self)
    }

    /// One burst until its end. False when the connection is lost; an error is the gateway's mistake.
    async fn burst(&mut self, socket: &mut WsClient, alarm: &Alarm) -> Result<bool> {
        if self.open.is_empty() {
            for _ in 0..self.chance.random_range(1..4) {
                self.next += 1;
                self.open.push(format!("run-{}-{}", self.name, self.next));
            }
        }
        let mut asked = BTreeMap::new();
        for run in &self.open {
            let session = session(run);
            let message = format!("please answer {run} now");
            let params = json!({"sessionKey": session, "message": message, "idempotencyKey": run});
            let Ok(id) = socket.send("chat.send", params).await else { return Ok(false) };
            asked.insert(id, run.clone());
        }
        let key = self.open.first().map(|run| session(run)).unwrap_or_default();
        let also = match self.chance.random_range(0..12) {
            0 => socket.send("chat.abort", json!({"sessionKey": key})).await,
            1 => socket.send("sessions.reset", json!({"key": key})).await,
            _ => Ok(String::new()),
        };
        if also.is_err() {
            return Ok(false);
        }
        while !self.open.is_empty() {
            let Ok(Received::Frame(frame)) = socket.receive().await else { return Ok(false) };
            alarm.seen();
            let payload = &frame["payload"];
            if let Some(run) = frame["id"].as_str().and_then(|id| asked.get(id)) {
                ensure!(frame["ok"] == true || frame["error"]["code"] == "UNAVAILABLE", "{run}: {frame}");
                if frame["ok"] == true {
                    self.accepted.insert(run.clone());
                }
                if payload["status"] == "ok" {
                    self.open.retain(|open| open != run);
                }
            }
            let is_end = frame["event"] == "chat" && payload["state"] != "delta";
            if is_end && let Some(ended) = payload["runId"].as_str() {
                self.open.retain(|open| open != ended);
            }
        }
        Ok(true)
    }
}

/// The same for the same message, whenever it is sent.
fn session(run: &str) -> String {
    let number: usize = run.rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or_default();
    format!("shared-{}-{}", number % SESSIONS, number / MESSAGES)
}

/// The number of a client's message.
fn number(run: &str, client: usize) -> Option<usize> {
    run.strip_prefix(&format!("run-{client}-"))?.parse().ok()
}

/// Waits for the end of everything that was accepted.
async fn settle(gateway: &GatewayUnderTest, clients: &[Client]) -> Result<()> {
    let mut socket = gateway.client().await?;
    for client in clients {
        for run in &client.accepted {
            let end = socket.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await?;
            ensure!(end["status"] == "ok", "{run} ends with {end}; log:\n{}", about(gateway, run));
        }
    }
    Ok(())
}

/// The messages of people in each transcript, archived ones too, in order.
fn said(dir: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let mut said = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !name.contains(".jsonl") || name.ends_with(".lock") {
            continue;
        }
        let mut runs = Vec::new();
        for line in std::fs::read_to_string(&path)?.lines() {
            let entry: Value = serde_json::from_str(line).with_context(|| format!("{name}: {line}"))?;
            let message = &entry["message"];
            let text = message["content"].to_string();
            let run = text.split([' ', '"', '\\']).find(|word| word.starts_with("run-"));
            if let Some(run) = run.filter(|_| message["role"] == "user") {
                runs.push(run.to_owned());
            }
        }
        said.insert(name, runs);
    }
    Ok(said)
}
