//! Cached content of an account's pairing files, valid as long as they are unchanged: most messages
//! of strangers then cost no more than a check of the files' metadata.

use std::collections::BTreeSet;

use openclaw_config::stamp::Stamp;
use openclaw_sessions::time::now_ms;

use super::{Guests, MAX_PENDING, PairingRequest, PairingStore, Requested, Requests, prune, read, recent};

/// Time in milliseconds for which a file that could not be read counts as unreadable, because
/// reading it again takes a while.
const UNREADABLE_MS: i64 = 1_000;

/// The files as they were read.
#[derive(Debug)]
pub struct PairingLook {
    /// People who were let in.
    pub guests: Guests,
    /// Pending requests; empty if they can't be read.
    requests: Vec<PairingRequest>,
    stamps: Vec<Option<Stamp>>,
    /// Unix milliseconds.
    read_at: i64,
}

impl PairingStore {
    /// Looks whether the files are still the ones of an earlier look. `None`: they are.
    pub fn look(&self, known: Option<&PairingLook>) -> Option<PairingLook> {
        let now = now_ms();
        let files = self.lists().chain([self.requests.as_path()]);
        let stamps: Vec<Option<Stamp>> = files.map(Stamp::at).collect();
        if known.is_some_and(|known| known.is_of(&stamps, now)) {
            return None;
        }
        // An unreadable file is noticed when a request is about to be recorded.
        let requests = read::<Requests>(&self.requests).ok().flatten().unwrap_or_default().requests;
        Some(PairingLook { guests: self.guests(), requests, stamps, read_at: now })
    }
}

impl PairingLook {
    fn is_of(&self, stamps: &[Option<Stamp>], now: i64) -> bool {
        let was_settled = |stamp: &Stamp| stamp.is_settled(self.read_at);
        let is_readable =
            self.guests.unreadable.is_none() || now.saturating_sub(self.read_at) < UNREADABLE_MS;
        self.stamps == stamps && is_readable && self.stamps.iter().flatten().all(was_settled)
    }

    /// Returns the result of a request that does not change the file, while others are asking at
    /// the same time. `None` if the request must be recorded.
    pub fn settled(&self, id: &str, asking: &BTreeSet<String>) -> Option<Requested> {
        let now = now_ms();
        let mut requests = self.requests.clone();
        prune(&mut requests, now);
        if let Some(known) = requests.iter().find(|request| request.id == id) {
            return recent(known, now).then(|| Requested::Known(known.code.clone()));
        }
        let new = asking.iter().filter(|asking| requests.iter().all(|request| request.id != **asking));
        (requests.len() + new.count() >= MAX_PENDING).then_some(Requested::Full)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn asking(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn who_asks_at_this_moment_has_a_place_already() {
        let dir = tempfile::tempdir().unwrap();
        let store = PairingStore::new(dir.path(), "telegram", "default");
        let empty = store.look(None).unwrap();
        assert_eq!(empty.settled("1", &asking(&[])), None);
        assert_eq!(empty.settled("9", &asking(&["1", "2"])), None);
        assert_eq!(empty.settled("9", &asking(&["1", "2", "3"])), Some(Requested::Full));
        let Requested::New(code) = store.request("1", Map::new()).unwrap() else { panic!("it is new") };
        let one = store.look(Some(&empty)).expect("the file is there now");
        assert_eq!(one.settled("1", &asking(&[])), Some(Requested::Known(code)));
        assert_eq!(one.settled("9", &asking(&["1", "2"])), None, "one of them is noted already");
        assert_eq!(one.settled("9", &asking(&["2", "3"])), Some(Requested::Full));
    }

    #[test]
    fn files_are_read_again_when_they_are_others() {
        let dir = tempfile::tempdir().unwrap();
        let store = PairingStore::new(dir.path(), "telegram", "default");
        let first = store.look(None).unwrap();
        assert!(store.look(Some(&first)).is_none(), "there is none");
        let list = dir.path().join("telegram-allowFrom.json");
        std::fs::write(&list, r#"{"version": 1, "allowFrom": ["5"]}"#).unwrap();
        let second = store.look(Some(&first)).expect("it is new");
        assert_eq!(second.guests.entries, ["5"]);
        assert!(
            store.look(Some(&second)).is_some(),
            "it may be written again within the same tick of the clock"
        );
        let settled = PairingLook { read_at: now_ms() + 10_000, ..second };
        assert!(store.look(Some(&settled)).is_none());
        std::fs::write(&list, r#"{"version": 1, "allowFrom": ["56"]}"#).unwrap();
        assert_eq!(store.look(Some(&settled)).expect("it has changed").guests.entries, ["56"]);
        std::fs::write(&list, "{").unwrap();
        let torn = store.look(Some(&settled)).expect("it has changed");
        assert!(torn.guests.unreadable.is_some() && torn.guests.entries.is_empty());
        let torn = PairingLook { read_at: now_ms() + 10_000, ..torn };
        assert!(store.look(Some(&torn)).is_none(), "not within the second");
        let torn = PairingLook { read_at: now_ms() - 10_000, ..torn };
        assert!(store.look(Some(&torn)).is_some(), "after it");
    }
}
