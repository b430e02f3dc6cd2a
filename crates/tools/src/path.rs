//! Resolves a path that a model names to the file (spec `tools.md` §2, "Paths").

use std::io;
use std::path::{Path, PathBuf};

use openclaw_agent::ToolError;
use openclaw_agent::place::off_limits::{OffLimits, Purpose};
use openclaw_agent::place::{Place, PlaceError};
use openclaw_config::without_dots;
use unicode_normalization::UnicodeNormalization;

use crate::sandbox::ActiveSandbox;

/// Reach of the file tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// Any file that this process may access.
    Host,
    /// Only files in this directory are reachable, also through symbolic links. Tools that can't be
    /// held to it are not offered.
    Within(PathBuf),
}

/// Finds files for one call.
#[derive(Debug, Clone)]
pub(crate) struct Resolver {
    home: PathBuf,
    workspace: PathBuf,
    confinement: Confinement,
    /// The name that the workspace has for commands in a sandbox.
    inner: Option<PathBuf>,
    off_limits: OffLimits,
}

impl Resolver {
    pub(crate) fn new(home: PathBuf, workspace: PathBuf, confinement: Confinement) -> Self {
        Self { home, workspace, confinement, inner: None, off_limits: OffLimits::default() }
    }

    /// Keeps off what is the gateway's own.
    pub(crate) fn keeping_off(self, off_limits: OffLimits) -> Self {
        Self { off_limits, ..self }
    }

    /// Creates the resolver of a run: in a sandbox only its directory exists, which can also be
    /// named by its path inside.
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

    /// Accepts the paths that commands in the sandbox see, too.
    pub(crate) fn with_inner(self, inner: PathBuf) -> Self {
        Self { inner: Some(inner), ..self }
    }

    /// An existing file, also under the spellings macOS stores: a model types plain characters, the file's name may hold
    /// a narrow no-break space, decomposed letters or a typographic apostrophe.
    pub(crate) fn existing(&self, path: &str, purpose: Purpose) -> Result<Place, PlaceError> {
        self.first_existing(path, |wanted| self.place(wanted, path, purpose))
    }

    /// Finds a file like [`Self::existing`], for removing it: a symbolic link is not followed.
    pub(crate) fn existing_entry(&self, path: &str) -> Result<Place, PlaceError> {
        self.first_existing(path, |wanted| match &self.confinement {
            Confinement::Host => self.checked(Place::entry(wanted)?, Purpose::Write),
            Confinement::Within(_) => self.place(wanted, path, Purpose::Write),
        })
    }

    fn first_existing(
        &self,
        path: &str,
        locate: impl Fn(&Path) -> Result<Place, PlaceError>,
    ) -> Result<Place, PlaceError> {
        locate(&self.spelled(path)).and_then(Place::if_exists)
    }

    /// The path of an existing file as it is stored.
    fn spelled(&self, path: &str) -> PathBuf {
        let wanted = self.absolute(path);
        if is_there(&wanted) {
            return wanted;
        }
        let mut spellings = macos_spellings(&wanted.to_string_lossy()).into_iter().map(PathBuf::from);
        spellings.find(|spelling| is_there(spelling)).unwrap_or(wanted)
    }

    /// The name of an existing file for an answer: as the model called it, unless it is stored under another one.
    pub(crate) fn name_of_existing(&self, path: &str) -> String {
        self.told(path, &self.spelled(path))
    }

    /// The name of a file that is written for an answer, in the same way.
    pub(crate) fn name_of_written(&self, path: &str) -> String {
        self.told(path, &self.absolute(path))
    }

    fn told(&self, path: &str, used: &Path) -> String {
        if *used == self.expanded(path) { path.to_owned() } else { self.relative(used) }
    }

