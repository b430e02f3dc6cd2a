//! Reading the config file (spec `config.md` §3). Reading never changes a file.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::check::{self, Findings};
use crate::excerpt::syntax_issue;
use crate::redact::REDACTED;
use crate::shell_env;
use crate::substitute::Unresolved;
use crate::{
    Config, ConfigIssueKind, ConfigSnapshot, Environment, Issue, Paths, defaults, dotenv, includes, json5,
    legacy, shared_place, substitute, value_path,
};

/// Largest config file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;
/// Largest `.env` file that is read, in bytes.
const MAX_DOTENV_BYTES: u64 = 1024 * 1024;
/// Ignored variables that a warning names.
const NAMED: usize = 12;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Result of one reading of the config.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Paths of this instance.
    pub paths: Paths,
    /// The environment with `.env` files and the config's own `env` applied.
    pub environment: Environment,
    /// The file as it was read.
    pub snapshot: ConfigSnapshot,
    /// Files that were included; a watcher watches them too.
    pub included_files: Vec<PathBuf>,
    config: Option<Arc<Config>>,
    lenient: Option<Arc<Config>>,
}

/// The config may not be used. Callers stop, or go on with the last good one; there are no silent defaults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid config at {path}:\n{}", lines(issues))]
pub struct InvalidConfig {
    /// The file.
    pub path: String,
    /// Problems found.
    pub issues: Vec<Issue>,
}

fn lines(issues: &[Issue]) -> String {
    issues.iter().map(|issue| format!("- {}", issue.line())).collect::<Vec<_>>().join("\n")
}

impl Loaded {
    /// The typed config.
    ///
    /// # Errors
    /// [`InvalidConfig`] when the file exists and is not valid.
    pub fn config(&self) -> Result<&Arc<Config>, InvalidConfig> {
        self.config.as_ref().ok_or_else(|| self.invalid())
    }

    /// The typed config for commands that only read: values whose variable is not set here are absent from it. A shell
    /// seldom has everything that the service's environment has.
    ///
    /// # Errors
    /// [`InvalidConfig`] when the file is not valid for another reason.
    pub fn config_for_reading(&self) -> Result<&Arc<Config>, InvalidConfig> {
        self.config.as_ref().or(self.lenient.as_ref()).ok_or_else(|| self.invalid())
    }

    /// Result as if this document had been read from the file.
    #[must_use]
    pub fn with(&self, document: &Value) -> Self {
        let (paths, mut environment) = (self.paths.clone(), self.environment.clone());
        let read = interpret(document, &paths, &mut environment);
        let (path, hash) = (self.snapshot.path.clone(), self.snapshot.hash.clone());
        let source = ConfigText { path, exists: true, raw: None, hash, parsed: document.clone() };
        read.into_loaded(source, paths, environment)
    }

    fn invalid(&self) -> InvalidConfig {
        InvalidConfig { path: self.snapshot.path.display().to_string(), issues: self.snapshot.issues.clone() }
    }
}

/// Reads the config of an environment.
pub fn load(process: &Environment) -> Loaded {
    let mut environment = process.clone();
    let (paths, ignored) = apply_dotenv(&mut environment);
    let path = paths.config_path().to_path_buf();
    let (raw, text_issue) = match read_text(&path) {
        Ok(raw) => (raw, None),
        Err(issue) => (None, Some(issue)),
    };
    let exists = raw.is_some() || text_issue.is_some();
    let hash = hash_of(raw.as_deref().unwrap_or_default());
    let parsed = match (&raw, text_issue) {
        (_, Some(issue)) => Err(issue),
        (None, None) => Ok(Value::Object(Map::new())),
        (Some(text), None) => json5::parse_value(text).map_err(|error| syntax_issue(text, &error)),
    };
    let (parsed, mut read) = match parsed {
        Ok(parsed) => {
            let read = interpret(&parsed, &paths, &mut environment);
            shell_env::import(&mut environment, &parsed);
            (parsed, read)
        }
        Err(issue) => (Value::Object(Map::new()), Interpreted::failed(issue)),
    };
    read.warnings.extend(ignored);
    read.into_loaded(ConfigText { path, exists, raw, hash, parsed }, paths, environment)
}

