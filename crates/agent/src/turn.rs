//! The loop of spec `agent-runtime.md` §2.4 as a pure machine: it says what to do next and is told what came of it.
//! No clock, no I/O, no waiting: [`crate::driver`] performs the steps.
//!
//! ```text
//! poll ─▶ model ─┬─ calls ─▶ tool ─▶ poll ─┬─ more ──▶ tool
//!          ▲     │                         ├─ steered ▶ skip the rest ─▶ model
//!          │     └─ no calls ─▶ poll ──────┴─ done ──▶ end
//!          └──────────────────────┘
//! ```

mod empty;
mod repetition;
#[cfg(test)]
pub(crate) mod replay;
mod resume;
mod retry;
mod room;
mod stop;

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use openclaw_models::credentials::AgentFlag;
use openclaw_models::{FailureKind, ModelFailure, ThinkingLevel, history};
use openclaw_protocol::message::cap::STORED;
use openclaw_protocol::message::{
    AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage, Usage,
};
use serde_json::json;

use crate::answer::Answered;
use crate::error_surface::ErrorSurface;
use crate::event::{RunEnd, RunEvent};
use crate::gateway_result::SKIPPED;
use crate::payload::{AnswerContent, ToolFailure};
use crate::reply::{CandidateFailure, RunError, RunUsage};
use crate::run::Limits;
use crate::stop::StopCause;
use crate::tool_event;
use crate::transcript::QueuedMessage;
use repetition::Repetition;
#[cfg(test)]
use replay::{Tape, TurnInput};
pub use resume::is_interrupted;
use retry::{Attempts, RetryDecision};
use room::MakingRoom;
pub(crate) use room::{Room, RoomMade, Sizes};

/// Next step for the driver.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TurnStep {
    /// Tell the world.
    Emit(RunEvent),
    /// Write to the transcript, under this entry id if given.
    Append(Message, Option<String>),
    /// Report a call that is not made because the user said something; answered with [`TurnMachine::skipped`].
    Skip(ToolCall),
    /// Ask for a steered message; answered with [`TurnMachine::polled`].
    PollSteering,
    /// Call a model; answered with [`TurnMachine::answered`].
    CallModel {
        /// Index of the candidate.
        candidate: usize,
        /// Level to ask for.
        thinking: ThinkingLevel,
    },
    /// Make room for the next call; answered with [`TurnMachine::room_made`].
    MakeRoom(Room),
    /// Make a call; answered with [`TurnMachine::tool_done`].
    RunTool(ToolCall),
    /// Wait before the next call; nothing to answer.
    Wait(Duration),
    /// The run is over.
    End,
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Executed {
    /// The result; its `toolCallId` and `toolName` are the call's.
    pub(crate) result: ToolResultMessage,
    /// Short label of the call.
    pub(crate) meta: Option<String>,
}

/// Record that the caller reads when the run is over.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TurnRecord {
    /// The answers in order.
    pub(crate) answers: Vec<AnswerContent>,
    /// Messages that were steered in.
    pub(crate) steered: usize,
    /// A tool has said something since the message that was heard last.
    pub(crate) has_told: bool,
    /// Sum over all calls.
    pub(crate) usage: RunUsage,
    /// Usage of the last call that succeeded.
    pub(crate) last_usage: Option<Usage>,
    /// Failed attempts.
    pub(crate) failures: Vec<CandidateFailure>,
    /// The last tool failure that no later success followed.
    pub(crate) tool_failure: Option<ToolFailure>,
    /// Stop reason; set when a limit ended the run.
    pub(crate) stop_reason: Option<&'static str>,
    /// Error with which the run failed.
    pub(crate) error: Option<RunError>,
    /// The candidate of the last call.
    pub(crate) candidate: usize,
    /// True if the time limit passed before that call gave anything.
    pub(crate) ran_out_of_time: bool,
    /// Summaries that took the place of messages.
    pub(crate) compactions: u64,
    /// Tokens after the last of them, where no call has counted them since.
    pub(crate) tokens_after: Option<u64>,
    /// Reason why there was no summary when one was needed.
    pub(crate) compaction_failure: Option<String>,
}

/// History that a run begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History<'a> {
    /// The branch.
    pub(crate) context: &'a [Arc<Message>],
    /// Index in `context` at which the entries begin that an earlier process wrote in this run, behind the run's own message.
    pub(crate) own_from: usize,
    /// Number of times an earlier process died while it worked on the run.
    pub(crate) deaths: u32,
}

