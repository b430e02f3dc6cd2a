//! Two processes in one directory.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use openclaw_sessions::SessionStore;
use openclaw_sessions::store::FileStore;
use openclaw_sessions::time::now_ms;
use serde_json::{Map, Value, json};

use super::child::{Said, Worker};
use super::{numbers, options, set, store_path};

/// Changes the file as an OpenClaw command does: under its lock, read anew, replaced as a whole.
fn edit(store: &Path, change: impl FnOnce(&mut Map<String, Value>)) {
    let lock = store.with_file_name("sessions.json.lock");
    loop {
        match OpenOptions::new().write(true).create_new(true).open(&lock) {
            Ok(mut file) => {
                let lock = json!({"pid": std::process::id(), "startedAt": now_ms()});
                write!(file, "{lock}").unwrap();
                break;
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    let mut rows: Map<String, Value> = serde_json::from_slice(&std::fs::read(store).unwrap()).unwrap();
    change(&mut rows);
    let new = store.with_file_name("sessions.json.by-hand");
    std::fs::write(&new, serde_json::to_string_pretty(&rows).unwrap()).unwrap();
    std::fs::rename(&new, store).unwrap();
    std::fs::remove_file(&lock).unwrap();
}

#[test]
fn edits_every_ten_milliseconds_and_our_updates_leave_each_other_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_path(dir.path(), "main");
    std::fs::create_dir_all(store.parent().unwrap()).unwrap();
    std::fs::write(&store, r#"{"agent:main:other-doomed":{"sessionId":"d","updatedAt":1}}"#).unwrap();
    let mut worker = Worker::start(dir.path(), 1);
    let mut acknowledged = std::collections::BTreeMap::new();
    for round in 1..=40 {
        for _ in 0..20 {
            if let Some(Said::Ack(key, n)) = worker.next() {
                acknowledged.insert(key, n);
            }
        }
        edit(&store, |rows| {
            rows.shift_remove("agent:main:other-doomed");
            rows.insert(
                "agent:main:other".to_owned(),
                json!({"sessionId": "o", "updatedAt": round, "round": round}),
            );
            // A field of a row that the child works on all the time.
            if let Some(row) = rows.get_mut("agent:main:k0") {
                row["byHand"] = json!(round);
            }
        });
        std::thread::sleep(Duration::from_millis(10));
    }
    worker.end();
    let mut tried = std::collections::BTreeMap::new();
    let mut closed = false;
    while let Some(said) = worker.next() {
        match said {
            Said::Try(key, n) => drop(tried.insert(key, n)),
            Said::Ack(key, n) => drop(acknowledged.insert(key, n)),
            Said::Closed => closed = true,
        }
    }
    assert!(closed, "the child flushed and ended");
    let rows: Map<String, Value> = serde_json::from_slice(&std::fs::read(&store).unwrap()).unwrap();
    assert_eq!(rows["agent:main:other"]["round"], 40);
    assert!(!rows.contains_key("agent:main:other-doomed"), "a row that was deleted stays deleted");
    for (key, n) in acknowledged.iter().filter(|(key, _)| key.starts_with("agent:main:")) {
        let now = rows.get(key).map_or(0, super::number);
        assert!(now == *n || tried.get(key) == Some(&now), "{key} is {now}, acknowledged {n}");
    }
    let left = super::names(store.parent().unwrap());
    assert_eq!(left, ["sessions.json"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_stores_on_one_directory_corrupt_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(dir.path(), 1);
    while !matches!(worker.next(), Some(Said::Ack(..))) {}
    let store = FileStore::open(options(dir.path())).unwrap();
    let mine = store.rules().canonical("agent:main:mine").unwrap();
    let mut acknowledged = std::collections::BTreeMap::new();
    for n in 1..=100 {
        store.update(&mine, set(n)).await.unwrap();
        if let Some(Said::Ack(key, n)) = worker.next() {
            acknowledged.insert(key, n);
        }
    }
    worker.end();
    let mut tried = std::collections::BTreeMap::new();
    while let Some(said) = worker.next() {
        match said {
            Said::Try(key, n) => drop(tried.insert(key, n)),
            Said::Ack(key, n) => drop(acknowledged.insert(key, n)),
            Said::Closed => {}
        }
    }
    store.close().await.unwrap();
    let again = FileStore::open(options(dir.path())).unwrap();
    let found = numbers(&again).await;
    again.close().await.unwrap();
    assert_eq!(found["agent:main:mine"], 100);
    for (key, n) in &acknowledged {
        let now = found.get(key).copied().unwrap_or_default();
        assert!(now == *n || tried.get(key) == Some(&now), "{key} is {now}, acknowledged {n}");
    }
    for agent in ["main", "ops"] {
        assert_eq!(super::names(store_path(dir.path(), agent).parent().unwrap()), ["sessions.json"]);
    }
}
