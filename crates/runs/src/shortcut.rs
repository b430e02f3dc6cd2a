//! Answer of a command that stands among words for the agent.

use std::sync::Arc;

use openclaw_commands::{CommandResponse, CommandServices, CommandSession};
use openclaw_journal::inbox::InboxRow;
use openclaw_runtime::setup::LiveSettings;
use openclaw_sessions::SessionEntry;
use tokio_util::sync::CancellationToken;

use crate::not_begun::NotBegun;
use crate::rows::SessionRows;

/// Parts for answering commands that stand among words.
pub struct ShortcutAnswers {
    settings: LiveSettings,
    rows: Arc<SessionRows>,
    services: Arc<CommandServices>,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl ShortcutAnswers {
    pub(crate) fn new(
        settings: LiveSettings,
        rows: Arc<SessionRows>,
        services: Arc<CommandServices>,
        kill: CancellationToken,
    ) -> Self {
        Self { settings, rows, services, kill }
    }

    /// Returns the answer of a command.
    pub async fn shortcut(&self, row: &InboxRow, name: &str) -> Result<CommandResponse, NotBegun> {
        let settings = self.settings.now();
        let key = &row.session_key;
        let asked = row.payload.agent_id.clone();
        let agent = asked.unwrap_or_else(|| key.agent_or(&settings.sessions.default_agent()));
        let agent = settings.config.agent(&agent);
        let entry = self.rows.entry_or_none(key).await;
        let entry = entry.map_or_else(SessionEntry::default, |entry| SessionEntry::clone(&entry));
        let session = CommandSession { settings: &settings, key, agent: &agent, entry: &entry };
        let context = self.services.context(session, row, &self.kill);
        Ok(openclaw_commands::run(&context, name, "").await?)
    }
}
