//! The numbered list of what OpenClaw 2026.2.9 does wrong (rows that concern this crate): each row a test. Row 10 is in
//! `kills`, row 13 in `get`, row 19 in `chunk`; row 12 is that of the prompt.

use std::io;
use std::time::{Duration, Instant};

use super::*;
use crate::{SearchMode, TranscriptFile, TranscriptSource};

#[tokio::test]
async fn b01_an_exact_word_is_found_although_vectors_are_noise() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    embedder.behave(Behaviour::Noise);
    let memory = place.open(Some(embedder));
    sync(&memory).await;
    for query in ["a828e60", "4471", "sqlite-vec unavailable"] {
        let answer = find(&memory, query).await;
        assert_eq!(answer.mode, SearchMode::Hybrid);
        assert!(answer.hits.iter().any(|hit| hit.snippet.contains(query)), "{query}: {answer:#?}");
    }
}

#[tokio::test]
async fn b02_every_script_is_found_without_vectors() {
    let place = Place::corpus();
    place.write("memory/scripts.md", "日本語のデプロイ手順\n\n배포 전략 회의\n\nประชุมทีม\n\nΣυνάντηση\n\nاجتماع الفريق\n\n使用gen-itgc脚本\n");
    let memory = place.open(None);
    sync(&memory).await;
    let rows = [
        ("会议记录", "memory/2026-01-29.md"),
        ("会议", "memory/2026-01-29.md"),
        ("评", "memory/2026-01-29.md"),
        ("Встреча с Олегом", "memory/2026-01-29.md"),
        ("デプロイ手順", "memory/scripts.md"),
        ("전략", "memory/scripts.md"),
        ("ประชุม", "memory/scripts.md"),
        ("συναντηση", "memory/scripts.md"),
        ("اجتماع", "memory/scripts.md"),
        ("gen-itgc", "memory/scripts.md"),
        ("MEMORY metric UNITS", "MEMORY.md"),
    ];
    for (query, path) in rows {
        assert_eq!(paths(&memory, query).await.first().map(String::as_str), Some(path), "{query}");
    }
}

#[tokio::test]
async fn b03_a_question_in_plain_words_finds_its_file_by_keywords() {
    let place = Place::corpus();
    let memory = place.open(None);
    sync(&memory).await;
    let rows = [
        ("planted apple trees and cherry trees in the garden", "memory/2026-01-29.md"),
        ("What was the commit that fixed the websocket reconnect?", "memory/2026-01-28.md"),
        ("who is the on-call engineer", "MEMORY.md"),
        ("when does the office wifi password rotate", "notes/team.md"),
    ];
    for (query, path) in rows {
        assert_eq!(paths(&memory, query).await.first().map(String::as_str), Some(path), "{query}");
    }
    assert!(paths(&memory, "zzzqqq").await.is_empty());
}

#[tokio::test]
async fn b04_without_an_embedder_memory_works() {
    let place = Place::corpus();
    let memory = place.open(None);
    let report = sync(&memory).await;
    assert_eq!((report.indexed, report.pending, report.embed_error), (6, 0, None));
    let answer = find(&memory, "apple trees").await;
    assert_eq!((answer.mode, answer.warning, answer.is_confident), (SearchMode::Keyword, None, true));
    let status = memory.status().await.unwrap();
    assert_eq!((status.files, status.chunks, status.dirty, status.embedder), (6, 13, false, None));
}

#[tokio::test]
async fn b05_a_dead_provider_costs_a_warning() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    let memory = place.open(Some(embedder.clone()));
    sync(&memory).await;
    for behaviour in [
        Behaviour::Silent,
        Behaviour::Fails(EmbedError::Unauthorized { message: "bad key".into() }),
        Behaviour::NotNumbers,
    ] {
        embedder.behave(behaviour);
        let started = Instant::now();
        let answer = find(&memory, "apple trees").await;
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(answer.hits[0].path, "memory/2026-01-29.md");
        assert!(answer.warning.unwrap().ends_with("keywords alone"));
    }
}

#[tokio::test]
async fn b06_the_first_search_is_not_empty() {
    let place = Place::corpus();
    let memory = place.open(Some(FakeEmbedder::new()));
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
    memory.close().await;
    // Nor is the first one after a start.
    let memory = place.open(None);
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
}

/// Transcripts in memory.
#[derive(Default)]
struct FakeTranscripts(Mutex<Vec<(String, String)>>);

impl TranscriptSource for FakeTranscripts {
    fn list(&self) -> io::Result<Vec<TranscriptFile>> {
        let files = self.0.lock();
        Ok(files
            .iter()
            .map(|(name, text)| TranscriptFile { name: name.clone(), size: text.len() as u64, modified: 7 })
            .collect())
    }

    fn read(&self, name: &str) -> io::Result<String> {
        let files = self.0.lock();
        files
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, text)| text.clone())
            .ok_or(io::ErrorKind::NotFound.into())
    }

    fn redact(&self, text: &str) -> String {
        text.replace("sk-verysecret", "sk-…")
    }
}

