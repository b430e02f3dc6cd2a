//! `sessions.list`

use std::cmp::Reverse;

use openclaw_protocol::AgentId;
use openclaw_protocol::params::sessions::{
    SessionKind, SessionListDefaults, SessionRow, SessionsListParams, SessionsListResult,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::ModelName;
use crate::display;
use crate::entry::group_name::GroupNaming;
use crate::entry::{ChatType, SessionEntry, delivery};
use crate::history;
use crate::key::{KeyRules, SessionKey};
use crate::layout::Layout;
use crate::store::{Row, Rows, SessionStore, StoreError};
use crate::time::now_ms;

/// Rows whose transcripts are looked into for titles and last messages.
const MAX_LOOKED_INTO: usize = 1000;
/// Length of a last message.
const LAST_MESSAGE_CHARS: usize = 240;

/// Answers `sessions.list`. `default_model` tells each agent's default.
pub async fn list(
    store: &dyn SessionStore,
    layout: &Layout,
    params: &SessionsListParams,
    defaults: SessionListDefaults,
    default_model: &(dyn Fn(&AgentId) -> ModelName + Sync),
) -> Result<SessionsListResult, StoreError> {
    let rules = store.rules();
    let ts = now_ms();
    let rows = select(store.rows(Rows::All).await?, params, rules, ts);
    let mut sessions: Vec<SessionRow> =
        rows.iter().map(|row| row_of(row, &default_model(&rules.agent_of(&row.key)))).collect();
    if params.include_derived_titles == Some(true) || params.include_last_message == Some(true) {
        look_into(&rows, &mut sessions, layout, rules, params).await;
    }
    Ok(SessionsListResult {
        ts,
        path: layout.listed_path(&rules.default_agent),
        count: sessions.len() as u64,
        defaults,
        sessions,
    })
}

/// The rows that pass the filters, newest first.
pub fn select(rows: Vec<Row>, params: &SessionsListParams, rules: &KeyRules, now: i64) -> Vec<Row> {
    let filter = Filter::of(params, rules, now);
    let mut rows: Vec<Row> = rows.into_iter().filter(|row| filter.shows(row)).collect();
    let order = |row: &Row| (Reverse(row.entry.updated_at_ms()), row.key.clone());
    let limit = params.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if limit < rows.len() {
        rows.select_nth_unstable_by_key(limit, order);
        rows.truncate(limit);
    }
    rows.sort_by_cached_key(order);
    rows
}

/// Which rows a client asked for.
struct Filter<'a> {
    rules: &'a KeyRules,
    with_global: bool,
    with_unknown: bool,
    agent: Option<AgentId>,
    spawned_by: Option<&'a str>,
    label: Option<&'a str>,
    search: Option<String>,
    since: Option<i64>,
}

impl<'a> Filter<'a> {
    fn of(params: &'a SessionsListParams, rules: &'a KeyRules, now: i64) -> Self {
        let given = |text: &'a str| Some(text.trim()).filter(|text| !text.is_empty());
        let minutes = params.active_minutes.map(|minutes| i64::try_from(minutes).unwrap_or(i64::MAX));
        Self {
            rules,
            with_global: params.include_global == Some(true),
            with_unknown: params.include_unknown == Some(true),
            agent: params.agent_id.as_ref().and_then(|id| given(&id.0)).map(AgentId::normalize),
            spawned_by: params.spawned_by.as_ref().and_then(|key| given(&key.0)),
            label: params.label.as_ref().and_then(|label| given(&label.0)),
            search: params.search.as_deref().and_then(given).map(str::to_lowercase),
            since: minutes.map(|minutes| now.saturating_sub(minutes.saturating_mul(60_000))),
        }
    }

