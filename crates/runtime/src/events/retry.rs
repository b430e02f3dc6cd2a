//! Failed model call of a run that goes on, as clients see it.

use openclaw_agent::event::{NextTry, RetryNotice};
use openclaw_protocol::event::Lifecycle;

pub(super) fn lifecycle(notice: RetryNotice) -> Lifecycle {
    let (text, reason) = (notice.text(), notice.kind.reason().map(str::to_owned));
    let RetryNotice { provider, model, error, next, .. } = notice;
    match next {
        NextTry::Again { attempt, attempts, wait } => Lifecycle::Retry {
            provider,
            model,
            attempt,
            max_attempts: attempts,
            delay_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            reason,
            error,
            text,
        },
        NextTry::Fallback { provider: to_provider, model: to_model } => Lifecycle::Fallback {
            from_provider: provider,
            from_model: model,
            to_provider,
            to_model,
            reason,
            error,
            text,
        },
    }
}
