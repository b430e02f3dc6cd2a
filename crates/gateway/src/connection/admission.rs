//! Caps on sockets that have not authenticated yet (KB-40).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Pending handshakes of one remote address.
const PER_ADDRESS: usize = 64;
/// Pending handshakes of all remote addresses together.
const REMOTE: usize = 512;
/// Pending handshakes from this host: many clients may start at once, and whoever is here can do worse.
const LOOPBACK: usize = 1_024;

/// Counts pending handshakes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Admission(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    by_address: HashMap<IpAddr, usize>,
    remote: usize,
}

/// A pending handshake; dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Pending {
    counts: Admission,
    ip: IpAddr,
}

impl Admission {
    /// Takes a place; `None` when there are too many pending handshakes already.
    pub(crate) fn enter(&self, ip: IpAddr) -> Option<Pending> {
        let ip = ip.to_canonical();
        let mut counts = self.0.lock();
        let own = counts.by_address.get(&ip).copied().unwrap_or_default();
        let has_place =
            if ip.is_loopback() { own < LOOPBACK } else { own < PER_ADDRESS && counts.remote < REMOTE };
        if !has_place {
            return None;
        }
        counts.by_address.insert(ip, own + 1);
        counts.remote += usize::from(!ip.is_loopback());
        Some(Pending { counts: self.clone(), ip })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        counts.remote -= usize::from(!self.ip.is_loopback());
        if let Some(own) = counts.by_address.get_mut(&self.ip) {
            *own -= 1;
            if *own == 0 {
                counts.by_address.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of many get in.
    fn entered(admission: &Admission, ip: IpAddr) -> Vec<Pending> {
        (0..2_000).map_while(|_| admission.enter(ip)).collect()
    }

    #[test]
    fn remote_addresses_have_few_places_and_loopback_many() {
        let admission = Admission::default();
        let remote: IpAddr = "192.168.1.5".parse().unwrap();
        let held = entered(&admission, remote);
        assert_eq!(held.len(), PER_ADDRESS);
        assert_eq!(entered(&admission, "127.0.0.1".parse().unwrap()).len(), LOOPBACK);
        drop(held);
        assert_eq!(entered(&admission, "::ffff:192.168.1.5".parse().unwrap()).len(), PER_ADDRESS);
    }

    #[test]
    fn all_remote_addresses_share_a_total() {
        let admission = Admission::default();
        let held: Vec<_> =
            (0..20).flat_map(|n| entered(&admission, std::net::Ipv4Addr::new(10, 0, 0, n).into())).collect();
        assert_eq!(held.len(), REMOTE);
        drop(held);
        assert!(admission.0.lock().by_address.is_empty());
    }
}
