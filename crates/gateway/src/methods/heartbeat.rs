//! `last-heartbeat`, `set-heartbeats`, `wake` (spec `gateway-protocol.md` §6.1).

use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::Ignored;
use openclaw_protocol::params::heartbeat::{
    HeartbeatEvent, HeartbeatsSet, SetHeartbeatsParams, WakeMode, WakeParams,
};
use openclaw_protocol::params::system::Done;

use crate::clock::now_ms;
use crate::heartbeat::{Reason, Wish};
use crate::request::{Failure, RequestContext};

pub(super) async fn last(ctx: RequestContext, _params: Ignored) -> Result<Option<HeartbeatEvent>, Failure> {
    Ok(ctx.gateway.heartbeats.last())
}

pub(super) async fn set(ctx: RequestContext, params: SetHeartbeatsParams) -> Result<HeartbeatsSet, Failure> {
    let Some(enabled) = params.enabled else {
        return Err(ErrorShape::invalid("invalid set-heartbeats params: enabled (boolean) required").into());
    };
    ctx.gateway.heartbeats.set_enabled(enabled);
    tracing::info!(enabled, "heartbeats");
    Ok(HeartbeatsSet { ok: true, enabled })
}

pub(super) async fn wake(ctx: RequestContext, params: WakeParams) -> Result<Done, Failure> {
    let gateway = &ctx.gateway;
    let key = gateway.main_session_key();
    let ok = gateway.system_events.enqueue_for_beat(&key, &params.text.0, now_ms());
    if ok && params.mode == WakeMode::Now {
        gateway.heartbeats.wish(Wish { reason: Reason::Wake, agent: None });
    }
    Ok(Done { ok })
}
