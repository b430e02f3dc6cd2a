//! Row 10 of the list of `known_bad`: processes that are killed in the middle, at each named step of a sync and at random,
//! also on a disk that is full. `OPENCLAW_TEST_KILLS` sets how many. `OPENCLAW_TEST_FAULTY_DISK` names the library that
//! `crates/testkit/src/faulty_disk/faults.c` makes: then calls fail in the middle of one life in four.

use std::collections::HashSet;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::*;
use crate::chunk::Chunking;
use crate::steps::Step;

/// Set for the process that is killed: the directory that it works in.
const KILLED_IN: &str = "OPENCLAW_TEST_MEMORY_KILLED_IN";

/// Set for a process that ends itself: the name of the step and at which time it is reached.
const KILLED_AT: &str = "OPENCLAW_TEST_MEMORY_KILLED_AT";

/// Longest wait for a step. One that does not come makes one more kill at random.
const LONGEST: Duration = Duration::from_secs(3);

const STEPS: &[Step] = &[
    Step::TablesMade,
    Step::Scanned,
    Step::RewritingBegun,
    Step::FileWritten,
    Step::FileRemoved,
    Step::SegmentWritten,
    Step::BeforeCommit,
    Step::AfterCommit,
    Step::RewritingEnded,
    Step::SegmentsMerged,
    Step::VectorsShared,
    Step::TextsTaken,
    Step::Answered,
    Step::VectorStored,
    Step::CodesComputed,
    Step::CodesWritten,
];

