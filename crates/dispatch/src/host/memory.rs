//! Memory of an agent, for the tools of one run.

use openclaw_agent::host::{HostFuture, MemoryHost, MemoryLines, MemoryQuestion};
use serde_json::Value;

use super::ToolHost;

impl MemoryHost for ToolHost {
    fn search(&self, question: MemoryQuestion) -> HostFuture<'_, Value> {
        Box::pin(async move {
            let (agent, session) = (&self.run.agent.id, &self.run.turn.session_key);
            Ok(self.tools().memories.answer_search(agent, session, question).await)
        })
    }

    fn lines(&self, wish: MemoryLines) -> HostFuture<'_, Value> {
        Box::pin(async move { Ok(self.tools().memories.answer_get(&self.run.agent.id, wish).await) })
    }
}
