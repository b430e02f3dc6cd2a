//! Decides how much of the conversation is sent, and makes room for it.

use std::sync::Arc;

use openclaw_config::clock::now_ms;
use openclaw_protocol::message::Message;

use super::{emit, storage_failed};
use crate::compaction::work::{CompactError, Compacted, Compacting};
use crate::compaction::{Budget, Urgency};
use crate::context;
use crate::event::RunEvent;
use crate::pruning::{PruningWindow, is_cached};
use crate::run::RunParams;
use crate::run_model::RunModel;
use crate::sent_images::pictures;
use crate::stop::StopGuard;
use crate::tokens::{all_tokens, context_tokens};
use crate::turn::{Room, RoomMade, Sizes, TurnMachine};

/// Returns true if the next call would leave less than the reserve free.
pub(super) fn is_short(params: &RunParams<'_>, candidate: &RunModel<'_>, messages: &[Arc<Message>]) -> bool {
    let budget = Budget::new(&params.compaction, candidate.model.context_window());
    budget.is_exceeded_by(context_tokens(messages, params.fixed_tokens))
}

/// The messages as they are sent: without old tool results, where the provider has forgotten the prompt.
pub(super) fn pruned(
    params: &mut RunParams<'_>,
    candidate: &RunModel<'_>,
    messages: Arc<Vec<Arc<Message>>>,
) -> Arc<Vec<Arc<Message>>> {
    match params.pruning {
        Some(settings) if is_cached(candidate.model.provider(), candidate.model.id()) => {
            let window = PruningWindow { tokens: candidate.model.context_window(), now: now_ms() };
            params.pruned.view(&messages, settings, window)
        }
        Some(_) | None => messages,
    }
}

/// The conversation as the model sees it.
pub(super) fn seen(turn: &TurnMachine, params: &RunParams<'_>) -> Arc<Vec<Arc<Message>>> {
    context::bounded(params.transcript.context(), params.history_limit, turn.said())
}

pub(super) fn sizes(turn: &TurnMachine, params: &RunParams<'_>, candidate: &RunModel<'_>) -> Sizes {
    let messages = seen(turn, params);
    Sizes {
        window: candidate.model.context_window(),
        fixed: params.fixed_tokens,
        messages: all_tokens(&messages),
        pictures: messages.iter().map(|message| pictures(message)).sum(),
    }
}

/// Makes room, with the model that is called next. Clients hear of it where there is something to leave out.
pub(super) async fn make(
    turn: &mut TurnMachine,
    params: &mut RunParams<'_>,
    stop: &mut StopGuard,
    room: Room,
) {
    let next = turn.candidate().min(params.models.len());
    let mut models: Vec<RunModel<'_>> = params.models.to_vec();
    models.rotate_left(next);
    let compacting = Compacting {
        session_id: &params.session_id,
        models: &models,
        settings: &params.compaction,
        fixed_tokens: params.fixed_tokens,
        focus: None,
        hooks: &params.hooks,
    };
    let (planned, urgency) = match room {
        Room::Compact(urgency) => (compacting.plan(params.transcript, urgency).await, urgency),
        Room::Shorten => (compacting.plan_to_shorten(params.transcript).await, Urgency::CanWait),
    };
    let plan = match planned {
        Ok(Ok(plan)) => plan,
        Ok(Err(_)) => {
            turn.room_made(RoomMade::Nothing);
            return;
        }
        Err(error) => return storage_failed(turn, &error),
    };
    emit(&params.events, RunEvent::CompactionStart).await;
    let compacted = compacting.carry_out(&plan, params.transcript, urgency, stop).await;
    if let Some(candidate) = models.first() {
        turn.measured(sizes(turn, params, candidate));
    }
    let will_retry = match compacted {
        Ok(Compacted::Done { after, usage, .. }) => {
            params.pruned.forget();
            turn.used(&usage);
            turn.room_made(RoomMade::More { after })
        }
        Ok(Compacted::Nothing(_)) => turn.room_made(RoomMade::Nothing),
        Err(CompactError::Summary(why)) => turn.room_made(RoomMade::Failed(why)),
        Err(CompactError::Transcript(error)) => {
            storage_failed(turn, &error);
            false
        }
        // The run has been stopped, and ends before its next step.
        Err(CompactError::Stopped) => false,
    };
    emit(&params.events, RunEvent::CompactionEnd { will_retry }).await;
}
