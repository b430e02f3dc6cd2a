//! Which file a program's name means: the search on `PATH`, as a shell does it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use openclaw_config::without_dots;

/// What must be known about files.
pub trait Files {
    /// Whether this is a file that can be run.
    fn is_executable(&self, path: &Path) -> bool;
    /// Whether something other than a directory is there.
    fn is_file(&self, path: &Path) -> bool;
    /// Whether only the system's administrator can change the file or put another in its place.
    fn is_protected(&self, path: &Path) -> bool;
}

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

    fn is_protected(&self, path: &Path) -> bool {
        const OTHERS_WRITE: u32 = 0o022;
        let Ok(path) = path.canonicalize() else { return false };
        path.ancestors().all(|part| {
            part.metadata().is_ok_and(|found| found.uid() == 0 && found.mode() & OTHERS_WRITE == 0)
        })
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
        fn is_protected(&self, _: &Path) -> bool {
            true
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
        // It lies in a directory where others may write.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!OnDisk.is_protected(&file));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/nowhere", &link).unwrap();
        assert!(OnDisk.is_file(&link));
    }
}
