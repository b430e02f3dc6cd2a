//! Row 10 of the list of `known_bad`: processes that are killed in the middle, at each named step of a sync and at random,
//! also on a disk that is full. `OPENCLAW_TEST_KILLS` sets how many.

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
const LONGEST: Duration = Duration::from_secs(2);

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
        chunking: Chunking { tokens: 16, overlap: 0 },
        ..MemorySettings::new(workspace, store)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_process_that_is_killed() {
    let Some(directory) = std::env::var_os(KILLED_IN) else { return };
    let workspace = PathBuf::from(directory).join("ws");
    let store = workspace.with_file_name("state").join("main.sqlite");
    let memory = open_with(settings_in(&workspace, &store), Some(FakeEmbedder::new()));
    let start = u64::from(std::process::id());
    for round in start.. {
        for file in 0..40 {
            let path = workspace.join(format!("memory/{file}.md"));
            if (round + file) % 11 == 0 {
                let _ = std::fs::remove_file(path);
                continue;
            }
            // Most of it stays as it was.
            let text: String = (0..30)
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

fn start(place: &Place, at: Option<&str>, limit: Option<u64>) -> Child {
    let program = std::env::current_exe().unwrap();
    let before = limit.map_or_else(String::new, |limit| format!("trap '' XFSZ; ulimit -f {limit}; "));
    let script = format!("{before}exec \"$0\" --exact tests::kills::b10_process_that_is_killed --nocapture");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(program).env(KILLED_IN, place.dir.path());
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
    let mut met = vec![0; STEPS.len()];
    let mut place = Place::corpus();
    for kill in 0..kills {
        // Every now and then from nothing.
        if kill % 25 == 0 {
            place = Place::corpus();
        }
        let store = place.dir.path().join("state/main.sqlite");
        let step = (kill % 3 != 0).then(|| usize::try_from(kill * 2 / 3).unwrap() % STEPS.len());
        let at = step.map(|step| format!("{:?} {}", STEPS[step], 1 + random(6)));
        let limit = (kill % 5 == 4).then(|| 200 + random(6_000));
        let mut child = start(&place, at.as_deref(), limit);
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
        check_after(&place, &store, &name).await;
    }
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
