//! Waits of sessions' runs for each other: a run that would wait for one that waits for it,
//! directly or by way of others, does not wait.

use std::collections::HashMap;

use openclaw_protocol::SessionKey;
use parking_lot::Mutex;

/// The waits of all runs.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<HashMap<SessionKey, Vec<SessionKey>>>);

/// Wait of a run; it is over when this is dropped.
#[derive(Debug)]
pub(crate) struct WaitGuard<'a> {
    waits: &'a Waits,
    from: SessionKey,
    to: SessionKey,
}

impl Waits {
    /// Notes that the run of one session waits for another. `None`: that one waits for this already, and nobody would ever move.
    pub(crate) fn begin(&self, from: &SessionKey, to: &SessionKey) -> Option<WaitGuard<'_>> {
        let mut waits = self.0.lock();
        if reaches(&waits, to, from) {
            return None;
        }
        waits.entry(from.clone()).or_default().push(to.clone());
        Some(WaitGuard { waits: self, from: from.clone(), to: to.clone() })
    }
}

/// True if a session waits for another, directly or not, or is that session.
fn reaches(waits: &HashMap<SessionKey, Vec<SessionKey>>, from: &SessionKey, to: &SessionKey) -> bool {
    let (mut open, mut seen) = (vec![from], Vec::new());
    while let Some(key) = open.pop() {
        if key == to {
            return true;
        }
        if !seen.contains(&key) {
            seen.push(key);
            open.extend(waits.get(key).into_iter().flatten());
        }
    }
    false
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut waits = self.waits.0.lock();
        let Some(own) = waits.get_mut(&self.from) else { return };
        if let Some(at) = own.iter().position(|to| *to == self.to) {
            own.swap_remove(at);
        }
        if own.is_empty() {
            waits.remove(&self.from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> SessionKey {
        SessionKey::parse(&format!("agent:main:{name}")).unwrap()
    }

    #[test]
    fn nobody_waits_in_a_circle() {
        let waits = Waits::default();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(key);
        assert!(waits.begin(&a, &a).is_none(), "for itself");
        let first = waits.begin(&a, &b).unwrap();
        assert!(waits.begin(&b, &a).is_none(), "two");
        let second = waits.begin(&b, &c).unwrap();
        assert!(waits.begin(&c, &a).is_none() && waits.begin(&c, &b).is_none(), "three");
        let third = waits.begin(&c, &d).unwrap();
        let again = waits.begin(&a, &b).unwrap();
        drop(first);
        assert!(waits.begin(&d, &a).is_none(), "one of two waits for the same is over");
        drop(again);
        let fourth = waits.begin(&d, &a).unwrap();
        drop((second, third, fourth));
        assert!(waits.0.lock().is_empty());
    }
}
