//! Collections of `qmd`, which are searched, and the files that paths name.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use openclaw_config::without_dots;
use openclaw_memory::{GetError, Source};

use crate::settings::QmdSettings;

/// Pattern of Markdown at any depth.
const MARKDOWN: &str = "**/*.md";
/// Beginning of paths outside the workspace, before the name of a collection.
const OUTSIDE: &str = "qmd/";

/// Files below a directory, under a name that `qmd` knows.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    pub(crate) name: String,
    pub(crate) root: PathBuf,
    pub(crate) pattern: String,
    pub(crate) source: Source,
    /// Matches what `pattern` does; `None` if it is no glob.
    glob: Option<GlobMatcher>,
}

/// All collections of an agent.
#[derive(Debug)]
pub(crate) struct Collections {
    workspace: PathBuf,
    pub(crate) list: Vec<Collection>,
}

/// Reasons for which nothing is read. The texts are for models: they name no path of the host.
#[derive(Debug, thiserror::Error)]
pub enum QmdGetError {
    /// The path names a collection and no file in it.
    #[error("invalid qmd path")]
    Invalid,
    /// No collection has this name.
    #[error("unknown qmd collection: {0}")]
    UnknownCollection(String),
    /// The path leads out of its collection.
    #[error("qmd path escapes collection")]
    EscapesCollection,
    /// The file can't be read.
    #[error(transparent)]
    Get(#[from] GetError),
}

/// A file of a collection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileOfCollection<'a> {
    pub(crate) root: &'a Path,
    pub(crate) inside: PathBuf,
}

impl Collections {
    /// Looks at what the settings name: a file is a collection of one. Blocks for a moment.
    pub(crate) fn of(settings: &QmdSettings) -> Self {
        let workspace = without_dots(&settings.workspace);
        let mut all = Self { workspace: workspace.clone(), list: Vec::new() };
        let mut names = HashSet::new();
        let memory = Source::Memory;
        if settings.default_memory {
            all.add(&mut names, "memory-root", &workspace, "MEMORY.md", memory);
            all.add(&mut names, "memory-alt", &workspace, "memory.md", memory);
            all.add(&mut names, "memory-dir", &workspace.join("memory"), MARKDOWN, memory);
        }
        for (index, source) in settings.sources.iter().enumerate() {
            let pattern = source.pattern.as_deref().map(str::trim).filter(|pattern| !pattern.is_empty());
            let name = source.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
            let name = name.map_or_else(|| format!("custom-{}", index + 1), str::to_owned);
            let path = without_dots(&source.path);
            match (path.parent(), path.file_name()) {
                (Some(parent), Some(file)) if path.is_file() => {
                    let pattern = globset::escape(&file.to_string_lossy());
                    all.add(&mut names, &name, parent, &pattern, memory);
                }
                _ => all.add(&mut names, &name, &path, pattern.unwrap_or(MARKDOWN), memory),
            }
        }
        if let Some(exports) = &settings.exports {
            all.add(&mut names, "sessions", &without_dots(&exports.dir), MARKDOWN, Source::Sessions);
        }
        all
    }

    fn add(&mut self, names: &mut HashSet<String>, name: &str, root: &Path, pattern: &str, source: Source) {
        let name = unused(names, &sanitised(name));
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        self.list.push(Collection {
            name,
            root: root.to_owned(),
            pattern: pattern.to_owned(),
            source,
            glob: glob.ok().map(|glob| glob.compile_matcher()),
        });
    }

    /// The path by which tools name a document of a collection. Blocks: looks for the file.
    pub(crate) fn result_path(&self, collection: &Collection, document: &str) -> String {
        let inside = collection.file_of(document).unwrap_or_else(|| PathBuf::from(document));
        let path = collection.root.join(&inside);
        match path.strip_prefix(&self.workspace) {
            Ok(own) => slashed(own),
            Err(_) => format!("{OUTSIDE}{}/{}", collection.name, slashed(&inside)),
        }
    }

    /// Finds the file that a model names; `None` if it is in no collection.
    pub(crate) fn readable(&self, asked: &str) -> Result<Option<FileOfCollection<'_>>, QmdGetError> {
        let asked = asked.trim();
        let Some(named) = asked.strip_prefix(OUTSIDE) else {
            let path = without_dots(&self.workspace.join(asked));
            let mut found = self.list.iter().filter(|collection| collection.source == Source::Memory);
            return Ok(found.find_map(|collection| {
                let inside = path.strip_prefix(&collection.root).ok()?.to_owned();
                collection.has(&inside).then_some(FileOfCollection { root: &collection.root, inside })
            }));
        };
        let (name, document) = named.split_once('/').ok_or(QmdGetError::Invalid)?;
        if name.is_empty() || document.is_empty() {
            return Err(QmdGetError::Invalid);
        }
        let collection = self
            .list
            .iter()
            .find(|collection| collection.name == name)
            .ok_or_else(|| QmdGetError::UnknownCollection(name.to_owned()))?;
        let inside = inside(Path::new(document)).ok_or(QmdGetError::EscapesCollection)?;
        if !collection.has(&inside) {
            return Err(GetError::PathRequired.into());
        }
        Ok(Some(FileOfCollection { root: &collection.root, inside }))
    }
}

impl Collection {
    /// True if its pattern fits a path below its root, and the file is Markdown.
    fn has(&self, inside: &Path) -> bool {
        let is_markdown = inside.extension().is_some_and(|extension| extension == "md");
        is_markdown && self.glob.as_ref().is_some_and(|glob| glob.is_match(inside))
    }

