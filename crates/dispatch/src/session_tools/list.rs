//! `sessions_list` (spec `sessions.md` §8.1).

use std::collections::HashMap;
use std::io;

use openclaw_agent::host::{HostError, ListWish};
use openclaw_models::Ask;
use openclaw_protocol::AgentId;
use openclaw_protocol::session_key::shown;
use openclaw_sessions::access::ToolKind;
use openclaw_sessions::entry::{SendPolicy, VerboseLevel, delivery};
use openclaw_sessions::methods::{ModelName, display_name};
use openclaw_sessions::store::{Hidden, Query, Rows};
use openclaw_sessions::transcript::TranscriptReader;
use openclaw_sessions::{Row, history};
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

use super::history::is_tool_result;
use super::sanitise::sanitised;
use super::{Purpose, ToolCaller, unreadable};
use crate::subagents::state_of;

/// Rows at most, and where none are counted.
const MOST_ROWS: usize = 200;
/// Factor by which more rows are read if the last read did not give enough.
const MORE: usize = 8;
/// Messages of each at most.
const MOST_MESSAGES: usize = 20;
/// Entries looked at for one message: results of tools are left out.
const ENTRIES_A_MESSAGE: usize = 5;
/// Bytes of all messages together: more would be cut off the answer.
const MOST_BYTES: usize = 320 * 1024;

/// A session, as it is told.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionListing {
    key: String,
    kind: &'static str,
    channel: String,
    label: Option<String>,
    display_name: Option<String>,
    delivery_context: Option<DeliveryRoute>,
    updated_at: Option<i64>,
    session_id: Option<String>,
    model: Option<String>,
    context_tokens: Option<u64>,
    total_tokens: Option<u64>,
    thinking_level: Option<String>,
    verbose_level: Option<&'static str>,
    system_sent: Option<bool>,
    aborted_last_run: Option<bool>,
    send_policy: Option<&'static str>,
    last_channel: Option<String>,
    last_to: Option<String>,
    last_account_id: Option<String>,
    transcript_path: Option<String>,
    /// Session that started it, for a sub-agent.
    spawned_by: Option<String>,
    state: Option<&'static str>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryRoute {
    channel: Option<String>,
    to: Option<String>,
    account_id: Option<String>,
}

impl ToolCaller<'_> {
    /// Lists sessions.
    pub(crate) async fn list(&self, wish: &ListWish) -> Result<Value, HostError> {
        let rows = self.visible(wish).await?;
        let mut kept = self.kept(&rows, wish.message_limit.min(MOST_MESSAGES)).await?.into_iter();
        let (mut told, mut models) = (Vec::with_capacity(rows.len()), HashMap::new());
        for row in &rows {
            let agent = self.viewer.owner(&row.key, self.rules());
            if !models.contains_key(&agent) {
                models.insert(agent.clone(), self.default_model(&agent).await);
            }
            let model = models.get(&agent).cloned().unwrap_or_default();
            let SessionOnDisk { transcript_path, messages, is_omitted } = kept.next().unwrap_or_default();
            let row = SessionListing { transcript_path, ..self.row_told(row, &model) };
            let mut row = serde_json::to_value(row).map_err(unreadable)?;
            if let Some(fields) = row.as_object_mut() {
                // As they are: all of them together are large.
                fields.extend(messages.map(|messages| ("messages".to_owned(), messages.into())));
                fields.extend(is_omitted.then(|| ("messagesOmitted".to_owned(), true.into())));
            }
            told.push(row);
        }
        let answer = [("count", told.len().into()), ("sessions", told.into())];
        Ok(Value::Object(answer.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()))
    }

    /// Returns the rows that may be seen and are wanted, newest first.
    async fn visible(&self, wish: &ListWish) -> Result<Vec<Row>, HostError> {
        let kinds: Vec<ToolKind> = wish.kinds.iter().filter_map(|name| ToolKind::parse(name)).collect();
        let minutes = wish.active_minutes.map(|minutes| i64::try_from(minutes).unwrap_or(i64::MAX));
        let now = self.family().clock.now_ms();
        let is_shared = self.rules().main(&self.viewer.agent).is_global();
        let query = Query {
            hidden: Hidden { global: !is_shared, unknown: true, cron_runs: true },
            since: minutes.map(|minutes| now.saturating_sub(minutes.saturating_mul(60_000))),
            ..Query::default()
        };
        let limit = wish.limit.unwrap_or(MOST_ROWS).min(MOST_ROWS);
        let viewer = self.viewer_for(Purpose::Look);
        let is_seen = |row: &Row| {
            let viewer = if row.key == self.viewer.key { &self.viewer } else { &viewer };
            viewer.check(&row.key, Some(&row.entry), self.rules(), self.talk()).is_ok()
        };
        let is_wanted = |row: &Row| {
            (kinds.is_empty() || kinds.contains(&ToolKind::of(&row.key, &row.entry, self.rules())))
                && is_seen(row)
        };
        // Mostly all of the newest are wanted. More are read only where some of them are not.
        let mut looked_at = limit;
        loop {
            let query = Query { limit: Some(looked_at), ..query.clone() };
            let found = self.family().store.select(Rows::All, &query).await.map_err(unreadable)?.rows;
            let is_all = found.len() < looked_at;
            let wanted: Vec<Row> = found.into_iter().filter(is_wanted).take(limit).collect();
            if is_all || wanted.len() == limit {
                return Ok(wanted);
            }
            looked_at = looked_at.saturating_mul(MORE);
        }
    }

    /// Returns the model of an agent's sessions that have chosen none.
    async fn default_model(&self, agent: &AgentId) -> ModelName {
        let agent_dir = self.settings.config.agent(agent).agent_dir;
        let asked = Ask::new(agent, &agent_dir);
        match self.family().models.all.describe(&self.settings.models, &asked).await {
            Ok(described) => {
                ModelName::new(described.reference.provider.as_str(), described.reference.model.as_str())
            }
            Err(_) => ModelName::default(),
        }
    }

    fn row_told(&self, row: &Row, default: &ModelName) -> SessionListing {
        let entry = &*row.entry;
        let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        let kind = ToolKind::of(&row.key, entry, self.rules());
        let route = delivery::of_entry(entry).unwrap_or_default();
        let route = DeliveryRoute {
            channel: text(&route.channel),
            to: text(&route.to),
            account_id: text(&route.account_id),
        };
        let is_routed = route.channel.is_some() || route.to.is_some() || route.account_id.is_some();
        let model = ModelName::of_entry(entry, default).model;
        SessionListing {
            key: self.shown(&row.key),
            kind: kind.as_str(),
            channel: channel_of(row, kind, route.channel.as_deref()),
            label: text(&entry.label),
            display_name: display_name(&row.key, entry),
            delivery_context: is_routed.then(|| route.clone()),
            updated_at: entry.updated_at,
            session_id: entry.session_id.as_ref().map(ToString::to_string),
            model: Some(model).filter(|model| !model.is_empty()),
            context_tokens: entry.context_tokens,
            total_tokens: entry.total_tokens,
            thinking_level: text(&entry.thinking_level),
            verbose_level: entry.verbose_level.map(VerboseLevel::as_str),
            system_sent: entry.system_sent,
            aborted_last_run: entry.aborted_last_run,
            send_policy: entry.send_policy.map(SendPolicy::as_str),
            last_channel: route.channel,
            last_to: route.to,
            last_account_id: route.account_id,
            transcript_path: None,
            spawned_by: entry.spawned_by.as_deref().map(|parent| shown(parent).to_owned()),
            state: state_of(&self.family().child_runs, &self.family().registry, &row.key),
        }
    }

    /// Reads what the disk has of sessions, in one piece of work: a hand-over for each would cost
    /// more than reading.
    async fn kept(&self, rows: &[Row], limit: usize) -> Result<Vec<SessionOnDisk>, HostError> {
        let transcripts = self.family().transcripts.for_many();
        let wanted: Vec<(AgentId, Row)> =
            rows.iter().map(|row| (self.viewer.owner(&row.key, self.rules()), row.clone())).collect();
        let read = move || {
            let mut room = MOST_BYTES;
            let kept = |(agent, row): &(AgentId, Row)| {
                let found = transcripts.find(agent, &row.entry);
                let planned =
                    || transcripts.of_conversation(agent, &row.key, row.entry.session_id.as_ref()?).ok();
                let transcript_path = found.clone().or_else(planned).map(|transcript| transcript.to_string());
                let reader = found.map(|found| transcripts.reader(&found));
                SessionOnDisk { transcript_path, ..messages_of(row, reader.as_ref(), limit, &mut room) }
            };
            wanted.iter().map(kept).collect()
        };
        tokio::task::spawn_blocking(read).await.map_err(unreadable)
    }
}

