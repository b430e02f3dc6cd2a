//! Parts for messages that no run answers: those to the gateway itself, and those that are stopped or
//! fail before.

use std::sync::Arc;

use openclaw_commands::CommandServices;

use super::base::Base;
use super::chats::ChatParts;
use super::conversations::ConversationParts;
use super::preparation::PreparationParts;
use super::sessions::SessionParts;
use crate::blocked::ObstacleWaits;
use crate::command::{AnswerStore, AsideAnswers, GatewayCommands, TurnAnswers};
use crate::command_host::RunsOfCommands;
use crate::compaction::Compactions;
use crate::direct_calls::DirectCalls;
use crate::estimate::Estimator;
use crate::invoke::ToolInvocations;
use crate::shortcut::ShortcutAnswers;
use crate::skill_tool::ToolCalls;
use crate::unanswered::{Unanswered, UnansweredRecords};

/// Parts for messages that no run answers.
pub(super) struct CommandParts {
    pub(super) unanswered: Arc<Unanswered>,
    pub(super) services: Arc<CommandServices>,
    pub(super) invocations: Arc<ToolInvocations>,
    pub(super) commands: Arc<GatewayCommands>,
    pub(super) asides: Arc<AsideAnswers>,
    pub(super) shortcuts: Arc<ShortcutAnswers>,
}

impl CommandParts {
    pub(super) fn new(
        base: &Base,
        sessions: &SessionParts,
        chats: &ChatParts,
        conversations: &ConversationParts,
        preparation: &PreparationParts,
    ) -> Self {
        let Base { settings, journal, transcripts, .. } = base;
        let (rows, kill) = (&sessions.rows, &base.stops.kill);
        let services = Arc::new(services(base, sessions, preparation));
        let direct = Arc::new(DirectCalls::new(
            preparation.equipment.clone(),
            chats.hooks.clone(),
            base.host.clone(),
            base.clock.clone(),
        ));
        let invocations = ToolInvocations::new(
            settings.clone(),
            rows.clone(),
            services.clone(),
            sessions.rights.clone(),
            chats.routes.clone(),
            transcripts.clone(),
            direct.clone(),
        );
        let waits = ObstacleWaits::new(journal.clone(), transcripts.clone(), base.stops.stopping.clone());
        let waits = Arc::new(waits);
        let unanswered = Arc::new(unanswered(base, sessions, chats, conversations, &waits));
        let answers = Arc::new(AnswerStore::new(chats.ends.clone(), base.surroundings.clone()));
        let turn_answers = TurnAnswers::new(
            settings.clone(),
            services.clone(),
            conversations.sessions.clone(),
            journal.clone(),
            compactions(base, chats),
            ToolCalls::new(settings.clone(), base.all_models.clone(), direct),
            answers.clone(),
        );
        let commands = GatewayCommands::new(
            turn_answers,
            conversations.words.clone(),
            chats.ends.clone(),
            waits,
            unanswered.clone(),
            journal.clone(),
            kill.clone(),
        );
        let asides = AsideAnswers::new(
            settings.clone(),
            services.clone(),
            rows.clone(),
            transcripts.clone(),
            journal.clone(),
            answers,
            kill.clone(),
        );
        let shortcuts = ShortcutAnswers::new(settings.clone(), rows.clone(), services.clone(), kill.clone());
        Self {
            unanswered,
            services,
            invocations: Arc::new(invocations),
            commands: Arc::new(commands),
            asides: Arc::new(asides),
            shortcuts: Arc::new(shortcuts),
        }
    }
}

fn services(base: &Base, sessions: &SessionParts, preparation: &PreparationParts) -> CommandServices {
    let estimator = Estimator::new(
        sessions.rights.clone(),
        base.transcripts.clone(),
        base.models.clone(),
        preparation.equipment.clone(),
    );
    let host = RunsOfCommands::new(
        base.settings.clone(),
        base.secrets.clone(),
        preparation.commands.clone(),
        sessions.session_messages.clone(),
        estimator,
        base.child_runs.clone(),
        base.host.clone(),
    );
    CommandServices {
        models: base.models.clone(),
        store: base.store.clone(),
        platforms: base.platforms.clone(),
        skills: base.skills.clone(),
        approvals: base.approvals.clone(),
        command_sessions: base.command_sessions.clone(),
        surroundings: base.surroundings.clone(),
        registry: base.registry.clone(),
        clock: base.clock.clone(),
        host: Arc::new(host),
    }
}

fn compactions(base: &Base, chats: &ChatParts) -> Compactions {
    Compactions::new(
        base.models.clone(),
        base.transcripts.clone(),
        base.kept.clone(),
        base.store.clone(),
        base.system_events.clone(),
        chats.hooks.clone(),
        base.stops.kill.clone(),
    )
}

fn unanswered(
    base: &Base,
    sessions: &SessionParts,
    chats: &ChatParts,
    conversations: &ConversationParts,
    waits: &Arc<ObstacleWaits>,
) -> Unanswered {
    let records = UnansweredRecords::new(
        base.settings.clone(),
        conversations.sessions.clone(),
        base.transcripts.clone(),
        base.kept.clone(),
        base.journal.clone(),
        base.clock.clone(),
        base.stops.kill.clone(),
    );
    Unanswered::new(
        records,
        sessions.messages.clone(),
        chats.ends.clone(),
        waits.clone(),
        base.store.clone(),
        base.journal.clone(),
        base.stops.kill.clone(),
    )
}
