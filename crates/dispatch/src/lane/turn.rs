//! What a lane has to know of something that waits for its turn.

use openclaw_channels::Address;
use openclaw_protocol::RunId;

use crate::api::AbortReason;
use crate::inbox::Row;
use crate::job::Job;
use crate::queue::QueueSettings;

/// Something that waits for its turn.
pub(crate) trait Turn: Clone {
    /// Its run.
    fn run_id(&self) -> &RunId;
    /// Whether it was stopped or answered while it waited: its turn only closes it.
    fn is_stopped(&self) -> bool;
    /// Makes it so.
    fn stop(&mut self, reason: AbortReason);
    /// Its place in the order of acceptance.
    fn order(&self) -> u64;
    /// Whether it may give the session another conversation or other settings: what is said behind it waits for it.
    fn alters(&self) -> bool;
    /// Whether it is done beside a run.
    fn is_aside(&self) -> bool;
    /// How it waits, where it is something that is said to the agent: what nothing has to wait for, and what a full queue may drop.
    fn queue(&self) -> Option<QueueSettings>;
    /// Where its answer goes, with its thread; nothing where that is the client that asked.
    fn place(&self) -> Option<&Address>;
    /// The platform's id of it, where it has one.
    fn message_id(&self) -> Option<&str>;
    /// Whether its run can't be that of others.
    fn is_alone(&self) -> bool;
    /// Whether it tells of a sub-agent that has ended: such messages are run together among themselves.
    fn is_announcement(&self) -> bool;
    /// Whether it waited before the process began.
    fn has_waited(&self) -> bool;
    /// A full queue has dropped it as the so-manyth, and the agent has yet to be told.
    fn cut(&self) -> Option<u64>;
    /// Makes it so.
    fn set_cut(&mut self, dropped: u64);
    /// Whether messages may be steered into its run: not where the answer to them would not be seen.
    fn takes_steering(&self) -> bool;
    /// Whether somebody else than the owner says it: the owner's run has tools that are not for them.
    fn is_strangers(&self) -> bool {
        false
    }
}

impl Turn for Job {
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
        let Row { payload, recovered, session_id, gathering, abort, .. } = &*self.row;
        let has_begun =
            gathering.is_some() || *recovered && (session_id.is_some() || payload.attempts.all > 0);
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

    fn is_strangers(&self) -> bool {
        self.row.payload.facts.strangers
    }
}
