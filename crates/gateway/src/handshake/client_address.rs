//! Where a client really is: its address behind proxies, and whether it is on this host (spec `gateway-protocol.md` §3.8).

use std::net::{IpAddr, SocketAddr};

/// What the HTTP upgrade told about the client. Headers are kept as sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origination {
    /// The TCP peer.
    pub peer: SocketAddr,
    /// The gateway's end of the TCP connection.
    pub local: SocketAddr,
    /// `Host`.
    pub host: Option<String>,
    /// `Origin`.
    pub origin: Option<String>,
    /// `X-Forwarded-For`.
    pub forwarded_for: Option<String>,
    /// `X-Real-IP`.
    pub real_ip: Option<String>,
    /// `X-Forwarded-Host`.
    pub forwarded_host: Option<String>,
    /// `X-Forwarded-Proto`.
    pub forwarded_proto: Option<String>,
}

impl Origination {
    /// A connection without any header: what a plain socket looks like.
    pub fn bare(peer: SocketAddr, local: SocketAddr) -> Self {
        Self {
            peer,
            local,
            host: None,
            origin: None,
            forwarded_for: None,
            real_ip: None,
            forwarded_host: None,
            forwarded_proto: None,
        }
    }

    fn has_proxy_headers(&self) -> bool {
        self.forwarded_for.is_some() || self.real_ip.is_some() || self.forwarded_host.is_some()
    }
}

/// The addresses that decide who counts as local.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressBook {
    /// `gateway.trustedProxies`: exact addresses.
    pub trusted_proxies: Vec<IpAddr>,
    /// This host's own interface addresses.
    pub own: Vec<IpAddr>,
}

/// A client's address and standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// The client's address as far as it can be known; behind a trusted proxy, what the proxy says.
    pub ip: IpAddr,
    /// Whether the client runs on this host: pairing is silent and no nonce is needed.
    pub is_local: bool,
    /// Whether forwarding headers came from a peer that isn't a trusted proxy.
    pub has_untrusted_proxy_headers: bool,
}

impl ClientAddress {
    /// Works out the address of a client.
    pub fn of(origination: &Origination, book: &AddressBook) -> Self {
        let peer = plain(origination.peer.ip());
        let is_proxy = book.trusted_proxies.contains(&peer);
        let ip = if is_proxy { behind_proxy(origination).unwrap_or(peer) } else { peer };
        let has_untrusted_proxy_headers = !is_proxy && origination.has_proxy_headers();
        let here = |ip: &IpAddr| ip.is_loopback() || book.own.contains(ip);
        let is_local = here(&ip) && !has_untrusted_proxy_headers && names_this_host(origination, book);
        Self { ip, is_local, has_untrusted_proxy_headers }
    }

    /// The address to show and store: only of remote clients, and only when it can be trusted.
    pub fn remote_ip(&self) -> Option<IpAddr> {
        let shown = !self.is_local && !self.has_untrusted_proxy_headers && !self.ip.is_loopback();
        shown.then_some(self.ip)
    }
}

/// IPv4 addresses in their plain form: `::ffff:127.0.0.1` is `127.0.0.1`.
pub(crate) fn plain(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// The client's address as a proxy reports it: first element of `X-Forwarded-For`, else `X-Real-IP`.
fn behind_proxy(origination: &Origination) -> Option<IpAddr> {
    let first = origination.forwarded_for.as_deref().and_then(|list| list.split(',').next());
    let forwarded = first.and_then(parse_address);
    forwarded.or_else(|| origination.real_ip.as_deref().and_then(parse_address))
}

/// An address with or without port and brackets.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let ip = text.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    ip.or_else(with_port).or_else(bracketed).map(plain)
}

/// Whether the `Host` header names this host. A page that tricks a browser through DNS sends its own name here.
fn names_this_host(origination: &Origination, book: &AddressBook) -> bool {
    let Some(name) = origination.host.as_deref().map(host_name) else { return false };
    if name == "localhost" || name.ends_with(".ts.net") {
        return true;
    }
    name.parse::<IpAddr>().is_ok_and(|ip| {
        let ip = plain(ip);
        ip == IpAddr::from([127, 0, 0, 1])
            || ip == IpAddr::from(std::net::Ipv6Addr::LOCALHOST)
            || book.own.contains(&ip)
    })
}

