//! The skills of an agent: those of all directories, one of each name (spec `agent-runtime.md` §6.1).

use std::path::PathBuf;

use indexmap::IndexMap;
use openclaw_config::clock::now_ms;

use super::scan::{SKILL_FILE, scan};
use super::seen::Seen;
use super::skill::{NoSkill, Read, Skill, read};
use super::source::Root;

/// What was read from the disk, and from what.
#[derive(Debug, Default)]
pub struct Library {
    /// In the order of the directories; one that overrides another has its place.
    pub skills: Vec<Skill>,
    /// What can't be used or is odd.
    pub problems: Vec<Problem>,
    seen: Seen,
    read_at: i64,
}

/// What is said of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file or directory.
    pub path: PathBuf,
    /// What it is or does.
    pub text: String,
    /// How much it matters.
    pub weight: Weight,
}

/// How much a [`Problem`] matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Something is not loaded.
    Left,
    /// Something is odd, and loaded.
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
            let left = |(path, text)| Problem { path, text, weight: Weight::Left };
            library.problems.extend(found.problems.into_iter().map(left));
            for file in found.files {
                match read(&file, root.source) {
                    Ok(Read { skill, oddities }) => {
                        let odd = |text| Problem { path: file.clone(), text, weight: Weight::Odd };
                        library.problems.extend(oddities.into_iter().map(odd));
                        merged.insert(skill.name.clone(), skill);
                    }
                    // A README beside the skills is none, and nobody means it to be one.
                    Err(NoSkill::NoDescription) if !file.ends_with(SKILL_FILE) => {}
                    Err(error) => {
                        let text = error.to_string();
                        library.problems.push(Problem { path: file, text, weight: Weight::Left });
                    }
                }
            }
        }
        library.skills = merged.into_values().collect();
        library
    }

    /// Whether it is to be read again: something has changed, or might have in the moment in which it was read.
    pub(super) fn is_outdated(&self, now: i64) -> bool {
        /// Until then another reading would be as unsure.
        const UNSURE_MS: i64 = 1_100;
        let is_unsure = !self.seen.is_settled(self.read_at);
        is_unsure && now.saturating_sub(self.read_at) > UNSURE_MS || !self.seen.still_holds()
    }

    /// What its files are now: the same twice means that nobody writes.
    pub(super) fn look(&self) -> Seen {
        self.seen.again()
    }

    /// How many files and directories it depends on.
    pub(super) fn files(&self) -> usize {
        self.seen.len()
    }

    /// A skill by its name or its key.
    pub fn find(&self, name: &str) -> Option<&Skill> {
        let is_named = |skill: &&Skill| skill.name == name;
        self.skills.iter().find(is_named).or_else(|| self.skills.iter().find(|skill| skill.key == name))
    }

    /// Tells the log what was not told of an earlier reading.
    pub(super) fn report(&self, earlier: Option<&Self>) {
        let is_new = |problem: &&Problem| !earlier.is_some_and(|earlier| earlier.problems.contains(problem));
        for Problem { path, text, weight } in self.problems.iter().filter(is_new) {
            match weight {
                Weight::Left => tracing::warn!("skills: {} {text}", path.display()),
                Weight::Odd => tracing::debug!("skills: {} {text}", path.display()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
