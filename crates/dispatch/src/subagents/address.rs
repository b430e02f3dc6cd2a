//! Address at which the end of a sub-agent is told.

use openclaw_channels::Address;
use openclaw_journal::request::WEBCHAT;
use openclaw_sessions::SessionKey;
use openclaw_sessions::entry::{DeliveryContext, ThreadId};

use crate::parts::ChildParts;

/// Returns the form in which a conversation is remembered.
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

/// Returns the form in which a client of the gateway is remembered.
pub(crate) fn webchat() -> DeliveryContext {
    DeliveryContext { channel: Some(WEBCHAT.into()), ..DeliveryContext::default() }
}

/// Returns the conversation that a sub-agent was started from, or else the one its requester's
/// session is answered in. `None` for a client of the gateway.
pub(super) async fn announced_in(
    parts: &ChildParts,
    origin: Option<&DeliveryContext>,
    key: &SessionKey,
) -> Option<Address> {
    match origin {
        Some(origin) if origin.channel.as_deref() == Some(WEBCHAT) => None,
        Some(origin) if origin.to.is_some() => parts.routes.address_of(origin),
        // An older version remembered the channel alone.
        Some(_) | None => parts.routes.route_of(key).await,
    }
}
