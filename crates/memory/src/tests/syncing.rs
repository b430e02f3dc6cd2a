//! Changed files, strange files, and forgetting.

use super::*;

#[tokio::test]
async fn only_what_has_changed_is_read_and_written() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    let memory = place.open(Some(embedder.clone()));
    sync(&memory).await;
    // Files that were written just now are read once more.
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    sync(&memory).await;
    memory.close().await;
    let state = || std::fs::read(place.store()).unwrap();
    let before = state();
    let memory = place.open(Some(embedder.clone()));
    let report = sync(&memory).await;
    assert_eq!((report.indexed, report.removed, report.unchanged), (0, 0, 6));
    memory.close().await;
    assert!(state() == before);
    let memory = place.open(Some(embedder.clone()));
    let asked = embedder.counts().1;
    place.write(
        "memory/long-log.md",
        &format!(
            "{}one more line\n",
            std::fs::read_to_string(place.workspace().join("memory/long-log.md")).unwrap()
        ),
    );
    std::fs::remove_file(place.workspace().join("notes/team.md")).unwrap();
    let report = sync(&memory).await;
    assert_eq!((report.indexed, report.removed, report.unchanged), (1, 1, 4));
    // Only the last chunk of the log is another one.
    assert_eq!(embedder.counts().1, asked + 1);
}

#[tokio::test]
async fn a_workspace_that_is_gone_for_a_while_loses_nothing() {
    let place = Place::corpus();
    let memory = place.open(None);
    sync(&memory).await;
    let aside = place.dir.path().join("aside");
    std::fs::rename(place.workspace(), &aside).unwrap();
    let report = sync(&memory).await;
    assert_eq!(
        (report.removed, report.issues.first().map(String::as_str)),
        (0, Some("workspace directory missing"))
    );
    std::fs::rename(&aside, place.workspace()).unwrap();
    assert_eq!(sync(&memory).await.removed, 0);
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
}

#[tokio::test]
async fn strange_files_and_queries_are_borne() {
    let place = Place::corpus();
    std::fs::write(place.workspace().join("memory/nul.md"), b"walrus \0 \xFF\xFE invalid").unwrap();
    place.write("memory/blank.md", "\n\n  \n");
    place.write("memory/huge.md", &"x".repeat(3 << 20));
    place.write("memory/line.md", &format!("{} needle", "word ".repeat(200_000)));
    let memory = place.open(Some(FakeEmbedder::new()));
    let report = sync(&memory).await;
    assert_eq!((report.error, report.issues.len(), report.pending), (None, 1, 0));
    assert_eq!(paths(&memory, "walrus").await[0], "memory/nul.md");
    assert_eq!(paths(&memory, "needle").await[0], "memory/line.md");
    for query in [
        "",
        "   ",
        "\"",
        "* AND NEAR(",
        "'; DROP TABLE chunks",
        "\0",
        &"a".repeat(1 << 20),
        &"слово ".repeat(100_000),
        "�",
    ] {
        memory.search(&SearchRequest { query: query.into(), ..SearchRequest::default() }).await.unwrap();
    }
}

#[tokio::test]
async fn files_are_not_indexed_where_sources_are_transcripts_alone() {
    let place = Place::corpus();
    let memory = place.open(None);
    assert_eq!(sync(&memory).await.indexed, 6);
    memory.close().await;
    let settings = MemorySettings { memory_files: false, sessions: true, ..place.settings() };
    let memory = open_with(settings, None);
    let report = sync(&memory).await;
    assert_eq!((report.removed, report.unchanged), (6, 0));
    assert!(paths(&memory, "apple trees").await.is_empty());
    let status = memory.status().await.unwrap();
    assert_eq!((status.files, status.dirty, status.sources.len()), (0, false, 0));
}

#[tokio::test]
async fn what_is_forgotten_is_in_no_byte_of_the_file() {
    let place = Place::corpus();
    place.write("memory/private.md", "- the vault code is zanzibarium7\n- tea at five\n");
    let embedder = FakeEmbedder::new();
    let memory = place.open(Some(embedder));
    sync(&memory).await;
    let entries = memory.forget_preview("vault zanzibarium7").await.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(memory.forget(entries).await.unwrap().removed, 1);
    assert_eq!(
        std::fs::read_to_string(place.workspace().join("memory/private.md")).unwrap(),
        "- tea at five\n"
    );
    assert!(paths(&memory, "zanzibarium7").await.is_empty());
    memory.close().await;
    let bytes = std::fs::read(place.store()).unwrap();
    assert!(!bytes.windows(12).any(|window| window == b"zanzibarium7"));
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_and_syncs_at_once_find_what_is_there() {
    let place = Place::corpus();
    let memory = Arc::new(place.open(Some(FakeEmbedder::new())));
    sync(&memory).await;
    let mut tasks = Vec::new();
    for number in 0..8 {
        let memory = Arc::clone(&memory);
        tasks.push(tokio::spawn(async move {
            for _ in 0..40 {
                if number == 0 {
                    force(&memory).await;
                    continue;
                }
                assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
            }
        }));
    }
    for number in 0..40 {
        place.write("memory/busy.md", &format!("change {number}"));
        sync(&memory).await;
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn memory_that_was_closed_says_so() {
    let place = Place::corpus();
    let memory = place.open(None);
    memory.close().await;
    let request = SyncRequest { force: false, until: SyncUntil::Searchable };
    assert!(matches!(
        tokio::time::timeout(std::time::Duration::from_secs(5), memory.sync(request)).await,
        Ok(Err(crate::MemoryError::Closed))
    ));
}
