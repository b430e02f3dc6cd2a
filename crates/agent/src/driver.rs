//! Performs what [`crate::turn`] decides: the one place where a run waits, writes and calls.

mod room;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_config::clock::now_ms;
use openclaw_models::{FailureKind, ModelRequest, ThinkingLevel};
use openclaw_protocol::message::cap::STORED;
use openclaw_protocol::message::{Message, ToolCall};
use tokio::sync::mpsc;
use tracing::Instrument;

use crate::answer;
use crate::event::{RunEnd, RunEvent};
use crate::payload::Replies;
use crate::reply::{AgentMeta, Outcome, RunError, RunErrorKind, RunMeta};
use crate::retry_notice::RetryNotice;
use crate::run::RunParams;
use crate::run_model::RunModel;
use crate::stop::{StopCause, StopGuard};
use crate::tool_call::{self, CallFrame};
use crate::tool_event;
use crate::transcript::TranscriptError;
use crate::turn::{CandidateFacts, Candidates, History, TurnMachine, TurnStep};

/// Runs to the end.
pub(crate) async fn drive(params: RunParams<'_>) -> Outcome {
    let span = tracing::info_span!("run", session = %params.session_id);
    Box::pin(work(params).instrument(span)).await
}

async fn work(mut params: RunParams<'_>) -> Outcome {
    let (began, started_at) = (Instant::now(), now_ms());
    emit(&params.events, RunEvent::Started { started_at }).await;
    let facts = params.models.iter().map(facts).collect();
    let mut stop = StopGuard::new(params.cancel.clone(), params.limits.timeout);
    let repeatable = params.tools.repeatable();
    let (passed_over, agent) = (params.passed_over.to_vec(), params.agent.clone());
    let candidates =
        Candidates { facts, passed_over, agent, error_surface: params.error_surface, repeatable };
    let (context, own_from) = (params.transcript.context(), params.transcript.own_from());
    let history = History { context, own_from, deaths: params.deaths };
    for call in history.cut_short(&candidates.repeatable).closed {
        tracing::warn!(tool = %call.name, call = %call.id, "a tool call was under way when the gateway ended: it may have happened, and the model is told so");
    }
    let mut turn = TurnMachine::new(history, candidates, params.limits, started_at);
    loop {
        let step = turn.next();
        if matches!(step, TurnStep::End) {
            match params.transcript.settle().await {
                Ok(()) => break,
                Err(error) => {
                    storage_failed(&mut turn, &error);
                    continue;
                }
            }
        }
        if step.is_long()
            && let Some(cause) = stop.cause()
        {
            turn.stopped(cause, now_ms());
            continue;
        }
        perform(step, &mut turn, &mut params, &mut stop).await;
    }
    #[cfg(test)]
    turn.tape.assert_repeats(&turn);
    let ended_at = now_ms();
    let outcome = outcome(&turn, &params, RunTimes { started_at, ended_at, took: began.elapsed() });
    let ms = outcome.meta.duration_ms;
    let is_interrupted =
        outcome.meta.error.as_ref().is_some_and(|error| error.kind == RunErrorKind::Interrupted);
    match &outcome.end {
        RunEnd::Completed => tracing::debug!(ms, "run ended"),
        // No failure.
        _ if is_interrupted => {
            tracing::info!(ms, "interrupted by the stop; it goes on at the next start");
        }
        end => tracing::info!(?end, ms, "run ended"),
    }
    emit(&params.events, RunEvent::Ended { started_at, ended_at, end: outcome.end.clone() }).await;
    outcome
}

impl TurnStep {
    /// True for steps that a stopped run does not begin any more. Steps that are decided already
    /// are still written and reported.
    fn is_long(&self) -> bool {
        match self {
            Self::PollSteering
            | Self::CallModel { .. }
            | Self::MakeRoom(_)
            | Self::RunTool(_)
            | Self::Wait(_) => true,
            Self::Emit(_) | Self::Append(..) | Self::Skip(_) | Self::End => false,
        }
    }
}

