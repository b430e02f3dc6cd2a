//! Costs of turns and clients, in time and memory.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest, Login, TOKEN, WsClient, long_sessions};
use serde_json::{Value, json};

use super::model::{self, InstantModel, Script};
use super::{Row, percentile, process, start};

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
}

/// The sessions that a gateway finds at its start.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stored {
    /// No sessions.
    Nothing,
    /// Number of sessions, with nothing said in them.
    Sessions(usize),
    /// Sessions made by [`long_sessions`].
    Long { sessions: usize, messages: usize },
}

/// Times of one turn.
pub(super) struct Turn {
    /// Time from `chat.send` to the final `chat` event, without the model's share.
    pub(super) own: Duration,
    /// The model's share.
    model: Duration,
    /// Time from the model's first word to the client's seeing it.
    first: Duration,
}

pub(super) async fn rows(program: &Path, turns: usize) -> Result<Vec<Row>> {
    let mut rows = main_rows(program, turns).await?;
    let mut crowded = Bench::start(program, Stored::Sessions(10_000), Script::SHORT).await?;
    let mut own: Vec<Duration> =
        crowded.turns(turns, short_chats).await?.iter().map(|turn| turn.own).collect();
    rows.push(Row::limited("turn with 10,000 sessions, p50", "ms", percentile(&mut own, 50), 2.0));
    rows.push(Row::limited("turn with 10,000 sessions, p99", "ms", percentile(&mut own, 99), 10.0));
    // A pause after the first word keeps the rest of the answer from sharing its way to the client.
    let paced = Script { pause: Duration::from_millis(5), ..Script::SHORT };
    let mut paced = Bench::start(program, Stored::Nothing, paced).await?;
    let mut first: Vec<Duration> =
        paced.turns(FEW, short_chats).await?.iter().map(|turn| turn.first).collect();
    rows.push(Row::limited("first word after the model's, p50", "ms", percentile(&mut first, 50), 1.0));
    rows.push(Row::shown("first word after the model's, p99", "ms", percentile(&mut first, 99)));
    Ok(rows)
}

/// The session of a turn, by its number: a new one now and then.
pub(super) fn short_chats(turn: usize) -> String {
    format!("budget-{}", turn / TURNS_A_SESSION)
}

async fn main_rows(program: &Path, turns: usize) -> Result<Vec<Row>> {
    let mut bench = Bench::start(program, Stored::Nothing, Script::SHORT).await?;
    // Work that a start leaves to do is done by then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = bench.resident()?;
    let taken = bench.turns(turns, short_chats).await?;
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
    pub(super) async fn start(program: &Path, stored: Stored, script: Script) -> Result<Self> {
        let model = InstantModel::start(script)?;
        // Room for all that is said in long sessions.
        let window = json!({"agents": {"defaults": {"contextTokens": 2_000_000}}});
        let mut gateway = GatewaySetup::new(program).fake_model(&model.url()).config(window).prepare()?;
        let state = gateway.state_dir();
        match stored {
            Stored::Nothing => {}
            Stored::Sessions(count) => start::write_sessions(&state, count)?,
            Stored::Long { sessions, messages } => long_sessions::write(&state, sessions, messages)?,
        }
        std::fs::create_dir(state.join("workspace"))?;
        std::fs::write(state.join("workspace").join(model::FILE), "A few words to be read.\n".repeat(20))?;
        gateway.start().await?;
        let client = gateway.client().await?;
        Ok(Self { model, gateway, client, turn: 0 })
    }

    /// Runs so many turns, each in the session that its number stands for.
    pub(super) async fn turns(
        &mut self,
        count: usize,
        session: impl Fn(usize) -> String,
    ) -> Result<Vec<Turn>> {
        let mut taken = Vec::with_capacity(count);
        for _ in 0..count {
            let session = session(self.turn);
            taken.push(self.one_turn(&session).await?);
        }
        Ok(taken)
    }

    async fn one_turn(&mut self, session: &str) -> Result<Turn> {
        self.turn += 1;
        let run = format!("turn-{}", self.turn);
        let sent = Instant::now();
        let params = json!({"sessionKey": session, "message": "hello", "idempotencyKey": run});
        self.client.send("chat.send", params).await?;
        self.client.wait_for(|frame| is_word(frame, &run)).await?;
        let seen = Instant::now();
        let is_end = |chat: &Value| chat["runId"] == run.as_str() && chat["state"] != "delta";
        let end = self.client.event("chat", is_end).await?;
        let ended = Instant::now();
        if end["state"] != "final" {
            bail!("a turn failed: {end}");
        }
        self.client.take_passed();
        let (model, began) = self.model.last_turn()?;
        Ok(Turn { own: (ended - sent).saturating_sub(model), model, first: seen - began })
    }

    /// Ends the gateway in order.
    pub(super) async fn stop(mut self) -> Result<()> {
        self.gateway.terminate().await?;
        Ok(())
    }

    /// Resident memory in MB.
    pub(super) fn resident(&self) -> Result<f64> {
        process::memory(self.pid()?, "VmRSS:")
    }

    /// The gateway's process.
    pub(super) fn pid(&self) -> Result<u32> {
        self.gateway.pid().context("the gateway ended")
    }
}

/// True if a frame shows a word of the answer.
fn is_word(frame: &Value, run: &str) -> bool {
    let payload = &frame["payload"];
    payload["runId"] == run
        && match frame["event"].as_str() {
            Some("agent") => payload["stream"] == "assistant",
            Some("chat") => payload["state"] == "delta",
            _ => false,
        }
}
