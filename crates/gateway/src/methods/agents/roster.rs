//! `agents.create`, `agents.update`, `agents.delete`: the work is done in [`openclaw_agent::roster`]; here runs are stopped
//! where they must be, and the gateway takes the changed file at once.

use std::time::Duration;

use openclaw_agent::roster::{self, AgentChange, Files, IdentityLines, NewAgent};
use openclaw_config::write::Actor;
use openclaw_protocol::AgentId;
use openclaw_protocol::params::agents::{
    AgentsCreateParams, AgentsCreateResult, AgentsDeleteParams, AgentsDeleteResult, AgentsUpdateParams,
    AgentsUpdateResult,
};
use openclaw_sessions::store::{Query, Row, Rows, gather};

use super::super::config_change::change;
use super::RosterMethods;
use crate::request::RequestFailure;

/// Time that the runs of a deleted agent get to stop.
const QUIESCE: Duration = Duration::from_secs(15);

pub(in super::super) async fn create(
    parts: &RosterMethods,
    params: AgentsCreateParams,
) -> Result<AgentsCreateResult, RequestFailure> {
    let id = AgentId::normalize(&params.name.0);
    let name = params.name.0.trim().to_owned();
    let (agent_id, shown) = (id.to_string(), name.clone());
    let created = change(&parts.reload, move |loaded| {
        let new = NewAgent {
            id: id.clone(),
            name: name.clone(),
            workspace: loaded.environment.expand_path(params.workspace.0.trim()),
            agent_dir: None,
            model: None,
            bindings: Vec::new(),
            identity: IdentityLines {
                name: Some(name.clone()),
                emoji: params.emoji.clone(),
                avatar: params.avatar.clone(),
            },
        };
        roster::create(loaded, &new, Actor::Rpc)
    })
    .await?;
    let workspace = created.workspace.display().to_string();
    Ok(AgentsCreateResult { ok: true, agent_id, name: shown, workspace })
}

pub(in super::super) async fn update(
    parts: &RosterMethods,
    params: AgentsUpdateParams,
) -> Result<AgentsUpdateResult, RequestFailure> {
    let id = AgentId::normalize(&params.agent_id.0);
    let agent_id = id.to_string();
    change(&parts.reload, move |loaded| {
        let text = |text: &Option<openclaw_protocol::params::NonEmpty>| {
            text.as_ref().map(|text| text.0.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let change = AgentChange {
            name: text(&params.name),
            workspace: text(&params.workspace).map(|dir| loaded.environment.expand_path(&dir)),
            model: text(&params.model),
            avatar: params.avatar.clone(),
        };
        roster::update(loaded, &id, &change, Actor::Rpc)
    })
    .await?;
    Ok(AgentsUpdateResult { ok: true, agent_id })
}

pub(in super::super) async fn delete(
    parts: &RosterMethods,
    params: AgentsDeleteParams,
) -> Result<AgentsDeleteResult, RequestFailure> {
    let id = AgentId::normalize(&params.agent_id.0);
    let agent_id = id.to_string();
    let files = if params.delete_files == Some(false) { Files::Keep } else { Files::Trash };
    if id.as_str() != AgentId::MAIN && parts.settings.config().has_agent(&id) {
        stop_runs(parts, &id).await?;
    }
    let deleted = change(&parts.reload, move |loaded| roster::delete(loaded, &id, files, Actor::Rpc)).await?;
    for (from, to) in &deleted.trashed {
        tracing::info!(agent = %agent_id, "moved to the trash: {} is now {}", from.display(), to.display());
    }
    for (dir, reason) in &deleted.kept {
        tracing::warn!(agent = %agent_id, "not moved to the trash: {} ({reason})", dir.display());
    }
    let removed_bindings = u64::try_from(deleted.removed_bindings).unwrap_or(u64::MAX);
    Ok(AgentsDeleteResult { ok: true, agent_id, removed_bindings })
}

/// Ends what the agent is doing, and writes its rows out: their files are about to be moved away.
async fn stop_runs(parts: &RosterMethods, id: &AgentId) -> Result<(), RequestFailure> {
    let store = parts.sessions.as_ref();
    let rules = store.rules().clone();
    let agent = id.clone();
    let of_agent = move |row: Row| (rules.agent_of(&row.key) == agent).then_some(row.key);
    for key in gather(store, Rows::Of(id), &Query::default(), of_agent).await? {
        if !parts.dispatch.active_runs(&key).is_empty() {
            let quiet = parts.dispatch.change(&key, QUIESCE, std::future::ready(())).await;
            quiet.outcome().await?;
        }
    }
    Ok(store.flush().await?)
}
