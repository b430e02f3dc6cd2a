//! Files that people are shown when they are asked about a command: those that it runs and that may change meanwhile, with their content.
//! An approval holds only while they have that content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::allowlist::{Evaluation, Surroundings};
use super::analysis::analyse;
use super::command_runners::is_command_runner;
use super::executable::{Content, resolve};

/// Characters that no unquoted name contains. Inside quotes they may split a name, which is then looked up by its pieces.
const BETWEEN_WORDS: &[char] = &[';', '|', '&', '(', ')', '<', '>', '"', '\'', '`', '$', '=', '{', '}', '\\'];

/// The files behind a question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown(BTreeMap<PathBuf, Content>);

impl Shown {
    /// The changeable files of a command: its programs, what a program is given that runs what it is given, and everything that a
    /// command names that can't be analysed. Looks at files, so it may block.
    pub fn of(command: &str, found: &Evaluation, surroundings: Surroundings<'_>) -> Self {
        let mut shown = Self::default();
        match (&found.findings, analyse(command)) {
            (Ok(findings), Ok(segments)) => {
                for (finding, segment) in findings.iter().zip(&segments) {
                    let Some(program) = &finding.resolved else {
                        shown.add_words(&segment.program, surroundings);
                        continue;
                    };
                    shown.add(program.clone(), surroundings);
                    if is_command_runner(program) {
                        segment
                            .arguments
                            .iter()
                            .for_each(|argument| shown.add_argument(argument, surroundings));
                    }
                }
            }
            (Err(_), _) | (_, Err(_)) => shown.add_words(command, surroundings),
        }
        shown
    }

    /// Returns true if all of it is known, and `now` is the same.
    pub fn holds(&self, now: &Self) -> bool {
        self == now && !self.0.values().any(|content| *content == Content::Unknown)
    }

    /// An argument is a name as a whole, or a text with names in it.
    fn add_argument(&mut self, argument: &str, surroundings: Surroundings<'_>) {
        self.add(surroundings.cwd.join(argument), surroundings);
        self.add_words(argument, surroundings);
    }

    fn add_words(&mut self, text: &str, surroundings: Surroundings<'_>) {
        let Surroundings { path, cwd, home, files, .. } = surroundings;
        let is_between = |c: char| c.is_whitespace() || BETWEEN_WORDS.contains(&c);
        for word in text.split(is_between).filter(|word| !word.is_empty()) {
            self.add(
                match word.strip_prefix("~/") {
                    Some(rest) => home.join(rest),
                    None => cwd.join(word),
                },
                surroundings,
            );
            if let Some(program) = resolve(word, path, cwd, files) {
                self.add(program, surroundings);
            }
        }
    }

    fn add(&mut self, file: PathBuf, surroundings: Surroundings<'_>) {
        if self.0.contains_key(&file) || !surroundings.is_changeable(Path::new(&file)) {
            return;
        }
        match surroundings.files.content(&file) {
            Content::Nothing => {}
            content => drop(self.0.insert(file, content)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::allowlist::{Rules, evaluate};
    use super::super::executable::OnDisk;
    use super::*;

    /// True if the question about a command still holds after one of its files was changed.
    fn holds(command: &str, changed: &str) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("bin")).unwrap();
        for name in ["build.sh", "x.py", "notes.txt", "bin/tool", "a b"] {
            fs::write(at(name), "#!/bin/sh\n").unwrap();
            fs::set_permissions(at(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:/usr/bin:/bin", at("bin").display());
        let none = Default::default();
        let rules = Rules { allowlist: &[], safe_bins: &[], skill_bins: &none };
        let surroundings = Surroundings {
            shell: Path::new("/bin/sh"),
            path: &path,
            cwd: dir.path(),
            home: Path::new("/nonexistent"),
            sets_variables: false,
            writable: &[],
            files: &OnDisk,
        };
        let shown = || Shown::of(command, &evaluate(command, rules, surroundings), surroundings);
        let before = shown();
        assert!(before.holds(&shown()), "{command}");
        if !changed.is_empty() {
            fs::write(at(changed), "#!/bin/sh\necho other\n").unwrap();
        }
        before.holds(&shown())
    }

    #[test]
    fn a_question_holds_while_what_would_run_is_the_same() {
        for (command, changed, expect) in [
            ("./build.sh", "", true),
            ("./build.sh", "build.sh", false),
            ("./build.sh", "notes.txt", true),
            ("tool x", "bin/tool", false),
            ("sh build.sh", "build.sh", false),
            ("sh -c './build.sh'", "build.sh", false),
            ("sh -e x.py --all", "x.py", false),
            ("env A=1 ./build.sh", "build.sh", false),
            ("sh 'a b'", "a b", false),
            // A file that is only read is not a program.
            ("cat notes.txt", "notes.txt", true),
            // The analysis can't tell what runs.
            ("if true; then ./build.sh; fi", "build.sh", false),
            ("tool > out 2>/dev/null", "bin/tool", false),
            ("X=$(tool)", "bin/tool", false),
            ("X=$(tool)", "", true),
            ("ls > /dev/null", "", true),
        ] {
            assert_eq!(holds(command, changed), expect, "{command} {changed}");
        }
    }

    #[test]
    fn what_can_not_be_read_never_holds() {
        let shown = Shown([(PathBuf::from("/p"), Content::Unknown)].into());
        assert!(!shown.holds(&shown.clone()));
    }
}
