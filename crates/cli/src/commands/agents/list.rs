//! `openclaw agents list`.

use openclaw_agent::identity::Identity;
use openclaw_config::settings::Binding;
use openclaw_config::{Config, ResolvedAgent};
use openclaw_protocol::AgentId;
use serde::Serialize;

use crate::context::CliContext;
use crate::failure::CommandResult;
use crate::output;

/// Row of the list: one agent, keys in the order of the reference.
#[derive(Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct AgentRow {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity_emoji: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity_source: Option<&'static str>,
    workspace: String,
    agent_dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    bindings: usize,
    is_default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    binding_details: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routes: Option<Vec<&'static str>>,
}

/// Amount of detail on bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Number of bindings only.
    Count,
    /// List of bindings.
    Bindings,
}

pub(super) fn run(json: bool, detail: Detail, context: &CliContext) -> CommandResult {
    let config = context.config()?;
    context.print_warnings_about(&["agents", "bindings"]);
    let rows: Vec<AgentRow> =
        config.agent_ids().iter().map(|id| row(config, &config.agent(id), detail)).collect();
    if json {
        output::json(&rows);
    } else {
        text(&rows, detail, context).iter().for_each(|line| output::row(line));
    }
    Ok(0)
}

fn row(config: &Config, agent: &ResolvedAgent, detail: Detail) -> AgentRow {
    let mine: Vec<&Binding> =
        config.bindings.iter().filter(|binding| AgentId::normalize(&binding.agent_id) == agent.id).collect();
    let configured = &agent.identity;
    let from_file = Some(Identity::of_workspace(&agent.workspace)).filter(|identity| !identity.is_empty());
    let is_configured = configured.name.is_some() || configured.emoji.is_some();
    let (identity_name, identity_emoji, identity_source) = match (is_configured, from_file) {
        (true, _) => (configured.name.clone(), configured.emoji.clone(), Some("config")),
        (false, Some(file)) => (file.name, file.emoji, Some("identity")),
        (false, None) => (None, None, None),
    };
    let is_unrouted = agent.is_default && mine.is_empty();
    AgentRow {
        id: agent.id.to_string(),
        name: agent.name.clone(),
        identity_name,
        identity_emoji,
        identity_source,
        workspace: agent.workspace.display().to_string(),
        agent_dir: agent.agent_dir.display().to_string(),
        model: agent.model_primary.clone(),
        bindings: mine.len(),
        is_default: agent.is_default,
        binding_details: (detail == Detail::Bindings && !mine.is_empty())
            .then(|| mine.iter().map(|binding| binding.matches.to_string()).collect()),
        routes: is_unrouted.then(|| vec!["default (no explicit rules)"]),
    }
}

fn text(rows: &[AgentRow], detail: Detail, context: &CliContext) -> Vec<String> {
    let mut lines = vec![context.style.accent("Agents:")];
    for row in rows {
        let default = if row.is_default { " (default)" } else { "" };
        let name = row.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        lines.push(format!("- {}{default}{name}", row.id));
        if let (Some(source), Some(name)) = (row.identity_source, &row.identity_name) {
            let emoji = row.identity_emoji.as_ref().map(|emoji| format!("{emoji} ")).unwrap_or_default();
            let place = if source == "config" { "config" } else { "IDENTITY.md" };
            lines.push(format!("  Identity: {emoji}{name} ({place})"));
        }
        lines.push(format!("  Workspace: {}", context.short(row.workspace.as_ref())));
        lines.push(format!("  Agent dir: {}", context.short(row.agent_dir.as_ref())));
        lines.extend(row.model.iter().map(|model| format!("  Model: {model}")));
        lines.push(format!("  Routing rules: {}", row.bindings));
        lines.extend(row.routes.iter().map(|routes| format!("  Routing: {}", routes.join(", "))));
        if let Some(details) = &row.binding_details {
            lines.push("  Routing rules:".to_owned());
            lines.extend(details.iter().map(|detail| format!("    - {detail}")));
        }
    }
    let what = "Routing rules map channel/account/peer to an agent.";
    lines.push(match detail {
        Detail::Count => format!("{what} Use --bindings for full rules."),
        Detail::Bindings => what.to_owned(),
    });
    lines
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn rows_have_the_shape_of_the_reference() {
        let env = Environment::new([("HOME", "/h"), ("OPENCLAW_STATE_DIR", "/h/.openclaw")], "/w");
        let config = Config::from_json5(
            "{ agents: { defaults: { model: { primary: 'mock/mock-1' } }, list: [
                 { id: 'main', name: 'Main', default: true, workspace: '/ws' },
                 { id: 'work', name: 'Work', workspace: '/ws2', identity: { name: 'Worker', emoji: '🛠' } } ] },
               bindings: [{ agentId: 'work', match: { channel: 'telegram', accountId: 'default' } }] }",
            &env,
        )
        .unwrap();
        let rows: Vec<AgentRow> =
            config.agent_ids().iter().map(|id| row(&config, &config.agent(id), Detail::Bindings)).collect();
        let expect: Value = json!([
            {
                "id": "main", "name": "Main", "workspace": "/ws", "agentDir": "/h/.openclaw/agents/main/agent",
                "model": "mock/mock-1", "bindings": 0, "isDefault": true, "routes": ["default (no explicit rules)"],
            },
            {
                "id": "work", "name": "Work", "identityName": "Worker", "identityEmoji": "🛠",
                "identitySource": "config", "workspace": "/ws2", "agentDir": "/h/.openclaw/agents/work/agent",
                "model": "mock/mock-1", "bindings": 1, "isDefault": false,
                "bindingDetails": ["telegram accountId=default"],
            },
        ]);
        // As text, because the order of the keys is part of the shape.
        assert_eq!(serde_json::to_string(&rows).unwrap(), expect.to_string());
    }
}
