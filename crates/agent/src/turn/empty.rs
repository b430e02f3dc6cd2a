//! Empty answers: those with nothing to read that are not silent on purpose. They count as failures, so that nobody waits for words that
//! never come.

use openclaw_models::{FailureKind, ModelFailure};
use openclaw_protocol::message::{AssistantMessage, ToolResultMessage};

use super::TurnMachine;
use crate::payload::AnswerContent;
use crate::run::Expected;

/// Error message of an empty answer.
const EMPTY: &str = "the model's answer was empty";
/// Tool that sends messages to people.
const SPEAKING_TOOL: &str = "message";

impl TurnMachine {
    /// Returns the failure that an answer counts as if its reader gets no words from it, nor from the answers before it.
    pub(super) fn emptiness(
        &self,
        message: &AssistantMessage,
        answer: &AnswerContent,
    ) -> Option<ModelFailure> {
        let is_last_word = message.tool_calls().next().is_none();
        if !is_last_word || self.limits.expects == Expected::Anything || self.record.has_told {
            return None;
        }
        let final_only = self.attempts.is_final_only();
        let before = self.record.answers.iter().filter(|before| before.is_beside(answer));
        let is_empty = !before.chain([answer]).any(|said| said.says_something(final_only));
        is_empty.then(|| ModelFailure::new(FailureKind::Empty, EMPTY))
    }

    /// True if a failure about which nothing more can be done ends the run in silence.
    pub(super) fn is_silence(&self, failure: &ModelFailure) -> bool {
        failure.kind == FailureKind::Empty && self.limits.expects == Expected::WordsOrSilence
    }
}

/// True for a tool result which says that people were sent a message.
pub(super) fn has_told(result: &ToolResultMessage) -> bool {
    result.tool_name == SPEAKING_TOOL && !result.is_error
}
