//! Drives one call over HTTP: posts the request, feeds the answer, watches for cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use openclaw_config::clock::now_ms;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::SharedKey;
use crate::answer::{AnswerReader, describe_page};
use crate::context_window::ContextWindow;
use crate::conversation::RequestFacts;
use crate::debug_log::CallLog;
use crate::failure;
use crate::history;
use crate::model_spec::ModelSpec;
use crate::net::{Http, Incoming, NetError, address_fault};
use crate::protocols::protocol;
use crate::provider_key::ProviderKey;
use crate::request::ModelRequest;
use crate::stream::{FailureKind, Model, ModelEvent, ModelFacts, ModelFailure, ModelStream};
use crate::wire::{ErrorAnswer, OutgoingCall, Protocol, RequestHead, WireRequest, write_body};

/// Characters of an error answer that are kept in the message.
const MAX_ERROR_CHARS: usize = 4_000;
/// Clock difference in milliseconds above which a signature is made with the server's time. AWS
/// allows five minutes.
const MAX_SKEW: i64 = 4 * 60_000;
/// Time that the end of an answer may take after its last event, so that the connection can be
/// reused.
const END_OF_BODY: Duration = Duration::from_millis(5);

/// A model behind HTTP, bound to its key.
#[derive(Debug, Clone)]
pub(crate) struct HttpModel {
    spec: Arc<ModelSpec>,
    protocol: &'static dyn Protocol,
    access: Arc<SharedKey>,
    http: Http,
    window: ContextWindow,
    log: Option<Arc<CallLog>>,
    /// Lead of the server's clock over ours in milliseconds, once it was measured.
    skew: Arc<AtomicI64>,
}

/// A call that got no answer.
struct RefusedCall {
    failure: ModelFailure,
    /// Time of the server's clock in Unix milliseconds.
    time: Option<i64>,
}

impl From<ModelFailure> for RefusedCall {
    fn from(failure: ModelFailure) -> Self {
        Self { failure, time: None }
    }
}

impl From<NetError> for RefusedCall {
    fn from(error: NetError) -> Self {
        Self::from(ModelFailure::from(error))
    }
}

/// A protocol this version has no client for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnsupportedApi;

impl HttpModel {
    /// Binds a model, if its protocol is one of ours.
    pub(crate) fn bind(
        spec: ModelSpec,
        access: SharedKey,
        http: Http,
        window: ContextWindow,
    ) -> Result<Self, UnsupportedApi> {
        let protocol = protocol(&spec.api).ok_or(UnsupportedApi)?;
        Ok(Self {
            spec: Arc::new(spec),
            protocol,
            access: Arc::new(access),
            http,
            window,
            log: None,
            skew: Arc::default(),
        })
    }

    /// Returns the same model with a log of its traffic.
    pub(crate) fn logged(self, log: Option<Arc<CallLog>>) -> Self {
        Self { log, ..self }
    }

    /// The wait before a failed request is sent again for the first time.
    pub(crate) fn first_wait(&self) -> Duration {
        self.protocol.first_wait()
    }

    fn build(&self, posting: &Posting, key: Option<&ProviderKey>) -> Result<WireRequest, ModelFailure> {
        let Posting { request, body, asked } = posting;
        let call = OutgoingCall { spec: &self.spec, key, request, asked: *asked };
        let RequestHead { url, headers } = self.protocol.head(&call)?;
        let mut wire = WireRequest { url, headers, body: body.clone() };
        self.protocol.sign(&call, &mut wire, now_ms().saturating_add(self.skew.load(Ordering::Relaxed)))?;
        Ok(wire)
    }

    /// Posts the request; an answer with an error status is a failure already. A login the server takes no more, though its
    /// time is not over, is renewed, and the request posted once more.
    async fn post(&self, posting: &Posting) -> Result<Incoming, ModelFailure> {
        let key = self.access.key();
        let failure = match self.post_with(posting, key.as_deref()).await {
            Err(failure) if failure.status == Some(401) => failure,
            other => return other,
        };
        match self.access.renewed(key.as_ref()).await {
            Some(Ok(next)) => {
                tracing::info!(model = %self.spec.reference, "the login was refused and is renewed; asking again");
                self.post_with(posting, Some(&next)).await
            }
            Some(Err(error)) => {
                tracing::warn!(model = %self.spec.reference, %error, "the login was refused and can't be renewed");
                Err(ModelFailure { kind: FailureKind::Auth, message: error.to_string(), ..failure })
            }
            None => Err(failure),
        }
    }

