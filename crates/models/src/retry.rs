//! Trying a call again (spec `agent-runtime.md` §2.8): one budget of requests, nothing repeated once the answer has begun.

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::message::{AssistantMessage, StopReason};
use tokio_util::sync::CancellationToken;

use crate::failure::affordable_tokens;
use crate::request::ModelRequest;
use crate::stream::{FailureKind, Model, ModelEvent, ModelFacts, ModelFailure, ModelStream};
use crate::thinking;
use crate::thinking::ThinkingLevel;

/// Largest number of requests of one call to one profile.
pub const MAX_REQUESTS: u32 = 4;
/// Longest wait a provider may ask for; beyond it the call fails at once.
pub const MAX_WAIT: Duration = Duration::from_secs(60);
/// The first wait unless the protocol has its own; each further one is twice as long.
pub const FIRST_WAIT: Duration = Duration::from_secs(2);

/// Error text of an aborted answer.
pub(crate) const ABORTED: &str = "Request was aborted";

/// The shortest answer that is asked for where the credit is not enough for more.
const LEAST_ANSWER: u32 = 256;

/// Largest number of requests of one call while the caller has another profile or model to go to.
pub const MAX_SHORT: u32 = 2;

/// Time for which a call is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Tries [`MAX_REQUESTS`] times in all, because there is no other profile or model.
    Full,
    /// The caller has another profile or model: a rate limit is passed on at once, other trouble after [`MAX_SHORT`].
    Short,
}

impl Patience {
    fn max_requests(self) -> u32 {
        match self {
            Self::Full => MAX_REQUESTS,
            Self::Short => MAX_SHORT,
        }
    }
}

/// Decision after a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Send it again after this long.
    After(Duration),
    /// Report the failure.
    GiveUp,
}

/// Returns true for trouble that may be over in a moment. Silence until our own deadline is not waited out twice.
pub(crate) fn may_pass(failure: &ModelFailure) -> bool {
    match failure.kind {
        FailureKind::RateLimit | FailureKind::Transient => true,
        // The server's own 408.
        FailureKind::Timeout => failure.status == Some(408),
        FailureKind::Billing
        | FailureKind::Unaffordable
        | FailureKind::Auth
        | FailureKind::Format
        | FailureKind::Gone
        | FailureKind::Empty
        | FailureKind::ContextOverflow
        | FailureKind::Other => false,
    }
}

/// Decides on the failure of request number `made` (counted from 1) of a call. The waits begin with `first_wait`, unless the
/// provider asks for another.
pub fn decide(made: u32, failure: &ModelFailure, patience: Patience, first_wait: Duration) -> Retry {
    let again = match failure.kind {
        // A used-up plan is not back in a minute.
        FailureKind::RateLimit => {
            patience == Patience::Full && !failure.message.to_lowercase().contains("usage limit")
        }
        _ => may_pass(failure),
    };
    let wait =
        failure.retry_after.unwrap_or_else(|| first_wait * 2_u32.saturating_pow(made.saturating_sub(1)));
    if again && made < patience.max_requests() && wait <= MAX_WAIT {
        Retry::After(wait)
    } else {
        Retry::GiveUp
    }
}

/// A model that tries again by itself, as long as nothing of the answer was heard.
#[derive(Clone)]
pub(crate) struct Retrying {
    model: Arc<dyn Model>,
    patience: Patience,
    first_wait: Duration,
}

impl Retrying {
    pub(crate) fn new(model: impl Model + 'static, patience: Patience, first_wait: Duration) -> Self {
        Self { model: Arc::new(model), patience, first_wait }
    }
}

impl Model for Retrying {
    fn facts(&self) -> ModelFacts<'_> {
        self.model.facts()
    }

    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let attempt = RetryAttempt {
            tried: vec![request.thinking],
            stream: self.model.stream(request.clone(), cancel.clone()),
            owner: self.clone(),
            request,
            cancel,
            made: 1,
            heard: AnswerProgress::Nothing,
            failed: None,
        };
        Box::pin(futures_util::stream::unfold(attempt, RetryAttempt::next))
    }
}

