//! Putting the parts of a dispatcher together. None of them sees the others but those it was handed.

use std::sync::Arc;

use openclaw_journal::backlog::Backlog;
use openclaw_runs::hooks::tell_sent;
use openclaw_runs::parts::{self, RunSources};
use openclaw_runs::reply_media::ReplyFiles;
use openclaw_runs::run_host::HostLink;
use openclaw_runs::secrets::KnownSecrets;
use openclaw_runtime::setup::Deps;
use openclaw_runtime::stopping::Stopping;
use openclaw_runtime::work_tasks::WorkTasks;

use crate::child_tasks::ChildTasks;
use crate::intake::{Intake, Recovery};
use crate::lane::shortcuts::Shortcuts;
use crate::lane::{AsideParts, LaneParts, Supervisor};
use crate::parts::{
    ArrivalParts, ChildParts, DispatchFamilies, DoorParts, HookParts, SessionToolParts, ToolHostParts,
};
use crate::waits::Waits;

/// The parts of a dispatcher, for its start.
pub(crate) struct Assembled {
    pub(crate) families: Arc<DispatchFamilies>,
    pub(crate) lanes: Arc<Supervisor>,
    pub(crate) recovery: Recovery,
    /// The gateway around the runs, which is yet to be set.
    pub(crate) host: Arc<HostLink>,
    pub(crate) secrets: Arc<KnownSecrets>,
}

/// Makes all parts of a dispatcher, and hands each what it uses.
pub(crate) fn assemble(sources: RunSources) -> Assembled {
    let (clock, journal, outbox) = (sources.clock.clone(), sources.journal.clone(), sources.outbox.clone());
    let (hub, registry, lanes_of_all) =
        (sources.hub.clone(), sources.registry.clone(), sources.lanes.clone());
    let (tasks, stops) = (sources.tasks.clone(), sources.stops.clone());
    let WorkTasks { accepting, working, .. } = tasks.clone();
    let Stopping { stopping, kill, .. } = stops.clone();
    let Deps { state_dir, store, transcripts, models: all_models, skills, platforms, .. } = &sources.deps;
    let (state_dir, all_models, skills) = (state_dir.clone(), all_models.clone(), skills.clone());
    let (store, transcripts, platforms) = (store.clone(), transcripts.clone(), platforms.clone());
    let Deps { system_events, command_sessions, surroundings, .. } = &sources.deps;
    let (system_events, command_sessions) = (system_events.clone(), command_sessions.clone());
    let surroundings = surroundings.clone();
    let runs = parts::assemble(sources);
    let settings = runs.settings;
    outbox.tell(tell_sent(&runs.hooks, system_events.clone(), clock.clone()));
    let backlog = Backlog::default();
    let shortcuts = Arc::new(Shortcuts::new(
        runs.messages.clone(),
        runs.shortcuts,
        runs.notices,
        runs.injections.clone(),
        hub.clone(),
        accepting.clone(),
        kill.clone(),
    ));
    let intake = Arc::new(Intake::new(
        runs.decider.clone(),
        registry.clone(),
        backlog.clone(),
        journal.clone(),
        clock.clone(),
        shortcuts.clone(),
    ));
    let recovery = Recovery {
        rows: runs.rows.clone(),
        store: store.clone(),
        decider: runs.decider.clone(),
        registry: registry.clone(),
        backlog,
        clock: clock.clone(),
        suspects: runs.suspects,
        shortcuts,
    };
    let asides = Arc::new(AsideParts {
        messages: runs.messages.clone(),
        conversations: runs.conversations,
        answers: runs.asides,
        commands: runs.commands,
        kill: kill.clone(),
    });
    let lanes = Arc::new(Supervisor::new(Arc::new(LaneParts {
        rows: runs.rows.clone(),
        messages: runs.messages,
        journal: journal.clone(),
        clock: clock.clone(),
        outbox: outbox.clone(),
        hub: hub.clone(),
        registry: registry.clone(),
        runner: runs.runner,
        after_runs: runs.after_runs,
        asides,
        signs: runs.signs,
        ends: runs.ends,
        working,
        stops: stops.clone(),
    })));
    let door = DoorParts {
        settings: settings.clone(),
        store: store.clone(),
        models: runs.models.clone(),
        platforms: platforms.clone(),
        skills,
        command_sessions,
        child_runs: runs.child_runs.clone(),
        journal: journal.clone(),
        clock: clock.clone(),
        outbox,
        hub,
        registry: registry.clone(),
        hooks: runs.hooks.clone(),
        conversation_hooks: runs.conversation_hooks.clone(),
        injections: runs.injections,
        deliveries: runs.deliveries,
        actions: runs.actions.clone(),
        files: ReplyFiles::new(settings.clone(), state_dir.clone()),
        tasks,
        stops,
    };
    let arrivals = ArrivalParts {
        settings: settings.clone(),
        rows: runs.rows.clone(),
        store: store.clone(),
        transcripts: transcripts.clone(),
        platforms: platforms.clone(),
        system_events,
        state_dir,
        journal: journal.clone(),
        clock: clock.clone(),
        registry: registry.clone(),
        decider: runs.decider,
        hooks: runs.hooks.clone(),
        conversation_hooks: runs.conversation_hooks.clone(),
        acks: runs.acks,
        services: runs.services.clone(),
        accepting: accepting.clone(),
        stopping: stopping.clone(),
        kill: kill.clone(),
    };
    let children = ChildParts {
        settings: settings.clone(),
        rows: runs.rows.clone(),
        store: store.clone(),
        transcripts: transcripts.clone(),
        models: runs.models.clone(),
        platforms: platforms.clone(),
        child_runs: runs.child_runs.clone(),
        journal: journal.clone(),
        clock: clock.clone(),
        registry: registry.clone(),
        send_rules: runs.send_rules,
        routes: runs.routes.clone(),
        session_messages: runs.session_messages,
        accepting,
        stopping,
    };
    let session_tools = SessionToolParts {
        settings: settings.clone(),
        rows: runs.rows.clone(),
        store: store.clone(),
        transcripts,
        models: runs.models,
        platforms,
        child_runs: runs.child_runs,
        journal,
        clock,
        registry,
        lanes: lanes_of_all,
        routes: runs.routes,
        services: runs.services,
        invocations: runs.invocations,
    };
    let hooks = HookParts {
        settings: settings.clone(),
        rows: runs.rows,
        hooks: runs.hooks,
        conversation_hooks: runs.conversation_hooks,
        kill,
    };
    let tools = ToolHostParts { settings, store, models: all_models, surroundings, actions: runs.actions };
    let families = Arc::new(DispatchFamilies {
        door,
        arrivals,
        children,
        session_tools,
        hooks,
        tools,
        intake,
        waits: Waits::default(),
        child_tasks: ChildTasks::default(),
        lanes: Arc::downgrade(&lanes),
    });
    Assembled { families, lanes, recovery, host: runs.host, secrets: runs.secrets }
}
