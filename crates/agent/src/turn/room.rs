//! Decides what is tried when the conversation does not fit the model's window (spec
//! `agent-runtime.md` §10.1, §10.4), and the message for people when nothing helps.

use openclaw_models::failure::user_text;
use openclaw_protocol::message::{AssistantMessage, Message, Usage};
use openclaw_protocol::printable::grouped;

#[cfg(test)]
use super::replay::TurnInput;
use super::{Phase, TurnMachine, TurnStep};
use crate::compaction::Urgency;
use crate::reply::{RunError, RunErrorKind};

/// Compactions in a row that did not help before results are shown in part, and again before it is given up.
const MOST_COMPACTIONS: u32 = 3;

/// Measure that makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// A summary takes the place of what was long ago.
    Compact(Urgency),
    /// Long tool results are shown in part.
    Shorten,
}

/// Result of making room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RoomMade {
    /// More room was made; `after` is the estimate of tokens in use now.
    More { after: Option<u64> },
    /// Nothing could be left out.
    Nothing,
    /// No model could summarise the conversation; the text is for people.
    Failed(String),
}

/// Sizes of the parts of a request: tokens, and the number of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sizes {
    /// The model's window.
    pub(crate) window: u64,
    /// The system prompt and the tools.
    pub(crate) fixed: u64,
    /// The messages.
    pub(crate) messages: u64,
    /// Number of pictures in them.
    pub(crate) pictures: usize,
}

/// Progress of a run with making room.
#[derive(Debug, Default)]
pub(super) struct MakingRoom {
    compactions: u32,
    shortened: bool,
    /// Making room in advance did not help: then the model has to say what fits.
    in_advance_failed: bool,
}

impl MakingRoom {
    /// Returns the next measure while there is too much: each compaction keeps less than the one
    /// before.
    fn next(&mut self) -> Option<Room> {
        if self.compactions < MOST_COMPACTIONS {
            self.compactions += 1;
            return Some(Room::Compact(Urgency::Overflow { attempt: self.compactions - 1 }));
        }
        self.without_summary()
    }

    /// Returns the measure to try if no model can summarise.
    fn without_summary(&mut self) -> Option<Room> {
        if self.shortened {
            return None;
        }
        self.shortened = true;
        self.compactions = 0;
        Some(Room::Shorten)
    }

    /// The model answered: what happens next is another matter.
    pub(super) fn answered(&mut self) {
        (self.compactions, self.shortened) = (0, false);
    }
}

impl TurnMachine {
    /// Returns true if room may be made before the model is called.
    pub(crate) fn may_make_room(&self) -> bool {
        !self.making_room.in_advance_failed && matches!(self.phase, Phase::Calling)
    }

    /// There will hardly be room for the next call.
    pub(crate) fn short_of_room(&mut self) {
        #[cfg(test)]
        self.tape.heard(TurnInput::ShortOfRoom);
        self.phase = Phase::MakingRoom { room: Room::Compact(Urgency::CanWait), overflowed: None };
    }

    /// The model said that there is too much. The message goes into the transcript once it is clear
    /// what becomes of it.
    pub(super) fn overflowed(&mut self, message: AssistantMessage) {
        match self.making_room.next() {
            Some(room) => self.phase = Phase::MakingRoom { room, overflowed: Some(Box::new(message)) },
            None => self.no_room(message),
        }
    }

    /// Notes how large things are, for what people are told.
    pub(crate) fn measured(&mut self, sizes: Sizes) {
        #[cfg(test)]
        self.tape.heard(TurnInput::Measured(sizes));
        self.sizes = sizes;
    }

    /// Adds the usage of making room to that of the run.
    pub(crate) fn used(&mut self, usage: &Usage) {
        #[cfg(test)]
        self.tape.heard(TurnInput::Used(*usage));
        self.record.usage.add(usage);
    }

