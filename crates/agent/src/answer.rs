//! Reads the answer to one model call: turns the stream into events as it arrives and into one
//! message at its end.

use futures_util::StreamExt;
use openclaw_models::{FailureKind, ModelEvent, ModelFailure, ModelRequest};
use openclaw_protocol::message::{AssistantMessage, Block, StopReason};
use tokio::sync::mpsc;

use crate::event::{RunEvent, TextChange};
use crate::payload::AnswerContent;
use crate::reasoning_visibility::ReasoningVisibility;
use crate::redaction::Redactor;
use crate::retry_notice::{NextTry, RetryNotice};
use crate::run_model::RunModel;
use crate::stop::StopGuard;
use crate::text::tags::promote_thinking;
use crate::text::thoughts::Thoughts;
use crate::text::visible::VisibleText;

/// Result of a model call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answered {
    pub(crate) message: AssistantMessage,
    pub(crate) failure: Option<ModelFailure>,
    /// True once any of the answer has arrived, be it the beginning of a tool call: from there on
    /// the model does not repeat the call by itself.
    pub(crate) heard: bool,
}

/// Calls the model and reports its text as it grows.
pub(crate) async fn stream(
    candidate: &RunModel<'_>,
    request: ModelRequest,
    stop: &mut StopGuard,
    told: AnswerListener<'_>,
    now: i64,
) -> Answered {
    let AnswerListener { events, reasoning, redactor } = told;
    let mut stream = candidate.model.stream(request, stop.token().clone());
    let mut visible = VisibleText::new(candidate.reasoning_tags);
    let mut thoughts = (reasoning == ReasoningVisibility::Stream).then(Thoughts::default);
    let mut heard = false;
    // The text that grows.
    let mut text_block = None;
    loop {
        match stop.guard(stream.next()).await {
            Some(Some(ModelEvent::TextDelta { block, delta })) => {
                heard = true;
                if text_block.replace(block).is_some_and(|last| last != block) {
                    let _ = events.send(RunEvent::TextEnds).await;
                }
                let change = visible.push(block, &delta);
                think(events, thoughts.as_mut().and_then(|thoughts| thoughts.text(visible.raw()))).await;
                show(events, &mut visible, change).await;
            }
            Some(Some(ModelEvent::ThinkingDelta { block, delta })) => {
                heard = true;
                text_ends(events, &mut text_block).await;
                think(events, thoughts.as_mut().and_then(|thoughts| thoughts.push(block, &delta))).await;
            }
            Some(Some(ModelEvent::ToolCallStart { .. })) => {
                heard = true;
                text_ends(events, &mut text_block).await;
            }
            Some(Some(ModelEvent::Start)) => {}
            Some(Some(ModelEvent::Retry { attempt, attempts, wait, failure })) => {
                let model = (candidate.model.provider(), candidate.model.id());
                let next = NextTry::Again { attempt, attempts, wait };
                let notice = RetryNotice::new(model, &failure, false, next).for_people(redactor);
                let _ = events.send(RunEvent::Retry(Box::new(notice))).await;
            }
            Some(Some(ModelEvent::Done { mut message, failure })) => {
                promote_thinking(&mut message.content);
                if !matches!(message.stop_reason, StopReason::Error | StopReason::Aborted) {
                    let change = visible.finish(&message.text());
                    show(events, &mut visible, change).await;
                    if reasoning == ReasoningVisibility::On
                        && let Some(thought) = AnswerContent::of(&message).reasoning(candidate.reasoning_tags)
                    {
                        let _ = events.send(RunEvent::Thought(thought)).await;
                    }
                }
                return Answered { message, failure, heard };
            }
            ended => {
                if ended.is_none() {
                    let name = candidate.model.id();
                    tracing::warn!(model = name, "model was still streaming 10 s after it was told to stop");
                }
                let message = broken_off(candidate, visible.raw(), ended.is_none(), now);
                let failure = (message.stop_reason == StopReason::Error).then(|| ModelFailure {
                    kind: FailureKind::Transient,
                    status: None,
                    retry_after: None,
                    message: message.error_message.clone().unwrap_or_default(),
                });
                return Answered { message, failure, heard };
            }
        }
    }
}

/// Recipient of an answer while it arrives, and the parts of the thinking that are sent to it.
#[derive(Clone, Copy)]
pub(crate) struct AnswerListener<'a> {
    pub(crate) events: &'a mpsc::Sender<RunEvent>,
    pub(crate) reasoning: ReasoningVisibility,
    /// Masks secrets in what is told of failures.
    pub(crate) redactor: &'a Redactor,
}

/// Emits the end of a text when another kind of block begins.
async fn text_ends(events: &mpsc::Sender<RunEvent>, text_block: &mut Option<usize>) {
    if text_block.take().is_some() {
        let _ = events.send(RunEvent::TextEnds).await;
    }
}

async fn think(events: &mpsc::Sender<RunEvent>, thought: Option<TextChange>) {
    if let Some(change) = thought {
        let _ = events.send(RunEvent::Thinking(change)).await;
    }
}

async fn show(events: &mpsc::Sender<RunEvent>, visible: &mut VisibleText, shown: Option<TextChange>) {
    // A missing listener is no reason to stop.
    if let Some(quote) = visible.take_quote() {
        let _ = events.send(RunEvent::Quotes(quote)).await;
    }
    for file in visible.take_attached() {
        let _ = events.send(RunEvent::Attaches(file)).await;
    }
    if let Some(change) = shown {
        let _ = events.send(RunEvent::Assistant(change)).await;
    }
}

/// A message for a stream that ended without one, or did not end when it was told to.
fn broken_off(candidate: &RunModel<'_>, text: &str, stopped: bool, timestamp: i64) -> AssistantMessage {
    let content = if text.is_empty() { Vec::new() } else { vec![Block::text(text)] };
    AssistantMessage {
        content,
        api: candidate.model.api().to_owned(),
        provider: candidate.model.provider().to_owned(),
        model: candidate.model.id().to_owned(),
        stop_reason: if stopped { StopReason::Aborted } else { StopReason::Error },
        error_message: (!stopped).then(|| "the model's answer ended without a last word".to_owned()),
        timestamp,
        ..AssistantMessage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec `streaming.md` §1: what a block holds goes out at the end of its text, not at that of a tool call's arguments behind it.
    #[tokio::test]
    async fn a_text_ends_once_where_something_else_begins() {
        let (events, mut told) = mpsc::channel(9);
        let mut text_block = None;
        text_ends(&events, &mut text_block).await;
        assert!(told.try_recv().is_err(), "there is none");
        text_block = Some(0);
        for _ in 0..2 {
            text_ends(&events, &mut text_block).await;
        }
        assert_eq!(told.try_recv(), Ok(RunEvent::TextEnds));
        assert!(told.try_recv().is_err());
    }
}