/// Ends the process if this is the step that it is to end at.
pub(crate) fn end_at(step: Step) {
    static AT: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static REACHED: AtomicU64 = AtomicU64::new(0);
    let at = AT.get_or_init(|| {
        let at = std::env::var(KILLED_AT).ok()?;
        let (name, times) = at.split_once(' ')?;
        Some((name.to_owned(), times.parse().ok()?))
    });
    if let Some((name, times)) = at
        && format!("{step:?}") == *name
        && REACHED.fetch_add(1, Ordering::Relaxed) + 1 == *times
    {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// Numbers by a seed.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

fn settings_in(workspace: &Path, store: &Path) -> MemorySettings {
    MemorySettings {
        sync: SyncSettings { watch: false, ..SyncSettings::default() },
        // Small chunks, so that there are enough for codes.
        chunking: Chunking { tokens: 8, overlap: 0 },
        ..MemorySettings::new(workspace, store)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_process_that_is_killed() {
    let Some(directory) = std::env::var_os(KILLED_IN) else { return };
    let workspace = PathBuf::from(directory).join("ws");
    let store = workspace.with_file_name("state").join("main.sqlite");
    let memory = open_with(settings_in(&workspace, &store), Some(FakeEmbedder::new()));
    let start = u64::from(std::process::id()) * 4;
    for round in start + kind_of_first_round().. {
        for file in 0..24 {
            let path = workspace.join(format!("memory/{file}.md"));
            if (round + file) % 11 == 0 {
                let _ = std::fs::remove_file(path);
                continue;
            }
            // Most of it stays as it was.
            let text: String = (0..24)
                .map(|line| {
                    format!(
                        "version {} file {file} line {line} of words\n",
                        if line % 10 == 0 { round } else { 0 }
                    )
                })
                .collect();
            let _ = std::fs::write(path, text);
        }
        match round % 4 {
            2 => drop(force(&memory).await),
            // As an earlier version left it.
            3 if store.exists() => {
                let db = open_file(&store);
                let _ = db.busy_timeout(Duration::from_secs(1));
                let _ = openclaw_vec0::register(&db);
                let _ = db.execute_batch("DROP TABLE IF EXISTS chunks_vec");
                let _ = db.execute("UPDATE openclaw_meta SET value = 0 WHERE key = 'centre_count'", []);
                sync(&memory).await;
            }
            _ => drop(sync(&memory).await),
        }
    }
}

/// Kind of the round in which the step that is waited for comes first.
fn kind_of_first_round() -> u64 {
    let at = std::env::var(KILLED_AT).unwrap_or_default();
    match at.split(' ').next().unwrap_or_default() {
        "RewritingBegun" | "RewritingEnded" => 2,
        "VectorsShared" | "CodesComputed" | "CodesWritten" => 3,
        _ => u64::from(std::process::id()) % 2,
    }
}

/// Makes a process whose disk fails once or for good, as the library is told in its file: which calls, the first that
/// fails, how many, and with which error; without one, half is written.
fn on_faulty_disk(place: &Place, library: &std::ffi::OsStr, random: &mut impl FnMut(u64) -> u64) -> Command {
    const SLOT: usize = 6 * 4 + 64 + 512;
    let (kind, first) = ([1, 1, 2, 5][random(4) as usize], 1 + random(200) as u32);
    let (times, error) = ([1, 1, u32::MAX][random(3) as usize], [5, 28, 0][random(3) as usize]);
    let mut slots: Vec<u8> =
        [kind, first, times, error].iter().flat_map(|number: &u32| number.to_ne_bytes()).collect();
    slots.resize(4 * SLOT, 0);
    let path = |name: &str| place.dir.path().join(name);
    std::fs::write(path("control"), slots).unwrap();
    std::fs::write(path("syncs"), "").unwrap();
    std::fs::create_dir_all(path("state")).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "tests::kills::b10_process_that_is_killed", "--nocapture"])
        .env("LD_PRELOAD", library)
        .env("FAULTY_DISK_CONTROL", path("control"))
        .env("FAULTY_DISK_SYNCS", path("syncs"))
        .env("OPENCLAW_STATE_DIR", path("state"));
    command
}

/// Makes a process none of whose files may be larger than `limit`, if there is one.
fn on_small_disk(limit: Option<u64>) -> Command {
    let program = std::env::current_exe().unwrap();
    let before = limit.map_or_else(String::new, |limit| format!("trap '' XFSZ; ulimit -f {limit}; "));
    let script = format!("{before}exec \"$0\" --exact tests::kills::b10_process_that_is_killed --nocapture");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(program);
    command
}

fn start(mut command: Command, place: &Place, at: Option<&str>) -> Child {
    command.env(KILLED_IN, place.dir.path());
    if let Some(at) = at {
        command.env(KILLED_AT, at);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_a_killed_process_leaves_an_index_that_goes_on() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let kills = number("OPENCLAW_TEST_KILLS").unwrap_or(50);
    let mut random = numbers(number("OPENCLAW_TEST_KILLS_SEED").unwrap_or(35));
    let library = std::env::var_os("OPENCLAW_TEST_FAULTY_DISK");
    let mut faults = 0;
    let mut met = vec![0; STEPS.len()];
    let mut next = STEPS.len() - 1;
    let mut place = Place::corpus();
    for kill in 0..kills {
        let step = (kill % 3 != 2).then(|| {
            next += 1;
            next % STEPS.len()
        });
        let mut times = |step: usize| match STEPS[step] {
            Step::FileWritten | Step::VectorStored => 1 + random(30),
            Step::FileRemoved | Step::SegmentWritten | Step::BeforeCommit | Step::AfterCommit => {
                1 + random(4)
            }
            _ => 1,
        };
        let at = step.map(&mut times).zip(step).map(|(times, step)| format!("{:?} {times}", STEPS[step]));
        // Every now and then from nothing.
        if kill % 25 == 0 || step.is_some_and(|step| STEPS[step] == Step::TablesMade) {
            place = Place::corpus();
        }
        let store = place.dir.path().join("state/main.sqlite");
        let limit = (kill % 5 == 4).then(|| 200 + random(6_000));
        let command = match &library {
            Some(library) if kill % 4 == 1 => on_faulty_disk(&place, library, &mut random),
            _ => on_small_disk(limit),
        };
        let mut child = start(command, &place, at.as_deref());
        let patience = if at.is_some() { LONGEST } else { Duration::from_millis(20 + random(250)) };
        let started = Instant::now();
        let ended = loop {
            if let Some(ended) = child.try_wait().unwrap() {
                break Some(ended);
            }
            if started.elapsed() >= patience {
                break None;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        if ended.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
        } else if let Some(step) = step {
            met[step] += 1;
        }
        let name = format!("kill {kill} at {at:?} with {limit:?}");
        let control = std::fs::read(place.dir.path().join("control")).unwrap_or_default();
        faults += u32::from(control.get(20..24).is_some_and(|failed| failed != [0; 4]));
        check_after(&place, &store, &name).await;
    }
    println!("lives with a failing disk: {faults}");
    let met: Vec<_> = STEPS.iter().zip(met).collect();
    println!("steps: {met:?}");
    if kills >= 200 {
        assert!(met.iter().all(|(_, met)| *met > 0), "{met:?}");
    }
}

/// Opens an index after a kill and checks that it goes on.
async fn check_after(place: &Place, store: &Path, name: &str) {
    let known = if store.exists() { hashes(store) } else { HashSet::new() };
    let embedder = FakeEmbedder::new();
    let memory = open_with(settings_in(&place.workspace(), store), Some(embedder.clone()));
    let report = sync(&memory).await;
    assert_eq!((report.error, report.pending), (None, 0), "{name}");
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md", "{name}");
    memory.close().await;
    // What was embedded before is not embedded again.
    let new = hashes(store).difference(&known).count();
    assert!(embedder.counts().1 <= new, "{name}: {:?} for {new}", embedder.counts());
    let db = open_file(store);
    openclaw_vec0::register(&db).unwrap();
    let state: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(state, "ok", "{name}");
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let chunks = number("SELECT count(*) FROM chunks");
    for (what, sql) in [
        ("keywords", "SELECT count(*) FROM chunks_fts"),
        ("vectors for OpenClaw", "SELECT count(*) FROM chunks_vec v JOIN chunks c ON c.id = v.id"),
        ("all vectors for OpenClaw", "SELECT count(*) FROM chunks_vec"),
        ("vectors", "SELECT count(*) FROM openclaw_vectors"),
        ("codes", "SELECT count(*) FROM openclaw_codes"),
        ("files", "SELECT count(*) FROM chunks c JOIN files f ON f.path = c.path"),
        (
            "documents",
            "SELECT count(*) FROM openclaw_docs d JOIN chunks c ON c.rowid = d.chunk WHERE d.words >= 0",
        ),
    ] {
        assert_eq!(number(sql), chunks, "{name}: {what}");
    }
    assert!(crate::writer::Rewriting::read(&db).unwrap().is_none(), "{name}");
}

/// Hashes of the texts whose vectors an index remembers.
fn hashes(store: &Path) -> HashSet<String> {
    let db = open_file(store);
    let Ok(mut rows) = db.prepare("SELECT hash FROM embedding_cache") else { return HashSet::new() };
    rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}
