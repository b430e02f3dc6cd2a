//! Run whose tools make requests to the gateway.

use std::sync::Arc;

use openclaw_channels::Address;
use openclaw_config::ResolvedAgent;
use openclaw_journal::lineage::Lineage;
use openclaw_journal::origin::Origin;
use openclaw_journal::rights::Rights;
use openclaw_runtime::messages::turn::MessageTurn;

use crate::invoke::CallerChannel;
use crate::lent::LanePlace;

/// Run whose tools make requests.
pub struct CallingRun {
    /// The run, its session, and what it has sent.
    pub turn: Arc<MessageTurn>,
    /// Agent of the run.
    pub agent: ResolvedAgent,
    /// Rights of the run.
    pub rights: Rights,
    /// Conversation that it was asked for in, if on a chat platform.
    pub origin: Option<Box<Origin>>,
    /// True if a person asked for it.
    pub by_person: bool,
    /// Count of automatic steps that led to it since a person or the clock began.
    pub lineage: Lineage,
    /// Place in its global lane; `None` if no session stands still for it, because a client calls
    /// the tool.
    pub place: Option<Arc<LanePlace>>,
    /// Channel and account that such a client says it speaks on.
    pub caller: CallerChannel,
}

impl CallingRun {
    /// Returns the conversation that the run is bound to, if there is one.
    pub fn bound_to(&self) -> Option<&Address> {
        self.turn.bound.as_ref().map(|bound| &bound.address)
    }
}
