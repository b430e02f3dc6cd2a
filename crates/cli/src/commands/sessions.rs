//! `openclaw sessions`: the stored conversations of an agent (spec `cli.md` §3.3).

use std::path::{Path, PathBuf};

use openclaw_protocol::AgentId;
use openclaw_sessions::store::glance;
use serde_json::{Map, Value, json};

use super::default_models::{DefaultModels, ModelInUse};
use crate::args::SessionsArgs;
use crate::context::{Context, now_ms};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Column, columns};

/// A row of a store, as it is on disk.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredSession {
    /// Its key.
    pub(super) key: String,
    /// Its fields.
    pub(super) entry: Map<String, Value>,
}

impl StoredSession {
    pub(super) fn text(&self, field: &str) -> Option<&str> {
        self.entry.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.entry
            .get(field)
            .and_then(Value::as_f64)
            .filter(|number| *number >= 0.0)
            .map(|number| number as u64)
    }

    /// Unix milliseconds; 0 when unknown.
    pub(super) fn updated_at(&self) -> i64 {
        self.entry.get("updatedAt").and_then(Value::as_f64).unwrap_or_default() as i64
    }

    /// `direct`, `group`, `global` or `unknown`.
    pub(super) fn kind(&self) -> &'static str {
        let is_group = matches!(self.text("chatType"), Some("group" | "channel"))
            || self.key.contains(":group:")
            || self.key.contains(":channel:");
        match self.key.as_str() {
            "global" => "global",
            "unknown" => "unknown",
            _ if is_group => "group",
            _ => "direct",
        }
    }

    /// `think:high`, `id:…`: what is special about it.
    pub(super) fn flags(&self) -> Vec<String> {
        let levels = [
            ("thinkingLevel", "think"),
            ("verboseLevel", "verbose"),
            ("reasoningLevel", "reasoning"),
            ("elevatedLevel", "elev"),
            ("responseUsage", "usage"),
            ("groupActivation", "activation"),
        ];
        let mut flags: Vec<String> = levels
            .into_iter()
            .filter_map(|(field, name)| self.text(field).map(|value| format!("{name}:{value}")))
            .collect();
        for (field, name) in [("systemSent", "system"), ("abortedLastRun", "aborted")] {
            if self.entry.get(field) == Some(&Value::Bool(true)) {
                flags.push(name.to_owned());
            }
        }
        flags.extend(self.text("sessionId").map(|id| format!("id:{id}")));
        flags
    }
}

/// The rows of a store file, newest first. A missing file has none.
///
/// # Errors
/// When the file can't be read.
pub(super) fn read_store(path: &Path) -> Result<Vec<StoredSession>, Failure> {
    let rows = glance(path)
        .map_err(|error| Failure::new("store", format!("could not read {}: {error}", path.display())))?;
    let mut rows: Vec<StoredSession> = rows
        .into_iter()
        .filter_map(|(key, entry)| match serde_json::to_value(entry.as_ref()) {
            Ok(Value::Object(entry)) => Some(StoredSession { key, entry }),
            Ok(_) | Err(_) => None,
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.updated_at()));
    Ok(rows)
}

pub(super) fn run(args: &SessionsArgs, context: &Context) -> Outcome {
    let active = match args.active.as_deref() {
        None => None,
        Some(text) => match text.trim().parse::<u64>() {
            Ok(minutes) if minutes > 0 => Some(minutes),
            Ok(_) | Err(_) => return Err(Failure::usage("--active must be a positive integer (minutes)")),
        },
    };
    let config = context.config()?;
    context.print_warnings();
    let agent = args.agent.as_deref().map_or_else(|| config.default_agent(), AgentId::normalize);
    if !config.has_agent(&agent) {
        return Err(Failure::new("unknown-agent", format!("Unknown agent id \"{agent}\"."))
            .hint("Run `openclaw agents list` for the configured ones."));
    }
    let path: PathBuf = match &args.store {
        Some(path) => context.env().expand_path(path),
        None => config.session_store(&agent),
    };
    let now = now_ms();
    let mut rows = read_store(&path)?;
    if let Some(minutes) = active {
        let oldest = now - i64::try_from(minutes).unwrap_or(i64::MAX / 60_000).saturating_mul(60_000);
        rows.retain(|row| row.updated_at() >= oldest);
    }
    let models = DefaultModels::load(config, context.env());
    let rows: Vec<Row> =
        rows.into_iter().map(|session| Row { used: models.of_session(&agent, &session), session }).collect();
    if args.json {
        output::json(&document(&rows, &path, active, now));
    } else {
        text(&rows, &path, active, now).iter().for_each(|line| output::line(line));
    }
    Ok(0)
}

