//! Real address of a client: behind proxies, and on this host or not (spec `gateway-protocol.md`
//! §3.8).

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use ipnet::IpNet;

/// Headers by which proxies say that they pass on what somebody else asked for.
const FORWARDING: &[&str] =
    &["forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip"];
/// Beginnings of the names of more such headers.
const FORWARDING_FAMILIES: &[&str] = &["x-forwarded", "x-original-forwarded"];

fn is_forwarding(name: &str) -> bool {
    FORWARDING.contains(&name) || FORWARDING_FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Facts about the client from the HTTP upgrade. Headers are kept as sent.
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
    /// True if there was any forwarding header, even one that none of the fields above can hold.
    pub has_forwarding_headers: bool,
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
            has_forwarding_headers: false,
        }
    }

    /// Reads a request's headers. Headers of proxies count together: a list may be spread over
    /// several headers, and a proxy adds its part at the end. A client's own part may hold any
    /// bytes and must not hide what the proxy wrote behind it.
    pub(crate) fn of(headers: &HeaderMap, peer: SocketAddr, local: SocketAddr) -> Self {
        let first = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let last = |name: &str| headers.get_all(name).iter().next_back().map(lossy);
        let list = headers.get_all("x-forwarded-for").iter().map(lossy).collect::<Vec<_>>().join(",");
        Self {
            peer,
            local,
            host: host(headers).map(str::to_owned),
            origin: origin(headers).map(str::to_owned),
            forwarded_for: headers.contains_key("x-forwarded-for").then_some(list),
            real_ip: last("x-real-ip"),
            forwarded_host: first("x-forwarded-host"),
            forwarded_proto: first("x-forwarded-proto"),
            has_forwarding_headers: headers.keys().any(|name| is_forwarding(name.as_str())),
        }
    }

    fn is_forwarded(&self) -> bool {
        self.has_forwarding_headers
            || self.forwarded_for.is_some()
            || self.real_ip.is_some()
            || self.forwarded_host.is_some()
            || self.forwarded_proto.is_some()
    }
}

/// The `Host`, when there is exactly one.
pub(crate) fn host(headers: &HeaderMap) -> Option<&str> {
    let mut hosts = headers.get_all(HOST).iter();
    let only = hosts.next().filter(|_| hosts.next().is_none())?;
    only.to_str().ok()
}

/// The `Origin`; one that can't be read is still one.
pub(crate) fn origin(headers: &HeaderMap) -> Option<&str> {
    headers.get(ORIGIN).map(|value| value.to_str().unwrap_or_default())
}

fn lossy(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The addresses that decide who counts as local.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressBook {
    /// `gateway.trustedProxies`: addresses and ranges.
    pub trusted_proxies: Vec<IpNet>,
    /// Addresses of this host's own interfaces.
    pub own: Vec<IpAddr>,
    /// Names of this host, in lower case.
    pub names: Vec<String>,
}

impl AddressBook {
    fn trusts(&self, ip: &IpAddr) -> bool {
        self.trusted_proxies.iter().any(|range| range.contains(ip))
    }
}

/// An entry of `gateway.trustedProxies`: an address, or a range in CIDR notation. `None` when it is neither.
pub(crate) fn proxy_range(text: &str) -> Option<IpNet> {
    let text = text.trim();
    let one = || text.parse::<IpAddr>().ok().map(|ip| IpNet::from(plain(ip)));
    text.parse::<IpNet>().ok().or_else(one)
}

/// An address that a request is said to come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientIp {
    /// Address of the client as far as it can be known; behind a trusted proxy, the one that the
    /// proxy reports.
    pub address: IpAddr,
    /// True if the request came with forwarding headers, from a trusted proxy or from anybody else, or
    /// from this host under a name that is not its own: so does what a proxy without such headers passes on.
    pub is_forwarded: bool,
}

impl ClientIp {
    /// True if the client is a process of this host that connected directly: a request through a
    /// proxy on this host, listed or not, may be from anywhere.
    pub(crate) fn is_direct_loopback(self) -> bool {
        self.address.is_loopback() && !self.is_forwarded
    }
}

/// A client's address and standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// The client's address as far as it can be known.
    pub ip: ClientIp,
    /// True if the client runs on this host: pairing is silent and no nonce is needed.
    pub is_local: bool,
    /// True if forwarding headers came from a peer that isn't a trusted proxy.
    pub has_untrusted_proxy_headers: bool,
}

