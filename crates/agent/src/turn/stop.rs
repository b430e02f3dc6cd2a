//! Ends a run: stopped by someone or by its time limit, by a round limit, or because nothing more
//! can be stored. No call stays open.

use std::collections::VecDeque;

use openclaw_models::history;
use openclaw_protocol::message::{AssistantMessage, Message, StopReason, ToolCall};

#[cfg(test)]
use super::replay::TurnInput;
use super::{Phase, TurnMachine, TurnStep};
use crate::event::RunEnd;
use crate::gateway_result::STOPPED_WAITING;
use crate::payload::AnswerContent;
use crate::reply::{RunError, RunErrorKind};
use crate::stop::StopCause;
use crate::text::tags::{TagRules, strip};

impl TurnMachine {
    /// The run was stopped in the middle of an answer: what can be seen of it is kept.
    pub(super) fn partial(&mut self, mut message: AssistantMessage, cause: StopCause) {
        message.stop_reason = StopReason::Aborted;
        if cause == StopCause::TimedOut {
            message.error_message = Some(self.limits.time_is_up());
        }
        let rules = TagRules { final_only: false, complete: true };
        let visible = !strip(&message.text(), rules).visible.trim().is_empty();
        if visible {
            self.record.answers.push(AnswerContent::of(&message).to(self.record.steered));
            self.steps.push_back(TurnStep::Append(Message::Assistant(message), None));
        }
        self.finish_stopped(cause);
    }

    /// The run was stopped between two long steps, or while one was under way.
    pub(crate) fn stopped(&mut self, cause: StopCause, now: i64) {
        #[cfg(test)]
        self.tape.heard(TurnInput::Stopped(cause, now));
        self.stop(cause, now);
    }

    pub(super) fn stop(&mut self, cause: StopCause, now: i64) {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Tools { calls, .. } | Phase::AfterTool { calls } => {
                self.close(&calls, STOPPED_WAITING, now)
            }
            Phase::TurnEnd { asked_tools: false } | Phase::Ended => {
                // The answer was complete before anyone stopped it.
                self.phase = Phase::Ended;
                return;
            }
            Phase::MakingRoom { overflowed, .. } => {
                self.steps.extend(overflowed.map(|said| TurnStep::Append(Message::Assistant(*said), None)));
            }
            Phase::BeforeModel | Phase::Calling | Phase::TurnEnd { asked_tools: true } => {}
        }
        self.finish_stopped(cause);
    }

    fn finish_stopped(&mut self, cause: StopCause) {
        match cause {
            StopCause::Aborted => self.finish(RunEnd::Aborted),
            StopCause::TimedOut => {
                let message = self.limits.time_is_up();
                self.record.error = Some(RunError { kind: RunErrorKind::Timeout, message });
                self.finish(RunEnd::TimedOut);
            }
        }
    }

    /// The transcript cannot be written: nothing more can be kept.
    pub(crate) fn storage_failed(&mut self, error: RunError) {
        #[cfg(test)]
        self.tape.heard(TurnInput::StorageFailed(error.clone()));
        self.steps.clear();
        self.fail(error);
    }

    pub(super) fn stop_at_limit(
        &mut self,
        calls: &VecDeque<ToolCall>,
        reason: &'static str,
        message: String,
        now: i64,
    ) {
        self.close(calls, STOPPED_WAITING, now);
        self.record.stop_reason = Some(reason);
        self.fail(RunError { kind: RunErrorKind::Limit, message });
    }

    pub(super) fn fail(&mut self, error: RunError) {
        let end = RunEnd::Failed(error.message.clone());
        self.record.error = Some(error);
        self.finish(end);
    }

    pub(super) fn finish(&mut self, end: RunEnd) {
        self.phase = Phase::Ended;
        self.end = end;
    }

    /// Gives calls that will not be made an error result, so that none stays open.
    pub(super) fn close(&mut self, calls: &VecDeque<ToolCall>, text: &str, now: i64) {
        for call in calls {
            self.steps
                .push_back(TurnStep::Append(Message::ToolResult(history::result_for(call, text, now)), None));
        }
    }
}