    /// The file behind the name of a document. Newer versions of `qmd` name documents in lower case with hyphens.
    fn file_of(&self, document: &str) -> Option<PathBuf> {
        let exact = inside(Path::new(document))?;
        if self.has(&exact) && self.root.join(&exact).exists() {
            return Some(exact);
        }
        let mut found = PathBuf::new();
        let mut parts = document.split('/').peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let entries = std::fs::read_dir(self.root.join(&found)).ok()?;
            let name = entries.flatten().map(|entry| entry.file_name()).find(|name| {
                let is_it = name == part || folded(&name.to_string_lossy()) == folded(part);
                is_it && (!is_last || self.has(&found.join(name)))
            })?;
            found.push(name);
        }
        Some(found)
    }
}

/// A relative path without `.` and `..`, or `None` if it leads out.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}

fn slashed(path: &Path) -> String {
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// A name with hyphens in the place of all but letters and digits.
fn folded(name: &str) -> String {
    let mut folded = String::new();
    for letter in name.chars().flat_map(char::to_lowercase) {
        match letter.is_alphanumeric() || letter == '.' {
            true => folded.push(letter),
            false if folded.is_empty() || folded.ends_with('-') => {}
            false => folded.push('-'),
        }
    }
    folded.replace("-.", ".")
}

/// A name as collections have them.
fn sanitised(name: &str) -> String {
    let mut clean = String::new();
    for letter in name.to_lowercase().chars() {
        match letter {
            'a'..='z' | '0'..='9' => clean.push(letter),
            _ if clean.ends_with('-') => {}
            _ => clean.push('-'),
        }
    }
    match clean.trim_matches('-') {
        "" => "collection".to_owned(),
        clean => clean.to_owned(),
    }
}

/// The name, or with a number behind it if it is taken.
fn unused(names: &mut HashSet<String>, name: &str) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !names.contains(name));
    let free = free.unwrap_or_else(|| name.to_owned());
    names.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{QmdExports, QmdSource};
    use crate::tests::settings;

    fn source(path: &Path, name: Option<&str>, pattern: Option<&str>) -> QmdSource {
        QmdSource {
            path: path.to_owned(),
            name: name.map(str::to_owned),
            pattern: pattern.map(str::to_owned),
        }
    }

    #[test]
    fn names_are_plain_and_each_has_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a[1].md"), "x").unwrap();
        let mut settings = settings(dir.path());
        let path = dir.path().join("x");
        settings.exports = Some(QmdExports { dir: path.clone(), retention: None });
        settings.sources = ["Docs!", "docs", "sessions", "***", " Über uns "]
            .into_iter()
            .map(|name| source(&path, Some(name), None))
            .chain([source(&path, None, Some(" ")), source(&dir.path().join("a[1].md"), None, Some("*"))])
            .collect();
        let found = Collections::of(&settings).list;
        let names: Vec<&str> = found.iter().map(|collection| collection.name.as_str()).collect();
        let default = ["memory-root", "memory-alt", "memory-dir"];
        let own =
            ["docs", "docs-2", "sessions", "collection", "ber-uns", "custom-6", "custom-7", "sessions-2"];
        assert_eq!(names, [default.as_slice(), own.as_slice()].concat());
        let file = &found[9];
        assert_eq!((file.root.as_path(), file.has(Path::new("a[1].md"))), (dir.path(), true));
        assert_eq!((found[8].pattern.as_str(), file.has(Path::new("a1.md"))), (MARKDOWN, false));
    }

    #[test]
    fn documents_are_found_under_the_names_that_qmd_gives_them() {
        let dir = tempfile::tempdir().unwrap();
        let (workspace, outside) = (dir.path().join("ws"), dir.path().join("Notes"));
        for file in ["ws/MEMORY.md", "ws/memory/My Day_1.md", "Notes/Über Uns/Team Plan (2).md"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let mut settings = settings(&workspace);
        settings.sources = vec![source(&outside, Some("notes"), None)];
        let all = Collections::of(&settings);
        let path = |collection: usize, document: &str| all.result_path(&all.list[collection], document);
        assert_eq!(path(0, "memory.md"), "MEMORY.md");
        assert_eq!(path(2, "my-day-1.md"), "memory/My Day_1.md");
        assert_eq!(path(2, "My Day_1.md"), "memory/My Day_1.md");
        assert_eq!(path(2, "gone.md"), "memory/gone.md");
        assert_eq!(path(3, "über-uns/team-plan-2.md"), "qmd/notes/Über Uns/Team Plan (2).md");
        let readable = |asked: &str| {
            all.readable(asked).map(|found| found.map(|file| file.inside)).map_err(|error| error.to_string())
        };
        assert_eq!(
            readable("qmd/notes/Über Uns/Team Plan (2).md").unwrap().unwrap(),
            Path::new("Über Uns/Team Plan (2).md")
        );
        assert_eq!(readable("MEMORY.md").unwrap().unwrap(), Path::new("MEMORY.md"));
        // The workspace is the root of a collection, and no other file of it is in that.
        for none in ["SOUL.md", "x/MEMORY.md", "../Notes/../x.md", "memory/x.txt"] {
            assert_eq!(readable(none), Ok(None), "{none}");
        }
        for (asked, expect) in [
            ("qmd/notes/../x.md", "qmd path escapes collection"),
            ("qmd/notes//etc/x.md", "qmd path escapes collection"),
            ("qmd/memory-root/SOUL.md", "path required"),
            ("qmd/notes/a.txt", "path required"),
            ("qmd/notes/", "invalid qmd path"),
            ("qmd/", "invalid qmd path"),
        ] {
            assert_eq!(readable(asked).unwrap_err(), expect, "{asked}");
        }
    }
}
