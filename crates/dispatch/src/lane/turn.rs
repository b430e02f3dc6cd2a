//! Facts that a lane has to know of something that waits for its turn.

use openclaw_channels::Address;
use openclaw_journal::api::AbortReason;
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::job::Job;
use openclaw_journal::queue::QueueSettings;
use openclaw_journal::rights::Rights;
use openclaw_protocol::RunId;

/// A message that waits for its turn in a lane.
pub(crate) trait LaneMessage: Clone {
    /// Id of its run.
    fn run_id(&self) -> &RunId;
    /// True if it was stopped or answered while it waited, so that its turn only closes it.
    fn is_stopped(&self) -> bool;
    /// Stops it with this reason: its turn only closes it.
    fn stop(&mut self, reason: AbortReason);
    /// Number in the order of acceptance.
    fn order(&self) -> u64;
    /// True if it may give the session another conversation or other settings, so that later
    /// messages wait for it.
    fn alters(&self) -> bool;
    /// True if it is done beside a run.
    fn is_aside(&self) -> bool;
    /// Returns the queue settings of words for the agent, which nothing has to wait for and which a
    /// full queue may drop; `None` for anything else.
    fn queue(&self) -> Option<QueueSettings>;
    /// Returns the address of its answer, with its thread; `None` if the answer goes to the client
    /// that asked.
    fn place(&self) -> Option<&Address>;
    /// Returns the platform's id of the message, if it has one.
    fn message_id(&self) -> Option<&str>;
    /// True if its run can't be shared with others.
    fn is_alone(&self) -> bool;
    /// True if it tells of a sub-agent that has ended: such messages are run together among
    /// themselves.
    fn is_announcement(&self) -> bool;
    /// True if it waited before the process began.
    fn has_waited(&self) -> bool;
    /// Returns the number under which a full queue has dropped it, if the agent has yet to be told.
    fn cut(&self) -> Option<u64>;
    /// Notes that a full queue has dropped it, as the `dropped`th.
    fn set_cut(&mut self, dropped: u64);
    /// True if messages may be steered into its run: false if the answer to them would not be seen.
    fn takes_steering(&self) -> bool;
    /// Rights of its run; `None` if they are not known.
    fn rights(&self) -> Option<&Rights>;

    /// True if a run with these rights may also be given this message: only if the message's own run would have the same rights.
    fn may_join(&self, rights: Option<&Rights>) -> bool {
        rights.is_some() && self.rights() == rights
    }
}

impl LaneMessage for Job {
    fn run_id(&self) -> &RunId {
        &self.row.run_id
    }

    fn is_stopped(&self) -> bool {
        self.end_announced || self.row.answered.is_some()
    }

    fn stop(&mut self, reason: AbortReason) {
        Self::stop(self, reason);
    }

    fn order(&self) -> u64 {
        self.order
    }

    fn alters(&self) -> bool {
        let wants = self.row.payload.facts.wants;
        // A new conversation begins also where the message was stopped.
        wants.reset || wants.command && !self.is_stopped()
    }

    fn is_aside(&self) -> bool {
        self.aside && !self.is_stopped()
    }

    fn queue(&self) -> Option<QueueSettings> {
        let InboxRow { payload, gathering, abort, .. } = &*self.row;
        let has_begun = gathering.is_some() || self.has_begun;
        let is_stopped = abort.is_some() || self.is_stopped();
        (payload.is_prompt() && !has_begun && !is_stopped).then_some(payload.facts.queue)
    }

    fn place(&self) -> Option<&Address> {
        self.row.payload.facts.place.as_ref().map(|place| &place.address)
    }

    fn message_id(&self) -> Option<&str> {
        let id = self.row.payload.facts.place.as_ref()?.message_id.trim();
        (!id.is_empty()).then_some(id)
    }

    fn is_alone(&self) -> bool {
        self.row.payload.facts.alone
    }

    fn is_announcement(&self) -> bool {
        self.row.payload.facts.announces
    }

    fn has_waited(&self) -> bool {
        self.row.recovered
    }

    fn cut(&self) -> Option<u64> {
        self.cut
    }

    fn set_cut(&mut self, dropped: u64) {
        self.cut = Some(dropped);
    }

    fn takes_steering(&self) -> bool {
        self.row.payload.facts.beat.is_none()
    }

    fn rights(&self) -> Option<&Rights> {
        self.row.payload.facts.rights.as_ref()
    }
}
