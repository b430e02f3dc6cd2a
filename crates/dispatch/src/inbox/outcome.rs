//! How outcomes are stored: JSON in a column of the inbox. Fields may be added; none changes its meaning.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::RunOutcome;

/// The `outcome` column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "camelCase")]
pub(crate) enum StoredOutcome {
    Ok {
        result: Value,
    },
    Error {
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    Aborted {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
}

impl StoredOutcome {
    /// What is kept of an outcome: all but the prompt report, which is ten times the rest and of no use to a repeated key.
    pub(crate) fn of(outcome: RunOutcome) -> Self {
        match outcome {
            RunOutcome::Ok { result } => Self::Ok { result: without_report(result) },
            RunOutcome::Error { message, result } => {
                Self::Error { message, result: result.map(without_report) }
            }
            RunOutcome::Aborted { reason, result } => {
                Self::Aborted { reason, result: result.map(without_report) }
            }
        }
    }
}

impl From<StoredOutcome> for RunOutcome {
    fn from(outcome: StoredOutcome) -> Self {
        match outcome {
            StoredOutcome::Ok { result } => Self::Ok { result },
            StoredOutcome::Error { message, result } => Self::Error { message, result },
            StoredOutcome::Aborted { reason, result } => Self::Aborted { reason, result },
        }
    }
}

fn without_report(mut result: Value) -> Value {
    if let Some(meta) = result.get_mut("meta").and_then(Value::as_object_mut) {
        meta.shift_remove("systemPromptReport");
    }
    result
}
