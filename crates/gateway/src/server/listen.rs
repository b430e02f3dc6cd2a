//! Listening addresses of the gateway (spec `operations.md` §1.2). An address that can't be had is
//! a failure, never a reason to listen on more.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use openclaw_config::gateway_options::GatewayOptions;
use openclaw_config::settings::BindMode;
use tokio::net::{TcpListener, TcpSocket};

use crate::host::tailnet;

/// Connections the system keeps ready for us; enough for a few hundred clients that start at once.
const BACKLOG: u32 = 1_024;

/// Reason why the gateway does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process listens there already; the operator stops it or chooses another port.
    #[error("another gateway instance is already listening on ws://{address}")]
    InUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The system refuses for another reason.
    #[error("failed to bind gateway socket on ws://{address}: {source}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// Error from the system.
        source: std::io::Error,
    },
    /// `bind: "tailnet"` without a Tailscale address.
    #[error(
        "gateway.bind is tailnet, but this machine has no Tailscale address (100.64.0.0/10); start Tailscale or choose another bind"
    )]
    NoTailnet,
    /// `bind: "custom"` without an address.
    #[error(
        "gateway.bind is custom, but gateway.customBindHost is not set; set it, for example to 192.168.1.10"
    )]
    NoCustomHost,
}

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenAddress {
    /// The address.
    pub(crate) ip: IpAddr,
    /// True if the gateway does without the address when it can't be had.
    pub(crate) optional: bool,
}

/// The addresses of a bind mode, the main one first.
pub(crate) fn wanted(
    bind: BindMode,
    custom: Option<IpAddr>,
    own: &[IpAddr],
) -> Result<Vec<ListenAddress>, ListenError> {
    let needed = |ip| ListenAddress { ip, optional: false };
    let also = |ip| ListenAddress { ip, optional: true };
    let with_loopback = |ip: IpAddr| {
        let is_v4_loopback = ip == IpAddr::V4(Ipv4Addr::LOCALHOST);
        let alias = is_v4_loopback.then(|| also(Ipv6Addr::LOCALHOST.into()));
        std::iter::once(needed(ip)).chain(alias).collect()
    };
    match bind {
        BindMode::Loopback | BindMode::Auto => Ok(with_loopback(Ipv4Addr::LOCALHOST.into())),
        BindMode::Lan => Ok(vec![needed(Ipv4Addr::UNSPECIFIED.into())]),
        BindMode::Tailnet => Ok(vec![needed(tailnet(own).ok_or(ListenError::NoTailnet)?.into())]),
        BindMode::Custom => custom.map(with_loopback).ok_or(ListenError::NoCustomHost),
    }
}

/// Listens. All listeners share one port, also when the system chose it.
pub(crate) fn listen(options: &GatewayOptions, own: &[IpAddr]) -> Result<Vec<TcpListener>, ListenError> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    for ListenAddress { ip, optional } in wanted(options.bind, options.custom_bind_host, own)? {
        let chosen = listeners.first().and_then(|first| first.local_addr().ok());
        let address = SocketAddr::new(ip, chosen.map_or(options.port, |first| first.port()));
        match bind(address) {
            Ok(listener) => listeners.push(listener),
            Err(error) if optional => tracing::warn!(%address, %error, "not listening on the loopback alias"),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                return Err(ListenError::InUse { address });
            }
            Err(source) => return Err(ListenError::Bind { address, source }),
        }
    }
    Ok(listeners)
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A gateway that restarts finds its port waiting for old connections to fade.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bind_mode_never_listens_on_more_than_it_says() {
        let own = ["127.0.0.1", "192.168.1.10", "100.64.0.7"].map(|ip| ip.parse().unwrap());
        let custom = Some("192.168.1.10".parse().unwrap());
        let rows = [
            (BindMode::Loopback, None, "127.0.0.1 [::1]"),
            (BindMode::Auto, None, "127.0.0.1 [::1]"),
            (BindMode::Lan, None, "0.0.0.0"),
            (BindMode::Tailnet, None, "100.64.0.7"),
            (BindMode::Custom, custom, "192.168.1.10"),
            (BindMode::Custom, Some("127.0.0.1".parse().unwrap()), "127.0.0.1 [::1]"),
        ];
        for (mode, custom, expect) in rows {
            let shown = wanted(mode, custom, &own).unwrap().into_iter();
            let shown = shown.map(|w| if w.optional { format!("[{}]", w.ip) } else { w.ip.to_string() });
            assert_eq!(shown.collect::<Vec<_>>().join(" "), expect, "{mode:?}");
        }
        assert!(matches!(wanted(BindMode::Tailnet, None, &[]), Err(ListenError::NoTailnet)));
        assert!(matches!(wanted(BindMode::Custom, None, &own), Err(ListenError::NoCustomHost)));
    }

    #[tokio::test]
    async fn a_port_in_use_is_named() {
        let first = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = first.local_addr().unwrap();
        assert_eq!(bind(address).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
        let error = ListenError::InUse { address };
        assert_eq!(
            error.to_string(),
            format!("another gateway instance is already listening on ws://{address}")
        );
    }
}
