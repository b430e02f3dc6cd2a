//! Hints: requests of directives among words, for the run of their message alone (spec
//! `messages.md` §4). They are not kept in the session's row.

use openclaw_models::ThinkingLevel;
use openclaw_sessions::entry::{ElevatedLevel, ReasoningLevel, VerboseLevel};
use serde::{Deserialize, Serialize};

use super::ExecWish;
use crate::queue::QueueWish;

/// Settings of one run. Stored with its message as JSON: fields may be added, none changes its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hints {
    /// `/model` and `/<alias>`.
    #[serde(rename = "choice", skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelHint>,
    /// `/queue`: how this message waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueWish>,
    /// `/think`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
    /// `/verbose`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbose: Option<VerboseLevel>,
    /// `/reasoning`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// `/elevated`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elevated: Option<ElevatedLevel>,
    /// `/exec`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecWish>,
    /// Commands that are answered at once, and not in the run: names of their rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shortcuts: Vec<String>,
}

impl Hints {
    /// True if a run under way can't fulfil them.
    pub fn need_own_run(&self) -> bool {
        self.model.is_some()
            || self.thinking.is_some()
            || self.verbose.is_some()
            || self.reasoning.is_some()
            || self.exec.is_some()
            || self.elevated.is_some()
    }
}

/// A model that is asked for, maybe with a credential of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelHint {
    /// Name as it was written.
    pub model: String,
    /// Id of a credential profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// `/reasoning`: visibility of the model's thoughts. The row has no word for `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reasoning {
    /// Thoughts are not shown.
    Off,
    /// Thoughts are sent as a message.
    On,
    /// Thoughts are shown while the model thinks.
    Stream,
}

impl Reasoning {
    /// Name of the level, as it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Stream => "stream",
        }
    }

    /// Level in the form of a session's row; `None` is off.
    pub fn in_row(self) -> Option<ReasoningLevel> {
        match self {
            Self::Off => None,
            Self::On => Some(ReasoningLevel::On),
            Self::Stream => Some(ReasoningLevel::Stream),
        }
    }

    /// Reads the level of a session's row.
    pub fn of_row(level: Option<ReasoningLevel>) -> Self {
        match level {
            None => Self::Off,
            Some(ReasoningLevel::On) => Self::On,
            Some(ReasoningLevel::Stream) => Self::Stream,
        }
    }
}
