//! Embedders that fail, change, or answer nonsense.

use super::*;
use crate::SearchMode;

#[tokio::test]
async fn answers_that_make_no_sense_leave_keywords_and_a_reason() {
    for behaviour in [
        Behaviour::OneLess,
        Behaviour::NotNumbers,
        Behaviour::Fails(EmbedError::Unauthorized { message: "401 bad key".into() }),
    ] {
        let place = Place::corpus();
        let embedder = FakeEmbedder::new();
        embedder.behave(behaviour.clone());
        let memory = place.open(Some(embedder.clone()));
        let report = sync(&memory).await;
        assert_eq!((report.indexed, report.pending, report.error), (6, 13, None), "{behaviour:?}");
        assert!(report.embed_error.is_some(), "{behaviour:?}");
        assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
        // Mended, it goes on where it was.
        embedder.behave(Behaviour::Recorded);
        let report = force(&memory).await;
        assert_eq!((report.pending, report.embed_error), (0, None), "{behaviour:?}");
        assert_eq!(find(&memory, "apple trees").await.mode, SearchMode::Hybrid);
    }
}

/// Dimensions of the vectors that stand in the index, and how many there are.
fn stored(place: &Place) -> Vec<(i64, i64)> {
    let db = open_file(&place.store());
    let mut rows =
        db.prepare("SELECT length(vector) / 4, count(*) FROM openclaw_vectors GROUP BY 1").unwrap();
    rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn other_dimensions_midway_have_everything_embedded_anew() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    let memory = place.open(Some(embedder.clone()));
    sync(&memory).await;
    assert_eq!(stored(&place), [(64, 13)]);
    embedder.behave(Behaviour::Dimensions(32));
    place.write("memory/new.md", "a walrus");
    let report = sync(&memory).await;
    assert_eq!((report.pending, report.embed_error), (0, None));
    assert_eq!(stored(&place), [(32, 14)]);
    assert_eq!(find(&memory, "walrus").await.mode, SearchMode::Hybrid);
    // Servers that take turns don't have it done again and again.
    embedder.behave(Behaviour::Dimensions(16));
    place.write("memory/newer.md", "a narwhal");
    let report = sync(&memory).await;
    assert_eq!((report.pending, report.needs_force), (1, true));
    assert!(report.embed_error.unwrap().contains("16 dimensions"));
    assert_eq!(
        (stored(&place), paths(&memory, "narwhal").await),
        (vec![(32, 14)], vec!["memory/newer.md".into()])
    );
    assert_eq!(force(&memory).await.pending, 0);
    assert_eq!(stored(&place), [(16, 15)]);
}

#[tokio::test]
async fn other_dimensions_of_a_query_have_everything_embedded_anew() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    let memory = place.open(Some(embedder.clone()));
    sync(&memory).await;
    embedder.behave(Behaviour::Dimensions(32));
    let started = std::time::Instant::now();
    while find(&memory, "apple trees").await.mode != SearchMode::Hybrid {
        assert!(started.elapsed() < std::time::Duration::from_secs(20));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(sync(&memory).await.pending, 0);
    assert_eq!(stored(&place), [(32, 13)]);
}

#[tokio::test]
async fn an_answer_of_other_dimensions_that_is_not_repeated_changes_nothing() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    let memory = place.open(Some(embedder.clone()));
    sync(&memory).await;
    embedder.behave(Behaviour::OnceOfDimensions(32));
    place.write("memory/new.md", "a walrus");
    assert_eq!(sync(&memory).await.pending, 0);
    assert_eq!(stored(&place), [(64, 14)]);
}

#[tokio::test]
async fn vectors_of_nothing_but_zeros_leave_keywords() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    embedder.behave(Behaviour::Zeros);
    let memory = place.open(Some(embedder));
    assert_eq!(sync(&memory).await.pending, 0);
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
}

#[tokio::test]
async fn requests_that_are_too_large_are_parted() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    embedder.behave(Behaviour::AtMost(1));
    let memory = place.open(Some(embedder));
    let report = sync(&memory).await;
    assert_eq!((report.pending, report.embed_error), (0, None));
}

