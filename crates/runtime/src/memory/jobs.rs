//! A server whose batch jobs embed many texts some time later (spec `memory.md` §13), behind the port of the index.
//!
//! Where more than [`FEWEST`] texts are missing they become one job. Its id is stored beside the index before anything
//! else happens, so that the next process goes on with it. While it is under way the index is told so, and asks again
//! later. A job that fails is made up for by ordinary requests.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::clock::now_ms;
use openclaw_config::private_file::{Durability, replace};
use openclaw_config::settings::ResolvedBatch;
use openclaw_embedding::{BatchLimits, Cooldown, EmbedError, EmbedFuture, Embedder, EmbedderIdentity};
use openclaw_memory::chunk::sha256_hex;
use openclaw_models::embeddings::{
    BatchError, BatchHealth, BatchJobs, BatchRequest, BatchState, EmbeddingClient,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::embedder::Remote;

/// Largest number of texts in one job: each look at it takes the texts that are missing in hand.
const MOST: usize = 10_000;

/// Texts up to this number are embedded by ordinary requests.
const FEWEST: usize = 2_000;

/// Answers about a job in a row that say nothing of it, after which it is given up.
const MOST_UNKNOWN: u32 = 10;

/// Shortest time between two questions about a job.
const LEAST_POLL: Duration = Duration::from_millis(50);

/// A server with jobs.
pub(super) struct JobEmbedder {
    direct: Remote,
    jobs: BatchJobs,
    settings: ResolvedBatch,
    agent: String,
    /// Record of the job that is under way.
    record: PathBuf,
    state: Mutex<JobsState>,
}

#[derive(Default)]
struct JobsState {
    health: BatchHealth,
    unknown: u32,
}

/// Job that is under way, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredJob {
    provider_key: String,
    model: String,
    job: String,
    /// Time at which it was begun, in milliseconds since 1970.
    since: i64,
}

impl JobEmbedder {
    /// Uses the jobs of a client, unless they are off or its provider has none. `store` is the index file.
    pub(super) fn of(
        client: &EmbeddingClient,
        settings: ResolvedBatch,
        agent: &str,
        store: &Path,
    ) -> Option<Self> {
        let jobs = BatchJobs::of(client).filter(|_| settings.enabled)?;
        let mut record = store.as_os_str().to_owned();
        record.push(".batch.json");
        Some(Self {
            direct: Remote::client(client.clone()),
            jobs,
            settings,
            agent: agent.to_owned(),
            record: record.into(),
            state: Mutex::default(),
        })
    }

    /// The settings that it was made with.
    pub(super) fn settings(&self) -> ResolvedBatch {
        self.settings
    }

    /// Returns the record of the jobs so far.
    pub(super) fn health(&self) -> BatchHealth {
        self.state.lock().health.clone()
    }

    /// Returns vectors of a job by the hashes of their texts. Empty if the texts are too few for one, or jobs have failed.
    ///
    /// # Errors
    /// [`EmbedError::UnderWay`] while the job is.
    async fn of_job(&self, texts: &[String]) -> Result<HashMap<String, Vec<f32>>, EmbedError> {
        if !self.state.lock().health.is_enabled() {
            return Ok(HashMap::new());
        }
        let job = match self.stored().await {
            Some(job) => job,
            None if texts.len() <= FEWEST => return Ok(HashMap::new()),
            None => match self.begin(texts).await {
                Ok(job) => job,
                Err(error) => return Ok(self.failed(&error)),
            },
        };
        match self.look(&job).await {
            Ok(vectors) => {
                self.state.lock().health.succeeded();
                self.forget().await;
                Ok(vectors)
            }
            Err(JobFault::UnderWay) => Err(self.under_way(&job)),
            Err(JobFault::Failed(error)) => {
                self.forget().await;
                Ok(self.failed(&error))
            }
        }
    }

    async fn begin(&self, texts: &[String]) -> Result<StoredJob, BatchError> {
        let texts = texts.iter().take(MOST);
        let requests: Vec<BatchRequest> =
            texts.map(|text| BatchRequest { id: sha256_hex(text.as_bytes()), text: text.clone() }).collect();
        let job = self.jobs.submit(&self.agent, &requests).await?;
        let EmbedderIdentity { provider_key, model, .. } = self.direct.identity().clone();
        let stored = StoredJob { provider_key, model, job, since: now_ms() };
        let (record, bytes) = (self.record.clone(), serde_json::to_vec(&stored).unwrap_or_default());
        let written = tokio::task::spawn_blocking(move || replace(&record, &bytes, Durability::Synced)).await;
        if let Ok(Err(error)) = written {
            // The next process would begin another one.
            tracing::warn!(%error, job = stored.job, "a batch of embeddings can't be recorded");
        }
        self.state.lock().unknown = 0;
        Ok(stored)
    }

