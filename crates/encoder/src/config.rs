//! Settings of a model: `config.json`, and the files in which sentence-transformers keeps pooling,
//! lengths and prompts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::ModelError;
use crate::pooling::Pooling;
use crate::prefixes::Prefixes;

/// File with the shape of the network.
const CONFIG: &str = "config.json";
/// File with the longest text.
const LENGTH: &str = "sentence_bert_config.json";
/// File with the kind of pooling.
const POOLING: &str = "1_Pooling/config.json";
/// File with prompts.
const PROMPTS: &str = "config_sentence_transformers.json";
/// File with the list of steps behind the network.
const MODULES: &str = "modules.json";

/// Largest settings file that is read.
const MAX_SETTINGS: u64 = 1024 * 1024;
/// Bounds of the network's shape: above the largest models of this family.
const MAX_HIDDEN: usize = 8_192;
const MAX_LAYERS: usize = 96;
const MAX_FEED_FORWARD: usize = 65_536;
const MAX_VOCABULARY: usize = 4_000_000;
/// Longest text in tokens: attention takes memory and time with its square.
const MAX_TOKENS: usize = 8_192;
/// Tokens that begin and end a text.
const MARKS: usize = 2;

/// Shape of the network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelConfig {
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) feed_forward: usize,
    pub(crate) vocabulary: usize,
    pub(crate) positions: usize,
    pub(crate) token_types: usize,
    pub(crate) epsilon: f32,
    /// Position of the first token.
    pub(crate) first_position: usize,
    /// Longest text in tokens, with its two marks.
    pub(crate) max_tokens: usize,
    pub(crate) pooling: Pooling,
    pub(crate) prefixes: Prefixes,
}

#[derive(Deserialize)]
struct RawConfig {
    model_type: Option<String>,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    #[serde(default)]
    type_vocab_size: usize,
    layer_norm_eps: Option<f32>,
    hidden_act: Option<String>,
    position_embedding_type: Option<String>,
    pad_token_id: Option<usize>,
    #[serde(default, rename = "_name_or_path")]
    name: String,
}

#[derive(Deserialize, Default)]
struct RawLength {
    max_seq_length: Option<usize>,
}

#[derive(Deserialize, Default)]
struct RawPrompts {
    #[serde(default)]
    prompts: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct RawModule {
    #[serde(rename = "type")]
    kind: String,
}

impl ModelConfig {
    /// Reads the settings of a model directory.
    pub(crate) fn read(dir: &Path) -> Result<Self, ModelError> {
        let path = dir.join(CONFIG);
        let raw: RawConfig =
            settings(&path)?.ok_or_else(|| ModelError::Missing { dir: dir.to_path_buf(), file: CONFIG })?;
        let first_position = check_kind(&raw).map_err(|what| ModelError::unsupported(&path, what))?;
        check_shape(&raw, first_position).map_err(|what| ModelError::damaged(&path, what))?;
        let length: RawLength = settings(&dir.join(LENGTH))?.unwrap_or_default();
        let prompts: RawPrompts = settings(&dir.join(PROMPTS))?.unwrap_or_default();
        let positions = raw.max_position_embeddings - first_position;
        let directory = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self {
            hidden: raw.hidden_size,
            layers: raw.num_hidden_layers,
            heads: raw.num_attention_heads,
            feed_forward: raw.intermediate_size,
            vocabulary: raw.vocab_size,
            positions: raw.max_position_embeddings,
            token_types: raw.type_vocab_size,
            epsilon: raw.layer_norm_eps.unwrap_or(1e-12),
            first_position,
            max_tokens: length
                .max_seq_length
                .unwrap_or(positions)
                .min(positions)
                .clamp(MARKS + 1, MAX_TOKENS),
            pooling: pooling(dir)?,
            prefixes: Prefixes::of(&prompts.prompts, &[&directory, &raw.name]),
        })
    }
}