    fn shows(&self, row: &Row) -> bool {
        let (key, entry) = (&row.key, &*row.entry);
        let visible = !key.is_cron_run()
            && (!key.is_global() || self.with_global)
            && (!key.is_unknown() || self.with_unknown);
        visible
            && self.agent.as_ref().is_none_or(|agent| key.agent().as_ref() == Some(agent))
            && self.spawned_by.is_none_or(|parent| is_child(entry, parent, self.rules))
            && self.label.is_none_or(|label| entry.label.as_deref() == Some(label))
            && self.since.is_none_or(|since| entry.updated_at_ms() >= since)
            && self.search.as_deref().is_none_or(|needle| contains(row, needle))
    }
}

/// Whether a session was spawned by another, whatever spelling its key was stored in.
pub(super) fn is_child(entry: &SessionEntry, parent: &str, rules: &KeyRules) -> bool {
    let Some(own) = entry.spawned_by.as_deref() else { return false };
    own == parent
        || rules.canonical(own).is_ok_and(|own| rules.canonical(parent).is_ok_and(|parent| own == parent))
}

fn contains(row: &Row, needle: &str) -> bool {
    let entry = &*row.entry;
    let name = display_name(&row.key, entry);
    let session_id = entry.session_id.as_ref().map(openclaw_protocol::SessionId::as_str);
    let texts = [
        name.as_deref(),
        entry.label.as_deref(),
        entry.subject.as_deref(),
        session_id,
        Some(row.key.as_str()),
    ];
    texts.into_iter().flatten().any(|text| text.to_lowercase().contains(needle))
}

/// What a session is.
pub fn kind_of(key: &SessionKey, entry: &SessionEntry) -> SessionKind {
    let grouped = matches!(entry.chat_type, Some(ChatType::Group | ChatType::Channel));
    match () {
        () if key.is_global() => SessionKind::Global,
        () if key.is_unknown() => SessionKind::Unknown,
        () if grouped || key.is_group() => SessionKind::Group,
        () => SessionKind::Direct,
    }
}

/// The name of a session in lists: its own, a group's, its label, where it came from.
pub fn display_name(key: &SessionKey, entry: &SessionEntry) -> Option<String> {
    let own = entry.display_name.as_deref().map(str::to_owned);
    own.or_else(|| group_name(key, entry))
        .or_else(|| entry.label.as_deref().map(str::to_owned))
        .or_else(|| entry.origin.as_deref()?.label.as_deref().map(str::to_owned))
}

/// Channel and id of a group's key: `<channel>:group|channel:<id>`.
fn group_parts(key: &SessionKey) -> Option<(&str, &str)> {
    let (channel, rest) = key.rest().split_once(':')?;
    let (kind, id) = rest.split_once(':')?;
    (matches!(kind, "group" | "channel") && !id.is_empty()).then_some((channel, id))
}

fn group_channel_id<'a>(key: &'a SessionKey, entry: &'a SessionEntry) -> Option<&'a str> {
    entry.channel.as_deref().or_else(|| group_parts(key).map(|(channel, _)| channel))
}

fn group_name(key: &SessionKey, entry: &SessionEntry) -> Option<String> {
    if kind_of(key, entry) != SessionKind::Group {
        return None;
    }
    let naming = GroupNaming {
        channel: group_channel_id(key, entry)?,
        subject: entry.subject.as_deref(),
        group_channel: entry.group_channel.as_deref(),
        space: entry.space.as_deref(),
        id: entry.group_id.as_deref().or_else(|| group_parts(key).map(|(_, id)| id)),
        key: key.as_str(),
    };
    Some(naming.display_name())
}

