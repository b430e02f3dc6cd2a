//! Requests of tools to the gateway, one file a family. [`RunHost`] knows which run asks.

mod control;
mod images;
mod messages;
mod sessions;
mod subagents;

use std::sync::Arc;

use openclaw_agent::host::{ControlHost, Host, ImagesHost, MessagesHost, SessionsHost, SubagentsHost};
use openclaw_config::ResolvedAgent;
use openclaw_journal::lineage::Lineage;
use openclaw_journal::origin::Origin;
use openclaw_journal::rights::Rights;
use openclaw_sessions::entry::DeliveryContext;

use crate::runner::Runner;
use crate::runner::lent::LanePlace;
use crate::session_tools::invoke::CallerChannel;
use openclaw_runtime::messages::turn::MessageTurn;

/// Run whose tools make requests.
pub(crate) struct CallingRun {
    /// The run, its session, and what it has sent.
    pub(crate) turn: Arc<MessageTurn>,
    pub(crate) agent: ResolvedAgent,
    /// Rights of the run.
    pub(crate) rights: Rights,
    /// Conversation that it was asked for in, if on a chat platform.
    pub(crate) origin: Option<Box<Origin>>,
    /// True if a person asked for it.
    pub(crate) by_person: bool,
    /// Count of automatic steps that led to it since a person or the clock began.
    pub(crate) lineage: Lineage,
    /// Place in its global lane; `None` if no session stands still for it, because a client calls
    /// the tool.
    pub(crate) place: Option<Arc<LanePlace>>,
    /// Channel and account that such a client says it speaks on.
    pub(crate) caller: CallerChannel,
}

impl CallingRun {
    /// Returns the conversation in which the run was asked for; `None` if a program asked for it.
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

/// Host of tools whose gateway is gone: every request fails.
pub(crate) struct NoHost;

impl Host for NoHost {}
