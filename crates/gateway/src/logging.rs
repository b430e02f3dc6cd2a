//! The log: JSON lines in a file, as OpenClaw's tools read them, and lines for people on the console
//! (spec `operations.md` §4).
//!
//! `capture` turns events into records on the spot; everything slow (masking secrets, formatting, writing, rotating)
//! happens on one thread of its own.

mod capture;
mod console;
mod file;
mod record;
mod redact;
mod sink;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::settings::{ConsoleStyle, LogLevel, Logging, RedactSensitive};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use redact::Redactor;
pub use sink::LogGuard;

/// Log settings: levels and targets.
#[derive(Debug, Clone)]
pub struct LogPlan {
    /// Log file, if there is one.
    pub file: Option<LogFile>,
    /// Level of the file.
    pub file_level: LogLevel,
    /// Level of the console.
    pub console_level: LogLevel,
    /// Look of the console.
    pub console_style: ConsoleStyle,
    /// True if the console may use colour.
    pub colour: bool,
    /// Rules for masking secrets.
    pub redactor: Arc<Redactor>,
}

/// Path of the log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFile {
    /// `openclaw-<date>.log` in a directory; a new one every day.
    Daily(PathBuf),
    /// Always the same file.
    Fixed(PathBuf),
}

impl LogFile {
    /// The file that is written today.
    pub fn current(&self) -> PathBuf {
        match self {
            Self::Daily(dir) => file::daily_path(dir, jiff::Zoned::now().date()),
            Self::Fixed(path) => path.clone(),
        }
    }
}

impl LogPlan {
    /// The plan of a config. `is_terminal` and `no_colour` are of the console; under `journald` there is a file only when
    /// the config names one, so that nothing is kept twice.
    pub fn new(logging: &Logging, log_dir: &Path, console: ConsoleFacts) -> Self {
        let file = match &logging.file {
            Some(path) => Some(LogFile::Fixed(PathBuf::from(path))),
            None if console.is_journald => None,
            None => Some(LogFile::Daily(log_dir.to_owned())),
        };
        let plain = if console.is_terminal { ConsoleStyle::Pretty } else { ConsoleStyle::Compact };
        let least = if console.verbose { LogLevel::Debug } else { LogLevel::Silent };
        Self {
            file,
            file_level: logging.level,
            console_level: logging.console_level.max(least),
            console_style: logging.console_style.unwrap_or(plain),
            colour: console.is_terminal && !console.no_colour,
            redactor: Arc::new(match logging.redact_sensitive {
                RedactSensitive::Off => Redactor::off(),
                RedactSensitive::Tools => Redactor::new(&logging.redact_patterns),
            }),
        }
    }

    /// Starts logging for the whole process. The guard flushes the log when it is dropped. When
    /// another subscriber is installed already (tests), that one stays.
    pub fn install(self) -> LogGuard {
        let most = self.file_level.max(self.console_level);
        let (sender, guard) = sink::start(self);
        let layer = capture::Capture::new(sender, most);
        // An error means that there is a subscriber already.
        let _ = tracing_subscriber::registry().with(layer).try_init();
        guard
    }
}

/// Facts about the console.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConsoleFacts {
    /// True if the console is a terminal.
    pub is_terminal: bool,
    /// `NO_COLOR` or `--no-color`.
    pub no_colour: bool,
    /// `--verbose`.
    pub verbose: bool,
    /// `JOURNAL_STREAM` is set: systemd keeps the output.
    pub is_journald: bool,
}
