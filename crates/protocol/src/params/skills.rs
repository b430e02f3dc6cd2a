//! `skills.*` (spec `gateway-protocol.md` §6.6).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;

use super::NonEmpty;

super::calls! {
    /// The skills of an agent, and what keeps them from being used.
    SkillsStatus: "skills.status" as Strict, SkillsStatusParams => SkillsStatusResult;
    /// The programs that skills of any agent name, for nodes that may have them.
    SkillsBins: "skills.bins" as Strict, super::Nothing => SkillsBinsResult;
    /// Installs what a skill of the default agent needs.
    SkillsInstall: "skills.install" as Strict, SkillsInstallParams => SkillsInstallResult;
    /// Changes a skill's settings.
    SkillsUpdate: "skills.update" as Strict, SkillsUpdateParams => SkillsUpdateResult;
}

/// Params of `skills.status`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillsStatusParams {
    /// Whose; the default agent's if absent.
    pub agent_id: Option<NonEmpty>,
}

/// Result of `skills.status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsStatusResult {
    /// The agent's workspace.
    pub workspace_dir: String,
    /// Where the skills of all agents lie.
    pub managed_skills_dir: String,
    /// In the order of the prompt.
    pub skills: Vec<SkillStatus>,
}

/// One skill.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillStatus {
    /// What it is called.
    pub name: String,
    /// When it is used.
    pub description: String,
    /// `openclaw-extra`, `openclaw-bundled`, `openclaw-managed` or `openclaw-workspace`.
    pub source: String,
    /// Whether it comes with the product.
    pub bundled: bool,
    /// Its file.
    pub file_path: String,
    /// The directory of that.
    pub base_dir: String,
    /// Its key in `skills.entries`.
    pub skill_key: String,
    /// The variable that its API key goes into.
    pub primary_env: Option<String>,
    /// A symbol to show.
    pub emoji: Option<String>,
    /// Where to read about it.
    pub homepage: Option<String>,
    /// Whether its needs do not count.
    pub always: bool,
    /// Whether it is switched off.
    pub disabled: bool,
    /// Whether `skills.allowBundled` leaves it out.
    pub blocked_by_allowlist: bool,
    /// Whether it can be used.
    pub eligible: bool,
    /// What it needs.
    pub requirements: SkillNeeds,
    /// What of that is not there.
    pub missing: SkillNeeds,
    /// The configuration it needs, one by one.
    pub config_checks: Vec<SkillConfigCheck>,
    /// How what it needs can be installed.
    pub install: Vec<SkillInstallOption>,
}

/// What a skill needs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillNeeds {
    /// Programs, all of them.
    pub bins: Vec<String>,
    /// Programs, one of them.
    pub any_bins: Vec<String>,
    /// Variables.
    pub env: Vec<String>,
    /// Paths of the configuration.
    pub config: Vec<String>,
    /// Platforms, one of them.
    pub os: Vec<String>,
}

/// A path of the configuration that a skill needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillConfigCheck {
    /// Dotted.
    pub path: String,
    /// Whether it is truthy. What it is set to is not told: it may be a secret.
    pub satisfied: bool,
}

/// A way to install what a skill needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillInstallOption {
    /// For `skills.install`.
    pub id: String,
    /// `brew`, `node`, `go`, `uv` or `download`.
    pub kind: String,
    /// For people.
    pub label: String,
    /// Programs it brings.
    pub bins: Vec<String>,
}

/// Result of `skills.bins`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillsBinsResult {
    /// Sorted.
    pub bins: Vec<String>,
}

/// Params of `skills.install`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillsInstallParams {
    /// The skill.
    pub name: NonEmpty,
    /// Which of its installers.
    pub install_id: NonEmpty,
    /// How long it may take, in milliseconds; five minutes unless given, fifteen at most.
    #[schemars(range(min = 1000))]
    pub timeout_ms: Option<u64>,
}

/// Result of `skills.install`; also the payload of a failed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillsInstallResult {
    /// Whether it is installed.
    pub ok: bool,
    /// For people.
    pub message: String,
    /// What the installer printed, the end of it.
    pub stdout: String,
    /// The same, of its errors.
    pub stderr: String,
    /// Its exit code, where it ran and ended by itself.
    pub code: Option<i32>,
}

/// Params of `skills.update`: what is absent stays.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillsUpdateParams {
    /// Its key in `skills.entries`.
    pub skill_key: NonEmpty,
    /// Whether it may be used.
    pub enabled: Option<bool>,
    /// Value of its primary variable; blank removes it.
    pub api_key: Option<String>,
    /// Variables of commands by name; a blank value removes one.
    pub env: Option<BTreeMap<String, String>>,
}

/// Result of `skills.update`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsUpdateResult {
    /// Always true.
    pub ok: bool,
    /// As given.
    pub skill_key: String,
    /// Its settings now, without secrets.
    pub config: Map<String, Value>,
}
