//! A model that is ready to encode.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ndarray::Array2;
use sha2::{Digest as _, Sha256};

use crate::config::ModelConfig;
use crate::embeddings::Embeddings;
use crate::error::{EncodeError, ModelError};
use crate::layer::{Layer, Scratch, first_rows};
use crate::math::normalize;
use crate::prefixes::TextKind;
use crate::tokenizer::Tokenizer;
use crate::weights::Weights;

/// Threads that one call uses at most.
pub const MAX_THREADS: usize = 2;
/// Samples of the weights that tell one model from another.
const SAMPLES: u64 = 64;
/// Bytes of a sample.
const SAMPLE: usize = 4096;

/// A model of the BERT family, read from a directory.
#[derive(Debug)]
pub struct Encoder {
    config: ModelConfig,
    tokenizer: Tokenizer,
    embeddings: Embeddings,
    layers: Vec<Layer>,
    fingerprint: String,
}

impl Encoder {
    /// Reads a model. The layers are held in memory, the rows of words stay on disk. Takes some
    /// tenths of a second: not for a thread that serves others.
    ///
    /// # Errors
    /// [`ModelError`] if the directory holds no model, or one that this encoder can't run.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let config = ModelConfig::read(dir)?;
        let (tokenizer, tokens) = Tokenizer::read(dir)?;
        let weights = Weights::open(dir)?;
        let fingerprint = fingerprint(&weights, &config, &tokens)
            .map_err(|error| ModelError::read(&dir.join("model.safetensors"), error))?;
        let layers = (0..config.layers).map(|at| Layer::read(&weights, &config, at));
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        let embeddings = Embeddings::read(weights, &config)?;
        Ok(Self { config, tokenizer, embeddings, layers, fingerprint })
    }

    /// Length of a vector.
    pub fn dimensions(&self) -> usize {
        self.config.hidden
    }

    /// Tokens of a text that are read, with those of a prefix and the two marks; the rest is left out.
    pub fn max_tokens(&self) -> usize {
        self.config.max_tokens
    }

    /// A hash that changes with the weights, the tokenizer and the prefixes: vectors of models with
    /// different fingerprints must not be compared.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the token ids of a text as the network gets them, with prefix and marks.
    pub fn tokens(&self, kind: TextKind, text: &str) -> Vec<u32> {
        self.tokenizer.tokens(&[self.config.prefixes.of_kind(kind), text], self.config.max_tokens)
    }

    /// Encodes texts, each by itself, on at most [`MAX_THREADS`] threads. Returns one vector of
    /// length 1 for each text, in order. `stop` is looked at before each text.
    ///
    /// # Errors
    /// [`EncodeError`] if the caller asked to stop, or if the model gives no usable vector.
    pub fn encode(
        &self,
        kind: TextKind,
        texts: &[&str],
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<f32>>, EncodeError> {
        let tokens: Vec<Vec<u32>> = texts.iter().map(|text| self.tokens(kind, text)).collect();
        let texts = tokens.len();
        let job = EncodeJob {
            encoder: self,
            longest: tokens.iter().map(Vec::len).max().unwrap_or(0),
            next: AtomicUsize::new(0),
            results: Mutex::new(Vec::with_capacity(texts)),
            tokens,
            stop,
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let helpers = threads.min(MAX_THREADS).min(texts).saturating_sub(1);
        std::thread::scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(|| job.work());
            }
            job.work();
        });
        job.finish()
    }

    fn vector(
        &self,
        tokens: &[u32],
        rows: &mut Array2<f32>,
        scratch: &mut Scratch,
    ) -> Result<Vec<f32>, String> {
        let mut rows = first_rows(rows, tokens.len());
        self.embeddings.rows(tokens, &mut rows)?;
        for layer in &self.layers {
            layer.apply(&mut rows, scratch);
        }
        let mut vector = self.config.pooling.pool(&rows.view());
        if normalize(&mut vector) { Ok(vector) } else { Err("it is zero or not finite".to_owned()) }
    }
}

/// Index of a text, and its vector or what is wrong with it.
type Encoded = (usize, Result<Vec<f32>, String>);

/// Texts that several threads encode.
struct EncodeJob<'a> {
    encoder: &'a Encoder,
    tokens: Vec<Vec<u32>>,
    longest: usize,
    next: AtomicUsize,
    results: Mutex<Vec<Encoded>>,
    stop: &'a AtomicBool,
}

impl EncodeJob<'_> {
    /// Encodes one text after another until none is left.
    fn work(&self) {
        let mut rows = Array2::zeros((self.longest, self.encoder.config.hidden));
        let mut scratch = Scratch::new(&self.encoder.config, self.longest);
        loop {
            let text = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(tokens) = self.tokens.get(text) else { return };
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let vector = self.encoder.vector(tokens, &mut rows, &mut scratch);
            let failed = vector.is_err();
            self.results.lock().unwrap_or_else(PoisonError::into_inner).push((text, vector));
            if failed {
                return;
            }
        }
    }

    fn finish(self) -> Result<Vec<Vec<f32>>, EncodeError> {
        let mut results = self.results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_unstable_by_key(|(text, _)| *text);
        let whole = results.len() == self.tokens.len();
        let vectors = results
            .into_iter()
            .map(|(text, vector)| vector.map_err(|what| EncodeError::Unusable { text, what }))
            .collect::<Result<Vec<_>, _>>()?;
        // Threads end early only if they are to stop, or after a failure.
        if whole { Ok(vectors) } else { Err(EncodeError::Cancelled) }
    }
}

/// Hashes what decides about vectors. Of the weights it takes samples: all of them are hundreds of
/// megabytes.
fn fingerprint(weights: &Weights, config: &ModelConfig, tokenizer: &[u8]) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    hash.update(format!("{config:?}"));
    hash.update(tokenizer);
    hash.update(&weights.header);
    hash.update(weights.length.to_le_bytes());
    let begin = weights.header.len() as u64 + 8;
    let span = weights.length.saturating_sub(begin);
    let mut sample = vec![0_u8; SAMPLE];
    for at in 0..SAMPLES {
        let from = begin + span / SAMPLES * at;
        let most = usize::try_from(weights.length.saturating_sub(from)).unwrap_or(usize::MAX).min(SAMPLE);
        let sample = sample.get_mut(..most).unwrap_or_default();
        weights.read(from, sample)?;
        hash.update(sample);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
