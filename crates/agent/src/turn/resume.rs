//! Determines where a run begins: after a message, or in the middle of what a crash interrupted.

use std::collections::VecDeque;
use std::sync::Arc;

use openclaw_models::history;
use openclaw_protocol::message::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage};

use super::empty::has_told;
use super::{History, TurnMachine, TurnStep, repetition};
use crate::event::{RunEnd, RunEvent, TextChange};
use crate::gateway_result::INTERRUPTED;
use crate::payload::AnswerContent;
use crate::reply::{RunError, RunErrorKind};
use crate::text::directive;
use crate::text::silent::{is_silent, spoken};
use crate::text::tags::{TagRules, strip};

/// Deaths of the gateway within the tool calls of one step after which a run is given up.
const DEATHS_IN_STEP: u32 = 3;
/// Deaths of the gateway within any tool calls of a run after which it is given up, whatever went
/// well between them.
const DEATHS_IN_ALL: u32 = 5;
/// The same for ends of any kind: a call may also stop the gateway in order, as its owner may while
/// it is under way.
const ENDS_IN_STEP: u32 = 5;
const ENDS_IN_ALL: u32 = 10;

/// Calls that were under way when an earlier process ended.
#[derive(Debug, Default)]
pub(crate) struct CutShort {
    /// Calls that are made again.
    pub(crate) again: VecDeque<ToolCall>,
    /// Calls that may have happened: the model is told so.
    pub(crate) closed: VecDeque<ToolCall>,
}

impl History<'_> {
    /// The calls at the end of the branch that have no result. Calls of `repeatable` tools are made
    /// again, unless the run is given up.
    pub(crate) fn cut_short(&self, repeatable: &[&'static str]) -> CutShort {
        // Calls that are open before a new message belong to another run, which a crash cut short.
        if let Some(Message::User(_)) = self.context.last().map(Arc::as_ref) {
            return CutShort::default();
        }
        let is_repeatable = |call: &ToolCall| !self.is_given_up() && repeatable.contains(&call.name.as_str());
        let (again, closed) = history::unanswered(self.context).into_iter().partition(is_repeatable);
        CutShort { again, closed }
    }

    fn own(&self) -> &[Arc<Message>] {
        self.context.get(self.own_from..).unwrap_or_default()
    }

    /// True if the gateway ended so often within the calls of the run that none is made once more.
    fn is_given_up(&self) -> bool {
        self.too_many_ends().is_some()
    }

    /// Returns how often the gateway ended within the calls of the run, in words, if that was too
    /// often.
    fn too_many_ends(&self) -> Option<String> {
        let Ends { in_step, in_all } = Ends::of(self.own());
        if self.deaths.min(in_step) >= DEATHS_IN_STEP {
            return Some(self.ended(in_step, " in a row"));
        }
        if self.deaths.min(in_all) >= DEATHS_IN_ALL {
            return Some(self.ended(in_all, ""));
        }
        if in_step >= ENDS_IN_STEP {
            return Some(format!("was stopped {ENDS_IN_STEP} times in a row"));
        }
        (in_all >= ENDS_IN_ALL).then(|| format!("was stopped {ENDS_IN_ALL} times"))
    }

    /// Says that the gateway ended this often, and how: stops in order may lie between the deaths.
    fn ended(&self, ends: u32, manner: &str) -> String {
        let Self { deaths, .. } = self;
        match ends.saturating_sub(*deaths) {
            0 => format!("ended unexpectedly {ends} times{manner}"),
            1 => format!("ended {ends} times{manner} ({deaths} times unexpectedly, once stopped in order)"),
            stops => format!(
                "ended {ends} times{manner} ({deaths} times unexpectedly, {stops} times stopped in order)"
            ),
        }
    }
}

/// Answers of a run during whose calls a process ended, by what the run has written so far. A death
/// and an orderly stop leave the same traces.
#[derive(Debug, Default)]
struct Ends {
    /// Number of them at the end, without one between them all of whose calls have results.
    in_step: u32,
    in_all: u32,
}

