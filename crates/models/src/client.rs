//! Drives one call over HTTP: posts the request, feeds the answer, watches for cancellation.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use secrecy::SecretString;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::answer::{Answer, describe_page};
use crate::catalog::ModelSpec;
use crate::context_window::ContextWindow;
use crate::failure;
use crate::net::{Http, Incoming};
use crate::provider_key::ProviderKey;
use crate::request::ModelRequest;
use crate::stream::{Model, ModelEvent, ModelFailure, ModelStream};
use crate::wire::{ErrorAnswer, Outgoing, Protocol, WireRequest};

/// Characters of an error answer that are kept in the message.
const MAX_ERROR_CHARS: usize = 4_000;
/// How long the end of an answer may take after its last event, so that the connection can be used again.
const END_OF_BODY: Duration = Duration::from_millis(5);

/// A model behind HTTP, bound to its key.
#[derive(Debug, Clone)]
pub(crate) struct HttpModel {
    spec: Arc<ModelSpec>,
    protocol: &'static dyn Protocol,
    key: Option<ProviderKey>,
    http: Http,
    window: ContextWindow,
}

/// A protocol this version has no client for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnsupportedApi;

impl HttpModel {
    /// Binds a model, if its protocol is one of ours.
    pub(crate) fn bind(
        spec: ModelSpec,
        key: Option<SecretString>,
        http: Http,
        window: ContextWindow,
    ) -> Result<Self, UnsupportedApi> {
        let protocol = spec.api.protocol().ok_or(UnsupportedApi)?;
        Ok(Self { spec: Arc::new(spec), protocol, key: key.map(ProviderKey::from), http, window })
    }

    /// The wait before a failed request is sent again for the first time.
    pub(crate) fn first_wait(&self) -> Duration {
        self.protocol.first_wait()
    }

    fn build(&self, request: &ModelRequest) -> Result<WireRequest, ModelFailure> {
        let call = Outgoing { spec: &self.spec, key: self.key.as_ref(), request };
        let mut wire = self.protocol.build(&call)?;
        self.protocol.sign(&call, &mut wire, now_ms())?;
        Ok(wire)
    }

    /// Posts the request; an answer with an error status is a failure already.
    async fn post(&self, request: &ModelRequest) -> Result<Incoming, ModelFailure> {
        let WireRequest { url, headers, body } = self.build(request)?;
        tracing::debug!(model = %self.spec.reference, bytes = body.len(), "calling the model");
        let incoming = self.http.post_json(&url, headers, body).await?;
        if (200..300).contains(&incoming.status) { Ok(incoming) } else { Err(self.refused(incoming).await) }
    }

    async fn refused(&self, incoming: Incoming) -> ModelFailure {
        let status = incoming.status;
        let retry_after = retry_after(&incoming);
        let location = incoming.header("location").map(str::to_owned);
        let body = incoming.error_body().await;
        let mut failure = http_failure(self.protocol, status, location.as_deref(), &body);
        failure.retry_after = failure.retry_after.or(retry_after);
        failure
    }

    /// Takes the key out of what a failure says, wherever in the answer it came from, and bounds it.
    fn clean(&self, event: ModelEvent) -> ModelEvent {
        let ModelEvent::Done { mut message, failure: Some(mut failure) } = event else { return event };
        if let Some(key) = &self.key {
            failure.message = key.redact(&failure.message);
        }
        failure.message = failure.message.chars().take(MAX_ERROR_CHARS).collect();
        message.error_message = Some(failure.message.clone());
        tracing::debug!(model = %self.spec.reference, kind = ?failure.kind, status = ?failure.status, "the call failed");
        ModelEvent::Done { message, failure: Some(failure) }
    }
}

impl Model for HttpModel {
    fn provider(&self) -> &str {
        self.spec.provider()
    }

    fn id(&self) -> &str {
        self.spec.id()
    }

    fn api(&self) -> &str {
        self.spec.api.as_str()
    }

    fn context_window(&self) -> u64 {
        self.window.tokens
    }

    fn reasons(&self) -> bool {
        self.spec.reasoning
    }

