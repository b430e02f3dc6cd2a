//! The time to encode texts with a model of the shape of all-MiniLM-L6-v2 and random weights, or
//! with the model in the directory that `OPENCLAW_TEST_EMBED_MODEL` names.

#![expect(clippy::unwrap_used, reason = "a bench's way to fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use divan::Bencher;
use openclaw_encoder::{Encoder, TextKind};
use serde_json::{Map, Value, json};

const HIDDEN: usize = 384;
const FEED_FORWARD: usize = 1536;
const LAYERS: usize = 6;
const WORDS: usize = 1000;
const POSITIONS: usize = 512;

static ENCODER: LazyLock<Encoder> = LazyLock::new(|| match std::env::var_os("OPENCLAW_TEST_EMBED_MODEL") {
    Some(dir) => Encoder::open(&PathBuf::from(dir)).unwrap(),
    None => {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path());
        Encoder::open(dir.path()).unwrap()
    }
});

fn main() {
    divan::main();
}

/// One line of a note.
#[divan::bench]
fn short_text(bencher: Bencher<'_, '_>) {
    bencher.bench(|| encode(&["the gateway runs on the machine in the attic"]));
}

/// A text of 256 tokens, the longest that MiniLM reads.
#[divan::bench]
fn chunk(bencher: Bencher<'_, '_>) {
    let text = "a note about the machine that runs the gateway ".repeat(40);
    bencher.bench(|| encode(&[&text]));
}

/// Sixteen of them on two threads.
#[divan::bench]
fn sixteen_chunks(bencher: Bencher<'_, '_>) {
    let text = "a note about the machine that runs the gateway ".repeat(40);
    bencher.bench(|| encode(&[text.as_str(); 16]));
}

/// Cutting a text into tokens.
#[divan::bench]
fn tokens(bencher: Bencher<'_, '_>) {
    let text = "a note about the machine that runs the gateway ".repeat(34);
    bencher.bench(|| ENCODER.tokens(TextKind::Passage, &text));
}

fn encode(texts: &[&str]) -> Vec<Vec<f32>> {
    ENCODER.encode(TextKind::Passage, texts, &AtomicBool::new(false)).unwrap()
}

fn write(dir: &Path) {
    let config = json!({"model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": 12, "intermediate_size": FEED_FORWARD, "vocab_size": WORDS,
        "max_position_embeddings": POSITIONS, "type_vocab_size": 2});
    fs::write(dir.join("config.json"), config.to_string()).unwrap();
    fs::write(dir.join("sentence_bert_config.json"), r#"{"max_seq_length": 256}"#).unwrap();
    let words = "[UNK] [CLS] [SEP] a the gateway runs on machine in attic note about that";
    fs::write(dir.join("vocab.txt"), words.replace(' ', "\n")).unwrap();
    let mut file = (Map::new(), Vec::new());
    let mut tensor = |name: &str, shape: &[usize], around: f32| {
        let begin = file.1.len();
        for at in 0..shape.iter().product::<usize>() {
            let noise = f32::from(u16::try_from(at * 40_503 % 65_536).unwrap()) / 65_536.0 - 0.5;
            file.1.extend((around + noise * 0.1).to_le_bytes());
        }
        let entry = json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, file.1.len()]});
        file.0.insert(name.to_owned(), entry);
    };
    let norm = |name: &str, tensor: &mut dyn FnMut(&str, &[usize], f32)| {
        tensor(&format!("{name}.weight"), &[HIDDEN], 1.0);
        tensor(&format!("{name}.bias"), &[HIDDEN], 0.0);
    };
    for (name, rows) in [("word", WORDS), ("position", POSITIONS), ("token_type", 2)] {
        tensor(&format!("embeddings.{name}_embeddings.weight"), &[rows, HIDDEN], 0.0);
    }
    norm("embeddings.LayerNorm", &mut tensor);
    let dense = [
        ("attention.self.query", HIDDEN, HIDDEN),
        ("attention.self.key", HIDDEN, HIDDEN),
        ("attention.self.value", HIDDEN, HIDDEN),
        ("attention.output.dense", HIDDEN, HIDDEN),
        ("intermediate.dense", FEED_FORWARD, HIDDEN),
        ("output.dense", HIDDEN, FEED_FORWARD),
    ];
    for layer in 0..LAYERS {
        for (name, outputs, inputs) in dense {
            tensor(&format!("encoder.layer.{layer}.{name}.weight"), &[outputs, inputs], 0.0);
            tensor(&format!("encoder.layer.{layer}.{name}.bias"), &[outputs], 0.0);
        }
        norm(&format!("encoder.layer.{layer}.attention.output.LayerNorm"), &mut tensor);
        norm(&format!("encoder.layer.{layer}.output.LayerNorm"), &mut tensor);
    }
    let header = Value::Object(file.0).to_string();
    let size = u64::try_from(header.len()).unwrap().to_le_bytes();
    fs::write(dir.join("model.safetensors"), [&size, header.as_bytes(), &file.1].concat()).unwrap();
}
