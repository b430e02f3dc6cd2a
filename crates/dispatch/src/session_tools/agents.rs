//! `agents_list` (spec `sessions.md` §8.7).

use openclaw_protocol::AgentId;
use serde::Serialize;
use serde_json::{Value, json};
use serde_with_macros::skip_serializing_none;

use super::ToolCaller;

/// An agent, as it is told.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
struct AgentListing {
    id: String,
    name: Option<String>,
    configured: bool,
}

impl ToolCaller<'_> {
    /// Lists the agents that this one may give work to, itself first.
    pub(crate) fn list_agents(&self) -> Value {
        let config = &self.settings.config;
        let allowed = config.agent_entry(&self.agent.id).map(|entry| entry.subagents.allow_agents.as_slice());
        let allowed = allowed.unwrap_or_default();
        let allow_any = allowed.iter().any(|id| id.trim() == "*");
        let configured: Vec<AgentId> =
            config.agents.list.iter().map(|entry| AgentId::normalize(&entry.id)).collect();
        let mut others: Vec<AgentId> = if allow_any {
            configured.clone()
        } else {
            let named = allowed.iter().filter(|id| !id.trim().is_empty());
            named.map(|id| AgentId::normalize(id)).collect()
        };
        others.retain(|id| *id != self.agent.id);
        others.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        others.dedup();
        let told = |id: &AgentId| AgentListing {
            id: id.to_string(),
            name: config.agent_entry(id).and_then(|entry| entry.name.clone()),
            configured: configured.contains(id),
        };
        let agents: Vec<AgentListing> = std::iter::once(&self.agent.id).chain(&others).map(told).collect();
        json!({"requester": self.agent.id.as_str(), "allowAny": allow_any, "agents": agents})
    }
}
