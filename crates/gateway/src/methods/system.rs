//! `system-presence` and `system-event` (spec `gateway-protocol.md` §6.1, §8.1).

use std::sync::Arc;

use openclaw_dispatch::SystemEvents;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::Ignored;
use openclaw_protocol::params::system::{Done, PresenceEntry, SystemEventParams};

use super::keys::given;
use crate::clock::now_ms;
use crate::current_settings::CurrentSettings;
use crate::fan_out::EventHub;
use crate::presence::{Presence, note_of};
use crate::request::RequestFailure;

/// Parts of the gateway that `system-presence` and `system-event` use.
pub(super) struct SystemMethods {
    pub(super) settings: CurrentSettings,
    pub(super) presence: Arc<Presence>,
    pub(super) system_events: Arc<SystemEvents>,
    pub(super) events: Arc<EventHub>,
}

pub(super) async fn presence(
    parts: &SystemMethods,
    _: Ignored,
) -> Result<Vec<PresenceEntry>, RequestFailure> {
    Ok(parts.presence.list())
}

/// Updates presence, queues what the agent should know for the main session, and broadcasts
/// `presence`.
pub(super) async fn event(parts: &SystemMethods, params: SystemEventParams) -> Result<Done, RequestFailure> {
    let text = given(params.text.as_deref()).ok_or_else(|| ErrorShape::invalid("text required"))?;
    let report = parts.presence.report(&params, text);
    tracing::info!(presence = %report.key, reason = report.after.reason.as_deref(), "presence reported");
    let session = parts.settings.main_session_key();
    let context = format!("node:{}", report.key);
    let is_same = parts.system_events.is_last_about(&session, &context);
    if let Some(line) = note_of(text, &report, is_same) {
        let about = text.starts_with("Node:").then_some(context.as_str());
        parts.system_events.enqueue(&session, &line, about, now_ms());
    }
    parts.events.presence_changed();
    parts.presence.broadcast(&parts.events);
    Ok(Done::OK)
}
