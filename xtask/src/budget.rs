//! Measures the release binary against the performance budget of the design, with a model that answers at once.

mod counts;
mod disk;
mod many;
mod model;
mod start;
mod turns;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::build::{Profile, binary};

const MIB: f64 = 1024.0 * 1024.0;

/// One row of the table.
struct Row {
    what: &'static str,
    unit: &'static str,
    measured: f64,
    /// What the design allows; rows without are there to read the others by.
    limit: Option<f64>,
}

const USAGE: &str = "usage: cargo xtask budget [--counts | --check] [--turns N] [--program PATH]...";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut turns, mut programs, mut only_counts, mut checks) = (1_000, Vec::new(), false, false);
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--counts" => only_counts = true,
            "--check" => checks = true,
            "--turns" => turns = args.next().context(USAGE)?.parse().context("--turns takes a number")?,
            "--program" => programs.push(PathBuf::from(args.next().context(USAGE)?)),
            _ => bail!(USAGE),
        }
    }
    if programs.is_empty() {
        programs.push(binary(Profile::Release)?);
    }
    if checks {
        let [program] = programs.as_slice() else { bail!("one program is checked") };
        return counts::check(program, turns);
    }
    if only_counts {
        print!("{}", counts::table(&programs, turns)?);
        return Ok(());
    }
    let [program] = programs.as_slice() else { bail!("times are measured of one program") };
    let rows = measure(program, turns)?;
    print!("{}", table(&rows));
    if rows.iter().any(Row::is_missed) {
        bail!("the budget is missed");
    }
    Ok(())
}

fn measure(program: &Path, turns: usize) -> Result<Vec<Row>> {
    let mut rows = vec![
        Row::limited("binary size", "MB", std::fs::metadata(program)?.len() as f64 / MIB, 35.0),
        Row::limited("openclaw --version", "ms", start::version(program)?, 5.0),
        Row::limited("start to healthy, empty", "ms", start::healthy(program, 0)?, 20.0),
        Row::limited("start to healthy, 1,000 sessions", "ms", start::healthy(program, 1_000)?, 50.0),
    ];
    let mut synced = disk::appends()?;
    rows.push(Row::shown("one synced append to this disk, p50", "ms", percentile(&mut synced, 50)));
    rows.push(Row::shown("one synced append to this disk, p99", "ms", percentile(&mut synced, 99)));
    let runtime = tokio::runtime::Runtime::new()?;
    rows.extend(runtime.block_on(turns::rows(program, turns))?);
    rows.extend(runtime.block_on(many::rows(program))?);
    Ok(rows)
}

impl Row {
    fn limited(what: &'static str, unit: &'static str, measured: f64, limit: f64) -> Self {
        Self { what, unit, measured, limit: Some(limit) }
    }

    fn shown(what: &'static str, unit: &'static str, measured: f64) -> Self {
        Self { what, unit, measured, limit: None }
    }

    fn is_missed(&self) -> bool {
        self.limit.is_some_and(|limit| self.measured > limit)
    }
}

fn table(rows: &[Row]) -> String {
    let mut out = format!("{:<40}{:>12}{:>12}\n", "what", "measured", "budget");
    for row in rows {
        let Row { what, unit, measured, limit } = row;
        let limit = limit.map_or_else(String::new, |limit| format!("{limit:.0} {unit}"));
        let verdict = if row.is_missed() { "  MISSED" } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(out, "{what:<40}{measured:>9.2} {unit}{limit:>12}{verdict}");
    }
    out
}

/// The value that this share of all values does not exceed, in milliseconds.
fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or_default().as_secs_f64() * 1e3
}
