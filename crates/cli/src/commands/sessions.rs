//! `openclaw sessions`: the stored conversations of an agent (spec `cli.md` §3.3).

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::Config;
use openclaw_config::clock::now_ms;
use openclaw_protocol::params::sessions::SessionKind;
use openclaw_protocol::session_key::AgentKey;
use openclaw_protocol::{AgentId, SessionId};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::{
    ChatType, ElevatedLevel, GroupActivation, ReasoningLevel, ResponseUsage, VerboseLevel,
};
use openclaw_sessions::key::{KeyRules, legacy};
use openclaw_sessions::methods::kind_of;
use openclaw_sessions::store::{StoredRow, read_rows};
use serde_json::{Value, json};

use super::damaged_store;
use super::default_models::{DefaultModels, ModelInUse};
use crate::args::{SessionsArgs, positive};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult, ERROR};
use crate::output::{self, Column, columns};

/// A row of a store.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredSession {
    /// Key of the row, as it is on disk.
    pub(super) key: String,
    /// Fields of the row.
    pub(super) entry: SessionEntry,
}

impl From<StoredRow> for StoredSession {
    fn from((key, entry): StoredRow) -> Self {
        let mut entry = Arc::unwrap_or_clone(entry);
        // By far the largest, and nobody lists them.
        entry.skills_snapshot = None;
        entry.system_prompt_report = None;
        Self { key, entry }
    }
}

impl StoredSession {
    /// Kind of the session; if its key is invalid, from the row alone.
    pub(super) fn kind(&self) -> SessionKind {
        match legacy::canonicalize(&self.key, &AgentId::default(), &KeyRules::default()) {
            Ok(key) => kind_of(&key, &self.entry),
            Err(_) if matches!(self.entry.chat_type, Some(ChatType::Group | ChatType::Channel)) => {
                SessionKind::Group
            }
            Err(_) => SessionKind::Direct,
        }
    }

    /// Agent that owns the session, if the key says so.
    fn agent(&self) -> Option<AgentId> {
        Some(AgentId::normalize(&AgentKey::parse(&self.key)?.agent))
    }

    /// Flags of a session: `think:high`, `id:…` and the like.
    pub(super) fn flags(&self) -> Vec<String> {
        let entry = &self.entry;
        let named = |name: &str, value: Option<&str>| {
            value.filter(|value| !value.is_empty()).map(|value| format!("{name}:{value}"))
        };
        let marked =
            |name: &str, is_set: Option<bool>| is_set.filter(|is_set| *is_set).map(|_| name.to_owned());
        let flags = [
            named("think", entry.thinking_level.as_deref()),
            named("verbose", entry.verbose_level.map(VerboseLevel::as_str)),
            named("reasoning", entry.reasoning_level.map(ReasoningLevel::as_str)),
            named("elev", entry.elevated_level.map(ElevatedLevel::as_str)),
            named("usage", entry.response_usage.map(ResponseUsage::as_str)),
            named("activation", entry.group_activation.map(GroupActivation::as_str)),
            marked("system", entry.system_sent),
            marked("aborted", entry.aborted_last_run),
            named("id", entry.session_id.as_ref().map(SessionId::as_str)),
        ];
        flags.into_iter().flatten().collect()
    }
}

/// The rows of a store file that were used then or later, newest first. A missing file has none.
fn read_since(path: &Path, since: i64) -> Result<Vec<StoredSession>, CommandFailure> {
    let mut rows = read_rows(path).map_err(|error| {
        CommandFailure::new("store", format!("could not read {}: {error}", path.display()))
    })?;
    rows.retain(|(_, entry)| entry.updated_at_ms() >= since);
    rows.sort_by_key(|(_, entry)| Reverse(entry.updated_at_ms()));
    Ok(rows.into_iter().map(StoredSession::from).collect())
}

