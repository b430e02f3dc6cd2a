//! Origin rules: the pages that may talk to the gateway (spec `gateway-protocol.md` §3.9). Programs
//! send no `Origin` and are not asked.
//!
//! Two things are looked at. The `Origin` names the page: it must be one of this gateway, or listed. The `Host` names the
//! gateway as the page sees it: it must be a name that is ours, because the owner of another name can point it at this
//! host after the page was loaded (DNS rebinding), and to the browser that page is then one of this gateway.

use std::net::IpAddr;

use super::client_address::{host_name, plain};

/// Text of the refusal and of the close reason.
pub(crate) const REFUSAL: &str = "origin not allowed (open the Control UI from the gateway host or allow it in gateway.controlUi.allowedOrigins)";

/// Domain of Tailscale's machine names: `<machine>.<tailnet>.ts.net`. Only Tailscale decides where
/// they point.
const TAILNET: &str = ".ts.net";

/// Names and pages of this gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PageRules {
    /// `gateway.controlUi.allowedOrigins`, trimmed and in lower case.
    allowed_origins: Vec<String>,
    /// Names of this host, in lower case.
    names_of_host: Vec<String>,
    /// Names of the allowed origins, in lower case.
    listed_names: Vec<String>,
    /// First part of this host's name.
    machine: String,
}

impl PageRules {
    /// The rules of a host with this name.
    pub(crate) fn new(name_of_host: &str, allowed_origins: &[String]) -> Self {
        let allowed_origins: Vec<String> =
            allowed_origins.iter().map(|origin| origin.trim().to_ascii_lowercase()).collect();
        let name = host_name(name_of_host);
        let machine = name.split('.').next().unwrap_or_default().to_owned();
        let of_this_host =
            [name.clone(), format!("{name}.local"), machine.clone(), format!("{machine}.local")];
        let listed_names =
            allowed_origins.iter().filter_map(|origin| authority(origin)).map(host_name).collect();
        let names_of_host = of_this_host.into_iter().filter(|_| !machine.is_empty()).collect();
        Self { allowed_origins, names_of_host, listed_names, machine }
    }

    /// Names of this host, in lower case.
    pub(crate) fn names_of_host(&self) -> &[String] {
        &self.names_of_host
    }

    /// True if a page may connect to a gateway that it addressed as `host`; `own` are the addresses
    /// of this host.
    pub(crate) fn admits_page(&self, origin: Option<&str>, host: Option<&str>, own: &[IpAddr]) -> bool {
        let Some(origin) = origin.map(|text| text.trim().to_ascii_lowercase()) else { return false };
        let (Some(page), Some(host)) = (authority(&origin), host) else { return false };
        if self.allowed_origins.contains(&origin) {
            return true;
        }
        let host = host.trim().to_ascii_lowercase();
        let is_same = page == host || is_loopback(&host_name(page)) && is_loopback(&host_name(&host));
        is_same && self.is_own(&host, own)
    }

    /// True if a request of a page may address the gateway as `host`; the page's own origin is not
    /// checked.
    pub(crate) fn admits_host(&self, origin: &str, host: Option<&str>, own: &[IpAddr]) -> bool {
        let is_listed = || self.allowed_origins.contains(&origin.trim().to_ascii_lowercase());
        host.is_some_and(|host| self.is_own(host, own) || is_listed())
    }

    fn is_own(&self, host: &str, own: &[IpAddr]) -> bool {
        let name = host_name(host);
        let is_address = || name.parse().is_ok_and(|ip| own.contains(&plain(ip)));
        let is_listed = || self.names_of_host.contains(&name) || self.listed_names.contains(&name);
        is_loopback(&name) || is_listed() || self.is_of_tailnet(&name) || is_address()
    }

    /// True if this is the name that Tailscale gives to this host, in whatever tailnet.
    fn is_of_tailnet(&self, name: &str) -> bool {
        let machine =
            name.strip_suffix(TAILNET).and_then(|rest| rest.split_once('.')).map(|(first, _)| first);
        machine.is_some_and(|machine| !machine.is_empty() && machine == self.machine)
    }
}

/// Host and port of an origin; `None` when it isn't one.
fn authority(origin: &str) -> Option<&str> {
    let (scheme, rest) = origin.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let plain_scheme =
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let plain_authority = !authority.is_empty() && !authority.contains(['@', ' ', '\\']);
    (plain_scheme && plain_authority).then_some(authority)
}

