//! The agent's workspace and what it starts with (spec `agent-runtime.md` §5). Blocking.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Initial content of `IDENTITY.md`.
pub(crate) const IDENTITY_TEMPLATE: &str = include_str!("templates/IDENTITY.md");

/// The files every workspace gets.
const TEMPLATES: &[(&str, &str)] = &[
    ("AGENTS.md", include_str!("templates/AGENTS.md")),
    ("SOUL.md", include_str!("templates/SOUL.md")),
    ("TOOLS.md", include_str!("templates/TOOLS.md")),
    ("IDENTITY.md", IDENTITY_TEMPLATE),
    ("USER.md", include_str!("templates/USER.md")),
    ("HEARTBEAT.md", include_str!("templates/HEARTBEAT.md")),
];

/// Name of the file that exists only until the first run.
pub(crate) const RITUAL_FILE: &str = "BOOTSTRAP.md";

/// The first-run ritual, only in a brand new workspace.
const RITUAL: (&str, &str) = (RITUAL_FILE, include_str!("templates/BOOTSTRAP.md"));

/// Time limit of `git init`.
const GIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Files that a new workspace is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fill {
    /// The directory only (`agents.defaults.skipBootstrap`).
    DirectoryOnly,
    /// Missing template files, the ritual and a git repository in a brand new one.
    Templates,
}

/// Report of what [`ensure`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ensured {
    /// True if none of the template files existed before.
    pub brand_new: bool,
    /// The files that were written.
    pub written: Vec<&'static str>,
    /// True if a git repository was created.
    pub git: bool,
}

/// The workspace could not be made ready; tell the owner.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare workspace {path}: {source}; {}", remedy(source))]
pub struct WorkspaceError {
    /// The directory or file.
    pub path: PathBuf,
    /// Underlying I/O error.
    #[source]
    pub source: std::io::Error,
}

/// Returns advice on how to resolve the error.
fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "let the gateway's user write there, or name another directory (agents.defaults.workspace)"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room on the disk",
        _ => "move away what is in its place, or name another directory (agents.defaults.workspace)",
    }
}

/// Makes the directory and, when asked to, fills in what is missing. Never overwrites.
pub fn ensure(dir: &Path, fill: Fill) -> Result<Ensured, WorkspaceError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| WorkspaceError { path, source }
    };
    if !dir.is_dir() {
        fs::create_dir_all(dir).map_err(failed(dir))?;
    }
    if fill == Fill::DirectoryOnly {
        return Ok(Ensured::default());
    }
    let mut done = Ensured { brand_new: is_brand_new(dir), ..Ensured::default() };
    let ritual = done.brand_new.then_some(RITUAL);
    for (name, template) in TEMPLATES.iter().copied().chain(ritual) {
        let path = dir.join(name);
        if create(&path, body(template)).map_err(failed(&path))? {
            done.written.push(name);
        }
    }
    if done.brand_new && !dir.join(".git").exists() {
        done.git = git_init(dir);
    }
    Ok(done)
}

fn is_brand_new(dir: &Path) -> bool {
    TEMPLATES.iter().all(|(name, _)| !dir.join(name).exists())
}

/// Writes a file that is not there yet; whether it did.
pub(crate) fn create(path: &Path, text: &str) -> std::io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// A template without its front matter.
fn body(template: &str) -> &str {
    let Some(rest) = template.strip_prefix("---\n") else { return template };
    rest.split_once("\n---\n").map_or(template, |(_, body)| body.trim_start())
}

/// A repository so that the agent can undo; no git, no repository.
fn git_init(dir: &Path) -> bool {
    let spawned = Command::new("git")
        .arg("init")
        .arg("--quiet")
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = spawned else { return false };
    let deadline = Instant::now() + GIT_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brand_new_workspace_gets_everything_and_the_ritual() {
        let dir = tempfile::tempdir().unwrap();
        let ws = dir.path().join("ws");
        let done = ensure(&ws, Fill::Templates).unwrap();
        let all =
            ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md"];
        assert_eq!((done.brand_new, done.written.as_slice()), (true, all.as_slice()));
        assert_eq!(done.git, ws.join(".git").exists());
        assert_eq!(ensure(&ws, Fill::Templates).unwrap(), Ensured::default());
    }

    #[test]
    fn existing_files_are_kept_and_the_ritual_does_not_come_back() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("SOUL.md"), "mine").unwrap();
        let done = ensure(dir.path(), Fill::Templates).unwrap();
        assert!(!done.brand_new && !done.git);
        assert_eq!(std::fs::read_to_string(dir.path().join("SOUL.md")).unwrap(), "mine");
        assert!(!dir.path().join("BOOTSTRAP.md").exists());
        assert!(dir.path().join("AGENTS.md").exists());
    }

    #[test]
    fn skipping_makes_the_directory_only() {
        let dir = tempfile::tempdir().unwrap();
        let ws = dir.path().join("a/b");
        assert_eq!(ensure(&ws, Fill::DirectoryOnly).unwrap(), Ensured::default());
        assert_eq!(std::fs::read_dir(&ws).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "").unwrap();
        let error = ensure(&file.join("ws"), Fill::Templates).unwrap_err();
        assert!(error.to_string().contains("f/ws"), "{error}");
    }

    #[test]
    fn templates_lose_their_front_matter() {
        assert_eq!(body("---\ntitle: x\n---\n\n# A\n"), "# A\n");
        assert_eq!(body("# A\n---\n"), "# A\n---\n");
    }

    /// A heartbeat is skipped while the file holds nothing but comments.
    #[test]
    fn the_heartbeat_template_asks_for_nothing() {
        let (_, heartbeat) = TEMPLATES.iter().find(|(name, _)| *name == "HEARTBEAT.md").unwrap();
        assert!(heartbeat.lines().all(|line| line.trim().is_empty() || line.starts_with('#')));
    }
}
