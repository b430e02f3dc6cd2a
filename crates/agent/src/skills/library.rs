//! The skills of an agent: those of all directories, one of each name (spec `agent-runtime.md` §6.1).

use std::path::{Path, PathBuf};
use std::time::Duration;

use indexmap::IndexMap;
use openclaw_config::clock::now_ms;

use super::scan::{SKILL_FILE, scan};
use super::seen::SeenFiles;
use super::skill::{NoSkill, ReadSkill, Skill, read};
use super::source::Root;

/// Skills read from disk, with the state of the files they were read from.
#[derive(Debug, Default)]
pub struct Library {
    /// Skills in the order of the directories; one that overrides another takes its position.
    pub skills: Vec<Skill>,
    /// Files that can't be used or are unusual.
    pub problems: Vec<SkillProblem>,
    seen: SeenFiles,
    read_at: i64,
}

/// Problem of a skill's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillProblem {
    /// The file or directory.
    pub path: PathBuf,
    /// Description of the problem.
    pub text: String,
    /// Weight of the problem.
    pub weight: Weight,
}

/// Weight of a [`SkillProblem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The skill is not loaded.
    Left,
    /// The skill is unusual but loaded.
    Odd,
}

impl Library {
    /// Reads the skills of these directories; those that come last win. Blocking.
    pub fn read(roots: &[Root]) -> Self {
        let mut library = Self { read_at: now_ms(), ..Self::default() };
        let mut merged: IndexMap<String, Skill> = IndexMap::new();
        for root in roots {
            let found = scan(&root.dir);
            library.seen.extend(found.seen);
            let left = |(path, text)| SkillProblem { path, text, weight: Weight::Left };
            library.problems.extend(found.problems.into_iter().map(left));
            for file in found.files {
                match read(&file, root.source) {
                    Ok(ReadSkill { skill, oddities }) => {
                        let odd = |text| SkillProblem { path: file.clone(), text, weight: Weight::Odd };
                        library.problems.extend(oddities.into_iter().map(odd));
                        merged.insert(skill.name.clone(), skill);
                    }
                    // A README beside the skills is none, and nobody means it to be one.
                    Err(NoSkill::NoDescription) if !file.ends_with(SKILL_FILE) => {}
                    Err(error) => {
                        let text = error.to_string();
                        library.problems.push(SkillProblem { path: file, text, weight: Weight::Left });
                    }
                }
            }
        }
        library.skills = merged.into_values().collect();
        library
    }

    /// Returns true if the library must be read again: a file has changed, or may have changed in
    /// the moment of reading.
    pub(super) fn is_outdated(&self, now: i64) -> bool {
        self.is_unsure_for(now).is_some_and(|pause| pause.is_zero()) || !self.seen.still_holds()
    }

    /// The time until another reading can be surer than this one; `None` if this one is sure.
    pub(super) fn is_unsure_for(&self, now: i64) -> Option<Duration> {
        /// Time in milliseconds until another reading would be more certain.
        const UNSURE_MS: i64 = 1_100;
        let left = UNSURE_MS.saturating_sub(now.saturating_sub(self.read_at)).clamp(0, UNSURE_MS);
        (!self.seen.is_settled(self.read_at)).then(|| Duration::from_millis(left.unsigned_abs()))
    }

    /// Returns the current state of the files: two equal results mean that nobody is writing.
    pub(super) fn look(&self) -> SeenFiles {
        self.seen.again()
    }

    /// The files and directories it depends on.
    pub(super) fn places(&self) -> impl Iterator<Item = PathBuf> {
        self.seen.places().map(Path::to_owned)
    }

    /// A skill by its name or its key.
    pub fn find(&self, name: &str) -> Option<&Skill> {
        let is_named = |skill: &&Skill| skill.name == name;
        self.skills.iter().find(is_named).or_else(|| self.skills.iter().find(|skill| skill.key == name))
    }

    /// Tells the log what was not told of an earlier reading.
    pub(super) fn report(&self, earlier: Option<&Self>) {
        let is_new =
            |problem: &&SkillProblem| !earlier.is_some_and(|earlier| earlier.problems.contains(problem));
        for SkillProblem { path, text, weight } in self.problems.iter().filter(is_new) {
            match weight {
                Weight::Left => tracing::warn!("skills: {} {text}", path.display()),
                Weight::Odd => tracing::debug!("skills: {} {text}", path.display()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