/// File as read, before it was understood.
struct ConfigText {
    path: PathBuf,
    exists: bool,
    raw: Option<String>,
    hash: String,
    parsed: Value,
}

/// Checks a document in the form of the file, as if it were the file.
pub(crate) fn validate_source(source: &Value, paths: &Paths, env: &Environment) -> Result<(), InvalidConfig> {
    let mut env = env.clone();
    let read = interpret(source, paths, &mut env);
    // A variable that is not set here may be set where the gateway runs.
    let issues: Vec<Issue> =
        if read.document.is_some() || read.lenient_document.is_some() { Vec::new() } else { read.issues };
    if issues.is_empty() {
        Ok(())
    } else {
        Err(InvalidConfig { path: paths.config_path().display().to_string(), issues })
    }
}

/// Checks a text as if it were the config file and returns the document in it.
///
/// # Errors
/// [`InvalidConfig`] with every problem.
pub fn parse_and_check(text: &str, loaded: &Loaded) -> Result<Value, InvalidConfig> {
    let path = loaded.paths.config_path().display().to_string();
    let document = json5::parse_value(text)
        .map_err(|error| InvalidConfig { path, issues: vec![syntax_issue(text, &error)] })?;
    validate_source(&document, &loaded.paths, &loaded.environment)?;
    Ok(document)
}

impl Config {
    /// The config that a text would give; for tests and tools. Includes are resolved against the working directory.
    ///
    /// # Errors
    /// [`InvalidConfig`] with every problem.
    pub fn from_json5(text: &str, env: &Environment) -> Result<Arc<Self>, InvalidConfig> {
        let mut env = env.clone();
        let paths = Paths::resolve(&env);
        let path = paths.config_path().to_path_buf();
        let source = |parsed| ConfigText { path, exists: true, raw: None, hash: hash_of(text), parsed };
        let loaded = match json5::parse_value(text) {
            Ok(parsed) => {
                let read = interpret(&parsed, &paths, &mut env);
                read.into_loaded(source(parsed), paths, env)
            }
            Err(error) => {
                Interpreted::failed(syntax_issue(text, &error)).into_loaded(source(Value::Null), paths, env)
            }
        };
        loaded.config().cloned()
    }
}

/// Adds the `.env` files. The one of the state directory is the owner's own, the one of the working directory anybody's:
/// what that may not set is a warning.
fn apply_dotenv(env: &mut Environment) -> (Paths, Vec<Issue>) {
    let file = env.cwd().join(".env");
    let paths = Paths::resolve(env);
    // A gateway started in its own state directory reads that file once, as its own.
    let is_own = env.cwd() == paths.state_dir();
    let refused = if is_own { BTreeSet::new() } else { env.fill_from_untrusted(&read_untrusted(&file)) };
    let own = paths.state_dir().join(".env");
    let unusable = match read_own(&own) {
        Ok(pairs) => {
            env.fill_from_trusted(&pairs);
            None
        }
        Err(error) => Some(Issue::new(own.display().to_string(), format!("ignored: {error}"))),
    };
    if let Some(key) = env.get_nonblank("Z_AI_API_KEY").map(str::to_owned) {
        env.fill("ZAI_API_KEY", &key);
    }
    let warning = (!refused.is_empty()).then(|| refused_names(&file, &refused, &paths));
    (paths, warning.into_iter().chain(unusable).collect())
}

