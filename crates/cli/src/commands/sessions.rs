//! `openclaw sessions`: the stored conversations of an agent (spec `cli.md` §3.3).

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::Config;
use openclaw_config::clock::now_ms;
use openclaw_protocol::session_key::AgentKey;
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::key::{KeyRules, legacy};
use openclaw_sessions::store::{glance, glance_newest};
use serde_json::{Map, Value, json};

use super::damaged_store;
use super::default_models::{DefaultModels, ModelInUse};
use crate::args::{SessionsArgs, positive};
use crate::context::Context;
use crate::failure::{ERROR, Failure, Outcome};
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
        let key = legacy::canonicalize(&self.key, &AgentId::default(), &KeyRules::default()).ok();
        let is = |what: fn(&SessionKey) -> bool| key.as_ref().is_some_and(what);
        match self.text("chatType") {
            _ if is(SessionKey::is_global) => "global",
            _ if is(SessionKey::is_unknown) => "unknown",
            Some("group" | "channel") => "group",
            _ if is(SessionKey::is_group) => "group",
            _ => "direct",
        }
    }

    /// Whose it is, where the key says so.
    fn agent(&self) -> Option<AgentId> {
        Some(AgentId::normalize(&AgentKey::parse(&self.key)?.agent))
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

/// The rows of a store file that were used then or later, newest first. A missing file has none.
fn read_since(path: &Path, since: i64) -> Result<Vec<StoredSession>, Failure> {
    let mut rows = glance(path)
        .map_err(|error| Failure::new("store", format!("could not read {}: {error}", path.display())))?;
    rows.retain(|(_, entry)| entry.updated_at_ms() >= since);
    rows.sort_by_key(|(_, entry)| Reverse(entry.updated_at_ms()));
    Ok(rows.into_iter().filter_map(|(key, entry)| stored(key, entry)).collect())
}

/// The newest rows of a store file and how many there are. A missing file has none.
///
/// # Errors
/// When the file can't be read.
pub(super) fn read_newest(path: &Path, limit: usize) -> Result<(Vec<StoredSession>, usize), Failure> {
    let (rows, count) = glance_newest(path, limit)
        .map_err(|error| Failure::new("store", format!("could not read {}: {error}", path.display())))?;
    Ok((rows.into_iter().filter_map(|(key, entry)| stored(key, entry)).collect(), count))
}

fn stored(key: String, entry: Arc<SessionEntry>) -> Option<StoredSession> {
    let mut entry = Arc::unwrap_or_clone(entry);
    // By far the largest, and nobody lists them.
    entry.skills_snapshot = None;
    entry.system_prompt_report = None;
    match serde_json::to_value(&entry) {
        Ok(Value::Object(entry)) => Some(StoredSession { key, entry }),
        Ok(_) | Err(_) => None,
    }
}

pub(super) fn run(args: &SessionsArgs, context: &Context) -> Outcome {
    let active = args.active.as_deref().map(minutes).transpose()?;
    let config = context.config()?;
    context.print_warnings();
    let stores = stores(args, config, context)?;
    let now = now_ms();
    let since = active.map_or(i64::MIN, |minutes| now.saturating_sub(minutes.saturating_mul(60_000)));
    let models = DefaultModels::load(config, context.env());
    let mut rows = Vec::new();
    let mut problems = Vec::new();
    for store in &stores {
        let problem = match args.store {
            Some(_) => damaged_store::of_named(&store.path),
            None => damaged_store::of_configured(context, &store.path),
        };
        let read = match (read_since(&store.path, since), problem) {
            (read, None) => read?,
            (read, Some(problem)) => {
                problems.push(problem);
                read.unwrap_or_default()
            }
        };
        for session in read.into_iter().filter(|session| store.has(session)) {
            let agent = session.agent().unwrap_or_else(|| store.agent.clone());
            let used = models.of_session(&agent, &session);
            rows.push(Row { used, agent: args.all_agents.then_some(agent), session });
        }
    }
    // Each store's are sorted already.
    if stores.len() > 1 {
        rows.sort_by_key(|row| Reverse(row.session.updated_at()));
    }
    problems.iter().for_each(|problem| output::error_line(&context.style.error(problem)));
    let exit = if problems.is_empty() { 0 } else { ERROR };
    let listing = Listing { rows, stores, problems, active, now };
    if args.json {
        output::json(&listing.document());
    } else {
        output::line(&listing.text().join("\n"));
    }
    Ok(exit)
}

/// `--active`: a number of minutes.
fn minutes(text: &str) -> Result<i64, Failure> {
    positive(text, "--active must be a positive integer (minutes)")
}

/// A store file that is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Store {
    agent: AgentId,
    path: PathBuf,
    /// Only rows of [`Self::agent`], of a file that several agents share.
    only_own: bool,
}