    /// Returns the entry at exactly this path; `None` if there is none.
    pub(crate) fn occupant(&self, path: &str) -> Result<Option<Place>, PlaceError> {
        match self.place(&self.absolute(path), path, Purpose::Write).and_then(Place::if_exists) {
            Ok(place) => Ok(Some(place)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The directories above `path` that do not exist, the deepest first.
    pub(crate) fn missing_directories(&self, path: &str) -> Vec<PathBuf> {
        let wanted = self.absolute(path);
        let is_missing = |directory: &&Path| {
            let found = self.place(directory, path, Purpose::Write).and_then(Place::if_exists);
            matches!(found, Err(error) if error.is_not_found())
        };
        wanted.ancestors().skip(1).take_while(is_missing).map(Path::to_owned).collect()
    }

    /// Removes a directory that is empty. `path` is the file that it was made for, as the model named it.
    pub(crate) fn remove_empty_directory(&self, directory: &Path, path: &str) -> Result<(), PlaceError> {
        self.place(directory, path, Purpose::Write)?.remove_empty_directory()
    }

    /// Returns one path for all names of a file, as far as its directories exist.
    pub(crate) fn identity(&self, path: &str) -> PathBuf {
        let wanted = self.absolute(path);
        let real = wanted.ancestors().find_map(|above| {
            let rest = wanted.strip_prefix(above).ok()?;
            let real = std::fs::canonicalize(above).ok()?;
            Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
        });
        real.unwrap_or(wanted)
    }

    /// True if a path names a Markdown file below `memory/` of the workspace, whatever links are on the way.
    pub(crate) fn is_memory_note(&self, path: &str) -> bool {
        let wanted = self.identity(path);
        let is_markdown = wanted.extension().is_some_and(|ending| ending == "md");
        is_markdown && wanted.starts_with(self.identity("memory"))
    }

    /// `path` for a report: below the workspace relative to it.
    pub(crate) fn shown(&self, path: &str) -> String {
        self.relative(&self.absolute(path))
    }

    fn relative(&self, wanted: &Path) -> String {
        let below = wanted.strip_prefix(without_dots(&self.workspace)).ok();
        below.filter(|path| !path.as_os_str().is_empty()).unwrap_or(wanted).display().to_string()
    }

    /// A file to be written; the directories above it are created.
    pub(crate) fn writable(&self, path: &str) -> Result<Place, PlaceError> {
        let wanted = self.absolute(path);
        let made = match &self.confinement {
            Confinement::Host => {
                self.off_limits.check_new(&wanted, &self.workspace)?;
                Place::create_anywhere(&wanted)?
            }
            Confinement::Within(root) => {
                let inside = self.inside(root, &wanted, path)?;
                // A symbolic link on the way is told as one.
                match Place::beneath(root, &inside, path) {
                    Err(error) if !error.is_not_found() => return Err(error),
                    Ok(_) | Err(_) => {}
                }
                self.off_limits.check_new(&wanted, &self.workspace)?;
                Place::create_beneath(root, &inside, path)?
            }
        };
        self.checked(made, Purpose::Write)
    }

    fn place(&self, wanted: &Path, asked: &str, purpose: Purpose) -> Result<Place, PlaceError> {
        let place = match &self.confinement {
            Confinement::Host => Place::anywhere(wanted)?,
            Confinement::Within(root) => Place::beneath(root, &self.inside(root, wanted, asked)?, asked)?,
        };
        self.checked(place, purpose)
    }

    /// Checks the place that was found, whatever its name leads to by now.
    fn checked(&self, place: Place, purpose: Purpose) -> Result<Place, PlaceError> {
        self.off_limits.check(&place, &self.workspace, purpose)?;
        Ok(place)
    }

    /// Returns the part of `wanted` below the confining directory.
    fn inside(&self, root: &Path, wanted: &Path, asked: &str) -> Result<PathBuf, PlaceError> {
        let escapes = || PlaceError::Escapes { root: root.to_owned(), path: asked.to_owned() };
        let inside = wanted.strip_prefix(without_dots(root)).map_err(|_| escapes())?;
        if inside.as_os_str().is_empty() { Err(escapes()) } else { Ok(inside.to_owned()) }
    }

    /// `path` as an absolute path without `.` and `..`: the exact name where it is there, else one
    /// without spaces around it, with plain spaces in it, and without the `@` that models put in
    /// front of files (decision 65).
    pub(crate) fn absolute(&self, path: &str) -> PathBuf {
        let trimmed = path.trim();
        let exact = || Some(self.expanded(path)).filter(|exact| is_there(exact));
        let spaced = (trimmed != path).then(exact).flatten();
        spaced.unwrap_or_else(|| self.tidied(trimmed))
    }

    /// The same of a path without spaces around it.
    fn tidied(&self, path: &str) -> PathBuf {
        let exact = self.with_plain_spaces(path);
        let Some(rest) = path.strip_prefix('@') else { return exact };
        let plain = self.with_plain_spaces(rest.trim_start());
        let has_directory = || path.contains('/') && exact.parent().is_some_and(is_there);
        if is_there(&exact) || (!is_there(&plain) && has_directory()) { exact } else { plain }
    }

    /// The path with plain spaces in the names that are not there as they are written.
    fn with_plain_spaces(&self, path: &str) -> PathBuf {
        let expanded = self.expanded(path);
        if !path.contains(is_unicode_space) {
            return expanded;
        }
        let own = [without_dots(&self.workspace), without_dots(&self.home)];
        expanded.iter().fold(PathBuf::new(), |above, name| {
            let exact = above.join(name);
            if own.iter().any(|own| own.starts_with(&exact)) || is_there(&exact) {
                return exact;
            }
            let plain = |c: char| if is_unicode_space(c) { ' ' } else { c };
            above.join(name.to_string_lossy().chars().map(plain).collect::<String>())
        })
    }

    /// The path as it is written, absolute.
    fn expanded(&self, path: &str) -> PathBuf {
        let expanded = match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            Some(_) | None => PathBuf::from(path),
        };
        let absolute = without_dots(&self.workspace.join(expanded));
        let inside = self.inner.as_deref().and_then(|inner| absolute.strip_prefix(inner).ok());
        match inside.filter(|_| !absolute.starts_with(without_dots(&self.workspace))) {
            Some(inside) => without_dots(&self.workspace.join(inside)),
            None => absolute,
        }
    }
}

/// Returns true if something is there, also a link that leads nowhere.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
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
        PlaceError::Escapes { .. }
        | PlaceError::SymbolicLink(_)
        | PlaceError::NotAFile(_)
        | PlaceError::OffLimits(_)
        | PlaceError::Hook(_) => error.to_string(),
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
    fn the_exact_name_counts_where_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let resolver = Resolver::new("/home/o".into(), dir.path().into(), Confinement::Host);
        for name in [
            "a\u{a0}b.txt",
            "@notes.md",
            "plain.md",
            "both.md",
            "@both.md",
            "c d.txt",
            "e\u{202f}f/x",
            "@dir/x",
            "dir/y",
            "\u{3000}wide.txt",
            " spaced.txt ",
        ] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        for (asked, used) in [
            ("a\u{a0}b.txt", "a\u{a0}b.txt"),
            ("@notes.md", "@notes.md"),
            ("@both.md", "@both.md"),
            ("@plain.md", "plain.md"),
            ("c\u{2003}d.txt", "c d.txt"),
            ("e\u{202f}f/x", "e\u{202f}f/x"),
            ("@dir/x", "@dir/x"),
            ("@dir/y", "dir/y"),
            ("@c\u{a0}d.txt", "c d.txt"),
            ("@ c d.txt", "c d.txt"),
            ("\u{3000}wide.txt", "\u{3000}wide.txt"),
            (" spaced.txt ", " spaced.txt "),
            (" plain.md\n", "plain.md"),
            ("\u{a0}new.md ", "new.md"),
            // A path that does not exist yet gets a plain name, in an existing directory under its
            // own name.
            ("new\u{a0}file.txt", "new file.txt"),
            ("e\u{202f}f/new\u{a0}file", "e\u{202f}f/new file"),
            ("@new.md", "new.md"),
            ("@dir/new", "@dir/new"),
            ("@other/new", "other/new"),
        ] {
            assert_eq!(resolver.absolute(asked), dir.path().join(used), "{asked:?}");
            assert_eq!(resolver.name_of_written(asked), used, "{asked:?}");
        }
        let strange = Resolver::new("/home/o".into(), dir.path().join("w\u{a0}s"), Confinement::Host);
        assert_eq!(strange.absolute("a\u{a0}b"), dir.path().join("w\u{a0}s/a b"), "not the workspace itself");
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
            let place = resolver.existing(asked, Purpose::Read).unwrap();
            assert_eq!(std::io::read_to_string(place.open().unwrap()).unwrap(), stored);
        }
        assert!(resolver.existing("other.txt", Purpose::Read).is_err());
    }
}
