//! Comparison with what OpenClaw 2026.2.9 recorded of the corpus.

use super::*;
use crate::settings::Scoring;

#[tokio::test]
async fn the_corpus_makes_the_recorded_rows() {
    let place = Place::corpus();
    let memory = place.open(Some(FakeEmbedder::new()));
    let report = sync(&memory).await;
    assert_eq!((report.indexed, report.pending, report.error), (6, 0, None));
    memory.close().await;
    let db = open_file(&place.store());
    for chunk in golden("memory-corpus.json")["expected_chunks"].as_array().unwrap() {
        let sql = "SELECT json_object('id', id, 'path', path, 'source', source, 'startLine', start_line, 'endLine', end_line,
            'hash', hash, 'model', model) FROM chunks WHERE id = ?1";
        let row: String = db.query_row(sql, [chunk["id"].as_str().unwrap()], |row| row.get(0)).unwrap();
        for (key, value) in serde_json::from_str::<Value>(&row).unwrap().as_object().unwrap() {
            assert_eq!(value, &chunk[key]);
        }
    }
    assert_eq!(
        (
            count(&place.store(), "chunks"),
            count(&place.store(), "chunks_fts"),
            count(&place.store(), "embedding_cache")
        ),
        (13, 13, 13)
    );
    let schema = golden("memory-schema.json");
    let meta: String = db.query_row("SELECT value FROM meta", [], |row| row.get(0)).unwrap();
    assert_eq!(meta, schema["meta"][0]["value"].as_str().unwrap());
    for file in schema["files_rows"].as_array().unwrap() {
        let (hash, size): (String, i64) = db
            .query_row(
                "SELECT hash, size FROM files WHERE path = ?1",
                [file["path"].as_str().unwrap()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!((hash.as_str(), size), (file["hash"].as_str().unwrap(), file["size"].as_i64().unwrap()));
    }
    // The table that OpenClaw 2026.2.9 searches.
    let is_table = |object: &&Value| object["name"] == "chunks_vec";
    let table = schema["objects"].as_array().unwrap().iter().find(is_table).unwrap();
    let sql: String = db
        .query_row("SELECT sql FROM sqlite_master WHERE name = 'chunks_vec'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sql, table["sql"].as_str().unwrap());
    let objects: std::collections::HashSet<String> = db
        .prepare("SELECT name FROM sqlite_master WHERE name LIKE 'chunks_%'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for name in schema["shadow_tables"].as_array().unwrap() {
        assert!(objects.contains(name.as_str().unwrap()), "{name}");
    }
    let embedding: String = db
        .query_row("SELECT embedding FROM chunks WHERE path = 'notes/team.md'", [], |row| row.get(0))
        .unwrap();
    assert!(embedding.starts_with('[') && !embedding.contains('.'), "{embedding}");
}

#[test]
fn the_embedder_follows_the_recorded_rule() {
    let corpus = golden("memory-corpus.json");
    for (text, vector) in corpus["fake_embedding_rule"]["vectors"].as_object().unwrap() {
        let vector: Vec<f32> = serde_json::from_value(vector.clone()).unwrap();
        assert_eq!(recorded_vector(text), vector, "{text}");
    }
}

/// Settings of a recorded variant.
fn variant(place: &Place, config: &Value) -> MemorySettings {
    let mut settings = place.settings();
    settings.query.hybrid.scoring = Scoring::Compat;
    let hybrid = &config["query"]["hybrid"];
    if let Some(enabled) = hybrid["enabled"].as_bool() {
        settings.query.hybrid.enabled = enabled;
    }
    if let (Some(vector), Some(text)) = (hybrid["vectorWeight"].as_f64(), hybrid["textWeight"].as_f64()) {
        (settings.query.hybrid.vector_weight, settings.query.hybrid.text_weight) = (vector, text);
    }
    if let Some(multiplier) = hybrid["candidateMultiplier"].as_u64() {
        settings.query.hybrid.candidate_multiplier = usize::try_from(multiplier).unwrap();
    }
    settings
}

#[tokio::test]
async fn compat_scoring_finds_what_is_recorded() {
    let place = Place::corpus();
    for (name, case) in golden("memory-search.json")["variants"].as_object().unwrap() {
        let memory = open_with(variant(&place, &case["config"]), Some(FakeEmbedder::new()));
        sync(&memory).await;
        for (query, expect) in case["results"].as_object().unwrap() {
            let request = SearchRequest {
                query: query.clone(),
                max_results: case["options"]["maxResults"].as_u64().map(|max| usize::try_from(max).unwrap()),
                min_score: case["options"]["minScore"].as_f64(),
                session: None,
            };
            let hits = memory.search(&request).await.unwrap().hits;
            // An empty vector has no direction: OpenClaw 2026.2.9 then gives every chunk the score 0, in any order.
            let expect: Vec<&Value> =
                expect.as_array().unwrap().iter().filter(|hit| hit["score"].as_f64() != Some(0.0)).collect();
            let made: Vec<_> = hits.iter().filter(|hit| hit.score.abs() > 1e-9).collect();
            assert_eq!(made.len(), expect.len(), "{name} {query}: {made:#?} {expect:#?}");
            for (place, (hit, expect)) in made.iter().zip(&expect).enumerate() {
                near(hit.score, expect["score"].as_f64().unwrap(), 1e-6);
                // Hits of one score come in any order.
                let is_tied = |other: usize| {
                    expect_at(&made, other).is_some_and(|score| (score - hit.score).abs() < 1e-6)
                };
                if is_tied(place + 1) || place.checked_sub(1).is_some_and(is_tied) {
                    continue;
                }
                let shown = (
                    hit.path.as_str(),
                    u64::from(hit.start_line),
                    u64::from(hit.end_line),
                    hit.snippet.encode_utf16().count(),
                );
                let number = |key: &str| expect[key].as_u64().unwrap();
                let recorded = (
                    expect["path"].as_str().unwrap(),
                    number("startLine"),
                    number("endLine"),
                    usize::try_from(number("snippetLength")).unwrap(),
                );
                assert_eq!(shown, recorded, "{name} {query}");
            }
        }
        memory.close().await;
    }
}

fn expect_at(hits: &[&crate::Hit], place: usize) -> Option<f64> {
    hits.get(place).map(|hit| hit.score)
}

#[tokio::test]
async fn cosines_are_those_recorded() {
    let place = Place::corpus();
    let mut settings = place.settings();
    settings.query.hybrid.enabled = false;
    let memory = open_with(settings, Some(FakeEmbedder::new()));
    sync(&memory).await;
    for (query, case) in golden("memory-search.json")["per_query"].as_object().unwrap() {
        let request = SearchRequest {
            query: query.clone(),
            max_results: Some(50),
            min_score: Some(-1.0),
            session: None,
        };
        let hits = memory.search(&request).await.unwrap().hits;
        for expect in case["vector_all"].as_array().unwrap() {
            let is_it = |hit: &&crate::Hit| {
                hit.path == expect["path"].as_str().unwrap()
                    && u64::from(hit.start_line) == expect["startLine"].as_u64().unwrap()
            };
            // Of chunks that overlap only the best is shown.
            if let Some(hit) = hits.iter().find(is_it) {
                near(hit.score, expect["cosine"].as_f64().unwrap(), 1e-6);
            }
        }
    }
}