pub(super) fn run(args: &SessionsArgs, context: &CliContext) -> CommandResult {
    let active = args.active.as_deref().map(minutes).transpose()?;
    let config = context.config()?;
    context.print_warnings_about(&["session"]);
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
            rows.push(SessionWithModel { used, agent: args.all_agents.then_some(agent), session });
        }
    }
    // Each store's are sorted already.
    if stores.len() > 1 {
        rows.sort_by_key(|row| Reverse(row.session.entry.updated_at_ms()));
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
fn minutes(text: &str) -> Result<i64, CommandFailure> {
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
fn stores(args: &SessionsArgs, config: &Config, context: &CliContext) -> Result<Vec<Store>, CommandFailure> {
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
struct SessionWithModel {
    session: StoredSession,
    used: ModelInUse,
    /// Agent that owns the session, where rows of several agents are listed.
    agent: Option<AgentId>,
}

/// Listing to print.
struct Listing {
    rows: Vec<SessionWithModel>,
    stores: Vec<Store>,
    /// Reasons why not all of them could be read.
    problems: Vec<String>,
    /// Limit to sessions used in the last so many minutes.
    active: Option<i64>,
    now: i64,
}

/// Characters of the column of keys.
const KEY_WIDTH: usize = 26;
const COLUMNS: &[Column] =
    &[("Kind", 6), ("Key", KEY_WIDTH), ("Age", 9), ("Model", 14), ("Tokens (ctx %)", 20), ("Flags", 0)];

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

impl SessionWithModel {
    fn document(&self, now: i64) -> Value {
        let Self { session, used, agent } = self;
        let StoredSession { key, entry } = session;
        let fields = [
            ("key", json!(key)),
            ("agentId", json!(agent)),
            ("kind", json!(session.kind())),
            ("updatedAt", json!(entry.updated_at_ms())),
            ("ageMs", json!(now - entry.updated_at_ms())),
            ("sessionId", json!(entry.session_id)),
            ("systemSent", json!(entry.system_sent)),
            ("abortedLastRun", json!(entry.aborted_last_run)),
            ("thinkingLevel", json!(entry.thinking_level)),
            ("verboseLevel", json!(entry.verbose_level)),
            ("reasoningLevel", json!(entry.reasoning_level)),
            ("elevatedLevel", json!(entry.elevated_level)),
            ("responseUsage", json!(entry.response_usage)),
            ("groupActivation", json!(entry.group_activation)),
            ("inputTokens", json!(entry.input_tokens)),
            ("outputTokens", json!(entry.output_tokens)),
            ("totalTokens", json!(entry.total_tokens)),
            ("model", json!(used.model)),
            ("contextTokens", json!(used.window)),
        ];
        // Fields that are not set are absent.
        fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
    }

    fn cells(&self, now: i64) -> Vec<String> {
        let Self { session, used, agent: _ } = self;
        vec![
            kind_name(session.kind()).to_owned(),
            short_key(&session.key),
            output::age(now - session.entry.updated_at_ms()),
            used.model.clone(),
            tokens(session.entry.total_tokens, used.window),
            session.flags().join(" "),
        ]
    }
}

/// A key as the table has room for, in the form of OpenClaw 2026.2.9: `agent:main:teleg...:-1001`. The document has it whole.
fn short_key(key: &str) -> String {
    const HEAD: usize = 16;
    const TAIL: usize = 6;
    let key = output::one_line(key);
    let length = key.chars().count();
    if length <= KEY_WIDTH {
        return key.into_owned();
    }
    let (head, tail): (String, String) =
        (key.chars().take(HEAD).collect(), key.chars().skip(length - TAIL).collect());
    format!("{head}...{tail}")
}

/// `direct`, `group`, `global` or `unknown`.
pub(super) fn kind_name(kind: SessionKind) -> &'static str {
    match kind {
        SessionKind::Direct => "direct",
        SessionKind::Group => "group",
        SessionKind::Global => "global",
        SessionKind::Unknown => "unknown",
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
        StoredSession { key: key.to_owned(), entry: serde_json::from_value(entry).unwrap() }
    }

    fn recorded() -> Listing {
        let entry = json!({
            "sessionId": "test1", "updatedAt": 1_795_229_479_704_i64, "abortedLastRun": false, "inputTokens": 1000,
            "outputTokens": 5, "totalTokens": 1000, "modelProvider": "mock", "model": "mock-1", "contextTokens": 32000,
        });
        let used = ModelInUse { model: "mock-1".to_owned(), window: 32_000 };
        let rows = vec![SessionWithModel { session: session("agent:main:main", entry), used, agent: None }];
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
    fn long_keys_are_shortened_so_that_columns_stay() {
        let rows = [
            ("agent:main:main", "agent:main:main"),
            ("agent:main:12345678901234x", "agent:main:12345678901234x"),
            ("agent:main:telegram:group:-1001", "agent:main:teleg...:-1001"),
            ("agent:main:telegram:group:-1001:topic:42", "agent:main:teleg...pic:42"),
            ("agent:main:ähnlich-und-noch-länger-ä", "agent:main:ähnli...nger-ä"),
        ];
        for (key, expect) in rows {
            assert_eq!(short_key(key), expect);
        }
        let mut listing = recorded();
        let used = ModelInUse { model: "mock-1".to_owned(), window: 32_000 };
        let group = session("agent:main:telegram:group:-1001", json!({"updatedAt": 1_795_229_479_704_i64}));
        listing.rows.push(SessionWithModel { session: group, used, agent: None });
        let text = listing.text();
        let places: Vec<_> = text.iter().filter_map(|line| line.find("mock-1")).collect();
        assert_eq!(places, [places[0]; 2], "{text:#?}");
        assert_eq!(listing.document()["sessions"][1]["key"], "agent:main:telegram:group:-1001");
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
