//! Opening a transcript and building the model's context, and reading its tail for a client.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't run stops")]

#[allow(dead_code, reason = "each benchmark uses a part")]
mod support;

use divan::Bencher;
use openclaw_sessions::history;
use openclaw_sessions::transcript::TranscriptFile;

fn main() {
    divan::main();
}

const ENTRIES: [usize; 2] = [2_000, 50_000];

fn transcript(entries: usize) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    support::write_transcript(&path, entries);
    (dir, path)
}

#[divan::bench(args = ENTRIES, sample_size = 1)]
fn open(bencher: Bencher<'_, '_>, entries: usize) {
    let (_dir, path) = transcript(entries);
    bencher.bench_local(|| {
        let file = TranscriptFile::open(&path).unwrap();
        assert_eq!(file.len(), entries);
        file
    });
}

#[divan::bench(args = ENTRIES, sample_size = 1)]
fn open_and_context(bencher: Bencher<'_, '_>, entries: usize) {
    let (_dir, path) = transcript(entries);
    bencher.bench_local(|| TranscriptFile::open(&path).unwrap().context().unwrap());
}

/// The last page of `chat.history`.
#[divan::bench(args = ENTRIES)]
fn tail(bencher: Bencher<'_, '_>, entries: usize) {
    let (_dir, path) = transcript(entries);
    bencher.bench_local(|| {
        let shown = history::read(&path, history::DEFAULT_LIMIT).unwrap();
        assert_eq!(shown.len(), history::DEFAULT_LIMIT);
        shown
    });
}
