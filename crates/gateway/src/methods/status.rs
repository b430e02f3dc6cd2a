//! `status` (spec `gateway-protocol.md` §6.1).

use std::sync::Arc;

use openclaw_dispatch::SystemEvents;
use openclaw_models::Models;
use openclaw_protocol::AgentId;
use openclaw_protocol::params::Ignored;
use openclaw_protocol::params::status::{
    AgentBeat, AgentSessions, HeartbeatSummary, SessionsSummary, StatusDefaults, StatusRow, StatusSummary,
    percent_used,
};
use openclaw_sessions::methods::kind_of;
use openclaw_sessions::store::{Hidden, Query, Rows};
use openclaw_sessions::{Row, SessionStore};

use super::default_model::DefaultModels;
use crate::channels::snapshot::{self, AccountBoard};
use crate::clock::now_ms;
use crate::current_settings::CurrentSettings;
use crate::health::{HealthMonitor, unmet};
use crate::request::RequestFailure;

/// Sessions shown in each list.
const RECENT: usize = 10;

/// Parts of the gateway that `status` uses.
pub(super) struct StatusMethods {
    pub(super) settings: CurrentSettings,
    pub(super) sessions: Arc<dyn SessionStore>,
    pub(super) models: Models,
    pub(super) health: Arc<HealthMonitor>,
    pub(super) accounts: Arc<AccountBoard>,
    pub(super) system_events: Arc<SystemEvents>,
}

pub(super) async fn status(parts: &StatusMethods, _: Ignored) -> Result<StatusSummary, RequestFailure> {
    let health = parts.health.snapshot().await;
    let beats = health.agents.iter().map(|agent| AgentBeat {
        agent_id: agent.agent_id.clone(),
        enabled: agent.heartbeat.enabled,
        every: agent.heartbeat.every.clone(),
        every_ms: agent.heartbeat.every_ms,
    });
    let main = parts.settings.main_session_key();
    let settings = parts.settings.get();
    let agent = settings.config.default_agent();
    let agent_dir = settings.config.agent(&agent).agent_dir;
    let missing = parts.models.missing_credential(&settings.models, &agent, &agent_dir).await;
    Ok(StatusSummary {
        link_channel: None,
        heartbeat: HeartbeatSummary {
            default_agent_id: health.default_agent_id.clone(),
            agents: beats.collect(),
        },
        channel_summary: snapshot::lines(&parts.accounts).await,
        queued_system_events: parts.system_events.peek(&main),
        sessions: sessions(parts).await?,
        unmet_protections: unmet(&settings),
        missing_credential: missing.map(|provider| provider.to_string()),
    })
}

async fn sessions(parts: &StatusMethods) -> Result<SessionsSummary, RequestFailure> {
    let settings = parts.settings.get();
    let models = DefaultModels::of(&parts.models, &settings).await;
    let defaults = StatusDefaults { model: models.model(), context_tokens: models.context_tokens };
    let now = now_ms();
    let mut by_agent = Vec::new();
    let mut all = Vec::new();
    for agent in settings.config.agent_ids() {
        let found = parts.sessions.select(Rows::Of(&agent), &shown()).await?;
        let recent: Vec<StatusRow> =
            found.rows.iter().map(|row| status_row(row, &agent, &defaults, now)).collect();
        all.extend(recent.iter().cloned());
        by_agent.push(AgentSessions {
            agent_id: agent.to_string(),
            path: parts.sessions.location_of(&agent),
            count: found.total,
            recent,
        });
    }
    all.sort_by_key(|row| std::cmp::Reverse(row.updated_at));
    all.truncate(RECENT);
    let mut paths: Vec<String> = by_agent.iter().map(|agent| agent.path.clone()).collect();
    paths.dedup();
    Ok(SessionsSummary {
        paths,
        count: by_agent.iter().map(|agent| agent.count).sum(),
        defaults,
        recent: all,
        by_agent,
    })
}

/// Sessions of people and groups; the buckets `global` and `unknown` are not shown.
fn shown() -> Query {
    let hidden = Hidden { global: true, unknown: true, cron_runs: false };
    Query { hidden, ..Query::newest(RECENT) }
}

