//! Time from the start of the binary until it is of use.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use openclaw_testkit::TOKEN;
use openclaw_testkit::many_sessions::{self, Skills};
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
    let home = Home::with(sessions)?;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let port = free_port()?;
        let start = Instant::now();
        let mut gateway = home.gateway(program, port)?;
        let healthy = until_healthy(port, start);
        gateway.kill()?;
        gateway.wait()?;
        times.push(healthy?);
    }
    Ok(percentile(&mut times, 50))
}

/// A home directory with a state directory in it.
pub(super) struct Home(tempfile::TempDir);

impl Home {
    pub(super) fn with(sessions: usize) -> Result<Self> {
        let home = Self(tempfile::tempdir()?);
        let config = json!({"gateway": {"mode": "local", "auth": {"mode": "token", "token": TOKEN}}});
        std::fs::create_dir_all(home.state())?;
        std::fs::write(home.state().join("openclaw.json"), config.to_string())?;
        write_sessions(&home.state(), sessions)?;
        Ok(home)
    }

    fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }

    /// Spawns a gateway on a port.
    pub(super) fn gateway(&self, program: &Path, port: u16) -> Result<Child> {
        let gateway = Command::new(program)
            .args(["gateway", "run", "--port", &port.to_string()])
            .env_clear()
            .env("HOME", self.0.path())
            .env("OPENCLAW_STATE_DIR", self.state())
            .env("TMPDIR", self.0.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(gateway)
    }
}

/// A port nobody listens on.
pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
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

/// A store as OpenClaw leaves it, each session with a short transcript.
pub(super) fn write_sessions(state: &Path, count: usize) -> Result<()> {
    let dir = state.join("agents/main/sessions");
    many_sessions::write(state, count, Skills::Some)?;
    for number in 0..count {
        let id = many_sessions::id(number);
        let header = json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-02-09T10:00:00.000Z", "cwd": "/"});
        std::fs::write(dir.join(format!("{id}.jsonl")), format!("{header}\n"))?;
    }
    Ok(())
}
