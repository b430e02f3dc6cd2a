//! The index file in the hands of another program, and when it is damaged.

use super::*;
use crate::identity::IndexMeta;
use crate::writer::{IndexWriter, IndexedFile, Rewrite, Rewriting};

/// Opens the file as OpenClaw 2026.2.9 does where sqlite-vec can be loaded.
fn open_as_2026_2_9(path: &Path) -> rusqlite::Connection {
    let db = open_file(path);
    openclaw_vec0::register(&db).unwrap();
    db
}

/// Checks that OpenClaw 2026.2.9 finds the vector of each chunk, and no other.
#[track_caller]
fn check_shared(place: &Place, dimensions: usize) {
    let db = open_as_2026_2_9(&place.store());
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let chunks = number("SELECT count(*) FROM chunks");
    assert_eq!(number("SELECT count(*) FROM chunks_vec"), chunks);
    let sql = "SELECT count(*) FROM chunks_vec v JOIN chunks c ON c.id = v.id
        WHERE vec_distance_cosine(v.embedding, c.embedding) < 1e-6";
    assert_eq!(number(sql), chunks);
    let meta = crate::writer::read_meta(&db).unwrap().unwrap();
    assert_eq!(meta.vector_dims, Some(dimensions));
}

#[tokio::test]
async fn the_other_program_finds_all_vectors_whatever_changes() {
    let (place, embedder) = indexed().await;
    check_shared(&place, 64);
    let memory = place.open(Some(embedder.clone()));
    place.write("memory/new.md", "a walrus");
    std::fs::remove_file(place.workspace().join("notes/team.md")).unwrap();
    sync(&memory).await;
    check_shared(&place, 64);
    force(&memory).await;
    check_shared(&place, 64);
    embedder.behave(Behaviour::Dimensions(32));
    place.write("memory/new.md", "a narwhal");
    sync(&memory).await;
    check_shared(&place, 32);
    memory.set_embedder(Some(FakeEmbedder::named("other-model")));
    sync(&memory).await;
    check_shared(&place, 64);
    assert!(memory.status().await.unwrap().is_shared);
}

#[tokio::test]
async fn an_index_without_the_other_programs_table_gets_it_and_asks_nobody() {
    let (place, embedder) = indexed().await;
    let asked = embedder.counts();
    open_as_2026_2_9(&place.store())
        .execute_batch("DROP TABLE chunks_vec; UPDATE chunks SET embedding = '[]'")
        .unwrap();
    let memory = place.open(Some(embedder.clone()));
    assert!(!memory.status().await.unwrap().is_shared);
    let report = sync(&memory).await;
    assert_eq!((report.indexed, report.reindexed), (0, None));
    check_shared(&place, 64);
    assert_eq!(embedder.counts(), asked);
}

#[tokio::test]
async fn a_table_that_cannot_be_used_stops_nothing() {
    for damage in [
        "DROP TABLE chunks_vec_rowids",
        "DROP TABLE chunks_vec_chunks",
        "DROP TABLE chunks_vec_vector_chunks00",
        "DROP TABLE chunks_vec_info",
        "UPDATE chunks_vec_chunks SET rowids = x'00', validity = x'00'",
        "DELETE FROM chunks_vec_rowids",
    ] {
        let (place, embedder) = indexed().await;
        open_file(&place.store()).execute_batch(damage).unwrap();
        let memory = place.open(Some(embedder.clone()));
        place.write("memory/2026-01-29.md", "apple trees and a walrus");
        let report = sync(&memory).await;
        assert_eq!((report.error, report.pending), (None, 0), "{damage}");
        assert_eq!(paths(&memory, "walrus").await, ["memory/2026-01-29.md"], "{damage}");
        assert_eq!(force(&memory).await.error, None, "{damage}");
        assert_eq!(memory.status().await.unwrap().vectors, 13, "{damage}");
    }
}

#[tokio::test]
async fn a_reindex_that_was_interrupted_goes_on() {
    for rewrite in [Rewrite::All, Rewrite::NewIdentity] {
        let (place, embedder) = indexed().await;
        let asked = embedder.counts();
        {
            let db = crate::db::open_for_writing(&place.store()).unwrap();
            let meta = IndexMeta::new(Some(embedder.identity()), crate::chunk::Chunking::default());
            let mut writer = IndexWriter::begin(&db, &meta, true).unwrap();
            writer.begin_rewriting(&Rewriting { meta, rewrite }).unwrap();
            let stat = crate::files::FileStat { size: 1, modified: 1, inode: 1, device: 1 };
            let text = std::fs::read_to_string(place.workspace().join("MEMORY.md")).unwrap();
            let file = IndexedFile {
                path: "MEMORY.md",
                source: crate::Source::Memory,
                hash: crate::chunk::sha256_hex(text.as_bytes()),
                stat,
                chunks: crate::chunk::chunks(&text, crate::chunk::Chunking::default()),
            };
            writer.put_file(&file, rewrite).unwrap();
            writer.commit().unwrap();
        }
        let memory = place.open(Some(embedder.clone()));
        assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
        let report = sync(&memory).await;
        // The first search has begun to look at the files already.
        assert_eq!(
            (report.pending, report.error.clone(), memory.status().await.unwrap().chunks),
            (0, None, 13),
            "{rewrite:?}"
        );
        assert_eq!(embedder.counts(), asked, "{rewrite:?}: nothing is embedded again");
        check_shared(&place, 64);
        assert_eq!(sync(&memory).await.reindexed, None);
        assert_eq!(Rewriting::read(&open_file(&place.store())).unwrap(), None);
    }
}

