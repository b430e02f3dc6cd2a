//! Encoders over whole model directories.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's way to fail")]

#[path = "model/tiny_model.rs"]
mod tiny_model;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use openclaw_encoder::{EncodeError, Encoder, ModelError, TextKind};
use serde::Deserialize;
use serde_json::{Value, json};
use tiny_model::Numbers;

#[derive(Deserialize)]
struct ReferenceVector {
    kind: String,
    text: String,
    tokens: Vec<u32>,
    vector: Vec<f32>,
}

fn reference(model: &str) -> Vec<ReferenceVector> {
    let mut all: Value = serde_json::from_str(include_str!("reference/tiny.json")).unwrap();
    serde_json::from_value(all[model].take()).unwrap()
}

fn kind(name: &str) -> TextKind {
    if name == "query" { TextKind::Query } else { TextKind::Passage }
}

fn encode(encoder: &Encoder, kind: TextKind, texts: &[&str]) -> Vec<Vec<f32>> {
    encoder.encode(kind, texts, &AtomicBool::new(false)).unwrap()
}

fn distance(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn check(encoder: &Encoder, rows: &[ReferenceVector], tolerance: f32) {
    for ReferenceVector { kind: name, text, tokens, vector } in rows {
        assert_eq!(encoder.tokens(kind(name), text), *tokens, "{text}");
        let found = encode(encoder, kind(name), &[text]);
        assert!(distance(&found[0], vector) < tolerance, "{text}: {found:?}");
    }
}

type Write = fn(&Path, Numbers);
const MODELS: [(&str, Write); 2] = [("bert", tiny_model::bert), ("xlm-roberta", tiny_model::xlm_roberta)];

fn tiny(write: Write, numbers: Numbers) -> Encoder {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), numbers);
    Encoder::open(dir.path()).unwrap()
}

#[test]
fn vectors_are_those_of_an_independent_computation() {
    for (name, write) in MODELS {
        let encoder = tiny(write, Numbers::F32);
        assert_eq!((encoder.dimensions(), encoder.max_tokens()), (16, if name == "bert" { 16 } else { 18 }));
        check(&encoder, &reference(name), 5e-6);
    }
}

#[test]
fn weights_of_half_precision_give_nearly_the_same_vectors() {
    for (name, write) in MODELS {
        check(&tiny(write, Numbers::F16), &reference(name), 0.01);
        check(&tiny(write, Numbers::BF16), &reference(name), 0.05);
    }
}

