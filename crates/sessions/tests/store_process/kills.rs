//! `kill -9` at random moments.

use std::collections::BTreeMap;
use std::path::Path;

use openclaw_sessions::SessionStore;
use openclaw_sessions::store::FileStore;
use rand::{Rng, SeedableRng};

use super::child::{Said, Worker};
use super::{names, numbers, options, store_path};

/// Unless `OPENCLAW_STORE_KILLS` says otherwise, as the gate does.
const KILLS: u64 = 80;

/// Known numbers of a row: the last acknowledged one (0 for none) and those tried since.
#[derive(Debug, Default)]
struct Known {
    acknowledged: i64,
    tried: Vec<i64>,
}

#[tokio::test]
async fn what_was_acknowledged_survives_kills_at_random_moments() {
    let kills = std::env::var("OPENCLAW_STORE_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let mut first = 1;
    for kill in 0..kills {
        let mut worker = Worker::start(dir.path(), first);
        let lines = random.random_range(1..150);
        let mut count = 0;
        while let Some(said) = worker.next() {
            match said {
                Said::Try(key, n) => known.entry(key).or_default().tried.push(n),
                Said::Ack(key, n) => {
                    first = first.max(n + 1);
                    known.insert(key, Known { acknowledged: n, tried: Vec::new() });
                }
                Said::Closed => {}
            }
            count += 1;
            if count == lines {
                worker.kill();
            }
        }
        drop(worker);
        // Numbers never come twice.
        first += 1_000;
        files_are_whole(dir.path());
        // Every other time the next child finds what the killed one left.
        if kill % 2 == 0 || kill + 1 == kills {
            compare(dir.path(), &mut known).await;
        }
    }
}

fn files_are_whole(dir: &Path) {
    for agent in ["main", "ops"] {
        if let Ok(text) = std::fs::read(store_path(dir, agent)) {
            serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&text).unwrap();
        }
    }
}

async fn compare(dir: &Path, known: &mut BTreeMap<String, Known>) {
    let store = FileStore::open(options(dir)).unwrap();
    let found = numbers(&store).await;
    store.close().await.unwrap();
    for (key, known) in known {
        let now = found.get(key).copied().unwrap_or_default();
        assert!(
            now == known.acknowledged || known.tried.contains(&now),
            "{key} is {now}, expected {known:?}"
        );
        *known = Known { acknowledged: now, tried: Vec::new() };
    }
    for agent in ["main", "ops"] {
        let left = names(store_path(dir, agent).parent().unwrap());
        assert!(left.is_empty() || left == ["sessions.json"], "{left:?}");
    }
}
