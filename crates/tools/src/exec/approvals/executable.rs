//! Resolves the name of a program to a file: the search on `PATH`, as a shell does it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;
use nix::unistd::{AccessFlags, access};
use openclaw_config::without_dots;
use sha2::{Digest as _, Sha256};

/// Facts about files that the checks need.
pub trait Files {
    /// True if the path is a file that can be run.
    fn is_executable(&self, path: &Path) -> bool;
    /// True if the path is something other than a directory.
    fn is_file(&self, path: &Path) -> bool;
    /// True if the path leads to a directory.
    fn is_directory(&self, path: &Path) -> bool;
    /// True if only the system's administrator can change the file or put another in its place.
    fn is_protected(&self, path: &Path) -> bool;
    /// Returns the file's present content.
    fn content(&self, path: &Path) -> Content;
    /// Returns the words of the `#!` line of a script, without the `#!`.
    fn interpreter_words(&self, path: &Path) -> Vec<String>;
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The file has no content of its own.
    Nothing,
    /// SHA-256 of the content, in hexadecimal digits.
    Sha256(String),
    /// Unknown: the file can't be read, or gives each reader something else.
    Unknown,
}

/// Larger files are not read through: nobody approves such a program.
const MAX_CONTENT: u64 = 1 << 30;
/// Bytes at the beginning of a script that systems look for the name of its interpreter in.
const MAX_INTERPRETER_LINE: u64 = 4096;

/// The files of this host. Blocking.
#[derive(Debug, Clone, Copy)]
pub struct OnDisk;

impl Files for OnDisk {
    fn is_executable(&self, path: &Path) -> bool {
        path.is_file() && access(path, AccessFlags::X_OK).is_ok()
    }

