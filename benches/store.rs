//! The session store with few and very many sessions: reading the file, looking into it, changing a row durably.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark that can't run stops")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use divan::Bencher;
use openclaw_protocol::params::sessions::{SessionListDefaults, SessionsListParams};
use openclaw_sessions::methods::{self, ModelName};
use openclaw_sessions::store::{Edit, FileStore, FileStoreOptions, Query, Refused, Rows, update_with};
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::{Layout, SessionKey, SessionSettings, SessionStore};
use openclaw_testkit::many_sessions::{self, OLDEST, Skills};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const MANY: usize = 50_000;

fn main() {
    divan::main();
}

/// A store on disk and a runtime to ask it on.
struct Bench {
    dir: TempDir,
    runtime: Runtime,
}

impl Bench {
    fn with(sessions: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        many_sessions::write(dir.path(), sessions, Skills::Some).unwrap();
        Self { dir, runtime: Runtime::new().unwrap() }
    }

    fn layout(&self) -> Layout {
        layout(self.dir.path())
    }

    fn open(&self) -> FileStore {
        let rules = SessionSettings::default().key_rules();
        FileStore::open(FileStoreOptions::new(self.layout(), rules, Vec::new())).unwrap()
    }

    fn list(&self, store: &FileStore, params: &SessionsListParams) -> usize {
        let defaults = SessionListDefaults { model_provider: None, model: None, context_tokens: None };
        let model = |_: &_| Arc::new(ModelName::new("fake", "fake-1"));
        let transcripts = Transcripts::in_files(self.layout());
        let listed = methods::list(store, &transcripts, params, defaults, model, |_| None);
        self.runtime.block_on(listed).unwrap().sessions.len()
    }
}

fn layout(dir: &Path) -> Layout {
    Layout::new(dir, dir, None)
}

/// From nothing to the newest row: file and journal are read.
#[divan::bench(args = [10, 1_000, 10_000, MANY], sample_count = 20, sample_size = 1)]
fn load(bencher: Bencher<'_, '_>, sessions: usize) {
    let bench = Bench::with(sessions);
    bencher.bench_local(|| {
        let store = bench.open();
        let found = bench.runtime.block_on(store.select(Rows::All, &Query::newest(1))).unwrap();
        assert_eq!(found.total, sessions as u64);
        store
    });
}

/// `sessions.list` of some rows out of fifty thousand.
#[divan::bench(args = ["newest 200", "of the last day", "search", "search, nothing", "label", "spawnedBy", "agentId"])]
fn list_of_50_000(bencher: Bencher<'_, '_>, what: &str) {
    let bench = Bench::with(MANY);
    let store = bench.open();
    let minutes = (openclaw_sessions::time::now_ms() - OLDEST) / 60_000 - MANY as i64 / 60;
    let (params, expect) = match what {
        "newest 200" => (json!({"limit": 200}), 200),
        "of the last day" => (json!({"limit": 200, "activeMinutes": minutes.max(1) + 10}), 200),
        "search" => (json!({"limit": 200, "search": "number 4999"}), 5),
        "search, nothing" => (json!({"limit": 200, "search": "nobody said that"}), 0),
        "label" => (json!({"limit": 200, "label": "task 25008"}), 1),
        "spawnedBy" => (json!({"limit": 200, "spawnedBy": many_sessions::key(8)}), 100),
        _ => (json!({"limit": 200, "agentId": "main"}), 200),
    };
    let params: SessionsListParams = serde_json::from_value(params).unwrap();
    assert_eq!(bench.list(&store, &params), expect, "{what}");
    bencher.bench_local(|| bench.list(&store, &params));
}

/// The row of a session by its key.
#[divan::bench(args = [10, MANY])]
fn get(bencher: Bencher<'_, '_>, sessions: usize) {
    let bench = Bench::with(sessions);
    let store = bench.open();
    let key = SessionKey::parse(&many_sessions::key(sessions / 2)).unwrap();
    bencher.bench_local(|| bench.runtime.block_on(store.get(&key)).unwrap().unwrap());
}

/// What a turn leaves in its row, durably.
#[divan::bench(args = [10, 10_000, MANY], sample_count = 1_000, sample_size = 1)]
fn update_durable(bencher: Bencher<'_, '_>, sessions: usize) {
    let bench = Bench::with(sessions);
    let store = bench.open();
    let count = AtomicU64::new(0);
    bench.runtime.block_on(store.select(Rows::All, &Query::newest(1))).unwrap();
    bencher.bench_local(|| {
        let turn = count.fetch_add(1, Ordering::Relaxed);
        let key = SessionKey::parse(&many_sessions::key(turn as usize % 10)).unwrap();
        let change = move |edit: Edit<'_>| {
            edit.entry.input_tokens = Some(turn);
            edit.entry.total_tokens = Some(turn);
            edit.entry.touch(edit.now);
            Ok::<_, Refused>(())
        };
        bench.runtime.block_on(update_with(&store, &key, change)).unwrap()
    });
}
