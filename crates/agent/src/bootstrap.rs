//! Workspace files that become part of the system prompt (spec `agent-runtime.md` §4).

mod kept;

pub use kept::{Wanted, WorkspaceFiles};

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use openclaw_protocol::SessionKey;
use openclaw_protocol::text_length::{utf16_head, utf16_len, utf16_tail};

use crate::place::{Head, PlaceError};
use crate::workspace::RITUAL_FILE;
use crate::workspace_file::{self, Workspace};

/// Largest number of bytes that are read of a file, a hundred times the default for a prompt.
const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// The files of every session, in prompt order.
pub const FILES: &[&str] =
    &["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", RITUAL_FILE];

/// The files a sub-agent gets.
const SUBAGENT_FILES: &[&str] = &["AGENTS.md", "TOOLS.md"];

/// The memory file's two spellings; one file on file systems that fold case.
const MEMORY_FILES: &[&str] = &["MEMORY.md", "memory.md"];

/// Workspace file as it goes into the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootstrapFile {
    /// File name, such as `AGENTS.md`.
    pub name: String,
    /// Path of the file, whether it exists or not.
    pub path: PathBuf,
    /// True if the file does not exist.
    pub missing: bool,
    /// Size in UTF-16 units without trailing white space; 0 when missing.
    pub raw_chars: usize,
    /// Text that the model sees; empty when the file is blank, which leaves it out.
    pub injected: String,
    /// True if the file was longer than the limit and was cut.
    pub truncated: bool,
}

/// Selects the workspace files that a session gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BootstrapScope {
    /// The agent's main session or a direct chat of its owner: `MEMORY.md` too.
    Private,
    /// Groups, channels, threads, hooks, cron runs: no memory.
    Shared,
    /// A sub-agent: rules and tool notes only.
    Subagent,
}

impl BootstrapScope {
    /// The scope that belongs to a session key. `main_key` is the agent's main key, `main` as a rule. A caller that knows
    /// that a direct chat is not with the owner uses [`BootstrapScope::Shared`] instead.
    pub fn for_session(key: &SessionKey, main_key: &str) -> Self {
        if key.is_subagent() {
            Self::Subagent
        } else if key.is_private(main_key) {
            Self::Private
        } else {
            Self::Shared
        }
    }

    fn files(self) -> &'static [&'static str] {
        match self {
            Self::Private | Self::Shared => FILES,
            Self::Subagent => SUBAGENT_FILES,
        }
    }
}

/// A workspace file as it was read.
#[derive(Debug, Clone, Default)]
pub struct RawFile {
    /// File name, such as `AGENTS.md`.
    pub name: String,
    /// Path of the file, whether it exists or not.
    pub path: PathBuf,
    /// Text of the file; `None` when it is missing or left out.
    pub content: Option<FileContent>,
    /// Reason why the file is left out; `None` if it is used.
    left_out: Option<String>,
}

impl RawFile {
    /// Creates a file whose content comes from elsewhere, such as a hook.
    pub fn given(name: String, path: PathBuf, content: Option<String>) -> Self {
        let content = content.map(|text| FileContent { text, ..FileContent::default() });
        Self { name, path, content, left_out: None }
    }
}

/// Reads and shapes the files. Blocking: a handful of small reads; call it from a blocking thread
/// when the workspace may be on a slow disk. A path that is not a regular file of the workspace
/// counts as missing; the log and the model are told why.
pub fn load(workspace: &Path, scope: BootstrapScope, max_chars: usize) -> Vec<BootstrapFile> {
    shape_all(&read_all(workspace, scope), max_chars)
}

/// Reads the files, as hooks get them. Blocking, as [`load`].
pub fn read_all(workspace: &Path, scope: BootstrapScope) -> Vec<RawFile> {
    let directory = Workspace::open(workspace);
    let mut files: Vec<RawFile> = scope
        .files()
        .iter()
        .map(|name| {
            let path = workspace.join(name);
            match read(&directory, name) {
                Ok(content) => RawFile { name: (*name).to_owned(), path, content, left_out: None },
                Err(error) => left_out(name, path, &error),
            }
        })
        .collect();
    if scope == BootstrapScope::Private {
        files.extend(memory(workspace, &directory));
    }
    files
}

/// The files as the model sees them. The file of the first-run ritual goes with it, and is not told as missing.
pub fn shape_all(files: &[RawFile], max_chars: usize) -> Vec<BootstrapFile> {
    let shaped = |file: &RawFile| {
        let mut shaped = shape(&file.name, &file.path, file.content.as_ref(), max_chars);
        if let Some(why) = &file.left_out {
            shaped.injected.push_str(&format!(" (left out: {why})"));
        }
        shaped
    };
    let is_done =
        |file: &RawFile| file.name == RITUAL_FILE && file.content.is_none() && file.left_out.is_none();
    let files: Vec<BootstrapFile> = files.iter().filter(|file| !is_done(file)).map(shaped).collect();
    for file in files.iter().filter(|file| file.truncated) {
        tracing::warn!(
            "workspace bootstrap file {} is {} chars (limit {max_chars}); truncating in injected context",
            file.name,
            file.raw_chars
        );
    }
    files
}

