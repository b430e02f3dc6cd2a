//! Laws that hold wherever a run is cut.

use std::sync::Arc;

use openclaw_models::ModelRequest;
use openclaw_protocol::message::{Message, StopReason};
use serde_json::json;

use super::stage::{Reply, Stage, Trip, call, outline};
use crate::event::{RunEnd, RunEvent};

/// A model that makes four calls in three rounds, then answers; what it does depends only on what it is shown.
fn industrious(request: &ModelRequest) -> Reply {
    let results =
        request.messages.iter().filter(|message| matches!(***message, Message::ToolResult(_))).count();
    match results {
        0 => Reply::calls(
            "First.",
            [call("c1", "echo", json!({"text": "a"})), call("c2", "steer", json!({"say": "and this"}))],
        ),
        1 | 2 => Reply::calls("", [call("c3", "echo", json!({"text": "b"}))]),
        3 => Reply::calls("Almost.", [call("c4", "echo", json!({"text": "c"}))]),
        _ => Reply::say("All done."),
    }
}

/// Every call has exactly one result before the next answer or user message, and no result is without its call.
pub(super) fn assert_well_formed(messages: &[Arc<Message>], at: usize) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages.iter().map(Arc::as_ref) {
        match message {
            Message::ToolResult(result) => {
                let found = open.iter().position(|id| *id == result.tool_call_id);
                open.remove(found.unwrap_or_else(|| panic!("orphan at {at}: {:?}", outline(messages))));
            }
            Message::User(_) | Message::Assistant(_) => {
                assert!(open.is_empty(), "open call at {at}: {:?}", outline(messages))
            }
        }
        if let Message::Assistant(answer) = message {
            open = answer.tool_calls().map(|call| call.id.as_str()).collect();
        }
    }
    assert!(open.is_empty(), "open call at {at}: {:?}", outline(messages));
}

pub(super) fn assert_one_start_and_end(events: &[RunEvent], at: usize) {
    let started = events.iter().filter(|event| matches!(event, RunEvent::Started { .. })).count();
    let ended = events.iter().filter(|event| matches!(event, RunEvent::Ended { .. })).count();
    assert_eq!((started, ended), (1, 1), "at {at}");
    assert!(
        matches!(events.first(), Some(RunEvent::Started { .. }))
            && matches!(events.last(), Some(RunEvent::Ended { .. })),
        "at {at}"
    );
}

fn final_answers(messages: &[Arc<Message>]) -> usize {
    let is_final = |message: &&Arc<Message>| matches!(&***message, Message::Assistant(a) if a.stop_reason == StopReason::Stop && a.tool_calls().next().is_none());
    messages.iter().filter(is_final).count()
}

#[tokio::test(start_paused = true)]
async fn an_abort_at_any_step_leaves_a_well_formed_transcript() {
    let mut steps = 0;
    for at in 0.. {
        let trip = Trip { at: Some(at), ..Trip::default() };
        let cancelled = trip.cancel.clone();
        let mut stage = Stage::answering(industrious, trip);
        let outcome = stage.run("go").await;
        let messages = stage.messages();
        assert_well_formed(&messages, at);
        assert_one_start_and_end(stage.raw_events(), at);
        assert_eq!(outline(&messages)[0], "U go", "the user's message is never lost");
        let complete = final_answers(&messages) == 1;
        assert_eq!(outcome.end, if complete { RunEnd::Completed } else { RunEnd::Aborted }, "at {at}");
        if !cancelled.is_cancelled() {
            break;
        }
        steps += 1;
    }
    assert!(steps > 25, "the conversation has that many places to be cut at: {steps}");
}

#[tokio::test(start_paused = true)]
async fn a_run_resumed_after_any_entry_ends_with_exactly_one_final_answer() {
    let mut whole = Stage::answering(industrious, Trip::default());
    whole.run("go").await;
    let entries = whole.messages();
    assert_eq!(entries.len(), 10, "{:?}", outline(&entries));
    for at in 1..=entries.len() {
        let mut stage = Stage::answering(industrious, Trip::default());
        stage.set_transcript(entries[..at].to_vec());
        let outcome = stage.resume().await;
        let messages = stage.messages();
        assert_eq!(messages[..at], entries[..at], "nothing is rewritten");
        assert_well_formed(&messages, at);
        assert_one_start_and_end(stage.raw_events(), at);
        assert_eq!(final_answers(&messages), 1, "at {at}: {:?}", outline(&messages));
        assert_eq!(
            outcome.payloads.last().map(|payload| payload.text.as_str()),
            Some("All done."),
            "at {at}"
        );
        assert_eq!(outcome.end, RunEnd::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_cut_anywhere_and_resumed_ends_with_exactly_one_final_answer() {
    for at in 0..40 {
        let trip = Trip { at: Some(at), ..Trip::default() };
        let mut stage = Stage::answering(industrious, trip);
        stage.run("go").await;
        let entries = stage.messages();
        let mut again = Stage::answering(industrious, Trip::default());
        again.set_transcript(entries);
        again.resume().await;
        assert_well_formed(&again.messages(), at);
        assert_eq!(final_answers(&again.messages()), 1, "at {at}: {:?}", again.transcript());
    }
}
