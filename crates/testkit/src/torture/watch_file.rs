//! Watch on a file of the gateway: sees from outside that it is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

const PAUSE: Duration = Duration::from_micros(200);

/// Waits until files whose names hold this text, in this folder, were written so often.
pub(super) async fn written(folder: PathBuf, part: &'static str, times: usize) {
    let gone = Arc::new(AtomicBool::new(false));
    let _guard = Guard(Arc::clone(&gone));
    let look = move || {
        let mut before = state(&folder, part);
        let mut left = times;
        while left > 0 && !gone.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
            let now = state(&folder, part);
            left -= usize::from(now != before);
            before = now;
        }
    };
    // The task panics nowhere.
    let _ = tokio::task::spawn_blocking(look).await;
}

struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn state(folder: &Path, part: &str) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.filter(|entry| entry.file_name().to_string_lossy().contains(part));
    let state = found.filter_map(|entry| {
        let facts = entry.metadata().ok()?;
        Some((entry.path(), facts.len(), facts.modified().ok()))
    });
    let mut state: Vec<_> = state.collect();
    state.sort();
    state
}
