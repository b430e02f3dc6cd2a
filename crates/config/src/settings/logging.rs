//! `logging.*`.

use serde::Deserialize;

/// `logging`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Logging {
    /// Level of the file.
    pub level: LogLevel,
    /// Level of the console.
    pub console_level: LogLevel,
    /// Path of the file instead of the dated one.
    pub file: Option<String>,
    /// Look of the console; absent is `pretty` on a terminal and `compact` elsewhere.
    pub console_style: Option<ConsoleStyle>,
    /// Masking of secrets in tool output.
    pub redact_sensitive: RedactSensitive,
    /// Regular expressions of further secrets.
    pub redact_patterns: Vec<String>,
}

/// A level; a greater one says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// No lines.
    Silent,
    /// Only what ends the process.
    Fatal,
    /// Errors, too.
    Error,
    /// Warnings, too.
    Warn,
    /// Information for an operator, too.
    #[default]
    Info,
    /// Decisions, too.
    Debug,
    /// All lines.
    Trace,
}

/// `logging.consoleStyle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConsoleStyle {
    /// Coloured.
    Pretty,
    /// Plain lines.
    Compact,
    /// JSON lines.
    Json,
}

/// `logging.redactSensitive`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedactSensitive {
    /// Nothing is masked.
    Off,
    /// Tool output is masked.
    #[default]
    Tools,
}