/// Performs a step, one line for each kind.
async fn perform(step: TurnStep, turn: &mut TurnMachine, params: &mut RunParams<'_>, stop: &mut StopGuard) {
    match step {
        TurnStep::Emit(RunEvent::Retry(notice)) => emit_retry(params, *notice).await,
        TurnStep::Emit(event) => emit_tool_event(params, event).await,
        TurnStep::Append(message, id) => append(turn, params, stop, &message, id.as_deref()).await,
        TurnStep::Skip(call) => turn.skipped(&call, params.tools.meta(&call.name, &call.arguments), now_ms()),
        TurnStep::PollSteering => turn.polled(params.steering.poll()),
        TurnStep::CallModel { candidate, thinking } => {
            call_model(turn, params, stop, candidate, thinking).await
        }
        TurnStep::MakeRoom(room) => room::make(turn, params, stop, room).await,
        TurnStep::RunTool(call) => run_tool(turn, params, stop, &call).await,
        TurnStep::Wait(wait) => stop.pause(wait).await,
        TurnStep::End => {}
    }
}

async fn append(
    turn: &mut TurnMachine,
    params: &mut RunParams<'_>,
    stop: &mut StopGuard,
    message: &Message,
    id: Option<&str>,
) {
    // Hooks that hang hold a stopped run up no longer than a tool would.
    let mut changed = stop.guard(params.hooks.persisted(message)).await.flatten();
    // A hook's words are stored under the same rules as a tool's.
    if let Some(Message::ToolResult(result)) = &mut changed {
        params.redactor.redact_result(result);
        STORED.apply(result);
    }
    let message = changed.as_ref().unwrap_or(message);
    let written = if id.is_none() && is_followed(message) {
        params.transcript.append_ahead(message).await
    } else {
        params.transcript.append(message, id).await
    };
    if let Err(error) = written {
        storage_failed(turn, &error);
    }
}

/// Returns true for answers that call tools. The result of a tool is on disk before a model is shown it: it may stand for
/// something that was done.
fn is_followed(message: &Message) -> bool {
    matches!(message, Message::Assistant(answer) if answer.tool_calls().next().is_some())
}

fn storage_failed(turn: &mut TurnMachine, error: &TranscriptError) {
    let kind = if error.source.kind() == std::io::ErrorKind::Interrupted {
        // Nothing is wrong: whoever owns the transcript has closed it, and the run is taken up again later.
        RunErrorKind::Interrupted
    } else {
        tracing::error!(%error, "the transcript cannot be written");
        RunErrorKind::Storage
    };
    // The log has the place of the file; people in chats are told none.
    turn.storage_failed(RunError { kind, message: error.without_place() });
}

async fn call_model(
    turn: &mut TurnMachine,
    params: &mut RunParams<'_>,
    stop: &mut StopGuard,
    index: usize,
    thinking: ThinkingLevel,
) {
    let Some(candidate) = params.models.get(index) else {
        let message = "no model to call".to_owned();
        turn.storage_failed(RunError { kind: RunErrorKind::Storage, message });
        return;
    };
    let messages = room::seen(turn, params);
    if turn.may_make_room() && room::is_short(params, candidate, &messages) {
        return turn.short_of_room();
    }
    let messages = room::pruned(params, candidate, messages);
    let cancel = stop.token().clone();
    let Some(messages) = stop.guard(params.images.view(&messages, &cancel)).await.flatten() else {
        let cause = stop.cause().unwrap_or(StopCause::Aborted);
        return turn.stopped(cause, now_ms());
    };
    let request = ModelRequest {
        system: Arc::clone(params.system_prompt),
        messages,
        tools: Arc::clone(params.tools.specs()),
        thinking,
        max_tokens: candidate.max_tokens,
        temperature: candidate.temperature,
        cache: candidate.cache,
        session_id: Some(params.session_id.to_string()),
        kept: params.kept.clone(),
    };
    emit(&params.events, RunEvent::Asking).await;
    let told = answer::AnswerListener {
        events: &params.events,
        reasoning: params.reasoning,
        redactor: params.redactor,
    };
    let answered = answer::stream(candidate, request, stop, told, now_ms()).await;
    match &answered.failure {
        Some(failure) if failure.kind == FailureKind::ContextOverflow => {
            turn.measured(room::sizes(turn, params, candidate));
        }
        Some(_) => {}
        None => params.pruned.answered(now_ms()),
    }
    turn.answered(answered, stop.cause(), now_ms());
}

