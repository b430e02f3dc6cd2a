//! Putting the parts of runs together. None of them sees the others but those it was handed.
//!
//! [`base`] has what the gateway hands in; each of the other modules makes the parts of one subject
//! from it and from the subjects before.

mod base;
mod chats;
mod commands;
mod conversations;
mod preparation;
mod sessions;

use std::sync::Arc;

use openclaw_commands::CommandServices;
use openclaw_delivery::outbox::Outbox;
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::Journal;
use openclaw_runtime::child_runs::ChildRuns;
use openclaw_runtime::events::Hub;
use openclaw_runtime::global_lanes::GlobalLanes;
use openclaw_runtime::registry::Registry;
use openclaw_runtime::session_model::SessionModels;
use openclaw_runtime::setup::{Deps, LiveSettings};
use openclaw_runtime::stopping::Stopping;
use openclaw_runtime::work_tasks::WorkTasks;

use crate::acknowledge::Acknowledgements;
use crate::attempt::Suspects;
use crate::command::{AsideAnswers, GatewayCommands};
use crate::compaction::AfterRuns;
use crate::conversation_hooks::ConversationHooks;
use crate::decide::Decider;
use crate::deliver::{Deliveries, Routes};
use crate::ending::RunEnds;
use crate::hooks::Hooks;
use crate::inject::Injections;
use crate::invoke::ToolInvocations;
use crate::memory_flush::MemoryFlushes;
use crate::message_host::ActionHost;
use crate::notices::Notices;
use crate::reports::Reports;
use crate::rows::SessionRows;
use crate::run_host::HostLink;
use crate::secrets::KnownSecrets;
use crate::send_rules::SendRules;
use crate::session::MessageConversations;
use crate::session_messages::SessionMessages;
use crate::shortcut::ShortcutAnswers;
use crate::start_over::FreshStarts;
use crate::stored_messages::StoredMessages;
use crate::turn::Turns;
use crate::waiting::WaitingSigns;
use crate::work::Runner;

use base::Base;
use chats::ChatParts;
use commands::CommandParts;
use conversations::ConversationParts;
use preparation::PreparationParts;
use sessions::SessionParts;

/// Input for the parts of runs.
pub struct RunSources {
    /// Stores, models and platforms that the gateway hands in.
    pub deps: Deps,
    /// The time.
    pub clock: Clock,
    /// Durable storage of accepted messages, and of deliveries to chat platforms.
    pub journal: Arc<dyn Journal>,
    /// Deliveries to chat platforms.
    pub outbox: Outbox,
    /// Fan-out of events.
    pub hub: Arc<Hub>,
    /// Runs that have not ended.
    pub registry: Arc<Registry>,
    /// Lanes that all sessions share.
    pub lanes: Arc<GlobalLanes>,
    /// Tasks that a stop waits for.
    pub tasks: WorkTasks,
    /// Phases of a stop.
    pub stops: Stopping,
}

/// The parts of runs, for whoever hands them on.
pub struct RunParts {
    /// Driver of messages.
    pub runner: Arc<Runner>,
    /// The gateway around the runs, once there is one.
    pub host: Arc<HostLink>,
    /// The settings in force.
    pub settings: LiveSettings,
    /// The rows of all sessions.
    pub rows: Arc<SessionRows>,
    /// Models that sessions have chosen, among all models.
    pub models: Arc<SessionModels>,
    /// Sub-agents that sessions have started.
    pub child_runs: Arc<ChildRuns>,
    /// Secrets that tools may not say.
    pub secrets: Arc<KnownSecrets>,
    /// Messages that may end the process.
    pub suspects: Arc<Suspects>,
    /// Decisions about messages.
    pub decider: Arc<Decider>,
    /// The messages of the inbox.
    pub messages: Arc<StoredMessages>,
    /// Conversations that messages go to.
    pub conversations: Arc<MessageConversations>,
    /// Rules by which sessions may send.
    pub send_rules: Arc<SendRules>,
    /// Conversations that answers go to by themselves.
    pub routes: Arc<Routes>,
    /// Messages of sessions to chats.
    pub deliveries: Arc<Deliveries>,
    /// Messages of the gateway itself in chats.
    pub notices: Arc<Notices>,
    /// Reactions that say that a message was taken.
    pub acks: Arc<Acknowledgements>,
    /// Typing indicators of messages that wait.
    pub signs: Arc<WaitingSigns>,
    /// Hooks in use, and their tasks.
    pub hooks: Arc<Hooks>,
    /// Hooks at the beginning and the end of conversations.
    pub conversation_hooks: Arc<ConversationHooks>,
    /// Words that are put into conversations.
    pub injections: Arc<Injections>,
    /// Reading of conversations.
    pub session_messages: Arc<SessionMessages>,
    /// Parts of the gateway that commands use.
    pub services: Arc<CommandServices>,
    /// Messages to the gateway itself.
    pub commands: Arc<GatewayCommands>,
    /// Commands that are answered beside a run.
    pub asides: Arc<AsideAnswers>,
    /// Answers to commands that stand among words for the agent.
    pub shortcuts: Arc<ShortcutAnswers>,
    /// Compaction after runs.
    pub after_runs: Arc<AfterRuns>,
    /// Storing the ends of runs.
    pub ends: Arc<RunEnds>,
    /// Calls of tools for clients.
    pub invocations: Arc<ToolInvocations>,
    /// Actions on chat platforms.
    pub actions: Arc<ActionHost>,
}

