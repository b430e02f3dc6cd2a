//! `skills.*`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use super::Secret;

/// `skills`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Skills {
    /// Bundled skills that may load; absent is all.
    pub allow_bundled: Option<Vec<String>>,
    /// Further directories to look in.
    pub load: SkillsLoad,
    /// Installation of programs that skills need.
    pub install: SkillsInstall,
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

impl SkillsLoad {
    const DEBOUNCE_MS: u64 = 250;

    /// True if edits are noticed.
    pub fn is_watched(&self) -> bool {
        self.watch.unwrap_or(true)
    }

    /// Time for which nothing may change before the skills are read again.
    pub fn debounce(&self) -> Duration {
        /// Maximum: a longer pause would mean that edits are not noticed.
        const MOST_MS: u64 = 60_000;
        Duration::from_millis(self.watch_debounce_ms.unwrap_or(Self::DEBOUNCE_MS).min(MOST_MS))
    }
}

/// `skills.install`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SkillsInstall {
    /// Take Homebrew where a skill names several installers; default true.
    pub prefer_brew: Option<bool>,
    /// Program that installs Node packages.
    pub node_manager: NodeManager,
}

/// `skills.install.nodeManager`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeManager {
    /// Comes with Node.
    #[default]
    Npm,
    /// pnpm.
    Pnpm,
    /// Yarn.
    Yarn,
    /// Bun.
    Bun,
}

impl NodeManager {
    /// The program.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }
}

impl fmt::Display for NodeManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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