/// Candidates of a run, without their clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates {
    /// Models, in order of preference.
    pub(crate) facts: Vec<CandidateFacts>,
    /// Models that were left out from the start, as texts for people.
    pub(crate) passed_over: Vec<String>,
    /// Flag of the agent, for advice.
    pub(crate) agent: AgentFlag,
    /// Reader of the error, for advice.
    pub(crate) error_surface: ErrorSurface,
    /// Tools of which a call that a crash cut short is made again.
    pub(crate) repeatable: Vec<&'static str>,
}

/// Facts about a candidate on which the machine bases its decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CandidateFacts {
    /// `provider/model`.
    pub(crate) name: String,
    /// Level to ask for.
    pub(crate) thinking: ThinkingLevel,
    /// The credential it is called with, where it has a name.
    pub(crate) credential: Option<String>,
    /// True if the candidate's client itself repeats calls that failed before anything was
    /// received.
    pub(crate) repeats_itself: bool,
    /// True if only the text between tags for the final answer is shown.
    pub(crate) final_only: bool,
}

enum Phase {
    /// About to ask for a message before the model is called.
    BeforeModel,
    /// Waiting for a model.
    Calling,
    /// Waiting for room. With what the model said that did not have enough.
    MakingRoom { room: Room, overflowed: Option<Box<AssistantMessage>> },
    /// Calls still to make; the first is under way when `running`.
    Tools { calls: VecDeque<ToolCall>, running: bool },
    /// A tool has ended; a steered message would skip the rest.
    AfterTool { calls: VecDeque<ToolCall> },
    /// No calls left; a steered message goes on with the loop.
    TurnEnd { asked_tools: bool },
    /// Over.
    Ended,
}

/// The machine.
pub(crate) struct TurnMachine {
    phase: Phase,
    steps: VecDeque<TurnStep>,
    limits: Limits,
    rounds: u32,
    attempts: Attempts,
    repetition: Repetition,
    making_room: MakingRoom,
    sizes: Sizes,
    end: RunEnd,
    pub(crate) record: TurnRecord,
    /// Recording of all inputs and outputs of the machine.
    #[cfg(test)]
    pub(crate) tape: Tape,
}

impl TurnMachine {
    /// A run about to begin, behind what its branch holds.
    pub(crate) fn new(history: History<'_>, candidates: Candidates, limits: Limits, now: i64) -> Self {
        #[cfg(test)]
        let tape = Tape::new(history, &candidates, limits, now);
        let repeatable = candidates.repeatable.clone();
        let mut turn = Self {
            phase: Phase::BeforeModel,
            steps: VecDeque::new(),
            limits,
            rounds: 0,
            attempts: Attempts::new(candidates, limits.retries),
            repetition: Repetition::default(),
            making_room: MakingRoom::default(),
            sizes: Sizes::default(),
            end: RunEnd::Completed,
            record: TurnRecord::default(),
            #[cfg(test)]
            tape,
        };
        turn.begin(history, &repeatable, now);
        turn
    }

    /// Returns the number of messages said to the run: its own, and those that were steered in.
    pub(crate) fn said(&self) -> usize {
        1 + self.record.steered
    }

    /// The candidate of the next call.
    pub(crate) fn candidate(&self) -> usize {
        self.attempts.candidate()
    }

    /// Outcome of the run; meaningful once [`TurnStep::End`] was given.
    pub(crate) fn end(&self) -> &RunEnd {
        &self.end
    }

    /// The next thing to do.
    pub(crate) fn next(&mut self) -> TurnStep {
        let step = self.next_step();
        #[cfg(test)]
        self.tape.said(&step);
        step
    }

    fn next_step(&mut self) -> TurnStep {
        if let Some(step) = self.steps.pop_front() {
            return step;
        }
        match &mut self.phase {
            Phase::BeforeModel | Phase::AfterTool { .. } | Phase::TurnEnd { .. } => TurnStep::PollSteering,
            Phase::Calling => {
                self.record.candidate = self.attempts.candidate();
                TurnStep::CallModel {
                    candidate: self.attempts.candidate(),
                    thinking: self.attempts.thinking(),
                }
            }
            Phase::MakingRoom { room, .. } => TurnStep::MakeRoom(*room),
            Phase::Tools { calls, running } => match calls.front() {
                Some(call) => {
                    *running = true;
                    TurnStep::RunTool(call.clone())
                }
                // Not reached: tools are entered with a call at hand.
                None => TurnStep::End,
            },
            Phase::Ended => TurnStep::End,
        }
    }

