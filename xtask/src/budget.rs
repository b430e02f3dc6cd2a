//! Measures the release binary against the performance budget of the design, with a model that answers at once.

mod bot_api;
pub(crate) mod channels;
mod counts;
mod cpu;
mod disk;
mod machine_code;
mod many;
mod memory;
mod model;
pub(crate) mod process;
mod session_tools;
mod start;
mod turns;
mod workload;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;

use crate::build::release;

const MIB: f64 = 1024.0 * 1024.0;

/// Row of the table.
struct Row {
    what: String,
    unit: &'static str,
    measured: f64,
    /// Limit in the design; rows without one are there to read the others by.
    limit: Option<f64>,
}

const USAGE: &str = "usage: cargo xtask budget [--counts | --check | --memory | --channels | --session-tools] [--turns N] [--sessions N] [--program PATH]...";

/// Measurements to make.
enum What {
    /// All measurements of one program; of several the times of turns, side by side.
    Times,
    Counts,
    /// Counts against their limits.
    Check,
    /// Memory after very many turns.
    Memory,
    /// Messages of a chat platform; of several programs the times of their ways, side by side.
    Channels,
    /// Session tools: other sessions as agents see them, and very many sub-agents at once.
    SessionTools,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut what, mut turns, mut sessions, mut programs) = (What::Times, None, 400, Vec::new());
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--counts" => what = What::Counts,
            "--check" => what = What::Check,
            "--memory" => what = What::Memory,
            "--channels" => what = What::Channels,
            "--session-tools" => what = What::SessionTools,
            "--turns" => turns = Some(number(args.next())?),
            "--sessions" => sessions = number(args.next())?,
            "--program" => programs.push(PathBuf::from(args.next().context(USAGE)?)),
            _ => bail!(USAGE),
        }
    }
    if programs.is_empty() {
        programs.push(release()?);
    }
    let runtime = Runtime::new()?;
    let rows = match (what, programs.as_slice()) {
        (What::Times, [program]) => measure(program, turns.unwrap_or(1_000), &runtime)?,
        (What::Memory, [program]) => {
            runtime.block_on(memory::rows(program, turns.unwrap_or(50_000), sessions))?
        }
        (What::Channels, [program]) => runtime.block_on(channels::rows(program))?,
        (What::SessionTools, [program]) => runtime.block_on(session_tools::rows(program))?,
        (What::Check, [program]) => return runtime.block_on(counts::check(program)),
        (What::Check | What::Memory | What::SessionTools, _) => bail!("one program at a time"),
        (What::Channels, programs) => {
            print!("{}", table(&runtime.block_on(channels::side_by_side(programs))?));
            return Ok(());
        }
        (What::Counts, programs) => {
            print!("{}", runtime.block_on(counts::table(programs))?);
            return Ok(());
        }
        (What::Times, programs) => {
            print!("{}", runtime.block_on(cpu::table(programs))?);
            return Ok(());
        }
    };
    print!("{}", table(&rows));
    if rows.iter().any(Row::is_missed) {
        bail!("the budget is missed");
    }
    Ok(())
}

fn number(arg: Option<&String>) -> Result<usize> {
    arg.context(USAGE)?.parse().context(USAGE)
}

fn measure(program: &Path, turns: usize, runtime: &Runtime) -> Result<Vec<Row>> {
    let mut rows = vec![
        Row::limited("binary size", "MB", std::fs::metadata(program)?.len() as f64 / MIB, 35.0),
        Row::limited("openclaw --version", "ms", start::version(program)?, 5.0),
        Row::limited("start to healthy, empty", "ms", start::healthy(program, 0)?, 20.0),
        Row::limited("start to healthy, 1,000 sessions", "ms", start::healthy(program, 1_000)?, 50.0),
    ];
    let mut synced = disk::appends()?;
    rows.push(Row::shown("one synced append to this disk, p50", "ms", percentile(&mut synced, 50)));
    rows.push(Row::shown("one synced append to this disk, p99", "ms", percentile(&mut synced, 99)));
    rows.extend(runtime.block_on(turns::rows(program, turns))?);
    rows.extend(runtime.block_on(cpu::rows(program))?);
    rows.extend(runtime.block_on(many::rows(program))?);
    Ok(rows)
}

impl Row {
    fn limited(what: impl Into<String>, unit: &'static str, measured: f64, limit: f64) -> Self {
        Self { what: what.into(), unit, measured, limit: Some(limit) }
    }

    fn shown(what: impl Into<String>, unit: &'static str, measured: f64) -> Self {
        Self { what: what.into(), unit, measured, limit: None }
    }

    fn is_missed(&self) -> bool {
        self.limit.is_some_and(|limit| self.measured > limit)
    }
}

fn table(rows: &[Row]) -> String {
    let mut out = format!("{:<48}{:>12}{:>12}\n", "what", "measured", "budget");
    for row in rows {
        let Row { what, unit, measured, limit } = row;
        let limit = limit.map_or_else(String::new, |limit| format!("{limit:.0} {unit}"));
        let verdict = if row.is_missed() { "  MISSED" } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(out, "{what:<48}{measured:>9.2} {unit}{limit:>12}{verdict}");
    }
    out
}

/// The value that this share of all values does not exceed, in milliseconds.
fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or_default().as_secs_f64() * 1e3
}
