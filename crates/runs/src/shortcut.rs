//! Answer of a command that stands among words for the agent.

use openclaw_commands::CommandResponse;
use openclaw_journal::inbox::InboxRow;
use openclaw_sessions::SessionEntry;

use crate::not_begun::NotBegun;
use crate::runner::Runner;

impl Runner {
    /// Returns the answer of a command.
    pub async fn shortcut(&self, row: &InboxRow, name: &str) -> Result<CommandResponse, NotBegun> {
        let settings = self.settings();
        let key = &row.session_key;
        let asked = row.payload.agent_id.clone();
        let agent = asked.unwrap_or_else(|| key.agent_or(&settings.sessions.default_agent()));
        let agent = settings.config.agent(&agent);
        let entry = self.entry_or_none(key).await;
        let entry = entry.map_or_else(SessionEntry::default, |entry| SessionEntry::clone(&entry));
        let context = self.context(&settings, key, &agent, &entry, row, &self.shared.kill);
        Ok(openclaw_commands::run(&context, name, "").await?)
    }
}
