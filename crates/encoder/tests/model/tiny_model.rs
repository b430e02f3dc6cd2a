//! Writes model directories that are as small as they can be.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

pub(crate) const HIDDEN: usize = 16;
const LAYERS: usize = 2;
const FEED_FORWARD: usize = 32;
pub(crate) const VOCABULARY: usize = 24;
const POSITIONS: usize = 20;
const TYPES: usize = 2;

/// Numbers between -1 and 1; the same ones as in `reference/compute.py`.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        #[expect(clippy::cast_precision_loss, reason = "24 bits")]
        let number = (self.0 >> 40) as f64;
        number / 8_388_608.0 - 1.0
    }
}

/// Kinds of numbers in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    F32,
    F16,
    BF16,
}

impl Numbers {
    fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "weights lose digits")]
    fn bytes(self, number: f64) -> Vec<u8> {
        let single = number as f32;
        match self {
            Self::F32 => single.to_le_bytes().to_vec(),
            Self::BF16 => single.to_le_bytes()[2..].to_vec(),
            Self::F16 => {
                let bits = single.to_bits();
                let exponent = (bits >> 23 & 0xff) as i32 - 112;
                let half = match exponent {
                    ..=0 => 0,
                    _ => (exponent as u32) << 10 | (bits & 0x7f_ffff) >> 13,
                };
                ((bits >> 16 & 0x8000 | half) as u16).to_le_bytes().to_vec()
            }
        }
    }
}

/// Writer of `model.safetensors`.
struct File {
    numbers: Numbers,
    random: Generator,
    header: serde_json::Map<String, Value>,
    data: Vec<u8>,
}

impl File {
    fn tensor(&mut self, name: &str, shape: &[usize], scale: f64, around: f64) {
        let begin = self.data.len();
        for _ in 0..shape.iter().product() {
            let number = around + scale * self.random.next();
            self.data.extend(self.numbers.bytes(number));
        }
        let entry =
            json!({"dtype": self.numbers.name(), "shape": shape, "data_offsets": [begin, self.data.len()]});
        self.header.insert(name.to_owned(), entry);
    }

    fn norm(&mut self, name: &str) {
        self.tensor(&format!("{name}.weight"), &[HIDDEN], 0.1, 1.0);
        self.tensor(&format!("{name}.bias"), &[HIDDEN], 0.1, 0.0);
    }

    fn linear(&mut self, name: &str, outputs: usize, inputs: usize) {
        self.tensor(&format!("{name}.weight"), &[outputs, inputs], 0.5, 0.0);
        self.tensor(&format!("{name}.bias"), &[outputs], 0.1, 0.0);
    }

    fn bytes(&self) -> Vec<u8> {
        let header = Value::Object(self.header.clone()).to_string();
        let size = u64::try_from(header.len()).unwrap();
        [size.to_le_bytes().as_slice(), header.as_bytes(), &self.data].concat()
    }
}

/// The weights of a model, as bytes of a file.
pub(crate) fn weights(seed: u64, prefix: &str, numbers: Numbers) -> Vec<u8> {
    let mut file =
        File { numbers, random: Generator(seed), header: serde_json::Map::new(), data: Vec::new() };
    let tables = [
        ("word_embeddings", VOCABULARY),
        ("position_embeddings", POSITIONS),
        ("token_type_embeddings", TYPES),
    ];
    for (name, rows) in tables {
        file.tensor(&format!("{prefix}embeddings.{name}.weight"), &[rows, HIDDEN], 1.0, 0.0);
    }
    file.norm(&format!("{prefix}embeddings.LayerNorm"));
    for layer in 0..LAYERS {
        let name = |part: &str| format!("{prefix}encoder.layer.{layer}.{part}");
        for part in ["self.query", "self.key", "self.value", "output.dense"] {
            file.linear(&name(&format!("attention.{part}")), HIDDEN, HIDDEN);
        }
        file.norm(&name("attention.output.LayerNorm"));
        file.linear(&name("intermediate.dense"), FEED_FORWARD, HIDDEN);
        file.linear(&name("output.dense"), HIDDEN, FEED_FORWARD);
        file.norm(&name("output.LayerNorm"));
    }
    file.bytes()
}

pub(crate) fn write(dir: &Path, name: &str, content: &Value) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content.to_string()).unwrap();
}

pub(crate) fn config(model_type: &str) -> Value {
    json!({"model_type": model_type, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": 4, "intermediate_size": FEED_FORWARD, "vocab_size": VOCABULARY,
        "max_position_embeddings": POSITIONS, "type_vocab_size": TYPES, "layer_norm_eps": 1e-12,
        "hidden_act": "gelu", "pad_token_id": 1, "_name_or_path": "tiny-e5"})
}

/// A model with WordPiece and mean pooling, of 16 tokens at most.
pub(crate) fn bert(dir: &Path, numbers: Numbers) {
    write(dir, "config.json", &config("bert"));
    write(dir, "sentence_bert_config.json", &json!({"max_seq_length": 16}));
    let vocabulary = [
        "[PAD]", "[CLS]", "[SEP]", "[UNK]", "query", "passage", ":", "hello", "world", "##s", "会", "x", ",",
    ];
    fs::write(dir.join("vocab.txt"), vocabulary.join("\n")).unwrap();
    fs::write(dir.join("model.safetensors"), weights(7, "", numbers)).unwrap();
}

/// A model with Unigram and the first token's row, whose positions begin at 2.
pub(crate) fn xlm_roberta(dir: &Path, numbers: Numbers) {
    write(dir, "config.json", &config("xlm-roberta"));
    write(dir, "config_sentence_transformers.json", &json!({"prompts": {"query": "", "document": ""}}));
    write(dir, "1_Pooling/config.json", &json!({"pooling_mode_cls_token": true}));
    let pieces = json!([
        ["<s>", 0.0],
        ["<pad>", 0.0],
        ["</s>", 0.0],
        ["<unk>", 0.0],
        ["▁he", -1.0],
        ["llo", -1.5],
        ["▁world", -2.0],
        ["▁", -3.0],
        ["h", -5.0],
        ["e", -5.0],
        ["l", -5.0],
        ["o", -5.0]
    ]);
    let tokenizer = json!({"normalizer": {"type": "NFKC"},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁"},
        "model": {"type": "Unigram", "unk_id": 3, "vocab": pieces}});
    write(dir, "tokenizer.json", &tokenizer);
    fs::write(dir.join("model.safetensors"), weights(11, "roberta.", numbers)).unwrap();
}
