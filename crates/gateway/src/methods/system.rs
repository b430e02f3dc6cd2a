//! `system-presence` and `system-event` (spec `gateway-protocol.md` §6.1, §8.1).

use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::Ignored;
use openclaw_protocol::params::system::{Done, PresenceEntry, SystemEventParams};

use super::keys::given;
use crate::request::{Failure, RequestContext};

pub(super) async fn presence(ctx: RequestContext, _params: Ignored) -> Result<Vec<PresenceEntry>, Failure> {
    Ok(ctx.gateway.presence.list())
}

pub(super) async fn event(ctx: RequestContext, params: SystemEventParams) -> Result<Done, Failure> {
    let text = given(params.text.as_deref()).ok_or_else(|| ErrorShape::invalid("text required"))?;
    ctx.gateway.system_event(&params, text);
    Ok(Done::OK)
}