    async fn post_with(
        &self,
        posting: &Posting,
        key: Option<&ProviderKey>,
    ) -> Result<Incoming, ModelFailure> {
        match self.post_once(posting, key).await {
            // A signature holds for minutes: where our clock is off by more, it is made anew for the server's time.
            Err(refused) if self.learn_skew(&refused, key) => {
                self.post_once(posting, key).await.map_err(|r| r.failure)
            }
            answer => answer.map_err(|refused| refused.failure),
        }
    }

    /// Returns true if a signed request was refused because of a clock difference that was not
    /// known yet; remembers the difference.
    fn learn_skew(&self, refused: &RefusedCall, key: Option<&ProviderKey>) -> bool {
        let (Some(server), Some(400 | 401 | 403)) = (refused.time, refused.failure.status) else {
            return false;
        };
        let skew = server.saturating_sub(now_ms());
        let known = self.skew.load(Ordering::Relaxed);
        let is_signed = key.is_some_and(|key| self.protocol.is_signed(key));
        let is_news = is_signed && skew.saturating_sub(known).abs() > MAX_SKEW;
        if is_news {
            tracing::warn!(skew_ms = skew, "this machine's clock is wrong; signing for the server's time");
            self.skew.store(skew, Ordering::Relaxed);
        }
        is_news
    }

    async fn post_once(&self, posting: &Posting, key: Option<&ProviderKey>) -> Result<Incoming, RefusedCall> {
        let WireRequest { url, headers, body } = self.build(posting, key)?;
        tracing::debug!(model = %self.spec.reference, bytes = body.len(), "calling the model");
        if let Some(log) = &self.log {
            log.context(&posting.request, key);
            log.posted(posting.request.session_id.as_deref(), &body, key);
        }
        let posted = self.http.post_json(&url, headers, body).await;
        let incoming = posted.map_err(|error| self.as_written(error))?;
        if (200..300).contains(&incoming.status) {
            return Ok(incoming);
        }
        let time = server_time(&incoming);
        let mut failure = self.refused(incoming).await;
        if let Some(key) = key {
            failure.message = key.redact(&failure.message);
        }
        Err(RefusedCall { failure, time })
    }

    /// Names an address that is none as the owner wrote it, without what the protocol puts behind it.
    fn as_written(&self, error: NetError) -> NetError {
        let written = Some(&self.spec.base_url).filter(|url| !url.is_empty());
        match (&error, written) {
            (NetError::Address(_), Some(url)) => address_fault(url).unwrap_or(error),
            _ => error,
        }
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
        if let Some(key) = self.access.key() {
            failure.message = key.redact(&failure.message);
        }
        failure.message = failure.message.chars().take(MAX_ERROR_CHARS).collect();
        message.error_message = Some(failure.message.clone());
        tracing::debug!(model = %self.spec.reference, kind = ?failure.kind, status = ?failure.status, "the call failed");
        ModelEvent::Done { message, failure: Some(failure) }
    }
}

impl Model for HttpModel {
    fn facts(&self) -> ModelFacts<'_> {
        let spec = &self.spec;
        ModelFacts {
            provider: spec.provider(),
            id: spec.id(),
            api: spec.api.as_str(),
            context_window: self.window.tokens,
            max_tokens: self.spec.max_tokens,
            reasons: spec.reasoning,
        }
    }

    fn stream(&self, mut request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let (body, asked) = write_body(self.protocol, &self.spec, &request);
        if self.log.is_some() {
            let rules = self.spec.history_rules(self.protocol.call_ids(&self.spec));
            request.messages = history::prepare(request.messages.to_vec(), &rules).into();
        }
        let answer = AnswerReader::new(Arc::clone(&self.spec), self.protocol.decoder(), now_ms());
        let session = self.log.as_ref().and(request.session_id.clone());
        let step = CallStep::Post(Box::new(Posting { request, body, asked }));
        let call = HttpCall { model: self.clone(), cancel, answer, session, alive: Instant::now(), step };
        Box::pin(futures_util::stream::unfold(call, HttpCall::next))
    }
}

/// Call under way. Dropping it closes the connection.
struct HttpCall {
    model: HttpModel,
    cancel: CancellationToken,
    answer: AnswerReader,
    /// Session id of ours, for the log.
    session: Option<String>,
    /// Time at which the server last sent a complete event.
    alive: Instant,
    step: CallStep,
}

enum CallStep {
    Post(Box<Posting>),
    Read(IncomingAnswer),
    Over,
}

/// A request to be posted.
struct Posting {
    /// Request; if there is a log, its messages are those that the model is shown.
    request: ModelRequest,
    body: Bytes,
    asked: RequestFacts,
}

