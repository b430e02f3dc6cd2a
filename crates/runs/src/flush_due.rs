//! Decides if memory is saved before a message's turn.

use openclaw_agent::compaction::memory_flush::{SessionFill, can_be_saved};
use openclaw_journal::inbox::InboxRow;
use openclaw_models::Candidate;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::SessionEntry;

use crate::sandbox;
use crate::session::RunSession;

/// True if memory is to be saved before a message's turn. False for a message that a crash has cut
/// short, which was begun behind such a turn already, and for messages of the gateway itself, which
/// are no person's turn.
pub(crate) fn is_due(settings: &Settings, row: &InboxRow, session: &RunSession, model: &Candidate) -> bool {
    let Some(flush) = &settings.memory_flush else { return false };
    !row.recovered
        && row.payload.is_interaction()
        && session.reset.is_none()
        && flush.is_due(model.model.context_window(), fill(&session.entry))
        && sandbox::reaches_workspace(settings, &session.agent, &session.rights)
        && can_be_saved(&session.agent.workspace)
}

fn fill(entry: &SessionEntry) -> SessionFill {
    SessionFill {
        total_tokens: entry.total_tokens.unwrap_or(0),
        compactions: entry.compaction_count.unwrap_or(0),
        flushed_at: entry.memory_flush_compaction_count,
    }
}
