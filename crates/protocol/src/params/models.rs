//! `models.list` (spec `gateway-protocol.md` §6.6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

super::call! {
    /// The whole catalogue.
    ModelsList: "models.list" as Strict, super::Nothing => ModelsListResult
}

/// Result of `models.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelsListResult {
    /// Every known model.
    pub models: Vec<ModelChoice>,
}

/// One model.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Whether it can think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// `text`, `image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Vec<String>>,
}
