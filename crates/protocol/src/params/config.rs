//! `config.*` (spec `gateway-protocol.md` §6.7), and what is told after a restart (`operations.md` §2.3).

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

use super::NonEmpty;

super::calls! {
    /// The config file and what it means, secrets redacted.
    ConfigGet: "config.get" as Strict, super::Nothing => ConfigGetResult;
    /// JSON Schema of the config file with hints for forms.
    ConfigSchema: "config.schema" as Strict, super::Nothing => ConfigSchemaResult;
    /// Replaces the config.
    ConfigSet: "config.set" as Strict, ConfigSetParams => ConfigWritten;
    /// Replaces the config, and restarts where that is needed.
    ConfigApply: "config.apply" as Strict, ConfigChangeParams => ConfigWritten;
    /// Changes the config by a merge patch, and restarts where that is needed.
    ConfigPatch: "config.patch" as Strict, ConfigChangeParams => ConfigWritten;
    /// Restarts with the program that was installed meanwhile.
    UpdateRun: "update.run" as Strict, UpdateRunParams => UpdateRunResult;
}

/// Params of `config.set`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigSetParams {
    /// The whole config, as JSON5.
    pub raw: NonEmpty,
    /// Hash of the text that it was made from; needed where the file exists.
    pub base_hash: Option<NonEmpty>,
}

/// Params of `config.apply` and `config.patch`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigChangeParams {
    /// The whole config or a merge patch, as JSON5.
    pub raw: NonEmpty,
    /// Hash of the text that it was made from; needed where the file exists.
    pub base_hash: Option<NonEmpty>,
    /// The session that is told.
    pub session_key: Option<String>,
    /// What it is told.
    pub note: Option<String>,
    /// Time until a restart, in milliseconds; 2000 if absent, 60000 at most.
    pub restart_delay_ms: Option<u64>,
}

/// Result of `config.set`, `config.apply` and `config.patch`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigWritten {
    /// Always true.
    pub ok: bool,
    /// The file.
    pub path: String,
    /// The value with defaults, secrets redacted.
    pub config: Value,
    /// The restart that the change needs; absent where it is in force already.
    pub restart: Option<ScheduledRestart>,
    /// What is told after the restart.
    pub sentinel: Option<StoredSentinel>,
}

/// A restart that comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledRestart {
    /// Always true.
    pub ok: bool,
    /// The process, which stays the same.
    pub pid: u32,
    /// As if this signal came: `SIGUSR1`.
    pub signal: String,
    /// Time until then.
    pub delay_ms: u64,
    /// Why.
    pub reason: Option<String>,
    /// `emit`: no signal is sent.
    pub mode: String,
}

/// What is told after a restart, and where it waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredSentinel {
    /// The file.
    pub path: String,
    /// What is told.
    pub payload: RestartSentinel,
}

/// What a session is told after a restart.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestartSentinel {
    /// What led to it.
    pub kind: RestartKind,
    /// What came of that.
    pub status: RestartStatus,
    /// Unix milliseconds.
    pub ts: i64,
    /// Who is told; the main session if absent.
    pub session_key: Option<String>,
    /// Where that session was talked in.
    pub delivery_context: Option<SentinelRoute>,
    /// The thread there.
    pub thread_id: Option<String>,
    /// A note of whoever asked.
    #[serialize_always]
    pub message: Option<String>,
    /// What to run if something is wrong.
    pub doctor_hint: Option<String>,
    /// More about it.
    pub stats: Option<RestartStats>,
}

/// What led to a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartKind {
    /// Somebody asked for it.
    Restart,
    /// A change of the config.
    ConfigApply,
    /// Another program.
    Update,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartStatus {
    /// It was done.
    Ok,
    /// It failed.
    Error,
    /// There was nothing to do.
    Skipped,
}

/// Where a session was talked in.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentinelRoute {
    /// Channel id.
    pub channel: Option<String>,
    /// Target.
    pub to: Option<String>,
    /// Account.
    pub account_id: Option<String>,
}

/// More about a restart.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestartStats {
    /// The method or action.
    pub mode: Option<String>,
    /// The config file.
    pub root: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// Params of `update.run`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateRunParams {
    /// The session that is told.
    pub session_key: Option<String>,
    /// What it is told.
    pub note: Option<String>,
    /// Time until the restart, in milliseconds.
    pub restart_delay_ms: Option<u64>,
    /// How long it may take; nothing here takes long.
    pub timeout_ms: Option<NonZeroU64>,
}

/// Result of `update.run`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateRunResult {
    /// Whether the request was understood: always true.
    pub ok: bool,
    /// What was done.
    pub result: UpdateOutcome,
    /// The restart into the new program.
    pub restart: Option<ScheduledRestart>,
    /// What is told after it.
    pub sentinel: Option<StoredSentinel>,
}

/// What an update did.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateOutcome {
    /// What came of it.
    pub status: RestartStatus,
    /// How this program is installed: `binary`.
    pub mode: String,
    /// The program.
    pub root: Option<String>,
    /// Why nothing was done.
    pub reason: Option<String>,
    /// What was run: nothing.
    pub steps: Vec<Value>,
    /// How long it took.
    pub duration_ms: u64,
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