#[tokio::test]
async fn a_reindex_for_settings_that_are_no_more_is_begun_anew() {
    let (place, embedder) = indexed().await;
    {
        let db = crate::db::open_for_writing(&place.store()).unwrap();
        let other = FakeEmbedder::named("other-model");
        let meta = IndexMeta::new(Some(other.identity()), crate::chunk::Chunking::default());
        let mut writer = IndexWriter::begin(&db, &meta, true).unwrap();
        writer.begin_rewriting(&Rewriting { meta, rewrite: Rewrite::NewIdentity }).unwrap();
        writer.commit().unwrap();
        assert_eq!(crate::writer::read_meta(&db).unwrap().unwrap().model, "fake-embed-64");
    }
    let asked = embedder.counts();
    let memory = place.open(Some(embedder.clone()));
    let report = sync(&memory).await;
    assert_eq!((report.indexed, report.reindexed), (6, Some("other settings during a reindex")));
    assert_eq!(embedder.counts(), asked);
    check_shared(&place, 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reindex_lets_others_write() {
    let place = Place::empty();
    for number in 0..6_000 {
        place.write(&format!("memory/{}/{number}.md", number % 50), &format!("note {number} of words"));
    }
    let memory = place.open(None);
    sync(&memory).await;
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writing = {
        let (store, done) = (place.store(), Arc::clone(&done));
        std::thread::spawn(move || {
            let db = open_file(&store);
            db.busy_timeout(std::time::Duration::ZERO).unwrap();
            let mut written = 0;
            while !done.load(Ordering::Relaxed) {
                written += usize::from(db.execute("DELETE FROM meta WHERE key = 'nothing'", []).is_ok());
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            written
        })
    };
    assert_eq!(force(&memory).await.indexed, 6_000);
    done.store(true, Ordering::Relaxed);
    assert!(writing.join().unwrap() > 0);
}

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
    let meta = IndexMeta::new(Some(embedder.identity()), crate::chunk::Chunking::default());
    crate::writer::reconcile(&connection, true).unwrap();
    let mut writer = IndexWriter::begin(&connection, &meta, true).unwrap();
    writer.set_meta(&meta).unwrap();
    let chunks = (0..u32::try_from(crate::writer::MOST_SHARED).unwrap() + 5)
        .map(|line| crate::chunk::Chunk { start_line: line, end_line: line, text: format!("n{line}") })
        .collect();
    let file = IndexedFile {
        path: "memory/a.md",
        source: crate::Source::Memory,
        hash: "h".into(),
        stat: Default::default(),
        chunks,
    };
    writer.put_file(&file, Rewrite::Changed).unwrap();
    writer.put_embedding(3, "h3", &[1.0, 0.0], true).unwrap();
    writer.commit().unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("SELECT count(*) FROM chunks WHERE embedding <> '[]'"), 0);
    assert_eq!(number("SELECT count(*) FROM openclaw_vectors"), 1);
    assert_eq!(
        (number("SELECT count(*) FROM embedding_cache"), number("SELECT count(*) FROM openclaw_cache")),
        (0, 1)
    );
    assert!(!crate::writer::needs_sharing(&connection).unwrap());
    assert_eq!(crate::writer::read_meta(&connection).unwrap().unwrap().vector_dims, None);
}

#[tokio::test]
async fn an_index_that_outgrows_the_other_program_has_it_index_anew() {
    let (place, embedder) = indexed().await;
    let limit = u32::try_from(crate::writer::MOST_SHARED).unwrap();
    let grow = |lines: u32| {
        let db = crate::db::open_for_writing(&place.store()).unwrap();
        let meta = IndexMeta::new(Some(embedder.identity()), crate::chunk::Chunking::default());
        let mut writer = IndexWriter::begin(&db, &meta, false).unwrap();
        let chunk = |line| crate::chunk::Chunk { start_line: line, end_line: line, text: format!("n{line}") };
        let file = IndexedFile {
            path: "memory/a.md",
            source: crate::Source::Memory,
            hash: lines.to_string(),
            stat: Default::default(),
            chunks: (0..lines).map(chunk).collect(),
        };
        writer.put_file(&file, Rewrite::Changed).unwrap();
        writer.commit().unwrap();
    };
    let state = || {
        let db = open_file(&place.store());
        let sql = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'chunks_vec%'";
        let tables: i64 = db.query_row(sql, [], |row| row.get(0)).unwrap();
        (tables, crate::writer::read_meta(&db).unwrap().unwrap().vector_dims)
    };
    grow(limit - 13);
    assert_eq!(state(), (0, None));
    // It comes back only when there is room again.
    grow(limit - 100);
    assert!(!crate::writer::needs_sharing(&open_file(&place.store())).unwrap());
    grow(0);
    let memory = place.open(Some(embedder.clone()));
    sync(&memory).await;
    check_shared(&place, 64);
}
