//! `<state>/subagents/runs.json`: reading it, also as older versions wrote it. What can't be read is kept aside.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::private_file::{self, Durability};
use openclaw_config::shared_place;
use openclaw_journal::child_run::ChildRun;
use openclaw_sessions::KeyRules;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The version that is written.
const VERSION: u64 = 2;

/// Path of the file.
pub(super) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("subagents").join("runs.json")
}

/// Reads the file. A file that can't be read is renamed, and of a damaged one, or one of an unknown
/// version, a copy is kept, so that its writer can have it back.
pub(super) fn load(path: &Path, rules: &KeyRules, now: i64) -> BTreeMap<String, ChildRun> {
    let text = match shared_place::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return BTreeMap::new(),
        Err(error) => {
            let aside = aside(path, now);
            let kept = kept_in(&aside, std::fs::rename(path, &aside));
            tracing::error!(path = %path.display(), %error, kept, "the list of sub-agents can't be read");
            return BTreeMap::new();
        }
    };
    let FileContents { runs, problem } = read(&text, rules);
    if let Some(problem) = problem {
        let aside = aside(path, now);
        let kept = kept_in(&aside, private_file::replace(&aside, &text, Durability::Synced));
        tracing::error!(path = %path.display(), %problem, kept, "the list of sub-agents is damaged");
    }
    runs
}

fn aside(path: &Path, now: i64) -> PathBuf {
    path.with_file_name(format!("runs.json.damaged-{now}"))
}

/// Names the place where something is kept, for the log.
fn kept_in(aside: &Path, kept: io::Result<()>) -> String {
    kept.map_or_else(|error| format!("nowhere: {error}"), |()| aside.display().to_string())
}

/// Writes the file, synced.
pub(super) fn store(path: &Path, runs: &[u8]) -> io::Result<()> {
    private_file::replace(path, runs, Durability::Synced)
}

/// The content of the file.
pub(super) fn content(runs: &BTreeMap<String, ChildRun>) -> Vec<u8> {
    #[derive(Serialize)]
    struct ChildRunsFile<'a> {
        version: u64,
        runs: &'a BTreeMap<String, ChildRun>,
    }
    // Texts and numbers: there is nothing that can't be written.
    serde_json::to_vec_pretty(&ChildRunsFile { version: VERSION, runs }).unwrap_or_default()
}

/// Contents of a file.
#[derive(Debug, PartialEq)]
struct FileContents {
    runs: BTreeMap<String, ChildRun>,
    /// Description of the part that can't be read.
    problem: Option<String>,
}

fn read(text: &[u8], rules: &KeyRules) -> FileContents {
    let broken = |problem: String| FileContents { runs: BTreeMap::new(), problem: Some(problem) };
    let document: Value = match serde_json::from_slice(text) {
        Ok(document) => document,
        Err(error) => return broken(error.to_string()),
    };
    let version = document.get("version").and_then(Value::as_u64);
    let rows = match (version, document.get("runs")) {
        (Some(1 | VERSION), Some(Value::Object(rows))) => rows,
        (Some(1 | VERSION), _) => return broken("it has no \"runs\"".to_owned()),
        (Some(other), _) => return broken(format!("it is of version {other}")),
        (None, _) => return broken("it has no version".to_owned()),
    };
    let mut runs = BTreeMap::new();
    let mut problems = Vec::new();
    for (id, row) in rows {
        match read_row(id, row, rules) {
            Ok(run) => {
                runs.insert(id.clone(), run);
            }
            Err(error) => problems.push(format!("run {id}: {error}")),
        }
    }
    FileContents { runs, problem: (!problems.is_empty()).then(|| problems.join("; ")) }
}

