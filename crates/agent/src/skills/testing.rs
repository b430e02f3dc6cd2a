//! Skills for tests.

use std::path::PathBuf;

use super::skill::{CommandUse, ForModel, Skill};
use super::source::SkillSource;
use crate::requirements::{Requirements, Strictness};

/// A skill of the workspace `/w` that needs nothing.
pub(super) fn skill(name: &str) -> Skill {
    let base_dir = PathBuf::from("/w/skills").join(name);
    Skill {
        name: name.to_owned(),
        description: format!("About {name}"),
        source: SkillSource::Workspace,
        file_path: base_dir.join("SKILL.md"),
        base_dir,
        key: name.to_owned(),
        emoji: None,
        homepage: None,
        primary_env: None,
        requirements: Requirements::default(),
        strictness: Strictness::AsListed,
        install: Vec::new(),
        for_model: ForModel::Listed,
        command: CommandUse::Prompt,
    }
}