#[test]
fn many_texts_have_the_vectors_that_each_has_alone() {
    let encoder = tiny(tiny_model::bert, Numbers::F32);
    let texts: Vec<String> = (0..50).map(|n| "hello world worlds ".repeat(n % 7)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = encode(&encoder, TextKind::Passage, &texts);
    for (text, vector) in texts.iter().zip(&together) {
        assert_eq!(encode(&encoder, TextKind::Passage, &[text])[0], *vector, "{text}");
    }
    assert_eq!(encode(&encoder, TextKind::Query, &[]), Vec::<Vec<f32>>::new());
}

#[test]
fn a_caller_may_stop() {
    let encoder = tiny(tiny_model::bert, Numbers::F32);
    let found = encoder.encode(TextKind::Query, &["hello"; 10], &AtomicBool::new(true));
    assert_eq!(found, Err(EncodeError::Cancelled));
}

#[test]
fn the_fingerprint_tells_models_apart() {
    let print = |write: Write, numbers| tiny(write, numbers).fingerprint().to_owned();
    let one = print(tiny_model::bert, Numbers::F32);
    assert_eq!((one.len(), &one), (64, &print(tiny_model::bert, Numbers::F32)));
    assert_ne!(one, print(tiny_model::bert, Numbers::F16));
    assert_ne!(one, print(tiny_model::xlm_roberta, Numbers::F32));
    // One number of the last layer.
    let dir = tempfile::tempdir().unwrap();
    tiny_model::bert(dir.path(), Numbers::F32);
    let path = dir.path().join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
    assert_ne!(one, Encoder::open(dir.path()).unwrap().fingerprint());
}

/// A change to a directory.
type Change = Box<dyn Fn(&Path)>;

/// Opens a model after a change to its directory.
fn opened(change: impl Fn(&Path)) -> Result<Encoder, ModelError> {
    let dir = tempfile::tempdir().unwrap();
    tiny_model::bert(dir.path(), Numbers::F32);
    change(dir.path());
    Encoder::open(dir.path())
}

fn with_config(name: &'static str, value: Value) -> impl Fn(&Path) {
    move |dir| {
        let mut config = tiny_model::config("bert");
        config[name] = value.clone();
        tiny_model::write(dir, "config.json", &config);
    }
}

#[test]
fn a_directory_that_holds_no_such_model_is_refused_in_words() {
    let remove = |file: &'static str| move |dir: &Path| fs::remove_file(dir.join(file)).unwrap();
    let replace =
        |file: &'static str, bytes: Vec<u8>| move |dir: &Path| fs::write(dir.join(file), &bytes).unwrap();
    let whole = tiny_model::weights(7, "", Numbers::F32);
    let other = String::from_utf8_lossy(&whole).find("query.weight").unwrap();
    let mut renamed = whole.clone();
    renamed[other..other + 5].copy_from_slice(b"qqqqq");
    let bad: Vec<(Change, &str)> = vec![
        (Box::new(remove("config.json")), "has no config.json"),
        (Box::new(remove("model.safetensors")), "has no model.safetensors"),
        (Box::new(remove("vocab.txt")), "has no tokenizer.json"),
        (Box::new(replace("config.json", b"{".to_vec())), "config.json is damaged"),
        (Box::new(replace("vocab.txt", b"a\nb".to_vec())), "no token \"[CLS]\""),
        (Box::new(replace("vocab.txt", vec![0xff; 9])), "no UTF-8"),
        (Box::new(replace("model.safetensors", Vec::new())), "it has no header"),
        (Box::new(replace("model.safetensors", vec![0xff; 40])), "longer than the file"),
        (Box::new(replace("model.safetensors", whole[..whole.len() - 9].to_vec())), "within the file"),
        (Box::new(replace("model.safetensors", renamed)), "no tensor \"encoder.layer."),
        (Box::new(replace("model.safetensors", b"\x02\0\0\0\0\0\0\0{}".to_vec())), "no BERT model"),
        (Box::new(with_config("model_type", json!("modernbert"))), "model_type \"modernbert\""),
        (Box::new(with_config("hidden_act", json!("relu"))), "hidden_act \"relu\""),
        (Box::new(with_config("position_embedding_type", json!("relative_key"))), "relative_key"),
        (Box::new(with_config("hidden_size", json!(32))), "config.json says [32, 32]"),
        (Box::new(with_config("hidden_size", json!(0))), "hidden_size is 0"),
        (Box::new(with_config("num_attention_heads", json!(3))), "can't be parted among 3 heads"),
        (Box::new(with_config("num_hidden_layers", json!(1_000_000))), "num_hidden_layers is 1000000"),
        (Box::new(with_config("num_hidden_layers", json!(3))), "no tensor \"encoder.layer.2"),
        (Box::new(with_config("vocab_size", json!(-1))), "is damaged"),
        (
            Box::new(|dir| {
                tiny_model::write(
                    dir,
                    "modules.json",
                    &json!([{"type": "sentence_transformers.models.Dense"}]),
                );
            }),
            "\"Dense\" is not supported",
        ),
        (
            Box::new(|dir| {
                tiny_model::write(dir, "1_Pooling/config.json", &json!({"pooling_mode_max_tokens": true}));
            }),
            "pooling_mode_max_tokens",
        ),
    ];
    for (change, expect) in bad {
        let found = opened(change).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(found.contains(expect), "{expect}: {found}");
    }
    assert!(Encoder::open(Path::new("/nowhere")).is_err());
}

#[test]
fn weights_that_are_no_numbers_give_an_error_and_no_vector() {
    let encoder = opened(|dir| {
        let path = dir.join("model.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        let from = bytes.len() - 64 * 4;
        bytes[from..].chunks_exact_mut(4).for_each(|four| four.copy_from_slice(&f32::NAN.to_le_bytes()));
        fs::write(path, bytes).unwrap();
    });
    let found = encoder.unwrap().encode(TextKind::Query, &["hello"], &AtomicBool::new(false));
    assert!(matches!(&found, Err(EncodeError::Unusable { text: 0, .. })), "{found:?}");
}

#[test]
fn a_token_that_the_model_does_not_have_is_an_error() {
    let encoder = opened(|dir| {
        let words: Vec<String> = (0..100).map(|n| format!("w{n}")).collect();
        let vocabulary = format!("[PAD]\n[CLS]\n[SEP]\n[UNK]\n{}", words.join("\n"));
        fs::write(dir.join("vocab.txt"), vocabulary).unwrap();
    });
    let found = encoder.unwrap().encode(TextKind::Query, &["w1", "w99"], &AtomicBool::new(false));
    let Err(EncodeError::Unusable { text: 1, what }) = found else { panic!("{found:?}") };
    assert!(what.contains("more tokens than the model"), "{what}");
}
