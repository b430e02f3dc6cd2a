//! Skill as described by its file (spec `agent-runtime.md` §6.2).

use std::path::{Path, PathBuf};

use super::install_option::InstallSpec;
use super::source::SkillSource;
use crate::frontmatter::{Frontmatter, FrontmatterError, Manifest, MarkdownDocument};
use crate::place::Place;
use crate::requirements::{Requirements, Strictness};

/// Bytes of a file that are read: the settings stand at its head, the rest is for the model to read.
const HEAD_BYTES: u64 = 96 * 1024;

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Name; unique among the skills of an agent.
    pub name: String,
    /// Description that tells when to use the skill.
    pub description: String,
    /// Origin of the skill.
    pub source: SkillSource,
    /// Path of the skill's file.
    pub file_path: PathBuf,
    /// The directory that paths in the file start from.
    pub base_dir: PathBuf,
    /// Key of the skill in `skills.entries`.
    pub key: String,
    /// A symbol to show.
    pub emoji: Option<String>,
    /// Address of the skill's homepage.
    pub homepage: Option<String>,
    /// The variable that its API key goes into.
    pub primary_env: Option<String>,
    /// Requirements of the skill.
    pub requirements: Requirements,
    /// Strictness with which the requirements are checked.
    pub strictness: Strictness,
    /// Installers for the requirements.
    pub install: Vec<InstallSpec>,
    /// Visibility to the model.
    pub for_model: ForModel,
    /// Use as a chat command.
    pub command: CommandUse,
}

/// Visibility of a skill to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForModel {
    /// The skill is listed in the prompt.
    Listed,
    /// `disable-model-invocation`: only people call it.
    Hidden,
}

/// Use of a skill as a chat command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandUse {
    /// `user-invocable: false`.
    None,
    /// The agent is asked to use it.
    Prompt,
    /// `command-dispatch: tool`: this tool is called, without the model.
    Tool(String),
}

/// Reason why a file is not a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoSkill {
    /// `description` is missing or blank.
    #[error("has no description in the block between two lines of `---` at its head, not loaded")]
    NoDescription,
    /// The block can't be read.
    #[error("{0}, not loaded")]
    Frontmatter(FrontmatterError),
    /// The file can't be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

/// A skill and what is odd about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReadSkill {
    pub(super) skill: Skill,
    /// Warnings for the log.
    pub(super) oddities: Vec<String>,
}

/// Reads a file's head. Blocking.
pub(super) fn read(path: &Path, source: SkillSource) -> Result<ReadSkill, NoSkill> {
    let head = Place::anywhere(path).and_then(|place| place.read_head(HEAD_BYTES));
    let head = head.map_err(|error| NoSkill::Unreadable(error.to_string()))?;
    let text = String::from_utf8_lossy(&head.bytes);
    let document = MarkdownDocument::parse(&text).map_err(NoSkill::Frontmatter)?;
    let has_block = document.frontmatter != Frontmatter::default();
    if head.is_cut && !has_block && text.trim_start_matches('\u{feff}').starts_with("---") {
        return Err(NoSkill::Frontmatter(FrontmatterError::TooLong));
    }
    of(path, source, &document.frontmatter)
}

/// The skill that a file's settings describe.
pub(super) fn of(path: &Path, source: SkillSource, settings: &Frontmatter) -> Result<ReadSkill, NoSkill> {
    let description = settings.text("description").ok_or(NoSkill::NoDescription)?.to_owned();
    let base_dir = path.parent().unwrap_or(Path::new("/")).to_path_buf();
    let directory = base_dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = one_line(settings.text("name").unwrap_or(&directory));
    let mut oddities = oddities(&name, &directory, &description);
    let manifest = settings.manifest().unwrap_or_else(|error| {
        oddities.push(format!("{error}; the skill is loaded without it"));
        None
    });
    let manifest = manifest.unwrap_or_default();
    let skill = Skill {
        key: manifest.text("skillKey").unwrap_or(&name).to_owned(),
        emoji: manifest.text("emoji").map(str::to_owned),
        homepage: manifest.text("homepage").or_else(|| settings.text("homepage")).map(str::to_owned),
        primary_env: manifest.text("primaryEnv").map(str::to_owned),
        requirements: manifest.requirements(),
        strictness: Strictness::of_always(manifest.switch("always")),
        install: installs(&manifest),
        for_model: match settings.switch("disable-model-invocation") {
            Some(true) => ForModel::Hidden,
            Some(false) | None => ForModel::Listed,
        },
        command: command(settings, &mut oddities),
        name,
        description,
        source,
        file_path: path.to_path_buf(),
        base_dir,
    };
    Ok(ReadSkill { skill, oddities })
}

fn installs(manifest: &Manifest) -> Vec<InstallSpec> {
    manifest
        .objects("install")
        .iter()
        .enumerate()
        .filter_map(|(at, item)| InstallSpec::of(item, at))
        .collect()
}

fn command(settings: &Frontmatter, oddities: &mut Vec<String>) -> CommandUse {
    if settings.switch("user-invocable") == Some(false) {
        return CommandUse::None;
    }
    let dispatches = settings.text("command-dispatch").is_some_and(|to| to.eq_ignore_ascii_case("tool"));
    match settings.text("command-tool") {
        Some(tool) if dispatches => CommandUse::Tool(tool.to_owned()),
        None if dispatches => {
            oddities.push("has command-dispatch without command-tool; its command asks the agent".to_owned());
            CommandUse::Prompt
        }
        Some(_) | None => CommandUse::Prompt,
    }
}

/// A name is one line of a list, whatever is in it.
fn one_line(name: &str) -> String {
    name.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the violations of the rules for names and descriptions; the skill is loaded all the
/// same.
fn oddities(name: &str, directory: &str, description: &str) -> Vec<String> {
    const LONGEST_NAME: usize = 64;
    const LONGEST_DESCRIPTION: usize = 1_024;
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let mut found = Vec::new();
    if name != directory {
        found.push(format!("is called \"{name}\" and lies in the directory \"{directory}\""));
    }
    if name.chars().count() > LONGEST_NAME {
        found.push(format!("has a name of more than {LONGEST_NAME} characters"));
    }
    if !is_plain || name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        found.push(format!("has a name of other than a-z, 0-9 and single hyphens between them: \"{name}\""));
    }
    if description.chars().count() > LONGEST_DESCRIPTION {
        found.push(format!("has a description of more than {LONGEST_DESCRIPTION} characters"));
    }
    found
}

impl Skill {
    /// Every program it names: those it needs and those that its installers bring.
    pub fn bins(&self) -> impl Iterator<Item = &str> {
        let Requirements { bins, any_bins, .. } = &self.requirements;
        let brought = self.install.iter().flat_map(|spec| &spec.bins);
        bins.iter().chain(any_bins).chain(brought).map(String::as_str)
    }
}

#[cfg(test)]
mod tests;
