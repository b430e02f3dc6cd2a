//! The files that are indexed: which they are, and which of them a model may read.

use std::collections::HashSet;
use std::fs::{DirEntry, Metadata};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use crate::beneath::open_beneath;

/// Directories that are not entered.
const IGNORED: &[&str] = &[
    ".git",
    ".hg",
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    "target",
    "dist",
    "build",
    ".obsidian",
    ".trash",
];

/// Deepest directory below a root that is entered.
const DEEPEST: usize = 12;

/// Largest file that is indexed, in bytes.
pub(crate) const LARGEST_FILE: u64 = 2 * 1024 * 1024;

/// Largest number of files that are indexed.
pub(crate) const MOST_FILES: usize = 50_000;

/// Largest number of issues that are listed.
const MOST_ISSUES: usize = 50;

/// The places where memory files lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roots {
    workspace: PathBuf,
    /// Extra paths, absolute, without repetitions.
    extra: Vec<PathBuf>,
}

/// A file that is to be indexed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundFile {
    /// Path relative to the workspace, with `/`; outside of it, it begins with `..`.
    pub(crate) path: String,
    /// Directory that was asked for, below which no link is followed.
    pub(crate) root: PathBuf,
    /// Path below `root`.
    pub(crate) inside: PathBuf,
    pub(crate) stat: FileStat,
}

/// Facts that tell a changed file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FileStat {
    pub(crate) size: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub(crate) modified: i64,
    pub(crate) inode: u64,
    pub(crate) device: u64,
}

impl FileStat {
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let modified = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        Self { size: metadata.len(), modified, inode: metadata.ino(), device: metadata.dev() }
    }

    #[cfg(not(unix))]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let since = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified = since.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or_default();
        Self { size: metadata.len(), modified, inode: 0, device: 0 }
    }

    /// Time of the last change in milliseconds, with a fraction, as OpenClaw 2026.2.9 stores it.
    pub(crate) fn modified_ms(&self) -> f64 {
        self.modified as f64 / 1e6
    }
}

/// Result of looking through all roots.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) files: Vec<FoundFile>,
    /// Directories that were read, to be watched.
    pub(crate) directories: Vec<PathBuf>,
    /// Files that were left out, in words for people.
    pub(crate) issues: Vec<String>,
    /// Prefixes of paths below which nothing may be taken for deleted, because they could not be read.
    pub(crate) unreadable: Vec<String>,
}

impl Scan {
    fn issue(&mut self, issue: String) {
        if self.issues.len() < MOST_ISSUES {
            self.issues.push(issue);
        }
    }

    /// Returns whether a file that was not found may be taken for deleted.
    pub(crate) fn is_gone(&self, path: &str) -> bool {
        !self.unreadable.iter().any(|prefix| path.starts_with(prefix.as_str()))
    }
}

impl Roots {
    /// Roots of a workspace. Extra paths are trimmed; relative ones are below the workspace.
    pub(crate) fn new(workspace: &Path, extra_paths: &[String]) -> Self {
        let workspace = normalised(workspace);
        let mut extra = Vec::new();
        for path in extra_paths.iter().map(|path| path.trim()).filter(|path| !path.is_empty()) {
            let path = normalised(&workspace.join(path));
            if !extra.contains(&path) {
                extra.push(path);
            }
        }
        Self { workspace, extra }
    }

