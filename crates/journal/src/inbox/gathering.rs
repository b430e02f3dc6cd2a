//! Messages that are run together: one of them leads, and its end is the end of all.

use std::sync::Arc;

use openclaw_protocol::RunId;

use super::{InboxRow, Queued};
use crate::origin::MessageOrigin;

/// Messages that the leading message of a run brings along.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gathering {
    /// Messages that are asked with it, in order. They were said before it.
    pub items: Vec<Arc<InboxRow<Queued>>>,
    /// Messages that a full queue has dropped, of which the agent is told a line, in order.
    pub cut: Vec<Arc<InboxRow<Queued>>>,
    /// Number of dropped messages, including those of which no line is left.
    pub dropped: u64,
    /// True if the leading message was dropped itself: then only the summary of dropped ones is
    /// asked.
    pub leads_cut: bool,
    /// Place of the answer, if not the place where the leading message was said.
    pub answer_to: Option<Box<MessageOrigin>>,
    /// True if it is stored in the inbox.
    pub is_stored: bool,
}

impl Gathering {
    /// The runs that end with the one that leads.
    pub fn others(&self) -> impl Iterator<Item = &RunId> {
        self.items.iter().chain(&self.cut).map(|row| &row.run_id)
    }

    /// True if a crash must not take it apart, because it has more than the leading message.
    pub fn is_more_than_one(&self) -> bool {
        self.leads_cut || self.others().next().is_some()
    }
}

/// State that the inbox remembers of a message's wait.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MessageWait {
    /// The message that leads the run it belongs to; itself, if it leads others.
    pub collected_by: Option<RunId>,
    /// Number under which a full queue has dropped it, while the agent has yet to be told.
    pub cut: Option<u64>,
    /// Place of the answer, if not the place where the message was said.
    pub answer_to: Option<Box<MessageOrigin>>,
    /// True if another run has taken it into itself: it was steered into that.
    pub is_taken: bool,
}
