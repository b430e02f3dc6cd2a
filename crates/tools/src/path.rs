//! From what a model calls a file to the file (spec `tools.md` §2, "Paths").

use std::io;
use std::path::{Path, PathBuf};

use openclaw_agent::ToolError;
use openclaw_agent::place::{Place, PlaceError};
use openclaw_config::without_dots;
use unicode_normalization::UnicodeNormalization;

use crate::row::Confinement;
use crate::sandbox::ActiveSandbox;

/// Finds files for one call.
#[derive(Debug, Clone)]
pub(crate) struct Resolver {
    home: PathBuf,
    workspace: PathBuf,
    confinement: Confinement,
    /// The name that the workspace has for commands in a sandbox.
    inner: Option<PathBuf>,
}

impl Resolver {
    pub(crate) fn new(home: PathBuf, workspace: PathBuf, confinement: Confinement) -> Self {
        Self { home, workspace, confinement, inner: None }
    }

    /// Of a run: in a sandbox its directory is all there is, under the name it has inside too.
    pub(crate) fn of_run(
        home: PathBuf,
        workspace: PathBuf,
        confinement: Confinement,
        sandbox: Option<&ActiveSandbox>,
    ) -> Self {
        let Some(sandbox) = sandbox else { return Self::new(home, workspace, confinement) };
        let root = sandbox.workspace().to_owned();
        Self::new(root.clone(), root, confinement).with_inner(sandbox.inner_workspace())
    }

    /// Also takes the paths that commands in the sandbox see.
    pub(crate) fn with_inner(self, inner: PathBuf) -> Self {
        Self { inner: Some(inner), ..self }
    }

    /// An existing file, also under the spellings macOS stores: a model types plain characters, the file's name may hold
    /// a narrow no-break space, decomposed letters or a typographic apostrophe.
    pub(crate) fn existing(&self, path: &str) -> Result<Place, PlaceError> {
        self.first_existing(path, |wanted| self.place(wanted, path))
    }

    /// Like [`Self::existing`], for removing it: a symbolic link is not followed.
    pub(crate) fn existing_entry(&self, path: &str) -> Result<Place, PlaceError> {
        self.first_existing(path, |wanted| match &self.confinement {
            Confinement::Host => Place::entry(wanted),
            Confinement::Within(_) => self.place(wanted, path),
        })
    }

    fn first_existing(
        &self,
        path: &str,
        locate: impl Fn(&Path) -> Result<Place, PlaceError>,
    ) -> Result<Place, PlaceError> {
        let wanted = self.absolute(path);
        let found = locate(&wanted).and_then(Place::if_exists);
        if !matches!(&found, Err(error) if error.is_not_found()) {
            return found;
        }
        for spelling in macos_spellings(&wanted.to_string_lossy()) {
            if let Ok(place) = locate(Path::new(&spelling)).and_then(Place::if_exists) {
                return Ok(place);
            }
        }
        found
    }

