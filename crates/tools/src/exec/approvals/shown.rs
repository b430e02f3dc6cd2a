//! Files that people are shown when they are asked about a command: those that it runs and that may change meanwhile, with their content.
//! An approval holds only while they have that content.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use openclaw_config::without_dots;

use super::allowlist::{Evaluation, Surroundings};
use super::analysis::{analyse, is_builtin, leaves_directory, reads_like_posix, runs_code};
use super::command_runners::is_command_runner;
use super::executable::{Content, resolve};

/// Characters that no unquoted name contains. Inside quotes they may split a name, which is then looked up by its pieces.
const BETWEEN_WORDS: &[char] = &[';', '|', '&', '(', ')', '<', '>', '"', '\'', '`', '$', '=', '{', '}', '\\'];

/// Directories of a command that its files are looked for in.
const MOST_DIRECTORIES: usize = 32;

/// The files behind a question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandFiles {
    files: BTreeMap<PathBuf, Content>,
    is_partial: bool,
}

impl CommandFiles {
    /// The changeable files of a command: its programs, what a program is given that runs what it is given, and everything that a
    /// command names that can't be analysed. A command may change its directory: files count in each that it names. Looks at files, so
    /// it may block.
    pub fn of(command: &str, found: &Evaluation, surroundings: Surroundings<'_>) -> Self {
        let parts = CommandParts::of(command, found, surroundings);
        let words = parts.words(surroundings);
        let mut shown = Self { is_partial: parts.is_partial, ..Self::default() };
        let directories = directories(&words, surroundings);
        shown.is_partial |= directories.len() > MOST_DIRECTORIES;
        for program in &parts.programs {
            shown.add(program, surroundings.is_changeable_program(program), surroundings);
        }
        for word in &words {
            for directory in &directories {
                let file = directory.join(word);
                if surroundings.files.is_file(&file) {
                    shown.add(&file, surroundings.is_changeable(&file), surroundings);
                }
            }
            if let Some(program) = resolve(word, surroundings.path, surroundings.cwd, surroundings.files) {
                shown.add(&program, surroundings.is_changeable_program(&program), surroundings);
            }
        }
        shown
    }

    /// Returns true if all of it is known, and `now` is the same.
    pub fn holds(&self, now: &Self) -> bool {
        self == now && !self.files.values().any(|content| *content == Content::Unknown)
    }

    /// Returns true if the command may run files that its words don't name.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    fn add(&mut self, file: &Path, is_changeable: bool, surroundings: Surroundings<'_>) {
        if !is_changeable || self.files.contains_key(file) {
            return;
        }
        match surroundings.files.content(file) {
            Content::Nothing => {}
            _ => drop(self.files.insert(file.to_path_buf(), surroundings.content_of(file))),
        }
    }
}

/// Parts of a command that say what it runs.
#[derive(Default)]
struct CommandParts {
    programs: Vec<PathBuf>,
    /// Names, and texts with names in them.
    texts: Vec<String>,
    is_partial: bool,
}

impl CommandParts {
    fn of(command: &str, found: &Evaluation, surroundings: Surroundings<'_>) -> Self {
        let mut parts = Self::default();
        let (Ok(findings), Ok(segments)) = (&found.findings, analyse(command)) else {
            parts.is_partial = has_expansions(command);
            parts.texts.push(command.to_owned());
            return parts;
        };
        // What a program is piped, or another has made before it, may be what it runs.
        let mut before = Vec::new();
        for (finding, segment) in findings.iter().zip(segments) {
            let is_shell = |name: &str| reads_like_posix(Path::new(name)) || runs_code(name);
            let (is_after_all, is_given) = match &finding.resolved {
                Some(program) if is_command_runner(program) => (!program.ends_with("tee"), true),
                Some(program) => {
                    (segment.program.contains('/') && surroundings.is_changeable(program), false)
                }
                None if is_builtin(&segment.program) => {
                    (runs_code(&segment.program), leaves_directory(&segment.program))
                }
                None => (true, false),
            };
            match &finding.resolved {
                Some(program) => parts.programs.push(program.clone()),
                None => parts.texts.push(segment.program.clone()),
            }
            if is_after_all {
                parts.texts.append(&mut before);
            }
            if is_given {
                let runs_text =
                    is_shell(&segment.program) || segment.arguments.iter().any(|argument| is_shell(argument));
                parts.is_partial |=
                    runs_text && segment.arguments.iter().any(|argument| has_expansions(argument));
                parts.texts.extend(segment.arguments);
            } else {
                before.extend(segment.arguments);
            }
        }
        parts
    }

