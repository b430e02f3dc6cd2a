//! Facts about the machine that the gateway runs on.

use std::net::{IpAddr, Ipv4Addr};

use openclaw_protocol::params::system::PresenceEntry;

/// The product's version, as clients see it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Such as `linux 6.8.0`.
    pub platform: String,
    /// `Linux`, `Mac` or `Windows`.
    pub device_family: &'static str,
    /// Architecture as Node names it, such as `x64`.
    pub arch: &'static str,
    /// First address of the machine on a network.
    pub ip: Option<IpAddr>,
}

impl Host {
    /// Asks the system.
    pub fn detect() -> Self {
        let uname = nix::sys::utsname::uname().ok();
        let text = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
        let release = text(uname.as_ref().map(|name| name.release()));
        let name = text(uname.as_ref().map(|name| name.nodename())).filter(|name| !name.is_empty());
        let (os, device_family) = match std::env::consts::OS {
            "macos" => ("macos", "Mac"),
            "windows" => ("windows", "Windows"),
            os => (os, "Linux"),
        };
        Self {
            name: name.unwrap_or_else(|| "localhost".to_owned()),
            platform: release.map_or_else(|| os.to_owned(), |release| format!("{os} {release}")),
            device_family,
            arch: node_arch(std::env::consts::ARCH),
            ip: primary(&own_addresses()),
        }
    }

    /// The gateway's own row of the presence list.
    pub fn presence(&self) -> PresenceEntry {
        let at = self.ip.map_or_else(String::new, |ip| format!(" ({ip})"));
        PresenceEntry {
            host: Some(self.name.clone()),
            ip: self.ip.map(|ip| ip.to_string()),
            version: Some(VERSION.to_owned()),
            platform: Some(self.platform.clone()),
            device_family: Some(self.device_family.to_owned()),
            model_identifier: Some(self.arch.to_owned()),
            mode: Some("gateway".to_owned()),
            reason: Some("self".to_owned()),
            text: Some(format!("Gateway: {}{at} · app {VERSION} · mode gateway · reason self", self.name)),
            ..PresenceEntry::default()
        }
    }
}

/// The addresses of this machine's interfaces, loopback included.
pub fn own_addresses() -> Vec<IpAddr> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    addresses.collect()
}

/// The Tailscale address among some: the first in 100.64.0.0/10.
pub(crate) fn tailnet(addresses: &[IpAddr]) -> Option<Ipv4Addr> {
    addresses.iter().find_map(|ip| match ip {
        IpAddr::V4(v4) if v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64 => Some(*v4),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    })
}

fn primary(addresses: &[IpAddr]) -> Option<IpAddr> {
    addresses
        .iter()
        .copied()
        .find(|ip| matches!(ip, IpAddr::V4(v4) if !v4.is_loopback() && !v4.is_link_local()))
}

fn node_arch(arch: &'static str) -> &'static str {
    match arch {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        "x86" => "ia32",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tailnet_is_100_64_with_ten_bits() {
        let rows = [
            (&["127.0.0.1", "100.64.0.1"][..], Some("100.64.0.1")),
            (&["100.127.255.255"], Some("100.127.255.255")),
            (&["100.128.0.1", "100.63.0.1", "::1"], None),
        ];
        for (addresses, expect) in rows {
            let addresses: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(tailnet(&addresses).map(|ip| ip.to_string()).as_deref(), expect);
        }
    }

    #[test]
    fn the_gateways_row_has_the_recorded_form() {
        let host = Host {
            name: "gateway-host".to_owned(),
            platform: "linux 6.8.0".to_owned(),
            device_family: "Linux",
            arch: "x64",
            ip: Some("192.0.2.10".parse().unwrap()),
        };
        let text = host.presence().text.unwrap();
        assert_eq!(
            text,
            format!("Gateway: gateway-host (192.0.2.10) · app {VERSION} · mode gateway · reason self")
        );
    }
}
