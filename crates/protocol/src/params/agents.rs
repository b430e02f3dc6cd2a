//! `agents.*` (spec `gateway-protocol.md` §6.6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;

use super::NonEmpty;

super::calls! {
    /// The agents, default first.
    AgentsList: "agents.list" as Strict, super::Nothing => AgentsListResult;
    /// Adds an agent: config, workspace, sessions directory.
    AgentsCreate: "agents.create" as Strict, AgentsCreateParams => AgentsCreateResult;
    /// Changes an agent.
    AgentsUpdate: "agents.update" as Strict, AgentsUpdateParams => AgentsUpdateResult;
    /// Removes an agent; its directories go to the trash.
    AgentsDelete: "agents.delete" as Strict, AgentsDeleteParams => AgentsDeleteResult;
    /// The files of an agent's workspace that can be edited.
    AgentsFilesList: "agents.files.list" as Strict, AgentsFilesListParams => AgentsFilesListResult;
    /// Workspace file of an agent with its content.
    AgentsFilesGet: "agents.files.get" as Strict, AgentsFilesGetParams => AgentsFilesGetResult;
    /// Replaces the content of one of them.
    AgentsFilesSet: "agents.files.set" as Strict, AgentsFilesSetParams => AgentsFilesSetResult;
}

/// Result of `agents.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentsListResult {
    /// The default agent.
    pub default_id: String,
    /// The configured name of the main session.
    pub main_key: String,
    /// `per-sender` or `global`.
    pub scope: String,
    /// Configured order, default first.
    pub agents: Vec<AgentRow>,
}

/// One agent.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentRow {
    /// Its id.
    pub id: String,
    /// Its configured name.
    pub name: Option<String>,
    /// Its configured identity.
    pub identity: Option<IdentityRow>,
}

/// Identity in an [`AgentRow`].
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityRow {
    /// What it is called.
    pub name: Option<String>,
    /// What it is like.
    pub theme: Option<String>,
    /// Its emoji.
    pub emoji: Option<String>,
    /// As configured.
    pub avatar: Option<String>,
    /// A URL a page can show; a data URL for files of the workspace.
    pub avatar_url: Option<String>,
}

/// Params of `agents.create`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentsCreateParams {
    /// What it is called; its id is made of it.
    pub name: NonEmpty,
    /// Its workspace; `~` is the gateway's home.
    pub workspace: NonEmpty,
    /// For its `IDENTITY.md`.
    pub emoji: Option<String>,
    /// For its `IDENTITY.md`.
    pub avatar: Option<String>,
}

/// Result of `agents.create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentsCreateResult {
    /// Always true.
    pub ok: bool,
    /// Its id.
    pub agent_id: String,
    /// As given.
    pub name: String,
    /// Absolute.
    pub workspace: String,
}

/// Params of `agents.update`: what is absent stays.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentsUpdateParams {
    /// Which agent.
    pub agent_id: NonEmpty,
    /// Display name.
    pub name: Option<NonEmpty>,
    /// Its workspace.
    pub workspace: Option<NonEmpty>,
    /// `provider/id` or an alias.
    pub model: Option<NonEmpty>,
    /// For its `IDENTITY.md`.
    pub avatar: Option<String>,
}

/// Result of `agents.update`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentsUpdateResult {
    /// Always true.
    pub ok: bool,
    /// Its id.
    pub agent_id: String,
}

/// Params of `agents.delete`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentsDeleteParams {
    /// Which agent.
    pub agent_id: NonEmpty,
    /// Whether its directories go to the trash; default true.
    pub delete_files: Option<bool>,
}

/// Result of `agents.delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentsDeleteResult {
    /// Always true.
    pub ok: bool,
    /// Its id.
    pub agent_id: String,
    /// How many bindings went with it.
    pub removed_bindings: u64,
}

/// Params of `agents.files.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentsFilesListParams {
    /// Which agent.
    pub agent_id: NonEmpty,
}

/// Result of `agents.files.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentsFilesListResult {
    /// The agent.
    pub agent_id: String,
    /// Its workspace.
    pub workspace: String,
    /// All of them, whether they are there or not.
    pub files: Vec<AgentFile>,
}

/// One file of a workspace.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentFile {
    /// Such as `AGENTS.md`.
    pub name: String,
    /// Where it is, or would be.
    pub path: String,
    /// Whether it is not there.
    pub missing: bool,
    /// Bytes.
    pub size: Option<u64>,
    /// Unix milliseconds.
    pub updated_at_ms: Option<i64>,
    /// What it says; only where one file was asked for.
    pub content: Option<String>,
}

/// Params of `agents.files.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentsFilesGetParams {
    /// Which agent.
    pub agent_id: NonEmpty,
    /// Such as `AGENTS.md`.
    pub name: NonEmpty,
}

/// Result of `agents.files.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentsFilesGetResult {
    /// The agent.
    pub agent_id: String,
    /// Its workspace.
    pub workspace: String,
    /// The file, with its content when it is there.
    pub file: AgentFile,
}

/// Params of `agents.files.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentsFilesSetParams {
    /// Which agent.
    pub agent_id: NonEmpty,
    /// Such as `AGENTS.md`.
    pub name: NonEmpty,
    /// What it shall say.
    pub content: String,
}

/// Result of `agents.files.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentsFilesSetResult {
    /// Always true.
    pub ok: bool,
    /// The agent.
    pub agent_id: String,
    /// Its workspace.
    pub workspace: String,
    /// The file as it is now.
    pub file: AgentFile,
}