struct RetryAttempt {
    owner: Retrying,
    request: ModelRequest,
    cancel: CancellationToken,
    stream: ModelStream,
    made: u32,
    tried: Vec<ThinkingLevel>,
    heard: AnswerProgress,
    /// The request that failed last, until the next one is made.
    failed: Option<Box<Failed>>,
}

/// A failed request behind which another one follows.
struct Failed {
    message: AssistantMessage,
    failure: ModelFailure,
    wait: Duration,
}

/// Retry with the next request.
enum Again {
    /// Sends the same request again, after this backoff.
    Same(Duration),
    /// Sends the request at once in a form that the provider says it accepts.
    Changed,
}

/// Progress of the answer as far as the listener has received it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerProgress {
    Nothing,
    /// The listener knows that the answer has begun.
    Start,
    /// The listener has some of it: from here on it can't be taken back.
    Content,
    /// All of it.
    End,
}

impl RetryAttempt {
    async fn next(mut self) -> Option<(ModelEvent, Self)> {
        use futures_util::StreamExt;
        loop {
            if self.heard == AnswerProgress::End {
                return None;
            }
            if let Some(failed) = self.failed.take() {
                let Failed { message, failure, wait } = *failed;
                if !self.call_after(wait).await {
                    self.heard = AnswerProgress::End;
                    return Some((self.ended(message, failure), self));
                }
            }
            let event = self.stream.next().await?;
            match event {
                ModelEvent::Start if self.heard != AnswerProgress::Nothing => {}
                ModelEvent::Start => {
                    self.heard = AnswerProgress::Start;
                    return Some((event, self));
                }
                ModelEvent::Done { failure: Some(failure), message }
                    if self.heard != AnswerProgress::Content =>
                {
                    let Some(again) = self.again(&failure) else {
                        self.heard = AnswerProgress::End;
                        return Some((self.ended(message, failure), self));
                    };
                    let (wait, told) = match again {
                        Again::Same(wait) => (wait, Some(self.told(wait, &failure))),
                        Again::Changed => (Duration::ZERO, None),
                    };
                    self.failed = Some(Box::new(Failed { message, failure, wait }));
                    if let Some(told) = told {
                        return Some((told, self));
                    }
                }
                ModelEvent::Done { .. } => {
                    self.heard = AnswerProgress::End;
                    return Some((event, self));
                }
                ModelEvent::TextDelta { .. }
                | ModelEvent::ThinkingDelta { .. }
                | ModelEvent::ToolCallStart { .. } => {
                    self.heard = AnswerProgress::Content;
                    return Some((event, self));
                }
                // Of a model that tries again by itself below this one.
                ModelEvent::Retry { .. } => return Some((event, self)),
            }
        }
    }

    /// The request to make behind a failed one. `None` when the failure stands.
    fn again(&mut self, failure: &ModelFailure) -> Option<Again> {
        let again = match self.other_request(failure) {
            Some(request) => {
                self.request = request;
                Again::Changed
            }
            None => match decide(self.made, failure, self.owner.patience, self.owner.first_wait) {
                Retry::After(wait) => Again::Same(wait),
                Retry::GiveUp => return None,
            },
        };
        let wait = match again {
            Again::Same(wait) => wait,
            Again::Changed => Duration::ZERO,
        };
        tracing::warn!(
            provider = self.owner.provider(), model = self.owner.id(), request = self.made, wait_ms = wait.as_millis(),
            kind = ?failure.kind, reason = failure.message, "the model call failed and is tried again"
        );
        Some(again)
    }

    fn told(&self, wait: Duration, failure: &ModelFailure) -> ModelEvent {
        let attempts = self.owner.patience.max_requests();
        ModelEvent::Retry { attempt: self.made + 1, attempts, wait, failure: failure.clone() }
    }

