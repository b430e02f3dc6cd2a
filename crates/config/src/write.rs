//! Writing the config file (spec `config.md` §8).
//!
//! Only what changed is touched in the text; references to variables, includes, comments and order stay. The file is
//! replaced atomically under a lock, the former one is kept as a backup, and what changed (never to what) is noted.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::edit::{edit_text, new_text};
use crate::load::{self, Loaded, hash_of};
use crate::private_file::{self, Durability};
use crate::redact::REDACTED;
use crate::shared_place;
use crate::value_path::join;
use crate::{ConfigIssueKind, InvalidConfig, Issue, diff, includes, legacy, value_path};

/// Backups kept beside the file: `.bak`, `.bak.1` … `.bak.4`.
const BACKUPS: usize = 5;
/// Size at which the audit file is started afresh, in bytes; two former ones are kept.
const AUDIT_MAX_BYTES: u64 = 1024 * 1024;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Party that changes the config; goes into the audit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A command.
    Cli,
    /// A client of the gateway.
    Rpc,
    /// A chat command.
    Channel,
    /// An agent, by its tool.
    Agent,
}

impl Actor {
    fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Rpc => "rpc",
            Self::Channel => "channel",
            Self::Agent => "agent",
        }
    }
}

/// Result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// Hash of its new text.
    pub hash: String,
    /// Paths that changed; empty when nothing had to be written.
    pub changed_paths: Vec<String>,
    /// Mistakes that are left in a file that had others too. It can't be used yet.
    pub left: Vec<Issue>,
}

/// Reason why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file on disk does not parse; writing would lose what it holds.
    #[error("{path} could not be parsed, so it was not changed: {message}; fix it by hand first")]
    Unparsable {
        /// The file.
        path: String,
        /// The parser's message.
        message: String,
    },
    /// The change would make the config invalid.
    #[error("Config validation failed: {}", first_line(issues))]
    Invalid {
        /// Problems found.
        issues: Vec<Issue>,
    },
    /// The stand-in for secrets would be stored.
    #[error("config write rejected: \"{0}\" is redacted; set an explicit value instead of {REDACTED}")]
    Redacted(String),
    /// A value that comes from an included file would have to be removed or a list of it replaced.
    #[error("{path} comes from an included file; change it there{files}")]
    Included {
        /// Path in the config.
        path: String,
        /// The files that are included, as the end of the message; nothing where none was read.
        files: String,
    },
    /// Another writer changed the file since it was read.
    #[error("config changed since last load; re-run config.get and retry")]
    Changed,
    /// The file system refused.
    #[error("could not write {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Error from the system.
        source: io::Error,
    },
}

impl WriteError {
    /// Error for a value at this path that comes from a file which the config includes.
    pub fn included(loaded: &Loaded, path: impl Into<String>) -> Self {
        let files: Vec<String> =
            loaded.included_files.iter().map(|file| file.display().to_string()).collect();
        let files = if files.is_empty() { String::new() } else { format!(": {}", files.join(", ")) };
        Self::Included { path: path.into(), files }
    }
}

fn first_line(issues: &[Issue]) -> String {
    Issue::foremost(issues)
        .map(|issue| {
            let path = if issue.path.is_empty() { "<root>" } else { &issue.path };
            format!("{path}: {}", issue.message)
        })
        .unwrap_or_default()
}

/// Writes a whole new document, in the form of the file (references and includes as in [`crate::ConfigSnapshot::parsed`]).
///
/// # Errors
/// [`WriteError`]; the file is unchanged then.
pub fn write(loaded: &Loaded, next: &Value, actor: Actor) -> Result<Written, WriteError> {
    let snapshot = &loaded.snapshot;
    if snapshot.raw.is_some() && !snapshot.is_parsable() {
        let message = snapshot.issues.first().map(|issue| issue.message.clone()).unwrap_or_default();
        return Err(WriteError::Unparsable { path: snapshot.path.display().to_string(), message });
    }
    if let Some(path) = find_redacted(next, "") {
        return Err(WriteError::Redacted(path.rsplit('.').next().unwrap_or_default().to_owned()));
    }
    let changed_paths = diff::changed_paths(&snapshot.parsed, next);
    let exists = snapshot.raw.is_some();
    if changed_paths.is_empty() && exists {
        return Ok(Written {
            path: snapshot.path.clone(),
            hash: snapshot.hash.clone(),
            changed_paths,
            left: Vec::new(),
        });
    }
    refuse_included(loaded, next, &changed_paths)?;
    let mut next = next.clone();
    stamp(&mut next);
    let left = mistakes(loaded, &next);
    // Somebody at the keyboard mends a file with several mistakes one by one.
    if !left.is_empty()
        && (actor != Actor::Cli || !is_mended(&mistakes(loaded, &snapshot.parsed), &left, &changed_paths))
    {
        return Err(WriteError::Invalid { issues: left });
    }
    let text = match &snapshot.raw {
        Some(raw) if !raw.trim().is_empty() => edit_text(raw, &next).map_err(|error| {
            WriteError::Unparsable { path: snapshot.path.display().to_string(), message: error.to_string() }
        })?,
        Some(_) | None => new_text(&next),
    };
    let target = snapshot.path.canonicalize().unwrap_or_else(|_| snapshot.path.clone());
    replace(&target, &text, exists.then_some(snapshot.hash.as_str()))?;
    let hash = hash_of(&text);
    audit(loaded, actor, &hash, &changed_paths);
    Ok(Written { path: snapshot.path.clone(), hash, changed_paths, left })
}