async fn run_tool(turn: &mut TurnMachine, params: &mut RunParams<'_>, stop: &mut StopGuard, call: &ToolCall) {
    if params.tools.acts(call)
        && let Err(error) = params.transcript.secure().await
    {
        return storage_failed(turn, &error);
    }
    emit_tool_event(params, tool_event::start(call)).await;
    let cancel = stop.token().clone();
    let frame = CallFrame {
        tools: params.tools,
        redactor: params.redactor,
        hooks: &params.hooks,
        host: &params.host,
        workspace: &params.workspace,
        cancel: &cancel,
        events: &params.events,
    };
    let span = tracing::info_span!("tool", name = %call.name, call = %call.id);
    let executed = stop.guard(tool_call::execute(frame, call, now_ms).instrument(span)).await;
    let executed = executed.unwrap_or_else(|| {
        tracing::warn!(tool = %call.name, "tool did not stop when it was told to");
        tool_call::abandoned(params.tools, call, now_ms())
    });
    turn.tool_done(executed, stop.cause(), now_ms());
}

/// Start and duration of a run. The duration is measured separately, because the wall clock may
/// jump.
#[derive(Clone, Copy)]
struct RunTimes {
    started_at: i64,
    ended_at: i64,
    took: Duration,
}

fn outcome(turn: &TurnMachine, params: &RunParams<'_>, times: RunTimes) -> Outcome {
    let RunTimes { started_at, ended_at, took } = times;
    let record = &turn.record;
    let model = params.models.get(record.candidate);
    let end = turn.end().clone();
    let is_full = end == RunEnd::Completed
        && model.is_some_and(|model| room::is_short(params, model, params.transcript.context()));
    let payloads = Replies {
        catalogue: params.tools.catalogue(),
        answers: &record.answers,
        steered: record.steered,
        error: record.error.as_ref(),
        end: &end,
        tool_failure: record.tool_failure.as_ref(),
        reasoning: params.reasoning,
        final_only: model.is_some_and(|model| model.reasoning_tags),
    }
    .payloads();
    Outcome {
        started_at,
        ended_at,
        payloads,
        meta: RunMeta {
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            agent_meta: AgentMeta {
                session_id: params.session_id.clone(),
                provider: model.map(|model| model.model.provider().to_owned()).unwrap_or_default(),
                model: model.map(|model| model.model.id().to_owned()).unwrap_or_default(),
                usage: record.usage.counted(),
                compaction_count: Some(record.compactions).filter(|count| *count > 0),
            },
            aborted: end.was_stopped(),
            stop_reason: record.stop_reason,
            error: record.error.clone(),
        },
        last_usage: record.last_usage,
        tokens_after: record.tokens_after,
        is_full,
        failures: record.failures.clone(),
        candidate: record.candidate,
        ran_out_of_time: record.ran_out_of_time,
        end,
    }
}

fn facts(candidate: &RunModel<'_>) -> CandidateFacts {
    let model = candidate.model;
    let thinking = if model.reasons() { candidate.thinking } else { ThinkingLevel::Off };
    let name = format!("{}/{}", model.provider(), model.id());
    let credential = candidate.credential.map(str::to_owned);
    let RunModel { repeats_itself, reasoning_tags: final_only, .. } = *candidate;
    CandidateFacts { name, thinking, credential, repeats_itself, final_only }
}

async fn emit_tool_event(params: &RunParams<'_>, event: RunEvent) {
    emit(&params.events, tool_event::canonical(event, params.tools.catalogue())).await;
}

async fn emit_retry(params: &RunParams<'_>, notice: RetryNotice) {
    let notice = notice.for_people(params.redactor);
    emit(&params.events, RunEvent::Retry(Box::new(notice))).await;
}

async fn emit(events: &mpsc::Sender<RunEvent>, event: RunEvent) {
    // A missing listener is no reason to stop: only the transcript counts.
    let _ = events.send(event).await;
}
