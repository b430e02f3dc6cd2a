//! The origin check for browser clients (spec `gateway-protocol.md` §3.9): it keeps other web pages out.

use super::client_address::host_name;

/// Text of the refusal and of the close reason.
pub(crate) const REFUSAL: &str = "origin not allowed (open the Control UI from the gateway host or allow it in gateway.controlUi.allowedOrigins)";

/// Whether a page of this origin may connect to a gateway that was addressed as `host`.
pub(crate) fn is_allowed(origin: Option<&str>, host: Option<&str>, allowed: &[String]) -> bool {
    let Some(origin) = origin.map(|text| text.trim().to_ascii_lowercase()) else { return false };
    let Some(authority) = authority(&origin) else { return false };
    if allowed.iter().any(|entry| entry.trim().to_ascii_lowercase() == origin) {
        return true;
    }
    let Some(host) = host.map(|text| text.trim().to_ascii_lowercase()) else { return false };
    authority == host || (is_loopback_name(&host_name(authority)) && is_loopback_name(&host_name(&host)))
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

fn is_loopback_name(name: &str) -> bool {
    let is_v4 = || name.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback());
    name == "localhost" || name == "::1" || is_v4()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_connect_from_the_gateways_host_from_loopback_or_when_listed() {
        let listed = ["https://ui.example.com".to_owned()];
        let none: &[String] = &[];
        let rows = [
            (Some("http://127.0.0.1:18789"), Some("127.0.0.1:18789"), none, true),
            (Some("http://localhost:5173"), Some("127.0.0.1:18789"), none, true),
            (Some("https://ui.example.com"), Some("gw.example.com"), &listed[..], true),
            (Some("HTTPS://UI.example.com "), Some("gw.example.com"), &listed[..], true),
            (Some("https://evil.example"), Some("gw.example.com"), none, false),
            (Some("https://evil.example"), Some("127.0.0.1:18789"), none, false),
            (Some("https://127.0.0.1.evil.example"), Some("127.0.0.1:18789"), none, false),
            (Some("http://gw.example.com:18789"), Some("gw.example.com:18789"), none, true),
            (Some("http://gw.example.com:1"), Some("gw.example.com:18789"), none, false),
            (Some("null"), Some("127.0.0.1:18789"), none, false),
            (Some("http://x@localhost"), Some("127.0.0.1:18789"), none, false),
            (None, Some("127.0.0.1:18789"), &listed[..], false),
            (Some("http://[::1]:18789"), Some("localhost:18789"), none, true),
        ];
        for (origin, host, allowed, expect) in rows {
            assert_eq!(is_allowed(origin, host, allowed), expect, "{origin:?} {host:?}");
        }
    }
}
