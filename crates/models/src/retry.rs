//! Trying a call again (spec `agent-runtime.md` §2.8): one budget of requests, nothing repeated once the answer has begun.

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::message::StopReason;
use tokio_util::sync::CancellationToken;

use crate::request::{ModelRequest, ThinkingLevel};
use crate::stream::{FailureKind, Model, ModelEvent, ModelFacts, ModelFailure, ModelStream};
use crate::thinking;

/// Most requests of one call to one profile.
pub const MAX_REQUESTS: u32 = 4;
/// Longest wait a provider may ask for; beyond it the call fails at once.
pub const MAX_WAIT: Duration = Duration::from_secs(60);
/// The first wait unless the protocol has its own; each further one is twice as long.
pub const FIRST_WAIT: Duration = Duration::from_secs(2);

/// What an aborted answer says of itself.
pub(crate) const ABORTED: &str = "Request was aborted";

/// Most requests of one call while the caller has another profile or model to go to.
pub const MAX_SHORT: u32 = 2;

/// How long to keep trying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// There is no other way: wait and try again, [`MAX_REQUESTS`] in all.
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

/// What to do about a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Send it again after this long.
    After(Duration),
    /// Report the failure.
    GiveUp,
}

/// Decides on the failure of request number `made` (counted from 1) of a call. The waits begin with `first_wait`, unless the
/// provider asks for another.
pub fn decide(made: u32, failure: &ModelFailure, patience: Patience, first_wait: Duration) -> Retry {
    let again = match failure.kind {
        FailureKind::Transient => true,
        FailureKind::RateLimit => {
            // A used-up plan is not back in a minute.
            patience == Patience::Full && !failure.message.to_lowercase().contains("usage limit")
        }
        // The server's own 408; silence until our own deadline is not waited out twice.
        FailureKind::Timeout => failure.status == Some(408),
        FailureKind::Billing
        | FailureKind::Auth
        | FailureKind::Format
        | FailureKind::ContextOverflow
        | FailureKind::Other => false,
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
        let attempt = Attempt {
            tried: vec![request.thinking],
            stream: self.model.stream(request.clone(), cancel.clone()),
            owner: self.clone(),
            request,
            cancel,
            made: 1,
            heard: Heard::Nothing,
        };
        Box::pin(futures_util::stream::unfold(attempt, Attempt::next))
    }
}

struct Attempt {
    owner: Retrying,
    request: ModelRequest,
    cancel: CancellationToken,
    stream: ModelStream,
    made: u32,
    tried: Vec<ThinkingLevel>,
    heard: Heard,
}

/// How much of the answer the listener has heard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Nothing,
    /// That there is one.
    Start,
    /// Some of it: from here on it can't be taken back.
    Content,
    /// All of it.
    End,
}

impl Attempt {
    async fn next(mut self) -> Option<(ModelEvent, Self)> {
        use futures_util::StreamExt;
        loop {
            if self.heard == Heard::End {
                return None;
            }
            let event = self.stream.next().await?;
            match event {
                ModelEvent::Start if self.heard != Heard::Nothing => {}
                ModelEvent::Start => {
                    self.heard = Heard::Start;
                    return Some((event, self));
                }
                ModelEvent::Done { failure: Some(failure), message } if self.heard != Heard::Content => {
                    if self.again(&failure).await {
                        continue;
                    }
                    self.heard = Heard::End;
                    return Some((self.ended(message, failure), self));
                }
                ModelEvent::Done { .. } => {
                    self.heard = Heard::End;
                    return Some((event, self));
                }
                ModelEvent::TextDelta { .. }
                | ModelEvent::ThinkingDelta { .. }
                | ModelEvent::ToolCallStart { .. } => {
                    self.heard = Heard::Content;
                    return Some((event, self));
                }
            }
        }
    }

    /// Waits and calls again, if that is what to do. False: the failure stands, or the wait was cancelled.
    async fn again(&mut self, failure: &ModelFailure) -> bool {
        let wait = match self.other_level(failure) {
            Some(level) => {
                tracing::info!(%level, "the provider refused the thinking level; trying a supported one");
                self.tried.push(level);
                self.request.thinking = level;
                Duration::ZERO
            }
            None => match decide(self.made, failure, self.owner.patience, self.owner.first_wait) {
                Retry::After(wait) => wait,
                Retry::GiveUp => return false,
            },
        };
        tracing::warn!(
            provider = self.owner.provider(), model = self.owner.id(), request = self.made, wait_ms = wait.as_millis(),
            kind = ?failure.kind, reason = failure.message, "the model call failed and is tried again"
        );
        tokio::select! { biased;
            () = self.cancel.cancelled() => return false,
            () = tokio::time::sleep(wait) => {}
        }
        self.made += 1;
        self.stream = self.owner.model.stream(self.request.clone(), self.cancel.clone());
        true
    }

    fn other_level(&self, failure: &ModelFailure) -> Option<ThinkingLevel> {
        let refused = failure.kind == FailureKind::Format && self.made < MAX_REQUESTS;
        if refused { thinking::next_supported(&failure.message, &self.tried) } else { None }
    }

    /// The last event: a call cancelled while it waited was aborted, it did not fail.
    fn ended(
        &self,
        mut message: openclaw_protocol::message::AssistantMessage,
        failure: ModelFailure,
    ) -> ModelEvent {
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
            let failing = Failing { failure, called: Arc::clone(&called) };
            let model = Retrying::new(failing, patience, Duration::from_secs(first_wait));
            let events: Vec<_> =
                model.stream(ModelRequest::default(), CancellationToken::new()).collect().await;
            assert_eq!(events.len(), 2, "a start and an end, however often it was tried");
            let called = called.lock().unwrap();
            let waits: Vec<_> = called.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
            assert_eq!(waits, expect);
        }
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
