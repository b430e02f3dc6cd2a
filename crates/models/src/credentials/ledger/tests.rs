use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::credentials::FILE;

const NOW: i64 = 1_760_000_000_000;
const STORE: &str = r#"{"profiles":{"a":{"type":"api_key","provider":"groq","key":"k"},
    "b":{"type":"api_key","provider":"groq","key":"k"}},"kept":1}"#;

struct Place {
    dir: tempfile::TempDir,
    ledger: Ledger,
    now: Arc<AtomicI64>,
}

impl Place {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), text).unwrap();
        let now = Arc::new(AtomicI64::new(NOW));
        let clock = Arc::clone(&now);
        let ledger = Ledger::new(Clock::new(move || clock.load(Ordering::Relaxed)));
        Self { dir, ledger, now }
    }

    fn account(&self, profile: &str) -> ProfileAccount {
        ProfileAccount {
            agent_dir: self.dir.path().to_path_buf(),
            around: Surroundings::default(),
            profile: profile.to_owned(),
            rules: CooldownRules::default(),
        }
    }

    fn on_disk(&self) -> AuthStore {
        AuthStore::load(self.dir.path()).unwrap()
    }

    /// Returns the store as a selection sees it.
    fn seen(&self) -> AuthStore {
        let mut store = self.on_disk();
        self.ledger.apply(self.dir.path(), &mut store);
        store
    }
}

#[tokio::test]
async fn a_failure_is_in_force_at_once_and_counted_once() {
    let place = Place::new(STORE);
    place.ledger.failed(&place.account("a"), FailureKind::RateLimit);
    assert_eq!(place.seen().usage("a").unusable_until(NOW), NOW + 60_000);
    assert!(!place.seen().usage("b").is_cooling_down(NOW));
    place.ledger.settle().await;
    for store in [place.on_disk(), place.seen()] {
        assert_eq!((store.usage("a").error_count, store.usage("a").last_failure_at), (1, Some(NOW)));
    }
    assert!(std::fs::read_to_string(place.dir.path().join(FILE)).unwrap().contains("\"kept\": 1"));
}

#[tokio::test]
async fn what_is_the_requests_fault_is_held_against_nobody() {
    let place = Place::new(STORE);
    for kind in [FailureKind::Format, FailureKind::ContextOverflow, FailureKind::Other] {
        place.ledger.failed(&place.account("a"), kind);
    }
    place.ledger.settle().await;
    assert_eq!(std::fs::read_to_string(place.dir.path().join(FILE)).unwrap(), STORE);
}

#[tokio::test(start_paused = true)]
async fn successes_wait_for_company_and_the_last_one_counts() {
    let place = Place::new(STORE);
    for at in 0..100 {
        place.now.store(NOW + at, Ordering::Relaxed);
        place.ledger.answered(&place.account("a"));
        place.ledger.answered(&place.account("b"));
    }
    assert_eq!(place.on_disk().usage("a").last_used, None, "nothing is written on the way of a call");
    assert_eq!(place.seen().usage("b").last_used, Some(NOW + 100), "later than the one before it");
    place.ledger.settle().await;
    assert_eq!(place.on_disk().usage("a").last_used, Some(NOW + 99));
    assert_eq!(place.on_disk().last_good(&crate::ProviderId::normalize("groq")), Some("b"));
}

#[tokio::test]
async fn a_success_after_a_failure_forgets_it() {
    let place = Place::new(STORE);
    place.ledger.failed(&place.account("a"), FailureKind::Billing);
    place.now.store(NOW + 5, Ordering::Relaxed);
    place.ledger.answered(&place.account("a"));
    place.ledger.settle().await;
    for store in [place.on_disk(), place.seen()] {
        assert_eq!(store.usage("a").unusable_until(NOW + 5), 0);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_leaves_the_notes_in_force() {
    let place = Place::new("{\"profiles\":");
    place.ledger.failed(&place.account("a"), FailureKind::Auth);
    place.ledger.settle().await;
    std::fs::write(place.dir.path().join(FILE), STORE).unwrap();
    assert!(place.seen().usage("a").is_cooling_down(NOW));
    place.ledger.failed(&place.account("b"), FailureKind::Auth);
    place.ledger.settle().await;
    assert!(place.on_disk().usage("a").is_cooling_down(NOW), "it is written with the next one");
}

#[tokio::test]
async fn a_login_another_program_keeps_is_in_cooldown_in_this_process() {
    let place = Place::new(STORE);
    place.ledger.failed(&place.account("theirs"), FailureKind::RateLimit);
    place.ledger.settle().await;
    let mut store = place.on_disk();
    let credential = store.get("a").unwrap().clone();
    store.show("theirs", credential);
    place.ledger.apply(place.dir.path(), &mut store);
    assert!(store.usage("theirs").is_cooling_down(NOW));
}

#[tokio::test]
async fn an_agent_that_was_deleted_stays_deleted() {
    let place = Place::new(STORE);
    std::fs::remove_dir_all(place.dir.path()).unwrap();
    place.ledger.answered(&place.account("a"));
    place.ledger.settle().await;
    assert!(!place.dir.path().exists());
}

#[tokio::test]
async fn notes_are_bounded() {
    let place = Place::new("{");
    for number in 0..(MOST_WAITING + 10) {
        place.ledger.failed(&place.account(&number.to_string()), FailureKind::Auth);
    }
    assert_eq!(place.ledger.shared.agents.lock()[place.dir.path()].waiting.len(), MOST_WAITING);
}
