//! What turns and clients cost, in time and memory.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use super::model::InstantModel;
use super::{Row, many, percentile, start};

/// Turns a session has before the next begins: the context stays that of a short chat.
const TURNS_A_SESSION: usize = 20;
/// Clients that come at the end.
const CLIENTS: usize = 200;
/// Turns of the measurement that pauses in each.
const FEW: usize = 200;

/// A gateway and a client that measures it.
pub(super) struct Bench {
    model: InstantModel,
    gateway: GatewayUnderTest,
    client: WsClient,
    turn: usize,
    pub(super) turns_a_session: usize,
}

/// What one turn took.
pub(super) struct Turn {
    /// From `chat.send` to the final `chat` event, without the model's share.
    own: Duration,
    /// From the model's being asked to its last word.
    model: Duration,
    /// From the model's first word to the client's seeing it.
    first: Duration,
}

pub(super) async fn rows(program: &Path, turns: usize) -> Result<Vec<Row>> {
    let mut rows = main_rows(program, turns).await?;
    let mut crowded = Bench::start(program, Duration::ZERO, 10_000).await?;
    let mut own: Vec<Duration> = crowded.turns(turns).await?.iter().map(|turn| turn.own).collect();
    rows.push(Row::limited("turn with 10,000 sessions, p50", "ms", percentile(&mut own, 50), 2.0));
    rows.push(Row::limited("turn with 10,000 sessions, p99", "ms", percentile(&mut own, 99), 10.0));
    // A pause after the first word keeps the rest of the answer from sharing its way to the client.
    let mut paced = Bench::start(program, Duration::from_millis(5), 0).await?;
    let mut first: Vec<Duration> = paced.turns(FEW).await?.iter().map(|turn| turn.first).collect();
    rows.push(Row::limited("first word after the model's, p50", "ms", percentile(&mut first, 50), 1.0));
    rows.push(Row::shown("first word after the model's, p99", "ms", percentile(&mut first, 99)));
    Ok(rows)
}

async fn main_rows(program: &Path, turns: usize) -> Result<Vec<Row>> {
    let mut bench = Bench::start(program, Duration::ZERO, 0).await?;
    // What a start leaves to do is done.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = bench.resident()?;
    let taken = bench.turns(turns).await?;
    let after_turns = bench.resident()?;
    let mut clients = Vec::with_capacity(CLIENTS);
    for _ in 0..CLIENTS {
        clients.push(WsClient::connect(bench.gateway.port(), Login::token(TOKEN)).await?);
    }
    let with_clients = bench.resident()?;
    let mut own: Vec<Duration> = taken.iter().map(|turn| turn.own).collect();
    let mut model: Vec<Duration> = taken.iter().map(|turn| turn.model).collect();
    Ok(vec![
        Row::limited("memory, idle", "MB", idle, 20.0),
        Row::limited("memory after the turns", "MB", after_turns, 40.0),
        Row::limited("memory with 200 more clients", "MB", with_clients, 45.0),
        Row::limited("turn, the gateway's own, p50", "ms", percentile(&mut own, 50), 2.0),
        Row::limited("turn, the gateway's own, p99", "ms", percentile(&mut own, 99), 10.0),
        Row::shown("turn, the model's share, p50", "ms", percentile(&mut model, 50)),
    ])
}

impl Bench {
    pub(super) async fn start(program: &Path, pause: Duration, sessions: usize) -> Result<Self> {
        let model = InstantModel::start(pause)?;
        let mut gateway = GatewaySetup::new(program).fake_model(&model.url()).prepare()?;
        start::write_sessions(&gateway.state_dir(), sessions)?;
        gateway.start().await?;
        let client = gateway.client().await?;
        Ok(Self { model, gateway, client, turn: 0, turns_a_session: TURNS_A_SESSION })
    }

    pub(super) async fn turns(&mut self, count: usize) -> Result<Vec<Turn>> {
        let mut taken = Vec::with_capacity(count);
        for _ in 0..count {
            taken.push(self.one_turn().await?);
        }
        Ok(taken)
    }

    async fn one_turn(&mut self) -> Result<Turn> {
        self.turn += 1;
        let (run, session) =
            (format!("turn-{}", self.turn), format!("budget-{}", self.turn / self.turns_a_session));
        let sent = Instant::now();
        let params = json!({"sessionKey": session, "message": "hello", "idempotencyKey": run});
        self.client.send("chat.send", params).await?;
        self.client.wait_for(|frame| is_word(frame, &run)).await?;
        let seen = Instant::now();
        self.client.event("chat", |chat| chat["runId"] == run.as_str() && chat["state"] == "final").await?;
        let ended = Instant::now();
        self.client.take_passed();
        let times = self.model.last()?;
        let model = times.answered - times.asked;
        Ok(Turn { own: (ended - sent).saturating_sub(model), model, first: seen - times.began })
    }

    /// Ends the gateway in order.
    pub(super) async fn stop(mut self) -> Result<()> {
        self.gateway.terminate().await?;
        Ok(())
    }

    /// Resident memory in MB.
    fn resident(&self) -> Result<f64> {
        let pid = self.gateway.pid().context("the gateway ended")?;
        many::memory(pid, "VmRSS:")
    }
}

/// Whether a frame shows a word of the answer.
fn is_word(frame: &Value, run: &str) -> bool {
    let payload = &frame["payload"];
    payload["runId"] == run
        && match frame["event"].as_str() {
            Some("agent") => payload["stream"] == "assistant",
            Some("chat") => payload["state"] == "delta",
            _ => false,
        }
}
