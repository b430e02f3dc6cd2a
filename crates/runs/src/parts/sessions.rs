//! Parts for the rows of sessions and for their messages.

use std::sync::Arc;

use super::base::Base;
use crate::decide::Decider;
use crate::rows::SessionRows;
use crate::send_rules::SendRules;
use crate::session_messages::SessionMessages;
use crate::session_rights::SessionRights;
use crate::stored_messages::StoredMessages;

/// Parts for the rows of sessions and for their messages.
pub(super) struct SessionParts {
    pub(super) rows: Arc<SessionRows>,
    pub(super) rights: Arc<SessionRights>,
    pub(super) send_rules: Arc<SendRules>,
    pub(super) decider: Arc<Decider>,
    pub(super) messages: Arc<StoredMessages>,
    pub(super) session_messages: Arc<SessionMessages>,
}

impl SessionParts {
    pub(super) fn new(base: &Base) -> Self {
        let settings = &base.settings;
        let rows = Arc::new(SessionRows::new(base.store.clone()));
        let rights = Arc::new(SessionRights::new(rows.clone(), base.child_runs.clone()));
        let send_rules = Arc::new(SendRules::new(settings.clone(), rows.clone()));
        let decider = Arc::new(Decider::new(
            settings.clone(),
            rows.clone(),
            send_rules.clone(),
            rights.clone(),
            base.skills.clone(),
        ));
        let messages = StoredMessages::new(base.journal.clone(), decider.clone(), settings.clone());
        let session_messages = SessionMessages::new(rows.clone(), base.transcripts.clone());
        Self {
            rows,
            rights,
            send_rules,
            decider,
            messages: Arc::new(messages),
            session_messages: Arc::new(session_messages),
        }
    }
}