fn refused_names(file: &Path, refused: &BTreeSet<String>, paths: &Paths) -> Issue {
    let named: Vec<&str> = refused.iter().take(NAMED).map(String::as_str).collect();
    let more = refused.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!(
        "ignored {}{more}: a .env file in the working directory may not set what runs code or redirects OpenClaw. If you \
         want them, put them into {}",
        named.join(", "),
        paths.state_dir().join(".env").display(),
    );
    Issue::new(file.display().to_string(), text)
}

fn read_untrusted(path: &Path) -> Vec<(String, String)> {
    let is_reasonable = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_DOTENV_BYTES);
    if !is_reasonable {
        return Vec::new();
    }
    fs::read(path).map(|bytes| dotenv::parse(&String::from_utf8_lossy(&bytes))).unwrap_or_default()
}

fn read_own(path: &Path) -> io::Result<Vec<(String, String)>> {
    let file = match shared_place::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut bytes = Vec::new();
    if file.metadata()?.len() > MAX_DOTENV_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_DOTENV_BYTES} bytes")));
    }
    file.take(MAX_DOTENV_BYTES).read_to_end(&mut bytes)?;
    Ok(dotenv::parse(&String::from_utf8_lossy(&bytes)))
}

fn read_text(path: &Path) -> Result<Option<String>, Issue> {
    let failed = |error: io::Error| Issue::new("", format!("read failed: {error}"));
    let mut file = match shared_place::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    let size = file.metadata().map_err(failed)?.len();
    if size > MAX_FILE_BYTES {
        return Err(Issue::new(
            "",
            format!("config file is too large: {size} bytes (at most {MAX_FILE_BYTES})"),
        ));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    String::from_utf8(bytes).map(Some).map_err(|error| {
        Issue::new("", format!("read failed: not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
    })
}

/// Lower-case hexadecimal SHA-256 of a text.
pub fn hash_of(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut out, byte| {
        // Writing to a string can't fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Meaning of a parsed document.
#[derive(Default)]
struct Interpreted {
    /// The resolved document, when it may be used.
    document: Option<Value>,
    /// The same without the values whose variables are missing, when nothing else is wrong.
    lenient_document: Option<Value>,
    issues: Vec<Issue>,
    warnings: Vec<Issue>,
    legacy_issues: Vec<Issue>,
    migrated: Vec<String>,
    included_files: Vec<PathBuf>,
}

impl Interpreted {
    fn failed(issue: Issue) -> Self {
        Self { issues: vec![issue], ..Self::default() }
    }

    fn into_loaded(mut self, source: ConfigText, paths: Paths, environment: Environment) -> Loaded {
        let typed = |document: &Value| {
            let runtime = defaults::for_use(document, &environment);
            Config::from_document(&runtime, &paths, &environment, &self.included_files).map(Arc::new)
        };
        let lenient = self.lenient_document.as_ref().and_then(|document| typed(document).ok());
        let config = match self.document.as_ref().map(typed) {
            Some(Ok(config)) => Some(config),
            Some(Err(error)) => {
                self.issues.push(Issue::new("", format!("config could not be used: {error}")));
                None
            }
            None => None,
        };
        let display = match &self.document {
            Some(document) if config.is_some() => defaults::for_display(document),
            Some(_) | None => source.parsed.clone(),
        };
        Loaded {
            snapshot: ConfigSnapshot {
                path: source.path,
                exists: source.exists,
                raw: source.raw,
                parsed: source.parsed,
                valid: config.is_some(),
                config: display,
                hash: source.hash,
                issues: self.issues,
                warnings: self.warnings,
                legacy_issues: self.legacy_issues,
                migrated: self.migrated,
            },
            paths,
            environment,
            included_files: self.included_files,
            config,
            lenient,
        }
    }
}

fn interpret(parsed: &Value, paths: &Paths, env: &mut Environment) -> Interpreted {
    let resolved = match includes::resolve(parsed, paths.config_path(), env) {
        Ok(resolved) => resolved,
        Err(error) => return Interpreted::failed(error.into_issue()),
    };
    let mut document = resolved.value;
    let mut read = Interpreted { included_files: resolved.files, ..Interpreted::default() };
    drop_redacted(&mut document, "", &mut read.warnings);
    substitute::apply_config_env(&document, env);
    let mut without = document.clone();
    let missing = substitute::substitute(&mut document, env, Unresolved::Keep);
    let unset = |text: String| Issue { kind: ConfigIssueKind::MissingVariable, ..Issue::new("", text) };
    read.issues.extend(missing.iter().map(|missing| unset(missing.to_string())));
    read.legacy_issues = legacy::detect(&document);
    let accepted = accept(document, paths, env, &mut read);
    if missing.is_empty() {
        read.document = accepted;
    } else if accepted.is_some() {
        substitute::substitute(&mut without, env, Unresolved::Remove);
        read.lenient_document = Some(legacy::migrate(&without).map_or(without, |(moved, _)| moved));
    }
    read
}

/// The document if it is valid, as it stands or with its old keys moved in memory.
fn accept(document: Value, paths: &Paths, env: &Environment, read: &mut Interpreted) -> Option<Value> {
    let findings = check_document(&document, paths, env);
    if findings.issues.is_empty() && read.legacy_issues.is_empty() {
        read.warnings.extend(findings.warnings);
        add_warnings(&document, read);
        return Some(document);
    }
    let mut rest = findings.issues;
    if let Some((moved, changes)) = legacy::migrate(&document) {
        let after = check_document(&moved, paths, env);
        if after.issues.is_empty() {
            read.warnings.extend(after.warnings);
            read.migrated = changes;
            add_warnings(&moved, read);
            return Some(moved);
        }
        if !read.legacy_issues.is_empty() {
            rest = after.issues;
        }
    }
    // The reference reports old keys alone. Here those are moved on load, so what keeps the file from use is behind them.
    read.issues.extend(read.legacy_issues.iter().cloned().chain(rest));
    None
}

/// Keys that a newer version knows are warnings when such a version wrote the file.
fn check_document(document: &Value, paths: &Paths, env: &Environment) -> Findings {
    let findings = check::check(document, paths, env);
    if findings.issues.is_empty() || newer_version(document).is_none() {
        return findings;
    }
    let (unknown, issues): (Vec<Issue>, Vec<Issue>) =
        findings.issues.into_iter().partition(|issue| issue.kind == ConfigIssueKind::UnknownKey);
    Findings { issues, warnings: findings.warnings.into_iter().chain(unknown).collect() }
}

fn add_warnings(document: &Value, read: &mut Interpreted) {
    if let Some(version) = newer_version(document) {
        read.warnings.push(Issue::new(
            "meta.lastTouchedVersion",
            format!("Config was last written by a newer OpenClaw ({version}); current version is {VERSION}."),
        ));
    }
    if let Some(text) = defaults::overridden(document) {
        read.warnings.push(Issue::new("session.mainKey", text));
    }
}

fn newer_version(document: &Value) -> Option<&str> {
    let written = document.pointer("/meta/lastTouchedVersion")?.as_str()?;
    (version_parts(written)? > version_parts(VERSION)?).then_some(written)
}

fn version_parts(text: &str) -> Option<[u64; 3]> {
    let mut parts = text.trim().trim_start_matches('v').split(['.', '-']).map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

/// A stand-in for a secret in the file is a secret that a broken tool destroyed: it counts as absent.
fn drop_redacted(value: &mut Value, path: &str, warnings: &mut Vec<Issue>) {
    match value {
        Value::Object(map) => map.retain(|key, each| {
            let path = value_path::join(path, key);
            if each.as_str() == Some(REDACTED) {
                let text = format!(
                    "{REDACTED} is not a value; this secret was lost when the file was written. Set it again."
                );
                warnings.push(Issue::new(path, text));
                return false;
            }
            drop_redacted(each, &path, warnings);
            true
        }),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                drop_redacted(item, &value_path::join(path, &index.to_string()), warnings);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