    /// What is at exactly this path; `None` if nothing is.
    pub(crate) fn occupant(&self, path: &str) -> Result<Option<Place>, PlaceError> {
        match self.place(&self.absolute(path), path).and_then(Place::if_exists) {
            Ok(place) => Ok(Some(place)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The directories above `path` that do not exist, the deepest first.
    pub(crate) fn missing_directories(&self, path: &str) -> Vec<PathBuf> {
        let wanted = self.absolute(path);
        let is_missing = |directory: &&Path| {
            let found = self.place(directory, path).and_then(Place::if_exists);
            matches!(found, Err(error) if error.is_not_found())
        };
        wanted.ancestors().skip(1).take_while(is_missing).map(Path::to_owned).collect()
    }

    /// Removes a directory that is empty. `path` is the file that it was made for, as the model named it.
    pub(crate) fn remove_empty_directory(&self, directory: &Path, path: &str) -> Result<(), PlaceError> {
        self.place(directory, path)?.remove_empty_directory()
    }

    /// One path for all names of a file, as far as its directories exist.
    pub(crate) fn identity(&self, path: &str) -> PathBuf {
        let wanted = self.absolute(path);
        let real = wanted.ancestors().find_map(|above| {
            let rest = wanted.strip_prefix(above).ok()?;
            let real = std::fs::canonicalize(above).ok()?;
            Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
        });
        real.unwrap_or(wanted)
    }

    /// `path` for a report: below the workspace relative to it.
    pub(crate) fn shown(&self, path: &str) -> String {
        let wanted = self.absolute(path);
        let below = wanted.strip_prefix(without_dots(&self.workspace)).ok();
        below.filter(|path| !path.as_os_str().is_empty()).unwrap_or(&wanted).display().to_string()
    }

    /// A file to be written; the directories above it are created.
    pub(crate) fn writable(&self, path: &str) -> Result<Place, PlaceError> {
        let wanted = self.absolute(path);
        match &self.confinement {
            Confinement::Host => Place::create_anywhere(&wanted),
            Confinement::Within(root) => {
                Place::create_beneath(root, &self.inside(root, &wanted, path)?, path)
            }
        }
    }

    fn place(&self, wanted: &Path, asked: &str) -> Result<Place, PlaceError> {
        match &self.confinement {
            Confinement::Host => Place::anywhere(wanted),
            Confinement::Within(root) => Place::beneath(root, &self.inside(root, wanted, asked)?, asked),
        }
    }

    /// The part of `wanted` below the confining directory.
    fn inside(&self, root: &Path, wanted: &Path, asked: &str) -> Result<PathBuf, PlaceError> {
        let escapes = || PlaceError::Escapes { root: root.to_owned(), path: asked.to_owned() };
        let inside = wanted.strip_prefix(without_dots(root)).map_err(|_| escapes())?;
        if inside.as_os_str().is_empty() { Err(escapes()) } else { Ok(inside.to_owned()) }
    }

    /// `path` as an absolute path without `.` and `..`.
    pub(crate) fn absolute(&self, path: &str) -> PathBuf {
        let plain: String = path.chars().map(|c| if is_unicode_space(c) { ' ' } else { c }).collect();
        let plain = plain.strip_prefix('@').unwrap_or(&plain);
        let expanded = match plain.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            Some(_) | None => PathBuf::from(plain),
        };
        let absolute = without_dots(&self.workspace.join(expanded));
        let inside = self.inner.as_deref().and_then(|inner| absolute.strip_prefix(inner).ok());
        match inside.filter(|_| !absolute.starts_with(without_dots(&self.workspace))) {
            Some(inside) => without_dots(&self.workspace.join(inside)),
            None => absolute,
        }
    }
}

/// Spaces that look like a space (spec `tools.md` §2).
pub(crate) fn is_unicode_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// The spellings of a missing file that macOS may have given it, in the order in which they are tried.
fn macos_spellings(path: &str) -> Vec<String> {
    let curly = |text: &str| text.replace('\'', "\u{2019}");
    let decomposed: String = path.nfd().collect();
    let both = curly(&decomposed);
    let mut out = Vec::new();
    for spelling in [narrow_space_before_am_pm(path), decomposed, curly(path), both] {
        if spelling != path && !out.contains(&spelling) {
            out.push(spelling);
        }
    }
    out
}

/// `Screenshot … 3.04 PM.png` is stored with U+202F before `PM`.
fn narrow_space_before_am_pm(path: &str) -> String {
    let mut out = path.to_owned();
    for half in ["AM.", "PM.", "am.", "pm."] {
        out = out.replace(&format!(" {half}"), &format!("\u{202f}{half}"));
    }
    out
}

/// The words a model reads when a file can't be used. `path` is the file as the model named it.
pub(crate) fn refused(tool: &str, path: &str, error: &PlaceError) -> ToolError {
    ToolError::Failed(match error {
        PlaceError::Io(error) if error.kind() == io::ErrorKind::NotFound => format!("File not found: {path}"),
        PlaceError::Io(error) => format!("{tool}: cannot use {path}: {error}"),
        PlaceError::Escapes { .. } | PlaceError::SymbolicLink(_) | PlaceError::NotAFile(_) => {
            error.to_string()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_the_workspace() {
        let resolver = Resolver::new("/home/o".into(), "/ws".into(), Confinement::Host);
        for (path, absolute) in [
            ("a.txt", "/ws/a.txt"),
            ("./a/../b.txt", "/ws/b.txt"),
            ("../x", "/x"),
            ("../../../x", "/x"),
            ("/etc/hosts", "/etc/hosts"),
            ("@a.txt", "/ws/a.txt"),
            ("@/etc/hosts", "/etc/hosts"),
            ("~", "/home/o"),
            ("~/a", "/home/o/a"),
            ("@~/a", "/home/o/a"),
            ("~b/a", "/ws/~b/a"),
            ("a\u{a0}b\u{3000}c\u{202f}d", "/ws/a b c d"),
        ] {
            assert_eq!(resolver.absolute(path), Path::new(absolute), "{path}");
        }
    }

    #[test]
    fn macos_spellings_come_in_order_and_without_doubles() {
        assert_eq!(macos_spellings("/a/b.txt"), Vec::<String>::new());
        assert_eq!(macos_spellings("/Shot 3.04 PM.png"), ["/Shot 3.04\u{202f}PM.png"]);
        assert_eq!(
            macos_spellings("/d'\u{e9}.txt"),
            ["/d'e\u{301}.txt", "/d\u{2019}\u{e9}.txt", "/d\u{2019}e\u{301}.txt"]
        );
    }

    #[test]
    fn a_file_is_found_under_the_spelling_macos_stored() {
        let dir = tempfile::tempdir().unwrap();
        let resolver = Resolver::new("/".into(), dir.path().into(), Confinement::Host);
        for (stored, asked) in [
            ("Shot 3.04\u{202f}PM.png", "Shot 3.04 PM.png"),
            ("cafe\u{301}.txt", "caf\u{e9}.txt"),
            ("it\u{2019}s.txt", "it's.txt"),
            ("l\u{2019}e\u{301}t.txt", "l'\u{e9}t.txt"),
        ] {
            std::fs::write(dir.path().join(stored), stored).unwrap();
            let place = resolver.existing(asked).unwrap();
            assert_eq!(std::io::read_to_string(place.open().unwrap()).unwrap(), stored);
        }
        assert!(resolver.existing("other.txt").is_err());
    }
}