impl Store {
    fn has(&self, session: &StoredSession) -> bool {
        !self.only_own || session.agent().is_none_or(|agent| agent == self.agent)
    }
}

/// The files that hold what was asked for.
fn stores(args: &SessionsArgs, config: &Config, context: &Context) -> Result<Vec<Store>, Failure> {
    if args.all_agents {
        let mut stores: Vec<Store> = Vec::new();
        for agent in config.agent_ids() {
            let path = config.session_store(&agent);
            if !stores.iter().any(|store| store.path == path) {
                stores.push(Store { agent, path, only_own: false });
            }
        }
        return Ok(stores);
    }
    let agent = context.agent(args.agent.as_deref())?;
    let path = match &args.store {
        Some(path) => context.env().expand_path(path),
        None => config.session_store(&agent),
    };
    Ok(vec![Store { agent, path, only_own: args.agent.is_some() }])
}

/// A row with the model it used, or would use.
struct Row {
    session: StoredSession,
    used: ModelInUse,
    /// Whose it is, where rows of several agents are listed.
    agent: Option<AgentId>,
}

/// What is printed.
struct Listing {
    rows: Vec<Row>,
    stores: Vec<Store>,
    /// Why not all of them could be read.
    problems: Vec<String>,
    /// Only what was used in the last so many minutes.
    active: Option<i64>,
    now: i64,
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

const COLUMNS: &[Column] = &[
    Column { name: "Kind", width: 6 },
    Column { name: "Key", width: 26 },
    Column { name: "Age", width: 9 },
    Column { name: "Model", width: 14 },
    Column { name: "Tokens (ctx %)", width: 20 },
    Column { name: "Flags", width: 0 },
];

impl Listing {
    fn document(&self) -> Value {
        let path = match self.stores.as_slice() {
            [store] => store.path.display().to_string(),
            // As `sessions.list` says it.
            _ => "(multiple)".to_owned(),
        };
        let sessions: Vec<Value> = self.rows.iter().map(|row| row.document(self.now)).collect();
        let mut out = json!({"path": path, "count": sessions.len(), "activeMinutes": self.active, "sessions": sessions});
        if let (false, Some(out)) = (self.problems.is_empty(), out.as_object_mut()) {
            out.insert("problems".to_owned(), json!(self.problems));
        }
        out
    }

    fn text(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.stores.iter().map(|store| format!("Session store: {}", store.path.display())).collect();
        lines.push(format!("Sessions listed: {}", self.rows.len()));
        lines.extend(self.active.map(|minutes| format!("Filtered to last {minutes} minute(s)")));
        if self.rows.is_empty() {
            // Of a store that can't be read nobody knows whether it has any.
            lines.extend(self.problems.is_empty().then(|| "No sessions found.".to_owned()));
            return lines;
        }
        let cells: Vec<Vec<String>> = self.rows.iter().map(|row| row.cells(self.now)).collect();
        lines.extend(columns(COLUMNS, &cells));
        lines
    }
}

impl Row {
    fn document(&self, now: i64) -> Value {
        let Self { session, used, agent } = self;
        let mut out = Map::new();
        out.insert("key".to_owned(), json!(session.key));
        if let Some(agent) = agent {
            out.insert("agentId".to_owned(), json!(agent.as_str()));
        }
        out.insert("kind".to_owned(), json!(session.kind()));
        out.insert("updatedAt".to_owned(), json!(session.updated_at()));
        out.insert("ageMs".to_owned(), json!(now - session.updated_at()));
        for field in OPTIONAL_FIELDS {
            if let Some(value) = session.entry.get(*field) {
                out.insert((*field).to_owned(), value.clone());
            }
        }
        out.insert("model".to_owned(), json!(used.model));
        out.insert("contextTokens".to_owned(), json!(used.window));
        Value::Object(out)
    }

    fn cells(&self, now: i64) -> Vec<String> {
        let Self { session, used, agent: _ } = self;
        vec![
            session.kind().to_owned(),
            session.key.clone(),
            output::age(now - session.updated_at()),
            used.model.clone(),
            tokens(session.number("totalTokens"), used.window),
            session.flags().join(" "),
        ]
    }
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