    /// Asks once how the job is.
    async fn look(&self, job: &StoredJob) -> Result<HashMap<String, Vec<f32>>, JobFault> {
        let provider = &self.direct.identity().provider;
        let dead = |message: String| JobFault::Failed(BatchError::Dead { message });
        match self.jobs.state(&job.job).await {
            Ok(Some(BatchState::Done { output })) => {
                let found = self.jobs.vectors(&output).await.map_err(|error| JobFault::of(error.into()))?;
                return Ok(found.vectors.into_iter().collect());
            }
            Ok(Some(BatchState::Dead { reason, errors })) => {
                return Err(JobFault::Failed(self.jobs.dead(&job.job, &reason, errors).await));
            }
            Ok(Some(BatchState::Running)) => self.state.lock().unknown = 0,
            Err(error) if !error.is_temporary() => return Err(JobFault::Failed(error.into())),
            Ok(None) | Err(_) => {
                let unknown = &mut self.state.lock().unknown;
                *unknown += 1;
                if *unknown >= MOST_UNKNOWN {
                    return Err(dead(format!("{provider} batch {} is in an unknown state", job.job)));
                }
            }
        }
        let age =
            Duration::from_millis(u64::try_from(now_ms().saturating_sub(job.since)).unwrap_or_default());
        if age > self.settings.timeout {
            let limit = self.settings.timeout.as_millis();
            let message = format!("{provider} batch {} timed out after {limit}ms", job.job);
            return Err(JobFault::Failed(BatchError::TimedOut { message }));
        }
        Err(JobFault::UnderWay)
    }

    fn under_way(&self, job: &StoredJob) -> EmbedError {
        let (provider, job) = (&self.direct.identity().provider, &job.job);
        let message = match self.settings.wait {
            true => format!("{provider} batch {job} is under way"),
            false => {
                format!("{provider} batch {job} submitted; enable remote.batch.wait to await completion")
            }
        };
        EmbedError::UnderWay {
            message,
            again: self.settings.poll_interval.max(LEAST_POLL),
            waits: self.settings.wait,
        }
    }

    /// Counts a job that failed.
    fn failed(&self, error: &BatchError) -> HashMap<String, Vec<f32>> {
        let health = &mut self.state.lock().health;
        health.failed(error);
        let (failures, most) = health.failures();
        let kept = if health.is_enabled() { "keeping batch enabled" } else { "disabling batch" };
        tracing::warn!(
            "memory embeddings: {} batch failed ({failures}/{most}); {kept}; falling back to non-batch embeddings: {error}",
            self.direct.identity().provider
        );
        HashMap::new()
    }

    /// The job that an earlier call, or an earlier process, has begun with this model.
    async fn stored(&self) -> Option<StoredJob> {
        let record = self.record.clone();
        let read = tokio::task::spawn_blocking(move || std::fs::read(record)).await.ok()?;
        let job: Option<StoredJob> = serde_json::from_slice(&read.ok()?).ok();
        let identity = self.direct.identity();
        let is_own =
            |job: &StoredJob| job.model == identity.model && job.provider_key == identity.provider_key;
        let job = job.filter(is_own);
        if job.is_none() {
            self.forget().await;
        }
        job
    }

    async fn forget(&self) {
        let record = self.record.clone();
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_file(record)).await;
        if let Ok(Err(error)) = removed
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, "the record of a batch of embeddings can't be removed");
        }
    }
}

/// Reason why a job has no vectors.
enum JobFault {
    UnderWay,
    Failed(BatchError),
}

impl JobFault {
    /// Trouble that may pass is waited out.
    fn of(error: BatchError) -> Self {
        match &error {
            BatchError::Request(request) if request.is_temporary() => Self::UnderWay,
            _ => Self::Failed(error),
        }
    }
}

impl Embedder for JobEmbedder {
    fn identity(&self) -> &EmbedderIdentity {
        self.direct.identity()
    }

    fn limits(&self) -> BatchLimits {
        let limits = self.direct.limits();
        match self.state.lock().health.is_enabled() {
            true => BatchLimits { texts: MOST, units: usize::MAX, requests: 1, ..limits },
            false => limits,
        }
    }

    fn cooldown(&self) -> &Cooldown {
        self.direct.cooldown()
    }

    fn embed_query<'a>(&'a self, text: &'a str) -> EmbedFuture<'a, Vec<f32>> {
        self.direct.embed_query(text)
    }

    fn embed_batch<'a>(&'a self, texts: &'a [String]) -> EmbedFuture<'a, Vec<Vec<f32>>> {
        Box::pin(async move {
            let mut known = self.of_job(texts).await?;
            let found: Vec<Option<Vec<f32>>> =
                texts.iter().map(|text| known.remove(&sha256_hex(text.as_bytes()))).collect();
            let missing = texts.iter().zip(&found).filter(|(_, found)| found.is_none());
            let missing: Vec<String> = missing.map(|(text, _)| text.clone()).collect();
            let mut rest = self.direct.embed_batch(&missing).await?.into_iter();
            Ok(found.into_iter().filter_map(|found| found.or_else(|| rest.next())).collect())
        })
    }
}
