//! The store with real processes on a real disk: killed at random moments, beside another writer, beside another store.
//!
//! The child is this very test binary, run for [`child::entry`] alone. `OPENCLAW_STORE_KILLS` says how often it is killed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that can't go on fails"
)]

mod beside;
mod child;
mod kills;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_protocol::AgentId;
use openclaw_sessions::store::{Change, FileStore, FileStoreOptions, Query, Rows, SessionStore};
use openclaw_sessions::{KeyRules, Layout};
use serde_json::{Value, json};

fn options(dir: &Path) -> FileStoreOptions {
    let agents = ["main", "ops"].map(AgentId::normalize).to_vec();
    let mut options = FileStoreOptions::new(Layout::new(dir, dir, None), KeyRules::default(), agents);
    // The file is written all the time: that is where the dangerous moments are.
    options.quiet = Duration::from_millis(1);
    options.at_most = Duration::from_millis(5);
    options
}

fn store_path(dir: &Path, agent: &str) -> PathBuf {
    options(dir).layout.store_path(&AgentId::normalize(agent))
}

/// Sets `n` and a text made from it, so that half a row is recognised.
fn set(n: i64) -> Change {
    Box::new(move |edit| {
        edit.entry.set_field("n", json!(n));
        edit.entry.set_field("pad", json!(pad(n)));
        Ok(())
    })
}

fn pad(n: i64) -> String {
    n.to_string().repeat(if n % 11 == 0 { 3_000 } else { 5 })
}

fn number(row: &Value) -> i64 {
    let n = row["n"].as_i64().unwrap();
    assert_eq!(row["pad"], pad(n), "half a row");
    n
}

/// `n` of every row whose key names the store's own sessions, by key.
async fn numbers(store: &FileStore) -> BTreeMap<String, i64> {
    let rows = store.select(Rows::All, &Query::default()).await.unwrap().rows;
    let ours = rows.iter().filter(|row| !row.key.as_str().contains("other"));
    ours.map(|row| (row.key.to_string(), number(&serde_json::to_value(&*row.entry).unwrap()))).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
