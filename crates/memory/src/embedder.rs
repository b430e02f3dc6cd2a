//! The port through which texts become vectors. Clients of model servers and local encoders implement [`Embedder`];
//! the index hands them texts, keeps what they answer, and goes on with keywords alone while they fail.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The future that a call of an [`Embedder`] returns.
pub type EmbedFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, EmbedError>> + Send + 'a>>;

/// Turns texts into vectors. One value is shared by all searches and syncs, and may be shared by several agents.
///
/// A call is dropped when its deadline has passed; an implementation must bear that. The vectors may have any length
/// and need not be normalised, but all of one embedder have the same number of dimensions. What is answered is checked
/// by the index: another number of vectors than of texts, differing dimensions and values that are not finite are
/// treated as [`EmbedError::Invalid`].
pub trait Embedder: Send + Sync + 'static {
    /// Names the provider, the model and the endpoint. Vectors of another identity are never compared with these.
    fn identity(&self) -> &EmbedderIdentity;

    /// Returns how much one call of [`Embedder::embed_batch`] may carry.
    fn limits(&self) -> BatchLimits;

    /// Returns the cooldown that all users of this provider share.
    fn cooldown(&self) -> &Cooldown;

    /// Embeds what a person or a model searches for.
    fn embed_query<'a>(&'a self, text: &'a str) -> EmbedFuture<'a, Vec<f32>>;

    /// Embeds texts that are to be found, and answers in the same order. `texts` keeps to [`Embedder::limits`], but a
    /// single text that is larger than the limit comes alone.
    fn embed_batch<'a>(&'a self, texts: &'a [String]) -> EmbedFuture<'a, Vec<Vec<f32>>>;
}

/// Provider, model and endpoint of an [`Embedder`], as the index file records them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedderIdentity {
    /// Provider id as OpenClaw 2026.2.9 writes it, such as `openai`, `gemini`, `voyage`, `local`.
    pub provider: String,
    /// Model name without a provider prefix.
    pub model: String,
    /// Fingerprint of the endpoint, made by `identity::provider_key`.
    pub provider_key: String,
    /// Further fingerprints of the same endpoint: those that differ in a trailing slash or in secret headers. An index
    /// that was made under one of them is used as it is.
    pub equivalent_keys: Vec<String>,
}

/// Limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Largest number of texts.
    pub texts: usize,
    /// Largest sum of UTF-16 code units of the texts.
    pub units: usize,
    /// Largest number of requests at the same time.
    pub requests: usize,
    /// Longest time that one request of documents may take.
    pub batch_timeout: Duration,
    /// Longest time that embedding a query may take before the search goes on with keywords alone.
    pub query_timeout: Duration,
}

impl BatchLimits {
    /// Limits for an endpoint of which nothing is known: 8,000 units a request, as OpenClaw 2026.2.9 sends.
    pub const UNKNOWN: Self = Self {
        texts: 100,
        units: 8_000,
        requests: 4,
        batch_timeout: Duration::from_secs(120),
        query_timeout: Duration::from_secs(10),
    };
}

/// Reasons for which texts were not embedded, by what the caller does then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The provider asks to slow down: nobody asks it again before the cooldown has ended.
    #[error("rate limited: {message}")]
    RateLimited {
        /// Text for people, redacted and cut.
        message: String,
        /// The time that the provider named.
        retry_after: Option<Duration>,
    },
    /// The credential is missing, wrong or has no quota: waiting does not help, a person must.
    #[error("{message}")]
    Unauthorized {
        /// Text for people, redacted and cut.
        message: String,
    },
    /// A text or the request is too large: the index asks again with less.
    #[error("{message}")]
    TooLarge {
        /// Text for people, redacted and cut.
        message: String,
    },
    /// The server failed, could not be reached or was silent: the index asks again later.
    #[error("{message}")]
    Unavailable {
        /// Text for people, redacted and cut.
        message: String,
    },
    /// The answer makes no sense, or the request is refused for another reason: asking the same again is of no use.
    #[error("{message}")]
    Invalid {
        /// Text for people, redacted and cut.
        message: String,
    },
}

impl EmbedError {
    /// Returns whether the same request can succeed later without anybody's help.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Unavailable { .. })
    }
}

/// The time before which a provider is not asked again. It grows with each failure in a row and ends with a success.
#[derive(Default)]
pub struct Cooldown(Mutex<CooldownState>);

#[derive(Debug, Default, Clone, Copy)]
struct CooldownState {
    until: Option<Instant>,
    failures: u32,
}

impl Cooldown {
    /// Longest wait that a provider can ask for.
    const LONGEST: Duration = Duration::from_secs(60);
    /// Wait after the first failure; each further one doubles it.
    const FIRST: Duration = Duration::from_millis(500);
    /// Wait after a refused credential: long, because a person must act; a change of settings makes a new embedder.
    const REFUSED: Duration = Duration::from_secs(300);

    /// Returns how long nobody may ask from `now` on, or `None` if the provider may be asked.
    #[must_use]
    pub fn remaining(&self, now: Instant) -> Option<Duration> {
        let until = self.0.lock().until?;
        until.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Records that a request succeeded.
    pub fn succeeded(&self) {
        *self.0.lock() = CooldownState::default();
    }

    /// Records a failure at `now` and returns how long nobody may ask.
    pub fn failed(&self, error: &EmbedError, now: Instant) -> Duration {
        let mut state = self.0.lock();
        state.failures = state.failures.saturating_add(1);
        let backoff = Self::FIRST.saturating_mul(1 << state.failures.saturating_sub(1).min(8));
        let wait = match error {
            EmbedError::RateLimited { retry_after: Some(asked), .. } => {
                (*asked).max(backoff).min(Self::LONGEST)
            }
            EmbedError::RateLimited { retry_after: None, .. } | EmbedError::Unavailable { .. } => {
                backoff.min(Self::LONGEST)
            }
            EmbedError::Unauthorized { .. } => Self::REFUSED,
            EmbedError::TooLarge { .. } | EmbedError::Invalid { .. } => Duration::ZERO,
        };
        let until = now + wait;
        state.until = Some(state.until.map_or(until, |before| before.max(until)));
        wait
    }
}

impl fmt::Debug for Cooldown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.lock().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cooldown_doubles_heeds_retry_after_and_ends_with_a_success() {
        let (cooldown, now) = (Cooldown::default(), Instant::now());
        let busy = EmbedError::Unavailable { message: "502".into() };
        assert_eq!(cooldown.remaining(now), None);
        assert_eq!(cooldown.failed(&busy, now), Duration::from_millis(500));
        assert_eq!(cooldown.failed(&busy, now), Duration::from_secs(1));
        let limited =
            EmbedError::RateLimited { message: "429".into(), retry_after: Some(Duration::from_secs(30)) };
        assert_eq!(cooldown.failed(&limited, now), Duration::from_secs(30));
        assert_eq!(cooldown.remaining(now + Duration::from_secs(10)), Some(Duration::from_secs(20)));
        let long =
            EmbedError::RateLimited { message: "429".into(), retry_after: Some(Duration::from_secs(3_600)) };
        assert_eq!(cooldown.failed(&long, now), Duration::from_secs(60));
        cooldown.succeeded();
        assert_eq!(cooldown.remaining(now), None);
    }
}
