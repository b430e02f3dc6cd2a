//! Checks if everything a command line runs may run without approval.
//!
//! A program that runs other programs (`env`, `sudo`, `sh`, `xargs`) is judged by itself and never by what it runs: listing
//! it allows whatever it can run, and only its owner can want that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::analysis::{NotAnalysable, Segment, analyse, leaves_directory, reads_like_posix};
use super::command_runners::{is_command_runner, is_copy_of_runner};
use super::executable::{Content, Files, depends_on_directory, resolve};
use super::file::{AllowlistEntry, Remembered};
use super::pattern;
use super::safe_bins;

/// Rules of what is allowed.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// Entries that hold for the agent.
    pub allowlist: &'a [AllowlistEntry],
    /// Names of safe bins: `tools.exec.safeBins`, or [`safe_bins::DEFAULT`].
    pub safe_bins: &'a [String],
    /// Programs that belong to skills; empty unless `autoAllowSkills` is set.
    pub skill_bins: &'a BTreeSet<String>,
}

/// Environment in which a command would run. The command must later be run in exactly this
/// environment.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The shell that reads the command.
    pub shell: &'a Path,
    /// `PATH` as the command gets it.
    pub path: &'a str,
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// Home directory that `~` stands for in patterns.
    pub home: &'a Path,
    /// True if the call sets variables of its own: they can change what a program does, as `A=1
    /// program` can.
    pub sets_variables: bool,
    /// Directories that tools write to, besides the working directory and the home: the workspace, the state, temporary files.
    pub writable: &'a [PathBuf],
    /// True if commands run as root, who can change every program.
    pub is_root: bool,
    /// The files.
    pub files: &'a dyn Files,
}

impl Surroundings<'_> {
    /// Returns true for a file that tools can change, or put another in the place of: allowing its path would allow anything.
    pub(super) fn is_changeable(&self, file: &Path) -> bool {
        let Self { cwd, home, writable, files, .. } = self;
        let real = file.canonicalize();
        let names = [Some(file), real.as_deref().ok()];
        let is_below = |dir: &Path| names.into_iter().flatten().any(|name| name.starts_with(dir));
        let is_protected =
            || files.is_protected(file) && file.parent().is_some_and(|dir| files.is_protected(dir));
        is_below(cwd) || is_below(home) || writable.iter().any(|dir| is_below(dir)) || !is_protected()
    }

    /// Returns true for a program that commands can change, or put another in the place of.
    pub(super) fn is_changeable_program(&self, file: &Path) -> bool {
        self.is_root || self.is_changeable(file)
    }

    /// Returns the content of a program, together with those of the interpreters of its `#!` line that commands can change.
    pub(super) fn content_of(&self, program: &Path) -> Content {
        let mut content = self.files.content(program);
        let mut script = program.to_path_buf();
        for _ in 0..MOST_INTERPRETERS {
            let (interpreters, given) = self.interpreters(&script);
            for file in interpreters.iter().filter(|file| self.is_changeable_program(file)) {
                content = content.with(self.files.content(file));
            }
            for file in given.iter().filter(|file| self.is_changeable_program(file)) {
                match self.files.content(file) {
                    Content::Nothing => {}
                    found => content = content.with(found),
                }
            }
            match interpreters.into_iter().next_back() {
                Some(last) => script = last,
                None => return content,
            }
        }
        Content::Unknown
    }

    /// Returns the programs of a `#!` line, which are its first word and the one that `env` looks up, and the files that it
    /// hands to them: an interpreter runs those too.
    fn interpreters(&self, script: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let Self { path, cwd, files, .. } = *self;
        let words = files.interpreter_words(script);
        let Some((first, rest)) = words.split_first() else { return (Vec::new(), Vec::new()) };
        let first = cwd.join(first);
        let is_env = first.file_name().is_some_and(|name| name == "env");
        let mut names = rest.iter().filter(|word| !word.starts_with('-') && !word.contains('='));
        let second = if is_env { names.next() } else { None };
        let second = second.and_then(|word| resolve(word, path, cwd, files));
        let given = names.map(|word| cwd.join(word)).collect();
        ([Some(first), second].into_iter().flatten().collect(), given)
    }
}

/// Scripts that may be each other's interpreters; Linux runs no more.
const MOST_INTERPRETERS: usize = 5;

