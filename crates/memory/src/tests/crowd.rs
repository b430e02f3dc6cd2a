//! Everybody at once: gateways that search and sync, a command in another process that reindexes, people who write, for
//! two agents. `OPENCLAW_TEST_MEMORY_SECONDS` sets for how long.

use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::*;

/// Set for the command's process: the directory that it works in.
const REINDEXED_IN: &str = "OPENCLAW_TEST_MEMORY_REINDEXED_IN";

fn settings_in(directory: &Path) -> MemorySettings {
    MemorySettings {
        extra_paths: Vec::new(),
        sync: SyncSettings { watch_debounce: Duration::from_millis(20), ..SyncSettings::default() },
        ..MemorySettings::new(&directory.join("ws"), &directory.join("state/main.sqlite"))
    }
}

/// Reindexes again and again, each time as if `openclaw memory index --force` had just started.
#[tokio::test(flavor = "multi_thread")]
async fn command_that_reindexes() {
    let Some(directory) = std::env::var_os(REINDEXED_IN).map(PathBuf::from) else { return };
    while !directory.join("stop").exists() {
        let memory = open_with(settings_in(&directory), Some(FakeEmbedder::new()));
        let report = force(&memory).await;
        // What the gateway writes meanwhile may wait for a vector.
        assert_eq!((report.error, report.embed_error), (None, None));
        memory.close().await;
    }
}

/// An agent with its gateway and its command.
struct CrowdedAgent {
    place: Place,
    own: &'static str,
    others: &'static str,
    memory: Memory,
    command: Mutex<Child>,
}

impl Drop for CrowdedAgent {
    fn drop(&mut self) {
        // It has ended, unless a check failed.
        let _ = self.command.lock().kill();
    }
}

impl CrowdedAgent {
    fn new(own: &'static str, others: &'static str) -> Self {
        let place = Place::corpus();
        place.write("memory/own.md", &format!("the {own} lives here"));
        let command = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::crowd::command_that_reindexes", "--nocapture"])
            .env(REINDEXED_IN, place.dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let memory = open_with(settings_in(place.dir.path()), Some(FakeEmbedder::new()));
        Self { place, own, others, memory, command: Mutex::new(command) }
    }

    async fn search(&self, until: &AtomicBool) -> u64 {
        let mut searches = 0;
        while !until.load(Ordering::Relaxed) {
            // The vectors of the recorded rule can take other notes for near.
            assert!(paths(&self.memory, self.own).await.contains(&"memory/own.md".to_owned()));
            let found = paths(&self.memory, "apple trees").await;
            assert!(found.contains(&"memory/2026-01-29.md".to_owned()), "{found:?}");
            let foreign = find(&self.memory, self.others).await.hits;
            assert!(foreign.iter().all(|hit| !hit.snippet.contains(self.others)), "{foreign:?}");
            searches += 3;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        searches
    }

    /// Writes notes, and looks that each is found after a sync and that what was taken out is not.
    async fn write(&self, until: &AtomicBool) -> u64 {
        let mut round = 0_u64;
        while !until.load(Ordering::Relaxed) {
            self.place.write("memory/busy.md", &format!("the marker{round} of nobody"));
            self.place.write(&format!("memory/more/{}.md", round % 50), &format!("note {round}"));
            let report = sync(&self.memory).await;
            assert_eq!((report.error, report.embed_error), (None, None));
            let found = paths(&self.memory, &format!("marker{round}")).await;
            assert!(found.contains(&"memory/busy.md".to_owned()), "{found:?}");
            if let Some(before) = round.checked_sub(1) {
                let hits = find(&self.memory, &format!("marker{before}")).await.hits;
                assert!(hits.iter().all(|hit| !hit.snippet.contains(&format!("marker{before} "))));
            }
            round += 1;
        }
        round
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_at_once_meets_no_lock_and_finds_what_is_there() {
    let seconds = std::env::var("OPENCLAW_TEST_MEMORY_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(4);
    let agents = [("hippopotamus", "armadillo"), ("armadillo", "hippopotamus")]
        .map(|(own, others)| Arc::new(CrowdedAgent::new(own, others)));
    for agent in &agents {
        sync(&agent.memory).await;
    }
    let until = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    for agent in &agents {
        for task in 0..11 {
            let (agent, until) = (Arc::clone(agent), Arc::clone(&until));
            tasks.spawn(async move {
                if task == 0 { agent.write(&until).await } else { agent.search(&until).await }
            });
        }
    }
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(seconds) {
        for agent in &agents {
            assert_eq!(agent.command.lock().try_wait().unwrap(), None, "the command met an error");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    until.store(true, Ordering::Relaxed);
    let mut done = 0;
    while let Some(task) = tasks.join_next().await {
        done += task.unwrap();
    }
    println!("{done} searches and syncs");
    for agent in &agents {
        std::fs::write(agent.place.dir.path().join("stop"), "").unwrap();
        assert!(agent.command.lock().wait().unwrap().success());
        agent.memory.close().await;
        let db = open_file(&agent.place.dir.path().join("state/main.sqlite"));
        let state: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(state, "ok");
    }
}
