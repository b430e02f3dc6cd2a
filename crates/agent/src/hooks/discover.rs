//! Finding hooks: which directories are looked into, and what a pack is (spec `agent-runtime.md` §8.1).

use std::io;
use std::path::{Path, PathBuf};

use openclaw_config::Config;
use openclaw_config::settings::SandboxWritable;
use serde_json::Value;

use super::bundled::{self, Bundled};
use super::hook_file::{HookFile, HookFileError};
use super::trust::{self, NotTrusted};

/// Longer files are not read; those of OpenClaw have 5 KiB.
const MAX_FILE: u64 = 256 * 1024;
/// Entries of a directory that are looked at.
const MAX_ENTRIES: usize = 1_000;
/// The product's key in `package.json`, then those it had before.
const PACK_KEYS: &[&str] = &["openclaw", "moltbot", "clawdbot"];

/// Origin of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOrigin {
    /// `hooks.internal.load.extraDirs`.
    Extra,
    /// Part of the gateway, or `OPENCLAW_BUNDLED_HOOKS_DIR`.
    Bundled,
    /// The state directory's `hooks`.
    Managed,
    /// The workspace's `hooks`.
    Workspace,
}

impl HookOrigin {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Extra => "openclaw-extra",
            Self::Bundled => "openclaw-bundled",
            Self::Managed => "openclaw-managed",
            Self::Workspace => "openclaw-workspace",
        }
    }
}

/// The directories that are looked into, the weakest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Additional directories, in the order of the configuration.
    pub extra: Vec<PathBuf>,
    /// Directory that replaces the hooks of the gateway itself.
    pub bundled: Option<PathBuf>,
    /// Below the state directory.
    pub managed: PathBuf,
    /// The workspace of the default agent.
    pub workspace: PathBuf,
    /// Places where commands in a sandbox may write: they would then run what they wrote outside of it.
    pub sandboxes: SandboxWritable,
}

impl Places {
    /// Reads the places of a configuration. Blocking.
    pub fn of(config: &Config) -> Self {
        let environment = config.environment();
        let workspace = config.agent(&config.default_agent()).workspace;
        Self {
            sandboxes: config.sandbox_writable(),
            extra: config
                .hooks
                .internal
                .load
                .extra_dirs
                .iter()
                .map(|dir| environment.expand_path(dir))
                .collect(),
            bundled: environment
                .get_nonblank("OPENCLAW_BUNDLED_HOOKS_DIR")
                .map(|dir| environment.expand_path(dir)),
            managed: config.paths().state_dir().join("hooks"),
            workspace,
        }
    }

    fn directories(&self) -> Vec<(HookOrigin, PathBuf)> {
        let mut all: Vec<_> = self.extra.iter().map(|dir| (HookOrigin::Extra, dir.clone())).collect();
        all.extend(self.bundled.iter().map(|dir| (HookOrigin::Bundled, dir.clone())));
        all.extend([
            (HookOrigin::Managed, self.managed.clone()),
            (HookOrigin::Workspace, self.workspace.join("hooks")),
        ]);
        all
    }
}

/// A hook that was found. The decision if it may be used is made elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// Content of the hook's `HOOK.md`.
    pub about: HookFile,
    /// Origin of the hook.
    pub source: HookOrigin,
    /// Location of the hook's files.
    pub home: Home,
}

/// Location of a hook's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// Built into the gateway.
    BuiltIn(Bundled),
    /// Files in this directory.
    Directory(PathBuf),
}

/// Entry that looks like a hook but is not usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path of the file or directory.
    pub path: PathBuf,
    /// Description of the problem.
    pub text: String,
}

/// Result of a search for hooks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundHooks {
    /// Hooks with unique names: each is that of the strongest place, at the position of the
    /// weakest.
    pub hooks: Vec<Hook>,
    /// Entries that are not usable hooks.
    pub problems: Vec<Problem>,
}

