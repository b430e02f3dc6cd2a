//! How many system calls a turn takes, by name. Unlike times, counts hardly depend on the machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::turns::Bench;

/// Turns before the ones that are counted; their calls are subtracted with those of start and stop.
const BEFORE: usize = 20;
/// How long the trace may take to be written once the gateway has ended.
const PATIENCE: Duration = Duration::from_secs(30);

/// Calls by name.
type Calls = BTreeMap<String, f64>;

/// What a turn may take at most, by the names of the calls that are counted together; none stand for all
/// (`docs/performance.md`).
const LIMITS: [(&str, &[&str], f64); 3] = [
    ("system calls", &[], 175.0),
    ("synced writes", &["fsync", "fdatasync"], 3.2),
    ("files opened", &["openat", "open"], 6.0),
];

/// Whether a program keeps to the limits; prints its counts.
pub(super) fn check(program: &Path, turns: usize) -> Result<()> {
    let can_trace = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    if !can_trace.is_ok_and(|traced| traced.status.success()) {
        println!(
            "ci: the system calls of a turn were NOT counted: strace is not installed, or may not trace here"
        );
        return Ok(());
    }
    let program = program.canonicalize().with_context(|| format!("no program at {}", program.display()))?;
    let calls = tokio::runtime::Runtime::new()?.block_on(a_turn(&program, turns))?;
    let mut missed = Vec::new();
    for (what, names, most) in LIMITS {
        let counted = calls.iter().filter(|(name, _)| names.is_empty() || names.contains(&name.as_str()));
        let count: f64 = counted.map(|(_, count)| count).sum();
        println!("{what} a turn: {count:.1}, at most {most}");
        if count > most {
            missed.push(what);
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    bail!(
        "more than docs/performance.md allows: {}; `cargo xtask budget --counts` names them",
        missed.join(", ")
    )
}

/// A table with a column for each program: calls a turn, of so many turns in one session.
pub(super) fn table(programs: &[PathBuf], turns: usize) -> Result<String> {
    let runtime = tokio::runtime::Runtime::new()?;
    let columns: Vec<Calls> =
        programs.iter().map(|program| runtime.block_on(a_turn(program, turns))).collect::<Result<_>>()?;
    let mut names: Vec<&String> = columns.iter().flat_map(Calls::keys).collect();
    names.sort_by(|a, b| of(&columns, b).total_cmp(&of(&columns, a)).then_with(|| a.cmp(b)));
    names.dedup();
    let mut out = String::new();
    for name in names {
        let counts: Vec<f64> = columns.iter().map(|calls| calls.get(name).copied().unwrap_or(0.0)).collect();
        // Timers and threads that are handed work by chance leave fractions.
        if counts.iter().any(|count| count.abs() >= 0.05) {
            row(&mut out, name, &counts);
        }
    }
    row(&mut out, "all", &columns.iter().map(|calls| calls.values().sum()).collect::<Vec<f64>>());
    Ok(out)
}

fn of(columns: &[Calls], name: &str) -> f64 {
    columns.first().and_then(|calls| calls.get(name)).copied().unwrap_or(0.0)
}

fn row(out: &mut String, name: &str, counts: &[f64]) {
    // Writing to a string does not fail.
    let _ = write!(out, "{name:<24}");
    for count in counts {
        let _ = write!(out, "{count:>10.1}");
    }
    out.push('\n');
}

async fn a_turn(program: &Path, turns: usize) -> Result<Calls> {
    let few = calls(program, BEFORE).await?;
    let mut many = calls(program, BEFORE + turns).await?;
    for (name, count) in few {
        *many.entry(name).or_default() -= count;
    }
    Ok(many.into_iter().map(|(name, count)| (name, count / turns as f64)).collect())
}

/// The calls of a gateway's whole life with so many turns in it.
async fn calls(program: &Path, turns: usize) -> Result<Calls> {
    let dir = tempfile::tempdir()?;
    let (wrapper, report) = (dir.path().join("traced"), dir.path().join("report"));
    // -D: the traced program keeps the process number that the tests send their signals to.
    let script = format!(
        "#!/bin/sh\nexec strace -D -f -c -U name,calls -o '{}' '{}' \"$@\"\n",
        report.display(),
        program.display()
    );
    std::fs::write(&wrapper, script)?;
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o700))?;
    let mut bench = Bench::start(&wrapper, Duration::ZERO, 0).await.context("is strace installed?")?;
    bench.turns_a_session = usize::MAX;
    bench.turns(turns).await?;
    bench.stop().await?;
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE {
        let written = std::fs::read_to_string(&report).unwrap_or_default();
        if written.lines().last().is_some_and(|line| line.starts_with("total")) {
            return Ok(written.lines().filter_map(count).collect());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("strace wrote no report")
}

/// `futex            1234` of the report's table.
fn count(line: &str) -> Option<(String, f64)> {
    let (name, count) = line.split_once(' ')?;
    let count = count.trim().parse().ok()?;
    (name != "total").then(|| (name.to_owned(), count))
}
