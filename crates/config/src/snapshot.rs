//! Snapshot of one reading of the config file.

use std::path::PathBuf;

use openclaw_protocol::params::config::{ConfigGetResult, ConfigIssue};
use serde_json::Value;

use crate::redact::{redact, redact_text};

/// Ending of OpenClaw's texts about old keys.
pub(crate) const MOVED: &str = " (auto-migrated on load).";

/// Kind of a finding about the config, for code that acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConfigIssueKind {
    /// The text is no JSON5.
    Syntax,
    /// No version knows the key.
    UnknownKey,
    /// A variable that the config names is not set.
    MissingVariable,
    /// An included file is missing or can't be used.
    Include,
    /// Any other fault.
    #[default]
    Other,
}

/// Finding about the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Kind of the finding. Not sent on the wire.
    pub kind: ConfigIssueKind,
    /// Dotted path with numeric indices; empty is the root.
    pub path: String,
    /// Description of the fault, in the texts that OpenClaw's clients know (spec `config.md` §4.1).
    pub message: String,
    /// The known key that an unknown one looks like. Shown to people, not sent on the wire.
    pub suggestion: Option<String>,
    /// Value found and choices that would have fitted, or the place in the text. Shown to people,
    /// not sent on the wire.
    pub detail: Option<String>,
}

impl Issue {
    /// A finding without advice.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: ConfigIssueKind::Other,
            path: path.into(),
            message: message.into(),
            suggestion: None,
            detail: None,
        }
    }

    /// The same with a detail.
    #[must_use]
    pub fn detailed(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Issue as one line for people: `gateway: Unrecognized key: "prot" (did you mean "port"?)`.
    pub fn line(&self) -> String {
        let path = if self.path.is_empty() { "<root>" } else { &self.path };
        // An old key that is an issue was not moved, although OpenClaw's text says so.
        let message = self.message.strip_suffix(MOVED).unwrap_or(&self.message);
        match self.advice() {
            Some(advice) => format!("{path}: {message} ({advice})"),
            None => format!("{path}: {message}"),
        }
    }

    /// True if a key of an older version was found. It is moved on load once nothing else is wrong.
    pub fn is_old_key(&self) -> bool {
        self.message.ends_with(MOVED)
    }

    /// Returns the issue to name where only one is: the first that is no old key, if there is one.
    pub fn foremost(issues: &[Self]) -> Option<&Self> {
        issues.iter().find(|issue| !issue.is_old_key()).or(issues.first())
    }

    /// Issue as clients are told.
    pub fn to_wire(&self) -> ConfigIssue {
        ConfigIssue { path: self.path.clone(), message: self.message.clone() }
    }

    /// Advice for a person beyond the message.
    pub fn advice(&self) -> Option<String> {
        let meant = self.suggestion.as_ref().map(|key| format!("did you mean \"{key}\"?"));
        meant.or_else(|| self.detail.clone())
    }
}

/// The file as it was read; what `config.get` answers, before redaction.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigSnapshot {
    /// The file.
    pub path: PathBuf,
    /// True if the file exists.
    pub exists: bool,
    /// Text of the file; `None` when it does not exist or could not be read.
    pub raw: Option<String>,
    /// The parsed text, nothing resolved; an empty object when there is none.
    pub parsed: Value,
    /// True if the config may be used.
    pub valid: bool,
    /// Includes, variables and defaults applied; the parsed document when invalid.
    pub config: Value,
    /// Lower-case hexadecimal SHA-256 of the text; of the empty text when there is no file.
    pub hash: String,
    /// Reasons why it may not be used.
    pub issues: Vec<Issue>,
    /// Points to look at although it may be used.
    pub warnings: Vec<Issue>,
    /// Keys of older versions that were migrated in memory.
    pub legacy_issues: Vec<Issue>,
    /// Changes made by the migration in memory, one line a step.
    pub migrated: Vec<String>,
}

impl ConfigSnapshot {
    /// True if the text could be parsed, valid or not.
    pub fn is_parsable(&self) -> bool {
        self.raw.is_none() || !self.issues.iter().any(|issue| issue.kind == ConfigIssueKind::Syntax)
    }

    /// The answer to `config.get`: everything, secrets taken out.
    pub fn redacted(&self) -> ConfigGetResult {
        let hidden = |value: &Value| {
            let mut value = value.clone();
            redact(&mut value);
            value
        };
        let told = |issues: &[Issue]| issues.iter().map(Issue::to_wire).collect();
        ConfigGetResult {
            path: self.path.display().to_string(),
            exists: self.exists,
            raw: self.raw.as_deref().map(|raw| redact_text(raw, &self.config)),
            parsed: hidden(&self.parsed),
            valid: self.valid,
            config: hidden(&self.config),
            hash: self.hash.clone(),
            issues: told(&self.issues),
            warnings: told(&self.warnings),
            legacy_issues: told(&self.legacy_issues),
        }
    }
}