/// Checks that the network is one that this encoder can run. Returns the position of the first token.
fn check_kind(raw: &RawConfig) -> Result<usize, String> {
    let kind = raw.model_type.as_deref().unwrap_or("bert");
    let first_position = match kind {
        "bert" => 0,
        // These count positions from behind the padding token's id.
        "xlm-roberta" | "roberta" => raw.pad_token_id.unwrap_or(1).saturating_add(1),
        other => {
            return Err(format!(
                "model_type \"{other}\" is not supported; use a model of type bert or xlm-roberta, such as \
                 multilingual-e5-small or all-MiniLM-L6-v2, or serve it with llama-server or Ollama and name \
                 that in remote.baseUrl"
            ));
        }
    };
    match raw.hidden_act.as_deref() {
        None | Some("gelu") => {}
        Some(other) => return Err(format!("hidden_act \"{other}\" is not supported, only \"gelu\"")),
    }
    match raw.position_embedding_type.as_deref() {
        None | Some("absolute") => Ok(first_position),
        Some(other) => {
            Err(format!("position_embedding_type \"{other}\" is not supported, only \"absolute\""))
        }
    }
}

fn check_shape(raw: &RawConfig, first_position: usize) -> Result<(), String> {
    let bounds = [
        ("hidden_size", raw.hidden_size, 1, MAX_HIDDEN),
        ("num_hidden_layers", raw.num_hidden_layers, 1, MAX_LAYERS),
        ("num_attention_heads", raw.num_attention_heads, 1, raw.hidden_size),
        ("intermediate_size", raw.intermediate_size, 1, MAX_FEED_FORWARD),
        ("vocab_size", raw.vocab_size, 1, MAX_VOCABULARY),
        ("max_position_embeddings", raw.max_position_embeddings, first_position + MARKS + 1, usize::MAX),
    ];
    for (name, value, least, most) in bounds {
        if value < least || value > most {
            return Err(format!("{name} is {value}, which is not possible"));
        }
    }
    if !raw.hidden_size.is_multiple_of(raw.num_attention_heads) {
        let (hidden, heads) = (raw.hidden_size, raw.num_attention_heads);
        return Err(format!("hidden_size {hidden} can't be parted among {heads} heads"));
    }
    Ok(())
}

fn pooling(dir: &Path) -> Result<Pooling, ModelError> {
    let path = dir.join(MODULES);
    let modules: Vec<RawModule> = settings(&path)?.unwrap_or_default();
    let known = ["Transformer", "Pooling", "Normalize"];
    for module in &modules {
        let kind = module.kind.rsplit('.').next().unwrap_or_default();
        if !known.contains(&kind) {
            return Err(ModelError::unsupported(&path, format!("its step \"{kind}\" is not supported")));
        }
    }
    let path = dir.join(POOLING);
    match settings::<BTreeMap<String, serde_json::Value>>(&path)? {
        Some(raw) => Pooling::of(&raw).map_err(|what| ModelError::unsupported(&path, what)),
        None => Ok(Pooling::Mean),
    }
}

/// Reads a small JSON file; `None` if there is none.
pub(crate) fn settings<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ModelError> {
    let Some(bytes) = bounded(path, MAX_SETTINGS)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| ModelError::damaged(path, error.to_string()))
}

/// Reads a file that is no larger than `most` bytes; `None` if there is none.
pub(crate) fn bounded(path: &Path, most: u64) -> Result<Option<Vec<u8>>, ModelError> {
    let read = |error| ModelError::read(path, error);
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(read(error)),
        Ok(facts) if !facts.is_file() => Err(ModelError::damaged(path, "it is no regular file")),
        Ok(facts) if facts.len() > most => {
            Err(ModelError::damaged(path, format!("it is larger than {most} bytes")))
        }
        Ok(_) => std::fs::read(path).map(Some).map_err(read),
    }
}

/// Path of a file that must be there.
pub(crate) fn required(dir: &Path, file: &'static str) -> Result<PathBuf, ModelError> {
    let path = dir.join(file);
    if path.is_file() { Ok(path) } else { Err(ModelError::Missing { dir: dir.to_path_buf(), file }) }
}
