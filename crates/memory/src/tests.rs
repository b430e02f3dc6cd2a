//! Helpers of tests in several modules, and tests of memory as a whole.

mod bad_input;
mod crowd;
mod embedding;
mod index_file;
pub(crate) mod kills;
mod known_bad;
mod recorded;
mod syncing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

use crate::settings::SyncSettings;
use crate::{
    BatchLimits, Cooldown, EmbedError, EmbedFuture, Embedder, EmbedderIdentity, Memory, MemorySettings,
    SearchAnswer, SearchRequest, SyncReport, SyncRequest, SyncUntil,
};

/// Reads a recorded file.
pub(crate) fn golden(name: &str) -> Value {
    let path = format!("{}/../../tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Fails unless both numbers are equal but for `tolerance`.
#[track_caller]
pub(crate) fn near(made: f64, expected: f64, tolerance: f64) {
    assert!((made - expected).abs() <= tolerance, "{made} is not {expected}");
}

/// The embedder of the recorded corpus: counts of hashed words.
struct FakeEmbedder {
    identity: EmbedderIdentity,
    limits: BatchLimits,
    cooldown: Cooldown,
    /// Requests of documents.
    requests: AtomicUsize,
    /// Texts of documents.
    texts: AtomicUsize,
    behaviour: Mutex<Behaviour>,
    /// Wakes when documents arrive.
    arrived: tokio::sync::Notify,
}

/// Behaviour of a [`FakeEmbedder`].
#[derive(Debug, Clone, PartialEq)]
enum Behaviour {
    /// By the recorded rule.
    Recorded,
    /// With an error.
    Fails(EmbedError),
    /// With vectors that have nothing to do with the texts.
    Noise,
    /// With one vector less than there are texts.
    OneLess,
    /// With values that are no numbers.
    NotNumbers,
    /// With vectors of this length.
    Dimensions(usize),
    /// With vectors of this length the next time, then by the recorded rule.
    OnceOfDimensions(usize),
    /// With vectors without a direction.
    Zeros,
    /// Refuses requests with more texts than this.
    AtMost(usize),
    /// Never.
    Silent,
}

impl FakeEmbedder {
    fn new() -> Arc<Self> {
        Self::named("fake-embed-64")
    }

    fn named(model: &str) -> Arc<Self> {
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let url = "http://127.0.0.1:28411/v1/";
        let identity = EmbedderIdentity::remote("openai", model, &[url.to_owned()], &headers);
        let limits =
            BatchLimits { query_timeout: std::time::Duration::from_millis(300), ..BatchLimits::UNKNOWN };
        let (requests, texts) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self {
            identity,
            limits,
            cooldown: Cooldown::default(),
            requests,
            texts,
            behaviour: Mutex::new(Behaviour::Recorded),
            arrived: tokio::sync::Notify::new(),
        })
    }

    fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock() = behaviour;
        self.cooldown.succeeded();
    }

    /// Waits for the next request of documents, also one that came before nobody waited.
    async fn asked(&self) {
        let arrived = tokio::time::timeout(std::time::Duration::from_secs(60), self.arrived.notified());
        arrived.await.expect("documents arrive");
    }

    fn counts(&self) -> (usize, usize) {
        (self.requests.load(Ordering::Relaxed), self.texts.load(Ordering::Relaxed))
    }

    async fn answer(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let behaviour = self.behaviour.lock().clone();
        let mut vectors: Vec<Vec<f32>> = texts.iter().map(|text| recorded_vector(text)).collect();
        match behaviour {
            Behaviour::Recorded => {}
            Behaviour::Fails(error) => return Err(error),
            Behaviour::Noise => {
                vectors = texts
                    .iter()
                    .map(|text| recorded_vector(&crate::chunk::sha256_hex(text.as_bytes())))
                    .collect()
            }
            Behaviour::OneLess => drop(vectors.pop()),
            Behaviour::NotNumbers => vectors.iter_mut().flatten().for_each(|value| *value = f32::NAN),
            Behaviour::Zeros => vectors.iter_mut().flatten().for_each(|value| *value = 0.0),
            Behaviour::OnceOfDimensions(dimensions) => {
                *self.behaviour.lock() = Behaviour::Recorded;
                vectors.iter_mut().for_each(|vector| vector.resize(dimensions, 1.0));
            }
            Behaviour::Dimensions(dimensions) => {
                vectors.iter_mut().for_each(|vector| vector.resize(dimensions, 1.0))
            }
            Behaviour::AtMost(most) if texts.len() > most => {
                return Err(EmbedError::TooLarge { message: "too many".into() });
            }
            Behaviour::AtMost(_) => {}
            Behaviour::Silent => std::future::pending().await,
        }
        Ok(vectors)
    }
}

