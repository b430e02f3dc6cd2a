//! Process figures from the system: its memory, and the processor time it took.

use std::time::Duration;

use anyhow::{Context, Result};

/// A line of a process's status, in MB.
pub(crate) fn memory(pid: u32, what: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with(what)).with_context(|| format!("no {what}"))?;
    let kib: f64 = line.split_whitespace().nth(1).with_context(|| format!("an odd {what}"))?.parse()?;
    Ok(kib / 1024.0)
}

/// Processor time of a process so far, of all its threads, once it does nothing more.
pub(super) async fn cpu_when_quiet(pid: u32) -> Result<Duration> {
    /// Time within which delayed work, such as writing `sessions.json`, is done.
    const QUIET: Duration = Duration::from_millis(600);
    let mut taken = cpu(pid)?;
    loop {
        tokio::time::sleep(QUIET).await;
        let now = cpu(pid)?;
        if now == taken {
            return Ok(now);
        }
        taken = now;
    }
}

fn cpu(pid: u32) -> Result<Duration> {
    /// Linux counts for programs in hundredths of a second.
    const TICK: Duration = Duration::from_millis(10);
    /// `utime` and `stime`, counted behind the name of the program, which may hold anything.
    const TIMES: std::ops::RangeInclusive<usize> = 11..=12;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("an odd stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks: Result<Vec<u32>, _> =
        fields.get(TIMES).context("a short stat")?.iter().map(|ticks| ticks.parse()).collect();
    Ok(TICK * ticks?.iter().sum::<u32>())
}
