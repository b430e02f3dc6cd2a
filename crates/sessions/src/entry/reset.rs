//! A row after its conversation started anew (spec `sessions.md` §5.3, decision 6).

use openclaw_protocol::SessionId;

use super::SessionEntry;

/// Party that starts the conversation anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetKind {
    /// `sessions.reset`: the skills snapshot stays.
    Method,
    /// A reset command in the chat, or the daily or idle expiry: the skills snapshot is taken anew.
    Chat,
}

impl SessionEntry {
    /// Makes of a row without a conversation one whose conversation begins, as OpenClaw 2026.2.9 writes it.
    pub fn begin(&mut self, session_id: SessionId) {
        self.session_id = Some(session_id);
        self.system_sent = Some(false);
        self.aborted_last_run = Some(false);
        self.compaction_count = Some(0);
    }

    /// The row of the next conversation in the same bucket: new transcript, no tokens, nothing sent yet. Settings people
    /// made (levels, model, queue, send policy, label…), where it came from and where it is answered stay, and so do
    /// fields this version does not know. Time does not run backwards, also when the clock was put back.
    pub fn reset(&self, session_id: SessionId, now: i64, kind: ResetKind) -> Self {
        let old = self.clone();
        Self {
            session_id: Some(session_id),
            updated_at: Some(now.max(old.updated_at_ms())),
            last_interaction_at: None,
            last_interaction_known_at: None,
            system_sent: Some(false),
            aborted_last_run: Some(false),
            session_file: None,
            auth_profile_override_compaction_count: None,
            input_tokens: Some(0),
            output_tokens: Some(0),
            total_tokens: Some(0),
            model_provider: None,
            // OpenClaw 2026.2.9 counts from 0 where a chat begins anew, and leaves it away where the method does.
            compaction_count: match kind {
                ResetKind::Method => None,
                ResetKind::Chat => Some(0),
            },
            memory_flush_at: None,
            memory_flush_compaction_count: None,
            cli_session_ids: None,
            claude_cli_session_id: None,
            last_heartbeat_text: None,
            last_heartbeat_sent_at: None,
            system_prompt_report: None,
            skills_snapshot: match kind {
                ResetKind::Method => old.skills_snapshot,
                ResetKind::Chat => None,
            },
            ..old
        }
    }
}