#[tokio::test]
async fn b07_b08_transcripts_are_indexed_at_the_first_start_and_hold_no_secret() {
    let place = Place::corpus();
    let transcripts = Arc::new(FakeTranscripts::default());
    let said =
        r#"{"type":"message","message":{"role":"user","content":"the telescope key is sk-verysecret"}}"#;
    transcripts.0.lock().push(("1.jsonl".into(), said.into()));
    let mut settings = place.settings();
    settings.sessions = true;
    let memory = Memory::open(settings.clone(), Some(FakeEmbedder::new()), Some(transcripts.clone()));
    assert_eq!(paths(&memory, "telescope").await, ["sessions/1.jsonl"]);
    // A plain sync looks at all of them.
    transcripts.0.lock().push(("2.jsonl".into(), said.replace("telescope", "microscope")));
    sync(&memory).await;
    assert_eq!(paths(&memory, "microscope").await, ["sessions/2.jsonl"]);
    assert_eq!(
        memory.status().await.unwrap().sources.iter().map(|source| source.files).collect::<Vec<_>>(),
        [6, 2]
    );
    memory.close().await;
    for suffix in ["", "-wal"] {
        let bytes = std::fs::read(format!("{}{suffix}", place.store().display())).unwrap_or_default();
        assert!(!bytes.windows(10).any(|window| window == b"verysecret"));
    }
    // Without the source they are removed.
    settings.sessions = false;
    let memory = Memory::open(settings, None, Some(transcripts));
    assert_eq!(sync(&memory).await.removed, 2);
    assert!(paths(&memory, "telescope").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn b09_a_reindex_elsewhere_is_seen_by_the_next_search() {
    let place = Place::corpus();
    let gateway = place.open(Some(FakeEmbedder::new()));
    sync(&gateway).await;
    assert!(paths(&gateway, "hippopotamus").await.is_empty());
    place.write("memory/zoo.md", "The hippopotamus moved.");
    let command = place.open(Some(FakeEmbedder::new()));
    assert_eq!(force(&command).await.error, None);
    command.close().await;
    assert_eq!(paths(&gateway, "hippopotamus").await[0], "memory/zoo.md");
    let left: Vec<_> = std::fs::read_dir(place.store().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.iter().all(|name| !name.to_str().unwrap().contains("tmp")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b11_changes_during_a_sync_are_indexed_afterwards() {
    let place = Place::corpus();
    let memory = Arc::new(place.open(None));
    let writing = {
        let workspace = place.workspace();
        std::thread::spawn(move || {
            for number in 0..200 {
                std::fs::write(
                    workspace.join(format!("memory/note{number}.md")),
                    format!("unique{number} note"),
                )
                .unwrap();
            }
        })
    };
    for _ in 0..5 {
        sync(&memory).await;
    }
    writing.join().unwrap();
    sync(&memory).await;
    for number in 0..200 {
        assert_eq!(paths(&memory, &format!("unique{number}")).await, [format!("memory/note{number}.md")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b14_many_files_are_watched_with_few_descriptors() {
    let place = Place::empty();
    for number in 0..2_000 {
        place.write(&format!("memory/{}/{number}.md", number % 40), "note");
    }
    let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let before = open();
    let mut settings = place.settings();
    settings.sync.watch = true;
    settings.sync.watch_debounce = Duration::from_millis(50);
    let memory = open_with(settings, None);
    sync(&memory).await;
    // Other tests of the process open files too.
    assert!(open() < before + 200);
    place.write("memory/7/new.md", "an armadillo");
    let started = Instant::now();
    while paths(&memory, "armadillo").await.is_empty() {
        assert!(started.elapsed() < Duration::from_secs(20), "the change was not told of");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn b15_the_first_hit_does_not_depend_on_the_number() {
    let place = Place::corpus();
    let memory = place.open(Some(FakeEmbedder::new()));
    sync(&memory).await;
    for query in ["backups", "status code 592", "apple trees", "machine"] {
        let first = async |max_results| {
            let request = SearchRequest {
                query: query.into(),
                max_results: Some(max_results),
                ..SearchRequest::default()
            };
            memory.search(&request).await.unwrap().hits.into_iter().next()
        };
        assert_eq!(first(1).await, first(10).await, "{query}");
    }
}

#[tokio::test]
async fn b17_a_forced_reindex_of_unchanged_text_asks_nobody() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    let memory = place.open(Some(embedder.clone()));
    sync(&memory).await;
    let before = (embedder.counts(), find(&memory, "apple trees").await);
    let report = force(&memory).await;
    assert_eq!((report.indexed, report.reindexed, report.pending), (6, Some("asked for"), 0));
    assert_eq!((embedder.counts(), find(&memory, "apple trees").await), before);
}

#[tokio::test]
async fn b18_small_files_are_embedded_together() {
    let place = Place::empty();
    for number in 0..500 {
        place.write(&format!("memory/{number}.md"), &format!("note {number}"));
    }
    let embedder = FakeEmbedder::new();
    let memory = place.open(Some(embedder.clone()));
    assert_eq!(sync(&memory).await.pending, 0);
    let (requests, texts) = embedder.counts();
    assert!(requests <= 10 && texts == 500, "{requests} requests for {texts} texts");
}

#[tokio::test]
async fn b20_status_writes_nothing() {
    let place = Place::corpus();
    let memory = place.open(Some(FakeEmbedder::new()));
    let status = memory.status().await.unwrap();
    assert!(status.dirty && status.files == 0 && !place.store().exists());
    assert_eq!(status.sources[0].total_files, Some(6));
    sync(&memory).await;
    memory.close().await;
    let state = || {
        (std::fs::read(place.store()).unwrap(), std::fs::metadata(place.store()).unwrap().modified().unwrap())
    };
    let before = state();
    let memory = place.open(Some(FakeEmbedder::new()));
    let status = memory.status().await.unwrap();
    assert_eq!(
        (status.files, status.chunks, status.dirty, status.vectors, status.cache_entries),
        (6, 13, false, 13, 13)
    );
    place.write("memory/2026-01-28.md", "changed");
    assert!(memory.status().await.unwrap().dirty);
    memory.close().await;
    assert!(state() == before);
}
