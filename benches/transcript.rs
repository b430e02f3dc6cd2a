//! Opening a transcript and building the model's context, and reading its tail for a client.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't run stops")]

use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::LazyLock;

use divan::Bencher;
use openclaw_sessions::history;
use openclaw_sessions::transcript::{Branch, EntryId, OpenTranscript, TranscriptReader};
use openclaw_testkit::long_sessions;
use serde_json::json;

/// Messages that `chat.history` shows unless told.
const SHOWN: usize = 200;

fn main() {
    divan::main();
}

const ENTRIES: [usize; 2] = [2_000, 50_000];

fn transcript(entries: usize) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    long_sessions::write_transcript(&path, "s", entries).unwrap();
    (dir, path)
}

#[divan::bench(args = ENTRIES, sample_size = 1)]
fn open(bencher: Bencher<'_, '_>, entries: usize) {
    let (_dir, path) = transcript(entries);
    bencher.bench_local(|| OpenTranscript::open_file(&path).unwrap());
}

#[divan::bench(args = ENTRIES, sample_size = 1)]
fn open_and_context(bencher: Bencher<'_, '_>, entries: usize) {
    let (_dir, path) = transcript(entries);
    bencher.bench_local(|| OpenTranscript::open_file(&path).unwrap().context().unwrap());
}

/// The last page of `chat.history`.
#[divan::bench(args = ENTRIES)]
fn tail(bencher: Bencher<'_, '_>, entries: usize) {
    let (_dir, path) = transcript(entries);
    bencher.bench_local(|| {
        let shown = history::read(&TranscriptReader::of_file(&path), SHOWN).unwrap();
        assert_eq!(shown.len(), SHOWN);
        shown
    });
}

/// The size at which nothing may read the whole file.
const LONG: u64 = 200 * 1024 * 1024;

/// A transcript of 200 MB whose last compaction keeps the last messages.
static LONG_TRANSCRIPT: LazyLock<(tempfile::TempDir, std::path::PathBuf)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    write_long(&path);
    (dir, path)
});

fn write_long(path: &Path) {
    let at = "2026-02-09T10:00:00.000Z";
    let mut out = BufWriter::new(std::fs::File::create(path).unwrap());
    writeln!(out, "{}", json!({"type": "session", "version": 3, "id": "s", "timestamp": at, "cwd": "/"}))
        .unwrap();
    let (mut n, mut written) = (0_u32, 0);
    let mut put = |id: u32, rest: serde_json::Value| {
        let parent = id.checked_sub(1).map(|parent| format!("{parent:08x}"));
        let mut line =
            json!({"type": "message", "id": format!("{id:08x}"), "parentId": parent, "timestamp": at});
        line.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let line = line.to_string();
        writeln!(out, "{line}").unwrap();
        line.len() as u64 + 1
    };
    let text = "What a tool said, or a person, line after line.\n".repeat(40);
    while written < LONG {
        written += put(
            n,
            json!({"message": {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": n}}),
        );
        n += 1;
    }
    let kept = format!("{:08x}", n - 20);
    put(n, json!({"type": "compaction", "summary": "S", "firstKeptEntryId": kept, "tokensBefore": 9}));
    put(n + 1, json!({"type": "thinking_level_change", "thinkingLevel": "off"}));
    put(n + 2, json!({"type": "model_change", "provider": "fake", "modelId": "fake-1"}));
    out.flush().unwrap();
}

/// What a run needs of a transcript of 200 MB.
#[divan::bench(sample_size = 1)]
fn open_and_context_of_200_mb(bencher: Bencher<'_, '_>) {
    let path = &LONG_TRANSCRIPT.1;
    bencher.bench_local(|| {
        let mut file = OpenTranscript::open_file(path).unwrap();
        assert_eq!(file.context().unwrap().messages.len(), 21);
        assert!(file.known_entries() < 2_000, "no more than the end is read");
        file
    });
}

/// The last page of its history.
#[divan::bench(sample_size = 1)]
fn tail_of_200_mb(bencher: Bencher<'_, '_>) {
    let path = &LONG_TRANSCRIPT.1;
    bencher.bench_local(|| history::read(&TranscriptReader::of_file(path), SHOWN).unwrap());
}

/// Going back to its first entry: all of it is read.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn branch_from_the_start_of_200_mb(bencher: Bencher<'_, '_>) {
    let path = &LONG_TRANSCRIPT.1;
    bencher.bench_local(|| {
        let mut file = OpenTranscript::open_file(path).unwrap();
        file.branch(Branch::At(EntryId::new("00000000"))).unwrap();
        assert!(file.known_entries() > 50_000);
        file
    });
}
