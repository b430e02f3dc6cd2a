//! A model that remembers its vectors in a file.

use std::collections::HashMap;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use openclaw_encoder::{Encoder, TextKind};
use openclaw_memory::chunk::sha256_hex;
use openclaw_memory::{BatchLimits, Cooldown, EmbedError, EmbedFuture, Embedder, EmbedderIdentity};

/// Hexadecimal digits that name a text.
const KEY: usize = 64;

pub(crate) struct CachedEmbedder {
    encoder: Encoder,
    identity: EmbedderIdentity,
    cooldown: Cooldown,
    known: Mutex<KnownVectors>,
}

struct KnownVectors {
    file: File,
    vectors: HashMap<String, Vec<f32>>,
}

impl CachedEmbedder {
    pub(crate) fn open(model: &Path, cache: &Path) -> Result<Self, Box<dyn Error>> {
        let encoder = Encoder::open(model)?;
        let fingerprint = encoder.fingerprint().to_owned();
        let path = cache.join(format!("vectors-{}", fingerprint.get(..16).unwrap_or_default()));
        let known = KnownVectors::open(&path, encoder.dimensions())?;
        let identity = EmbedderIdentity {
            provider: "local".into(),
            model: model.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            provider_key: fingerprint,
            equivalent_keys: Vec::new(),
        };
        Ok(Self { encoder, identity, cooldown: Cooldown::default(), known: Mutex::new(known) })
    }

    fn vectors(&self, kind: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let invalid = |error: String| EmbedError::Invalid { message: error };
        let key = |text: &str| sha256_hex(format!("{kind:?} {text}").as_bytes());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: Vec<&str> =
            texts.iter().filter(|text| !known.vectors.contains_key(&key(text))).copied().collect();
        for some in missing.chunks(16) {
            let made = self
                .encoder
                .encode(kind, some, &AtomicBool::new(false))
                .map_err(|error| invalid(error.to_string()))?;
            for (text, vector) in some.iter().zip(made) {
                known.add(key(text), vector).map_err(|error| invalid(error.to_string()))?;
            }
        }
        Ok(texts.iter().filter_map(|text| known.vectors.get(&key(text)).cloned()).collect())
    }
}

impl KnownVectors {
    fn open(path: &Path, dimensions: usize) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut vectors = HashMap::new();
        let rows = bytes.chunks_exact(KEY + dimensions * 4);
        // A row that was cut by a kill ends the file.
        file.set_len((bytes.len() - rows.remainder().len()) as u64)?;
        for row in rows {
            let (key, numbers) = row.split_at(KEY.min(row.len()));
            let (numbers, _) = numbers.as_chunks::<4>();
            let vector = numbers.iter().map(|four| f32::from_le_bytes(*four)).collect();
            vectors.insert(String::from_utf8_lossy(key).into_owned(), vector);
        }
        Ok(Self { file, vectors })
    }

    fn add(&mut self, key: String, vector: Vec<f32>) -> io::Result<()> {
        let mut row = key.clone().into_bytes();
        row.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        self.file.write_all(&row)?;
        self.vectors.insert(key, vector);
        Ok(())
    }
}

impl Embedder for CachedEmbedder {
    fn identity(&self) -> &EmbedderIdentity {
        &self.identity
    }

    fn limits(&self) -> BatchLimits {
        BatchLimits {
            texts: 64,
            units: 1_000_000,
            requests: 1,
            batch_timeout: Duration::from_secs(3_600),
            query_timeout: Duration::from_secs(3_600),
        }
    }

    fn cooldown(&self) -> &Cooldown {
        &self.cooldown
    }

    fn embed_query<'a>(&'a self, text: &'a str) -> EmbedFuture<'a, Vec<f32>> {
        Box::pin(async move { Ok(self.vectors(TextKind::Query, &[text])?.remove(0)) })
    }

    fn embed_batch<'a>(&'a self, texts: &'a [String]) -> EmbedFuture<'a, Vec<Vec<f32>>> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Box::pin(async move { self.vectors(TextKind::Passage, &texts) })
    }
}
