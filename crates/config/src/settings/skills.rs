//! `skills.*`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Secret;

/// `skills`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Skills {
    /// Bundled skills that may load; absent is all.
    pub allow_bundled: Option<Vec<String>>,
    /// Where else to look.
    pub load: SkillsLoad,
    /// Settings by skill.
    pub entries: BTreeMap<String, SkillEntry>,
}

/// `skills.load`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SkillsLoad {
    /// Directories of further skills.
    pub extra_dirs: Vec<String>,
    /// Notice edits; default true.
    pub watch: Option<bool>,
    /// Quiet time in milliseconds; default 250.
    pub watch_debounce_ms: Option<u64>,
}

/// `skills.entries.<name>`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SkillEntry {
    /// `false` switches it off.
    pub enabled: Option<bool>,
    /// Value of its primary variable.
    pub api_key: Option<Secret>,
    /// Variables during its runs; values may be secrets.
    pub env: BTreeMap<String, Secret>,
}
