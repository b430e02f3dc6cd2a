//! A client of one endpoint, with its retries and its share of the cooldown.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use openclaw_embedding::{BatchLimits, EmbedError, EmbedderIdentity};
use tokio::time::Instant;

use super::answer::{WrongAnswer, vectors};
use super::attempts::{AttemptPlan, backoff};
use super::cooldown::{Closed, EmbeddingCooldown};
use super::endpoint::Endpoint;
use super::error::{failed_request, wrong_answer};
use super::limits::{ServerKind, known_dimensions, limits_of};
use super::provider::EmbeddingProvider;
use super::request::{TextUse, body, path};
use crate::answer::describe_page;
use crate::client::retry_after;
use crate::failure::classify_answer;
use crate::google;
use crate::net::{Http, Incoming};
use crate::stream::{FailureKind, ModelFailure};
use crate::wire::ErrorAnswer;
use openclaw_config::clock::now_ms;

/// Largest answer that is read: 512 vectors of 4,096 dimensions.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// Answers above this size are parsed on a thread that serves nobody else.
const PARSED_HERE: usize = 16 * 1024;

/// Embeds texts at one endpoint with one model and one key. Clones are the same client.
#[derive(Debug, Clone)]
pub struct EmbeddingClient {
    shared: Arc<ClientState>,
}

#[derive(Debug)]
struct ClientState {
    endpoint: Endpoint,
    model: String,
    http: Http,
    identity: EmbedderIdentity,
    limits: BatchLimits,
    cooldown: Arc<EmbeddingCooldown>,
    /// Number of dimensions of the first vector.
    dimensions: OnceLock<usize>,
    /// The owner's stored key was not sent, because the address is not the provider's.
    keeps_key: bool,
}

/// Reason why one request gave no vectors.
enum RequestFault {
    /// The server refused it or did not answer.
    Request(ModelFailure),
    Answer(WrongAnswer),
}

/// Parts of a client.
pub(super) struct ClientParts {
    pub(super) endpoint: Endpoint,
    pub(super) model: String,
    pub(super) identity: EmbedderIdentity,
    pub(super) http: Http,
    pub(super) cooldown: Arc<EmbeddingCooldown>,
    pub(super) keeps_key: bool,
}

impl EmbeddingClient {
    pub(super) fn new(parts: ClientParts) -> Self {
        let ClientParts { endpoint, model, identity, http, cooldown, keeps_key } = parts;
        let limits = limits_of(endpoint.provider, endpoint.kind);
        let dimensions = OnceLock::new();
        let shared = ClientState { endpoint, model, http, identity, limits, cooldown, dimensions, keeps_key };
        Self { shared: Arc::new(shared) }
    }

    /// Provider, model and endpoint of the vectors.
    pub fn identity(&self) -> &EmbedderIdentity {
        &self.shared.identity
    }

    /// Bounds of one request, and of its time.
    pub fn limits(&self) -> BatchLimits {
        self.shared.limits
    }

    /// Number of dimensions of the vectors, as far as it is known.
    pub fn dimensions(&self) -> Option<usize> {
        self.shared.dimensions.get().copied().or_else(|| {
            (self.shared.endpoint.kind == ServerKind::Own).then(|| known_dimensions(&self.shared.model))?
        })
    }