/// Makes all parts of runs, and hands each what it uses.
pub fn assemble(sources: RunSources) -> RunParts {
    let base = Base::new(sources);
    let sessions = SessionParts::new(&base);
    let chats = ChatParts::new(&base, &sessions);
    let conversations = ConversationParts::new(&base, &sessions, &chats);
    let preparation = PreparationParts::new(&base, &sessions, &chats, &conversations);
    let commands = CommandParts::new(&base, &sessions, &chats, &conversations, &preparation);
    let suspects = Arc::<Suspects>::default();
    let after_runs = Arc::new(AfterRuns::new(
        base.kept.clone(),
        base.store.clone(),
        sessions.rows.clone(),
        chats.notices.clone(),
    ));
    let flushes = MemoryFlushes::new(
        base.settings.clone(),
        preparation.preparer.clone(),
        base.host.clone(),
        base.journal.clone(),
        base.store.clone(),
        base.kept.clone(),
        base.stops.kill.clone(),
    );
    let runner = Arc::new(Runner {
        settings: base.settings.clone(),
        models: base.models.clone(),
        messages: sessions.messages.clone(),
        journal: base.journal.clone(),
        registry: base.registry.clone(),
        lanes: base.lanes.clone(),
        suspects: suspects.clone(),
        signs: chats.signs.clone(),
        commands: commands.commands.clone(),
        preparer: preparation.preparer,
        flushes,
        turns: turns(&base, &sessions, &chats, &conversations),
        unanswered: commands.unanswered,
        ends: chats.ends.clone(),
        kill: base.stops.kill,
    });
    RunParts {
        runner,
        host: base.host,
        settings: base.settings,
        models: base.models,
        child_runs: base.child_runs,
        secrets: base.secrets,
        suspects,
        rows: sessions.rows,
        decider: sessions.decider,
        messages: sessions.messages,
        send_rules: sessions.send_rules,
        session_messages: sessions.session_messages,
        conversations: conversations.conversations,
        conversation_hooks: conversations.hooks,
        injections: conversations.injections,
        routes: chats.routes,
        deliveries: chats.deliveries,
        notices: chats.notices,
        acks: chats.acks,
        signs: chats.signs,
        hooks: chats.hooks,
        ends: chats.ends,
        actions: chats.actions,
        services: commands.services,
        commands: commands.commands,
        asides: commands.asides,
        shortcuts: commands.shortcuts,
        invocations: commands.invocations,
        after_runs,
    }
}

/// Makes the driver of turns.
fn turns(
    base: &Base,
    sessions: &SessionParts,
    chats: &ChatParts,
    conversations: &ConversationParts,
) -> Turns {
    Turns {
        settings: base.settings.clone(),
        models: base.models.clone(),
        rows: sessions.rows.clone(),
        journal: base.journal.clone(),
        memories: base.memories.clone(),
        kept: base.kept.clone(),
        host: base.host.clone(),
        answers: chats.answers.clone(),
        prefixes: chats.prefixes.clone(),
        notices: chats.notices.clone(),
        reports: Reports::default(),
        fresh_starts: FreshStarts::new(
            base.transcripts.clone(),
            conversations.words.clone(),
            sessions.rows.clone(),
            base.store.clone(),
            conversations.hooks.clone(),
            base.stops.kill.clone(),
        ),
        ends: chats.ends.clone(),
        outbox: base.outbox.clone(),
        showing: base.tasks.showing.clone(),
        stops: base.stops.clone(),
    }
}