    /// Takes the result of making room. Returns true if the model is asked again because of it.
    pub(crate) fn room_made(&mut self, made: RoomMade) -> bool {
        #[cfg(test)]
        self.tape.heard(TurnInput::RoomMade(made.clone()));
        let Phase::MakingRoom { room, overflowed } = std::mem::replace(&mut self.phase, Phase::Calling)
        else {
            return false;
        };
        if let RoomMade::More { after } = made {
            self.record.tokens_after = after;
            if room != Room::Shorten {
                self.record.compactions += 1;
            }
            // No use doing again at once what was just done.
            let still_short = after.is_none_or(|after| after > self.sizes.window);
            self.making_room.in_advance_failed |= overflowed.is_none() && still_short;
            let is_retry = overflowed.is_some();
            self.steps.extend(overflowed.map(|said| TurnStep::Append(Message::Assistant(*said), None)));
            return is_retry;
        }
        let Some(message) = overflowed else {
            self.making_room.in_advance_failed = true;
            return false;
        };
        let next = match made {
            RoomMade::Failed(why) => {
                self.record.compaction_failure = Some(why);
                self.making_room.without_summary()
            }
            RoomMade::Nothing if room != Room::Shorten => self.making_room.next(),
            RoomMade::Nothing | RoomMade::More { .. } => None,
        };
        match next {
            Some(room) => self.phase = Phase::MakingRoom { room, overflowed: Some(message) },
            None => self.no_room(*message),
        }
        false
    }

    /// Ends the run if nothing helps: the person is told the model, the sizes and the ways out.
    fn no_room(&mut self, mut message: AssistantMessage) {
        let failed = self.record.compaction_failure.take();
        let overflow = user_text(message.error_message.as_deref().unwrap_or_default());
        let kind = match failed {
            Some(_) => RunErrorKind::CompactionFailure,
            None => RunErrorKind::ContextOverflow,
        };
        let lines = [Some(overflow), self.attempts.too_large(self.sizes), failed];
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        let text = lines.join("\n");
        message.error_text = Some(text.clone());
        self.steps.push_back(TurnStep::Append(Message::Assistant(message), None));
        self.fail(RunError { kind, message: text });
    }
}

impl Sizes {
    /// Returns true if there is no room for any conversation.
    pub(super) fn are_beyond_help(self) -> bool {
        self.fixed >= self.window
    }

    /// Returns the sizes in words for people.
    pub(super) fn told(self) -> String {
        let total = self.fixed + self.messages;
        let is_over = total > self.window / 10 * 9;
        let [window, fixed, messages, total] = [self.window, self.fixed, self.messages, total].map(grouped);
        if self.are_beyond_help() {
            return format!(
                "The system prompt and the tools alone take about {fixed} tokens, and the model's window holds {window}: choose a model \
                 with a larger window, shorten the workspace files or offer fewer tools."
            );
        }
        let pictures = match self.pictures {
            0 => String::new(),
            1 => " with 1 picture".to_owned(),
            many => format!(" with {many} pictures"),
        };
        if is_over {
            return format!(
                "The model's window holds {window} tokens; the system prompt and the tools take about {fixed}, and what is left of the \
                 conversation{pictures} about {messages}, which could not be made smaller."
            );
        }
        format!(
            "About {total} tokens{pictures} were sent, of {window} that its window holds, and could not be made fewer."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compactions_come_first_then_shortening_once_then_the_end() {
        let mut room = MakingRoom::default();
        let compact = |attempt| Some(Room::Compact(Urgency::Overflow { attempt }));
        let tried: Vec<_> = (0..8).map(|_| room.next()).collect();
        let expect = [
            compact(0),
            compact(1),
            compact(2),
            Some(Room::Shorten),
            compact(0),
            compact(1),
            compact(2),
            None,
        ];
        assert_eq!(tried, expect);
        room.answered();
        assert_eq!(room.next(), compact(0));
        assert_eq!((room.without_summary(), room.without_summary()), (Some(Room::Shorten), None));
    }

    #[test]
    fn sizes_are_told_in_words() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let told = |fixed, messages, pictures| Sizes { window: 8_000, fixed, messages, pictures }.told();
        let alone = told(9_000, 5, 0);
        assert!(alone.contains("alone take about 9,000 tokens") && alone.contains("holds 8,000"), "{alone}");
        let over = told(1_000, 50_000, 0);
        assert!(over.contains("about 50,000") && over.contains("8,000") && over.contains("1,000"), "{over}");
        for (pictures, expect) in [(0, ""), (1, " with 1 picture"), (3, " with 3 pictures")] {
            assert_eq!(
                told(1_000, 2_000, pictures),
                format!(
                    "About 3,000 tokens{expect} were sent, of 8,000 that its window holds, and could not be made fewer."
                )
            );
        }
    }
}
