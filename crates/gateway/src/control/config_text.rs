//! Config edits: the result of a config text that somebody wrote, given the present file (spec
//! `config.md` §7, §8). Pure.

use openclaw_config::redact::{RestoreError, restore};
use openclaw_config::write::WriteError;
use openclaw_config::{Issue, Loaded, json5, merge_patch};
use serde_json::Value;

/// The method that brought it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// The whole config.
    Set,
    /// The same, and a restart where it is needed.
    Apply,
    /// A merge patch, and a restart where it is needed.
    Patch,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Set => "config.set",
            Self::Apply => "config.apply",
            Self::Patch => "config.patch",
        }
    }
}

/// A config, or a part of one, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigChange {
    method: Method,
    raw: String,
    /// The hash of the file that it was written for; absent takes the file as it is.
    pub(super) base_hash: Option<String>,
    is_hash_needed: bool,
}

/// Reason why nothing was written. The texts are OpenClaw's: its clients match them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigTextError {
    #[error("config base hash required; re-run config.get and retry")]
    HashRequired,
    #[error("config changed since last load; re-run config.get and retry")]
    Changed,
    #[error("SyntaxError: {0}")]
    Syntax(#[from] json5::SyntaxError),
    #[error("{0} raw must be an object")]
    NotAnObject(&'static str),
    #[error("invalid config; fix before patching")]
    FixFirst,
    #[error("invalid config")]
    Invalid(Vec<Issue>),
    #[error(transparent)]
    Redacted(#[from] RestoreError),
    #[error(transparent)]
    Write(WriteError),
    #[error("the change was interrupted; re-run config.get to see the file")]
    Interrupted,
}

impl From<WriteError> for ConfigTextError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Invalid { issues } => Self::Invalid(issues),
            WriteError::Changed => Self::Changed,
            error => Self::Write(error),
        }
    }
}

/// True if somebody else wrote the file since it was read.
pub(super) fn is_conflict(error: &WriteError) -> bool {
    matches!(error, WriteError::Changed)
}

impl ConfigChange {
    /// Change by a client, which has to have seen the file.
    pub(crate) fn of_client(method: Method, raw: String, base_hash: Option<String>) -> Self {
        Self { method, raw, base_hash, is_hash_needed: true }
    }

    /// Change by an agent, which may write on the file as it is.
    pub(crate) fn of_agent(method: Method, raw: String, base_hash: Option<String>) -> Self {
        Self { method, raw, base_hash, is_hash_needed: false }
    }

    pub(super) fn method(&self) -> Method {
        self.method
    }

    /// The file's new document, in the form of the file: references to variables stay, secrets that were hidden are put back.
    pub(super) fn next(&self, before: &Loaded) -> Result<Value, ConfigTextError> {
        let snapshot = &before.snapshot;
        match self.base_hash.as_deref().filter(|_| snapshot.exists) {
            Some(hash) if hash != snapshot.hash => return Err(ConfigTextError::Changed),
            None if snapshot.exists && self.is_hash_needed => return Err(ConfigTextError::HashRequired),
            Some(_) | None => {}
        }
        let written = json5::parse_value(&self.raw)?;
        if !written.is_object() {
            return Err(ConfigTextError::NotAnObject(self.method.name()));
        }
        let mut next = match self.method {
            Method::Set | Method::Apply => written,
            Method::Patch if !snapshot.valid => return Err(ConfigTextError::FixFirst),
            Method::Patch => {
                let mut patched = snapshot.parsed.clone();
                merge_patch(&mut patched, &written);
                patched
            }
        };
        restore(&mut next, &snapshot.parsed)?;
        keep_references(&mut next, &snapshot.parsed, &snapshot.config);
        Ok(next)
    }
}

