//! The index file in the hands of another program, and when it is damaged.

use super::*;

async fn indexed() -> (Place, Arc<FakeEmbedder>) {
    let place = Place::corpus();
    let embedder = FakeEmbedder::new();
    let memory = place.open(Some(embedder.clone()));
    sync(&memory).await;
    memory.close().await;
    (place, embedder)
}

async fn best(memory: &Memory) -> (Vec<String>, i64) {
    let answer = find(memory, "apple trees").await;
    (answer.hits.iter().map(|hit| hit.path.clone()).collect(), (answer.hits[0].score * 1e6) as i64)
}

#[tokio::test]
async fn our_tables_can_be_dropped_at_any_time() {
    let (place, embedder) = indexed().await;
    let memory = place.open(Some(embedder.clone()));
    let before = best(&memory).await;
    memory.close().await;
    let asked = embedder.counts();
    for tables in [
        crate::db::OUR_TABLE_NAMES,
        &["openclaw_docs"],
        &["openclaw_terms", "openclaw_segments"],
        &["openclaw_meta"],
        &["openclaw_vectors", "openclaw_codes"],
    ] {
        let db = open_file(&place.store());
        tables.iter().for_each(|table| db.execute_batch(&format!("DROP TABLE {table}")).unwrap());
        drop(db);
        let memory = place.open(Some(embedder.clone()));
        sync(&memory).await;
        assert_eq!(best(&memory).await, before, "{tables:?}");
        memory.close().await;
        assert_eq!(embedder.counts(), asked, "{tables:?}");
    }
}

/// Indexes a file as OpenClaw 2026.2.9 does.
fn write_as_2026_2_9(place: &Place, path: &str, text: &str) {
    place.write(path, text);
    let db = open_file(&place.store());
    let model = "fake-embed-64";
    db.execute("DELETE FROM chunks_fts WHERE path = ?1 AND source = 'memory' AND model = ?2", [path, model])
        .unwrap();
    db.execute("DELETE FROM chunks WHERE path = ?1 AND source = 'memory'", [path]).unwrap();
    let hash = crate::chunk::sha256_hex(text.as_bytes());
    let lines = u32::try_from(text.split('\n').count()).unwrap();
    let id = crate::identity::chunk_id("memory", path, (1, lines), &hash, model, 0);
    let embedding = serde_json::to_string(&recorded_vector(text)).unwrap();
    let values = rusqlite::params![id, path, "memory", 1, lines, hash, model, text, embedding, 1];
    db.execute("INSERT INTO chunks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)", values).unwrap();
    let values = rusqlite::params![text, id, path, "memory", model, 1, lines];
    db.execute("INSERT INTO chunks_fts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", values).unwrap();
    let sql = "INSERT INTO files VALUES (?1, 'memory', ?2, 1.5, ?3) ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, mtime = 1.5";
    db.execute(sql, rusqlite::params![path, hash, text.len() as i64]).unwrap();
}

#[tokio::test]
async fn what_another_program_indexed_is_taken_over_without_asking_the_provider() {
    let (place, embedder) = indexed().await;
    let memory = place.open(Some(embedder.clone()));
    assert!(paths(&memory, "walrus").await.is_empty());
    // The first search has the files looked at; that is to be over.
    sync(&memory).await;
    let asked = embedder.counts();
    write_as_2026_2_9(&place, "memory/new.md", "A walrus visits the garden.");
    write_as_2026_2_9(&place, "notes/team.md", "No password any more, but a narwhal.");
    let report = sync(&memory).await;
    assert_eq!((report.indexed, report.reindexed), (0, None));
    assert_eq!(
        (paths(&memory, "walrus").await, paths(&memory, "narwhal").await),
        (vec!["memory/new.md".into()], vec!["notes/team.md".into()])
    );
    assert!(!paths(&memory, "rotates monthly password").await.contains(&"MEMORY.md".to_owned()));
    assert_eq!(find(&memory, "A walrus visits the garden.").await.hits[0].score, {
        let hybrid = crate::settings::HybridSettings::default().weights();
        let text = find(&memory, "A walrus visits the garden.").await.hits[0].score - hybrid.0;
        hybrid.0 + text
    });
    assert_eq!(embedder.counts(), asked);
    // Ours takes over again.
    place.write("memory/new.md", "A seal visits the garden.");
    assert_eq!(sync(&memory).await.indexed, 1);
    assert!(paths(&memory, "walrus").await.is_empty());
    let fts: i64 = open_file(&place.store())
        .query_row("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'walrus'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(fts, 0);
}

#[tokio::test]
async fn an_index_that_only_the_other_program_wrote_is_used_as_it_is() {
    let (place, embedder) = indexed().await;
    let db = open_file(&place.store());
    crate::db::OUR_TABLE_NAMES
        .iter()
        .for_each(|table| db.execute_batch(&format!("DROP TABLE {table}")).unwrap());
    db.pragma_update(None, "journal_mode", "DELETE").unwrap();
    drop(db);
    let memory = place.open(Some(embedder.clone()));
    let status = memory.status().await.unwrap();
    assert_eq!((status.files, status.chunks), (6, 13));
    let asked = embedder.counts();
    let report = sync(&memory).await;
    assert_eq!((report.indexed, report.unchanged, report.reindexed), (0, 6, None));
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
    assert_eq!(embedder.counts(), asked);
}

#[tokio::test]
async fn a_damaged_file_is_moved_aside_and_built_anew() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 4] = [
        ("cut", |bytes| bytes.truncate(bytes.len() / 2)),
        ("a flipped page", |bytes| bytes[4_096..12_288].iter_mut().for_each(|byte| *byte ^= 0xFF)),
        ("no index", |bytes| *bytes = b"hello world, this is no index".repeat(500)),
        ("empty", Vec::clear),
    ];
    for (name, damage) in damages {
        let (place, embedder) = indexed().await;
        let mut bytes = std::fs::read(place.store()).unwrap();
        damage(&mut bytes);
        std::fs::write(place.store(), bytes).unwrap();
        let memory = place.open(Some(embedder));
        let report = sync(&memory).await;
        assert_eq!(report.error, None, "{name}");
        assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md", "{name}");
        assert_eq!(memory.status().await.unwrap().chunks, 13, "{name}");
        memory.close().await;
    }
}

