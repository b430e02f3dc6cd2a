//! `ui.*`.

use serde::Deserialize;

/// `ui`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Ui {
    /// Looks of the assistant.
    pub assistant: Assistant,
}

/// `ui.assistant`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Assistant {
    /// Name.
    pub name: Option<String>,
    /// Picture: URL, data URI or letters.
    pub avatar: Option<String>,
}
