//! `memory.*`: the memory of agents, for the command line. Ours.

use openclaw_protocol::AgentId;
use openclaw_protocol::access::Access;
use openclaw_protocol::error::ErrorShape;
use openclaw_protocol::params::NonEmpty;
use openclaw_protocol::params::memory::{
    MemoryIndexParams, MemoryIndexResult, MemorySearchParams, MemorySearchResult, MemoryStatusParams,
    MemoryStatusResult,
};
use openclaw_runtime::memory::{Memories, StatusDepth};
use tokio_util::task::TaskTracker;

use crate::current_settings::CurrentSettings;
use crate::request::{RequestContext, RequestFailure};

/// Parts of the gateway that `memory.*` use.
pub(super) struct MemoryMethods {
    pub(super) settings: CurrentSettings,
    pub(super) memories: Memories,
    /// Owns what goes on without the caller.
    pub(super) tasks: TaskTracker,
}

impl MemoryMethods {
    /// The agent that is asked for, else all of them.
    fn agents(&self, asked: Option<NonEmpty>) -> Result<Vec<AgentId>, RequestFailure> {
        match asked {
            Some(asked) => Ok(vec![self.agent(&asked)?]),
            None => Ok(self.settings.config().agent_ids()),
        }
    }

    fn agent(&self, asked: &NonEmpty) -> Result<AgentId, RequestFailure> {
        let id = AgentId::normalize(&asked.0);
        if self.settings.config().has_agent(&id) {
            return Ok(id);
        }
        Err(ErrorShape::invalid(format!("unknown agent id \"{}\"", asked.0)).into())
    }
}

pub(super) async fn status(
    parts: &MemoryMethods,
    ctx: RequestContext,
    params: MemoryStatusParams,
) -> Result<MemoryStatusResult, RequestFailure> {
    let agents = parts.agents(params.agent_id)?;
    let index = params.index.unwrap_or(false);
    let depth = StatusDepth { probe: index || params.deep.unwrap_or(false), index };
    // Both ask a provider, which may cost money.
    if depth.probe && !Access::Admin.is_granted_by(&ctx.connection().scopes) {
        return Err(ErrorShape::invalid("missing scope: operator.admin").into());
    }
    Ok(parts.memories.status(&agents, depth).await)
}

/// Goes on when the caller disconnects.
pub(super) async fn index(
    parts: &MemoryMethods,
    params: MemoryIndexParams,
) -> Result<MemoryIndexResult, RequestFailure> {
    let agents = parts.agents(params.agent_id)?;
    let (memories, force) = (parts.memories.clone(), params.force.unwrap_or(false));
    let work = parts.tasks.spawn(async move { memories.index(&agents, force).await });
    Ok(work.await?)
}

pub(super) async fn search(
    parts: &MemoryMethods,
    params: MemorySearchParams,
) -> Result<MemorySearchResult, RequestFailure> {
    let agent = match &params.agent_id {
        Some(asked) => parts.agent(asked)?,
        None => parts.settings.config().default_agent(),
    };
    let most = params.max_results.map(|most| usize::try_from(most).unwrap_or(usize::MAX).max(1));
    let found = parts.memories.search(&agent, &params.query.0, most, params.min_score).await;
    found.map_err(|error| ErrorShape::unavailable(error).into())
}
