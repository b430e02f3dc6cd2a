//! `agents.files.*`: the files of a workspace, edited from afar.

use openclaw_agent::roster::files::{self, FileError, WorkspaceFile};
use openclaw_config::Config;
use openclaw_protocol::params::agents::{
    AgentFile, AgentsFilesGetParams, AgentsFilesGetResult, AgentsFilesListParams, AgentsFilesListResult,
    AgentsFilesSetParams, AgentsFilesSetResult,
};
use openclaw_protocol::{AgentId, ErrorShape};

use super::RosterMethods;
use crate::request::RequestFailure;

pub(in super::super) async fn list(
    parts: &RosterMethods,
    params: AgentsFilesListParams,
) -> Result<AgentsFilesListResult, RequestFailure> {
    let (agent_id, workspace) = workspace_of(&parts.settings.config(), &params.agent_id.0)?;
    let at = workspace.clone();
    let found = blocking(move || Ok(files::list(&at))).await?;
    let files = found.into_iter().map(|file| shown(file, None)).collect();
    Ok(AgentsFilesListResult { agent_id, workspace: workspace.display().to_string(), files })
}

pub(in super::super) async fn get(
    parts: &RosterMethods,
    params: AgentsFilesGetParams,
) -> Result<AgentsFilesGetResult, RequestFailure> {
    let (agent_id, workspace) = workspace_of(&parts.settings.config(), &params.agent_id.0)?;
    let at = workspace.clone();
    let (file, content) = blocking(move || files::get(&at, &params.name.0)).await?;
    let file = shown(file, content);
    Ok(AgentsFilesGetResult { agent_id, workspace: workspace.display().to_string(), file })
}

pub(in super::super) async fn set(
    parts: &RosterMethods,
    params: AgentsFilesSetParams,
) -> Result<AgentsFilesSetResult, RequestFailure> {
    let (agent_id, workspace) = workspace_of(&parts.settings.config(), &params.agent_id.0)?;
    let at = workspace.clone();
    let (name, content) = (params.name.0, params.content);
    let (file, content) = blocking(move || Ok((files::set(&at, &name, &content)?, content))).await?;
    let file = shown(file, Some(content));
    Ok(AgentsFilesSetResult { ok: true, agent_id, workspace: workspace.display().to_string(), file })
}

fn workspace_of(config: &Config, agent: &str) -> Result<(String, std::path::PathBuf), RequestFailure> {
    let id = AgentId::normalize(agent);
    if !config.has_agent(&id) {
        return Err(ErrorShape::invalid("unknown agent id").into());
    }
    Ok((id.to_string(), config.agent(&id).workspace))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, RequestFailure> {
    Ok(tokio::task::spawn_blocking(work).await??)
}

fn shown(file: WorkspaceFile, content: Option<String>) -> AgentFile {
    AgentFile {
        name: file.name,
        path: file.path.display().to_string(),
        missing: file.stamp.is_none(),
        size: file.stamp.map(|stamp| stamp.size),
        updated_at_ms: file.stamp.map(|stamp| stamp.updated_at_ms),
        content,
    }
}
