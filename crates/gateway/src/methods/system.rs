//! `system-presence` and `system-event` (spec `gateway-protocol.md` §6.1, §8.1).

use std::future::{Future, ready};

use openclaw_protocol::ErrorShape;
use openclaw_protocol::event::PresenceEntry;
use openclaw_protocol::params::Ignored;
use openclaw_protocol::params::system::{Done, SystemEventParams};

use super::keys::given;
use crate::request::{Failure, RequestContext};

pub(super) fn presence(
    ctx: RequestContext,
    _params: Ignored,
) -> impl Future<Output = Result<Vec<PresenceEntry>, Failure>> {
    ready(Ok(ctx.gateway.presence.list()))
}

pub(super) fn event(
    ctx: RequestContext,
    params: SystemEventParams,
) -> impl Future<Output = Result<Done, Failure>> {
    let Some(text) = given(params.text.as_deref()) else {
        return ready(Err(ErrorShape::invalid("text required").into()));
    };
    ctx.gateway.system_event(&params, text);
    ready(Ok(Done::OK))
}