fn read_row(id: &str, row: &Value, rules: &KeyRules) -> Result<ChildRun, String> {
    let mut row = row.as_object().ok_or("it is no object")?.clone();
    from_version_1(&mut row);
    row.entry("runId").or_insert_with(|| json!(id));
    for name in ["childSessionKey", "requesterSessionKey"] {
        // OpenClaw stores the requester by an alias where the tool was called by one.
        let text = row.get(name).and_then(Value::as_str).ok_or_else(|| format!("it has no {name}"))?;
        let key = rules.canonical(text).map_err(|error| error.to_string())?.spelled_as(&Arc::from(text));
        row.insert(name.to_owned(), json!(key));
    }
    let run: ChildRun = serde_json::from_value(Value::Object(row)).map_err(|error| error.to_string())?;
    // Archived sessions are deleted: a row may not name a session that is nobody's child.
    if !run.child_session_key.is_subagent() {
        return Err(format!("{} is no sub-agent's session", run.child_session_key));
    }
    Ok(run)
}

/// Names of version 1 become those of version 2.
fn from_version_1(row: &mut Map<String, Value>) {
    for (old, new) in [("announceCompletedAt", "cleanupCompletedAt"), ("announceHandled", "cleanupHandled")] {
        if let Some(value) = row.remove(old) {
            row.entry(new).or_insert(value);
        }
    }
    let (channel, account) = (row.remove("requesterChannel"), row.remove("requesterAccountId"));
    if channel.is_some() || account.is_some() {
        let named = [("channel", channel), ("accountId", account)];
        let origin: Map<String, Value> =
            named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        row.entry("requesterOrigin").or_insert(Value::Object(origin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(document: &Value) -> FileContents {
        read(document.to_string().as_bytes(), &KeyRules::default())
    }

    #[test]
    fn what_both_versions_wrote_is_read() {
        let row = |more: Value| {
            let mut row = json!({"runId": "r", "childSessionKey": "agent:main:subagent:c", "requesterSessionKey": "main",
                "requesterDisplayKey": "main", "task": "dig", "cleanup": "delete", "createdAt": 1, "startedAt": 2,
                "later": true});
            row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            row
        };
        let old = json!({"version": 1, "runs": {"r": row(json!({"announceHandled": true, "announceCompletedAt": 9,
            "requesterChannel": "telegram", "requesterAccountId": "work"}))}});
        let new = json!({"version": 2, "runs": {"r": row(json!({"cleanupHandled": true, "cleanupCompletedAt": 9,
            "requesterOrigin": {"channel": "telegram", "accountId": "work"}}))}});
        let (old, new) = (check(&old), check(&new));
        assert_eq!(old, new);
        assert_eq!(new.problem, None);
        let run = &new.runs["r"];
        assert_eq!(run.requester_session_key.as_str(), "agent:main:main");
        let written: Value = serde_json::from_slice(&content(&new.runs)).unwrap();
        assert_eq!(written["version"], 2);
        assert_eq!(written["runs"]["r"]["later"], true, "what is not known is kept");
        assert_eq!(written["runs"]["r"]["cleanupCompletedAt"], 9);
        assert_eq!(check(&written), new);
    }

    #[test]
    fn what_can_not_be_read_is_said() {
        let run =
            json!({"childSessionKey": "agent:main:subagent:c", "requesterSessionKey": "main", "task": "t"});
        let rows = [
            (json!([]), 0, "it has no version"),
            (json!({"version": 3, "runs": {}}), 0, "it is of version 3"),
            (json!({"version": 2}), 0, "it has no \"runs\""),
            (json!({"version": 2, "runs": {"a": 1, "b": run}}), 1, "run a: it is no object"),
            (json!({"version": 2, "runs": {"a": {"task": "t"}}}), 0, "run a: it has no childSessionKey"),
            (
                json!({"version": 2, "runs": {"a": 1, "c": "2"}}),
                0,
                "run a: it is no object; run c: it is no object",
            ),
            (
                json!({"version": 2, "runs": {"a": {"childSessionKey": "agent:main:dm:1", "requesterSessionKey": "main", "task": "t"}}}),
                0,
                "run a: agent:main:dm:1 is no sub-agent's session",
            ),
        ];
        for (document, count, problem) in rows {
            let read = check(&document);
            assert_eq!((read.runs.len(), read.problem.as_deref()), (count, Some(problem)), "{document}");
        }
        assert!(read(b"{\"version\": 2, \"ru", &KeyRules::default()).problem.is_some());
    }
}
