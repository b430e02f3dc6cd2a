//! Each family of a dispatcher's work with the parts that it uses.

use std::sync::Arc;

use openclaw_runs::parts::RunParts;
use openclaw_runs::reply_media::ReplyFiles;

use super::handles::Handles;
use crate::child_tasks::ChildTasks;
use crate::intake::Intake;
use crate::lane::Supervisor;
use crate::parts::{
    ArrivalParts, ChildParts, DispatchFamilies, HookParts, RequestParts, SessionToolParts, ToolHostParts,
};
use crate::waits::Waits;

/// Hands each family the parts that it uses.
pub(super) fn assemble(
    handles: &Handles,
    runs: &RunParts,
    intake: Arc<Intake>,
    lanes: &Arc<Supervisor>,
) -> DispatchFamilies {
    DispatchFamilies {
        requests: requests(handles, runs),
        arrivals: arrivals(handles, runs),
        children: children(handles, runs),
        session_tools: session_tools(handles, runs),
        hooks: HookParts {
            settings: runs.settings.clone(),
            rows: runs.rows.clone(),
            hooks: runs.hooks.clone(),
            conversation_hooks: runs.conversation_hooks.clone(),
            kill: handles.stops.kill.clone(),
        },
        tools: ToolHostParts {
            settings: runs.settings.clone(),
            store: handles.store.clone(),
            models: handles.models.clone(),
            memories: handles.memories.clone(),
            surroundings: handles.surroundings.clone(),
            actions: runs.actions.clone(),
        },
        intake,
        waits: Waits::default(),
        child_tasks: ChildTasks::default(),
        lanes: Arc::downgrade(lanes),
    }
}

fn requests(handles: &Handles, runs: &RunParts) -> RequestParts {
    RequestParts {
        settings: runs.settings.clone(),
        store: handles.store.clone(),
        models: runs.models.clone(),
        platforms: handles.platforms.clone(),
        skills: handles.skills.clone(),
        command_sessions: handles.command_sessions.clone(),
        child_runs: runs.child_runs.clone(),
        journal: handles.journal.clone(),
        clock: handles.clock.clone(),
        outbox: handles.outbox.clone(),
        hub: handles.hub.clone(),
        registry: handles.registry.clone(),
        hooks: runs.hooks.clone(),
        conversation_hooks: runs.conversation_hooks.clone(),
        injections: runs.injections.clone(),
        deliveries: runs.deliveries.clone(),
        actions: runs.actions.clone(),
        files: ReplyFiles::new(runs.settings.clone(), handles.state_dir.clone()),
        tasks: handles.tasks.clone(),
        stops: handles.stops.clone(),
    }
}

fn arrivals(handles: &Handles, runs: &RunParts) -> ArrivalParts {
    ArrivalParts {
        settings: runs.settings.clone(),
        rows: runs.rows.clone(),
        store: handles.store.clone(),
        transcripts: handles.transcripts.clone(),
        platforms: handles.platforms.clone(),
        system_events: handles.system_events.clone(),
        state_dir: handles.state_dir.clone(),
        journal: handles.journal.clone(),
        clock: handles.clock.clone(),
        registry: handles.registry.clone(),
        decider: runs.decider.clone(),
        hooks: runs.hooks.clone(),
        conversation_hooks: runs.conversation_hooks.clone(),
        acks: runs.acks.clone(),
        services: runs.services.clone(),
        accepting: handles.tasks.accepting.clone(),
        stopping: handles.stops.stopping.clone(),
        kill: handles.stops.kill.clone(),
    }
}

fn children(handles: &Handles, runs: &RunParts) -> ChildParts {
    ChildParts {
        settings: runs.settings.clone(),
        rows: runs.rows.clone(),
        store: handles.store.clone(),
        transcripts: handles.transcripts.clone(),
        models: runs.models.clone(),
        platforms: handles.platforms.clone(),
        child_runs: runs.child_runs.clone(),
        journal: handles.journal.clone(),
        clock: handles.clock.clone(),
        registry: handles.registry.clone(),
        send_rules: runs.send_rules.clone(),
        routes: runs.routes.clone(),
        session_messages: runs.session_messages.clone(),
        accepting: handles.tasks.accepting.clone(),
        stopping: handles.stops.stopping.clone(),
    }
}

fn session_tools(handles: &Handles, runs: &RunParts) -> SessionToolParts {
    SessionToolParts {
        settings: runs.settings.clone(),
        rows: runs.rows.clone(),
        store: handles.store.clone(),
        transcripts: handles.transcripts.clone(),
        models: runs.models.clone(),
        platforms: handles.platforms.clone(),
        child_runs: runs.child_runs.clone(),
        journal: handles.journal.clone(),
        clock: handles.clock.clone(),
        registry: handles.registry.clone(),
        lanes: handles.lanes.clone(),
        routes: runs.routes.clone(),
        services: runs.services.clone(),
        invocations: runs.invocations.clone(),
    }
}