fn status_row(row: &Row, agent: &AgentId, defaults: &StatusDefaults, now: i64) -> StatusRow {
    let entry = &row.entry;
    let text = |value: &Option<Box<str>>| value.as_deref().map(str::to_owned);
    let context_tokens = entry.context_tokens.or(defaults.context_tokens);
    let total = entry.total_tokens.unwrap_or_else(|| {
        entry.input_tokens.unwrap_or_default().saturating_add(entry.output_tokens.unwrap_or_default())
    });
    StatusRow {
        agent_id: Some(agent.to_string()),
        key: row.key.to_string(),
        kind: kind_of(&row.key, entry),
        session_id: entry.session_id.as_ref().map(|id| id.as_str().to_owned()),
        updated_at: entry.updated_at,
        age: entry.updated_at.map(|at| now.saturating_sub(at)),
        thinking_level: text(&entry.thinking_level),
        verbose_level: entry.verbose_level.map(|level| level.as_str().to_owned()),
        reasoning_level: entry.reasoning_level.map(|level| level.as_str().to_owned()),
        elevated_level: entry.elevated_level.map(|level| level.as_str().to_owned()),
        system_sent: entry.system_sent,
        aborted_last_run: entry.aborted_last_run,
        input_tokens: entry.input_tokens,
        output_tokens: entry.output_tokens,
        total_tokens: total,
        remaining_tokens: context_tokens.map(|context| context.saturating_sub(total)),
        percent_used: context_tokens.and_then(|context| percent_used(total, context)),
        model: text(&entry.model).or_else(|| defaults.model.clone()),
        context_tokens,
        flags: flags(row),
    }
}

/// Differences from a fresh session, for people.
fn flags(row: &Row) -> Vec<String> {
    let entry = &row.entry;
    let named = |name: &str, level: Option<&str>| level.map(|level| format!("{name}:{level}"));
    let flags = [
        named("think", entry.thinking_level.as_deref()),
        named("verbose", entry.verbose_level.map(|level| level.as_str())),
        named("reasoning", entry.reasoning_level.map(|level| level.as_str())),
        named("elevated", entry.elevated_level.map(|level| level.as_str())),
        entry.system_sent.filter(|sent| *sent).map(|_| "system".to_owned()),
        entry.aborted_last_run.filter(|aborted| *aborted).map(|_| "aborted".to_owned()),
        named("id", entry.session_id.as_ref().map(|id| id.as_str())),
    ];
    flags.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openclaw_sessions::{SessionEntry, SessionKey};
    use serde_json::{Value, json};

    use super::*;

    fn row(key: &str, entry: Value) -> Row {
        let entry: SessionEntry = serde_json::from_value(entry).unwrap();
        Row { key: SessionKey::parse(key).unwrap(), entry: Arc::new(entry) }
    }

    /// The row of `cli-status.json`.
    #[test]
    fn a_row_says_how_full_the_context_is() {
        let row = row(
            "agent:main:main",
            json!({"sessionId": "test1", "updatedAt": 100, "abortedLastRun": false, "inputTokens": 1000,
                   "outputTokens": 5, "totalTokens": 1000, "model": "mock-1", "contextTokens": 32000}),
        );
        let defaults = StatusDefaults { model: Some("other".into()), context_tokens: Some(1) };
        let made = status_row(&row, &AgentId::default(), &defaults, 150);
        let expect = json!({
            "agentId": "main", "key": "agent:main:main", "kind": "direct", "sessionId": "test1", "updatedAt": 100,
            "age": 50, "abortedLastRun": false, "inputTokens": 1000, "outputTokens": 5, "totalTokens": 1000,
            "remainingTokens": 31000, "percentUsed": 3, "model": "mock-1", "contextTokens": 32000, "flags": ["id:test1"],
        });
        assert_eq!(serde_json::to_string(&made).unwrap(), expect.to_string());
    }

    #[test]
    fn flags_name_what_differs() {
        let row = row(
            "agent:main:main",
            json!({"thinkingLevel": "high", "verboseLevel": "on", "systemSent": true, "abortedLastRun": true,
                   "sessionId": "s"}),
        );
        assert_eq!(flags(&row), ["think:high", "verbose:on", "system", "aborted", "id:s"]);
    }
}
