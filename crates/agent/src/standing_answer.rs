//! The whole answer of a run that an earlier process has written: the run ends with it, and no model
//! is needed for that.

use std::sync::Arc;

use openclaw_protocol::SessionId;
use openclaw_protocol::message::Message;

use crate::event::{RunEnd, RunEvent};
use crate::payload::Replies;
use crate::reasoning_visibility::ReasoningVisibility;
use crate::reply::{AgentMeta, Outcome, ReplyPayload, RunMeta};
use crate::run::Limits;
use crate::toolbox::Toolbox;
use crate::turn::{Candidates, History, TurnMachine, TurnStep};

/// Returns the events and the outcome of a run whose branch ends with its whole answer; `None` for
/// any other branch. `own_from` is [`crate::Transcript::own_from`].
pub fn standing_answer(
    context: &[Arc<Message>],
    own_from: usize,
    session_id: SessionId,
    now: i64,
) -> Option<(Vec<RunEvent>, Outcome)> {
    let Some(Message::Assistant(answer)) = context.last().map(Arc::as_ref) else { return None };
    let history = History { context, own_from, deaths: 0 };
    let mut turn = TurnMachine::new(history, Candidates::default(), Limits::default(), now);
    let mut events = vec![RunEvent::Started { started_at: now }];
    loop {
        match turn.next() {
            TurnStep::Emit(event) => events.push(event),
            TurnStep::End if *turn.end() == RunEnd::Completed => break,
            _ => return None,
        }
    }
    let record = &turn.record;
    let payloads = replies(&turn);
    let agent_meta = AgentMeta {
        session_id,
        provider: answer.provider.clone(),
        model: answer.model.clone(),
        usage: record.usage.counted(),
        compaction_count: None,
    };
    let meta = RunMeta { duration_ms: 0, agent_meta, aborted: false, stop_reason: None, error: None };
    let outcome = Outcome {
        started_at: now,
        ended_at: now,
        end: RunEnd::Completed,
        payloads,
        meta,
        last_usage: record.last_usage,
        tokens_after: None,
        is_full: false,
        failures: Vec::new(),
        candidate: 0,
        ran_out_of_time: false,
    };
    Some((events, outcome))
}

/// Returns what a run has said to its own message so far that an earlier process began, and that
/// does not go on: words before tool calls, for example.
pub fn standing_words(context: &[Arc<Message>], own_from: usize, now: i64) -> Vec<ReplyPayload> {
    let history = History { context, own_from, deaths: 0 };
    let turn = TurnMachine::new(history, Candidates::default(), Limits::default(), now);
    replies(&turn).into_iter().filter(|reply| reply.said_to == 0).collect()
}

fn replies(turn: &TurnMachine) -> Vec<ReplyPayload> {
    let replies = Replies {
        catalogue: <&Toolbox>::default().catalogue(),
        answers: &turn.record.answers,
        steered: turn.record.steered,
        error: None,
        end: turn.end(),
        tool_failure: None,
        reasoning: ReasoningVisibility::Off,
        final_only: false,
    };
    replies.payloads()
}
