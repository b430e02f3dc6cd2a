//! Whether everything a command line runs may run unasked.
//!
//! A program that runs other programs (`env`, `sudo`, `sh`, `xargs`) is judged by itself and never by what it runs: listing
//! it allows whatever it can run, and only its owner can want that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::analysis::{NotAnalysable, Segment, analyse, reads_like_posix};
use super::command_runners::is_command_runner;
use super::executable::{Files, resolve};
use super::file::AllowlistEntry;
use super::pattern;
use super::safe_bins;

/// What is allowed.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// Entries that hold for the agent.
    pub allowlist: &'a [AllowlistEntry],
    /// Names of safe bins: `tools.exec.safeBins`, or [`safe_bins::DEFAULT`].
    pub safe_bins: &'a [String],
    /// Programs that belong to skills; empty unless `autoAllowSkills` is set.
    pub skill_bins: &'a BTreeSet<String>,
}

/// Where a command would run. It has to be what it then does run in.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The shell that reads the command.
    pub shell: &'a Path,
    /// `PATH` as the command gets it.
    pub path: &'a str,
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// What `~` means in patterns.
    pub home: &'a Path,
    /// Whether the call sets variables of its own: they can change what a program does, as `A=1 program` can.
    pub sets_variables: bool,
    /// The files.
    pub files: &'a dyn Files,
}

/// Why a program may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedBy {
    /// An entry with this pattern.
    Entry {
        /// The entry's id.
        id: String,
        /// Its pattern.
        pattern: String,
    },
    /// It only works on what is piped into it.
    SafeBin,
    /// It belongs to a skill.
    Skill,
}

/// What was found about one program of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file that would run, if that is sure.
    pub resolved: Option<PathBuf>,
    /// Why it may run, if it may.
    pub allowed_by: Option<AllowedBy>,
}

/// What was found about a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// One finding a program, in order.
    pub findings: Result<Vec<Finding>, NotAnalysable>,
}

impl Evaluation {
    /// Whether all of it may run unasked.
    pub fn is_satisfied(&self) -> bool {
        self.findings.as_ref().is_ok_and(|findings| {
            !findings.is_empty() && findings.iter().all(|finding| finding.allowed_by.is_some())
        })
    }

    /// The file of the first program, which a person who is asked is shown.
    pub fn first_resolved(&self) -> Option<&Path> {
        self.findings.as_ref().ok()?.first()?.resolved.as_deref()
    }

    /// The patterns that *allow-always* adds to the allowlist: the files that are not allowed yet, but none that runs others.
    pub fn to_allow_always(&self) -> Vec<&str> {
        let mut out = Vec::new();
        for finding in self.findings.iter().flatten().filter(|finding| finding.allowed_by.is_none()) {
            let file = finding.resolved.as_deref().filter(|file| !is_command_runner(file));
            if let Some(pattern) = file.and_then(pattern::of_file)
                && !out.contains(&pattern)
            {
                out.push(pattern);
            }
        }
        out
    }

    /// Patterns of the entries that allowed something, each with the file it allowed.
    pub fn used_entries(&self) -> Vec<(&str, &Path)> {
        let findings = self.findings.iter().flatten();
        let used = findings.filter_map(|finding| match (&finding.allowed_by, &finding.resolved) {
            (Some(AllowedBy::Entry { pattern, .. }), Some(path)) => Some((pattern.as_str(), path.as_path())),
            (Some(AllowedBy::Entry { .. } | AllowedBy::SafeBin | AllowedBy::Skill) | None, _) => None,
        });
        used.collect()
    }
}

/// Judges a command line. Looks at files, so it may block.
pub fn evaluate(command: &str, rules: Rules<'_>, surroundings: Surroundings<'_>) -> Evaluation {
    Evaluation { findings: find(command, rules, surroundings) }
}

fn find(
    command: &str,
    rules: Rules<'_>,
    surroundings: Surroundings<'_>,
) -> Result<Vec<Finding>, NotAnalysable> {
    if !reads_like_posix(surroundings.shell) {
        return Err(NotAnalysable::Shell(surroundings.shell.display().to_string()));
    }
    if surroundings.sets_variables {
        return Err(NotAnalysable::Variables);
    }
    let segments = analyse(command)?;
    Ok(segments.iter().map(|segment| judge(segment, rules, surroundings)).collect())
}

fn judge(segment: &Segment, rules: Rules<'_>, surroundings: Surroundings<'_>) -> Finding {
    let Surroundings { path, cwd, files, .. } = surroundings;
    let resolved = resolve(&segment.program, path, cwd, files);
    let allowed_by = resolved.as_deref().and_then(|file| allowed_by(file, segment, rules, surroundings));
    Finding { resolved, allowed_by }
}

fn allowed_by(
    file: &Path,
    segment: &Segment,
    rules: Rules<'_>,
    surroundings: Surroundings<'_>,
) -> Option<AllowedBy> {
    let Surroundings { cwd, home, files, .. } = surroundings;
    if let Some(entry) = rules.allowlist.iter().find(|entry| pattern::matches(&entry.pattern, file, home)) {
        return Some(AllowedBy::Entry { id: entry.id.clone(), pattern: entry.pattern.clone() });
    }
    if safe_bins::is_safe_use(rules.safe_bins, file, &segment.arguments, cwd, files) {
        return Some(AllowedBy::SafeBin);
    }
    // By its bare name: `./name` may be any file.
    let is_of_skill = rules.skill_bins.contains(&segment.program) && !segment.program.contains('/');
    (is_of_skill && !file.starts_with(cwd) && !is_command_runner(file)).then_some(AllowedBy::Skill)
}

#[cfg(test)]
mod tests;