    /// Returns the paths that are watched although they may not exist yet, besides the directories of a [`Scan`].
    pub(crate) fn watched(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.workspace.as_path()).chain(self.extra.iter().map(PathBuf::as_path))
    }

    /// Finds all files. What cannot be read is left out and told of.
    pub(crate) fn scan(&self) -> Scan {
        let mut scan = Scan::default();
        let mut seen = HashSet::new();
        match std::fs::metadata(&self.workspace) {
            Ok(metadata) if metadata.is_dir() => {}
            _ => {
                scan.issue("workspace directory missing".to_owned());
                scan.unreadable.push(String::new());
            }
        }
        for name in ["MEMORY.md", "memory.md"] {
            let path = self.workspace.join(name);
            if let Ok(metadata) = std::fs::symlink_metadata(&path)
                && metadata.is_file()
            {
                self.add(&mut scan, &mut seen, &self.workspace, PathBuf::from(name), &metadata);
            }
        }
        self.scan_root(&mut scan, &mut seen, &self.workspace.join("memory"));
        for extra in &self.extra {
            match std::fs::symlink_metadata(extra) {
                Ok(metadata) if metadata.is_dir() => self.scan_root(&mut scan, &mut seen, extra),
                Ok(metadata) if metadata.is_file() && is_markdown(extra) => {
                    if let (Some(parent), Some(name)) = (extra.parent(), extra.file_name()) {
                        self.add(&mut scan, &mut seen, parent, PathBuf::from(name), &metadata);
                    }
                }
                Ok(_) => {}
                Err(_) => scan.issue(format!("additional memory path missing ({})", self.index_path(extra))),
            }
        }
        scan
    }

    fn scan_root(&self, scan: &mut Scan, seen: &mut HashSet<(u64, u64, PathBuf)>, root: &Path) {
        match std::fs::symlink_metadata(root) {
            Ok(metadata) if metadata.is_dir() => match (root.parent(), root.file_name()) {
                // The directory is a step of each path below it: it may become a link at any time.
                (Some(parent), Some(name)) => self.scan_directory(scan, seen, parent, Path::new(name), 0),
                _ => self.scan_directory(scan, seen, root, Path::new(""), 0),
            },
            _ => {}
        }
    }

    fn scan_directory(
        &self,
        scan: &mut Scan,
        seen: &mut HashSet<(u64, u64, PathBuf)>,
        root: &Path,
        inside: &Path,
        depth: usize,
    ) {
        let directory = root.join(inside);
        let entries =
            match std::fs::read_dir(&directory).and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>) {
                Ok(entries) => entries,
                Err(error) => {
                    let path = self.index_path(&directory);
                    scan.issue(format!("{path} not readable ({})", error.kind()));
                    scan.unreadable.push(format!("{path}/"));
                    return;
                }
            };
        scan.directories.push(directory);
        let mut names: Vec<(PathBuf, DirEntry)> =
            entries.into_iter().map(|entry| (inside.join(entry.file_name()), entry)).collect();
        names.sort_by(|(left, _), (right, _)| left.cmp(right));
        for (inside, entry) in names {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                let is_ignored = entry.file_name().to_str().is_some_and(|name| IGNORED.contains(&name));
                if is_ignored {
                    continue;
                }
                if depth >= DEEPEST {
                    scan.issue(format!("{} is too deep to be indexed", self.index_path(&root.join(&inside))));
                    continue;
                }
                self.scan_directory(scan, seen, root, &inside, depth + 1);
            } else if kind.is_file()
                && is_markdown(&inside)
                && let Ok(metadata) = entry.metadata()
            {
                self.add(scan, seen, root, inside, &metadata);
            }
        }
    }

    fn add(
        &self,
        scan: &mut Scan,
        seen: &mut HashSet<(u64, u64, PathBuf)>,
        root: &Path,
        inside: PathBuf,
        metadata: &Metadata,
    ) {
        let stat = FileStat::of(metadata);
        // Where there are no inode numbers, paths tell files apart.
        let same = if stat.inode == 0 { root.join(&inside) } else { PathBuf::new() };
        if !seen.insert((stat.device, stat.inode, same)) {
            return;
        }
        let path = self.index_path(&root.join(&inside));
        if stat.size > LARGEST_FILE {
            scan.issue(format!("{path} is larger than {} MiB and not indexed", LARGEST_FILE / 1024 / 1024));
            return;
        }
        if scan.files.len() >= MOST_FILES {
            if scan.files.len() == MOST_FILES {
                scan.issue(format!("more than {MOST_FILES} files: the rest is not indexed"));
            }
            return;
        }
        scan.files.push(FoundFile { path, root: root.to_owned(), inside, stat });
    }

    /// Returns the path by which the index knows a file: relative to the workspace, with `/`.
    fn index_path(&self, path: &Path) -> String {
        let mut own = self.workspace.components().peekable();
        let mut theirs = path.components().peekable();
        while let (Some(one), Some(two)) = (own.peek(), theirs.peek())
            && one == two
        {
            own.next();
            theirs.next();
        }
        let up = own.map(|_| "..".to_owned());
        let down = theirs.map(|part| part.as_os_str().to_string_lossy().into_owned());
        up.chain(down).collect::<Vec<_>>().join("/")
    }

    /// Finds the file that a model names, if it is one of memory.
    pub(crate) fn readable(&self, asked: &str) -> Result<ReadableFile, Refusal> {
        let asked = asked.trim();
        if asked.is_empty() || asked.contains('\0') {
            return Err(Refusal::NotMemory);
        }
        let path = normalised(&self.workspace.join(asked));
        if let Ok(inside) = path.strip_prefix(&self.workspace)
            && let Some(name) = inside.to_str()
            && is_memory_path(name)
        {
            return ReadableFile::new(self, &self.workspace, inside);
        }
        for extra in &self.extra {
            let is_link =
                std::fs::symlink_metadata(extra).is_ok_and(|metadata| metadata.file_type().is_symlink());
            if is_link {
                continue;
            }
            if path == *extra
                && let (Some(parent), Some(name)) = (extra.parent(), extra.file_name())
            {
                return ReadableFile::new(self, parent, Path::new(name));
            }
            if let Ok(inside) = path.strip_prefix(extra)
                && !inside.as_os_str().is_empty()
            {
                return match (extra.parent(), extra.file_name()) {
                    (Some(parent), Some(name)) => {
                        ReadableFile::new(self, parent, &Path::new(name).join(inside))
                    }
                    _ => ReadableFile::new(self, extra, inside),
                };
            }
        }
        if asked.starts_with("sessions/") { Err(Refusal::Transcript) } else { Err(Refusal::NotMemory) }
    }
}

