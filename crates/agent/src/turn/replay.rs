//! A run again, from what was recorded of it: the machine is pure, so a fresh one that is told the same says the same.
//! The driver does this at the end of every run of the tests.

use std::sync::Arc;

use openclaw_protocol::message::{Message, ToolCall, Usage};

use super::{Candidates, Executed, History, RoomMade, Sizes, Step, Turn};
use crate::answer::Answered;
use crate::reply::RunError;
use crate::run::Limits;
use crate::stop::StopCause;
use crate::transcript::QueuedMessage;

/// Input of the machine: a call of the method of that name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Heard {
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
    Heard(Heard),
    /// The machine said to do this.
    Said(Step),
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

    pub(super) fn heard(&mut self, heard: Heard) {
        self.events.push(Recorded::Heard(heard));
    }

    pub(super) fn said(&mut self, step: &Step) {
        self.events.push(Recorded::Said(step.clone()));
    }

    /// Replays the recording with a new machine.
    pub(crate) fn replay(&self) -> Turn {
        let history = History { context: &self.context, own_from: self.own_from, deaths: self.deaths };
        let mut turn = Turn::new(history, self.candidates.clone(), self.limits, self.now);
        for event in &self.events {
            match event {
                Recorded::Heard(heard) => turn.hear(heard.clone()),
                Recorded::Said(_) => drop(turn.next()),
            }
        }
        turn
    }

    /// A replay says, ends and tells the caller what the run did.
    pub(crate) fn assert_repeats(&self, turn: &Turn) {
        let again = self.replay();
        assert_eq!(again.tape.events, self.events);
        assert_eq!(again.end(), turn.end());
        assert_eq!(again.record, turn.record);
    }
}

impl Turn {
    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Polled(queued) => self.polled(queued),
            Heard::Answered(answered, stop, now) => self.answered(answered, stop, now),
            Heard::ToolDone(executed, stop, now) => self.tool_done(executed, stop, now),
            Heard::Skipped(call, meta, now) => self.skipped(&call, meta, now),
            Heard::Stopped(cause, now) => self.stopped(cause, now),
            Heard::StorageFailed(error) => self.storage_failed(error),
            Heard::ShortOfRoom => self.short_of_room(),
            Heard::Measured(sizes) => self.measured(sizes),
            Heard::Used(usage) => self.used(&usage),
            Heard::RoomMade(made) => drop(self.room_made(made)),
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_models::ThinkingLevel;
    use openclaw_protocol::message::{AssistantMessage, Block, UserMessage};

    use super::*;
    use crate::turn::CandidateFacts;

    fn answer(text: &str) -> Heard {
        let message = AssistantMessage { content: vec![Block::text(text)], ..AssistantMessage::default() };
        Heard::Answered(Answered { message, failure: None, heard: true }, None, 3)
    }

    fn answered() -> Turn {
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
        let mut turn = Turn::new(history, candidates, Limits::default(), 2);
        for heard in [Heard::Polled(None), answer("yes"), Heard::Polled(None)] {
            turn.next();
            turn.hear(heard);
        }
        while turn.next() != Step::End {}
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
