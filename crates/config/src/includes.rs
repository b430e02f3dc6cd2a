//! `$include` (spec `config.md` §3.2).
//!
//! Included files must lie below the config's directory or below a directory named in `OPENCLAW_INCLUDE_ROOTS`, symbolic
//! links resolved; the reference follows them anywhere.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::check::schema::type_name;
use crate::environment::without_dots;
use crate::{ConfigIssueKind, Environment, Issue, excerpt, json5, shared_place};

const KEY: &str = "$include";
/// Nesting of includes, as in the reference.
const MAX_DEPTH: usize = 10;
/// Size of all included files together, in bytes.
const MAX_TOTAL_BYTES: usize = 10 * 1024 * 1024;

/// Reason why includes could not be resolved. The texts are the ones that clients of the reference
/// know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IncludeError {
    /// Neither text nor list.
    #[error("Invalid $include value: expected string or array of strings, got {0}")]
    Value(&'static str),
    /// A list with something else in it.
    #[error("Invalid $include array item: expected string, got {0}")]
    Item(&'static str),
    /// Keys beside an include of something that is not an object.
    #[error("Sibling keys require included content to be an object")]
    Siblings,
    /// The file can't be read.
    #[error("Failed to read include file: {name} (resolved: {resolved})")]
    Read {
        /// Name as written.
        name: String,
        /// Absolute.
        resolved: String,
    },
    /// The file is not JSON5.
    #[error("Failed to parse include file: {name} (resolved: {resolved})")]
    Parse {
        /// Name as written.
        name: String,
        /// Absolute.
        resolved: String,
        /// Line, column and what stands there.
        place: String,
    },
    /// A file that includes itself.
    #[error("Circular include detected: {0}")]
    Circular(String),
    /// Too many levels.
    #[error("Maximum include depth (10) exceeded at: {0}")]
    Depth(String),
    /// Outside the places that may be included.
    #[error(
        "Include file is outside the config directory: {name} (resolved: {resolved}); move it there or name its directory in OPENCLAW_INCLUDE_ROOTS"
    )]
    Outside {
        /// Name as written.
        name: String,
        /// Absolute.
        resolved: String,
    },
    /// The file is another user's, or no file.
    #[error("Include file: {0}")]
    NotOurs(String),
    /// Anybody may write it.
    #[error("Include file is writable by everybody: {0}; run chmod o-w on it")]
    Writable(String),
    /// Too much text.
    #[error("Include files are larger than 10 MiB together, at: {0}")]
    TooLarge(String),
}

impl IncludeError {
    /// The error as a finding about the config.
    pub(crate) fn into_issue(self) -> Issue {
        let issue = Issue { kind: ConfigIssueKind::Include, ..Issue::new("", self.to_string()) };
        match self {
            Self::Parse { place, .. } => issue.detailed(place),
            _ => issue,
        }
    }
}

/// A document with its includes replaced, and the files that went into it.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) value: Value,
    pub(crate) files: Vec<PathBuf>,
}

/// Replaces all includes of a document that was read from `config_path`.
pub(crate) fn resolve(
    document: &Value,
    config_path: &Path,
    env: &Environment,
) -> Result<Resolved, IncludeError> {
    let dir = config_path.parent().unwrap_or(Path::new("/"));
    let mut roots = vec![real(dir)];
    if let Some(more) = env.get_nonblank("OPENCLAW_INCLUDE_ROOTS") {
        roots.extend(std::env::split_paths(more).map(|root| real(&root)));
    }
    let mut resolver =
        Resolver { chain: vec![config_path.to_path_buf()], roots, files: Vec::new(), bytes: 0 };
    let value = resolver.value(document)?;
    Ok(Resolved { value, files: resolver.files })
}

