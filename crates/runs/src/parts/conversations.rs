//! Parts for conversations: finding, beginning and writing into them.

use std::sync::Arc;

use super::base::Base;
use super::chats::ChatParts;
use super::sessions::SessionParts;
use crate::conversation_hooks::ConversationHooks;
use crate::hooks::{HookEvents, MemoryHook};
use crate::inject::{Injections, TranscriptWords};
use crate::session::{MessageConversations, SessionOpener};

/// Parts for conversations.
pub(super) struct ConversationParts {
    pub(super) hooks: Arc<ConversationHooks>,
    pub(super) sessions: Arc<SessionOpener>,
    pub(super) conversations: Arc<MessageConversations>,
    pub(super) words: Arc<TranscriptWords>,
    pub(super) injections: Arc<Injections>,
}

impl ConversationParts {
    pub(super) fn new(base: &Base, sessions: &SessionParts, chats: &ChatParts) -> Self {
        let Base { settings, transcripts, .. } = base;
        let SessionParts { rows, messages, send_rules, .. } = sessions;
        let memory = MemoryHook::new(
            settings.clone(),
            base.secrets.clone(),
            rows.clone(),
            base.all_models.clone(),
            transcripts.clone(),
        );
        let hooks = Arc::new(ConversationHooks::new(
            chats.hooks.clone(),
            HookEvents::new(memory, base.state_dir.clone()),
            rows.clone(),
            transcripts.clone(),
            send_rules.clone(),
            chats.notices.clone(),
            base.clock.clone(),
        ));
        let sessions = Arc::new(SessionOpener::new(
            base.store.clone(),
            base.models.clone(),
            transcripts.clone(),
            base.journal.clone(),
            base.clock.clone(),
            hooks.clone(),
        ));
        let conversations =
            Arc::new(MessageConversations::new(sessions.clone(), messages.clone(), settings.clone()));
        let words = Arc::new(TranscriptWords::new(transcripts.clone(), base.kept.clone()));
        let injections = Arc::new(Injections::new(
            words.clone(),
            conversations.clone(),
            rows.clone(),
            settings.clone(),
            transcripts.clone(),
            base.hub.clone(),
            base.stops.kill.clone(),
        ));
        Self { hooks, sessions, conversations, words, injections }
    }
}