/// The rule in `memory-corpus.json`.
fn recorded_vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; 64];
    let mut add = |token: &str| {
        let hash = token
            .bytes()
            .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
        vector[(hash % 64) as usize] += if hash & 1 << 16 != 0 { 1.0 } else { -1.0 };
    };
    let lower = text.to_lowercase();
    for part in lower.split(|letter: char| letter.is_ascii() && !letter.is_ascii_alphanumeric()) {
        let mut word = String::new();
        for letter in part.chars() {
            if letter.is_ascii() {
                word.push(letter);
                continue;
            }
            if !word.is_empty() {
                add(&std::mem::take(&mut word));
            }
            add(letter.encode_utf8(&mut [0; 4]));
        }
        if !word.is_empty() {
            add(&word);
        }
    }
    vector
}

impl Embedder for FakeEmbedder {
    fn identity(&self) -> &EmbedderIdentity {
        &self.identity
    }

    fn limits(&self) -> BatchLimits {
        self.limits
    }

    fn cooldown(&self) -> &Cooldown {
        &self.cooldown
    }

    fn embed_query<'a>(&'a self, text: &'a str) -> EmbedFuture<'a, Vec<f32>> {
        Box::pin(async move { Ok(self.answer(&[text.to_owned()]).await?.pop().unwrap_or_default()) })
    }

    fn embed_batch<'a>(&'a self, texts: &'a [String]) -> EmbedFuture<'a, Vec<Vec<f32>>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.arrived.notify_one();
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        Box::pin(self.answer(texts))
    }
}

/// A workspace in a directory of its own.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("ws/memory")).unwrap();
        Self { dir }
    }

    /// With the recorded corpus.
    fn corpus() -> Self {
        let place = Self::empty();
        for (path, text) in golden("memory-corpus.json")["files"].as_object().unwrap() {
            place.write(path, text.as_str().unwrap());
        }
        place
    }

    fn workspace(&self) -> PathBuf {
        self.dir.path().join("ws")
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("state/memory/main.sqlite")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.workspace().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Settings for the corpus, without a watch.
    fn settings(&self) -> MemorySettings {
        MemorySettings {
            extra_paths: vec!["notes".into()],
            sync: SyncSettings { watch: false, ..SyncSettings::default() },
            ..MemorySettings::new(&self.workspace(), &self.store())
        }
    }

    fn open(&self, embedder: Option<Arc<FakeEmbedder>>) -> Memory {
        open_with(self.settings(), embedder)
    }
}

fn open_with(settings: MemorySettings, embedder: Option<Arc<FakeEmbedder>>) -> Memory {
    Memory::open(settings, embedder.map(|embedder| embedder as Arc<dyn Embedder>), None)
}

async fn sync(memory: &Memory) -> SyncReport {
    memory.sync(SyncRequest { force: false, until: SyncUntil::Embedded }).await.unwrap()
}

async fn force(memory: &Memory) -> SyncReport {
    memory.sync(SyncRequest { force: true, until: SyncUntil::Embedded }).await.unwrap()
}

async fn find(memory: &Memory, query: &str) -> SearchAnswer {
    memory.search(&SearchRequest { query: query.to_owned(), ..SearchRequest::default() }).await.unwrap()
}

/// Paths of what is found.
async fn paths(memory: &Memory, query: &str) -> Vec<String> {
    find(memory, query).await.hits.into_iter().map(|hit| hit.path).collect()
}

fn open_file(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

fn count(path: &Path, table: &str) -> i64 {
    open_file(path).query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}