impl ClientAddress {
    /// Works out the address of a client.
    pub fn of(origination: &Origination, book: &AddressBook) -> Self {
        let peer = plain(origination.peer.ip());
        let is_ours = |address: &IpAddr| address.is_loopback() || book.own.contains(address);
        let (is_proxy, has_headers) = (book.trusts(&peer), origination.is_forwarded());
        let is_forwarded = has_headers || is_ours(&peer) && !names_us(origination, book);
        let address = if is_proxy { behind_proxies(origination, book).unwrap_or(peer) } else { peer };
        Self {
            ip: ClientIp { address, is_forwarded },
            is_local: is_ours(&address) && !is_forwarded && names_this_host(origination, book),
            has_untrusted_proxy_headers: !is_proxy && has_headers,
        }
    }

    /// The address to show and store: only of remote clients, and only when it can be trusted.
    pub fn remote_ip(&self) -> Option<IpAddr> {
        let shown = !self.is_local && !self.has_untrusted_proxy_headers && !self.ip.address.is_loopback();
        shown.then_some(self.ip.address)
    }
}

/// IPv4 addresses in their plain form: `::ffff:127.0.0.1` is `127.0.0.1`.
pub(crate) fn plain(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// The client's address as trusted proxies report it: the right-most hop of `X-Forwarded-For` that
/// is not a trusted proxy, since each proxy adds its peer at the end and the part before may be the
/// client's own. If all are trusted, the first hop. Without such a header `X-Real-IP`.
fn behind_proxies(origination: &Origination, book: &AddressBook) -> Option<IpAddr> {
    let Some(list) = origination.forwarded_for.as_deref() else {
        return origination.real_ip.as_deref().and_then(parse_address);
    };
    let mut client = None;
    for hop in list.rsplit(',') {
        // Hops before one that can't be read are not known to any proxy.
        let Some(hop) = parse_address(hop) else { break };
        client = Some(hop);
        if !book.trusts(&hop) {
            break;
        }
    }
    client
}

/// An address with or without port and brackets.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let ip = text.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    ip.or_else(with_port).or_else(bracketed).map(plain)
}

/// True if the `Host` header names this host. A page that tricks a browser through DNS sends its
/// own name here.
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

/// True if the `Host` header is one that a client on this host can write by itself: a name or address of this host, or of its loopback. A
/// proxy passes on the name that the public knows.
fn names_us(origination: &Origination, book: &AddressBook) -> bool {
    let Some(name) = origination.host.as_deref().map(host_name) else { return false };
    let is_loopback = || name.parse::<IpAddr>().is_ok_and(|ip| plain(ip).is_loopback());
    names_this_host(origination, book) || is_loopback() || book.names.contains(&name)
}