    /// Takes the result of a poll for queued messages.
    pub(crate) fn polled(&mut self, queued: Option<QueuedMessage>) {
        #[cfg(test)]
        self.tape.heard(TurnInput::Polled(queued.clone()));
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::BeforeModel => self.call_model(queued),
            Phase::AfterTool { calls } if queued.is_some() => {
                self.steps.extend(calls.into_iter().map(TurnStep::Skip));
                self.call_model(queued);
            }
            Phase::AfterTool { calls } if calls.is_empty() => {
                self.phase = Phase::TurnEnd { asked_tools: true }
            }
            Phase::AfterTool { calls } => self.enter_tools(calls),
            Phase::TurnEnd { asked_tools } if queued.is_some() || asked_tools => self.call_model(queued),
            Phase::TurnEnd { .. }
            | Phase::Ended
            | Phase::Calling
            | Phase::MakingRoom { .. }
            | Phase::Tools { .. } => self.finish(RunEnd::Completed),
        }
    }

    fn call_model(&mut self, queued: Option<QueuedMessage>) {
        if let Some(QueuedMessage { message, entry_id }) = queued {
            self.record.steered += 1;
            self.record.has_told = false;
            self.steps.push_back(TurnStep::Append(Message::User(message), entry_id));
            self.steps.push_back(TurnStep::Emit(RunEvent::Steered));
        }
        self.phase = Phase::Calling;
    }

    fn enter_tools(&mut self, calls: VecDeque<ToolCall>) {
        self.phase = Phase::Tools { calls, running: false };
    }

    /// Takes the answer of a model. `stop` is set when the run was stopped meanwhile.
    pub(crate) fn answered(&mut self, answered: Answered, stop: Option<StopCause>, now: i64) {
        #[cfg(test)]
        self.tape.heard(TurnInput::Answered(answered.clone(), stop, now));
        let Answered { mut message, failure, heard } = answered;
        let cut_off = matches!(message.stop_reason, StopReason::Error | StopReason::Aborted);
        if cut_off {
            // Calls of an unfinished answer may be unfinished themselves and were never made.
            message.content.retain(|block| !matches!(block, Block::ToolCall(_)));
        }
        match (cut_off, stop) {
            (true, Some(cause)) => {
                self.record.ran_out_of_time = cause == StopCause::TimedOut && !heard;
                self.partial(message, cause);
            }
            (true, None) => self.failed(message, failure, heard),
            (false, stop) => self.whole(message, stop, now),
        }
    }

    /// A whole answer: make its calls, or see whether anything else is to be said.
    fn whole(&mut self, message: AssistantMessage, stop: Option<StopCause>, now: i64) {
        self.making_room.answered();
        // The usage in an answer that broke off is incomplete.
        self.record.usage.add(&message.usage);
        self.record.last_usage = Some(message.usage);
        self.record.tokens_after = None;
        let answer = AnswerContent::of(&message).to(self.record.steered);
        if stop.is_none()
            && let Some(failure) = self.emptiness(&message, &answer)
        {
            return self.failed(message, Some(failure), true);
        }
        self.attempts.succeeded();
        self.record.answers.push(answer);
        let calls: VecDeque<ToolCall> = message.tool_calls().cloned().collect();
        self.steps.push_back(TurnStep::Append(Message::Assistant(message), None));
        if calls.is_empty() {
            self.phase = Phase::TurnEnd { asked_tools: false };
            return;
        }
        self.rounds += 1;
        if let Some(cause) = stop {
            self.enter_tools(calls);
            self.stop(cause, now);
        } else if self.limits.max_tool_rounds.is_some_and(|max| self.rounds > max.get()) {
            let max = self.limits.max_tool_rounds.map_or(0, NonZeroU32::get);
            let text = format!("Stopped: the run used up its limit of {max} rounds of tool calls.");
            self.stop_at_limit(&calls, "max_tool_rounds", text, now);
        } else {
            self.enter_tools(calls);
        }
    }

    /// The call failed: the message stays in the transcript, and something else is tried or the run ends.
    fn failed(&mut self, mut message: AssistantMessage, failure: Option<ModelFailure>, heard: bool) {
        let failure = failure.unwrap_or_else(|| ModelFailure {
            kind: FailureKind::Transient,
            status: None,
            retry_after: None,
            message: message
                .error_message
                .clone()
                .unwrap_or_else(|| "the model's answer broke off".to_owned()),
        });
        message.stop_reason = StopReason::Error;
        message.error_message.get_or_insert_with(|| failure.message.clone());
        self.record.failures.push(CandidateFailure {
            candidate: self.attempts.candidate(),
            kind: failure.kind,
            message: failure.message.clone(),
        });
        if failure.kind == FailureKind::ContextOverflow {
            return self.overflowed(message);
        }
        let from = self.attempts.candidate();
        let next = self.attempts.after(&failure, heard);
        let notice = self.attempts.notice(from, &next, &failure, heard);
        let error = (next == RetryDecision::GiveUp && !self.is_silence(&failure))
            .then(|| self.attempts.error(&self.record.failures, &failure));
        // The history gets the same message as the people who saw the run fail.
        let told = error.as_ref().map(|error| error.message.clone());
        message.error_text = told.filter(|told| message.error_message.as_ref() != Some(told));
        self.steps.push_back(TurnStep::Append(Message::Assistant(message), None));
        self.steps.extend(notice.map(|notice| TurnStep::Emit(RunEvent::Retry(Box::new(notice)))));
        if let RetryDecision::Again(Some(wait)) = next {
            self.steps.push_back(TurnStep::Wait(wait));
        }
        match error {
            Some(error) => self.fail(error),
            None if next == RetryDecision::GiveUp => self.finish(RunEnd::Completed),
            None => {}
        }
    }

    /// Takes the result of the tool call under way. `stop` is set when the run was stopped
    /// meanwhile.
    pub(crate) fn tool_done(&mut self, executed: Executed, stop: Option<StopCause>, now: i64) {
        #[cfg(test)]
        self.tape.heard(TurnInput::ToolDone(executed.clone(), stop, now));
        let Phase::Tools { mut calls, .. } = std::mem::replace(&mut self.phase, Phase::Ended) else { return };
        let Some(call) = calls.pop_front() else { return };
        let mut executed = executed;
        let repeated = self.repetition.count(&call, &executed.result.content);
        if repeated >= self.limits.identical_calls_warn {
            executed.result.content.push(Block::text(repetition::warning(repeated)));
        }
        self.settle(&call, executed);
        if let Some(cause) = stop {
            self.enter_tools(calls);
            self.stop(cause, now);
        } else if repeated >= self.limits.identical_calls_stop {
            let text =
                format!("Stopped: the model made the same {} call {repeated} times in a row.", call.name);
            self.stop_at_limit(&calls, "tool_loop", text, now);
        } else {
            self.phase = Phase::AfterTool { calls };
        }
    }

    /// A call that is not made because the user said something: it is reported and stored like any other, before
    /// whatever else is still to be done.
    pub(crate) fn skipped(&mut self, call: &ToolCall, meta: Option<String>, now: i64) {
        #[cfg(test)]
        self.tape.heard(TurnInput::Skipped(call.clone(), meta.clone(), now));
        let later = std::mem::take(&mut self.steps);
        self.steps.push_back(TurnStep::Emit(tool_event::start(call)));
        let result =
            ToolResultMessage { details: Some(json!({})), ..history::result_for(call, SKIPPED, now) };
        self.settle(call, Executed { result, meta });
        self.steps.extend(later);
    }

    /// Reports and stores a result.
    fn settle(&mut self, call: &ToolCall, executed: Executed) {
        let Executed { mut result, meta } = executed;
        if STORED.apply(&mut result) {
            tracing::info!(tool = %call.name, "tool result cut to what a transcript entry may hold");
        }
        self.record.tool_failure = ToolFailure::of(&result, meta.as_deref());
        self.record.has_told |= empty::has_told(&result);
        self.steps.push_back(TurnStep::Emit(tool_event::result(call, &result, meta)));
        self.steps.push_back(TurnStep::Append(Message::ToolResult(result), None));
    }
}
