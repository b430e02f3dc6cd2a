//! Origins of skills, in order of precedence (spec `agent-runtime.md` §6.1).

use std::path::{Path, PathBuf};

use openclaw_config::Config;
use serde::{Serialize, Serializer};

/// Names the directory of the skills that come with the product.
const BUNDLED_VARIABLE: &str = "OPENCLAW_BUNDLED_SKILLS_DIR";
/// The directory of skills in the state directory, in a workspace, and next to the executable.
const DIRECTORY: &str = "skills";

/// Origin of a skill. A later one wins over an earlier one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkillSource {
    /// Skill from `skills.load.extraDirs`.
    Extra,
    /// The skill is part of the product.
    Bundled,
    /// Skill from the state directory, for all agents.
    Managed,
    /// Skill from the agent's workspace.
    Workspace,
}

impl SkillSource {
    /// The name that clients know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Extra => "openclaw-extra",
            Self::Bundled => "openclaw-bundled",
            Self::Managed => "openclaw-managed",
            Self::Workspace => "openclaw-workspace",
        }
    }
}

impl Serialize for SkillSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A directory that skills lie in. It need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Root {
    /// Origin of these skills.
    pub source: SkillSource,
    /// Absolute.
    pub dir: PathBuf,
}

/// The directories of an agent with this workspace, those that win last.
pub fn roots(config: &Config, workspace: &Path) -> Vec<Root> {
    let environment = config.environment();
    let extra = config.skills.load.extra_dirs.iter().map(|dir| dir.trim()).filter(|dir| !dir.is_empty());
    let extra = extra.map(|dir| Root { source: SkillSource::Extra, dir: environment.expand_path(dir) });
    let bundled = bundled_dir(config).map(|dir| Root { source: SkillSource::Bundled, dir });
    let managed = Root { source: SkillSource::Managed, dir: managed_dir(config) };
    let own = Root { source: SkillSource::Workspace, dir: workspace.join(DIRECTORY) };
    extra.chain(bundled).chain([managed, own]).collect()
}

/// The skills of all agents.
pub(super) fn managed_dir(config: &Config) -> PathBuf {
    config.paths().state_dir().join(DIRECTORY)
}

fn bundled_dir(config: &Config) -> Option<PathBuf> {
    let environment = config.environment();
    match environment.get_nonblank(BUNDLED_VARIABLE) {
        Some(dir) => Some(environment.expand_path(dir)),
        None => Some(environment.executable()?.parent()?.join(DIRECTORY)),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    #[test]
    fn the_workspace_comes_last_and_the_extra_directories_first() {
        let env = Environment::new([("HOME", "/h"), ("OPENCLAW_BUNDLED_SKILLS_DIR", "/opt/bundled")], "/cwd");
        let config = Config::from_json5("{skills: {load: {extraDirs: ['~/a', ' ', 'b']}}}", &env).unwrap();
        let found: Vec<(SkillSource, String)> = roots(&config, Path::new("/w"))
            .into_iter()
            .map(|root| (root.source, root.dir.display().to_string()))
            .collect();
        let expect = [
            (SkillSource::Extra, "/h/a"),
            (SkillSource::Extra, "/cwd/b"),
            (SkillSource::Bundled, "/opt/bundled"),
            (SkillSource::Managed, "/h/.openclaw/skills"),
            (SkillSource::Workspace, "/w/skills"),
        ];
        assert_eq!(found, expect.map(|(source, dir)| (source, dir.to_owned())));
        let bare = Config::from_json5("{}", &Environment::new([("HOME", "/h")], "/cwd")).unwrap();
        assert_eq!(roots(&bare, Path::new("/w")).len(), 2, "no executable is known");
    }
}