/// The name part of a `Host` header: lower case, without port, brackets and the dot that marks a full name.
/// A header whose port is no number stays whole, so that it is nobody's name.
pub(crate) fn host_name(host: &str) -> String {
    let host = host.trim().to_ascii_lowercase();
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let is_whole = |behind: &str| behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port);
    if let Some((address, _)) = bracketed.filter(|(_, behind)| is_whole(behind)) {
        return address.to_owned();
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') && is_port(port) => name,
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
            trusted_proxies: row.trusted.iter().map(|text| proxy_range(text).unwrap()).collect(),
            own: vec!["100.64.0.7".parse().unwrap()],
            names: vec!["box".to_owned()],
        };
        let address = ClientAddress::of(&origination, &book);
        let label = format!("{} {} {:?} {:?}", row.peer, row.host, row.forwarded_for, row.trusted);
        assert_eq!(
            (address.ip.address.to_string().as_str(), address.is_local),
            (row.ip, row.is_local),
            "{label}"
        );
    }

    fn row(peer: &'static str, host: &'static str, ip: &'static str, is_local: bool) -> Row {
        Row { peer, host, forwarded_for: None, trusted: &[], ip, is_local }
    }

    /// The table of §3.8, and decisions 10 (the host's own addresses count as local) and 25 (ranges; the right-most hop that
    /// is not trusted; nothing that a proxy brought is local).
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
            proxied("localhost", "127.0.0.1", &["127.0.0.1"], "127.0.0.1", false),
            proxied("localhost", "203.0.113.5", &["127.0.0.1"], "203.0.113.5", false),
            proxied("localhost", "203.0.113.5:9, 10.0.0.1", &["127.0.0.1"], "10.0.0.1", false),
            proxied(
                "localhost",
                "203.0.113.5:9, 10.1.2.3",
                &["127.0.0.1", "10.0.0.0/8"],
                "203.0.113.5",
                false,
            ),
            proxied("localhost", "127.0.0.1, 203.0.113.9", &["127.0.0.1"], "203.0.113.9", false),
            proxied("localhost", "127.0.0.1, [2001:db8::9]:1", &["127.0.0.0/8"], "2001:db8::9", false),
            proxied("localhost", "10.0.0.7,10.0.0.8", &["127.0.0.1", "10.0.0.0/8"], "10.0.0.7", false),
            proxied("localhost", "127.0.0.1, unknown", &["127.0.0.1"], "127.0.0.1", false),
            proxied("localhost", "1.2.3.4, x, 10.0.0.8", &["127.0.0.1", "10.0.0.0/8"], "10.0.0.8", false),
            proxied("localhost", "", &["127.0.0.1"], "127.0.0.1", false),
            row("127.0.0.1", "localhost", "127.0.0.1", true),
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
        let book = AddressBook {
            trusted_proxies: vec![proxy_range("10.0.0.1").unwrap()],
            own: Vec::new(),
            names: Vec::new(),
        };
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
    fn any_forwarding_header_makes_a_request_remote() {
        let book = AddressBook {
            trusted_proxies: vec![proxy_range("127.0.0.1").unwrap()],
            own: Vec::new(),
            names: Vec::new(),
        };
        type Headers = &'static [(&'static str, &'static [u8])];
        let rows: &[(Headers, &str, bool)] = &[
            (&[("x-other", b"203.0.113.5")], "127.0.0.1", true),
            (&[("Forwarded", b"for=203.0.113.5")], "127.0.0.1", false),
            (&[("X-Forwarded-Proto", b"https")], "127.0.0.1", false),
            (&[("X-Forwarded-Host", b"\xff")], "127.0.0.1", false),
            (&[("X-Real-IP", b"127.0.0.1")], "127.0.0.1", false),
            (&[("X-Real-IP", b"127.0.0.1"), ("X-Real-IP", b"203.0.113.5")], "203.0.113.5", false),
            (&[("X-Forwarded-For", b"\xff, 203.0.113.5")], "203.0.113.5", false),
            (&[("X-Forwarded-For", b"127.0.0.1"), ("X-Forwarded-For", b"203.0.113.5")], "203.0.113.5", false),
        ];
        for (headers, ip, is_local) in rows {
            let mut map = HeaderMap::from_iter([(HOST, http::HeaderValue::from_static("localhost"))]);
            for (name, value) in *headers {
                map.append(
                    http::HeaderName::try_from(*name).unwrap(),
                    http::HeaderValue::from_bytes(value).unwrap(),
                );
            }
            let here = |port| SocketAddr::from(([127, 0, 0, 1], port));
            let origination = Origination::of(&map, here(4), here(5));
            let address = ClientAddress::of(&origination, &book);
            let found = (address.ip.address.to_string(), address.is_local, address.ip.is_direct_loopback());
            assert_eq!(found, ((*ip).to_owned(), *is_local, *is_local), "{map:?}");
        }
    }

    #[test]
    fn trusted_proxies_are_addresses_and_ranges() {
        let rows = [
            ("10.0.0.1", Some("10.0.0.1/32")),
            (" 10.0.0.0/8 ", Some("10.0.0.0/8")),
            ("::ffff:10.0.0.1", Some("10.0.0.1/32")),
            ("fd00::/8", Some("fd00::/8")),
            ("10.0.0.0/33", None),
            ("10.0.0", None),
            ("proxy.local", None),
            ("", None),
        ];
        for (text, expect) in rows {
            assert_eq!(proxy_range(text).map(|range| range.to_string()).as_deref(), expect, "{text:?}");
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
            ("127.0.0.1:80@evil", "127.0.0.1:80@evil"),
            ("127.0.0.1:21425.evil.com", "127.0.0.1:21425.evil.com"),
            ("[::1]:x", "[::1]:x"),
            ("", ""),
        ];
        for (host, expect) in rows {
            assert_eq!(host_name(host), expect, "{host:?}");
        }
    }
}
