//! Where the end of a sub-agent is told.

use openclaw_channels::Address;
use openclaw_sessions::SessionKey;
use openclaw_sessions::entry::{DeliveryContext, ThreadId};

use crate::request::WEBCHAT;
use crate::runner::Runner;

/// What is remembered of a conversation.
pub(crate) fn origin_of(address: &Address) -> DeliveryContext {
    let Address { channel, account, target, thread } = address;
    let thread = thread.as_deref();
    DeliveryContext {
        channel: Some(channel.as_str().into()),
        to: Some(target.as_str().into()),
        account_id: Some(account.as_str().into()),
        thread_id: thread.map(|id| id.parse().map_or_else(|_| ThreadId::Text(id.into()), ThreadId::Number)),
        ..DeliveryContext::default()
    }
}

/// What is remembered of a client of the gateway.
pub(crate) fn webchat() -> DeliveryContext {
    DeliveryContext { channel: Some(WEBCHAT.into()), ..DeliveryContext::default() }
}

impl Runner {
    /// The conversation a sub-agent was started from, or else the one its requester's session is answered in. `None` where that is a
    /// client of the gateway.
    pub(super) async fn announced_in(
        &self,
        origin: Option<&DeliveryContext>,
        key: &SessionKey,
    ) -> Option<Address> {
        match origin {
            Some(origin) if origin.channel.as_deref() == Some(WEBCHAT) => None,
            Some(origin) if origin.to.is_some() => self.address_of(origin),
            // An older version remembered the channel alone.
            Some(_) | None => self.route_of(key).await,
        }
    }
}
