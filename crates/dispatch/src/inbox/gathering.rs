//! Messages that are run together: one of them leads, and its end is the end of all.

use std::sync::Arc;

use openclaw_protocol::RunId;

use super::{Queued, Row};
use crate::origin::Origin;

/// What a message that leads a run brings along.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gathering {
    /// Messages that are asked with it, in order. They were said before it.
    pub(crate) items: Vec<Arc<Row<Queued>>>,
    /// Messages that a full queue has dropped, of which the agent is told a line, in order.
    pub(crate) cut: Vec<Arc<Row<Queued>>>,
    /// How many were dropped, with those of which no line is left.
    pub(crate) dropped: u64,
    /// Whether the one that leads was dropped itself: then only what is told of dropped ones is asked.
    pub(crate) leads_cut: bool,
    /// Where the answer goes, if not to where the one that leads was said.
    pub(crate) answer_to: Option<Box<Origin>>,
    /// Whether the inbox has it.
    pub(crate) is_stored: bool,
}

impl Gathering {
    /// The runs that end with the one that leads.
    pub(crate) fn others(&self) -> impl Iterator<Item = &RunId> {
        self.items.iter().chain(&self.cut).map(|row| &row.run_id)
    }

    /// Whether a crash must not take it apart: something else than the message that leads is in it.
    pub(crate) fn is_more_than_one(&self) -> bool {
        self.leads_cut || self.others().next().is_some()
    }
}

/// What the inbox remembers of how a message waited.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Waited {
    /// The message that leads the run it belongs to; itself, if it leads others.
    pub(crate) collected_by: Option<RunId>,
    /// A full queue has dropped it, as the so-manyth, and the agent has yet to be told.
    pub(crate) cut: Option<u64>,
    /// Where the answer goes, if not to where it was said.
    pub(crate) answer_to: Option<Box<Origin>>,
}