    fn sees(&self) -> bool {
        self.spec.images
    }

    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let answer = Answer::new(Arc::clone(&self.spec), self.protocol.decoder(), now_ms());
        let call = Call { model: self.clone(), cancel, answer, step: Step::Post(Box::new(request)) };
        Box::pin(futures_util::stream::unfold(call, Call::next))
    }
}

/// One call under way. Dropping it closes the connection.
struct Call {
    model: HttpModel,
    cancel: CancellationToken,
    answer: Answer,
    step: Step,
}

enum Step {
    Post(Box<ModelRequest>),
    Read(Incoming),
    Over,
}

impl Call {
    async fn next(mut self) -> Option<(ModelEvent, Self)> {
        loop {
            if let Some(event) = self.answer.next_event() {
                return Some((self.model.clean(event), self));
            }
            if self.answer.has_ended() {
                return None;
            }
            self.step = self.advance().await;
        }
    }

    async fn advance(&mut self) -> Step {
        let cancel = self.cancel.clone();
        let step = std::mem::replace(&mut self.step, Step::Over);
        tokio::select! { biased;
            () = cancel.cancelled() => {
                self.answer.abort();
                Step::Over
            }
            step = self.work(step) => step,
        }
    }

    async fn work(&mut self, step: Step) -> Step {
        match step {
            Step::Post(request) => match self.model.post(&request).await {
                Ok(incoming) => return Step::Read(incoming),
                Err(failure) => self.answer.fail(failure),
            },
            Step::Read(mut incoming) => match incoming.chunk().await {
                Ok(Some(bytes)) => {
                    self.answer.push(&bytes);
                    if !self.answer.has_ended() {
                        return Step::Read(incoming);
                    }
                    release(incoming).await;
                }
                Ok(None) => self.answer.eof(),
                Err(error) => self.answer.fail(error.into()),
            },
            Step::Over => self.answer.abort(),
        }
        Step::Over
    }
}

/// Reads the little that follows the last event, for a connection that is read to its end can be used again.
async fn release(mut incoming: Incoming) {
    let drained = async { while let Ok(Some(_)) = incoming.chunk().await {} };
    // A server that keeps the connection open costs us the connection, nothing else.
    let _ = tokio::time::timeout(END_OF_BODY, drained).await;
}

pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The failure an error answer stands for. The message is `<status> <what the provider said>`.
fn http_failure(protocol: &dyn Protocol, status: u16, location: Option<&str>, body: &str) -> ModelFailure {
    let body = body.trim();
    let json: Option<Value> = serde_json::from_str(body).ok();
    let error = json.as_ref().map(|value| value.get("error").unwrap_or(value));
    if let Some(failure) = protocol.refusal(&ErrorAnswer { status, error, body, now: now_ms() }) {
        return failure;
    }
    let said = match error {
        _ if (300..400).contains(&status) => format!(
            "the server redirects to {}; write the final address into the provider's baseUrl",
            location.unwrap_or("an unknown place")
        ),
        Some(error) => protocol.error_words(error, body),
        None if body.is_empty() => "status code (no body)".to_owned(),
        None if body.starts_with('<') => describe_page(body),
        None => body.to_owned(),
    };
    let error_type = error.and_then(|error| {
        let named = |name: &str| error.get(name).and_then(Value::as_str);
        named("code")
            .filter(|code| *code == "insufficient_quota")
            .or_else(|| named("type"))
            .or_else(|| named("code"))
    });
    let message = format!("{status} {said}");
    let kind = failure::classify_answer(status, error_type, &message);
    ModelFailure { kind, status: Some(status), retry_after: None, message }
}

/// `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after(incoming: &Incoming) -> Option<Duration> {
    if let Some(ms) = incoming.header("retry-after-ms").and_then(|text| text.trim().parse::<u64>().ok()) {
        return Some(Duration::from_millis(ms));
    }
    parse_retry_after(incoming.header("retry-after")?, now_ms())
}

fn parse_retry_after(text: &str, now: i64) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_millisecond();
    Some(Duration::from_millis(u64::try_from(date.saturating_sub(now)).unwrap_or(0)))
}

#[cfg(test)]
mod tests;
