//! What directives among words ask for, for the run of their message alone (spec `messages.md` §4). Nothing of it is kept in the
//! session's row.

use openclaw_models::ThinkingLevel;
use openclaw_sessions::entry::{ElevatedLevel, VerboseLevel};
use serde::{Deserialize, Serialize};

use super::elevated;
use super::exec::{self, ExecWish};
use super::levels::Reasoning;
use super::model::ModelChoice;
use crate::queue::QueueWish;

/// Settings of one run. Stored with its message as JSON: fields may be added, none changes its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Hints {
    /// `/model` and `/<alias>`.
    #[serde(rename = "choice", skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<ModelChoice>,
    /// `/queue`: how this message waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<QueueWish>,
    /// `/think`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<ThinkingLevel>,
    /// `/verbose`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verbose: Option<VerboseLevel>,
    /// `/reasoning`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning: Option<Reasoning>,
    /// `/elevated`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) elevated: Option<ElevatedLevel>,
    /// `/exec`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exec: Option<ExecWish>,
    /// Commands that are answered at once, and not in the run: names of their rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) shortcuts: Vec<String>,
}

impl Hints {
    /// The directive that says how commands are guarded, if there is one.
    pub(crate) fn of_guards(&self) -> Option<&'static str> {
        let exec = self.exec.as_ref().map(|_| exec::NAME);
        exec.or(self.elevated.map(|_| elevated::NAME))
    }

    /// Whether a run under way can't give what is asked for.
    pub(crate) fn need_own_run(&self) -> bool {
        self.model.is_some()
            || self.thinking.is_some()
            || self.verbose.is_some()
            || self.reasoning.is_some()
            || self.exec.is_some()
            || self.elevated.is_some()
    }
}
