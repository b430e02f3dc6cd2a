//! Call of the agent for a prepared message.

use std::sync::Arc;

use openclaw_agent::error_surface::ErrorSurface;
use openclaw_agent::event::RunEvent;
use openclaw_agent::{Outcome, RunModel, RunParams};
use openclaw_journal::inbox::InboxRow;
use openclaw_runtime::messages::turn::MessageTurn;
use tokio::sync::mpsc;

use crate::calling_run::{CallerChannel, CallingRun};
use crate::control::RunControl;
use crate::lent::LanePlace;
use crate::prepare::Prepared;
use crate::run_host::HostLink;

/// Runs the agent; its tools make their requests in the name of the message's run.
pub(crate) async fn run_agent(
    host: &HostLink,
    prepared: &mut Prepared,
    control: &RunControl,
    (row, turn, place): (&InboxRow, &Arc<MessageTurn>, &Arc<LanePlace>),
    events: mpsc::Sender<RunEvent>,
) -> Outcome {
    let run = CallingRun {
        turn: Arc::clone(turn),
        agent: prepared.session.agent.clone(),
        rights: prepared.session.rights.clone(),
        origin: row.payload.source.origin().cloned().map(Box::new),
        by_person: row.payload.is_chat(),
        lineage: row.payload.lineage,
        place: Some(Arc::clone(place)),
        caller: CallerChannel::default(),
    };
    let models: Vec<RunModel<'_>> = prepared.models.iter().map(RunModel::from).collect();
    openclaw_agent::run(RunParams {
        session_id: prepared.session.id.clone(),
        models: &models,
        passed_over: &prepared.passed_over,
        agent: prepared.agent_flag.clone(),
        error_surface: match row.payload.is_programs() {
            true => ErrorSurface::CommandLine,
            false => ErrorSurface::Chat,
        },
        system_prompt: &prepared.system_prompt,
        tools: &prepared.tools,
        host: host.tool_host(run),
        hooks: prepared.hooks.clone(),
        redactor: &prepared.shield.redactor,
        transcript: &mut prepared.branch,
        deaths: control.attempt.deaths(),
        kept: prepared.remembered.asked.clone(),
        steering: &control.steering,
        reasoning: prepared.reasoning,
        limits: prepared.limits,
        compaction: prepared.compaction,
        fixed_tokens: prepared.fixed_tokens,
        pruning: prepared.pruning.as_deref(),
        pruned: &mut prepared.remembered.pruned,
        images: &mut prepared.remembered.images,
        history_limit: prepared.history_limit,
        cancel: control.cancel.clone(),
        workspace: prepared.session.agent.workspace.clone(),
        events,
    })
    .await
}