/// Data of one session that is on disk.
#[derive(Default)]
struct SessionOnDisk {
    /// Whole path of its transcript.
    transcript_path: Option<String>,
    messages: Option<Vec<Value>>,
    /// True if messages are wanted and none are told: there is no room, or they can't be read.
    is_omitted: bool,
}

/// Returns a session's messages as they are told, while there is room for them.
fn messages_of(
    row: &Row,
    reader: Option<&TranscriptReader>,
    limit: usize,
    room: &mut usize,
) -> SessionOnDisk {
    if limit == 0 {
        return SessionOnDisk::default();
    }
    let omitted = SessionOnDisk { is_omitted: true, ..SessionOnDisk::default() };
    if *room == 0 {
        return omitted;
    }
    match reader.map_or_else(|| Ok(Vec::new()), |reader| last_messages(reader, limit)) {
        Ok(messages) => {
            let told = sanitised(messages);
            *room = room.saturating_sub(told.bytes);
            SessionOnDisk { messages: Some(told.messages), ..SessionOnDisk::default() }
        }
        Err(error) => {
            tracing::warn!(session = %row.key, %error, "the messages of a session can't be read");
            omitted
        }
    }
}

/// Returns the last messages of a session that are no results of tools, oldest first.
fn last_messages(reader: &TranscriptReader, limit: usize) -> io::Result<Vec<Value>> {
    for entries in [limit, limit * ENTRIES_A_MESSAGE] {
        let read = history::read(reader, entries)?;
        let is_all = read.len() < entries;
        let messages = read.iter().filter_map(|message| serde_json::from_str(message.get()).ok());
        let mut messages: Vec<Value> = messages.filter(|message| !is_tool_result(message)).collect();
        if is_all || messages.len() >= limit || entries > limit {
            messages.drain(..messages.len().saturating_sub(limit));
            return Ok(messages);
        }
    }
    Ok(Vec::new())
}

/// Returns the channel that a session is used over.
fn channel_of(row: &Row, kind: ToolKind, last: Option<&str>) -> String {
    if kind.is_internal() {
        return "internal".to_owned();
    }
    let of_key = || row.key.group().map(|(channel, _)| channel);
    // Of a group the key knows better than a client that looked in.
    let (own, of_key) = (row.entry.channel.as_deref(), of_key());
    let found = if kind == ToolKind::Group { own.or(of_key).or(last) } else { own.or(last) };
    found.unwrap_or("unknown").to_owned()
}
