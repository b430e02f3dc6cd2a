//! Bounded places for connections that nobody has authenticated yet.
//!
//! A newcomer gets a place even when all are taken: among the places of the group that holds the
//! most, the one that has moved no byte for the longest time. So clients that fill the places keep
//! nobody out, not even from the same host. Remote addresses never get all places. A connection
//! that authenticates gives its place back and can't lose it any more.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Numbers of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// Limit for one remote address.
    pub(crate) per_address: usize,
    /// Limit for all remote addresses.
    pub(crate) remote: usize,
    /// Limit in all.
    pub(crate) all: usize,
}

/// The limits of the two kinds of place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlaceLimits {
    /// HTTP connections.
    pub(crate) connections: ConnectionLimits,
    /// WebSockets before their `hello-ok`.
    pub(crate) handshakes: ConnectionLimits,
}

/// Group of clients that places are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ClientGroup {
    /// Clients of this host, under whichever of its loopback addresses.
    Loopback,
    /// An IPv4 address, or the network of an IPv6 one, which its owner has all addresses of.
    Remote(IpAddr),
}

impl ClientGroup {
    fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            ip if ip.is_loopback() => Self::Loopback,
            IpAddr::V6(v6) => {
                let network = v6.to_bits() & !u128::from(u64::MAX);
                Self::Remote(std::net::Ipv6Addr::from_bits(network).into())
            }
            ip @ IpAddr::V4(_) => Self::Remote(ip),
        }
    }

    fn is_remote(self) -> bool {
        self != Self::Loopback
    }
}

/// Activity of a connection: the time of the last byte moved, and if it waits for the other end to
/// take some.
#[derive(Debug)]
pub(crate) struct Activity {
    since: Instant,
    moved_at_ms: AtomicU64,
    is_write_pending: AtomicBool,
}

impl Activity {
    fn starting(since: Instant) -> Arc<Self> {
        let activity =
            Self { since, moved_at_ms: AtomicU64::new(0), is_write_pending: AtomicBool::new(false) };
        activity.moved();
        Arc::new(activity)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn moved_at_ms(&self) -> u64 {
        self.moved_at_ms.load(Ordering::Relaxed)
    }

    /// A byte was read or written.
    pub(super) fn moved(&self) {
        self.moved_at_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Records whether the other end has to take something before more can be written.
    pub(super) fn set_write_pending(&self, is_pending: bool) {
        self.is_write_pending.store(is_pending, Ordering::Relaxed);
    }

    /// True if the other end has taken nothing for this long although there is something for it.
    pub(super) fn is_stalled(&self, patience: Duration) -> bool {
        let quiet = self.now_ms().saturating_sub(self.moved_at_ms());
        self.is_write_pending.load(Ordering::Relaxed) && u128::from(quiet) >= patience.as_millis()
    }
}

/// The places of one kind of connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionPlaces {
    limits: ConnectionLimits,
    since: Instant,
    table: Arc<Mutex<PlaceTable>>,
}

#[derive(Debug, Default)]
struct PlaceTable {
    next_id: u64,
    taken: HashMap<u64, Taken>,
    by_group: HashMap<ClientGroup, usize>,
    remote: usize,
}

#[derive(Debug)]
struct Taken {
    group: ClientGroup,
    activity: Arc<Activity>,
    lost: CancellationToken,
}

/// A taken place; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    id: u64,
    table: Arc<Mutex<PlaceTable>>,
    activity: Arc<Activity>,
    lost: CancellationToken,
}

impl ConnectionPlaces {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, since: Instant::now(), table: Arc::default() }
    }

    /// Takes a place, if need be somebody else's.
    pub(crate) fn enter(&self, ip: IpAddr) -> ConnectionPlace {
        let group = ClientGroup::of(ip);
        let activity = Activity::starting(self.since);
        let lost = CancellationToken::new();
        let mut table = self.table.lock();
        table.make_room(group, self.limits);
        let id = table.take(Taken { group, activity: Arc::clone(&activity), lost: lost.clone() });
        ConnectionPlace { id, table: Arc::clone(&self.table), activity, lost }
    }

    /// Takes a place back without a newcomer, when the process can't open more files.
    pub(crate) fn evict_one(&self) {
        self.table.lock().evict(|_| true);
    }
}

impl PlaceTable {
    fn make_room(&mut self, newcomer: ClientGroup, limits: ConnectionLimits) {
        let own = self.by_group.get(&newcomer).copied().unwrap_or_default();
        if newcomer.is_remote() && own >= limits.per_address {
            self.evict(|group| group == newcomer);
        } else if newcomer.is_remote() && self.remote >= limits.remote {
            self.evict(ClientGroup::is_remote);
        } else if self.taken.len() >= limits.all {
            self.evict(|_| true);
        }
    }

