//! The `hello-ok` payload (spec `gateway-protocol.md` §3.4).

use openclaw_protocol::event;
use openclaw_protocol::frame::PROTOCOL_VERSION;
use openclaw_protocol::method;
use openclaw_protocol::params::connect::{
    Features, HelloAuth, HelloKind, HelloOk, HelloServer, MaybeHealth, Policy, Snapshot,
};

use super::SocketParts;
use crate::connection::{ConnectionInfo, SLOW_BYTES, frame_budget};
use crate::host::VERSION;
use crate::methods;
use crate::pairing::DeviceToken;
use crate::ticker::TICK;

/// Puts the payload together from how things stand now.
pub(super) fn hello(parts: &SocketParts, info: &ConnectionInfo, token: Option<&DeviceToken>) -> HelloOk {
    let (health, about) = (parts.health.last(), &parts.about);
    HelloOk {
        kind: HelloKind::HelloOk,
        protocol: PROTOCOL_VERSION,
        server: HelloServer {
            version: VERSION.to_owned(),
            commit: None,
            host: about.host.clone(),
            conn_id: info.conn_id.as_str().to_owned(),
        },
        features: Features {
            methods: method::advertised()
                .filter(|name| methods::find(name).is_some())
                .map(str::to_owned)
                .collect(),
            events: event::advertised().map(str::to_owned).collect(),
        },
        snapshot: Snapshot {
            presence: parts.presence.list(),
            health: health
                .map_or(MaybeHealth::Unknown {}, |known| MaybeHealth::Known(Box::new((*known).clone()))),
            state_version: parts.events.state_version(),
            uptime_ms: u64::try_from(about.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            config_path: about.config_path.display().to_string(),
            state_dir: about.state_dir.display().to_string(),
            session_defaults: parts.settings.session_defaults(),
        },
        canvas_host_url: None,
        auth: token.map(|token| HelloAuth {
            device_token: token.token.clone(),
            role: info.role,
            scopes: token.scopes.clone(),
            issued_at_ms: token.issued_at_ms(),
        }),
        policy: Policy {
            max_payload: frame_budget::largest(info.role).into(),
            max_buffered_bytes: SLOW_BYTES as u64,
            tick_interval_ms: u64::try_from(TICK.as_millis()).unwrap_or(u64::MAX),
        },
    }
}