/// The memory file; without one nothing is said of it.
fn memory(workspace: &Path, directory: &Workspace<'_>) -> Vec<RawFile> {
    let mut seen: Vec<FileId> = Vec::new();
    let mut files = Vec::new();
    for name in MEMORY_FILES {
        let path = workspace.join(name);
        match read(directory, name) {
            Ok(None) => {}
            Ok(Some(content)) if seen.contains(&content.id) => {}
            Ok(Some(content)) => {
                seen.push(content.id);
                files.push(RawFile {
                    name: (*name).to_owned(),
                    path,
                    content: Some(content),
                    left_out: None,
                });
            }
            Err(error) => files.push(left_out(name, path, &error)),
        }
    }
    files
}

/// Device and inode: two names of one file have the same.
type FileId = (u64, u64);

/// Content of a file as far as it was read.
#[derive(Debug, Clone, Default)]
pub struct FileContent {
    text: String,
    /// True if the file is longer than what was read.
    is_cut: bool,
    id: FileId,
}

impl FileContent {
    /// The text, as far as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<&str> for FileContent {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

fn read(workspace: &Workspace<'_>, name: &str) -> Result<Option<FileContent>, PlaceError> {
    let head = workspace.read(name, MAX_BYTES)?;
    Ok(head.map(|Head { bytes, is_cut, metadata }| {
        let id = (metadata.dev(), metadata.ino());
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        FileContent { text, is_cut, id }
    }))
}

/// A file that is there and is not read.
fn left_out(name: &str, path: PathBuf, error: &PlaceError) -> RawFile {
    let why = workspace_file::why(error);
    tracing::warn!(path = %path.display(), "workspace file is left out of the prompt: {why}");
    RawFile { name: name.to_owned(), path, content: None, left_out: Some(why) }
}

/// Turns a file's content into what the model sees. `None` is a missing file.
pub fn shape(name: &str, path: &Path, content: Option<&FileContent>, max_chars: usize) -> BootstrapFile {
    let mut file =
        BootstrapFile { name: name.to_owned(), path: path.to_path_buf(), ..BootstrapFile::default() };
    let Some(content) = content else {
        file.missing = true;
        file.injected = format!("[MISSING] Expected at: {}", path.display());
        return file;
    };
    let text = content.text.trim_end();
    file.raw_chars = utf16_len(text);
    file.truncated = file.raw_chars > max_chars;
    if text.trim().is_empty() {
        file.truncated = false;
    } else if file.truncated {
        file.injected = truncate(name, text, file.raw_chars, max_chars);
    } else {
        text.clone_into(&mut file.injected);
    }
    if content.is_cut {
        file.truncated = true;
        let note = format!("\n\n[...only the first {MAX_BYTES} bytes of {name} were looked at...]");
        file.injected.push_str(&note);
    }
    file
}

/// Head (70 %) and tail (20 %) around two marker lines.
fn truncate(name: &str, text: &str, length: usize, max_chars: usize) -> String {
    let head = utf16_head(text, max_chars * 7 / 10);
    let tail = utf16_tail(text, max_chars / 5);
    let (kept_head, kept_tail) = (utf16_len(head), utf16_len(tail));
    let markers = format!(
        "[...truncated, read {name} for full content...]\n\u{2026}(truncated {name}: kept {kept_head}+{kept_tail} chars of {length})\u{2026}"
    );
    [head, "", &markers, "", tail].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(content: &str, max: usize) -> BootstrapFile {
        shape("TOOLS.md", Path::new("/w/TOOLS.md"), Some(&content.into()), max)
    }

    /// Vectors of spec `agent-runtime.md` §4.2.
    #[test]
    fn short_blank_and_missing_files_are_shaped_as_the_reference_does() {
        assert_eq!(shaped("hi\n", 20_000).injected, "hi");
        assert_eq!(shaped(" \n\t\n", 20_000).injected, "");
        assert_eq!(
            shaped("  \n", 1),
            BootstrapFile { name: "TOOLS.md".into(), path: "/w/TOOLS.md".into(), ..Default::default() }
        );
        let missing = shape("AGENTS.md", Path::new("/w/AGENTS.md"), None, 20_000);
        assert!(missing.missing);
        assert_eq!(missing.injected, "[MISSING] Expected at: /w/AGENTS.md");
    }

    #[test]
    fn a_long_file_keeps_head_and_tail_around_the_markers() {
        let content = format!("{}{}", "a".repeat(600), "b".repeat(600));
        let file = shaped(&content, 200);
        let expect = format!(
            "{}\n\n[...truncated, read TOOLS.md for full content...]\n\u{2026}(truncated TOOLS.md: kept 140+40 chars of 1200)\u{2026}\n\n{}",
            "a".repeat(140),
            "b".repeat(40)
        );
        assert_eq!(file.injected, expect);
        assert_eq!((file.truncated, file.raw_chars), (true, 1200));
    }

    #[test]
    fn the_reference_sizes_of_a_large_tools_file_hold() {
        let file = shaped(&"x".repeat(54_210), 20_000);
        assert!(file.injected.starts_with(&"x".repeat(14_000)));
        assert!(file.injected.ends_with(&format!("\n{}", "x".repeat(4_000))));
        assert!(file.injected.contains("kept 14000+4000 chars of 54210"));
    }

    #[test]
    fn a_cut_never_splits_a_surrogate_pair() {
        let file = shaped(&"😀".repeat(50), 15);
        // 10 units of head, 3 of tail: the half character at the tail is left out and counted so.
        assert!(file.injected.contains("kept 10+2 chars of 100"), "{}", file.injected);
    }

    #[test]
    fn memory_is_injected_in_private_sessions_only() {
        let dir = tempfile::tempdir().unwrap();
        for name in FILES {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        std::fs::write(dir.path().join("MEMORY.md"), "secret").unwrap();
        let names =
            |scope| load(dir.path(), scope, 100).into_iter().map(|file| file.name).collect::<Vec<_>>();
        let all: Vec<&str> = FILES.to_vec();
        assert_eq!(names(BootstrapScope::Shared), all);
        assert_eq!(names(BootstrapScope::Private), [all.as_slice(), &["MEMORY.md"]].concat());
        assert_eq!(names(BootstrapScope::Subagent), ["AGENTS.md", "TOOLS.md"]);
    }

    #[test]
    fn the_two_spellings_of_one_memory_file_are_injected_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("MEMORY.md"), "m").unwrap();
        std::os::unix::fs::symlink(dir.path().join("MEMORY.md"), dir.path().join("memory.md")).unwrap();
        let files = load(dir.path(), BootstrapScope::Private, 100);
        let memory: Vec<_> =
            files.iter().filter(|file| file.name.eq_ignore_ascii_case("memory.md")).collect();
        assert_eq!(memory.len(), 1);
    }

