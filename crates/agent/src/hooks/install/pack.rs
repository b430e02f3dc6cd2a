//! Finds what can be installed from a directory: one hook, or a pack of hooks. Unlike hooks that
//! are found, all have to be right.

use std::fs;
use std::path::{Path, PathBuf};

use openclaw_config::settings::SandboxWritable;
use serde_json::Value;

use super::super::discover::{NoHook, hook, of_pack, pack};
use super::super::handler;
use super::super::hook_file::HookFile;
use super::super::trust::{self, NotTrusted};

/// Largest file in bytes, as for hooks that are found.
const MAX_FILE: u64 = 256 * 1024;

/// Reason why a directory has nothing that can be installed; for people.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A hook in it is none.
    #[error("{path}: {reason}")]
    NoHook {
        /// Path of the hook in the pack.
        path: String,
        /// Reason why the hook can't be used.
        reason: String,
    },
    /// The directory contains no hook.
    #[error("it has neither a HOOK.md nor a package.json with openclaw.hooks; is it a pack of hooks?")]
    Nothing,
    /// A hook has nothing that handles its events.
    #[error("{0} has no handler")]
    NoHandler(String),
    /// The name can't be a directory name.
    #[error("\"{0}\" cannot be the name of a directory of hooks")]
    Name(String),
}

/// A hook, or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pack {
    /// The package's name without its scope, or the hook's name. It can be the name of a directory.
    pub id: String,
    /// Hooks of the pack; never empty.
    pub hooks: Vec<PackedHook>,
    /// As `package.json` says.
    pub version: Option<String>,
    /// True if the pack depends on other npm packages.
    pub has_dependencies: bool,
}

/// A hook of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedHook {
    /// Name of the hook.
    pub name: String,
    /// Key of the hook below `hooks.internal.entries`.
    pub key: String,
}

impl Pack {
    /// The names of its hooks.
    pub fn names(&self) -> Vec<&str> {
        self.hooks.iter().map(|hook| hook.name.as_str()).collect()
    }

    /// Reads a directory, wherever it lies: nothing of it is run, and once installed it is looked at again. Blocking.
    pub(super) fn read(dir: &Path) -> Result<Self, PackError> {
        let anywhere = SandboxWritable::default();
        let bad =
            |error: NoHook| PackError::NoHook { path: dir.display().to_string(), reason: error.to_string() };
        let package = package(dir, &anywhere).map_err(bad)?;
        let text =
            |key: &str| Some(package.get(key)?.as_str()?.trim().to_owned()).filter(|it| !it.is_empty());
        let (id, hooks) = match pack(dir, &anywhere).map_err(bad)? {
            Some(members) => {
                let members = members.iter().map(|name| of_pack(dir, name, &anywhere).map_err(bad));
                let hooks = members.map(|member| packed(member?)).collect::<Result<_, _>>()?;
                (text("name").map_or_else(|| base(dir), |name| unscoped(&name).to_owned()), hooks)
            }
            None => {
                let about = hook(dir, &anywhere).map_err(bad)?.ok_or(PackError::Nothing)?;
                (about.name.clone(), vec![packed((dir.to_owned(), about))?])
            }
        };
        if !is_directory_name(&id) {
            return Err(PackError::Name(id));
        }
        let dependencies = package.get("dependencies").and_then(Value::as_object);
        let has_dependencies = dependencies.is_some_and(|named| !named.is_empty());
        Ok(Self { id, hooks, version: text("version"), has_dependencies })
    }
}

fn packed((dir, about): (PathBuf, HookFile)) -> Result<PackedHook, PackError> {
    if handler::file_of(&dir).is_none() {
        return Err(PackError::NoHandler(about.name));
    }
    Ok(PackedHook { name: about.name, key: about.key })
}

fn package(dir: &Path, sandboxes: &SandboxWritable) -> Result<Value, NoHook> {
    let path = dir.join("package.json");
    if !path.exists() {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_str(&trust::read(&path, MAX_FILE, sandboxes)?)?)
}

fn base(dir: &Path) -> String {
    dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn unscoped(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn is_directory_name(id: &str) -> bool {
    let is_plain = |letter: char| !letter.is_control() && letter != '/' && letter != '\\';
    !id.is_empty() && id.len() <= 128 && !id.starts_with('.') && id.chars().all(is_plain)
}

/// Finds the hooks in an unpacked archive: at the top, or in the only directory there.
pub(super) fn root_of(dir: &Path) -> Result<PathBuf, PackError> {
    if ["HOOK.md", "package.json"].iter().any(|name| dir.join(name).is_file()) {
        return Ok(dir.to_owned());
    }
    let unreadable = |error| PackError::NoHook {
        path: dir.display().to_string(),
        reason: NoHook::from(NotTrusted::from(error)).to_string(),
    };
    let entries = fs::read_dir(dir).map_err(unreadable)?.take(2).filter_map(Result::ok);
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    match (inside.pop(), inside.pop()) {
        (Some(only), None) if only.is_dir() && !only.is_symlink() => Ok(only),
        _ => Err(PackError::Nothing),
    }
}
