//! A handler that is a program, and the seam to what runs it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use openclaw_config::Secret;

/// A program that reads one JSON value and writes one.
#[derive(Debug, Clone)]
pub struct Program {
    /// The hook it belongs to, for the log.
    pub hook: String,
    /// The file and its arguments.
    pub command: Vec<OsString>,
    /// Working directory of the program.
    pub dir: PathBuf,
    /// Variables of its own (`hooks.internal.entries.<hook>.env`).
    pub env: Vec<(String, Secret)>,
}

/// Future result of a program: its standard output.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, ProgramError>> + Send + 'a>>;

/// Runs programs, so that they end in time whatever they do, and inherit no secrets.
pub trait Programs: Send + Sync {
    /// Gives a program its input and takes what it prints.
    fn run<'a>(&'a self, program: &'a Program, input: Vec<u8>, limit: Duration) -> Running<'a>;
}

/// Error of a program. Logged; the work goes on as if there were no such handler.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The program could not be started.
    #[error("cannot be started: {0}")]
    Start(std::io::Error),
    /// The program did not end in time and was killed, with all its child processes.
    #[error("did not end within {0:?} and was killed")]
    TimedOut(Duration),
    /// The program printed more than the limit and was killed.
    #[error("printed more than {0} bytes and was killed")]
    TooMuchOutput(usize),
    /// The program exited with an error.
    #[error("ended with {status}{}", told(.stderr))]
    Failed {
        /// `exit code 1`, `signal 9`.
        status: String,
        /// The end of what it said, on one line.
        stderr: String,
    },
}

fn told(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
}
