//! Processor time of a turn, and the time it takes beyond the model's share. Programs that are compared take turns, so that
//! whatever else the machine does meets all of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::workload::{TIMED, Workload};
use super::{Row, percentile, process};

/// Number of measurements of each program when there are several.
const ROUNDS: usize = 5;

/// Durations of a workload, in milliseconds.
struct Taken {
    /// Processor time of one unit.
    cpu: f64,
    /// Median time of a turn without the model's share.
    own: f64,
}

/// Rows for one program.
pub(super) async fn rows(program: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::with_capacity(TIMED.len());
    for workload in &TIMED {
        let taken = taken(program, workload).await?;
        rows.push(Row::shown(format!("processor time, {}", workload.what), "ms", taken.cpu));
    }
    Ok(rows)
}

/// A table with a column for each program, and how many times the last one's the first one's is.
pub(super) async fn table(programs: &[PathBuf]) -> Result<String> {
    let mut out = format!("{:<42}{:>width$}\n", "median of rounds", "ms, ratio", width = 12 * programs.len());
    for workload in &TIMED {
        let mut samples: Vec<Vec<Taken>> = programs.iter().map(|_| Vec::with_capacity(ROUNDS)).collect();
        for _ in 0..ROUNDS {
            for (program, samples) in programs.iter().zip(&mut samples) {
                samples.push(taken(program, workload).await?);
            }
        }
        let medians = |part: fn(&Taken) -> f64| -> Vec<f64> {
            samples.iter().map(|samples| median(samples.iter().map(part).collect())).collect()
        };
        row(&mut out, &format!("{}, processor", workload.what), &medians(|taken| taken.cpu));
        if workload.units == 1 {
            row(&mut out, &format!("{}, own p50", workload.what), &medians(|taken| taken.own));
        }
    }
    Ok(out)
}

fn row(out: &mut String, what: &str, medians: &[f64]) {
    // Writing to a string does not fail.
    let _ = write!(out, "{what:<42}");
    for median in medians {
        let _ = write!(out, "{median:>10.4}");
    }
    if let [first, .., last] = medians {
        let _ = write!(out, "{:>8.2}", first / last);
    }
    out.push('\n');
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

async fn taken(program: &Path, workload: &Workload) -> Result<Taken> {
    let mut bench = workload.begin(program).await?;
    let before = process::cpu_when_quiet(bench.pid()?).await?;
    let turns = workload.take(&mut bench, workload.turns).await?;
    let cpu = process::cpu_when_quiet(bench.pid()?).await? - before;
    bench.stop().await?;
    let mut own: Vec<Duration> = turns.iter().map(|turn| turn.own).collect();
    Ok(Taken {
        cpu: cpu.as_secs_f64() * 1e3 / (workload.turns * workload.units) as f64,
        own: percentile(&mut own, 50),
    })
}