/// True if a document has includes anywhere.
pub(crate) fn uses_includes(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key(KEY) || map.values().any(uses_includes),
        Value::Array(items) => items.iter().any(uses_includes),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

struct Resolver {
    /// The files being read, outermost first.
    chain: Vec<PathBuf>,
    roots: Vec<PathBuf>,
    files: Vec<PathBuf>,
    bytes: usize,
}

impl Resolver {
    fn value(&mut self, value: &Value) -> Result<Value, IncludeError> {
        match value {
            Value::Array(items) => {
                items.iter().map(|item| self.value(item)).collect::<Result<_, _>>().map(Value::Array)
            }
            Value::Object(map) => match map.get(KEY) {
                Some(target) => self.object_with_include(map, target),
                None => self.siblings(map).map(Value::Object),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.clone()),
        }
    }

    fn siblings(&mut self, map: &Map<String, Value>) -> Result<Map<String, Value>, IncludeError> {
        map.iter()
            .filter(|(key, _)| *key != KEY)
            .map(|(key, value)| Ok((key.clone(), self.value(value)?)))
            .collect()
    }

    fn object_with_include(
        &mut self,
        map: &Map<String, Value>,
        target: &Value,
    ) -> Result<Value, IncludeError> {
        let included = self.included(target)?;
        let siblings = self.siblings(map)?;
        if siblings.is_empty() {
            return Ok(included);
        }
        if !included.is_object() {
            return Err(IncludeError::Siblings);
        }
        Ok(merge(included, Value::Object(siblings)))
    }

    fn included(&mut self, target: &Value) -> Result<Value, IncludeError> {
        match target {
            Value::String(name) => self.file(name),
            Value::Array(items) => {
                let mut merged = Value::Object(Map::new());
                for item in items {
                    let name = item.as_str().ok_or_else(|| IncludeError::Item(type_name(item)))?;
                    merged = merge(merged, self.file(name)?);
                }
                Ok(merged)
            }
            other => Err(IncludeError::Value(type_name(other))),
        }
    }

    fn file(&mut self, name: &str) -> Result<Value, IncludeError> {
        let dir = self.chain.last().and_then(|file| file.parent()).unwrap_or(Path::new("/"));
        let path = without_dots(&dir.join(name));
        if self.chain.contains(&path) {
            let names = self.chain.iter().chain([&path]).map(|file| file.display().to_string());
            return Err(IncludeError::Circular(names.collect::<Vec<_>>().join(" -> ")));
        }
        if self.chain.len() > MAX_DEPTH {
            return Err(IncludeError::Depth(name.to_owned()));
        }
        let text = self.read(name, &path)?;
        let parsed = json5::parse_value(&text).map_err(|error| IncludeError::Parse {
            name: name.to_owned(),
            resolved: path.display().to_string(),
            place: excerpt::place(&text, &error),
        })?;
        self.files.push(path.clone());
        self.chain.push(path);
        let value = self.value(&parsed);
        self.chain.pop();
        value
    }

    fn read(&mut self, name: &str, path: &Path) -> Result<String, IncludeError> {
        let resolved = || path.display().to_string();
        let unreadable = |_| IncludeError::Read { name: name.to_owned(), resolved: resolved() };
        let real_path = path.canonicalize().map_err(unreadable)?;
        if !self.roots.iter().any(|root| real_path.starts_with(root)) {
            return Err(IncludeError::Outside { name: name.to_owned(), resolved: resolved() });
        }
        let metadata = std::fs::metadata(&real_path).map_err(unreadable)?;
        if is_world_writable(&metadata) {
            return Err(IncludeError::Writable(resolved()));
        }
        let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > MAX_TOTAL_BYTES {
            return Err(IncludeError::TooLarge(resolved()));
        }
        shared_place::read_to_string(path).map_err(|error| match shared_place::is_not_ours(&error) {
            true => IncludeError::NotOurs(error.to_string()),
            false => unreadable(error),
        })
    }
}

fn is_world_writable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o002 != 0
}

/// Objects merge, arrays are joined, everything else is replaced.
fn merge(base: Value, over: Value) -> Value {
    match (base, over) {
        (Value::Object(mut base), Value::Object(over)) => {
            for (key, value) in over {
                let merged = match base.get_mut(&key) {
                    Some(present) => merge(present.take(), value),
                    None => value,
                };
                base.insert(key, merged);
            }
            Value::Object(base)
        }
        (Value::Array(mut base), Value::Array(over)) => {
            base.extend(over);
            Value::Array(base)
        }
        (_, over) => over,
    }
}
