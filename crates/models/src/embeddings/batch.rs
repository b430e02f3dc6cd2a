//! Jobs that embed many texts at once, some time later (spec `memory.md` §13).
//!
//! [`BatchJobs::submit`] returns the id of a job. Who stores it can wait for the job in a later
//! process. Nothing is stored here.

mod health;
mod wire;

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_embedding::EmbedError;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::client::{EmbeddingClient, refusal};
use super::endpoint::Endpoint;
use super::error::failed_request;
use super::provider::EmbeddingProvider;
use crate::net::{Headers, Incoming, JSON};
use crate::stream::{FailureKind, ModelFailure};
pub use health::BatchHealth;

/// Largest number of texts in one job.
pub const MAX_BATCH_TEXTS: usize = 50_000;
/// Attempts to upload the texts, or to begin a job.
const ATTEMPTS: u32 = 3;
/// First wait between them; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(300);
/// Longest of these waits.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Answers about a job in a row that say nothing of it, after which it is given up.
const MOST_UNKNOWN: u32 = 10;
/// Largest answer that is not a file of vectors.
const MAX_ANSWER: usize = 1024 * 1024;
/// Longest line of a file of vectors.
const MAX_LINE: usize = 4 * 1024 * 1024;

/// One text of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRequest {
    /// Id under which its vector comes back, as of [`batch_request_id`].
    pub id: String,
    /// The text.
    pub text: String,
}

/// Returns the id of a chunk's request, as OpenClaw 2026.2.9 makes it.
pub fn batch_request_id(
    source: &str,
    path: &str,
    (start_line, end_line): (u32, u32),
    chunk_hash: &str,
    index: usize,
) -> String {
    let text = format!("{source}:{path}:{start_line}:{end_line}:{chunk_hash}:{index}");
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// State of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchState {
    /// The job is under way.
    Running,
    /// The job is done.
    Done {
        /// File with the answers.
        output: String,
    },
    /// The job will bring nothing.
    Dead {
        /// The provider's words about it.
        reason: String,
        /// File with the errors.
        errors: Option<String>,
    },
}

/// Results of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchVectors {
    /// Vectors by the ids of their requests, as the provider sent them.
    pub vectors: BTreeMap<String, Vec<f32>>,
    /// Requests that failed, with what is said of them.
    pub failed: BTreeMap<String, String>,
}

/// Reason why a job brought nothing. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// A request about it failed.
    #[error(transparent)]
    Request(#[from] EmbedError),
    /// The job failed, expired or was cancelled.
    #[error("{message}")]
    Dead {
        /// The provider's words about it.
        message: String,
    },
    /// The job was not done in time; it may still be later.
    #[error("{message}")]
    TimedOut {
        /// The job, and the time.
        message: String,
    },
    /// The provider has no jobs for this model.
    #[error("{message}")]
    Unsupported {
        /// The provider's words.
        message: String,
    },
}

/// Begins and watches jobs of one client.
#[derive(Debug, Clone)]
pub struct BatchJobs {
    client: EmbeddingClient,
}

impl BatchJobs {
    /// The jobs of a client; `None` if its provider has none.
    pub fn of(client: &EmbeddingClient) -> Option<Self> {
        (client.endpoint().provider != EmbeddingProvider::Local).then(|| Self { client: client.clone() })
    }

    /// Uploads texts and begins a job. Returns its id, which is to be stored before anything else
    /// happens. `agent` is the id of the agent whose texts they are.
    ///
    /// # Errors
    /// When the provider refuses it, after three attempts at what may pass.
    pub async fn submit(&self, agent: &str, requests: &[BatchRequest]) -> Result<String, BatchError> {
        if requests.len() > MAX_BATCH_TEXTS {
            let message = format!("{} texts are too many for one job", requests.len());
            return Err(EmbedError::TooLarge { message }.into());
        }
        let (provider, model) = (self.endpoint().provider, self.client.model());
        let upload = wire::upload(provider, model, requests);
        let url = wire::upload_url(provider, &self.endpoint().root);
        let answer = self.post(&url, &upload.content_type, &upload.body).await?;
        let file = wire::uploaded(&answer).ok_or_else(|| self.error(&senseless("an upload")))?;
        let (path, body) = wire::create(provider, model, file, agent);
        let url = format!("{}{path}", self.endpoint().root);
        let answer = self.post(&url, JSON, &body.to_string()).await?;
        let job = wire::created(provider, &answer).ok_or_else(|| self.error(&senseless("a new job")))?;
        tracing::info!(
            provider = provider.id(),
            job,
            texts = requests.len(),
            "a batch of embeddings is begun"
        );
        Ok(job.to_owned())
    }

    /// Asks how a job is; `None` if the answer says nothing of it.
    ///
    /// # Errors
    /// When the question fails.
    pub async fn state(&self, job: &str) -> Result<Option<BatchState>, EmbedError> {
        let asked = async {
            let incoming = self.get(&wire::status_path(self.endpoint().provider, job)).await?;
            let body = incoming.whole(MAX_ANSWER).await?;
            Ok(serde_json::from_slice(&body).ok().as_ref().and_then(wire::state))
        };
        asked.await.map_err(|failure: ModelFailure| self.error(&failure))
    }

