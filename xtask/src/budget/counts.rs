//! Costs of a turn in counts: system calls, allocations, bytes copied. Unlike times, counts hardly
//! depend on the machine.

pub(super) mod tracer;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::tracer::Tracer;
use super::workload::{COUNTED, LONG, SHORT, Workload};
use super::{MIB, machine_code};

/// Counts by name.
pub(super) type Counts = BTreeMap<String, f64>;

/// Counts that are told as one.
struct Measure {
    what: &'static str,
    tracer: Tracer,
    /// Counters that are added up.
    names: &'static [&'static str],
    unit: f64,
}

const CALLS: Measure =
    Measure { what: "system calls", tracer: Tracer::Calls, names: &[tracer::ALL_CALLS], unit: 1.0 };
const WAITS: Measure = Measure { what: "futex calls", names: &["futex"], ..CALLS };
const SYNCS: Measure = Measure { what: "synced writes", names: &["fsync", "fdatasync"], ..CALLS };
const OPENED: Measure = Measure { what: "files opened", names: &["openat", "open"], ..CALLS };
const ALLOCATIONS: Measure =
    Measure { what: "allocations", tracer: Tracer::Heap, names: &[tracer::ALLOCATIONS], unit: 1.0 };
const ALLOCATED: Measure =
    Measure { what: "KiB allocated", names: &[tracer::ALLOCATED], unit: 1024.0, ..ALLOCATIONS };
const COPIED: Measure =
    Measure { what: "KiB copied", tracer: Tracer::Copies, names: &[tracer::COPIED], unit: 1024.0 };

const MEASURES: [Measure; 7] = [CALLS, WAITS, SYNCS, OPENED, ALLOCATIONS, ALLOCATED, COPIED];

/// Limits of the gate (`docs/performance.md`). It counts the build that the tests use, which copies
/// several times what a release build does and makes the same allocations.
const LIMITS: [(Workload, &[(Measure, f64)]); 2] = [
    (
        SHORT,
        &[
            (CALLS, 90.0),
            (WAITS, 25.0),
            (SYNCS, 3.0),
            (OPENED, 3.0),
            (ALLOCATIONS, 1_400.0),
            (COPIED, 3_000.0),
        ],
    ),
    (LONG, &[(ALLOCATIONS, 1_450.0), (COPIED, 4_500.0)]),
];

/// Succeeds if a program keeps to the limits; prints its counts.
pub(super) async fn check(program: &Path) -> Result<()> {
    let mut missed = Vec::new();
    for (workload, limits) in &LIMITS {
        for tracer in Tracer::ALL {
            let mut limits = limits.iter().filter(|(measure, _)| measure.tracer == tracer).peekable();
            if limits.peek().is_none() {
                continue;
            }
            if !tracer.works() {
                println!(
                    "ci: a {} was NOT counted with {}: it is not installed, or may not trace here",
                    workload.what,
                    tracer.program()
                );
                continue;
            }
            let counts = count(program, workload, tracer).await?;
            for (measure, most) in limits {
                let measured = measure.of(&counts);
                println!("{}: {measured:.1} {}, at most {most}", workload.what, measure.what);
                if measured > *most {
                    missed.push(format!("{} of a {}", measure.what, workload.what));
                }
            }
        }
    }
    match machine_code::size(program)? {
        Some(bytes) => {
            let (mib, most) = (bytes as f64 / MIB, machine_code::LIMIT);
            println!("machine code: {mib:.1} MiB, at most {most}");
            if mib > most {
                missed.push("machine code".to_owned());
            }
        }
        None => println!("ci: machine code was NOT counted: the program is no ELF file"),
    }
    if missed.is_empty() {
        return Ok(());
    }
    bail!(
        "more than docs/performance.md allows: {}; `cargo xtask budget --counts` tells more",
        missed.join(", ")
    )
}

/// A table with a column for each program: the measures of every workload, and the system calls of a short turn by name.
pub(super) async fn table(programs: &[PathBuf]) -> Result<String> {
    let mut out = String::new();
    for workload in &COUNTED {
        let mut columns = Vec::with_capacity(programs.len());
        for program in programs {
            columns.push(count_all(program, workload).await?);
        }
        // Writing to a string does not fail.
        let _ = writeln!(out, "{}", workload.what);
        for measure in MEASURES {
            row(&mut out, measure.what, columns.iter().map(|counts| measure.of(counts)));
        }
        if workload.what == SHORT.what {
            names(&mut out, &columns);
        }
    }
    Ok(out)
}

/// A row for each system call, the most frequent first.
fn names(out: &mut String, columns: &[Counts]) {
    let first = |name: &str| columns.first().and_then(|counts| counts.get(name)).copied().unwrap_or(0.0);
    let mut names: Vec<&String> = columns.iter().flat_map(Counts::keys).collect();
    names.retain(|name| !tracer::SUMS.contains(&name.as_str()));
    names.sort_by(|a, b| first(b).total_cmp(&first(a)).then_with(|| a.cmp(b)));
    names.dedup();
    for name in names {
        let counts = columns.iter().map(|counts| counts.get(name).copied().unwrap_or(0.0));
        // Timers and threads that are handed work by chance leave fractions.
        if counts.clone().any(|count| count.abs() >= 0.05) {
            row(out, &format!("  {name}"), counts);
        }
    }
}

fn row(out: &mut String, name: &str, counts: impl Iterator<Item = f64>) {
    // Writing to a string does not fail.
    let _ = write!(out, "  {name:<24}");
    for count in counts {
        let _ = write!(out, "{count:>12.1}");
    }
    out.push('\n');
}

impl Measure {
    fn of(&self, counts: &Counts) -> f64 {
        self.names.iter().filter_map(|name| counts.get(*name)).sum::<f64>() / self.unit
    }
}

async fn count_all(program: &Path, workload: &Workload) -> Result<Counts> {
    let mut all = Counts::new();
    for tracer in Tracer::ALL {
        all.extend(count(program, workload, tracer).await?);
    }
    Ok(all)
}

/// The counts of one unit of a workload: those of a life with all turns, without those of a life with the first ones alone.
async fn count(program: &Path, workload: &Workload, tracer: Tracer) -> Result<Counts> {
    let program = program.canonicalize().with_context(|| format!("no program at {}", program.display()))?;
    let (few, mut counts) = tokio::try_join!(
        life(&program, workload, tracer, 0),
        life(&program, workload, tracer, workload.turns)
    )?;
    for (name, count) in few {
        *counts.entry(name).or_default() -= count;
    }
    let units = (workload.turns * workload.units) as f64;
    counts.values_mut().for_each(|count| *count /= units);
    Ok(counts)
}

/// The counts of a gateway's whole life with so many turns in it, and those that come first.
async fn life(program: &Path, workload: &Workload, tracer: Tracer, turns: usize) -> Result<Counts> {
    let dir = tempfile::tempdir()?;
    let report = dir.path().join("report");
    let wrapper = tracer.wrap(program, dir.path(), &report)?;
    let mut bench =
        workload.begin(&wrapper).await.with_context(|| format!("is {} installed?", tracer.program()))?;
    workload.take(&mut bench, turns).await?;
    bench.stop().await?;
    tracer.read(&report)
}