#[tokio::test]
async fn a_file_that_another_program_replaces_is_opened_anew() {
    let (place, embedder) = indexed().await;
    let memory = place.open(Some(embedder.clone()));
    assert!(!paths(&memory, "apple trees").await.is_empty());
    sync(&memory).await;
    let other = Place::corpus();
    other.write("memory/swapped.md", "a platypus");
    let theirs = other.open(Some(embedder.clone()));
    sync(&theirs).await;
    theirs.close().await;
    std::fs::rename(other.store(), place.store()).unwrap();
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", place.store().display()));
    }
    assert_eq!(paths(&memory, "platypus").await, ["memory/swapped.md"]);
    place.write("memory/after.md", "an echidna");
    sync(&memory).await;
    assert_eq!(paths(&memory, "echidna").await, ["memory/after.md"]);
    assert!(paths(&memory, "platypus").await.is_empty());
}

#[tokio::test]
async fn an_index_that_cannot_be_written_still_answers() {
    let (place, embedder) = indexed().await;
    // A directory in the place of the log can be neither written nor removed, also by root.
    let log = format!("{}-wal", place.store().display());
    let _ = std::fs::remove_file(&log);
    std::fs::create_dir(&log).unwrap();
    std::fs::write(format!("{log}/keep"), "x").unwrap();
    let memory = place.open(Some(embedder));
    place.write("memory/new.md", "a walrus");
    assert!(sync(&memory).await.error.is_some());
    std::fs::remove_dir_all(&log).unwrap();
    assert_eq!(sync(&memory).await.error, None);
    assert_eq!(paths(&memory, "walrus").await, ["memory/new.md"]);
}

#[tokio::test]
async fn above_the_limit_vectors_are_kept_in_our_form_alone() {
    let dir = tempfile::tempdir().unwrap();
    let connection = crate::db::open_for_writing(&dir.path().join("m.sqlite")).unwrap();
    let embedder = FakeEmbedder::new();
    let meta = crate::identity::IndexMeta::new(Some(embedder.identity()), crate::chunk::Chunking::default());
    crate::writer::reconcile(&connection, true).unwrap();
    let mut writer = crate::writer::IndexWriter::begin(&connection, &meta, true).unwrap();
    writer.set_meta(&meta).unwrap();
    let chunks = (0..u32::try_from(crate::writer::MOST_SHARED).unwrap() + 5)
        .map(|line| crate::chunk::Chunk { start_line: line, end_line: line, text: format!("n{line}") })
        .collect();
    let file = crate::writer::IndexedFile {
        path: "memory/a.md",
        source: crate::Source::Memory,
        hash: "h".into(),
        stat: Default::default(),
        chunks,
    };
    writer.put_file(&file, crate::writer::Rewrite::Changed).unwrap();
    writer.put_embedding(3, "h3", &[1.0, 0.0], true).unwrap();
    writer.commit().unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("SELECT count(*) FROM chunks WHERE embedding <> '[]'"), 0);
    assert_eq!(number("SELECT count(*) FROM openclaw_vectors"), 1);
    assert_eq!(
        (number("SELECT count(*) FROM embedding_cache"), number("SELECT count(*) FROM openclaw_cache")),
        (0, 1)
    );
}