/// Restores `${VAR}` where a value equals the variable's: an edit of the values must not store
/// secrets.
fn keep_references(next: &mut Value, file: &Value, resolved: &Value) {
    match (next, file, resolved) {
        (Value::Object(next), Value::Object(file), Value::Object(resolved)) => {
            for (key, value) in next {
                if let (Some(file), Some(resolved)) = (file.get(key), resolved.get(key)) {
                    keep_references(value, file, resolved);
                }
            }
        }
        (Value::Array(next), Value::Array(file), Value::Array(resolved)) => {
            for ((value, file), resolved) in next.iter_mut().zip(file).zip(resolved) {
                keep_references(value, file, resolved);
            }
        }
        (Value::String(value), Value::String(file), Value::String(resolved))
            if value == resolved && file.contains("${") =>
        {
            value.clone_from(file);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::{Environment, load};
    use serde_json::json;

    use super::*;

    /// Config file, and the config read from it.
    fn loaded(text: Option<&str>) -> (tempfile::TempDir, Loaded) {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join(".openclaw");
        std::fs::create_dir_all(&state).unwrap();
        if let Some(text) = text {
            std::fs::write(state.join("openclaw.json"), text).unwrap();
        }
        let mut env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        env.set("TOK", "sekrit-token");
        let loaded = load(&env);
        (home, loaded)
    }

    const FILE: &str =
        r#"{gateway: {auth: {token: "${TOK}"}}, talk: {apiKey: "key-1"}, ui: {assistant: {name: "A"}}}"#;

    #[test]
    fn a_written_config_becomes_a_document_of_the_file() {
        let (_home, file) = loaded(Some(FILE));
        let hash = Some(file.snapshot.hash.clone());
        let whole = |name: Value, token: &str, key: &str| json!({"gateway": {"auth": {"token": token}}, "talk": {"apiKey": key}, "ui": {"assistant": {"name": name}}});
        let hidden = "__OPENCLAW_REDACTED__";
        let rows = [
            (
                Method::Patch,
                r#"{ui: {assistant: {name: "B"}}}"#.to_owned(),
                whole(json!("B"), "${TOK}", "key-1"),
            ),
            (
                Method::Patch,
                "{talk: null, ui: {assistant: {name: null}}}".to_owned(),
                json!({"gateway": {"auth": {"token": "${TOK}"}}, "ui": {"assistant": {}}}),
            ),
            (
                Method::Apply,
                whole(json!("C"), hidden, hidden).to_string(),
                whole(json!("C"), "${TOK}", "key-1"),
            ),
            (
                Method::Set,
                whole(json!("C"), "sekrit-token", "key-2").to_string(),
                whole(json!("C"), "${TOK}", "key-2"),
            ),
            (Method::Set, "{}".to_owned(), json!({})),
        ];
        for (method, raw, expect) in rows {
            let next = ConfigChange::of_client(method, raw.clone(), hash.clone()).next(&file).unwrap();
            assert_eq!(next, expect, "{raw}");
        }
    }

    /// The recorded answers.
    #[test]
    fn what_is_wrong_is_told_in_the_words_that_clients_know() {
        let (_home, file) = loaded(Some(FILE));
        let right = Some(file.snapshot.hash.clone());
        let hidden = r#"{hooks: {token: "__OPENCLAW_REDACTED__"}}"#;
        let rows = [
            (Method::Set, "{}", None, "config base hash required; re-run config.get and retry"),
            (
                Method::Set,
                "{}",
                Some("0".to_owned()),
                "config changed since last load; re-run config.get and retry",
            ),
            (Method::Set, "{ not json", right.clone(), "SyntaxError: JSON5: invalid character 'j' at 1:7"),
            (Method::Patch, "[1]", right.clone(), "config.patch raw must be an object"),
            (
                Method::Patch,
                hidden,
                right,
                "config write rejected: \"token\" is redacted; set an explicit value instead of __OPENCLAW_REDACTED__",
            ),
        ];
        for (method, raw, hash, expect) in rows {
            let error = ConfigChange::of_client(method, raw.to_owned(), hash).next(&file).unwrap_err();
            assert_eq!(error.to_string(), expect, "{raw}");
        }
        let (_home, broken) = loaded(Some("{nope: 1}"));
        let patch = ConfigChange::of_agent(Method::Patch, "{}".to_owned(), None);
        assert_eq!(patch.next(&broken).unwrap_err().to_string(), "invalid config; fix before patching");
    }

    #[test]
    fn an_agent_writes_on_the_file_as_it_is_and_nobody_needs_a_hash_where_there_is_none() {
        let (_home, file) = loaded(Some(FILE));
        let stale = ConfigChange::of_agent(Method::Patch, "{}".to_owned(), Some("0".to_owned()));
        assert!(matches!(stale.next(&file), Err(ConfigTextError::Changed)));
        let patch = ConfigChange::of_agent(Method::Patch, "{talk: null}".to_owned(), None);
        assert_eq!(patch.next(&file).unwrap().get("talk"), None);
        let (_home, none) = loaded(None);
        let first = ConfigChange::of_client(Method::Set, "{ui: {}}".to_owned(), None);
        assert_eq!(first.next(&none).unwrap(), json!({"ui": {}}));
    }
}
