//! Putting the parts of a dispatcher together. None of them sees the others but those it was handed.

mod families;
mod handles;

use std::sync::Arc;

use openclaw_journal::backlog::Backlog;
use openclaw_runs::hooks::tell_sent;
use openclaw_runs::parts::{self, RunParts, RunSources};
use openclaw_runs::run_host::HostLink;
use openclaw_runs::secrets::KnownSecrets;

use crate::intake::{Intake, Recovery};
use crate::lane::shortcuts::Shortcuts;
use crate::lane::{AsideParts, LaneParts, Supervisor};
use crate::parts::DispatchFamilies;
use handles::Handles;

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
    let handles = Handles::of(&sources);
    let runs = parts::assemble(sources);
    let Handles { outbox, system_events, clock, journal, registry, .. } = &handles;
    outbox.tell(tell_sent(&runs.hooks, system_events.clone(), clock.clone()));
    let backlog = Backlog::default();
    let shortcuts = Arc::new(Shortcuts::new(
        runs.messages.clone(),
        runs.shortcuts.clone(),
        runs.notices.clone(),
        runs.injections.clone(),
        handles.hub.clone(),
        handles.tasks.accepting.clone(),
        handles.stops.kill.clone(),
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
        store: handles.store.clone(),
        decider: runs.decider.clone(),
        registry: registry.clone(),
        backlog,
        clock: clock.clone(),
        suspects: runs.suspects.clone(),
        shortcuts,
    };
    let lanes = Arc::new(Supervisor::new(Arc::new(lane_parts(&handles, &runs))));
    let families = Arc::new(families::assemble(&handles, &runs, intake, &lanes));
    Assembled { families, lanes, recovery, host: runs.host, secrets: runs.secrets }
}

fn lane_parts(handles: &Handles, runs: &RunParts) -> LaneParts {
    let asides = AsideParts {
        messages: runs.messages.clone(),
        conversations: runs.conversations.clone(),
        answers: runs.asides.clone(),
        commands: runs.commands.clone(),
        kill: handles.stops.kill.clone(),
    };
    LaneParts {
        rows: runs.rows.clone(),
        messages: runs.messages.clone(),
        journal: handles.journal.clone(),
        clock: handles.clock.clone(),
        outbox: handles.outbox.clone(),
        hub: handles.hub.clone(),
        registry: handles.registry.clone(),
        runner: runs.runner.clone(),
        after_runs: runs.after_runs.clone(),
        asides: Arc::new(asides),
        signs: runs.signs.clone(),
        ends: runs.ends.clone(),
        working: handles.tasks.working.clone(),
        stops: handles.stops.clone(),
    }
}
