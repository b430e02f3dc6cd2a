//! `sessions.list` with few, many and very many sessions: of the store alone, and over the wire.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark that can't run stops")]

#[allow(dead_code, reason = "each benchmark uses a part")]
mod support;

use divan::Bencher;
use openclaw_protocol::params::sessions::{SessionListDefaults, SessionsListParams};
use openclaw_sessions::methods::{self, ModelName};
use openclaw_sessions::store::{FileStore, FileStoreOptions};
use openclaw_sessions::{Layout, SessionSettings};
use serde_json::json;

fn main() {
    divan::main();
}

#[divan::bench(args = [10, 1_000, 10_000])]
fn of_the_store(bencher: Bencher<'_, '_>, sessions: usize) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    support::write_store(dir.path(), sessions);
    let layout = Layout::new(dir.path(), dir.path(), None);
    let rules = SessionSettings::default().key_rules();
    let store = FileStore::open(FileStoreOptions::new(layout.clone(), rules, Vec::new())).unwrap();
    let params = SessionsListParams::default();
    bencher.bench_local(|| {
        let defaults = SessionListDefaults { model_provider: None, model: None, context_tokens: None };
        let model = |_: &_| ModelName::new("fake", "fake-1");
        runtime.block_on(methods::list(&store, &layout, &params, defaults, &model)).unwrap()
    });
}

/// The client's reading of the answer included; with very many sessions that is most of it.
#[divan::bench(args = [10, 1_000, 10_000])]
fn over_the_wire(bencher: Bencher<'_, '_>, sessions: usize) {
    let mut bench = support::gateway(sessions);
    bencher.bench_local(|| {
        let listed = bench.runtime.block_on(bench.client.request("sessions.list", json!({}))).unwrap();
        assert_eq!(listed["count"], sessions);
    });
}
