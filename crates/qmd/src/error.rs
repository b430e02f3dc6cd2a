//! Reasons for which `qmd` does not answer.

use std::time::Duration;

use crate::programs::QmdCallError;

/// Reasons for which `qmd` does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QmdError {
    /// The program is not there.
    #[error("{0}")]
    Missing(String),
    /// A command failed.
    #[error("{}", told(.command, .error, .limit))]
    Command {
        /// The command as it is shown.
        command: String,
        /// The failure.
        error: QmdCallError,
        /// Time limit of the command.
        limit: Duration,
    },
    /// A command printed something else than asked for.
    #[error("{command} returned invalid JSON: {reason}")]
    Output {
        /// The command as it is shown.
        command: String,
        /// Phrase that says what is wrong.
        reason: String,
    },
    /// The index file can't be read.
    #[error("the index of qmd can't be read: {0}")]
    Index(String),
    /// Collections are still being made.
    #[error("qmd is still starting")]
    Starting,
    /// The last searches failed, and it is not asked for a while.
    #[error("{0}")]
    Pausing(String),
}

fn told(command: &str, error: &QmdCallError, limit: &Duration) -> String {
    match error {
        QmdCallError::NotStarted(reason) => format!("{command} could not be started: {reason}"),
        QmdCallError::TimedOut => format!("{command} timed out after {}ms", limit.as_millis()),
        QmdCallError::Failed { code: Some(code), said } => format!("{command} failed (code {code}): {said}"),
        QmdCallError::Failed { code: None, said } => format!("{command} was killed: {said}"),
        QmdCallError::TooMuchOutput => format!("{command} printed too much"),
    }
}

impl QmdError {
    /// True for an error that the next command would have too.
    pub(crate) fn is_hopeless(&self) -> bool {
        match self {
            Self::Missing(_) => true,
            Self::Command { error, .. } => {
                matches!(error, QmdCallError::NotStarted(_) | QmdCallError::TimedOut)
            }
            Self::Output { .. } | Self::Index(_) | Self::Starting | Self::Pausing(_) => false,
        }
    }

    /// True if `qmd` refuses a collection because it has it. It has no code of its own for this.
    pub(crate) fn says_exists(&self) -> bool {
        let Self::Command { error: QmdCallError::Failed { said, .. }, .. } = self else { return false };
        said.to_lowercase().contains("exists")
    }
}
