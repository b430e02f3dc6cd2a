//! Measures the release binary against the design's performance budget, with a scripted model that answers at once.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::json;

use crate::build::{Profile, binary, echo};

const MIB: f64 = 1024.0 * 1024.0;

/// One row of the budget.
struct Row {
    what: &'static str,
    unit: &'static str,
    measured: f64,
    limit: f64,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let turns = match args {
        [] => 1_000,
        [flag, turns] if flag == "--turns" => turns.parse().context("--turns takes a number")?,
        _ => bail!("usage: cargo xtask budget [--turns N]"),
    };
    let program = binary(Profile::Release)?;
    let rows = tokio::runtime::Runtime::new()?.block_on(measure(&program, turns))?;
    print!("{}", table(&rows));
    if rows.iter().any(|row| row.measured > row.limit) {
        bail!("the budget is missed");
    }
    Ok(())
}

async fn measure(program: &Path, turns: usize) -> Result<Vec<Row>> {
    let mut rows = vec![
        row("binary size", "MB", std::fs::metadata(program)?.len() as f64 / MIB, 30.0),
        row("openclaw --version", "ms", version_time(program)?, 5.0),
        row("start to healthy, empty", "ms", start_time(program, 0)?, 20.0),
        row("start to healthy, 1,000 sessions", "ms", start_time(program, 1_000)?, 50.0),
    ];
    rows.extend(turn_rows(program, turns).await?);
    Ok(rows)
}

fn row(what: &'static str, unit: &'static str, measured: f64, limit: f64) -> Row {
    Row { what, unit, measured, limit }
}

fn table(rows: &[Row]) -> String {
    let mut out = format!("{:<36}{:>12}{:>12}\n", "what", "measured", "budget");
    for Row { what, unit, measured, limit } in rows {
        let verdict = if measured > limit { "  MISSED" } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(out, "{what:<36}{measured:>9.2} {unit}{limit:>9.0} {unit}{verdict}");
    }
    out
}

/// Median over many runs, from spawn to exit.
fn version_time(program: &Path) -> Result<f64> {
    const RUNS: usize = 50;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        Command::new(program).arg("--version").stdout(Stdio::null()).status()?;
        times.push(start.elapsed());
    }
    Ok(millis(percentile(&mut times, 50)))
}

/// Median time from spawn to the first 200 of `/healthz`.
fn start_time(program: &Path, sessions: usize) -> Result<f64> {
    const RUNS: usize = 15;
    let home = tempfile::tempdir()?;
    let state = home.path().join("state");
    std::fs::create_dir_all(&state)?;
    let config = json!({"gateway": {"mode": "local", "auth": {"mode": "token", "token": TOKEN}}});
    std::fs::write(state.join("openclaw.json"), config.to_string())?;
    write_sessions(&state, sessions)?;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let start = Instant::now();
        let mut gateway = Command::new(program)
            .args(["gateway", "run", "--port", &port.to_string()])
            .env_clear()
            .env("HOME", home.path())
            .env("OPENCLAW_STATE_DIR", &state)
            .env("TMPDIR", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let healthy = until_healthy(port, start);
        gateway.kill()?;
        gateway.wait()?;
        times.push(healthy?);
    }
    Ok(millis(percentile(&mut times, 50)))
}

fn until_healthy(port: u16, start: Instant) -> Result<Duration> {
    const PATIENCE: Duration = Duration::from_secs(10);
    while start.elapsed() < PATIENCE {
        if let Ok(mut socket) = TcpStream::connect(("127.0.0.1", port)) {
            socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            socket.read_to_string(&mut answer)?;
            if answer.starts_with("HTTP/1.1 200") {
                return Ok(start.elapsed());
            }
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    bail!("the gateway did not become healthy")
}

/// A store as OpenClaw writes it, each session with a short transcript.
fn write_sessions(state: &Path, count: usize) -> Result<()> {
    let dir = state.join("agents/main/sessions");
    std::fs::create_dir_all(&dir)?;
    let mut rows = serde_json::Map::new();
    for n in 0..count {
        let id = format!("00000000-0000-4000-8000-{n:012}");
        rows.insert(
            format!("agent:main:telegram:group:{n}"),
            json!({"sessionId": id, "updatedAt": 1_770_000_000_000_i64 + n as i64}),
        );
        let header = json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-02-09T10:00:00.000Z", "cwd": "/"});
        std::fs::write(dir.join(format!("{id}.jsonl")), format!("{header}\n"))?;
    }
    std::fs::write(dir.join("sessions.json"), serde_json::to_string_pretty(&rows)?)?;
    Ok(())
}

async fn turn_rows(program: &Path, turns: usize) -> Result<Vec<Row>> {
    let model = echo().await;
    let gateway = GatewaySetup::new(program).fake_model(&model.v1()).start().await?;
    let mut client = gateway.client().await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = resident(&gateway)?;
    let mut times = Vec::with_capacity(turns);
    for turn in 0..turns {
        times.push(one_turn(&mut client, turn).await?);
    }
    let after_turns = resident(&gateway)?;
    let mut clients = Vec::new();
    for _ in 0..200 {
        clients.push(WsClient::connect(gateway.port(), Login::token(TOKEN)).await?);
    }
    let with_clients = resident(&gateway)?;
    Ok(vec![
        row("memory, idle", "MB", idle, 20.0),
        row("memory after the turns", "MB", after_turns, 40.0),
        row("memory with 200 more clients", "MB", with_clients, 45.0),
        row("turn, p50, model's share included", "ms", millis(percentile(&mut times, 50)), 2.0),
        row("turn, p99, model's share included", "ms", millis(percentile(&mut times, 99)), 10.0),
    ])
}

/// From `chat.send` to the final `chat` event. A new session every 20 turns: the context stays that of a short chat.
async fn one_turn(client: &mut WsClient, turn: usize) -> Result<Duration> {
    let run = format!("turn-{turn}");
    let session = format!("budget-{}", turn / 20);
    let start = Instant::now();
    client
        .request("chat.send", json!({"sessionKey": session, "message": "hello", "idempotencyKey": run}))
        .await?;
    client.event("chat", |chat| chat["runId"] == run.as_str() && chat["state"] == "final").await?;
    let took = start.elapsed();
    client.take_passed();
    Ok(took)
}

/// Resident memory in MB.
fn resident(gateway: &GatewayUnderTest) -> Result<f64> {
    let pid = gateway.pid().context("the gateway ended")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.split_whitespace().nth(1).context("an odd VmRSS")?.parse()?;
    Ok(kib / 1024.0)
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