/// True if a name without port means this host, whatever host that is.
pub(crate) fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse().is_ok_and(|ip| plain(ip).is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<IpAddr> {
        ["192.168.1.10", "fd00::10"].map(|ip| ip.parse().unwrap()).to_vec()
    }

    fn rules(allowed: &[&str]) -> PageRules {
        let allowed: Vec<String> = allowed.iter().map(|origin| (*origin).to_owned()).collect();
        PageRules::new("Box.lan", &allowed)
    }

    #[test]
    fn pages_connect_from_the_gateways_host_from_loopback_or_when_listed() {
        let (none, listed) = (rules(&[]), rules(&["https://UI.example.com "]));
        let rows = [
            (Some("http://127.0.0.1:18789"), Some("127.0.0.1:18789"), &none, true),
            (Some("http://localhost:5173"), Some("127.0.0.1:18789"), &none, true),
            (Some("https://ui.example.com"), Some("gw.example.com"), &listed, true),
            (Some("HTTPS://UI.example.com "), Some("gw.example.com"), &listed, true),
            (Some("https://ui.example.com"), None, &listed, false),
            (Some("https://evil.example"), Some("gw.example.com"), &none, false),
            (Some("https://evil.example"), Some("127.0.0.1:18789"), &none, false),
            (Some("https://127.0.0.1.evil.example"), Some("127.0.0.1:18789"), &none, false),
            (Some("http://box.lan:18789"), Some("box.lan:18789"), &none, true),
            (Some("http://box.lan:1"), Some("box.lan:18789"), &none, false),
            (Some("http://192.168.1.10:18789"), Some("192.168.1.10:18789"), &none, true),
            (Some("null"), Some("127.0.0.1:18789"), &none, false),
            (Some("http://x@localhost"), Some("127.0.0.1:18789"), &none, false),
            (Some("http://127.0.0.1:21425.evil.example"), Some("127.0.0.1:18789"), &none, false),
            (None, Some("127.0.0.1:18789"), &listed, false),
            (Some("http://[::1]:18789"), Some("localhost:18789"), &none, true),
            // A page whose name was pointed at this host after it was loaded.
            (Some("http://evil.example:18789"), Some("evil.example:18789"), &none, false),
            (Some("http://evil.example:18789"), Some("evil.example:18789"), &listed, false),
        ];
        for (origin, host, rules, expect) in rows {
            assert_eq!(rules.admits_page(origin, host, &own()), expect, "{origin:?} {host:?}");
        }
    }

    #[test]
    fn a_page_addresses_the_gateway_by_a_name_that_is_its_own() {
        let rules = rules(&["https://ui.example.com:8443"]);
        let ours = [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1",
            "127.0.0.2:18789",
            "[::1]:18789",
            "[::ffff:127.0.0.1]",
            "box",
            "box.",
            "box:18789",
            "Box.Local",
            "box.lan",
            "box.lan.:18789",
            "box.lan.local",
            "192.168.1.10:18789",
            "[fd00::10]:18789",
            "box.tail1234.ts.net",
            "box.tail1234.ts.net.:443",
            "ui.example.com",
            "UI.example.com:18789",
        ];
        let strange = [
            "",
            "evil.example",
            "evil.example:18789",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "box.evil.example",
            "evil.box.lan",
            "evil.tail1234.ts.net",
            "box.ts.net",
            "ts.net",
            ".ts.net",
            "box.tail1234.ts.net.evil.example",
            "192.168.1.11",
            "[fd00::11]",
            "0.0.0.0",
            "[::]",
            "[::1].evil.example",
            "localhost@evil.example",
            "evil.example@localhost",
            "sub.ui.example.com",
        ];
        for (hosts, expect) in [(&ours[..], true), (&strange[..], false)] {
            for host in hosts {
                let admitted = rules.admits_host("https://evil.example", Some(host), &own());
                assert_eq!(admitted, expect, "{host:?}");
            }
        }
        assert!(!rules.admits_host("http://localhost", None, &own()));
        assert!(rules.admits_host("https://ui.example.com:8443", Some("behind.a.proxy"), &own()));
    }

    #[test]
    fn a_host_without_a_name_has_no_name_of_its_own() {
        let rules = PageRules::new("", &[]);
        for host in ["", ".", ".local", ".tail1234.ts.net", "local"] {
            assert!(!rules.admits_host("http://x", Some(host), &[]), "{host:?}");
        }
    }
}