/// A row as `sessions.list` shows it.
pub fn row_of(row: &Row, default_model: &ModelName) -> SessionRow {
    let entry = &*row.entry;
    let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
    let model = ModelName::of_entry(entry, default_model);
    let route = delivery::of_entry(entry);
    let last = |pick: fn(&delivery::DeliveryContext) -> &Option<Box<str>>| {
        route.as_ref().and_then(|r| text(pick(r)))
    };
    SessionRow {
        key: row.key.to_string(),
        kind: kind_of(&row.key, entry),
        label: text(&entry.label),
        display_name: display_name(&row.key, entry),
        channel: group_channel_id(&row.key, entry).map(str::to_owned),
        subject: text(&entry.subject),
        group_channel: text(&entry.group_channel),
        space: text(&entry.space),
        chat_type: entry.chat_type.map(|kind| kind.as_str().to_owned()),
        origin: entry.origin.as_deref().and_then(object),
        updated_at: entry.updated_at,
        session_id: entry.session_id.as_ref().map(|id| id.as_str().to_owned()),
        system_sent: entry.system_sent,
        aborted_last_run: entry.aborted_last_run,
        thinking_level: text(&entry.thinking_level),
        verbose_level: entry.verbose_level.map(|level| level.as_str().to_owned()),
        reasoning_level: entry.reasoning_level.map(|level| level.as_str().to_owned()),
        elevated_level: entry.elevated_level.map(|level| level.as_str().to_owned()),
        send_policy: entry.send_policy.map(|policy| policy.as_str().to_owned()),
        input_tokens: entry.input_tokens,
        output_tokens: entry.output_tokens,
        total_tokens: Some(total_tokens(entry)),
        response_usage: entry.response_usage.map(|usage| usage.as_str().to_owned()),
        model_provider: Some(model.provider).filter(|provider| !provider.is_empty()),
        model: Some(model.model).filter(|model| !model.is_empty()),
        context_tokens: entry.context_tokens,
        delivery_context: route.as_ref().and_then(object),
        last_channel: last(|route| &route.channel),
        last_to: last(|route| &route.to),
        last_account_id: last(|route| &route.account_id),
        derived_title: None,
        last_message_preview: None,
    }
}

fn total_tokens(entry: &SessionEntry) -> u64 {
    let sum = || entry.input_tokens.unwrap_or(0).saturating_add(entry.output_tokens.unwrap_or(0));
    entry.total_tokens.unwrap_or_else(sum)
}

fn object<T: Serialize>(value: &T) -> Option<Map<String, Value>> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => Some(fields),
        Ok(_) | Err(_) => None,
    }
}

/// A title: display name, subject, first user message, or the session's short id and date. `first_text` is only asked
/// when it is needed.
pub fn derived_title(entry: &SessionEntry, first_text: impl FnOnce() -> Option<String>) -> Option<String> {
    let given =
        |text: &Option<Box<str>>| text.as_deref().map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned);
    given(&entry.display_name)
        .or_else(|| given(&entry.subject))
        .or_else(|| first_text().as_deref().and_then(display::title))
        .or_else(|| {
            let id = entry.session_id.as_ref()?;
            Some(display::fallback_title(id.as_str(), entry.updated_at))
        })
}

/// Reads titles and last messages from the transcripts, on the blocking pool.
async fn look_into(
    rows: &[Row],
    sessions: &mut [SessionRow],
    layout: &Layout,
    rules: &KeyRules,
    params: &SessionsListParams,
) {
    let (titles, last) =
        (params.include_derived_titles == Some(true), params.include_last_message == Some(true));
    let work: Vec<(AgentId, Row)> =
        rows.iter().take(MAX_LOOKED_INTO).map(|row| (rules.agent_of(&row.key), row.clone())).collect();
    let layout = layout.clone();
    let read = move || -> Vec<(Option<String>, Option<String>)> {
        let look = |(agent, row): (AgentId, Row)| {
            let path = layout.find_transcript(&agent, &row.entry);
            let first = || history::first_user_text(path.as_deref()?).ok()?;
            let title = if titles { derived_title(&row.entry, first) } else { None };
            let said = || history::last_text(path.as_deref()?, LAST_MESSAGE_CHARS).ok()?;
            (title, if last { said() } else { None })
        };
        work.into_iter().map(look).collect()
    };
    let found = tokio::task::spawn_blocking(read).await.unwrap_or_default();
    for (session, (title, last)) in sessions.iter_mut().zip(found) {
        session.derived_title = title;
        session.last_message_preview = last;
    }
}