    /// Takes the place of the quietest connection among those of the group that has the most.
    fn evict(&mut self, may_lose: impl Fn(ClientGroup) -> bool) {
        let rank = |taken: &Taken| {
            let count = self.by_group.get(&taken.group).copied().unwrap_or_default();
            (count, Reverse(taken.activity.moved_at_ms()))
        };
        let candidates = self.taken.iter().filter(|(_, taken)| may_lose(taken.group));
        let loser = candidates.max_by_key(|(id, taken)| (rank(taken), Reverse(**id))).map(|(id, _)| *id);
        if let Some(taken) = loser.and_then(|id| self.free(id)) {
            taken.lost.cancel();
        }
    }

    fn take(&mut self, taken: Taken) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        *self.by_group.entry(taken.group).or_default() += 1;
        self.remote += usize::from(taken.group.is_remote());
        self.taken.insert(id, taken);
        id
    }

    fn free(&mut self, id: u64) -> Option<Taken> {
        let taken = self.taken.remove(&id)?;
        self.remote -= usize::from(taken.group.is_remote());
        if let Some(count) = self.by_group.get_mut(&taken.group) {
            *count -= 1;
            if *count == 0 {
                self.by_group.remove(&taken.group);
            }
        }
        Some(taken)
    }
}

impl ConnectionPlace {
    /// Activity of the connection.
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Cancelled when somebody else gets the place: the connection ends at once.
    pub(crate) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        // Has no effect if the place was lost meanwhile.
        self.table.lock().free(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits { per_address: 4, remote: 8, all: 12 };

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// `name` for those that kept their places.
    fn kept<'a>(places: &[(&'a str, ConnectionPlace)]) -> Vec<&'a str> {
        places.iter().filter(|(_, place)| !place.lost.is_cancelled()).map(|(name, _)| *name).collect()
    }

    fn fill<'a>(
        places: &ConnectionPlaces,
        name: &'a str,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Vec<(&'a str, ConnectionPlace)> {
        addresses.into_iter().map(|ip| (name, places.enter(ip))).collect()
    }

    #[test]
    fn an_address_that_has_its_share_loses_its_own_oldest() {
        let places = ConnectionPlaces::new(LIMITS);
        let mut held = fill(&places, "other", [ip("10.0.0.2")]);
        held.extend(fill(&places, "first", [ip("10.0.0.1")]));
        held.extend(fill(&places, "later", [ip("10.0.0.1"); 4]));
        assert_eq!(kept(&held), ["other", "later", "later", "later", "later"]);
        // The addresses of one IPv6 network are one owner's; an IPv4 address may be spelled as IPv6.
        let v6 = (0..5).map(|n| ip(&format!("2001:db8::{n}"))).chain([ip("::ffff:10.0.0.1")]);
        let more = fill(&places, "v6", v6.take(5));
        assert_eq!(kept(&more).len(), 4);
    }

    #[test]
    fn remote_addresses_never_get_all_places() {
        let places = ConnectionPlaces::new(LIMITS);
        let here = fill(&places, "here", [ip("127.0.0.1"); 4]);
        let remote = fill(&places, "remote", (0..100).map(|n| std::net::Ipv4Addr::new(10, 0, 0, n).into()));
        assert_eq!((kept(&here).len(), kept(&remote).len()), (4, LIMITS.remote));
        assert!(!remote[99].1.lost.is_cancelled(), "the newcomer is in");
    }

    #[test]
    fn who_fills_the_places_keeps_nobody_out() {
        let places = ConnectionPlaces::new(LIMITS);
        let quiet = fill(&places, "quiet", (1..=12).map(|n| ip(&format!("127.0.0.{n}"))));
        let guest = places.enter(ip("127.0.0.1"));
        let remote = places.enter(ip("10.0.0.1"));
        assert_eq!(kept(&quiet).len(), 10);
        assert!(quiet[0].1.lost.is_cancelled() && quiet[1].1.lost.is_cancelled(), "the oldest make room");
        assert!(!guest.lost.is_cancelled() && !remote.lost.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_moves_bytes_keeps_its_place() {
        let places = ConnectionPlaces::new(LIMITS);
        let held = fill(&places, "held", [ip("127.0.0.1"); 12]);
        tokio::time::advance(Duration::from_secs(1)).await;
        held[0].1.activity.moved();
        let _guest = places.enter(ip("127.0.0.1"));
        assert!(!held[0].1.lost.is_cancelled() && held[1].1.lost.is_cancelled());
    }

    #[test]
    fn places_are_given_back_once() {
        let places = ConnectionPlaces::new(LIMITS);
        let held = fill(&places, "held", (0..200).map(|n| std::net::Ipv4Addr::new(10, 0, 0, n % 7).into()));
        places.evict_one();
        drop(held);
        let table = places.table.lock();
        assert!(table.taken.is_empty() && table.by_group.is_empty() && table.remote == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_has_something_to_take_can_stall() {
        let activity = Activity::starting(Instant::now());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(!activity.is_stalled(Duration::from_secs(20)), "there is nothing for it");
        activity.set_write_pending(true);
        assert!(activity.is_stalled(Duration::from_secs(20)));
        activity.moved();
        assert!(!activity.is_stalled(Duration::from_secs(20)));
    }
}