/// Reason why a file or directory is not a hook.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoHook {
    #[error(transparent)]
    NotTrusted(#[from] NotTrusted),
    #[error(transparent)]
    File(#[from] HookFileError),
    #[error("package.json is no JSON: {0}")]
    Pack(#[from] serde_json::Error),
    #[error("package.json names {0}, which is outside of the pack")]
    Outside(String),
    #[error("package.json names {0}, which has no HOOK.md")]
    NotThere(String),
}

/// Looks for hooks. Blocking.
pub fn discover(places: &Places) -> FoundHooks {
    let mut found = FoundHooks::default();
    let mut has_built_in = places.bundled.is_some();
    for (source, dir) in places.directories() {
        if !has_built_in && source != HookOrigin::Extra {
            has_built_in = true;
            built_in(&mut found);
        }
        look_into(&dir, source, &places.sandboxes, &mut found);
    }
    found
}

fn built_in(found: &mut FoundHooks) {
    for (hook, name, text) in bundled::ALL {
        match HookFile::parse(text, name) {
            Ok(about) => found.add(Hook { about, source: HookOrigin::Bundled, home: Home::BuiltIn(hook) }),
            Err(error) => found.problem(Path::new(name), error),
        }
    }
}

fn look_into(dir: &Path, source: HookOrigin, sandboxes: &SandboxWritable, found: &mut FoundHooks) {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return found.problem(dir, error),
    };
    if let Err(error) = trust::require(dir, sandboxes) {
        return found.problem(dir, error);
    }
    let dirs = match source {
        // A directory that `hooks install --link` named.
        HookOrigin::Extra if is_itself(dir, sandboxes) => vec![dir.to_owned()],
        HookOrigin::Extra | HookOrigin::Bundled | HookOrigin::Managed | HookOrigin::Workspace => {
            let names = entries.take(MAX_ENTRIES).filter_map(Result::ok).map(|entry| entry.path());
            let mut dirs: Vec<PathBuf> = names.filter(|path| path.is_dir()).collect();
            dirs.sort();
            dirs
        }
    };
    for dir in dirs {
        match hooks_of(&dir, sandboxes, found) {
            Ok(files) => {
                for (dir, about) in files {
                    found.add(Hook { about, source, home: Home::Directory(dir) });
                }
            }
            Err(error) => found.problem(&dir, error),
        }
    }
}

/// Returns true if a directory is itself a hook or a pack rather than a directory of hooks.
fn is_itself(dir: &Path, sandboxes: &SandboxWritable) -> bool {
    dir.join("HOOK.md").is_file() || matches!(pack(dir, sandboxes), Ok(Some(_)))
}

/// The hook of a directory, or those of a pack. None where it has neither `HOOK.md` nor `package.json`.
fn hooks_of(
    dir: &Path,
    sandboxes: &SandboxWritable,
    found: &mut FoundHooks,
) -> Result<Vec<(PathBuf, HookFile)>, NoHook> {
    let Some(pack) = pack(dir, sandboxes)? else {
        return Ok(hook(dir, sandboxes)?.map(|about| (dir.to_owned(), about)).into_iter().collect());
    };
    let mut hooks = Vec::new();
    for name in pack {
        match of_pack(dir, &name, sandboxes) {
            Ok(member) => hooks.push(member),
            Err(error) => found.problem(dir, error),
        }
    }
    Ok(hooks)
}

/// The hook of a directory; nothing where there is no `HOOK.md`.
pub(super) fn hook(dir: &Path, sandboxes: &SandboxWritable) -> Result<Option<HookFile>, NoHook> {
    let path = dir.join("HOOK.md");
    if std::fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    trust::require(dir, sandboxes)?;
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Some(HookFile::parse(&trust::read(&path, MAX_FILE, sandboxes)?, &name)?))
}

/// The directories that a pack names; nothing where it is no pack.
pub(super) fn pack(dir: &Path, sandboxes: &SandboxWritable) -> Result<Option<Vec<String>>, NoHook> {
    let path = dir.join("package.json");
    if !path.exists() {
        return Ok(None);
    }
    let package: Value = serde_json::from_str(&trust::read(&path, MAX_FILE, sandboxes)?)?;
    let named = PACK_KEYS.iter().find_map(|key| package.get(key)?.get("hooks")?.as_array());
    let names = named.into_iter().flatten().filter_map(Value::as_str).map(str::trim);
    let names: Vec<String> =
        names.filter(|name| !name.is_empty()).take(MAX_ENTRIES).map(str::to_owned).collect();
    Ok((!names.is_empty()).then_some(names))
}

/// Reads one hook of a pack. Refuses a hook that lies outside of the pack after links are resolved.
pub(super) fn of_pack(
    pack: &Path,
    name: &str,
    sandboxes: &SandboxWritable,
) -> Result<(PathBuf, HookFile), NoHook> {
    let not_there = || NoHook::NotThere(name.to_owned());
    let root = pack.canonicalize().map_err(NotTrusted::from)?;
    let lexical = openclaw_config::without_dots(&root.join(name));
    if !lexical.starts_with(&root) {
        return Err(NoHook::Outside(name.to_owned()));
    }
    let dir = lexical.canonicalize().map_err(|_| not_there())?;
    if !dir.starts_with(&root) {
        return Err(NoHook::Outside(name.to_owned()));
    }
    let about = hook(&dir, sandboxes)?.ok_or_else(not_there)?;
    Ok((dir, about))
}

impl FoundHooks {
    fn add(&mut self, hook: Hook) {
        match self.hooks.iter_mut().find(|known| known.about.name == hook.about.name) {
            Some(weaker) => *weaker = hook,
            None => self.hooks.push(hook),
        }
    }

    fn problem(&mut self, path: &Path, error: impl std::fmt::Display) {
        self.problems.push(Problem { path: path.to_owned(), text: error.to_string() });
    }
}

#[cfg(test)]
mod tests;
