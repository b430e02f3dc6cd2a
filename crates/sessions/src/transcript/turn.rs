//! Turns on a branch: the entries that belong to the turn of one message. Two session keys may lead
//! to one transcript: when both were at work as a crash came, each must find its own answer, never
//! the other's.

use openclaw_protocol::message::{Message, StopReason};

use super::context::Context;
use super::format::{Body, Entry, EntryId, StoredMessage};
use super::inject::is_injected;

/// `customType` of an entry of ours that says: what comes next is a turn of its own, although the one before it has no
/// end. Written only then; OpenClaw passes over it.
pub const TURN_START: &str = "openclaw.turn-start";

/// The turn of one message: from its entry up to the next message that starts another one.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptTurn {
    /// The message's entry.
    pub entry: EntryId,
    /// The entries of the messages that were steered into it, oldest first.
    pub steered: Vec<EntryId>,
    /// State of the turn.
    pub state: TurnState,
}

/// Progress of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnState {
    /// The turn is the last on the branch: what the branch ends with is its own.
    Last,
    /// The turn was answered, and another has begun since. The context is that of its end.
    Answered(Context),
    /// The turn ended with a failed or stopped answer, whose text this is, and another has begun
    /// since.
    Failed(String),
    /// The turn has no answer, and another has begun since: no later entry is its answer.
    Overtaken,
}

/// Meaning of an entry for the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnMark {
    /// A person, or another session, says something.
    Said,
    /// Answer, or the rest of one that failed.
    Answer { whole: bool },
    /// The model or a tool is at work.
    Work,
    /// [`TURN_START`]
    Start,
    /// Settings, summaries, words that were put in.
    Beside,
}

impl TurnMark {
    /// [`Self::of`] in somebody's turn: what `is_ours` does not know was said through another program, and begins another.
    pub(super) fn within(entry: &Entry, is_ours: impl Fn(&EntryId) -> bool) -> Self {
        match Self::of(entry) {
            Self::Said if !is_ours(&entry.id) => Self::Start,
            mark => mark,
        }
    }

    fn of_message(message: &Message) -> Self {
        if is_injected(message) {
            return Self::Beside;
        }
        match message {
            Message::User(_) => Self::Said,
            Message::ToolResult(_) => Self::Work,
            Message::Assistant(answer) => {
                let whole = !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
                match answer.tool_calls().next() {
                    Some(_) if whole => Self::Work,
                    Some(_) | None => Self::Answer { whole },
                }
            }
        }
    }

    pub(super) fn of(entry: &Entry) -> Self {
        match &entry.body {
            Body::Message(StoredMessage::Known(message)) => Self::of_message(message),
            Body::Custom { custom_type, .. } if custom_type == TURN_START => Self::Start,
            Body::Message(StoredMessage::Other(_))
            | Body::ModelChange { .. }
            | Body::ThinkingLevelChange { .. }
            | Body::Compaction(_)
            | Body::BranchSummary(_)
            | Body::Custom { .. }
            | Body::CustomMessage(_)
            | Body::Label { .. }
            | Body::SessionInfo { .. }
            | Body::Other(_) => Self::Beside,
        }
    }
}

/// End of the turn that the first entry began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// The turn ends with the branch.
    Open,
    /// The turn ends with the answer at this place.
    Answered(usize),
    /// The turn ends with the failed answer at this place.
    Failed(usize),
    /// The turn ends before another one, without an answer.
    Overtaken,
}

/// A message starts another turn when it follows an answer or [`TURN_START`]; otherwise it was steered into the one under
/// way.
pub(super) fn turn_end(marks: &[TurnMark]) -> TurnEnd {
    let mut answer = None;
    for (at, mark) in marks.iter().enumerate().skip(1) {
        match (mark, answer) {
            (TurnMark::Start | TurnMark::Said, Some((at, true))) => return TurnEnd::Answered(at),
            (TurnMark::Start | TurnMark::Said, Some((at, false))) => return TurnEnd::Failed(at),
            (TurnMark::Start, None) => return TurnEnd::Overtaken,
            (TurnMark::Answer { whole }, _) => answer = Some((at, *whole)),
            (TurnMark::Work | TurnMark::Said, _) => answer = None,
            (TurnMark::Beside, _) => {}
        }
    }
    TurnEnd::Open
}

/// Positions of messages that were steered into the turn of the first entry.
pub(super) fn steered(marks: &[TurnMark], end: TurnEnd) -> impl Iterator<Item = usize> {
    let until = match end {
        TurnEnd::Open => marks.len(),
        TurnEnd::Answered(at) | TurnEnd::Failed(at) => at,
        TurnEnd::Overtaken => 0,
    };
    let said = marks.iter().enumerate().skip(1).filter(|(_, mark)| **mark == TurnMark::Said);
    said.map(|(at, _)| at).take_while(move |at| *at < until)
}

/// True if a branch ends within a turn, so that the next one has to be marked as another.
pub(super) fn ends_within_turn(last: Option<TurnMark>) -> bool {
    matches!(last, Some(TurnMark::Said | TurnMark::Work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_goes_on_until_another_message_starts_one() {
        let marks = |text: &str| -> Vec<TurnMark> {
            let mark = |c| match c {
                'u' => TurnMark::Said,
                'a' => TurnMark::Answer { whole: true },
                'x' => TurnMark::Answer { whole: false },
                'w' => TurnMark::Work,
                '|' => TurnMark::Start,
                _ => TurnMark::Beside,
            };
            text.chars().map(mark).collect()
        };
        use TurnEnd::{Answered, Failed, Open, Overtaken};
        let rows = [
            ("u", Open),
            ("ua", Open),
            ("uww", Open),
            ("ux", Open),
            ("u.wwa.", Open),
            // Steered into the turn.
            ("uwwua", Open),
            ("uu", Open),
            ("uua", Open),
            // Answered, and then somebody else's.
            ("uaua", Answered(1)),
            ("uwwa..u", Answered(3)),
            ("ua.|u", Answered(1)),
            ("uwuwauwa", Answered(4)),
            // Never answered.
            ("u|ua", Overtaken),
            ("u.|.ua", Overtaken),
            ("uw|wua", Overtaken),
            // The turn has failed, and that was told: a turn of the same session begins after the
            // one before has ended.
            ("uxua", Failed(1)),
            ("ux|ua", Failed(1)),
            // A failed answer that was tried again.
            ("uxa", Open),
            ("uxaua", Answered(2)),
        ];
        for (text, expect) in rows {
            assert_eq!(turn_end(&marks(text)), expect, "{text}");
        }
        let rows: [(&str, &[usize]); 6] = [
            ("uwwuw", &[3]),
            ("uwwu.wua", &[3, 6]),
            ("uaua", &[]),
            ("uwuwauwa", &[2]),
            ("uwu|ua", &[]),
            ("uuxua", &[1]),
        ];
        for (text, expect) in rows {
            let marks = marks(text);
            let found: Vec<usize> = steered(&marks, turn_end(&marks)).collect();
            assert_eq!(found, expect, "{text}");
        }
    }
}
