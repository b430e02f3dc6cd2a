//! What tools ask of the gateway, one file a family. [`RunHost`] knows which run asks.

mod control;
mod images;
mod messages;
mod sessions;
mod subagents;

use std::sync::Arc;

use openclaw_agent::host::{ControlHost, Host, ImagesHost, MessagesHost, SessionsHost, SubagentsHost};
use openclaw_config::ResolvedAgent;
use openclaw_sessions::entry::DeliveryContext;

use crate::lineage::Lineage;
use crate::messages::turn::MessageTurn;
use crate::origin::Origin;
use crate::runner::Runner;
use crate::runner::lent::LanePlace;
use crate::session_tools::invoke::CallerChannel;

/// The run whose tools ask.
pub(crate) struct CallingRun {
    /// The run, its session, and what it has sent.
    pub(crate) turn: Arc<MessageTurn>,
    pub(crate) agent: ResolvedAgent,
    /// Whether its tools are held in a sandbox.
    pub(crate) is_sandboxed: bool,
    /// Where it was asked for, if on a chat platform.
    pub(crate) origin: Option<Box<Origin>>,
    /// Whether a person asked for it.
    pub(crate) by_person: bool,
    /// What it follows from that no person said.
    pub(crate) lineage: Lineage,
    /// Its place in its global lane; `None` where no session stands still for it: a client calls the tool.
    pub(crate) place: Option<Arc<LanePlace>>,
    /// Where such a client says that it speaks.
    pub(crate) caller: CallerChannel,
}

impl CallingRun {
    /// Where it was asked for; `None` where a program did.
    fn asked_in(&self) -> Option<DeliveryContext> {
        let CallerChannel { channel, account } = &self.caller;
        match (&self.turn.bound, channel) {
            (Some(bound), _) => Some(crate::subagents::origin_of(&bound.address)),
            (None, Some(channel)) => Some(DeliveryContext {
                channel: Some(channel.as_str().into()),
                account_id: account.as_deref().map(Box::from),
                ..DeliveryContext::default()
            }),
            (None, None) => self.by_person.then(crate::subagents::webchat),
        }
    }
}

/// The gateway as the tools of one run see it.
pub(crate) struct RunHost {
    runner: Arc<Runner>,
    run: CallingRun,
}

impl RunHost {
    pub(crate) fn new(runner: Arc<Runner>, run: CallingRun) -> Self {
        Self { runner, run }
    }
}

impl Host for RunHost {
    fn sessions(&self) -> Option<&dyn SessionsHost> {
        Some(self)
    }

    fn messages(&self) -> Option<&dyn MessagesHost> {
        Some(self)
    }

    fn images(&self) -> Option<&dyn ImagesHost> {
        Some(self)
    }

    fn control(&self) -> Option<&dyn ControlHost> {
        self.gateway().map(|_| self as &dyn ControlHost)
    }

    fn subagents(&self) -> Option<&dyn SubagentsHost> {
        Some(self)
    }
}

/// Nobody who could be asked: the gateway is gone.
pub(crate) struct NoHost;

impl Host for NoHost {}
