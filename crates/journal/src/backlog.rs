//! Bounds on waiting messages over all sessions, so that nobody who may send can fill memory or
//! disk.

use std::sync::Arc;

use parking_lot::Mutex;

/// Messages accepted and not finished.
const ROWS: usize = 2_000;
/// Bytes of their payloads, which are on disk.
const BYTES: usize = 128 * 1024 * 1024;
/// Bytes of payloads on their way to disk, which are in memory: here and in the journal's queue.
const IN_HAND: usize = 64 * 1024 * 1024;

/// Accounts of the messages that wait and of those on their way to disk. Clones share the same
/// accounts.
#[derive(Debug, Clone)]
pub struct Backlog {
    accounts: Arc<Mutex<Accounts>>,
    limits: Accounts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Accounts {
    rows: usize,
    bytes: usize,
    in_hand: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        let limits = Accounts { rows: ROWS, bytes: BYTES, in_hand: IN_HAND };
        Self { accounts: Arc::default(), limits }
    }
}

impl Backlog {
    /// Room for a message with so many bytes of payload; `None` when there is none now.
    pub fn reserve(&self, bytes: usize) -> Option<(Share, InHand)> {
        let mut accounts = self.accounts.lock();
        let limits = self.limits;
        let fits = accounts.rows < limits.rows
            && accounts.bytes.saturating_add(bytes) <= limits.bytes
            && accounts.in_hand.saturating_add(bytes) <= limits.in_hand;
        if !fits {
            return None;
        }
        accounts.in_hand += bytes;
        Some((self.add(&mut accounts, bytes), InHand { backlog: self.clone(), bytes }))
    }

    /// Counts a message that waits already.
    pub fn count(&self, bytes: usize) -> Share {
        self.add(&mut self.accounts.lock(), bytes)
    }

    fn add(&self, accounts: &mut Accounts, bytes: usize) -> Share {
        accounts.rows += 1;
        accounts.bytes += bytes;
        Share { backlog: self.clone(), bytes }
    }
}

/// Share of one message in what may wait; given back when dropped.
#[derive(Debug)]
pub struct Share {
    backlog: Backlog,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut accounts = self.backlog.accounts.lock();
        accounts.rows -= 1;
        accounts.bytes -= self.bytes;
    }
}

/// Share of one message in what may be on its way to disk; given back when dropped.
#[derive(Debug)]
pub struct InHand {
    backlog: Backlog,
    bytes: usize,
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.backlog.accounts.lock().in_hand -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(rows: usize, bytes: usize, in_hand: usize) -> Backlog {
        Backlog { accounts: Arc::default(), limits: Accounts { rows, bytes, in_hand } }
    }

    #[test]
    fn each_bound_refuses_and_what_is_given_back_can_be_had_again() {
        for (backlog, why) in [
            (backlog(2, 100, 100), "rows"),
            (backlog(9, 20, 100), "bytes"),
            (backlog(9, 100, 20), "bytes on their way"),
        ] {
            let first = backlog.reserve(10).unwrap();
            let second = backlog.reserve(10).unwrap();
            assert!(backlog.reserve(10).is_none(), "{why}");
            drop(second);
            drop(backlog.reserve(10).expect(why));
            drop(first);
            assert_eq!(*backlog.accounts.lock(), Accounts::default(), "{why}");
        }
    }

    #[test]
    fn what_is_stored_makes_room_for_the_next_on_its_way() {
        let backlog = backlog(9, 100, 10);
        let (_waits, in_hand) = backlog.reserve(10).unwrap();
        assert!(backlog.reserve(10).is_none());
        drop(in_hand);
        assert!(backlog.reserve(10).is_some());
    }

    #[test]
    fn what_a_start_finds_is_counted_however_much_it_is() {
        let backlog = backlog(2, 10, 10);
        let found: Vec<Share> = (0..3).map(|_| backlog.count(10)).collect();
        assert!(backlog.reserve(1).is_none());
        drop(found);
        assert!(backlog.reserve(1).is_some());
    }
}