    /// Embeds a question. The vector is as the provider sent it, not normalised; it is empty for a
    /// blank text. Dropping the future ends the request.
    ///
    /// # Errors
    /// After at most 3 requests and 8 seconds of waits; at once if a cooldown is longer.
    pub async fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let mut vectors = self.call(TextUse::Query, &[text]).await?;
        Ok(vectors.pop().unwrap_or_default())
    }

    /// Embeds texts of documents, in as many requests as [`EmbeddingClient::limits`] wants, one
    /// after another. Returns one vector for each text, in order, as the provider sent them. All
    /// vectors of a client have the same number of dimensions.
    ///
    /// # Errors
    /// After at most 5 attempts of a request and a minute of waits. Vectors of earlier requests are
    /// lost: who wants to keep them hands over what fits into one.
    pub async fn embed_batch<T: AsRef<str> + Sync>(&self, texts: &[T]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut all = Vec::with_capacity(texts.len());
        for request in self.shared.limits.requests(texts) {
            all.extend(self.call(TextUse::Documents, request).await?);
        }
        Ok(all)
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.shared.endpoint
    }

    pub(super) fn model(&self) -> &str {
        &self.shared.model
    }

    pub(super) fn http(&self) -> &Http {
        &self.shared.http
    }

    async fn call<T: AsRef<str>>(&self, of: TextUse, texts: &[T]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let body = body(self.provider(), &self.shared.model, of, texts).to_string();
        let asked = texts.len();
        self.attempts(of, Bytes::from(body), asked).await
    }

    /// Makes a request until it is answered or there is no point in another one.
    async fn attempts(&self, of: TextUse, body: Bytes, asked: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
        let plan = AttemptPlan::of(of);
        let cooldown = &self.shared.cooldown;
        let (mut made, mut waited) = (0, Duration::ZERO);
        loop {
            waited += self.wait_for_cooldown(plan.patience.saturating_sub(waited)).await?;
            made += 1;
            let failure = match self.request(of, body.clone(), asked).await {
                Ok(vectors) => {
                    cooldown.open();
                    return Ok(vectors);
                }
                Err(RequestFault::Answer(wrong)) => {
                    return Err(wrong_answer(self.provider().id(), &wrong));
                }
                Err(RequestFault::Request(failure)) => failure,
            };
            let error = self.error(&failure);
            let random = rand::random::<f64>();
            match plan.wait(made, waited, &failure, random).filter(|_| error.is_temporary()) {
                Some(wait) => {
                    tracing::warn!(%error, "memory embeddings rate limited; retrying in {}ms", wait.as_millis());
                    cooldown.close_for(wait);
                }
                None => {
                    self.close_after(&error, made, random);
                    return Err(error);
                }
            }
        }
    }

    /// Waits until the endpoint may be asked, no longer than `patience`. Returns the time waited.
    async fn wait_for_cooldown(&self, patience: Duration) -> Result<Duration, EmbedError> {
        let since = Instant::now();
        loop {
            let left = match self.shared.cooldown.closed() {
                None => return Ok(since.elapsed()),
                Some(Closed::Refused(error)) => return Err(error),
                Some(Closed::For(left)) => left,
            };
            if since.elapsed().saturating_add(left) > patience {
                let message = format!(
                    "{} embeddings: not asked again for {}s",
                    self.provider().id(),
                    left.as_secs() + 1
                );
                return Err(EmbedError::RateLimited { message, retry_after: Some(left) });
            }
            tokio::time::sleep(left).await;
        }
    }

    /// Begins the cooldown that follows a call that failed.
    fn close_after(&self, error: &EmbedError, made: u32, random: f64) {
        let cooldown = &self.shared.cooldown;
        match error {
            EmbedError::Unauthorized { .. } => cooldown.refuse(error.clone()),
            EmbedError::RateLimited { retry_after, .. } => {
                cooldown.close_for(retry_after.unwrap_or_else(|| backoff(made, random)));
            }
            EmbedError::Unavailable { .. } => cooldown.close_for(backoff(1, random)),
            EmbedError::TooLarge { .. } | EmbedError::UnderWay { .. } | EmbedError::Invalid { .. } => {}
        }
    }

    async fn request(&self, of: TextUse, body: Bytes, asked: usize) -> Result<Vec<Vec<f32>>, RequestFault> {
        let (limit, name) = match of {
            TextUse::Query => (self.shared.limits.query_timeout, "query"),
            TextUse::Documents => (self.shared.limits.batch_timeout, "batch"),
        };
        let late = || {
            let message = format!("memory embeddings {name} timed out after {}s", limit.as_secs());
            RequestFault::Request(ModelFailure::new(FailureKind::Timeout, message))
        };
        tokio::time::timeout(limit, self.exchange(of, body, asked)).await.unwrap_or_else(|_| Err(late()))
    }

    async fn exchange(&self, of: TextUse, body: Bytes, asked: usize) -> Result<Vec<Vec<f32>>, RequestFault> {
        let ClientState { endpoint, model, http, .. } = &*self.shared;
        let failed = |error: crate::net::NetError| RequestFault::Request(error.into());
        let url = format!("{}{}", endpoint.root, path(endpoint.provider, model, of));
        tracing::debug!(provider = endpoint.provider.id(), %model, texts = asked, "embedding");
        let incoming =
            http.post_json(&url, endpoint.headers().map_err(failed)?, body).await.map_err(failed)?;
        if !(200..300).contains(&incoming.status) {
            return Err(RequestFault::Request(refusal(endpoint, incoming).await));
        }
        let answer = incoming.whole(MAX_ANSWER).await.map_err(failed)?;
        let provider = endpoint.provider;
        let vectors = if answer.len() <= PARSED_HERE {
            vectors(provider, of, &answer, asked)
        } else {
            let parsed = tokio::task::spawn_blocking(move || vectors(provider, of, &answer, asked)).await;
            parsed
                .unwrap_or_else(|_| Err(WrongAnswer::NoEmbeddings("reading the answer was ended".to_owned())))
        };
        let vectors = vectors.map_err(RequestFault::Answer)?;
        self.check_dimensions(&vectors).map_err(RequestFault::Answer)?;
        Ok(vectors)
    }

    /// Vectors of another length than before are of another model.
    fn check_dimensions(&self, vectors: &[Vec<f32>]) -> Result<(), WrongAnswer> {
        let Some(found) = vectors.first().map(Vec::len) else { return Ok(()) };
        let expected = *self.shared.dimensions.get_or_init(|| found);
        if found == expected { Ok(()) } else { Err(WrongAnswer::Dimensions { expected, found }) }
    }

    fn error(&self, failure: &ModelFailure) -> EmbedError {
        let failure =
            ModelFailure { message: self.shared.endpoint.redact(&failure.message), ..failure.clone() };
        let error = failed_request(self.provider().id(), &failure);
        match error {
            EmbedError::Unauthorized { .. } if self.shared.keeps_key => error.adding(
                ". The stored key is not sent to a server that is not the provider's own: set \
                 agents.defaults.memorySearch.remote.apiKey",
            ),
            other => other,
        }
    }

    fn provider(&self) -> EmbeddingProvider {
        self.shared.endpoint.provider
    }
}