/// Reasons why a document in the form of the file can't be used.
fn mistakes(loaded: &Loaded, document: &Value) -> Vec<Issue> {
    let checked = load::validate_source(document, &loaded.paths, &loaded.environment);
    checked.err().map(|InvalidConfig { issues, .. }| issues).unwrap_or_default()
}

/// True if a change leaves fewer mistakes than there were. Some are only looked for once others are gone: one that is found
/// elsewhere than in what was changed was there before.
fn is_mended(before: &[Issue], after: &[Issue], changed: &[String]) -> bool {
    let (before, after) = (single_mistakes(before), single_mistakes(after));
    let is_gone = before.iter().any(|mistake| !after.contains(mistake));
    let is_of_change = |(path, _): &(String, String)| changed.iter().any(|each| overlap(path, each));
    let mut new = after.iter().filter(|mistake| !before.contains(mistake));
    after.len() < before.len() || (is_gone && !new.any(is_of_change))
}

/// Mistakes by path and message, unknown keys one by one.
fn single_mistakes(issues: &[Issue]) -> Vec<(String, String)> {
    let single = |issue: &Issue| -> Vec<(String, String)> {
        match issue.kind {
            ConfigIssueKind::UnknownKey => {
                let keys = issue.message.split('"').skip(1).step_by(2);
                keys.map(|key| (join(&issue.path, key), String::new())).collect()
            }
            ConfigIssueKind::Syntax
            | ConfigIssueKind::MissingVariable
            | ConfigIssueKind::Include
            | ConfigIssueKind::Other => {
                vec![(issue.path.clone(), issue.message.clone())]
            }
        }
    };
    issues.iter().flat_map(single).collect()
}

