//! The skills that an agent can use, as its runs see them (spec `agent-runtime.md` §6.5).

use std::sync::{Arc, LazyLock, OnceLock};

use openclaw_config::Config;
use openclaw_protocol::AgentId;
use openclaw_sessions::entry::Json;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::command::{SkillCommand, commands};
use super::here::Here;
use super::library::Library;
use super::overlay::Overlay;
use super::prompt_text::PromptText;
use super::skill::Skill;
use super::standing::Standing;
use crate::prompt::SkillsReport;
use crate::requirements::RequirementEnv;

/// Prompts longer than this are said to be long, in bytes: they are part of every call of a model.
const LONG_PROMPT: usize = 60_000;
/// Bytes of a prompt's hash that a row keeps.
const HASH_BYTES: usize = 8;

/// Skills of an agent, as its runs get them. The same for all its sessions until something changes.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Text for the system prompt; blank without skills for the model.
    pub prompt: Arc<str>,
    /// Sizes of the skills' part, for the report of the prompt.
    pub report: SkillsReport,
    /// Environment variables added for commands.
    pub overlay: Arc<Overlay>,
    /// The skills that can be used, for commands.
    pub skills: Vec<Skill>,
    /// The part of it that a session's row keeps.
    pub mark: Option<Json>,
    pub(super) version: i64,
    commands: OnceLock<Vec<SkillCommand>>,
}

/// [`Snapshot::mark`]. Small, since every row has it: OpenClaw 2026.2.9 keeps the whole prompt here, and makes its own anew
/// where it finds none.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotMark<'a> {
    prompt_hash: String,
    skills: Vec<MarkedSkill<'a>>,
    version: i64,
}

/// The mark of an agent without skills, as OpenClaw 2026.2.9 writes it. Always the same, so that no row changes for it.
static NO_SKILLS: LazyLock<Option<Json>> =
    LazyLock::new(|| Json::of_row_field(&serde_json::json!({"prompt": "", "skills": [], "version": 0})).ok());

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MarkedSkill<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_env: Option<&'a str>,
}

impl<'a> MarkedSkill<'a> {
    fn of(skill: &'a Skill) -> Self {
        Self { name: &skill.name, primary_env: skill.primary_env.as_deref() }
    }
}

impl Snapshot {
    /// Builds the snapshot of an agent's library. Blocking: looks for the programs that skills
    /// need.
    pub(super) fn of(library: &Library, config: &Config, agent: &AgentId) -> Self {
        Self::with(library, config, agent, &Here::new(config))
    }

    fn with(library: &Library, config: &Config, agent: &AgentId, here: &impl RequirementEnv) -> Self {
        let wanted = config.agent_entry(agent).and_then(|entry| entry.skills.as_deref());
        let is_wanted = |skill: &&Skill| wanted.is_none_or(|names| names.contains(&skill.name));
        let can_be_used = |skill: &&Skill| Standing::of(skill, &config.skills, here).is_eligible();
        let skills: Vec<Skill> =
            library.skills.iter().filter(is_wanted).filter(can_be_used).cloned().collect();
        let PromptText { text, report } = PromptText::of(skills.iter());
        if text.len() > LONG_PROMPT {
            tracing::warn!(
                %agent, skills = report.entries.len(), bytes = text.len(),
                "the list of skills is long, and part of every call of a model; agents.list[].skills makes it shorter"
            );
        }
        let overlay = Arc::new(Overlay::of(skills.iter(), &config.skills));
        Self { prompt: text.into(), report, overlay, skills, ..Self::default() }
    }

    /// Returns the snapshot restricted to these skills. The row keeps the mark of the whole.
    #[must_use]
    pub fn only(&self, names: &[String], config: &Config) -> Self {
        let skills: Vec<Skill> =
            self.skills.iter().filter(|skill| names.contains(&skill.name)).cloned().collect();
        let PromptText { text, report } = PromptText::of(skills.iter());
        let overlay = Arc::new(Overlay::of(skills.iter(), &config.skills));
        let (mark, version) = (self.mark.clone(), self.version);
        Self { prompt: text.into(), report, overlay, skills, mark, version, commands: OnceLock::new() }
    }

    /// Returns the same snapshot with a version.
    pub(super) fn at_version(self, version: i64) -> Self {
        Self { mark: mark(&self.prompt, &self.skills, version), version, ..self }
    }

    /// Returns true if runs would see no difference.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.prompt == other.prompt && self.skills == other.skills && self.overlay == other.overlay
    }

    /// The slash commands of its skills. `is_reserved` tells which names mean something else, each time the same.
    pub fn commands(&self, is_reserved: fn(&str) -> bool) -> &[SkillCommand] {
        self.commands.get_or_init(|| commands(self.skills.iter(), is_reserved))
    }
}

fn mark(prompt: &str, skills: &[Skill], version: i64) -> Option<Json> {
    if skills.is_empty() {
        return NO_SKILLS.clone();
    }
    let hash = Sha256::digest(prompt.as_bytes());
    let prompt_hash = hash.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect();
    Json::of_row_field(&SnapshotMark {
        prompt_hash,
        skills: skills.iter().map(MarkedSkill::of).collect(),
        version,
    })
    .ok()
}

#[cfg(test)]
mod tests;