/// The failure that an answer with an error status stands for: `<status> <body>`, as in OpenClaw.
pub(super) async fn refusal(endpoint: &Endpoint, incoming: Incoming) -> ModelFailure {
    let status = incoming.status;
    let asked = retry_after(&incoming);
    let location = incoming.header("location").map(str::to_owned);
    let text = incoming.error_body().await;
    let text = text.trim();
    let json: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let error = json.as_ref().map(|value| value.get("error").unwrap_or(value));
    let words = match location {
        Some(location) if (300..400).contains(&status) => {
            format!("the server redirects to {location}; write the final address into remote.baseUrl")
        }
        _ if text.starts_with('<') => describe_page(text),
        _ => text.to_owned(),
    };
    let message = format!("{status} {words}");
    let known = (endpoint.provider == EmbeddingProvider::Gemini)
        .then(|| google::refusal(&ErrorAnswer { status, error, body: text, now: now_ms() }))
        .flatten();
    let (kind, asked_in_body) = match known {
        Some(failure) => (failure.kind, failure.retry_after),
        None => {
            let named =
                |name: &str| error.and_then(|error| error.get(name)).and_then(serde_json::Value::as_str);
            (classify_answer(status, named("type").or_else(|| named("code")), &message), None)
        }
    };
    ModelFailure { kind, status: Some(status), retry_after: asked_in_body.or(asked), message }
}
