//! `models.list` (spec `gateway-protocol.md` §6.6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;

super::calls! {
    /// The whole catalogue.
    ModelsList: "models.list" as Strict, super::Nothing => ModelsListResult;
}

/// Result of `models.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelsListResult {
    /// Every known model.
    pub models: Vec<ModelChoice>,
}

/// One model.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelChoice {
    /// Id at its provider.
    pub id: String,
    /// For people.
    pub name: String,
    /// Provider id.
    pub provider: String,
    /// Tokens.
    pub context_window: Option<u64>,
    /// Whether it can think.
    pub reasoning: Option<bool>,
    /// `text`, `image`.
    pub input: Option<Vec<String>>,
}
