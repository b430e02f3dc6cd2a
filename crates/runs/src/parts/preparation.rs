//! Parts for preparing runs.

use std::sync::Arc;

use super::base::Base;
use super::chats::ChatParts;
use super::conversations::ConversationParts;
use super::sessions::SessionParts;
use crate::prepare::equipment::Equipment;
use crate::prepare::exec::CommandSetup;
use crate::prepare::{Preparer, SystemPrompts, ToolMaker, TurnOpener, WorkspaceLoader};

/// Parts for preparing runs.
pub(super) struct PreparationParts {
    pub(super) commands: Arc<CommandSetup>,
    pub(super) equipment: Arc<Equipment>,
    pub(super) preparer: Arc<Preparer>,
}

impl PreparationParts {
    pub(super) fn new(
        base: &Base,
        sessions: &SessionParts,
        chats: &ChatParts,
        conversations: &ConversationParts,
    ) -> Self {
        let Base { platforms, secrets, .. } = base;
        let SessionParts { rows, rights, .. } = sessions;
        let commands = Arc::new(CommandSetup::new(
            base.command_variables.clone(),
            base.command_lock.clone(),
            base.command_sessions.clone(),
            base.approvals.clone(),
            secrets.clone(),
            base.state_dir.clone(),
        ));
        let around = base.surroundings.clone();
        let equipment = Arc::new(Equipment::new(
            secrets.clone(),
            base.skills.clone(),
            base.sandboxes.clone(),
            WorkspaceLoader::new(chats.hooks.clone()),
            ToolMaker::new(commands.clone(), rights.clone(), platforms.clone(), around),
            SystemPrompts::new(rows.clone(), platforms.clone(), base.host_facts.clone()),
        ));
        let opener = TurnOpener::new(
            base.transcripts.clone(),
            base.kept.clone(),
            base.journal.clone(),
            base.system_events.clone(),
            base.hub.clone(),
            base.stops.kill.clone(),
        );
        let preparer = Arc::new(Preparer::new(
            base.settings.clone(),
            conversations.sessions.clone(),
            base.models.clone(),
            equipment.clone(),
            chats.hooks.clone(),
            opener,
        ));
        Self { commands, equipment, preparer }
    }
}
