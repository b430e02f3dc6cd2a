//! A model in a directory on this machine, run in this process. It is loaded with the first text and given back after
//! some idle minutes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use openclaw_embedding::{BatchLimits, Cooldown, EmbedError, EmbedFuture, Embedder, EmbedderIdentity};
use openclaw_encoder::{Encoder, TextKind};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// Time after which an idle model is given back.
const IDLE: Duration = Duration::from_secs(300);

/// Texts of one call: it can be left only between two calls.
const TEXTS: usize = 8;

/// Model of a directory.
pub(super) struct LocalModel {
    dir: PathBuf,
    identity: EmbedderIdentity,
    cooldown: Cooldown,
    loaded: Arc<Mutex<LoadedModel>>,
}

#[derive(Default)]
struct LoadedModel {
    encoder: Option<Arc<Encoder>>,
    last_used: Option<Instant>,
    /// Gives the model back.
    release: Option<JoinHandle<()>>,
}

impl LocalModel {
    /// Knows a model, and loads nothing.
    ///
    /// # Errors
    /// The reason, for people, if the directory has no weights.
    pub(super) fn of(dir: &Path) -> Result<Self, String> {
        let weights = dir.join("model.safetensors");
        let file = std::fs::metadata(&weights).map_err(|error| {
            format!(
                "Local embeddings unavailable.\nReason: {}: {error}\nA model directory holds config.json, model.safetensors, and \
                 tokenizer.json or vocab.txt: name it in agents.defaults.memorySearch.local.modelPath.",
                weights.display()
            )
        })?;
        let changed = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let model = dir.display().to_string();
        // Other weights under the same name give other vectors.
        let version = format!("{model}#{}-{}", file.len(), changed.unwrap_or_default().as_nanos());
        let identity = EmbedderIdentity { model, ..EmbedderIdentity::plain("local", &version) };
        Ok(Self { dir: dir.to_owned(), identity, cooldown: Cooldown::default(), loaded: Arc::default() })
    }

    async fn encoder(&self) -> Result<Arc<Encoder>, EmbedError> {
        let mut loaded = self.loaded.lock().await;
        loaded.last_used = Some(Instant::now());
        if let Some(encoder) = &loaded.encoder {
            return Ok(Arc::clone(encoder));
        }
        let dir = self.dir.clone();
        let opened = tokio::task::spawn_blocking(move || Encoder::open(&dir)).await;
        let encoder = match opened {
            Ok(Ok(encoder)) => Arc::new(encoder),
            Ok(Err(error)) => return Err(EmbedError::Unauthorized { message: error.to_string() }),
            Err(error) => return Err(EmbedError::Unavailable { message: error.to_string() }),
        };
        loaded.encoder = Some(Arc::clone(&encoder));
        let held = Arc::downgrade(&self.loaded);
        loaded.release = Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE).await;
                let Some(held) = held.upgrade() else { return };
                let mut loaded = held.lock().await;
                if loaded.last_used.is_none_or(|used| used.elapsed() >= IDLE) {
                    loaded.encoder = None;
                    return;
                }
            }
        }));
        Ok(encoder)
    }

    async fn encode(&self, kind: TextKind, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let encoder = self.encoder().await?;
        let stop = Arc::new(AtomicBool::new(false));
        let guard = StopOnDrop(Arc::clone(&stop));
        let encoded = tokio::task::spawn_blocking(move || {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            encoder.encode(kind, &texts, &stop)
        });
        let encoded = encoded.await;
        drop(guard);
        match encoded {
            Ok(Ok(vectors)) => Ok(vectors),
            Ok(Err(error)) => Err(EmbedError::Invalid { message: error.to_string() }),
            Err(error) => Err(EmbedError::Unavailable { message: error.to_string() }),
        }
    }
}

impl Drop for LocalModel {
    fn drop(&mut self) {
        if let Ok(mut loaded) = self.loaded.try_lock()
            && let Some(release) = loaded.release.take()
        {
            release.abort();
        }
    }
}

/// Ends the work of a caller that went away.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Embedder for LocalModel {
    fn identity(&self) -> &EmbedderIdentity {
        &self.identity
    }

    fn limits(&self) -> BatchLimits {
        BatchLimits { texts: TEXTS, units: usize::MAX, requests: 1, ..BatchLimits::UNKNOWN }
    }

    fn cooldown(&self) -> &Cooldown {
        &self.cooldown
    }

    fn embed_query<'a>(&'a self, text: &'a str) -> EmbedFuture<'a, Vec<f32>> {
        Box::pin(async move {
            let vectors = self.encode(TextKind::Query, vec![text.to_owned()]).await?;
            Ok(vectors.into_iter().next().unwrap_or_default())
        })
    }

    fn embed_batch<'a>(&'a self, texts: &'a [String]) -> EmbedFuture<'a, Vec<Vec<f32>>> {
        Box::pin(self.encode(TextKind::Passage, texts.to_vec()))
    }
}
