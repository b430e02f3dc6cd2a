//! A run again, from what was recorded of it: the machine is pure, so a fresh one that is told the same says the same.
//! The driver does this at the end of every run of the tests.

use std::sync::Arc;

use openclaw_protocol::message::{Message, ToolCall, Usage};

use super::{Candidates, Executed, History, RoomMade, Sizes, TurnMachine, TurnStep};
use crate::answer::Answered;
use crate::reply::RunError;
use crate::run::Limits;
use crate::stop::StopCause;
use crate::transcript::QueuedMessage;

/// Input of the machine: a call of the method of that name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TurnInput {
    Polled(Option<QueuedMessage>),
    Answered(Answered, Option<StopCause>, i64),
    ToolDone(Executed, Option<StopCause>, i64),
    Skipped(ToolCall, Option<String>, i64),
    Stopped(StopCause, i64),
    StorageFailed(RunError),
    ShortOfRoom,
    Measured(Sizes),
    Used(Usage),
    RoomMade(RoomMade),
}

/// Recorded input or output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Recorded {
    /// The machine was told this.
    Heard(TurnInput),
    /// The machine said to do this.
    Said(TurnStep),
}

/// A run as it happened.
#[derive(Debug, Clone)]
pub(crate) struct Tape {
    context: Vec<Arc<Message>>,
    own_from: usize,
    deaths: u32,
    candidates: Candidates,
    limits: Limits,
    now: i64,
    pub(crate) events: Vec<Recorded>,
}

impl Tape {
    pub(super) fn new(history: History<'_>, candidates: &Candidates, limits: Limits, now: i64) -> Self {
        let (context, candidates) = (history.context.to_vec(), candidates.clone());
        let History { own_from, deaths, .. } = history;
        Self { context, own_from, deaths, candidates, limits, now, events: Vec::new() }
    }

    pub(super) fn heard(&mut self, heard: TurnInput) {
        self.events.push(Recorded::Heard(heard));
    }

    pub(super) fn said(&mut self, step: &TurnStep) {
        self.events.push(Recorded::Said(step.clone()));
    }

    /// Replays the recording with a new machine.
    pub(crate) fn replay(&self) -> TurnMachine {
        let history = History { context: &self.context, own_from: self.own_from, deaths: self.deaths };
        let mut turn = TurnMachine::new(history, self.candidates.clone(), self.limits, self.now);
        for event in &self.events {
            match event {
                Recorded::Heard(heard) => turn.hear(heard.clone()),
                Recorded::Said(_) => drop(turn.next()),
            }
        }
        turn
    }

    /// A replay says, ends and tells the caller what the run did.
    pub(crate) fn assert_repeats(&self, turn: &TurnMachine) {
        let again = self.replay();
        assert_eq!(again.tape.events, self.events);
        assert_eq!(again.end(), turn.end());
        assert_eq!(again.record, turn.record);
    }
}

impl TurnMachine {
    fn hear(&mut self, heard: TurnInput) {
        match heard {
            TurnInput::Polled(queued) => self.polled(queued),
            TurnInput::Answered(answered, stop, now) => self.answered(answered, stop, now),
            TurnInput::ToolDone(executed, stop, now) => self.tool_done(executed, stop, now),
            TurnInput::Skipped(call, meta, now) => self.skipped(&call, meta, now),
            TurnInput::Stopped(cause, now) => self.stopped(cause, now),
            TurnInput::StorageFailed(error) => self.storage_failed(error),
            TurnInput::ShortOfRoom => self.short_of_room(),
            TurnInput::Measured(sizes) => self.measured(sizes),
            TurnInput::Used(usage) => self.used(&usage),
            TurnInput::RoomMade(made) => drop(self.room_made(made)),
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_models::ThinkingLevel;
    use openclaw_protocol::message::{AssistantMessage, Block, UserMessage};

    use super::*;
    use crate::turn::CandidateFacts;

    fn answer(text: &str) -> TurnInput {
        let message = AssistantMessage { content: vec![Block::text(text)], ..AssistantMessage::default() };
        TurnInput::Answered(Answered { message, failure: None, heard: true }, None, 3)
    }

    fn answered() -> TurnMachine {
        let facts = CandidateFacts {
            name: "fake/m0".to_owned(),
            thinking: ThinkingLevel::Off,
            credential: None,
            repeats_itself: false,
            final_only: false,
        };
        let candidates = Candidates { facts: vec![facts], ..Candidates::default() };
        let context = [Arc::new(Message::User(UserMessage::text("hi", 1)))];
        let history = History { context: &context, own_from: 1, deaths: 0 };
        let mut turn = TurnMachine::new(history, candidates, Limits::default(), 2);
        for heard in [TurnInput::Polled(None), answer("yes"), TurnInput::Polled(None)] {
            turn.next();
            turn.hear(heard);
        }
        while turn.next() != TurnStep::End {}
        turn
    }

    #[test]
    fn a_replay_of_the_same_is_the_same() {
        let turn = answered();
        assert!(turn.tape.events.len() > 6, "{:?}", turn.tape.events);
        turn.tape.assert_repeats(&turn);
    }

    #[test]
    fn a_replay_of_something_else_is_not() {
        let mut turn = answered();
        let at = turn.tape.events.iter().position(|event| *event == Recorded::Heard(answer("yes"))).unwrap();
        turn.tape.events[at] = Recorded::Heard(answer("no"));
        assert_ne!(turn.tape.replay().tape.events, turn.tape.events);
    }
}