    /// Everything in the texts that can be the name of a file.
    fn words(&self, surroundings: Surroundings<'_>) -> BTreeSet<String> {
        let home = surroundings.home.to_string_lossy();
        let cwd = surroundings.cwd.to_string_lossy();
        let is_between = |c: char| c.is_whitespace() || BETWEEN_WORDS.contains(&c);
        let mut words: BTreeSet<String> = self.texts.iter().cloned().collect();
        for text in &self.texts {
            // The shell sets these itself, and takes quotes away.
            let known = [("${PWD}", &cwd), ("$PWD", &cwd), ("${HOME}", &home), ("$HOME", &home)];
            let known = known.iter().fold(text.clone(), |text, (name, value)| text.replace(name, value));
            let unquoted = known.replace(['"', '\'', '\\'], "");
            for text in [text, &known, &unquoted] {
                words.extend(text.split(is_between).map(str::to_owned));
            }
        }
        let changes_directory = words.iter().any(|word| ["cd", "chdir", "pushd"].contains(&word.as_str()));
        let attached = words.iter().filter_map(|word| word.strip_prefix("-C")).map(str::to_owned);
        let in_home = words.iter().filter_map(|word| word.strip_prefix("~/"));
        let in_home = in_home.map(|rest| surroundings.home.join(rest).to_string_lossy().into_owned());
        let more: Vec<String> = attached.chain(in_home).collect();
        words.extend(more);
        if changes_directory || words.contains("~") {
            words.insert(home.into_owned());
        }
        words.remove("");
        words
    }
}

/// Returns true if a shell makes names of this text that do not stand in it.
fn has_expansions(text: &str) -> bool {
    let known = ["${PWD}", "$PWD", "${HOME}", "$HOME"]
        .iter()
        .fold(text.to_owned(), |text, name| text.replace(name, ""));
    // With a space behind it, a bracket is a word of the shell.
    let mut after_brackets = known.split(['[', '{']).skip(1);
    known.contains(['$', '`', '*', '?'])
        || after_brackets.any(|rest| !rest.starts_with(char::is_whitespace) && rest.contains([']', '}']))
}

