//! Where a run begins: behind a message, or in the middle of what a crash cut short.

use std::collections::VecDeque;
use std::sync::Arc;

use openclaw_models::history;
use openclaw_protocol::message::{AssistantMessage, Message, StopReason, ToolCall};

use super::{History, Step, Turn};
use crate::event::{RunEnd, RunEvent, TextChange};
use crate::payload::Answer;
use crate::reply::{RunError, RunErrorKind};
use crate::text::directive;
use crate::text::silent::{is_silent, spoken};
use crate::text::tags::{TagRules, strip};

/// Result of calls that were under way when the process ended.
pub(crate) const INTERRUPTED: &str = "[openclaw] The gateway was interrupted during this call; it may or may not have completed. Check before doing it again.";

impl Turn {
    /// Decides by the end of the branch: close open calls, return an answer that is already there, or just go on. A
    /// failed or cut-off answer at the end is no answer: the model is asked again. Calls of `repeatable` tools are made again.
    pub(super) fn begin(&mut self, history: History<'_>, repeatable: &[&'static str], now: i64) {
        let History { context, own_from } = history;
        self.remember(context.get(own_from..).unwrap_or_default());
        // Calls that are open before a new message belong to another run, which a crash cut short.
        let last = context.last().map(Arc::as_ref);
        if matches!(last, Some(Message::User(_))) {
            return;
        }
        let is_repeatable = |call: &ToolCall| repeatable.contains(&call.name.as_str());
        let (again, closed): (VecDeque<_>, VecDeque<_>) =
            history::unanswered(context).into_iter().partition(is_repeatable);
        for call in closed {
            let result = history::result_for(&call, INTERRUPTED, now);
            self.steps.push_back(Step::Append(Message::ToolResult(result), None));
        }
        if !again.is_empty() {
            self.rounds += 1;
            self.enter_tools(again);
        }
        match last {
            None => self.fail(RunError {
                kind: RunErrorKind::Other,
                message: "Nothing to continue: the transcript holds no message.".to_owned(),
            }),
            Some(Message::Assistant(answer)) if is_final(answer) => {
                self.record.last_usage = Some(answer.usage);
                self.steps.extend(shown(answer).map(Step::Emit));
                self.finish(RunEnd::Completed);
            }
            Some(_) => {}
        }
    }

    /// What was answered since the run's own message belongs to its reply, also before a message that was steered in.
    fn remember(&mut self, own: &[Arc<Message>]) {
        for message in own {
            match &**message {
                Message::User(_) => self.record.steered += 1,
                Message::Assistant(answer) if !is_cut_off(answer) => {
                    self.record.usage.add(&answer.usage);
                    self.record.answers.push(Answer::of(answer).to(self.record.steered));
                }
                Message::Assistant(_) | Message::ToolResult(_) => {}
            }
        }
    }
}

fn is_cut_off(answer: &AssistantMessage) -> bool {
    matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
}

fn is_final(answer: &AssistantMessage) -> bool {
    !is_cut_off(answer) && answer.tool_calls().next().is_none()
}

/// The answer as one event, for clients that wait for it.
fn shown(answer: &AssistantMessage) -> Option<RunEvent> {
    let visible = strip(&answer.text(), TagRules { final_only: false, complete: true }).visible;
    let text = directive::parse(&visible).text;
    let text = spoken(&text).to_owned();
    (!text.is_empty() && !is_silent(&text)).then(|| RunEvent::Assistant(TextChange::Begins(text)))
}
