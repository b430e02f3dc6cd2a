//! `sessions.list`

use std::borrow::Cow;
use std::sync::Arc;

use openclaw_protocol::AgentId;
use openclaw_protocol::params::sessions::{
    SessionKind, SessionListDefaults, SessionRow, SessionsListParams, SessionsListResult,
};
use openclaw_protocol::session_key::shown;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_with_macros::skip_serializing_none;

use super::{ModelName, wire};
use crate::display;
use crate::entry::names::{self, RowNames};
use crate::entry::{SessionEntry, delivery};
use crate::history;
use crate::key::{KeyRules, SessionKey};
use crate::store::{Hidden, Query, Row, Rows, SessionStore, StoreError, VisitedRow, gather_shown};
use crate::time::now_ms;
use crate::transcript::{TranscriptReader, Transcripts};

/// Number of rows for a client that names no limit. OpenClaw 2026.2.9 sends all there are; 50,000
/// of them are 35 MB, more than its clients take in one frame. Who wants more than these says how
/// many.
const MOST_UNASKED: usize = 10_000;
/// Rows whose transcripts are looked into for titles and last messages.
const MAX_LOOKED_INTO: usize = 1000;
/// Length of a last message.
const LAST_MESSAGE_CHARS: usize = 240;

/// Answers `sessions.list`. `default_model` tells each agent's default, `state_of` how the sub-agent of a session stands.
pub async fn list(
    store: &dyn SessionStore,
    transcripts: &Transcripts,
    params: &SessionsListParams,
    defaults: SessionListDefaults,
    default_model: impl Fn(&AgentId) -> Arc<ModelName> + Send + 'static,
    state_of: impl Fn(&SessionKey) -> Option<&'static str> + Send + 'static,
) -> Result<SessionsListResult<Arc<RawValue>>, StoreError> {
    let ts = now_ms();
    let mut query = query_of(params, ts);
    query.limit.get_or_insert(MOST_UNASKED);
    let (rules, transcripts, wanted) =
        (store.rules().clone(), transcripts.for_many(), TranscriptFields::by(params));
    let mut shown = 0;
    let pick = move |row: VisitedRow| {
        let agent = rules.agent_of(row.key());
        let default = default_model(&agent);
        let listed = row.listed(&default, |row| encoded(&row_of(row, &default)));
        let state = state_of(row.key());
        shown += 1;
        if wanted == TranscriptFields::default() || shown > MAX_LOOKED_INTO {
            return Some(with_last(listed, &Last { state, ..Last::default() }));
        }
        let entry = row.read().entry;
        let reader = transcripts.find(&agent, &entry).map(|found| transcripts.reader(&found));
        Some(with_last(listed, &Last { state, ..wanted.of(&entry, reader.as_ref()) }))
    };
    let sessions = gather_shown(store, Rows::All, &query, pick).await?;
    Ok(SessionsListResult { ts, path: store.location(), count: sessions.len() as u64, defaults, sessions })
}

/// Query for a client's request. Alias rows of cron runs are never listed; `global` and `unknown`
/// only when they are wanted.
pub(super) fn query_of(params: &SessionsListParams, now: i64) -> Query {
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let minutes = params.active_minutes.map(|minutes| i64::try_from(minutes).unwrap_or(i64::MAX));
    Query {
        limit: params.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        hidden: Hidden {
            global: params.include_global != Some(true),
            unknown: params.include_unknown != Some(true),
            cron_runs: true,
        },
        agent: params.agent_id.as_ref().and_then(|id| given(&id.0)).map(|id| AgentId::normalize(&id)),
        since: minutes.map(|minutes| now.saturating_sub(minutes.saturating_mul(60_000))),
        spawned_by: params.spawned_by.as_ref().and_then(|key| given(&key.0)),
        label: params.label.as_ref().and_then(|label| given(&label.0)),
        search: params.search.as_deref().and_then(given),
        ..Query::default()
    }
}

/// True if a session was spawned by another, whatever spelling its key was stored in.
pub(super) fn is_child(entry: &SessionEntry, parent: &str, rules: &KeyRules) -> bool {
    let Some(own) = entry.spawned_by.as_deref() else { return false };
    own == parent
        || rules.canonical(own).is_ok_and(|own| rules.canonical(parent).is_ok_and(|parent| own == parent))
}

/// Kind of a session.
pub fn kind_of(key: &SessionKey, entry: &SessionEntry) -> SessionKind {
    names::kind(key, entry.chat_type)
}

/// The name of a session in lists: its own, a group's, its label, where it came from.
pub fn display_name(key: &SessionKey, entry: &SessionEntry) -> Option<String> {
    RowNames::of(entry).display_name(key).map(Cow::into_owned)
}

fn group_channel_id<'a>(key: &'a SessionKey, entry: &'a SessionEntry) -> Option<&'a str> {
    entry.channel.as_deref().or_else(|| key.group().map(|(channel, _)| channel))
}

/// A row as `sessions.list` shows it, but for what its transcript says.
fn row_of(row: &Row, default_model: &ModelName) -> SessionRow {
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
        origin: entry.origin.as_deref().and_then(wire),
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
        delivery_context: route.as_ref().and_then(wire),
        last_channel: last(|route| &route.channel),
        last_to: last(|route| &route.to),
        last_account_id: last(|route| &route.account_id),
        spawned_by: entry.spawned_by.as_deref().map(|parent| shown(parent).to_owned()),
        state: None,
        derived_title: None,
        last_message_preview: None,
    }
}

fn total_tokens(entry: &SessionEntry) -> u64 {
    let sum = || entry.input_tokens.unwrap_or(0).saturating_add(entry.output_tokens.unwrap_or(0));
    entry.total_tokens.unwrap_or_else(sum)
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

/// Requested fields that have to be read from transcripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TranscriptFields {
    titles: bool,
    last_messages: bool,
}

impl TranscriptFields {
    fn by(params: &SessionsListParams) -> Self {
        Self {
            titles: params.include_derived_titles == Some(true),
            last_messages: params.include_last_message == Some(true),
        }
    }

    /// Title and last message of a session, where they are wanted. Blocking.
    fn of(self, entry: &SessionEntry, transcript: Option<&TranscriptReader>) -> Last {
        let first = || history::first_user_text(transcript?).ok()?;
        let last = || history::last_text(transcript?, LAST_MESSAGE_CHARS).ok()?;
        Last {
            state: None,
            derived_title: if self.titles { derived_title(entry, first) } else { None },
            last_message_preview: if self.last_messages { last() } else { None },
        }
    }
}

/// The last fields of a [`SessionRow`]: those that its entry does not say.
#[skip_serializing_none]
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Last {
    state: Option<&'static str>,
    derived_title: Option<String>,
    last_message_preview: Option<String>,
}

/// A listed row with these fields behind its own.
fn with_last(listed: Arc<RawValue>, last: &Last) -> Arc<RawValue> {
    if *last == Last::default() {
        return listed;
    }
    let more = encoded(last);
    let own = listed.get().strip_suffix('}').unwrap_or_default();
    let joined = RawValue::from_string(format!("{own},{}", more.get().get(1..).unwrap_or_default()));
    // Two objects make one.
    joined.map_or(listed, Arc::from)
}

/// Encodes a value as JSON. The types used here always have a JSON form; `null` stands for the
/// impossible case.
fn encoded(value: &impl Serialize) -> Arc<RawValue> {
    Arc::from(to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
}

#[cfg(test)]
mod tests;