    #[test]
    fn what_is_no_file_of_the_workspace_is_missing_with_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let ws = dir.path().join("ws");
        std::fs::create_dir(&ws).unwrap();
        std::fs::write(dir.path().join("id_ed25519"), "PRIVATE KEY").unwrap();
        for name in ["SOUL.md", "MEMORY.md"] {
            std::os::unix::fs::symlink(dir.path().join("id_ed25519"), ws.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("/dev/zero", ws.join("USER.md")).unwrap();
        nix::unistd::mkfifo(&ws.join("TOOLS.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let files = load(&ws, BootstrapScope::Private, 100);
        let says = |name: &str| {
            let file = files.iter().find(|file| file.name == name).unwrap();
            assert!(file.missing, "{file:?}");
            file.injected.replace(&ws.display().to_string(), "")
        };
        let link = "(left out: it is a link that leads to no file of the workspace)";
        assert_eq!(says("SOUL.md"), format!("[MISSING] Expected at: /SOUL.md {link}"));
        assert_eq!(says("USER.md"), format!("[MISSING] Expected at: /USER.md {link}"));
        assert_eq!(says("MEMORY.md"), format!("[MISSING] Expected at: /MEMORY.md {link}"));
        assert_eq!(says("AGENTS.md"), "[MISSING] Expected at: /AGENTS.md");
        assert_eq!(says("TOOLS.md"), "[MISSING] Expected at: /TOOLS.md (left out: it is not a regular file)");
    }

    #[test]
    fn a_huge_file_is_read_so_far_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("AGENTS.md")).unwrap();
        std::io::Write::write_all(&mut &file, b"begin").unwrap();
        // Full of holes: it takes no room, and would take all memory.
        file.set_len(1 << 40).unwrap();
        let files = load(dir.path(), BootstrapScope::Subagent, 100);
        assert!(files[0].truncated && files[0].injected.starts_with("begin"));
        assert_eq!(files[0].raw_chars as u64, MAX_BYTES);
        assert!(
            files[0].injected.ends_with("[...only the first 2097152 bytes of AGENTS.md were looked at...]")
        );
    }

    #[test]
    fn scopes_follow_the_session_key() {
        let rows = [
            ("agent:main:main", BootstrapScope::Private),
            ("agent:main:telegram:dm:1", BootstrapScope::Private),
            ("agent:main:telegram:group:1", BootstrapScope::Shared),
            ("agent:main:cron:x", BootstrapScope::Shared),
            ("agent:main:subagent:x", BootstrapScope::Subagent),
        ];
        for (key, expect) in rows {
            let key = SessionKey::parse(key).unwrap();
            assert_eq!(BootstrapScope::for_session(&key, "main"), expect, "{key}");
        }
    }
}