    fn session(key: &str, entry: Value) -> StoredSession {
        let Value::Object(entry) = entry else { panic!("object") };
        StoredSession { key: key.to_owned(), entry }
    }

    fn recorded() -> Listing {
        let entry = json!({
            "sessionId": "test1", "updatedAt": 1_795_229_479_704_i64, "abortedLastRun": false, "inputTokens": 1000,
            "outputTokens": 5, "totalTokens": 1000, "modelProvider": "mock", "model": "mock-1", "contextTokens": 32000,
        });
        let used = ModelInUse { model: "mock-1".to_owned(), window: 32_000 };
        let rows = vec![Row { session: session("agent:main:main", entry), used, agent: None }];
        let path = PathBuf::from("<STATE>/agents/main/sessions/sessions.json");
        let stores = vec![Store { agent: AgentId::default(), path, only_own: false }];
        Listing { rows, stores, problems: Vec::new(), active: None, now: 1_795_229_525_887 }
    }

    /// The calls of `cli-sessions.json`.
    fn calls() -> Vec<Value> {
        serde_json::from_str(include_str!("../../../../tests/golden/cli-sessions.json")).unwrap()
    }

    #[test]
    fn the_documents_are_those_of_the_reference() {
        let mut listing = recorded();
        let calls = calls();
        assert_eq!(listing.document().to_string(), calls[0]["stdoutJson"].to_string());
        listing.active = Some(5);
        listing.now = 1_795_229_528_361;
        assert_eq!(listing.document().to_string(), calls[2]["stdoutJson"].to_string());
    }

    #[test]
    fn the_table_is_that_of_the_reference() {
        let expect: Vec<String> = serde_json::from_value(calls()[1]["stdout"].clone()).unwrap();
        // The last line break.
        assert_eq!(recorded().text(), expect[..expect.len() - 1]);
    }

    #[test]
    fn rows_of_several_agents_say_whose_they_are() {
        let mut listing = recorded();
        listing.rows[0].agent = Some(AgentId::normalize("ops"));
        listing.stores.push(Store { path: PathBuf::from("/ops.json"), ..listing.stores[0].clone() });
        let document = listing.document();
        assert_eq!(
            (document["path"].as_str(), document["sessions"][0]["agentId"].as_str()),
            (Some("(multiple)"), Some("ops"))
        );
        let text = listing.text();
        assert_eq!(
            text[..2],
            ["Session store: <STATE>/agents/main/sessions/sessions.json", "Session store: /ops.json"]
        );
        listing.rows.clear();
        listing.active = Some(3);
        assert_eq!(
            listing.text()[2..],
            ["Sessions listed: 0", "Filtered to last 3 minute(s)", "No sessions found."]
        );
    }

    #[test]
    fn minutes_are_a_positive_whole_number() {
        assert_eq!([minutes("5").ok(), minutes(" 90 ").ok()], [Some(5), Some(90)]);
        for text in ["x", "", "0", "-5", "1.5", "1e3", "99999999999999999999"] {
            let error = minutes(text).unwrap_err().message;
            assert_eq!(error, "--active must be a positive integer (minutes)", "{text}");
        }
        assert_eq!(calls()[3]["stderr"][0], "--active must be a positive integer (minutes)");
    }

    #[test]
    fn of_a_shared_file_an_agent_has_its_own_rows() {
        let store = |only_own| Store { agent: AgentId::normalize("ops"), path: PathBuf::new(), only_own };
        let rows = [("agent:ops:main", true), ("agent:main:main", false), ("global", true)];
        for (key, own) in rows {
            let session = session(key, json!({}));
            assert_eq!((store(true).has(&session), store(false).has(&session)), (own, true), "{key}");
        }
    }

    #[test]
    fn a_store_is_read_newest_first_without_what_nobody_lists() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        assert_eq!(read_since(&path, i64::MIN).unwrap(), []);
        let rows = json!({
            "agent:main:old": {"sessionId": "a", "updatedAt": 5},
            "agent:main:new": {"sessionId": "b", "updatedAt": 7, "label": "l", "skillsSnapshot": {"prompt": "long"}},
        });
        std::fs::write(&path, rows.to_string()).unwrap();
        let newest = session("agent:main:new", json!({"sessionId": "b", "updatedAt": 7, "label": "l"}));
        let oldest = session("agent:main:old", rows["agent:main:old"].clone());
        assert_eq!(read_since(&path, i64::MIN).unwrap(), [newest.clone(), oldest]);
        assert_eq!(read_since(&path, 6).unwrap(), [newest]);
    }
}