impl Ends {
    fn of(own: &[Arc<Message>]) -> Self {
        let (mut ends, mut results) = (Self::default(), Vec::new());
        let mut went_well = false;
        for message in own.iter().rev() {
            match &**message {
                Message::ToolResult(result) => results.push(result),
                Message::Assistant(answer) if answer.tool_calls().next().is_some() => {
                    let is_whole = |call: &ToolCall| {
                        results.iter().any(|result| result.tool_call_id == call.id && !is_interrupted(result))
                    };
                    if answer.tool_calls().all(is_whole) {
                        went_well = true;
                    } else {
                        ends.in_all += 1;
                        ends.in_step += u32::from(!went_well);
                    }
                    results.clear();
                }
                Message::Assistant(_) | Message::User(_) => {}
            }
        }
        ends
    }
}

/// True if the result stands for a call that was under way when the gateway ended: it may have happened.
pub fn is_interrupted(result: &ToolResultMessage) -> bool {
    matches!(result.content.as_slice(), [Block::Text(only)] if only.text == INTERRUPTED)
}

/// The answer to a message whose tool calls have ended the gateway this often.
fn given_up(own: &[Arc<Message>], how_often: &str) -> String {
    let asking = own.iter().rev().find_map(|message| match &**message {
        Message::Assistant(answer) if answer.tool_calls().next().is_some() => Some(answer),
        _ => None,
    });
    let names: Vec<&str> =
        asking.iter().flat_map(|answer| answer.tool_calls()).map(|call| call.name.as_str()).collect();
    format!(
        "This message was given up: the gateway {how_often} while it made tool calls for it, \
         the last time: {}. The gateway's log may tell why. Send it again when the cause is mended.",
        names.join(", ")
    )
}

impl TurnMachine {
    /// Decides by the end of the branch: close open calls, return an answer that is already there, or just go on. A
    /// failed or cut-off answer at the end is no answer: the model is asked again. Calls of `repeatable` tools are made again.
    pub(super) fn begin(&mut self, history: History<'_>, repeatable: &[&'static str], now: i64) {
        self.remember(history.own());
        let last = history.context.last().map(Arc::as_ref);
        let CutShort { again, closed } = history.cut_short(repeatable);
        self.close(&closed, INTERRUPTED, now);
        let too_many_ends = history.too_many_ends();
        if let Some(how_often) = too_many_ends.filter(|_| !matches!(last, Some(Message::User(_)))) {
            let text = given_up(history.own(), &how_often);
            return self.stop_at_limit(&VecDeque::new(), "gateway_died", text, now);
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
                self.steps.extend(shown(answer).map(TurnStep::Emit));
                self.finish(RunEnd::Completed);
            }
            Some(_) => {}
        }
    }

    /// Adds what was answered since the run's own message to its reply, also from before a message
    /// that was steered in. A model that went in circles before is found to go on so.
    fn remember(&mut self, own: &[Arc<Message>]) {
        let mut asking = None;
        for message in own {
            match &**message {
                Message::User(_) => {
                    self.record.steered += 1;
                    self.record.has_told = false;
                }
                Message::Assistant(answer) if !is_cut_off(answer) => {
                    self.record.usage.add(&answer.usage);
                    self.record.answers.push(AnswerContent::of(answer).to(self.record.steered));
                }
                Message::ToolResult(result) => {
                    self.record.has_told |= has_told(result);
                    let is_its = |call: &&ToolCall| call.id == result.tool_call_id;
                    if let Some(call) =
                        asking.and_then(|answer: &AssistantMessage| answer.tool_calls().find(is_its))
                    {
                        self.repetition.count(call, repetition::without_warning(&result.content));
                    }
                }
                Message::Assistant(_) => {}
            }
            if let Message::Assistant(answer) = &**message {
                asking = Some(answer);
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