/// True if one of these paths is the other, or leads to it.
fn overlap(one: &str, other: &str) -> bool {
    let leads = |above: &str, path: &str| {
        above.is_empty()
            || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    leads(one, other) || leads(other, one)
}

/// True if the file itself has keys that [`move_old_keys`] moves.
pub fn has_old_keys(loaded: &Loaded) -> bool {
    legacy::migrate(&loaded.snapshot.parsed).is_some()
}

/// Moves keys of older versions to where they belong now. `None` where the file has none; those of included files stay.
///
/// # Errors
/// [`WriteError`]; the file is unchanged then.
pub fn move_old_keys(loaded: &Loaded, actor: Actor) -> Result<Option<Written>, WriteError> {
    match legacy::migrate(&loaded.snapshot.parsed) {
        Some((next, _)) => write(loaded, &next, actor).map(Some),
        None => Ok(None),
    }
}

/// Sets one value.
///
/// # Errors
/// [`WriteError`]; the file is unchanged then.
pub fn set_value(
    loaded: &Loaded,
    path: &[String],
    value: Value,
    actor: Actor,
) -> Result<Written, WriteError> {
    let mut next = loaded.snapshot.parsed.clone();
    value_path::set(&mut next, path, value);
    write(loaded, &next, actor)
}

/// Removes one value. `None` when there was none in the file.
///
/// # Errors
/// [`WriteError`]; the file is unchanged then.
pub fn unset_value(loaded: &Loaded, path: &[String], actor: Actor) -> Result<Option<Written>, WriteError> {
    let mut next = loaded.snapshot.parsed.clone();
    if value_path::unset(&mut next, path) {
        return write(loaded, &next, actor).map(Some);
    }
    let is_included = includes::uses_includes(&loaded.snapshot.parsed)
        && value_path::get(&loaded.snapshot.config, path).is_some();
    if is_included { Err(WriteError::included(loaded, path.join("."))) } else { Ok(None) }
}

fn stamp(document: &mut Value) {
    let now = jiff::Timestamp::now();
    let text = format!("{now:.3}");
    value_path::set(document, &["meta".to_owned(), "lastTouchedVersion".to_owned()], json!(VERSION));
    value_path::set(document, &["meta".to_owned(), "lastTouchedAt".to_owned()], json!(text));
}

/// A list beside an include would be joined with the included one, so it can't be set from here.
fn refuse_included(loaded: &Loaded, next: &Value, changed: &[String]) -> Result<(), WriteError> {
    if !includes::uses_includes(&loaded.snapshot.parsed) {
        return Ok(());
    }
    for path in changed {
        let segments: Vec<String> = path.split('.').map(str::to_owned).collect();
        let of = |document| value_path::get(document, &segments);
        let (in_file, in_effect) = (of(&loaded.snapshot.parsed), of(&loaded.snapshot.config));
        if let Some(path) = of(next).and_then(|value| included_list(value, in_file, in_effect, path)) {
            return Err(WriteError::included(loaded, path));
        }
    }
    Ok(())
}

/// Path of a list in a value that is in effect and not in the file, if there is one.
fn included_list(
    value: &Value,
    in_file: Option<&Value>,
    in_effect: Option<&Value>,
    path: &str,
) -> Option<String> {
    match value {
        Value::Array(_) => {
            (in_file.is_none() && in_effect.is_some_and(Value::is_array)).then(|| path.to_owned())
        }
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            let (in_file, in_effect) = (in_file.and_then(|v| v.get(key)), in_effect.and_then(|v| v.get(key)));
            included_list(value, in_file, in_effect, &join(path, key))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn find_redacted(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::String(text) => text.contains(REDACTED).then(|| path.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| find_redacted(item, &join(path, &at.to_string())))
        }
        Value::Object(map) => map.iter().find_map(|(key, each)| find_redacted(each, &join(path, key))),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Replaces the file under a lock; refuses when its text is not the one that was read.
fn replace(target: &Path, text: &str, expected_hash: Option<&str>) -> Result<(), WriteError> {
    let failed = |source: io::Error| WriteError::Io { path: target.display().to_string(), source };
    let dir = target.parent().unwrap_or(Path::new("/"));
    private_file::make_dir(dir).map_err(failed)?;
    let lock_path = sibling(target, ".lock");
    let lock = private_file::append(&lock_path).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let current = match shared_place::read_to_string(target) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if current.as_deref().map(hash_of).as_deref() != expected_hash {
        return Err(WriteError::Changed);
    }
    if let Some(current) = current {
        rotate_backups(target).map_err(failed)?;
        private_file::replace(&sibling(target, ".bak"), current.as_bytes(), Durability::Synced)
            .map_err(failed)?;
    }
    private_file::replace(target, text.as_bytes(), Durability::Synced).map_err(failed)
}

fn rotate_backups(target: &Path) -> io::Result<()> {
    let name = |index: usize| if index == 0 { ".bak".to_owned() } else { format!(".bak.{index}") };
    for index in (0..BACKUPS - 1).rev() {
        match fs::rename(sibling(target, &name(index)), sibling(target, &name(index + 1))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Notes who changed which paths. A failure here does not undo the write.
fn audit(loaded: &Loaded, actor: Actor, hash: &str, changed: &[String]) {
    let line = json!({
        "ts": jiff::Timestamp::now().as_millisecond(),
        "actor": actor.as_str(),
        "pid": std::process::id(),
        "hashBefore": loaded.snapshot.hash,
        "hashAfter": hash,
        "changedPaths": changed,
    });
    let path = loaded.paths.state_dir().join("logs").join("config-audit.jsonl");
    if let Err(error) = append(&path, &line.to_string()) {
        tracing::warn!(path = %path.display(), %error, "config audit line not written");
    }
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    private_file::make_dir(path.parent().unwrap_or(Path::new("/")))?;
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > AUDIT_MAX_BYTES) {
        match fs::rename(sibling(path, ".1"), sibling(path, ".2")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => fs::rename(path, sibling(path, ".1"))?,
        }
    }
    private_file::append(path)?.write_all(format!("{line}\n").as_bytes())
}
