//! `last-heartbeat`, `set-heartbeats`, `wake` (spec `gateway-protocol.md` §6.1).

use std::sync::Arc;

use openclaw_dispatch::SystemEvents;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::Ignored;
use openclaw_protocol::params::heartbeat::{
    HeartbeatEvent, HeartbeatsSet, SetHeartbeatsParams, WakeMode, WakeParams,
};
use openclaw_protocol::params::system::Done;

use crate::clock::now_ms;
use crate::current_settings::CurrentSettings;
use crate::heartbeat::{HeartbeatReason, HeartbeatRequest, Heartbeats};
use crate::request::RequestFailure;

/// Parts of the gateway that `last-heartbeat`, `set-heartbeats` and `wake` use.
pub(super) struct HeartbeatMethods {
    pub(super) settings: CurrentSettings,
    pub(super) heartbeats: Arc<Heartbeats>,
    pub(super) system_events: Arc<SystemEvents>,
}

pub(super) async fn last(
    parts: &HeartbeatMethods,
    _: Ignored,
) -> Result<Option<HeartbeatEvent>, RequestFailure> {
    Ok(parts.heartbeats.last())
}

pub(super) async fn set(
    parts: &HeartbeatMethods,
    params: SetHeartbeatsParams,
) -> Result<HeartbeatsSet, RequestFailure> {
    let Some(enabled) = params.enabled else {
        return Err(ErrorShape::invalid("invalid set-heartbeats params: enabled (boolean) required").into());
    };
    parts.heartbeats.set_enabled(enabled);
    tracing::info!(enabled, "heartbeats");
    Ok(HeartbeatsSet { ok: true, enabled })
}

pub(super) async fn wake(parts: &HeartbeatMethods, params: WakeParams) -> Result<Done, RequestFailure> {
    let key = parts.settings.main_session_key();
    let ok = parts.system_events.enqueue_for_beat(&key, &params.text.0, now_ms());
    if ok && params.mode == WakeMode::Now {
        parts.heartbeats.wish(HeartbeatRequest { reason: HeartbeatReason::Wake, agent: None });
    }
    Ok(Done { ok })
}