    /// Waits for a job, asking `every` so often, `limit` at most, and returns its vectors. Trouble
    /// that may pass is waited out.
    ///
    /// # Errors
    /// When the job is dead or not done in time.
    pub async fn wait(
        &self,
        job: &str,
        every: Duration,
        limit: Duration,
    ) -> Result<BatchVectors, BatchError> {
        let since = Instant::now();
        let mut unknown = 0;
        loop {
            match self.state(job).await {
                Ok(Some(BatchState::Done { output })) => return Ok(self.vectors(&output).await?),
                Ok(Some(BatchState::Dead { reason, errors })) => {
                    return Err(self.dead(job, &reason, errors).await);
                }
                Ok(Some(BatchState::Running)) => unknown = 0,
                Ok(None) => unknown += 1,
                Err(error) if error.is_temporary() => {
                    tracing::warn!(%error, job, "a batch of embeddings can't be asked for");
                    unknown += 1;
                }
                Err(error) => return Err(error.into()),
            }
            let id = self.endpoint().provider.id();
            if unknown >= MOST_UNKNOWN {
                return Err(BatchError::Dead { message: format!("{id} batch {job} is in an unknown state") });
            }
            if since.elapsed().saturating_add(every) > limit {
                let message = format!("{id} batch {job} timed out after {}ms", limit.as_millis());
                return Err(BatchError::TimedOut { message });
            }
            tokio::time::sleep(every).await;
        }
    }

    /// Reads the file of a job that is done, line by line.
    ///
    /// # Errors
    /// When it can't be read.
    pub async fn vectors(&self, output: &str) -> Result<BatchVectors, EmbedError> {
        self.read(output).await.map_err(|failure| self.error(&failure))
    }

    async fn read(&self, output: &str) -> Result<BatchVectors, ModelFailure> {
        let mut incoming = self.get(&wire::content_path(self.endpoint().provider, output)).await?;
        let (mut all, mut rest) = (BatchVectors::default(), Vec::new());
        let mut take = |line: &[u8]| match wire::answer(&String::from_utf8_lossy(line)) {
            Some((id, Ok(vector))) => drop(all.vectors.insert(id, vector)),
            Some((id, Err(what))) => drop(all.failed.insert(id, self.endpoint().redact(&what))),
            None => {}
        };
        while let Some(chunk) = incoming.chunk().await? {
            rest.extend_from_slice(&chunk);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                take(&line);
            }
            if rest.len() > MAX_LINE {
                return Err(senseless("a file of vectors"));
            }
        }
        take(&rest);
        Ok(all)
    }

    /// Returns the error of a job that is dead: `openai batch <id> failed: …`, with the first error of its file.
    pub async fn dead(&self, job: &str, reason: &str, errors: Option<String>) -> BatchError {
        let id = self.endpoint().provider.id();
        let mut message = format!("{id} batch {job} {reason}");
        if let Some(errors) = errors
            && let Ok(BatchVectors { failed, .. }) = self.vectors(&errors).await
            && let Some(first) = failed.into_values().next()
        {
            message = format!("{message}: {first}");
        }
        BatchError::Dead { message }
    }

    /// Posts a body, three times at most.
    async fn post(&self, url: &str, content_type: &str, body: &str) -> Result<Value, BatchError> {
        let mut made = 0;
        loop {
            made += 1;
            let failure = match self.post_once(url, content_type, body).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let error = self.error(&failure);
            if failure.status == Some(404) {
                return Err(BatchError::Unsupported { message: error.to_string() });
            }
            if made >= ATTEMPTS || !error.is_temporary() {
                return Err(error.into());
            }
            let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(made - 1)).min(LONGEST_WAIT);
            tokio::time::sleep(wait.mul_f64(rand::random_range(0.8..1.2))).await;
        }
    }

    async fn post_once(&self, url: &str, content_type: &str, body: &str) -> Result<Value, ModelFailure> {
        let mut headers = Headers::accepting(JSON);
        headers.set("content-type", content_type)?;
        let headers = self.endpoint().authorized(headers)?;
        let incoming = self.client.http().post_json(url, headers, body.to_owned()).await?;
        let incoming = self.accepted(incoming).await?;
        let body = incoming.whole(MAX_ANSWER).await?;
        serde_json::from_slice(&body).map_err(|_| senseless("a request"))
    }

    async fn get(&self, path: &str) -> Result<Incoming, ModelFailure> {
        let url = format!("{}{path}", self.endpoint().root);
        let incoming = self.client.http().get(&url, self.endpoint().headers()?).await?;
        self.accepted(incoming).await
    }

    async fn accepted(&self, incoming: Incoming) -> Result<Incoming, ModelFailure> {
        if (200..300).contains(&incoming.status) {
            return Ok(incoming);
        }
        Err(refusal(self.endpoint(), incoming).await)
    }

    fn error(&self, failure: &ModelFailure) -> EmbedError {
        let failure = ModelFailure { message: self.endpoint().redact(&failure.message), ..failure.clone() };
        failed_request(self.endpoint().provider.id(), &failure)
    }

    fn endpoint(&self) -> &Endpoint {
        self.client.endpoint()
    }
}

fn senseless(what: &str) -> ModelFailure {
    ModelFailure::new(FailureKind::Other, format!("the server's answer to {what} makes no sense"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `custom_id_formula` of the golden file `memory-http.json`.
    #[test]
    fn ids_of_requests_are_those_of_the_reference() {
        let hash = "0029d7d297044e7f27c38fb49594b91866d0f5d3c9f5ab698d1e334ee24a6670";
        assert_eq!(
            batch_request_id("memory", "memory/2026-01-28.md", (1, 6), hash, 0),
            "3428b430f36c127699c51ef6e45569d85c3228aa4401c6a7ba25cc3e5d5c1510"
        );
    }
}
