//! Determines if a skill can be used, and what prevents it (spec `agent-runtime.md` §6.3). Pure.

use openclaw_config::settings::{SkillEntry, Skills};
use secrecy::ExposeSecret as _;

use super::skill::Skill;
use super::source::SkillSource;
use crate::requirements::{RequirementEnv, Requirements};

/// Obstacles that keep a skill from being used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    /// `skills.entries.<key>.enabled` is false.
    pub(super) is_disabled: bool,
    /// The skill is bundled and is not in `skills.allowBundled`.
    pub(super) is_blocked: bool,
    /// Requirements that are not met.
    pub(super) missing: Requirements,
}

impl Standing {
    /// Determines the standing of a skill under this configuration, on this host.
    pub(super) fn of(skill: &Skill, config: &Skills, here: &impl RequirementEnv) -> Self {
        let entry = entry_of(skill, config);
        let here = ForSkill { here, entry, primary_env: skill.primary_env.as_deref() };
        Self {
            is_disabled: entry.is_some_and(|entry| entry.enabled == Some(false)),
            is_blocked: is_blocked(skill, config.allow_bundled.as_deref()),
            missing: skill.requirements.missing(skill.strictness, &here),
        }
    }

    /// Returns true if nothing keeps the skill from being used.
    pub(super) fn is_eligible(&self) -> bool {
        !self.is_disabled && !self.is_blocked && self.missing.is_empty()
    }
}

/// Returns the configuration of a skill: by its key, else by its name.
pub(super) fn entry_of<'c>(skill: &Skill, config: &'c Skills) -> Option<&'c SkillEntry> {
    config.entries.get(&skill.key).or_else(|| config.entries.get(&skill.name))
}

fn is_blocked(skill: &Skill, allowed: Option<&[String]>) -> bool {
    let named = |name: &String| [&skill.key, &skill.name].contains(&&name.trim().to_owned());
    let Some(allowed) = allowed else { return false };
    let is_any = |name: &String| !name.trim().is_empty();
    skill.source == SkillSource::Bundled && allowed.iter().any(is_any) && !allowed.iter().any(named)
}

/// Environment of one skill: the host plus the skill's own variables.
struct ForSkill<'a, S> {
    here: &'a S,
    entry: Option<&'a SkillEntry>,
    primary_env: Option<&'a str>,
}

impl<S: RequirementEnv> RequirementEnv for ForSkill<'_, S> {
    fn has_bin(&self, name: &str) -> bool {
        self.here.has_bin(name)
    }

    fn has_env(&self, name: &str) -> bool {
        let is_given = |entry: &SkillEntry| {
            let value = entry.env.get(name).map(|value| value.expose_secret());
            let key = entry.api_key.as_ref().map(|key| key.expose_secret());
            let key = key.filter(|_| self.primary_env == Some(name));
            [value, key].into_iter().flatten().any(|value| !value.is_empty())
        };
        self.here.has_env(name) || self.entry.is_some_and(is_given)
    }

    fn has_config(&self, path: &str) -> bool {
        self.here.has_config(path)
    }

    fn is_platform(&self, name: &str) -> bool {
        self.here.is_platform(name)
    }
}

#[cfg(test)]
mod tests;