/// Reasons for which a path is refused before anything is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No memory file has this path.
    NotMemory,
    /// The path names a transcript.
    Transcript,
}

/// A memory file that may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadableFile {
    /// Path as the index knows it.
    pub(crate) path: String,
    root: PathBuf,
    inside: PathBuf,
}

impl ReadableFile {
    fn new(roots: &Roots, root: &Path, inside: &Path) -> Result<Self, Refusal> {
        if !is_markdown(inside) {
            return Err(Refusal::NotMemory);
        }
        Ok(Self {
            path: roots.index_path(&root.join(inside)),
            root: root.to_owned(),
            inside: inside.to_owned(),
        })
    }

    /// Opens the file; no link is followed.
    pub(crate) fn open(&self) -> io::Result<(std::fs::File, Metadata)> {
        open_beneath(&self.root, &self.inside)
    }

    /// Returns where the file lies.
    pub(crate) fn location(&self) -> PathBuf {
        self.root.join(&self.inside)
    }
}

/// The text of a file that was found, and what tells whether it has changed since.
#[derive(Debug)]
pub(crate) struct FileText {
    pub(crate) text: String,
    pub(crate) stat: FileStat,
}

impl FoundFile {
    /// Reads the file. Bytes that are no UTF-8 are replaced, as OpenClaw does.
    pub(crate) fn read(&self) -> io::Result<FileText> {
        let (file, metadata) = open_beneath(&self.root, &self.inside)?;
        let mut bytes =
            Vec::with_capacity(usize::try_from(metadata.len().min(LARGEST_FILE)).unwrap_or_default());
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file has grown too large"));
        }
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(FileText { text, stat: FileStat::of(&metadata) })
    }
}

/// Returns whether a path relative to the workspace names a memory file. Leading dots and slashes do not count.
pub(crate) fn is_memory_path(path: &str) -> bool {
    let path = path.trim().trim_start_matches(['.', '/']).replace('\\', "/");
    path == "MEMORY.md" || path == "memory.md" || path.starts_with("memory/")
}

fn is_markdown(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b".md")
}

/// Removes `.` and resolves `..` by the names alone.
fn normalised(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests;
