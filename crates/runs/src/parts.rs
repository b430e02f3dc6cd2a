//! Putting the parts of runs together. None of them sees the others but those it was handed.

use std::sync::Arc;

use openclaw_commands::{CommandHost, CommandServices};
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
use crate::blocked::ObstacleWaits;
use crate::command::{AnswerStore, AsideAnswers, GatewayCommands, TurnAnswers};
use crate::command_host::RunsOfCommands;
use crate::compaction::{AfterRuns, Compactions};
use crate::conversation_hooks::ConversationHooks;
use crate::decide::Decider;
use crate::deliver::{Deliveries, Routes};
use crate::direct_calls::DirectCalls;
use crate::ending::RunEnds;
use crate::estimate::Estimator;
use crate::hooks::{HookEvents, Hooks, MemoryHook};
use crate::inject::{Injections, TranscriptWords};
use crate::invoke::ToolInvocations;
use crate::kept::KeptTranscripts;
use crate::memory_flush::MemoryFlushes;
use crate::message_host::ActionHost;
use crate::notices::Notices;
use crate::prefixes::Prefixes;
use crate::prepare::equipment::Equipment;
use crate::prepare::exec::CommandSetup;
use crate::prepare::{Preparer, SystemPrompts, ToolMaker, TurnOpener, WorkspaceLoader};
use crate::replies::{ChatAnswers, Replies};
use crate::reply_media::ReplyFiles;
use crate::reports::Reports;
use crate::rows::SessionRows;
use crate::run_host::HostLink;
use crate::secrets::KnownSecrets;
use crate::send_rules::SendRules;
use crate::session::{MessageConversations, SessionOpener};
use crate::session_messages::SessionMessages;
use crate::session_rights::SessionRights;
use crate::shortcut::ShortcutAnswers;
use crate::skill_tool::ToolCalls;
use crate::start_over::FreshStarts;
use crate::stored_messages::StoredMessages;
use crate::talk_step::Talks;
use crate::turn::Turns;
use crate::unanswered::{Unanswered, UnansweredRecords};
use crate::waiting::WaitingSigns;
use crate::work::Runner;

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
    /// Commands among words.
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
    let RunSources { deps, clock, journal, outbox, hub, registry, lanes, tasks, stops } = sources;
    let Deps {
        state_dir,
        settings,
        store,
        transcripts,
        models: all_models,
        skills,
        platforms,
        host: host_facts,
        system_events,
        command_variables,
        command_lock,
        approvals,
        command_sessions,
        sandboxes,
        secrets,
        surroundings,
    } = deps;
    let config = Arc::clone(&settings.borrow().config);
    let settings = LiveSettings::new(settings);
    let kill = stops.kill.clone();
    let models =
        Arc::new(SessionModels::new(all_models.clone(), store.clone(), system_events.clone(), clock.clone()));
    let child_runs = Arc::new(ChildRuns::new(&state_dir));
    let secrets = Arc::new(KnownSecrets::new(secrets, &state_dir, &config));
    let kept = Arc::<KeptTranscripts>::default();
    let suspects = Arc::<Suspects>::default();
    let host = Arc::<HostLink>::default();
    // Sessions and messages.
    let rows = Arc::new(SessionRows::new(store.clone()));
    let rights = Arc::new(SessionRights::new(rows.clone(), child_runs.clone()));
    let send_rules = Arc::new(SendRules::new(settings.clone(), rows.clone()));
    let decider = Arc::new(Decider::new(
        settings.clone(),
        rows.clone(),
        send_rules.clone(),
        rights.clone(),
        skills.clone(),
    ));
    let messages = Arc::new(StoredMessages::new(journal.clone(), decider.clone(), settings.clone()));
    let session_messages = Arc::new(SessionMessages::new(rows.clone(), transcripts.clone()));
    // Words for chats.
    let hooks = Arc::new(Hooks::new(
        settings.clone(),
        secrets.clone(),
        command_variables.clone(),
        command_lock.clone(),
        clock.clone(),
    ));
    let answers = Arc::new(ChatAnswers::new(
        settings.clone(),
        platforms.clone(),
        rights.clone(),
        hooks.clone(),
        ReplyFiles::new(settings.clone(), state_dir.clone()),
        outbox.clone(),
        clock.clone(),
    ));
    let prefixes = Arc::new(Prefixes::new(settings.clone(), rows.clone(), models.clone()));
    let notices = Arc::new(Notices::new(answers.clone(), prefixes.clone()));
    let routes = Arc::new(Routes::new(settings.clone(), rows.clone(), platforms.clone()));
    let deliveries = Arc::new(Deliveries::new(
        answers.clone(),
        prefixes.clone(),
        send_rules.clone(),
        hooks.clone(),
        outbox.clone(),
    ));
    let actions = Arc::new(ActionHost::new(
        settings.clone(),
        state_dir.clone(),
        platforms.clone(),
        outbox.clone(),
        routes.clone(),
        deliveries.clone(),
    ));
    let acks = Arc::new(Acknowledgements::new(
        settings.clone(),
        platforms.clone(),
        messages.clone(),
        tasks.accepting.clone(),
        stops.stopping.clone(),
    ));
    let signs = Arc::new(WaitingSigns::new(messages.clone(), settings.clone(), platforms.clone()));
    let ends = Arc::new(RunEnds::new(
        journal.clone(),
        clock.clone(),
        Replies::new(answers.clone(), prefixes.clone(), messages.clone(), secrets.clone()),
        Talks::new(messages.clone(), send_rules.clone(), host.clone()),
        acks.clone(),
    ));
    // Conversations.
    let memory = MemoryHook::new(
        settings.clone(),
        secrets.clone(),
        rows.clone(),
        all_models.clone(),
        transcripts.clone(),
    );
    let conversation_hooks = Arc::new(ConversationHooks::new(
        hooks.clone(),
        HookEvents::new(memory, state_dir.clone()),
        rows.clone(),
        transcripts.clone(),
        send_rules.clone(),
        notices.clone(),
        clock.clone(),
    ));
    let sessions = Arc::new(SessionOpener::new(
        store.clone(),
        models.clone(),
        transcripts.clone(),
        journal.clone(),
        clock.clone(),
        conversation_hooks.clone(),
    ));
    let conversations =
        Arc::new(MessageConversations::new(sessions.clone(), messages.clone(), settings.clone()));
    let words = Arc::new(TranscriptWords::new(transcripts.clone(), kept.clone()));
    let injections = Arc::new(Injections::new(
        words.clone(),
        conversations.clone(),
        rows.clone(),
        settings.clone(),
        transcripts.clone(),
        hub.clone(),
        kill.clone(),
    ));
    // Preparation.
    let commands = Arc::new(CommandSetup::new(
        command_variables,
        command_lock,
        command_sessions.clone(),
        approvals.clone(),
        secrets.clone(),
        state_dir,
    ));
    let equipment = Arc::new(Equipment::new(
        secrets.clone(),
        skills.clone(),
        sandboxes,
        WorkspaceLoader::new(hooks.clone()),
        ToolMaker::new(commands.clone(), rights.clone(), platforms.clone(), surroundings.clone()),
        SystemPrompts::new(rows.clone(), platforms.clone(), host_facts),
    ));
    let opener = TurnOpener::new(
        transcripts.clone(),
        kept.clone(),
        journal.clone(),
        system_events.clone(),
        hub,
        kill.clone(),
    );
    let preparer = Arc::new(Preparer::new(
        settings.clone(),
        sessions.clone(),
        models.clone(),
        equipment.clone(),
        hooks.clone(),
        opener,
    ));
    // Messages that are not answered.
    let waits = Arc::new(ObstacleWaits::new(journal.clone(), transcripts.clone(), stops.stopping.clone()));
    let records = UnansweredRecords::new(
        settings.clone(),
        sessions.clone(),
        transcripts.clone(),
        kept.clone(),
        journal.clone(),
        clock.clone(),
        kill.clone(),
    );
    let unanswered = Arc::new(Unanswered::new(
        records,
        messages.clone(),
        ends.clone(),
        waits.clone(),
        store.clone(),
        journal.clone(),
        kill.clone(),
    ));
    // Messages to the gateway itself.
    let runs_of_commands: Arc<dyn CommandHost> = Arc::new(RunsOfCommands::new(
        settings.clone(),
        secrets.clone(),
        commands,
        session_messages.clone(),
        Estimator::new(rights.clone(), transcripts.clone(), models.clone(), equipment.clone()),
        child_runs.clone(),
        host.clone(),
    ));
    let services = Arc::new(CommandServices {
        models: models.clone(),
        store: store.clone(),
        platforms,
        skills,
        approvals,
        command_sessions,
        surroundings: surroundings.clone(),
        registry: registry.clone(),
        clock: clock.clone(),
        host: runs_of_commands,
    });
    let direct = Arc::new(DirectCalls::new(equipment, hooks.clone(), host.clone(), clock));
    let invocations = Arc::new(ToolInvocations::new(
        settings.clone(),
        rows.clone(),
        services.clone(),
        rights,
        routes.clone(),
        transcripts.clone(),
        direct.clone(),
    ));
    let compactions = Compactions::new(
        models.clone(),
        transcripts.clone(),
        kept.clone(),
        store.clone(),
        system_events,
        hooks.clone(),
        kill.clone(),
    );
    let answer_store = Arc::new(AnswerStore::new(ends.clone(), surroundings));
    let turn_answers = TurnAnswers::new(
        settings.clone(),
        services.clone(),
        sessions,
        journal.clone(),
        compactions,
        ToolCalls::new(settings.clone(), all_models, direct),
        answer_store.clone(),
    );
    let commands = Arc::new(GatewayCommands::new(
        turn_answers,
        words.clone(),
        ends.clone(),
        waits,
        unanswered.clone(),
        journal.clone(),
        kill.clone(),
    ));
    let asides = Arc::new(AsideAnswers::new(
        settings.clone(),
        services.clone(),
        rows.clone(),
        transcripts.clone(),
        journal.clone(),
        answer_store,
        kill.clone(),
    ));
    let shortcuts =
        Arc::new(ShortcutAnswers::new(settings.clone(), rows.clone(), services.clone(), kill.clone()));
    // The run itself.
    let after_runs = Arc::new(AfterRuns::new(kept.clone(), store.clone(), rows.clone(), notices.clone()));
    let flushes = MemoryFlushes::new(
        settings.clone(),
        preparer.clone(),
        host.clone(),
        journal.clone(),
        store.clone(),
        kept.clone(),
        kill.clone(),
    );
    let turns = Turns {
        settings: settings.clone(),
        models: models.clone(),
        rows: rows.clone(),
        journal: journal.clone(),
        kept,
        host: host.clone(),
        answers,
        prefixes,
        notices: notices.clone(),
        reports: Reports::default(),
        fresh_starts: FreshStarts::new(
            transcripts,
            words,
            rows.clone(),
            store,
            conversation_hooks.clone(),
            kill.clone(),
        ),
        ends: ends.clone(),
        outbox,
        showing: tasks.showing,
        stops,
    };
    let runner = Arc::new(Runner {
        settings: settings.clone(),
        models: models.clone(),
        messages: messages.clone(),
        journal,
        registry,
        lanes,
        suspects: suspects.clone(),
        signs: signs.clone(),
        commands: commands.clone(),
        preparer,
        flushes,
        turns,
        unanswered,
        ends: ends.clone(),
        kill,
    });
    RunParts {
        runner,
        host,
        settings,
        rows,
        models,
        child_runs,
        secrets,
        suspects,
        decider,
        messages,
        conversations,
        send_rules,
        routes,
        deliveries,
        notices,
        acks,
        signs,
        hooks,
        conversation_hooks,
        injections,
        session_messages,
        services,
        commands,
        asides,
        shortcuts,
        after_runs,
        ends,
        invocations,
        actions,
    }
}
