//! Cost at start of very many sessions on disk.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use openclaw_testkit::{Login, TOKEN, WsClient};
use serde_json::json;

use super::process::memory;
use super::start::{Home, free_port};
use super::{Row, percentile};

const SESSIONS: usize = 50_000;
const RUNS: usize = 7;

/// Measurement of one start.
struct Start {
    /// Time from spawn to the answer to `sessions.list`.
    first_list: Duration,
    /// The same question once more.
    next_list: Duration,
    resident: f64,
    most_resident: f64,
}

pub(super) async fn rows(program: &Path) -> Result<Vec<Row>> {
    let home = Home::with(SESSIONS)?;
    let mut starts = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let port = free_port()?;
        let began = Instant::now();
        let mut gateway = home.gateway(program, port)?;
        let start = measure(&gateway, port, began).await;
        gateway.kill()?;
        gateway.wait()?;
        starts.push(start?);
    }
    let mut first: Vec<Duration> = starts.iter().map(|start| start.first_list).collect();
    let mut next: Vec<Duration> = starts.iter().map(|start| start.next_list).collect();
    let most = |memory: fn(&Start) -> f64| starts.iter().map(memory).fold(0.0, f64::max);
    Ok(vec![
        Row::limited("start to a list, 50,000 sessions", "ms", percentile(&mut first, 50), 300.0),
        Row::limited("sessions.list of 200 of 50,000", "ms", percentile(&mut next, 50), 5.0),
        Row::limited("memory with 50,000 sessions", "MB", most(|start| start.resident), 120.0),
        Row::shown("memory with 50,000 sessions, the most", "MB", most(|start| start.most_resident)),
    ])
}

async fn measure(gateway: &Child, port: u16, began: Instant) -> Result<Start> {
    let mut client = connect(port, began).await?;
    client.request("sessions.list", json!({"limit": 200})).await?;
    let first_list = began.elapsed();
    let again = Instant::now();
    client.request("sessions.list", json!({"limit": 200})).await?;
    let next_list = again.elapsed();
    let resident = memory(gateway.id(), "VmRSS:")?;
    let most_resident = memory(gateway.id(), "VmHWM:")?;
    Ok(Start { first_list, next_list, resident, most_resident })
}

async fn connect(port: u16, began: Instant) -> Result<WsClient> {
    const PATIENCE: Duration = Duration::from_secs(10);
    while began.elapsed() < PATIENCE {
        if let Ok((client, _)) = WsClient::connect(port, Login::token(TOKEN)).await {
            return Ok(client);
        }
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    bail!("the gateway did not let a client in")
}
