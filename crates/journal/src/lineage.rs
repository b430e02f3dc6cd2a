//! Limit on the automatic steps that lead from run to run: agents that answer each other, or that start one sub-agent because another has
//! ended, would otherwise go on for ever. The count is stored with each message, so that it survives the process.

use serde::{Deserialize, Serialize};

/// Number of messages of sessions to each other, each because of the one before, after which a
/// person has to say something first: the longest talk has seven.
const MOST_MESSAGES: u8 = 8;
/// Sub-agents, each started when it was told of the end of the one before, after which a person has to say something first.
const MOST_CHILDREN: u8 = 100;

/// Count of automatic steps that led to a run since a person or the clock began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lineage {
    /// Messages of sessions to each other, one from the other.
    messages: u8,
    /// Sub-agents, one from the end of the other.
    children: u8,
}

impl Lineage {
    /// True if a person or the clock began it: then it need not be stored.
    pub fn is_new(&self) -> bool {
        *self == Self::default()
    }

    /// Lineage of a message that one session sends to another.
    pub fn of_message(self) -> Self {
        Self { messages: self.messages.saturating_add(1), ..self }
    }

    /// Lineage of the announcement of a sub-agent's end; `self` is that of the run that started it.
    pub fn of_announcement(self) -> Self {
        Self { children: self.children.saturating_add(1), ..self }
    }

    /// Returns the reason, for the model, if no session may be written to.
    pub fn refuses_message(self) -> Option<String> {
        (self.messages >= MOST_MESSAGES).then(|| {
            format!(
                "Not sent: sessions have written to each other {MOST_MESSAGES} times, each because of the one before, and no person has said \
                 anything in between. What you answer now is still heard; a person's next message allows more."
            )
        })
    }

    /// Returns the reason, for the model, if no sub-agent may be started.
    pub fn refuses_child(self) -> Option<String> {
        (self.children >= MOST_CHILDREN).then(|| {
            format!(
                "Not started: {MOST_CHILDREN} sub-agents were started, each because the one before had ended, and no person has said anything \
                 in between. What you answer now is still heard; a person's next message allows more."
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_an_end_of_its_own() {
        let (mut sent, mut spawned) = (Lineage::default(), Lineage::default());
        for _ in 0..MOST_MESSAGES {
            assert_eq!(sent.refuses_message(), None);
            sent = sent.of_message();
        }
        for _ in 0..MOST_CHILDREN {
            assert_eq!(spawned.refuses_child(), None);
            spawned = spawned.of_announcement();
        }
        assert!(sent.refuses_message().is_some() && sent.refuses_child().is_none());
        assert!(spawned.refuses_child().is_some() && spawned.refuses_message().is_none());
        assert!(Lineage::default().is_new() && !sent.is_new() && !spawned.is_new());
    }
}