/// The working directory and those that the command may change to, one more than the most if there are too many.
fn directories(words: &BTreeSet<String>, surroundings: Surroundings<'_>) -> Vec<PathBuf> {
    let mut found = vec![surroundings.cwd.to_path_buf()];
    let mut at = 0;
    while let Some(directory) = found.get(at).cloned() {
        at += 1;
        for word in words {
            // Behind a link, `..` means another directory to `cd` than to other programs.
            let real = directory.join(word);
            let plain = without_dots(&real);
            for path in [plain, real] {
                let is_known = |known: &PathBuf| {
                    *known == path
                        || word.contains("..") && known.canonicalize().ok() == path.canonicalize().ok()
                };
                if surroundings.files.is_directory(&path) && !found.iter().any(is_known) {
                    found.push(path);
                }
            }
            if found.len() > MOST_DIRECTORIES {
                return found;
            }
        }
    }
    found
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
        fs::create_dir_all(at("sub/deep")).unwrap();
        let files = ["build.sh", "x.py", "notes.txt", "bin/tool", "a b", "sub/build.sh", "sub/deep/x.sh"];
        for name in files {
            fs::write(at(name), "#!/bin/sh\n").unwrap();
            fs::set_permissions(at(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(at("sub/deep"), at("link")).unwrap();
        fs::write(at("script"), format!("#!{}\n", at("bin/tool").display())).unwrap();
        fs::set_permissions(at("script"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
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
            is_root: false,
            files: &OnDisk,
        };
        let shown = || CommandFiles::of(command, &evaluate(command, rules, surroundings), surroundings);
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
            // The directory changes.
            ("cd sub && ./build.sh", "", true),
            ("cd sub && ./build.sh", "sub/build.sh", false),
            ("cd sub && ./build.sh", "build.sh", false),
            ("cd sub && ./build.sh", "notes.txt", true),
            ("cd sub; sh build.sh", "sub/build.sh", false),
            ("cd sub && cd deep && ./x.sh", "sub/deep/x.sh", false),
            ("cd bin/../sub && ./build.sh", "sub/build.sh", false),
            ("cd link/.. && ./build.sh", "build.sh", false),
            ("cd -P link/.. && ./build.sh", "sub/build.sh", false),
            ("pushd sub && ./build.sh", "sub/build.sh", false),
            ("(cd sub && ./build.sh)", "sub/build.sh", false),
            ("cd \"sub\" && ./build.sh > out", "sub/build.sh", false),
            ("sh -c 'cd sub && ./build.sh'", "sub/build.sh", false),
            ("env -C sub ./build.sh", "sub/build.sh", false),
            ("env -Csub ./build.sh", "sub/build.sh", false),
            ("env --chdir=sub ./build.sh", "sub/build.sh", false),
            // The shell runs the file itself.
            (". ./build.sh", "build.sh", false),
            ("source build.sh", "build.sh", false),
            ("ls && . ./build.sh", "build.sh", false),
            ("exec ./build.sh", "build.sh", false),
            ("command ./build.sh", "build.sh", false),
            ("eval 'sh build.sh'", "build.sh", false),
            // The text of a file is what runs.
            ("cat build.sh | sh", "build.sh", false),
            ("cat build.sh | head -n 5 | env sh", "build.sh", false),
            ("echo build.sh | xargs sh", "build.sh", false),
            ("cp build.sh new.sh && ./new.sh", "build.sh", false),
            ("cat notes.txt | head", "notes.txt", true),
            ("cat notes.txt | tee /dev/null", "notes.txt", true),
            ("test -e notes.txt && cat notes.txt", "notes.txt", true),
            ("tool; cat notes.txt", "notes.txt", true),
            // Its interpreter is another.
            ("./script", "", true),
            ("./script", "bin/tool", false),
            ("\"${PWD}/build.sh\"", "build.sh", false),
            ("bash -c \"./'build'.sh\"", "build.sh", false),
        ] {
            assert_eq!(holds(command, changed), expect, "{command} {changed}");
        }
    }

    #[test]
    fn a_question_says_where_names_are_made_by_the_shell() {
        for (command, expect) in [
            ("./build.sh", false),
            ("rg 'a*[b]$' | head", false),
            ("awk '{print $1}' notes.txt", false),
            ("if [ -e x ]; then { ./build.sh; }; fi > /dev/null 2>&1", false),
            ("\"$HOME\"/x ${PWD}/y", false),
            ("echo [2K > x", false),
            ("./b*.sh", true),
            ("./b.?h", true),
            ("./[b].sh", true),
            ("./{b,c}.sh", true),
            ("X=b.sh; ./$X", true),
            ("sh -c \"$(cat b.sh)\"", true),
            ("sh -c './b*.sh'", true),
            ("env sh -c './$X'", true),
            ("eval './$X'", true),
        ] {
            let none = Default::default();
            let rules = Rules { allowlist: &[], safe_bins: &[], skill_bins: &none };
            let surroundings = Surroundings {
                shell: Path::new("/bin/sh"),
                path: "/usr/bin:/bin",
                cwd: Path::new("/nonexistent"),
                home: Path::new("/nonexistent"),
                sets_variables: false,
                writable: &[],
                is_root: false,
                files: &OnDisk,
            };
            let shown = CommandFiles::of(command, &evaluate(command, rules, surroundings), surroundings);
            assert_eq!(shown.is_partial(), expect, "{command}");
        }
    }

    #[test]
    fn what_can_not_be_read_never_holds() {
        let files = [(PathBuf::from("/p"), Content::Unknown)].into();
        let shown = CommandFiles { files, is_partial: false };
        assert!(!shown.holds(&shown.clone()));
    }
}
