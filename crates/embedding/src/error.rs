//! Errors of embedding, by what the caller does about them.

use std::time::Duration;

/// Reasons for which texts were not embedded, by what the caller does then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The provider asks to slow down: nobody asks it again before the cooldown has ended.
    #[error("{message}")]
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
    /// The texts were handed to a job that is under way: ask for the same ones again after that time. The provider may
    /// be asked for others meanwhile.
    #[error("{message}")]
    UnderWay {
        /// Description of the job.
        message: String,
        /// Time until the job is looked at again.
        again: Duration,
        /// True if whoever waits for the vectors goes on waiting.
        waits: bool,
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
        matches!(self, Self::RateLimited { .. } | Self::Unavailable { .. } | Self::UnderWay { .. })
    }

    /// Returns the same error with `advice` behind its message.
    #[must_use]
    pub fn adding(mut self, advice: &str) -> Self {
        match &mut self {
            Self::RateLimited { message, .. }
            | Self::Unauthorized { message }
            | Self::TooLarge { message }
            | Self::Unavailable { message }
            | Self::UnderWay { message, .. }
            | Self::Invalid { message } => message.push_str(advice),
        }
        self
    }
}
