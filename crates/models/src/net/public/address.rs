//! Decides which hosts and addresses belong to the public internet (spec `tools.md` §5.2, SSRF
//! guard). Pure: makes no requests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Names of this machine and its network.
const BLOCKED_NAMES: &[&str] = &["localhost", "metadata.google.internal"];
const BLOCKED_ENDS: &[&str] = &[".localhost", ".local", ".internal"];

/// IPv4 that is not the public internet.
const BLOCKED_V4: &[Ipv4Net] = &[
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    // Carrier-grade NAT.
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    // The host's agent on Azure, which gives out credentials.
    v4([168, 63, 129, 16], 32),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 168, 0, 0], 16),
    // Benchmarks.
    v4([198, 18, 0, 0], 15),
    // Documentation.
    v4([192, 0, 2, 0], 24),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    // Relays between IPv6 and IPv4.
    v4([192, 88, 99, 0], 24),
    // Multicast.
    v4([224, 0, 0, 0], 4),
    // Reserved, and broadcast.
    v4([240, 0, 0, 0], 4),
];

/// All IPv6 that is given out for the public internet. Outside are loopback, private (`fc00::/7`), link-local, site-local,
/// multicast, and IPv4 in another form: `::a.b.c.d`, `::ffff:0:a.b.c.d`, `64:ff9b::a.b.c.d`.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
/// Networks inside of [`GLOBAL_V6`] that are not public.
const BLOCKED_V6: &[Ipv6Net] = &[
    // Documentation.
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
    // Benchmarks.
    v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48),
    // Hashes in the form of addresses.
    v6([0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28),
    v6([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28),
];
const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);
const TEREDO: Ipv6Net = v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32);

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}

/// Returns true if an address is on the public internet: not of this machine, a private network, or
/// a special purpose.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address)
                && !BLOCKED_V6.iter().any(|net| net.contains(&address))
                && embedded(address).into_iter().flatten().all(is_public_v4)
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !BLOCKED_V4.iter().any(|net| net.contains(&address))
}

/// The IPv4 addresses that packets to it may end at.
fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let [_, b, c, d, _, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    if SIX_TO_FOUR.contains(&address) {
        [of(b, c), None]
    } else if TEREDO.contains(&address) {
        // The server, and the client with all bits flipped.
        [of(c, d), of(!g, !h)]
    } else if f == 0x5efe {
        // ISATAP.
        [of(g, h), None]
    } else {
        [None, None]
    }
}

/// A host name without the dots at its end, which mean nothing here, in small letters.
pub(super) fn bare(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Returns true if a [`bare`] name is of this machine or its network.
pub(super) fn is_blocked_name(bare: &str) -> bool {
    BLOCKED_NAMES.contains(&bare) || BLOCKED_ENDS.iter().any(|end| bare.ends_with(end))
}
