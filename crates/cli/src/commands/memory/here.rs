//! Memory that is opened by this process.

use std::sync::{Arc, OnceLock};

use openclaw_gateway::Redactor;
use openclaw_models::{Http, Models, Variables};
use openclaw_protocol::AgentId;
use openclaw_protocol::params::memory::{MemoryIndexResult, MemorySearchResult, MemoryStatusResult};
use openclaw_runtime::memory::{Memories, StatusDepth};
use openclaw_runtime::setup::Settings;
use openclaw_sessions::Layout;
use openclaw_sessions::transcript::Transcripts;
use tokio::sync::watch;

use crate::client;
use crate::context::CliContext;
use crate::failure::CommandFailure;

/// Does something with the memories of this state directory, and closes them.
pub(super) fn with_memories<T>(
    context: &CliContext,
    work: impl AsyncFnOnce(&Memories) -> T,
) -> Result<T, CommandFailure> {
    let config = Arc::clone(context.config()?);
    let paths = context.paths();
    let layout = Layout::new(paths.state_dir(), paths.home(), config.session.store.as_deref());
    let (redactor, patterns) = (OnceLock::new(), config.logging.redact_patterns.clone());
    let models = Models::new(Variables::from(config.environment()), Http::default());
    // The sender may go: what was sent stays.
    let settings = watch::channel(Arc::new(Settings::from(config))).1;
    let mask =
        Arc::new(move |text: &str| redactor.get_or_init(|| Redactor::in_any_case(&patterns)).mask(text));
    client::block_on(async {
        let memories = Memories::new(settings, models, Transcripts::in_files(layout), mask);
        let done = work(&memories).await;
        memories.close().await;
        Ok(done)
    })
}

/// As the gateway's `memory.status`.
pub(crate) fn status_here(
    context: &CliContext,
    agents: &[AgentId],
    probe: bool,
    index: bool,
) -> Result<MemoryStatusResult, CommandFailure> {
    with_memories(context, async |memories| memories.status(agents, StatusDepth { probe, index }).await)
}

/// As the gateway's `memory.index`.
pub(super) fn index(
    context: &CliContext,
    agents: &[AgentId],
    force: bool,
) -> Result<MemoryIndexResult, CommandFailure> {
    with_memories(context, async |memories| memories.index(agents, force).await)
}

/// As the gateway's `memory.search`, but the files are looked at first: nobody else does.
pub(super) fn search(
    context: &CliContext,
    agent: &AgentId,
    query: &str,
    (most, least): (Option<u64>, Option<f64>),
) -> Result<MemorySearchResult, String> {
    let most = most.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    let found = with_memories(context, async |memories| {
        let looked = memories.look(agent).await;
        let mut found = memories.search(agent, query, most, least).await?;
        // What cannot be indexed now keeps nobody from what the index holds.
        found.warning = found.warning.or(looked.err());
        Ok(found)
    });
    found.map_err(|failure| failure.message)?
}