/// An answer being read.
struct IncomingAnswer {
    incoming: Incoming,
    /// True if the last bytes received did not complete an event.
    in_pieces: bool,
}

impl IncomingAnswer {
    async fn chunk(&mut self, alive: Instant) -> Result<Option<Bytes>, NetError> {
        let pieces = if self.in_pieces { alive.elapsed() } else { Duration::ZERO };
        self.incoming.chunk_after(pieces).await
    }
}

impl HttpCall {
    async fn next(mut self) -> Option<(ModelEvent, Self)> {
        loop {
            if let Some(event) = self.answer.next_event() {
                let event = self.model.clean(event);
                if let Some(log) = &self.model.log {
                    log.event(self.session.as_deref(), &event, self.model.access.key().as_deref());
                }
                return Some((event, self));
            }
            if self.answer.has_ended() {
                return None;
            }
            self.step = self.advance().await;
        }
    }

    async fn advance(&mut self) -> CallStep {
        let cancel = self.cancel.clone();
        let step = std::mem::replace(&mut self.step, CallStep::Over);
        tokio::select! { biased;
            () = cancel.cancelled() => {
                self.answer.abort();
                CallStep::Over
            }
            step = self.work(step) => step,
        }
    }

    async fn work(&mut self, step: CallStep) -> CallStep {
        match step {
            CallStep::Post(posting) => match self.model.post(&posting).await {
                Ok(incoming) => {
                    self.alive = Instant::now();
                    return CallStep::Read(IncomingAnswer { incoming, in_pieces: false });
                }
                Err(failure) => self.answer.fail(failure),
            },
            CallStep::Read(mut reading) => match reading.chunk(self.alive).await {
                Ok(Some(bytes)) => {
                    reading.in_pieces = !self.answer.push(&bytes);
                    if !reading.in_pieces {
                        self.alive = Instant::now();
                    }
                    if !self.answer.has_ended() {
                        return CallStep::Read(reading);
                    }
                    release(reading.incoming).await;
                }
                Ok(None) => self.answer.eof(),
                Err(error) => self.answer.fail(error.into()),
            },
            CallStep::Over => self.answer.abort(),
        }
        CallStep::Over
    }
}

/// Reads the little that follows the last event, for a connection that is read to its end can be used again.
async fn release(mut incoming: Incoming) {
    let drained = async { while let Ok(Some(_)) = incoming.chunk().await {} };
    // A server that keeps the connection open costs us the connection, nothing else.
    let _ = tokio::time::timeout(END_OF_BODY, drained).await;
}

/// Codes of errors that say more than their types.
const CODES: [&str; 2] = ["insufficient_quota", "model_not_found"];

/// The failure an error answer stands for. The message is `<status> <what the provider said>`.
fn http_failure(protocol: &dyn Protocol, status: u16, location: Option<&str>, body: &str) -> ModelFailure {
    let body = body.trim();
    // Some gateways stream their errors too.
    let streamed = || body.strip_prefix("data:").and_then(|rest| rest.lines().next());
    let json: Option<Value> =
        serde_json::from_str(body).ok().or_else(|| serde_json::from_str(streamed()?.trim()).ok());
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
        named("code").filter(|code| CODES.contains(code)).or_else(|| named("type")).or_else(|| named("code"))
    });
    let message = format!("{status} {said}");
    let kind = failure::classify_answer(status, error_type, &message);
    ModelFailure { kind, status: Some(status), retry_after: None, message }
}

/// `retry-after-ms`, or `retry-after` in seconds or as a date.
pub(crate) fn retry_after(incoming: &Incoming) -> Option<Duration> {
    if let Some(ms) = incoming.header("retry-after-ms").and_then(|text| text.trim().parse::<u64>().ok()) {
        return Some(Duration::from_millis(ms));
    }
    // A date is the server's, and so is the time it counts from: our clock may be wrong.
    parse_retry_after(incoming.header("retry-after")?, server_time(incoming).unwrap_or_else(now_ms))
}

/// Returns the time of the server's clock in Unix milliseconds.
fn server_time(incoming: &Incoming) -> Option<i64> {
    parse_date(incoming.header("date")?)
}

fn parse_date(text: &str) -> Option<i64> {
    Some(jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp().as_millisecond())
}

fn parse_retry_after(text: &str, now: i64) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = parse_date(text)?;
    Some(Duration::from_millis(u64::try_from(date.saturating_sub(now)).unwrap_or(0)))
}

#[cfg(test)]
mod tests;