    /// Waits and calls again. False: the wait was cancelled.
    async fn call_after(&mut self, wait: Duration) -> bool {
        tokio::select! { biased;
            () = self.cancel.cancelled() => return false,
            () = tokio::time::sleep(wait) => {}
        }
        self.made += 1;
        self.stream = self.owner.model.stream(self.request.clone(), self.cancel.clone());
        true
    }

    /// The request in a form that the provider says it takes, if there is one that was not tried.
    fn other_request(&mut self, failure: &ModelFailure) -> Option<ModelRequest> {
        if self.made >= MAX_REQUESTS {
            return None;
        }
        match failure.kind {
            FailureKind::Format => {
                let level = thinking::next_supported(&failure.message, &self.tried)?;
                tracing::info!(%level, "the provider refused the thinking level; trying a supported one");
                self.tried.push(level);
                Some(ModelRequest { thinking: level, ..self.request.clone() })
            }
            FailureKind::Unaffordable => {
                let asked = self.request.max_tokens.unwrap_or(u32::MAX);
                let tokens = affordable_tokens(&failure.message)
                    .filter(|tokens| (LEAST_ANSWER..asked).contains(tokens))?;
                tracing::info!(tokens, "the credit is enough for a shorter answer; asking for that");
                Some(ModelRequest { max_tokens: Some(tokens), ..self.request.clone() })
            }
            FailureKind::RateLimit
            | FailureKind::Transient
            | FailureKind::Billing
            | FailureKind::Auth
            | FailureKind::Timeout
            | FailureKind::Gone
            | FailureKind::Empty
            | FailureKind::ContextOverflow
            | FailureKind::Other => None,
        }
    }

