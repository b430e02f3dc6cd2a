//! Sessions that are begun anew or deleted over the gateway's protocol: `command:new`,
//! `session_start`, `session_end`.

use std::sync::Arc;

use openclaw_agent::hooks::CommandAction;
use openclaw_protocol::SessionKey;
use openclaw_runs::conversation_hooks::{EndedConversation, Restart};
use openclaw_sessions::SessionEntry;

use crate::handle::Dispatch;

impl Dispatch {
    /// Returns the end of a session's conversation that is about to be deleted, to be told
    /// afterwards; `None` if no hook asks for it.
    pub async fn end_of(&self, key: &SessionKey) -> Option<EndedConversation> {
        let (parts, entry) = (self.hook_parts(), self.entry_for_hooks(key).await?);
        let bus = parts.hooks.hooks_now()?;
        parts.conversation_hooks.ended(&bus, key, &entry).await
    }

    /// Returns a session's current row, if hooks want to know it; for [`Dispatch::tell_reset`].
    pub async fn entry_for_hooks(&self, key: &SessionKey) -> Option<Arc<SessionEntry>> {
        if self.has_hooks() { self.hook_parts().rows.entry_or_none(key).await } else { None }
    }

    /// Tells that somebody has begun a session anew over the gateway's protocol. `previous` is its row as it was.
    pub async fn tell_reset(&self, key: &SessionKey, previous: Option<Arc<SessionEntry>>) {
        let Some(current) = self.entry_for_hooks(key).await else { return };
        let restart = Restart {
            key,
            previous: previous.as_deref(),
            current: &current,
            command: Some(CommandAction::New),
            source: "rpc",
            sender: None,
            chat: None,
        };
        let parts = self.hook_parts();
        parts.conversation_hooks.restarted(restart, &parts.kill).await;
    }
}
