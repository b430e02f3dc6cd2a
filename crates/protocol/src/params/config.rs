//! `config.get`, `config.schema` (spec `gateway-protocol.md` §6.7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

super::calls! {
    /// The config file and what it means, secrets redacted.
    ConfigGet: "config.get" as Strict, super::Nothing => ConfigGetResult;
    /// JSON Schema of the config file with hints for forms.
    ConfigSchema: "config.schema" as Strict, super::Nothing => ConfigSchemaResult;
}

/// Result of `config.get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigGetResult {
    /// The file.
    pub path: String,
    /// Whether it exists.
    pub exists: bool,
    /// Its text; `null` when it does not exist.
    pub raw: Option<String>,
    /// Its value; `{}` when it does not exist or can't be read.
    pub parsed: Value,
    /// Whether it is valid.
    pub valid: bool,
    /// The value with defaults.
    pub config: Value,
    /// Lower-case hex SHA-256 of the text.
    pub hash: String,
    /// What is wrong with it.
    pub issues: Vec<ConfigIssue>,
    /// What is doubtful.
    pub warnings: Vec<ConfigIssue>,
    /// What `doctor` would migrate.
    pub legacy_issues: Vec<ConfigIssue>,
}

/// One remark about the config file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigIssue {
    /// Dotted path.
    pub path: String,
    /// For people.
    pub message: String,
}

/// Result of `config.schema`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigSchemaResult {
    /// JSON Schema draft-07.
    pub schema: Value,
    /// By path: label, help, group, order, …
    pub ui_hints: Value,
    /// Version of the gateway.
    pub version: String,
    /// ISO 8601.
    pub generated_at: String,
}
