//! How long the binary takes until it is of use.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use openclaw_testkit::TOKEN;
use serde_json::json;

use super::percentile;

/// Median time of `--version`, from spawn to exit, in milliseconds.
pub(super) fn version(program: &Path) -> Result<f64> {
    const RUNS: usize = 50;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        Command::new(program).arg("--version").stdout(Stdio::null()).status()?;
        times.push(start.elapsed());
    }
    Ok(percentile(&mut times, 50))
}

/// Median time from spawn to the first 200 of `/healthz`, in milliseconds.
pub(super) fn healthy(program: &Path, sessions: usize) -> Result<f64> {
    const RUNS: usize = 21;
    let home = tempfile::tempdir()?;
    let state = home.path().join("state");
    std::fs::create_dir_all(&state)?;
    let config = json!({"gateway": {"mode": "local", "auth": {"mode": "token", "token": TOKEN}}});
    std::fs::write(state.join("openclaw.json"), config.to_string())?;
    write_sessions(&state, sessions)?;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
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
    Ok(percentile(&mut times, 50))
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
pub(super) fn write_sessions(state: &Path, count: usize) -> Result<()> {
    let dir = state.join("agents/main/sessions");
    std::fs::create_dir_all(&dir)?;
    let mut rows = serde_json::Map::new();
    for n in 0..count {
        let id = format!("00000000-0000-4000-8000-{n:012}");
        let row = json!({
            "sessionId": id, "updatedAt": 1_770_000_000_000_u64 + n as u64, "chatType": "group", "channel": "telegram",
            "subject": format!("Group {n}"), "inputTokens": 100, "outputTokens": 7, "totalTokens": 107,
        });
        rows.insert(format!("agent:main:telegram:group:{n}"), row);
        let header = json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-02-09T10:00:00.000Z", "cwd": "/"});
        std::fs::write(dir.join(format!("{id}.jsonl")), format!("{header}\n"))?;
    }
    std::fs::write(dir.join("sessions.json"), serde_json::to_string_pretty(&rows)?)?;
    Ok(())
}