/// The name part of a `Host` header: lower case, without port, brackets and the dot that marks a full name.
pub(crate) fn host_name(host: &str) -> String {
    let host = host.trim().to_ascii_lowercase();
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    if let Some((address, _)) = bracketed.filter(|(_, port)| port.is_empty() || port.starts_with(':')) {
        return address.to_owned();
    }
    let name = match host.rsplit_once(':') {
        Some((name, _)) if !name.contains(':') => name,
        _ => &host,
    };
    name.strip_suffix('.').unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row {
        peer: &'static str,
        host: &'static str,
        forwarded_for: Option<&'static str>,
        trusted: &'static [&'static str],
        ip: &'static str,
        is_local: bool,
    }

    fn check(row: &Row) {
        let peer = SocketAddr::new(row.peer.parse().unwrap(), 40_000);
        let mut origination = Origination::bare(peer, "127.0.0.1:18789".parse().unwrap());
        origination.host = Some(row.host.to_owned());
        origination.forwarded_for = row.forwarded_for.map(str::to_owned);
        let book = AddressBook {
            trusted_proxies: row.trusted.iter().map(|ip| ip.parse().unwrap()).collect(),
            own: vec!["100.64.0.7".parse().unwrap()],
        };
        let address = ClientAddress::of(&origination, &book);
        let label = format!("{} {} {:?} {:?}", row.peer, row.host, row.forwarded_for, row.trusted);
        assert_eq!((address.ip.to_string().as_str(), address.is_local), (row.ip, row.is_local), "{label}");
    }

    fn row(peer: &'static str, host: &'static str, ip: &'static str, is_local: bool) -> Row {
        Row { peer, host, forwarded_for: None, trusted: &[], ip, is_local }
    }

    /// The table of §3.8, and decision 10 (the host's own addresses count as local).
    #[test]
    fn local_clients_are_those_on_this_host_that_no_proxy_brought() {
        let proxied = |host, forwarded, trusted, ip, is_local| Row {
            forwarded_for: Some(forwarded),
            trusted,
            ..row("127.0.0.1", host, ip, is_local)
        };
        let rows = [
            row("127.0.0.1", "localhost:18789", "127.0.0.1", true),
            row("127.0.0.1", "127.0.0.1:18789", "127.0.0.1", true),
            row("::1", "[::1]:18789", "::1", true),
            row("::ffff:127.0.0.1", "LOCALHOST", "127.0.0.1", true),
            row("127.0.0.1", "gateway.example.net", "127.0.0.1", false),
            row("127.0.0.1", "evil.ts.net.example.net", "127.0.0.1", false),
            row("127.0.0.1", "host.tail.ts.net", "127.0.0.1", true),
            proxied("host.tail.ts.net", "100.64.0.9", &[], "127.0.0.1", false),
            proxied("localhost", "127.0.0.1", &["127.0.0.1"], "127.0.0.1", true),
            proxied("localhost", "203.0.113.5", &["127.0.0.1"], "203.0.113.5", false),
            proxied("localhost", "203.0.113.5:9, 10.0.0.1", &["127.0.0.1"], "203.0.113.5", false),
            row("192.168.1.5", "192.168.1.2", "192.168.1.5", false),
            row("100.64.0.7", "100.64.0.7:18789", "100.64.0.7", true),
            row("100.64.0.7", "gateway.example.net", "100.64.0.7", false),
            row("100.64.0.8", "100.64.0.7:18789", "100.64.0.8", false),
        ];
        rows.iter().for_each(check);
    }

    #[test]
    fn a_missing_host_header_is_not_local() {
        let origination = Origination::bare("127.0.0.1:4".parse().unwrap(), "127.0.0.1:5".parse().unwrap());
        assert!(!ClientAddress::of(&origination, &AddressBook::default()).is_local);
    }

    #[test]
    fn addresses_are_shown_only_when_remote_and_trusted() {
        let book = AddressBook { trusted_proxies: vec!["10.0.0.1".parse().unwrap()], own: Vec::new() };
        let rows = [
            ("127.0.0.1", None, None),
            ("192.168.1.5", None, Some("192.168.1.5")),
            ("192.168.1.5", Some("203.0.113.5"), None),
            ("10.0.0.1", Some("203.0.113.5"), Some("203.0.113.5")),
        ];
        for (peer, forwarded, expect) in rows {
            let peer = SocketAddr::new(peer.parse().unwrap(), 1);
            let mut origination = Origination::bare(peer, "10.0.0.9:1".parse().unwrap());
            origination.host = Some("gateway.example.net".to_owned());
            origination.forwarded_for = forwarded.map(str::to_owned);
            let shown = ClientAddress::of(&origination, &book).remote_ip().map(|ip| ip.to_string());
            assert_eq!(shown.as_deref(), expect, "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn host_names_lose_port_and_brackets() {
        let rows = [
            ("A.b:1", "a.b"),
            ("[::1]:18789", "::1"),
            ("[::1]", "::1"),
            ("::1", "::1"),
            ("[::1].x", "[::1].x"),
            ("x", "x"),
            ("x.y.:1", "x.y"),
            ("", ""),
        ];
        for (host, expect) in rows {
            assert_eq!(host_name(host), expect, "{host:?}");
        }
    }
}
