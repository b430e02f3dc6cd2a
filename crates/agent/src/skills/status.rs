//! Status of each skill, for `skills.status` and `openclaw skills` (spec `gateway-protocol.md`
//! §6.6).

use std::collections::BTreeSet;
use std::path::Path;

use openclaw_config::Config;
use openclaw_protocol::params::skills::{
    SkillConfigCheck, SkillInstallOption, SkillNeeds, SkillStatus, SkillsStatusResult,
};

use super::here::Here;
use super::install_option::{Preference, offered};
use super::library::Library;
use super::skill::Skill;
use super::source::{SkillSource, managed_dir, roots};
use super::standing::Standing;
use crate::requirements::{BinPath, RequirementEnv, Requirements, Strictness};

/// Reads the status of all skills of a workspace. Blocking.
pub fn status(config: &Config, workspace: &Path) -> SkillsStatusResult {
    let library = Library::read(&roots(config, workspace));
    let here = Here::new(config);
    let prefers_brew = config.skills.install.prefer_brew.unwrap_or(true);
    let preference = Preference { brew_first: prefers_brew && here.has_bin("brew") };
    SkillsStatusResult {
        workspace_dir: workspace.display().to_string(),
        managed_skills_dir: managed_dir(config).display().to_string(),
        skills: library.skills.iter().map(|skill| row(skill, config, &here, preference)).collect(),
    }
}

/// Every program that skills of these workspaces name, each once. Blocking.
pub fn bins<'w>(config: &Config, workspaces: impl Iterator<Item = &'w Path>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for workspace in workspaces {
        let library = Library::read(&roots(config, workspace));
        found.extend(library.skills.iter().flat_map(Skill::bins).map(str::to_owned));
    }
    found
}

/// Every program that skills name outside of workspaces, each once: agents write into those. Neither the skill nor the program lies
/// where a sandbox may write. Blocking.
pub fn trusted_bins(config: &Config) -> BTreeSet<String> {
    let roots = roots(config, Path::new("")).into_iter().filter(|root| root.source != SkillSource::Workspace);
    let library = Library::read(&roots.collect::<Vec<_>>());
    let sandboxes = config.sandbox_writable();
    let first = BinPath::new(config.environment().get("PATH").unwrap_or_default());
    let is_open = |program: &&str| first.find(program).is_some_and(|path| sandboxes.holds(&path));
    let skills = library.skills.iter().filter(|skill| !sandboxes.holds(&skill.file_path));
    skills.flat_map(Skill::bins).filter(|program| !is_open(program)).map(str::to_owned).collect()
}

fn row(skill: &Skill, config: &Config, here: &Here<'_>, preference: Preference) -> SkillStatus {
    let standing = Standing::of(skill, &config.skills, here);
    let check = |path: &String| SkillConfigCheck { path: path.clone(), satisfied: here.has_config(path) };
    let install = offered(&skill.install, preference).into_iter().map(|spec| SkillInstallOption {
        id: spec.id.clone(),
        kind: spec.installer.kind().to_owned(),
        label: spec.shown(config.skills.install.node_manager),
        bins: spec.bins.clone(),
    });
    SkillStatus {
        name: skill.name.clone(),
        description: skill.description.clone(),
        source: skill.source.as_str().to_owned(),
        bundled: skill.source == SkillSource::Bundled,
        file_path: skill.file_path.display().to_string(),
        base_dir: skill.base_dir.display().to_string(),
        skill_key: skill.key.clone(),
        primary_env: skill.primary_env.clone(),
        emoji: skill.emoji.clone(),
        homepage: skill.homepage.clone(),
        always: skill.strictness == Strictness::PlatformOnly,
        disabled: standing.is_disabled,
        blocked_by_allowlist: standing.is_blocked,
        eligible: standing.is_eligible(),
        requirements: needs(skill.requirements.clone()),
        missing: needs(standing.missing),
        config_checks: skill.requirements.config.iter().map(check).collect(),
        install: install.collect(),
    }
}

fn needs(requirements: Requirements) -> SkillNeeds {
    let Requirements { bins, any_bins, env, config, os } = requirements;
    SkillNeeds { bins, any_bins, env, config, os }
}