#[tokio::test]
async fn another_model_embeds_anew_and_a_change_back_costs_nothing() {
    let place = Place::corpus();
    let (one, two) = (FakeEmbedder::new(), FakeEmbedder::named("other-model"));
    let memory = place.open(Some(one.clone()));
    sync(&memory).await;
    memory.set_embedder(Some(two.clone()));
    let report = sync(&memory).await;
    assert_eq!((report.pending, two.counts().1, count(&place.store(), "chunks")), (0, 13, 13));
    assert_eq!(find(&memory, "apple trees").await.mode, SearchMode::Hybrid);
    let asked = one.counts();
    memory.set_embedder(Some(one.clone()));
    assert_eq!(sync(&memory).await.pending, 0);
    assert_eq!(one.counts(), asked);
    // Without a key for a while nothing is lost.
    memory.set_embedder(None);
    assert_eq!(sync(&memory).await.reindexed, None);
    memory.set_embedder(Some(one.clone()));
    sync(&memory).await;
    assert_eq!(one.counts(), asked);
    assert_eq!(find(&memory, "apple trees").await.mode, SearchMode::Hybrid);
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_rows_and_no_file_behind() {
    let place = Place::corpus();
    let memory = place.open(Some(FakeEmbedder::new()));
    sync(&memory).await;
    let other = FakeEmbedder::named("broken");
    other.behave(Behaviour::Fails(EmbedError::Unauthorized { message: "401".into() }));
    memory.set_embedder(Some(other));
    let report = sync(&memory).await;
    assert!(report.embed_error.is_some());
    assert_eq!(
        (
            count(&place.store(), "files"),
            count(&place.store(), "chunks"),
            count(&place.store(), "chunks_fts")
        ),
        (6, 13, 13)
    );
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
    let left = std::fs::read_dir(place.store().parent().unwrap())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().contains(".tmp-"))
        .count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn an_index_without_an_embedder_gets_vectors_when_there_is_one() {
    let place = Place::corpus();
    let memory = place.open(None);
    sync(&memory).await;
    let embedder = FakeEmbedder::new();
    memory.set_embedder(Some(embedder.clone()));
    assert_eq!(sync(&memory).await.pending, 0);
    assert_eq!(embedder.counts().1, 13);
    assert_eq!(find(&memory, "apple trees").await.mode, SearchMode::Hybrid);
}

#[tokio::test]
async fn vectors_that_were_switched_off_are_made_when_they_are_wanted() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    for (vectors, texts, mode) in [(false, 0, SearchMode::Keyword), (true, 13, SearchMode::Hybrid)] {
        let memory = open_with(MemorySettings { vectors, ..place.settings() }, Some(embedder.clone()));
        assert_eq!(sync(&memory).await.pending, 0);
        assert_eq!((embedder.counts().1, find(&memory, "apple trees").await.mode), (texts, mode));
        memory.close().await;
    }
}

#[tokio::test]
async fn other_sizes_of_chunks_keep_vectors_of_equal_texts() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    let memory = place.open(Some(embedder.clone()));
    sync(&memory).await;
    memory.close().await;
    let mut settings = place.settings();
    settings.chunking = crate::chunk::Chunking { tokens: 500, overlap: 100 };
    let memory = open_with(settings, Some(embedder.clone()));
    let report = sync(&memory).await;
    assert_eq!((report.reindexed, report.pending), (Some("other sizes of chunks"), 0));
    // Five small files are cut as before.
    assert!(embedder.counts().1 < 13 + 8, "{:?}", embedder.counts());
}

#[tokio::test]
async fn a_changed_file_is_found_while_a_provider_is_silent() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    embedder.behave(Behaviour::Silent);
    let memory = place.open(Some(embedder.clone()));
    let searchable = || memory.sync(SyncRequest { force: false, until: SyncUntil::Searchable });
    searchable().await.unwrap();
    embedder.asked().await;
    place.write("memory/new.md", "a walrus");
    assert_eq!(searchable().await.unwrap().indexed, 1);
    let found = find(&memory, "walrus").await;
    assert_eq!(found.hits[0].path, "memory/new.md");
}

#[tokio::test]
async fn texts_of_a_job_that_is_under_way_are_waited_for() {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    let under_way = |waits| {
        let again = std::time::Duration::from_millis(5);
        Behaviour::Fails(EmbedError::UnderWay { message: "batch b".into(), again, waits })
    };
    embedder.behave(under_way(false));
    let memory = place.open(Some(embedder.clone()));
    let report = sync(&memory).await;
    assert_eq!((report.pending, report.embed_error.as_deref()), (13, Some("batch b")));
    embedder.behave(under_way(true));
    embedder.arrived.notified().await;
    let (waited, ()) = tokio::join!(sync(&memory), async {
        embedder.asked().await;
        embedder.asked().await;
        // The job is no failure of the provider: queries have vectors meanwhile.
        assert_eq!(embedder.cooldown().remaining(std::time::Instant::now()), None);
        embedder.behave(Behaviour::Recorded);
    });
    assert_eq!((waited.pending, waited.embed_error), (0, None));
}

#[tokio::test]
async fn another_embedder_does_not_wait_for_the_pause_of_the_one_before() {
    let place = Place::corpus();
    let refused = FakeEmbedder::new();
    refused.behave(Behaviour::Fails(EmbedError::Unauthorized { message: "bad key".into() }));
    let memory = place.open(Some(refused));
    assert_eq!(sync(&memory).await.embed_error.as_deref(), Some("bad key"));
    memory.set_embedder(Some(FakeEmbedder::named("another")));
    let report = sync(&memory).await;
    assert_eq!((report.pending, report.embed_error), (0, None));
}
