//! Forgetting: finding what memory files say of something, and taking it out of them and of the index.

use openclaw_memory::{ForgetEntry, ForgetOutcome};
use openclaw_protocol::AgentId;

use super::Memories;

impl Memories {
    /// Finds the entries of an agent's memory files that hold all words of `query`.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn forget_preview(&self, agent: &AgentId, query: &str) -> Result<Vec<ForgetEntry>, String> {
        let memory = self.of(agent).await.map_err(|reason| reason.to_string())?;
        memory.index.forget_preview(query).await.map_err(|error| error.to_string())
    }

    /// Removes entries from their files, and from the index. Entries that have changed since stay.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn forget(&self, agent: &AgentId, entries: Vec<ForgetEntry>) -> Result<ForgetOutcome, String> {
        let memory = self.of(agent).await.map_err(|reason| reason.to_string())?;
        memory.index.forget(entries).await.map_err(|error| error.to_string())
    }
}