/// A row with the model it used, or would use.
struct Row {
    session: StoredSession,
    used: ModelInUse,
}

/// Fields that are shown when they are set, in their order.
const OPTIONAL_FIELDS: &[&str] = &[
    "sessionId",
    "systemSent",
    "abortedLastRun",
    "thinkingLevel",
    "verboseLevel",
    "reasoningLevel",
    "elevatedLevel",
    "responseUsage",
    "groupActivation",
    "inputTokens",
    "outputTokens",
    "totalTokens",
];

fn document(rows: &[Row], path: &Path, active: Option<u64>, now: i64) -> Value {
    let sessions: Vec<Value> = rows
        .iter()
        .map(|Row { session: row, used }| {
            let mut out = Map::new();
            out.insert("key".to_owned(), json!(row.key));
            out.insert("kind".to_owned(), json!(row.kind()));
            out.insert("updatedAt".to_owned(), json!(row.updated_at()));
            out.insert("ageMs".to_owned(), json!(now - row.updated_at()));
            for field in OPTIONAL_FIELDS {
                if let Some(value) = row.entry.get(*field) {
                    out.insert((*field).to_owned(), value.clone());
                }
            }
            out.insert("model".to_owned(), json!(used.model));
            out.insert("contextTokens".to_owned(), json!(used.window));
            Value::Object(out)
        })
        .collect();
    json!({
        "path": path.display().to_string(),
        "count": sessions.len(),
        "activeMinutes": active,
        "sessions": sessions,
    })
}

const COLUMNS: &[Column] = &[
    Column { name: "Kind", width: 6 },
    Column { name: "Key", width: 26 },
    Column { name: "Age", width: 9 },
    Column { name: "Model", width: 14 },
    Column { name: "Tokens (ctx %)", width: 20 },
    Column { name: "Flags", width: 0 },
];

fn text(rows: &[Row], path: &Path, active: Option<u64>, now: i64) -> Vec<String> {
    let mut lines =
        vec![format!("Session store: {}", path.display()), format!("Sessions listed: {}", rows.len())];
    lines.extend(active.map(|minutes| format!("Filtered to last {minutes} minute(s)")));
    if rows.is_empty() {
        lines.push("No sessions found.".to_owned());
        return lines;
    }
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|Row { session: row, used }| {
            vec![
                row.kind().to_owned(),
                row.key.clone(),
                output::age(now - row.updated_at()),
                used.model.clone(),
                tokens(row.number("totalTokens"), used.window),
                row.flags().join(" "),
            ]
        })
        .collect();
    lines.extend(columns(COLUMNS, &cells));
    lines
}

/// `1.0k/32k (3%)`, or `-` when nothing was used.
pub(super) fn tokens(total: Option<u64>, window: u64) -> String {
    let Some(total) = total.filter(|total| *total > 0) else { return "-".to_owned() };
    let percent = total.saturating_mul(100).checked_div(window).unwrap_or_default().min(999);
    format!("{}/{} ({percent}%)", output::count(total), output::count(window))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let entry = json!({
            "sessionId": "test1", "updatedAt": 1_795_229_479_704_i64, "abortedLastRun": false, "inputTokens": 1000,
            "outputTokens": 5, "totalTokens": 1000, "modelProvider": "mock", "model": "mock-1", "contextTokens": 32000,
        });
        let Value::Object(entry) = entry else { panic!("object") };
        let session = StoredSession { key: "agent:main:main".to_owned(), entry };
        vec![Row { session, used: ModelInUse { model: "mock-1".to_owned(), window: 32_000 } }]
    }

    /// As recorded in `cli-sessions.json`.
    #[test]
    fn the_document_is_that_of_the_reference() {
        let document = document(&rows(), Path::new("/s.json"), Some(5), 1_795_229_525_887);
        let expect = json!({
            "path": "/s.json", "count": 1, "activeMinutes": 5, "sessions": [{
                "key": "agent:main:main", "kind": "direct", "updatedAt": 1_795_229_479_704_i64, "ageMs": 46183,
                "sessionId": "test1", "abortedLastRun": false, "inputTokens": 1000, "outputTokens": 5,
                "totalTokens": 1000, "model": "mock-1", "contextTokens": 32000,
            }],
        });
        assert_eq!(document.to_string(), expect.to_string());
    }

    #[test]
    fn the_table_is_that_of_the_reference() {
        let lines = text(&rows(), Path::new("/s.json"), None, 1_795_229_525_887).join("\n");
        expect_test::expect![[r#"
            Session store: /s.json
            Sessions listed: 1
            Kind   Key                        Age       Model          Tokens (ctx %)       Flags
            direct agent:main:main            1m ago    mock-1         1.0k/32k (3%)        id:test1"#]]
        .assert_eq(&lines);
    }
}
