//! How often each agent's heartbeat is configured to run, for status.

use openclaw_config::{Config, DurationUnit, parse_duration};
use openclaw_protocol::AgentId;
use serde_json::{Value, json};

/// Interval unless configured (spec `config.md` §5.2).
const DEFAULT_EVERY: &str = "30m";

/// `{agentId, enabled, every, everyMs}`. When some agent has a heartbeat of its own, only such agents beat; else only the
/// default agent does.
pub(super) fn of_agent(config: &Config, id: &AgentId) -> Value {
    let own = config.agent_entry(id).and_then(|entry| entry.heartbeat.as_ref());
    let some_have_own = config.agents.list.iter().any(|entry| entry.heartbeat.is_some());
    let beats = if some_have_own { own.is_some() } else { *id == config.default_agent() };
    if !beats {
        return json!({ "agentId": id, "enabled": false, "every": "disabled", "everyMs": null });
    }
    let shared = config.agents.defaults.heartbeat.as_ref();
    let every = own
        .and_then(|heartbeat| heartbeat.every.as_deref())
        .or_else(|| shared.and_then(|heartbeat| heartbeat.every.as_deref()))
        .unwrap_or(DEFAULT_EVERY);
    let milliseconds =
        parse_duration(every, DurationUnit::Minutes).ok().filter(|milliseconds| *milliseconds > 0);
    json!({ "agentId": id, "enabled": true, "every": every, "everyMs": milliseconds })
}