    /// The last event: a call cancelled while it waited was aborted, it did not fail.
    fn ended(&self, mut message: AssistantMessage, failure: ModelFailure) -> ModelEvent {
        if self.cancel.is_cancelled() {
            message.stop_reason = StopReason::Aborted;
            message.error_message = Some(ABORTED.to_owned());
            return ModelEvent::Done { message, failure: None };
        }
        ModelEvent::Done { message, failure: Some(failure) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: FailureKind, status: Option<u16>, retry_after: Option<u64>) -> ModelFailure {
        ModelFailure {
            kind,
            status,
            retry_after: retry_after.map(Duration::from_secs),
            message: String::new(),
        }
    }

    #[test]
    fn waits_double_until_the_budget_is_spent() {
        let transient = failure(FailureKind::Transient, Some(529), None);
        let found: Vec<_> =
            (1..=5).map(|made| decide(made, &transient, Patience::Full, FIRST_WAIT)).collect();
        let after = |seconds| Retry::After(Duration::from_secs(seconds));
        assert_eq!(found, [after(2), after(4), after(8), Retry::GiveUp, Retry::GiveUp]);
    }

    /// A model that always fails the same way, and notes when it is called.
    struct Failing {
        failure: ModelFailure,
        called: Arc<std::sync::Mutex<Vec<tokio::time::Instant>>>,
    }

    impl Model for Failing {
        fn facts(&self) -> ModelFacts<'_> {
            ModelFacts { provider: "p", id: "m", api: "a", context_window: 0, max_tokens: 0, reasons: false }
        }

        fn stream(&self, _: ModelRequest, _: CancellationToken) -> ModelStream {
            self.called.lock().unwrap().push(tokio::time::Instant::now());
            let failure = Some(self.failure.clone());
            let message = openclaw_protocol::message::AssistantMessage::default();
            Box::pin(futures_util::stream::iter([ModelEvent::Start, ModelEvent::Done { message, failure }]))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_waits_of_a_protocol_are_kept_and_its_tries_are_bounded() {
        use futures_util::StreamExt;
        let rows = [
            (1, Patience::Full, vec![1, 2, 4]),
            (2, Patience::Full, vec![2, 4, 8]),
            (2, Patience::Short, vec![2]),
        ];
        for (first_wait, patience, expect) in rows {
            let failure = failure(FailureKind::Transient, Some(503), None);
            let called = Arc::default();
            let failure_told = failure.clone();
            let failing = Failing { failure, called: Arc::clone(&called) };
            let model = Retrying::new(failing, patience, Duration::from_secs(first_wait));
            let events: Vec<_> =
                model.stream(ModelRequest::default(), CancellationToken::new()).collect().await;
            let told = |(event, at): (&ModelEvent, u32)| {
                let ModelEvent::Retry { attempt, attempts, wait, failure: why } = event else {
                    panic!("{events:?}")
                };
                assert_eq!((*attempt, why), (at, &failure_told));
                (*attempts, wait.as_secs())
            };
            let retries = events.len() - 2;
            assert!(
                matches!(events.first(), Some(ModelEvent::Start)),
                "one start, however often it was tried"
            );
            assert!(matches!(events.last(), Some(ModelEvent::Done { failure: Some(_), .. })), "one end");
            let most = u32::try_from(expect.len()).unwrap() + 1;
            let seen: Vec<_> = events[1..=retries].iter().zip(2..).map(told).collect();
            assert_eq!(seen, expect.iter().map(|wait| (most, *wait)).collect::<Vec<_>>());
            let called = called.lock().unwrap();
            let waits: Vec<_> = called.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
            assert_eq!(waits, expect);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_cancelled_while_it_waits_was_aborted_and_is_not_made() {
        use futures_util::StreamExt;
        let called = Arc::default();
        let failing =
            Failing { failure: failure(FailureKind::Transient, None, None), called: Arc::clone(&called) };
        let cancel = CancellationToken::new();
        let model = Retrying::new(failing, Patience::Full, FIRST_WAIT);
        let mut events = model.stream(ModelRequest::default(), cancel.clone());
        assert!(matches!(events.next().await, Some(ModelEvent::Start)));
        assert!(matches!(events.next().await, Some(ModelEvent::Retry { attempt: 2, .. })));
        cancel.cancel();
        let Some(ModelEvent::Done { message, failure: None }) = events.next().await else { panic!("an end") };
        assert_eq!(message.stop_reason, StopReason::Aborted);
        assert!(events.next().await.is_none());
        assert_eq!(called.lock().unwrap().len(), 1);
    }

    #[test]
    fn each_kind_of_failure_has_its_answer() {
        use FailureKind::{Auth, Billing, ContextOverflow, Format, Other, RateLimit, Timeout, Transient};
        let after = |seconds| Retry::After(Duration::from_secs(seconds));
        let rows = [
            (failure(RateLimit, Some(429), None), Patience::Full, after(2)),
            (failure(RateLimit, Some(429), Some(7)), Patience::Full, after(7)),
            (failure(RateLimit, Some(429), Some(60)), Patience::Full, after(60)),
            (failure(RateLimit, Some(429), Some(61)), Patience::Full, Retry::GiveUp),
            (failure(RateLimit, Some(429), Some(7)), Patience::Short, Retry::GiveUp),
            (failure(Transient, Some(503), Some(0)), Patience::Short, after(0)),
            (failure(Timeout, Some(408), None), Patience::Full, after(2)),
            (failure(Timeout, None, None), Patience::Full, Retry::GiveUp),
            (failure(Auth, Some(401), None), Patience::Full, Retry::GiveUp),
            (failure(Billing, Some(402), None), Patience::Full, Retry::GiveUp),
            (failure(Format, Some(400), None), Patience::Full, Retry::GiveUp),
            (failure(ContextOverflow, Some(400), None), Patience::Full, Retry::GiveUp),
            (failure(Other, Some(404), None), Patience::Full, Retry::GiveUp),
        ];
        for (failure, limits, expect) in rows {
            assert_eq!(decide(1, &failure, limits, FIRST_WAIT), expect, "{failure:?} {limits:?}");
        }
        let plan =
            ModelFailure { message: "ChatGPT usage limit".to_owned(), ..failure(RateLimit, None, None) };
        assert_eq!(decide(1, &plan, Patience::Full, FIRST_WAIT), Retry::GiveUp);
    }
}
