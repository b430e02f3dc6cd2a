//! The seam to what runs programs.

use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

/// A call of `qmd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QmdCall {
    /// The program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Whole environment of the program.
    pub environment: Vec<(String, String)>,
    /// Directory in which it starts.
    pub directory: PathBuf,
    /// Time limit.
    pub limit: Duration,
}

/// Reasons for which a call gives no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QmdCallError {
    /// The program can't be started.
    NotStarted(String),
    /// The program did not end in time, and was killed.
    TimedOut,
    /// The program ended with a code other than 0, or by a signal.
    Failed {
        /// The code; `None` for a signal.
        code: Option<i32>,
        /// The end of what it said.
        said: String,
    },
    /// The program printed more than anybody reads, and was killed.
    TooMuchOutput,
}

/// Future result of a call: what the program prints.
pub type QmdRunning<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, QmdCallError>> + Send + 'a>>;

/// Runs programs, so that they end in time with all that they start, and that what they print is bounded. A call whose
/// future is dropped is killed.
pub trait QmdPrograms: Send + Sync {
    /// Runs one to its end.
    fn run(&self, call: QmdCall) -> QmdRunning<'_>;
}