/// Reason why a program may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedBy {
    /// An entry with this pattern.
    Entry {
        /// The entry's id.
        id: String,
        /// Pattern of the entry.
        pattern: String,
    },
    /// The program is a safe bin, which only works on its piped input.
    SafeBin,
    /// The program belongs to a skill.
    Skill,
}

/// Result of the checks of one program of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// File that would run, if that is certain.
    pub resolved: Option<PathBuf>,
    /// Rule by which it may run, if it may.
    pub allowed_by: Option<AllowedBy>,
    /// Extent of an approval, if it is not allowed yet.
    pub extent: Extent,
}

/// Extent of an approval to run a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Extent {
    /// The file, whatever it contains: tools can't change it.
    #[default]
    Path,
    /// The file with its present content, by SHA-256.
    Content(String),
    /// Allows this command only: nothing can be remembered.
    Once,
}

/// Result of the checks of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// Findings, one per program, in order.
    pub findings: Result<Vec<Finding>, NotAnalysable>,
}

impl Evaluation {
    /// Returns true if the whole command may run without approval.
    pub fn is_satisfied(&self) -> bool {
        self.findings.as_ref().is_ok_and(|findings| {
            !findings.is_empty() && findings.iter().all(|finding| finding.allowed_by.is_some())
        })
    }

    /// Returns the file of the first program, which is shown to the person who is asked.
    pub fn first_resolved(&self) -> Option<&Path> {
        self.findings.as_ref().ok()?.first()?.resolved.as_deref()
    }

    /// Returns the files that *allow-always* adds to the allowlist: those that are not allowed yet, but none that runs other programs.
    pub fn to_allow_always(&self) -> Vec<Remembered<'_>> {
        let mut out = Vec::new();
        for finding in self.findings.iter().flatten().filter(|finding| finding.allowed_by.is_none()) {
            let sha256 = match &finding.extent {
                Extent::Path => None,
                Extent::Content(sha256) => Some(sha256.as_str()),
                Extent::Once => continue,
            };
            let is_copy = |file: &Path| sha256.is_some() && is_copy_of_runner(file);
            let file = finding.resolved.as_deref().filter(|file| !is_command_runner(file) && !is_copy(file));
            let remembered = file.and_then(pattern::of_file).map(|pattern| Remembered { pattern, sha256 });
            out.extend(remembered.filter(|remembered| !out.contains(remembered)));
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
    let mut is_elsewhere = false;
    let judged = segments.iter().map(|segment| {
        let finding = judge(segment, is_elsewhere, rules, surroundings);
        is_elsewhere |= leaves_directory(&segment.program);
        finding
    });
    Ok(judged.collect())
}

/// `is_elsewhere`: the shell may have left the working directory by then.
fn judge(segment: &Segment, is_elsewhere: bool, rules: Rules<'_>, surroundings: Surroundings<'_>) -> Finding {
    let Surroundings { path, cwd, files, .. } = surroundings;
    let is_sure = !is_elsewhere || !depends_on_directory(&segment.program, path);
    let resolved = resolve(&segment.program, path, cwd, files).filter(|_| is_sure);
    let allowed_by = resolved.as_deref().and_then(|file| allowed_by(file, segment, rules, surroundings));
    let unsure =
        resolved.as_deref().filter(|file| allowed_by.is_none() && surroundings.is_changeable_program(file));
    let extent = unsure.map_or(Extent::Path, |file| match surroundings.content_of(file) {
        Content::Sha256(sha256) => Extent::Content(sha256),
        Content::Nothing | Content::Unknown => Extent::Once,
    });
    Finding { resolved, allowed_by, extent }
}

fn allowed_by(
    file: &Path,
    segment: &Segment,
    rules: Rules<'_>,
    surroundings: Surroundings<'_>,
) -> Option<AllowedBy> {
    let Surroundings { cwd, home, files, .. } = surroundings;
    let is_meant = |entry: &&AllowlistEntry| {
        let has_content = |sha256: &String| surroundings.content_of(file) == Content::Sha256(sha256.clone());
        pattern::matches(&entry.pattern, file, home) && entry.sha256.as_ref().is_none_or(has_content)
    };
    if let Some(entry) = rules.allowlist.iter().find(is_meant) {
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