    fn is_file(&self, path: &Path) -> bool {
        // A link counts wherever it leads. What can't be looked at counts as a file: it may be one to the program.
        match path.symlink_metadata() {
            Ok(found) => !found.is_dir(),
            Err(error) => !matches!(
                error.kind(),
                std::io::ErrorKind::NotFound
                    | std::io::ErrorKind::NotADirectory
                    | std::io::ErrorKind::InvalidFilename
            ),
        }
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn is_protected(&self, path: &Path) -> bool {
        const OTHERS_WRITE: u32 = 0o022;
        let Ok(path) = path.canonicalize() else { return false };
        path.ancestors().all(|part| {
            part.metadata().is_ok_and(|found| found.uid() == 0 && found.mode() & OTHERS_WRITE == 0)
        })
    }

    fn content(&self, path: &Path) -> Content {
        let Ok(found) = path.metadata() else { return Content::Nothing };
        let kind = found.file_type();
        if kind.is_dir() || kind.is_char_device() || kind.is_block_device() {
            return Content::Nothing;
        }
        digest(path).map_or(Content::Unknown, Content::Sha256)
    }

    fn interpreter_words(&self, path: &Path) -> Vec<String> {
        let mut beginning = Vec::new();
        let read = open(path).map(|file| file.take(MAX_INTERPRETER_LINE).read_to_end(&mut beginning));
        let line = beginning.split(|byte| *byte == b'\n').next().and_then(|line| line.strip_prefix(b"#!"));
        match (read, line) {
            (Some(Ok(_)), Some(line)) => {
                String::from_utf8_lossy(line).split_whitespace().map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Opens a regular file. A pipe is not waited for.
fn open(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).ok()?;
    file.metadata().is_ok_and(|found| found.is_file()).then_some(file)
}

/// The SHA-256 of a regular file.
fn digest(path: &Path) -> Option<String> {
    let file = open(path)?;
    if file.metadata().ok()?.len() > MAX_CONTENT {
        return None;
    }
    let (mut hasher, mut file) = (Sha256::new(), file.take(MAX_CONTENT));
    io::copy(&mut file, &mut hasher).ok()?;
    Some(hexadecimal(hasher))
}

fn hexadecimal(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Content {
    /// Returns the content of both: known if both are.
    pub(super) fn with(self, other: Self) -> Self {
        let digits = |content| match content {
            Self::Nothing => Some(String::new()),
            Self::Sha256(digits) => Some(digits),
            Self::Unknown => None,
        };
        let Some((first, second)) = digits(self).zip(digits(other)) else { return Self::Unknown };
        Self::Sha256(hexadecimal(Sha256::new().chain_update(format!("{first} {second}"))))
    }
}

/// The file that a shell would run for this word, if it is sure which.
///
/// `..` is not followed: with links, its meaning can't be told from the text alone. Commands inside the shell are no file.
pub fn resolve(program: &str, path: &str, cwd: &Path, files: &dyn Files) -> Option<PathBuf> {
    // Such a name means a directory.
    if program.ends_with('/') || program.ends_with("/.") {
        return None;
    }
    if program.contains('/') {
        return candidate(cwd, program).filter(|found| files.is_executable(found));
    }
    if super::analysis::is_builtin(program) {
        return None;
    }
    for dir in path.split(':') {
        // bash expands `~` here, and dash gives `%` a meaning.
        if dir.starts_with('~') || dir.contains('%') {
            return None;
        }
        let dir = if dir.is_empty() { "." } else { dir };
        let found = cwd.join(dir).join(program);
        if files.is_executable(&found) {
            return candidate(&cwd.join(dir), program);
        }
    }
    None
}

/// True if the working directory has a say in which file a shell runs for this word.
pub fn depends_on_directory(program: &str, path: &str) -> bool {
    !program.starts_with('/') && (program.contains('/') || path.split(':').any(|dir| !dir.starts_with('/')))
}

fn candidate(dir: &Path, program: &str) -> Option<PathBuf> {
    let path = dir.join(program);
    let goes_up = path.components().any(|part| matches!(part, Component::ParentDir));
    (path.is_absolute() && !goes_up).then(|| without_dots(&path))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    struct Programs(BTreeSet<PathBuf>);

    impl Files for Programs {
        fn is_executable(&self, path: &Path) -> bool {
            self.0.contains(path)
        }
        fn is_file(&self, path: &Path) -> bool {
            self.0.contains(path)
        }
        fn is_directory(&self, _: &Path) -> bool {
            false
        }
        fn is_protected(&self, _: &Path) -> bool {
            true
        }
        fn interpreter_words(&self, _: &Path) -> Vec<String> {
            Vec::new()
        }
        fn content(&self, _: &Path) -> Content {
            Content::Nothing
        }
    }

    #[test]
    fn a_name_means_the_first_program_on_path() {
        let there = ["/a/x", "/b/x", "/b/y", "/w/z", "/w/./z", "/w/s/x", "/a/cd", "/b/../x", "/a/echo"];
        let files = Programs(there.into_iter().map(PathBuf::from).collect());
        for (program, path, expect) in [
            ("x", "/a:/b", Some("/a/x")),
            ("x", "/b:/a", Some("/b/x")),
            ("y", "/a:/b", Some("/b/y")),
            ("y", "/a", None),
            ("z", "/a:", Some("/w/z")),
            ("z", ":/a", Some("/w/z")),
            ("z", ".", Some("/w/z")),
            ("./z", "/a", Some("/w/z")),
            ("s/x", "/a", Some("/w/s/x")),
            ("x", "s:/a", Some("/w/s/x")),
            ("/b/x", "", Some("/b/x")),
            ("/b/../b/x", "/a", None),
            ("/b/x/", "/a", None),
            ("/b/x/.", "/a", None),
            ("x", "/b/..:/a", None),
            ("x", "~/bin:/a", None),
            ("x", "/c%func:/a", None),
            ("x", "/a:~/bin", Some("/a/x")),
            ("cd", "/a", None),
            ("/a/cd", "", Some("/a/cd")),
            ("echo", "/a", Some("/a/echo")),
        ] {
            let found = resolve(program, path, Path::new("/w"), &files);
            assert_eq!(found.as_deref(), expect.map(Path::new), "{program} {path}");
        }
    }

    #[test]
    fn the_content_of_regular_files_alone_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("abc"), "abc").unwrap();
        std::os::unix::fs::symlink(at("abc"), at("link")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::File::create(at("huge")).unwrap().set_len(MAX_CONTENT + 1).unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for (path, expect) in [
            (at("abc"), Content::Sha256(abc.into())),
            (at("link"), Content::Sha256(abc.into())),
            (at("pipe"), Content::Unknown),
            (at("huge"), Content::Unknown),
            (at("none"), Content::Nothing),
            (dir.path().into(), Content::Nothing),
            ("/dev/null".into(), Content::Nothing),
        ] {
            assert_eq!(OnDisk.content(&path), expect, "{path:?}");
        }
    }

    #[test]
    fn a_script_names_its_interpreter() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        for (text, expect) in [
            ("#!/bin/sh\necho", &["/bin/sh"][..]),
            ("#! /usr/bin/env  -S python3 -u", &["/usr/bin/env", "-S", "python3", "-u"]),
            ("#!", &[]),
            ("echo #!/bin/sh", &[]),
            ("\n#!/bin/sh", &[]),
            ("", &[]),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(OnDisk.interpreter_words(&file), expect, "{text:?}");
        }
        assert!(OnDisk.interpreter_words(dir.path()).is_empty());
    }

    #[test]
    fn only_what_root_alone_can_change_is_protected() {
        use std::os::unix::fs::PermissionsExt as _;
        assert!(OnDisk.is_protected(Path::new("/bin/sh")));
        assert!(OnDisk.is_executable(Path::new("/bin/sh")));
        assert!(!OnDisk.is_executable(Path::new("/usr")));
        assert!(!OnDisk.is_file(Path::new("/usr")) && OnDisk.is_file(Path::new("/bin/sh")));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        assert!(!OnDisk.is_file(&file) && !OnDisk.is_file(&file.join("below")));
        std::fs::write(&file, "").unwrap();
        assert!(OnDisk.is_file(&file) && !OnDisk.is_executable(&file));
        // The program is in a directory where others may write.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!OnDisk.is_protected(&file));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/nowhere", &link).unwrap();
        assert!(OnDisk.is_file(&link));
    }
}
