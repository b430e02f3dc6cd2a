//! Guessing secrets is slowed down: failed authentications are counted per address (KB-27).

use std::collections::HashMap;
use std::net::IpAddr;

use super::client_address::ClientIp;

/// Wrong guesses an address has before it must wait.
const FREE_GUESSES: u32 = 10;
/// A guess is forgotten after this long, in milliseconds.
const WINDOW_MS: i64 = 60_000;
/// Time for which an address that guessed too often is refused, in milliseconds.
const LOCKOUT_MS: i64 = 60_000;
/// Addresses remembered at once; the one whose window began first makes room.
const MAX_ADDRESSES: usize = 4_096;

/// Wrong guesses by address. Loopback without forwarding headers is exempt: a process of this host
/// reads the secret from its file instead. Requests through a proxy on this host are not exempt,
/// whether the proxy is listed or not: all clients of one that is not listed share an address.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    addresses: HashMap<IpAddr, Guesses>,
}

#[derive(Debug, Clone, Copy)]
struct Guesses {
    count: u32,
    since: i64,
    locked_until: i64,
}

impl Throttle {
    /// Milliseconds until the client may try again; `None` when it may now.
    pub(crate) fn locked_for(&self, client: ClientIp, now: i64) -> Option<i64> {
        let guesses = self.addresses.get(&counted(client)?)?;
        (guesses.locked_until > now).then(|| guesses.locked_until - now)
    }

    /// The client gave a wrong secret.
    pub(crate) fn failed(&mut self, client: ClientIp, now: i64) {
        let Some(ip) = counted(client) else { return };
        self.make_room(ip, now);
        let guesses = self.addresses.entry(ip).or_insert(Guesses { count: 0, since: now, locked_until: 0 });
        if now - guesses.since > WINDOW_MS {
            *guesses = Guesses { count: 0, since: now, locked_until: 0 };
        }
        guesses.count += 1;
        if guesses.count >= FREE_GUESSES {
            guesses.locked_until = now + LOCKOUT_MS;
        }
    }

    /// The client knew the secret.
    pub(crate) fn succeeded(&mut self, client: ClientIp) {
        if let Some(ip) = counted(client) {
            self.addresses.remove(&ip);
        }
    }

    fn make_room(&mut self, ip: IpAddr, now: i64) {
        if self.addresses.len() < MAX_ADDRESSES || self.addresses.contains_key(&ip) {
            return;
        }
        self.addresses.retain(|_, guesses| guesses.locked_until > now || now - guesses.since <= WINDOW_MS);
        if self.addresses.len() < MAX_ADDRESSES {
            return;
        }
        let oldest = self.addresses.iter().min_by_key(|(_, guesses)| guesses.since).map(|(ip, _)| *ip);
        if let Some(oldest) = oldest {
            self.addresses.remove(&oldest);
        }
    }
}

/// The address that a client's guesses are counted for; `None` for one that is exempt.
fn counted(client: ClientIp) -> Option<IpAddr> {
    (!client.is_direct_loopback()).then_some(client.address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: u32) -> ClientIp {
        ClientIp { address: std::net::Ipv4Addr::from_bits(0x0a00_0000 + n).into(), is_forwarded: false }
    }

    fn loopback(is_forwarded: bool) -> ClientIp {
        ClientIp { address: "127.0.0.1".parse().unwrap(), is_forwarded }
    }

    #[test]
    fn what_a_proxy_on_this_host_passes_on_is_locked_and_its_other_processes_are_not() {
        let mut throttle = Throttle::default();
        for _ in 0..10 {
            throttle.failed(loopback(true), 0);
            // A direct connection says nothing about who is behind the proxy.
            throttle.succeeded(loopback(false));
        }
        assert_eq!(throttle.locked_for(loopback(true), 1), Some(59_999));
        assert_eq!(throttle.locked_for(loopback(false), 1), None);
    }

    #[test]
    fn ten_wrong_guesses_in_a_minute_lock_an_address_for_a_minute() {
        let mut throttle = Throttle::default();
        for n in 0..9 {
            throttle.failed(ip(1), n);
        }
        assert_eq!(throttle.locked_for(ip(1), 9), None);
        throttle.failed(ip(1), 9);
        assert_eq!(throttle.locked_for(ip(1), 9), Some(60_000));
        assert_eq!(throttle.locked_for(ip(2), 9), None);
        assert_eq!(throttle.locked_for(ip(1), 60_009), None);
    }

    #[test]
    fn slow_guesses_success_and_loopback_are_never_locked() {
        let mut throttle = Throttle::default();
        for n in 0..100 {
            throttle.failed(ip(1), n * 10_000);
            throttle.failed(loopback(false), 0);
            throttle.failed(ip(2), 0);
            throttle.succeeded(ip(2));
        }
        for client in [ip(1), ip(2), loopback(false)] {
            assert_eq!(throttle.locked_for(client, 990_000), None, "{client:?}");
        }
    }

    #[test]
    fn memory_is_bounded_whatever_the_number_of_addresses() {
        let mut throttle = Throttle::default();
        for n in 0..10_000 {
            throttle.failed(ip(n), i64::from(n));
        }
        assert_eq!(throttle.addresses.len(), MAX_ADDRESSES);
    }
}
