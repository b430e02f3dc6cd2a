//! Requests of tools to the gateway, one file a family. [`ToolHost`] knows which run asks.

mod control;
mod images;
mod memory;
mod messages;
mod sessions;
mod subagents;

use std::sync::Arc;

use openclaw_agent::host::{
    ControlHost, Host, ImagesHost, MemoryHost, MessagesHost, SessionsHost, SubagentsHost,
};
use openclaw_runs::CallingRun;
use openclaw_runs::calling_run::CallerChannel;
use openclaw_sessions::entry::DeliveryContext;

use crate::parts::{DispatchFamilies, ToolHostParts};

/// The gateway as the tools of one run see it.
pub(crate) struct ToolHost {
    parts: Arc<DispatchFamilies>,
    run: CallingRun,
}

impl ToolHost {
    pub(crate) fn new(parts: Arc<DispatchFamilies>, run: CallingRun) -> Self {
        Self { parts, run }
    }

    fn tools(&self) -> &ToolHostParts {
        &self.parts.tools
    }

    /// Returns the conversation in which the run was asked for; `None` if a program asked for it.
    fn asked_in(&self) -> Option<DeliveryContext> {
        let CallerChannel { channel, account } = &self.run.caller;
        match (&self.run.turn.bound, channel) {
            (Some(bound), _) => Some(crate::subagents::origin_of(&bound.address)),
            (None, Some(channel)) => Some(DeliveryContext {
                channel: Some(channel.as_str().into()),
                account_id: account.as_deref().map(Box::from),
                ..DeliveryContext::default()
            }),
            (None, None) => self.run.by_person.then(crate::subagents::webchat),
        }
    }
}

impl Host for ToolHost {
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

    fn memory(&self) -> Option<&dyn MemoryHost> {
        Some(self)
    }

    fn subagents(&self) -> Option<&dyn SubagentsHost> {
        Some(self)
    }
}
