//! Finding hooks: which directories are looked into, and what a pack is (spec `agent-runtime.md` §8.1).

use std::io;
use std::path::{Path, PathBuf};

use openclaw_config::Config;
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

/// Where a hook comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `hooks.internal.load.extraDirs`.
    Extra,
    /// Part of the gateway, or `OPENCLAW_BUNDLED_HOOKS_DIR`.
    Bundled,
    /// The state directory's `hooks`.
    Managed,
    /// The workspace's `hooks`.
    Workspace,
}

impl Source {
    /// As it is on the wire.
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
    /// In the order of the configuration.
    pub extra: Vec<PathBuf>,
    /// In place of those that are part of the gateway.
    pub bundled: Option<PathBuf>,
    /// Below the state directory.
    pub managed: PathBuf,
    /// The workspace of the default agent.
    pub workspace: PathBuf,
    /// Whether commands in a sandbox may write there: they would then run what they wrote outside of it.
    pub is_open_to_sandboxes: bool,
}

impl Places {
    /// Those of a configuration.
    pub fn of(config: &Config) -> Self {
        let environment = config.environment();
        let workspace = config.agent(&config.default_agent()).workspace;
        Self {
            is_open_to_sandboxes: config.is_open_to_sandboxes(&workspace),
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

    fn directories(&self) -> Vec<(Source, PathBuf)> {
        let mut all: Vec<_> = self.extra.iter().map(|dir| (Source::Extra, dir.clone())).collect();
        all.extend(self.bundled.iter().map(|dir| (Source::Bundled, dir.clone())));
        all.extend([
            (Source::Managed, self.managed.clone()),
            (Source::Workspace, self.workspace.join("hooks")),
        ]);
        all
    }
}

/// A hook that was found. Whether it may be used is another question.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// What it says of itself.
    pub about: HookFile,
    /// Where it comes from.
    pub source: Source,
    /// Where its files are.
    pub home: Home,
}

/// Where a hook's files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// In the gateway itself.
    BuiltIn(Bundled),
    /// In this directory.
    Directory(PathBuf),
}

/// Something that looks like a hook and is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub path: PathBuf,
    /// What is wrong.
    pub text: String,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Each name once: that of the strongest place, where the weakest stood.
    pub hooks: Vec<Hook>,
    /// What is none.
    pub problems: Vec<Problem>,
}

/// Why something is no hook.
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

const OPEN_TO_SANDBOXES: &str = "a sandbox may write here (workspaceAccess is rw), so no hook of it is used";

/// Looks for hooks. Blocking.
pub fn discover(places: &Places) -> Found {
    let mut found = Found::default();
    let mut has_built_in = places.bundled.is_some();
    for (source, dir) in places.directories() {
        if !has_built_in && source != Source::Extra {
            has_built_in = true;
            built_in(&mut found);
        }
        if source == Source::Workspace && places.is_open_to_sandboxes {
            if dir.exists() {
                found.problem(&dir, OPEN_TO_SANDBOXES);
            }
            continue;
        }
        look_into(&dir, source, &mut found);
    }
    found
}

fn built_in(found: &mut Found) {
    for (hook, name, text) in bundled::ALL {
        match HookFile::parse(text, name) {
            Ok(about) => found.add(Hook { about, source: Source::Bundled, home: Home::BuiltIn(hook) }),
            Err(error) => found.problem(Path::new(name), error),
        }
    }
}

fn look_into(dir: &Path, source: Source, found: &mut Found) {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return found.problem(dir, error),
    };
    if let Err(error) = trust::require(dir) {
        return found.problem(dir, error);
    }
    let dirs = match source {
        // A directory that `hooks install --link` named.
        Source::Extra if is_itself(dir) => vec![dir.to_owned()],
        Source::Extra | Source::Bundled | Source::Managed | Source::Workspace => {
            let names = entries.take(MAX_ENTRIES).filter_map(Result::ok).map(|entry| entry.path());
            let mut dirs: Vec<PathBuf> = names.filter(|path| path.is_dir()).collect();
            dirs.sort();
            dirs
        }
    };
    for dir in dirs {
        match hooks_of(&dir, found) {
            Ok(files) => {
                for (dir, about) in files {
                    found.add(Hook { about, source, home: Home::Directory(dir) });
                }
            }
            Err(error) => found.problem(&dir, error),
        }
    }
}

/// Whether a directory is a hook or a pack, and not one of hooks.
fn is_itself(dir: &Path) -> bool {
    dir.join("HOOK.md").is_file() || matches!(pack(dir), Ok(Some(_)))
}

/// The hook of a directory, or those of a pack. None where it has neither `HOOK.md` nor `package.json`.
fn hooks_of(dir: &Path, found: &mut Found) -> Result<Vec<(PathBuf, HookFile)>, NoHook> {
    let Some(pack) = pack(dir)? else {
        return Ok(hook(dir)?.map(|about| (dir.to_owned(), about)).into_iter().collect());
    };
    let mut hooks = Vec::new();
    for name in pack {
        match of_pack(dir, &name) {
            Ok(member) => hooks.push(member),
            Err(error) => found.problem(dir, error),
        }
    }
    Ok(hooks)
}

/// The hook of a directory; nothing where there is no `HOOK.md`.
pub(super) fn hook(dir: &Path) -> Result<Option<HookFile>, NoHook> {
    let path = dir.join("HOOK.md");
    if std::fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    trust::require(dir)?;
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Some(HookFile::parse(&trust::read(&path, MAX_FILE)?, &name)?))
}

/// The directories that a pack names; nothing where it is no pack.
pub(super) fn pack(dir: &Path) -> Result<Option<Vec<String>>, NoHook> {
    let path = dir.join("package.json");
    if !path.exists() {
        return Ok(None);
    }
    let package: Value = serde_json::from_str(&trust::read(&path, MAX_FILE)?)?;
    let named = PACK_KEYS.iter().find_map(|key| package.get(key)?.get("hooks")?.as_array());
    let names = named.into_iter().flatten().filter_map(Value::as_str).map(str::trim);
    let names: Vec<String> =
        names.filter(|name| !name.is_empty()).take(MAX_ENTRIES).map(str::to_owned).collect();
    Ok((!names.is_empty()).then_some(names))
}

/// One hook of a pack. Whatever links lead to, it is in the pack.
pub(super) fn of_pack(pack: &Path, name: &str) -> Result<(PathBuf, HookFile), NoHook> {
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
    let about = hook(&dir)?.ok_or_else(not_there)?;
    Ok((dir, about))
}

impl Found {
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
