//! The `hello-ok` payload (spec `gateway-protocol.md` §3.4).

use std::net::SocketAddr;

use openclaw_protocol::event;
use openclaw_protocol::frame::PROTOCOL_VERSION;
use openclaw_protocol::method;
use openclaw_protocol::params::connect::{
    Features, HelloAuth, HelloKind, HelloOk, HelloServer, MaybeHealth, Policy, Snapshot,
};

use super::ConnectionInfo;
use super::frame_budget;
use super::outbound::SLOW_BYTES;
use crate::handshake::Origination;
use crate::handshake::client_address::plain;
use crate::host::VERSION;
use crate::methods;
use crate::pairing::DeviceToken;
use crate::server::ticker::TICK;
use crate::state::GatewayState;

/// Puts the payload together from how things stand now.
pub(super) fn hello(
    state: &GatewayState,
    info: &ConnectionInfo,
    token: Option<&DeviceToken>,
    origination: &Origination,
) -> HelloOk {
    let health = state.health.last();
    HelloOk {
        kind: HelloKind::HelloOk,
        protocol: PROTOCOL_VERSION,
        server: HelloServer {
            version: VERSION.to_owned(),
            commit: None,
            host: state.host.name.clone(),
            conn_id: info.conn_id.as_str().to_owned(),
        },
        features: Features {
            methods: method::advertised()
                .filter(|name| methods::find(name).is_some())
                .map(str::to_owned)
                .collect(),
            events: event::EVENTS.iter().map(|event| event.name.to_owned()).collect(),
        },
        snapshot: Snapshot {
            presence: state.presence.list(),
            health: health
                .map_or(MaybeHealth::Unknown {}, |known| MaybeHealth::Known(Box::new((*known).clone()))),
            state_version: state.events.state_version(),
            uptime_ms: state.uptime_ms(),
            config_path: state.paths().config_path().display().to_string(),
            state_dir: state.paths().state_dir().display().to_string(),
            session_defaults: state.session_defaults(),
        },
        canvas_host_url: Some(canvas_host_url(origination, state.port)),
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

/// Where a client finds the gateway's HTTP side: under the name by which it came, at the gateway's port.
fn canvas_host_url(origination: &Origination, port: u16) -> String {
    let is_https =
        origination.forwarded_proto.as_deref().is_some_and(|proto| proto.eq_ignore_ascii_case("https"));
    let scheme = if is_https { "https" } else { "http" };
    let name = origination.host.as_deref().map(crate::handshake::client_address::host_name);
    let local = SocketAddr::new(plain(origination.local.ip()), port);
    match name.filter(|name| !name.is_empty()) {
        Some(name) if name.contains(':') => format!("{scheme}://[{name}]:{port}"),
        Some(name) => format!("{scheme}://{name}:{port}"),
        None => format!("{scheme}://{local}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canvas_is_where_the_client_came_to() {
        let rows = [
            (Some("127.0.0.1:18789"), None, "http://127.0.0.1:18789"),
            (Some("[::1]:18789"), None, "http://[::1]:18789"),
            (Some("gw.example.net"), Some("https"), "https://gw.example.net:18789"),
            (None, None, "http://192.168.1.2:18789"),
        ];
        for (host, proto, expect) in rows {
            let mut origination =
                Origination::bare("10.0.0.1:5".parse().unwrap(), "192.168.1.2:18789".parse().unwrap());
            origination.host = host.map(str::to_owned);
            origination.forwarded_proto = proto.map(str::to_owned);
            assert_eq!(canvas_host_url(&origination, 18_789), expect);
        }
    }
}
